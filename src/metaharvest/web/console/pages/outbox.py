"""The outbox: the mails with their deliveries; a mail as its recipients see it; send again, drop."""

from __future__ import annotations

from collections.abc import Sequence
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from starlette.responses import HTMLResponse, Response

from metaharvest.errors import MetaharvestError
from metaharvest.model.values import frozen
from metaharvest.queries.outbox import (
    ReportFilter,
    ReportRecord,
    newest_reports,
    number_refused,
    outbox_state,
    report_content,
    report_record,
)
from metaharvest.services import reports
from metaharvest.text import counted
from metaharvest.web.console.rendering import delivery_state
from metaharvest.web.console.visit import Visit, known

_PATH = "/console/outbox"
_ROWS = 50

STATES = {"undelivered": "not delivered", "queued": "waiting", "refused": "refused", "sent": "sent"}
"""The values of the filter; a delivery has all but the first."""

_KINDS = {"site": "to the contacts of a site", "admin": "to the administrators", "digest": "digest"}

_SANDBOX = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
"""The policy for the HTML of a mail, which has a style of its own: no script runs, nothing is loaded from elsewhere."""


def show(visit: Visit) -> Response:
    """The mails, the newest first."""
    query = visit.query
    chosen = {name: query.get(name, "").strip() for name in ("state", "kind", "site", "recipient", "document")}
    state = chosen["state"] if chosen["state"] in STATES else ""
    which = ReportFilter(
        undelivered=state == "undelivered",
        site=chosen["site"] or None,
        kind=chosen["kind"] if chosen["kind"] in _KINDS else None,
        recipient=chosen["recipient"] or None,
        state=state if state and state != "undelivered" else None,
        document=chosen["document"] or None,
    )
    found: Sequence[ReportRecord] = []
    with visit.harvester.reading() as session:
        with visit.mistakes(MetaharvestError):
            found = newest_reports(session, _ROWS + 1, which, visit.after)
        now = outbox_state(session, visit.harvester.now())
        has_refused = number_refused(session) > 0
    given = {name: value for name, value in chosen.items() if value}
    return visit.render(
        "outbox.html",
        reports=found[:_ROWS],
        waiting=now.failed + now.fresh,
        waiting_since=now.failed_since,
        refused=now.refused,
        has_refused=has_refused,
        chosen=chosen,
        states=[("", "any"), *STATES.items()],
        kinds=[("", "any"), *_KINDS.items()],
        kind_words=_KINDS,
        is_filtered=bool(given),
        first=visit.link(_PATH, **given) if visit.after is not None else None,
        next=visit.link(_PATH, **given, after=found[_ROWS - 1].report_id) if len(found) > _ROWS else None,
    )


def show_report(visit: Visit) -> Response:
    """A mail: its deliveries, its text, and what can be done with it."""
    report, mail = read_mail(visit)
    recipients, nobody = reports.recipients_now(visit.harvester, report.report_id)
    return visit.render(
        "outbox_report.html",
        report=report,
        mail=mail,
        recipients=recipients,
        nobody=nobody,
        kind_words=_KINDS,
        is_open=any(delivery_state(each)[0] in ("waiting", "refused") for each in report.deliveries),
    )


def show_html(visit: Visit) -> Response:
    """The HTML of a mail, as a mail program shows it: without scripts, and without loading anything."""
    _, mail = read_mail(visit)
    headers = {"Content-Security-Policy": _SANDBOX, "Referrer-Policy": "no-referrer"}
    return HTMLResponse(mail.html or "<p>This mail has no HTML.</p>", headers=headers)


def download(visit: Visit) -> Response:
    """The whole mail, byte for byte."""
    report = _report(visit)
    with visit.harvester.reading() as session:
        content = report_content(session, report.report_id)
    return visit.download(content, f"report-{report.report_id}.eml", "message/rfc822")


def resend(visit: Visit) -> Response:
    """Send a mail again: to its present recipients, or to the given address."""
    report = _report(visit)
    to = [address for address in visit.form.text("to").replace(",", " ").split() if address]
    done = reports.resend(visit.harvester, report.report_id, to)
    notice = f"The mail waits in the outbox again, for {', '.join(done.recipients)}."
    if done.former:
        notice += f" {', '.join(done.former)} no longer gets these reports."
    return visit.redirect(_PATH, report.report_id, notice=f"{notice} {_WHEN}")


def drop(visit: Visit) -> Response:
    """Stop the delivery of a mail."""
    report = _report(visit)
    done = reports.drop(visit.harvester, report.report_id, reason=visit.form.text("reason"))
    number = done.waiting + done.refused
    notice = f"{counted(number, 'delivery', 'deliveries')} dropped." if number else "Nothing of it waited."
    return visit.redirect(_PATH, report.report_id, notice=notice)


def resend_refused(visit: Visit) -> Response:
    """Send all refused mails again, after a question."""
    if not visit.form.is_set("sure"):
        with visit.harvester.reading() as session:
            refused = newest_reports(session, _ROWS + 1, ReportFilter(state="refused"))
        return visit.render("outbox_resend.html", reports=refused[:_ROWS], is_more=len(refused) > _ROWS)
    done = reports.resend_refused(visit.harvester)
    mails = counted(done.reports, "mail")
    notice = f"{counted(done.deliveries, 'delivery', 'deliveries')} of {mails} to send again."
    if done.without_recipient:
        notice += f" Nobody gets {', '.join(f'mail {each}' for each in done.without_recipient[:20])} now: open it."
    return visit.redirect(_PATH, notice=f"{notice} {_WHEN if done.deliveries else ''}".strip())


def deliver(visit: Visit) -> Response:
    """Hand over the waiting mails now, for a minute: a person waits, and no run can begin meanwhile."""
    done = reports.deliver(visit.harvester, is_stopped=lambda: True)
    numbers = done.deliveries
    notice = f"{numbers.sent} sent, {numbers.waiting} waiting, {numbers.refused} refused."
    return visit.redirect(_PATH, notice=" ".join([notice, *done.reasons[:3]]))


_WHEN = "The next run hands it over; so does the button Deliver the waiting mails now."


@frozen
class ShownMail:
    """A mail as its recipients see it; an empty text or HTML is not in the mail."""

    sender: str
    text: str
    html: str
    attachments: tuple[str, ...]


def _shown_mail(content: bytes) -> ShownMail:
    message = message_from_bytes(content, policy=default)
    names = tuple(part.get_filename() or "without a name" for part in message.iter_attachments())
    return ShownMail(str(message["From"] or ""), _part(message, "plain"), _part(message, "html"), names)


def read_mail(visit: Visit) -> tuple[ReportRecord, ShownMail]:
    """The mail that the path names. Raises NotFound."""
    report = _report(visit)
    with visit.harvester.reading() as session:
        return report, _shown_mail(report_content(session, report.report_id))


def _report(visit: Visit) -> ReportRecord:
    number = visit.number("report", "There is no mail with this number.")
    with visit.harvester.reading() as session, known(f"There is no mail with the number {number}."):
        return report_record(session, number)


def _part(message: EmailMessage, kind: str) -> str:
    part: Any = message.get_body((kind,))
    return str(part.get_content()).replace("\r\n", "\n") if part is not None else ""
