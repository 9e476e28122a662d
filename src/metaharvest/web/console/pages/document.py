"""One document: why it is or is not in the target, its findings, its time line, its stored records; withdrawal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from sqlalchemy.orm import Session
from starlette.responses import Response

from metaharvest.errors import RequestError
from metaharvest.model import OutcomeKind
from metaharvest.model.kinds import Role
from metaharvest.model.values import frozen
from metaharvest.queries.decisions import DecisionFilter, DecisionRecord, decisions
from metaharvest.queries.history import (
    DocumentEvent,
    DocumentHistory,
    TransferEvent,
    UploadedRevision,
    document_standing,
    known_document,
)
from metaharvest.queries.outbox import ReportFilter, ReportRecord, newest_reports
from metaharvest.queries.records import would_be
from metaharvest.queries.sites import site_names
from metaharvest.queries.works import has_work
from metaharvest.reports.phrasing import LABELS
from metaharvest.services import documents
from metaharvest.services.documents import WithdrawalRequest, Withdrawn, stored_record
from metaharvest.text import counted, joined, one_line, whole_number
from metaharvest.web.console.record_text import difference, record_text
from metaharvest.web.console.visit import NotFound, Visit

_MOST_MAILS = 50
_MOST_DECISIONS = 50
_MOST_EVENTS = 200
_MESSAGE = 400
_UNKNOWN = "No document of this name is known: no site lists it, the log does not name it, the target does not have it."


@frozen
class TimelineEntry:
    """An entry of the time line; the same event in several runs is one entry, from `begin` to `end`.

    `kind` is run, owner, mail or decision. `runs` are the first and the last run, `report_id` names a mail.
    """

    begin: datetime
    end: datetime
    kind: str
    site: str
    what: str
    why: str
    runs: tuple[int, ...] = ()
    times: int = 1
    report_id: int | None = None


def show(visit: Visit) -> Response:
    """The page of a document, or of one of its revisions."""
    with visit.harvester.reading() as session:
        known = _known(visit, session)
        standing = document_standing(session, known)
        sites = [] if visit.visitor.role < Role.STEWARD else sorted(site_names(session).values(), key=str.casefold)
        mails: Sequence[ReportRecord] = ()
        audit: Sequence[DecisionRecord] = ()
        if visit.visitor.role >= Role.VIEWER:
            mails = newest_reports(session, _MOST_MAILS, ReportFilter(document=known.document_id))
            audit = list(decisions(session, DecisionFilter(subject=known.document_id), _MOST_DECISIONS))
        is_compared = visit.visitor.role >= Role.VIEWER and has_work(session, known.document_id)
    entries = timeline(known, mails, [each for each in audit if each.kind == "document"])
    owning = {owner.site for owner in known.owners}
    others = dict.fromkeys(name for name in sites if name not in owning)
    return visit.render(
        "document.html",
        known=known,
        standing=standing,
        timeline=entries[:_MOST_EVENTS],
        number_left_out=max(len(entries) - _MOST_EVENTS, 0),
        sites=list(others),
        claiming=next((row.site for row in known.listed if row.site in others), ""),
        is_compared=is_compared,
        is_contact=visit.visitor.role is Role.CONTACT,
        may_decide=visit.visitor.role >= Role.STEWARD,
    )


def show_record(visit: Visit) -> Response:
    """A stored revision as text; with another one, the difference between the two."""
    with visit.harvester.reading() as session:
        known = _known(visit, session)
    stored = {each.revision: each for each in known.revisions if each.revision is not None}
    revision = whole_number(visit.query.get("revision", ""))
    chosen = stored.get(revision) if revision is not None else next(iter(stored.values()), None)
    if chosen is None or chosen.revision is None:
        raise NotFound("The target has no such revision of this document.")
    sites = [owner.site for owner in known.owners if owner.registered and owner.site]
    sites += [row.site for row in known.listed if row.registered and row.site]
    content = _bytes(visit, known, chosen, sites)
    other = whole_number(visit.query.get("with", ""))
    compared = None
    if other is not None and other != chosen.revision:
        if other not in stored:
            raise NotFound("The target has no such revision of this document.")
        compared = difference(_bytes(visit, known, stored[other], sites), content)
    return visit.render(
        "document_record.html",
        known=known,
        chosen=chosen,
        revisions=sorted(stored, reverse=True),
        record=record_text(content),
        compared=compared,
        other=other,
    )


def ask_withdrawal(visit: Visit, *, reason: str = "", asks_again: bool = False) -> Response:
    """The effects of a withdrawal, and the form for its reason. Before an erasure, the page asks once more."""
    with visit.harvester.reading() as session:
        known = _known(visit, session)
        standing = document_standing(session, known)
    return visit.render("document_withdraw.html", known=known, standing=standing, reason=reason, asks_again=asks_again)


def withdraw(visit: Visit) -> Response:
    """Withdraw the document. To erase its content, the page asks once more."""
    form, document_id = visit.form, _name(visit)
    reason, erase = form.text("reason"), form.is_set("erase")
    if not reason:
        visit.error = RequestError("Write a reason: it is kept with the decision, and shown to harvesters.")
        return ask_withdrawal(visit)
    if erase and not form.is_set("confirmed"):
        return ask_withdrawal(visit, reason=reason, asks_again=True)
    request = WithdrawalRequest(document_id, reason, visit.visitor.address, erase)
    done = documents.withdraw(visit.harvester, request)
    return visit.redirect("/console/documents", done.document_id, notice=_withdrawn(done, erase))


def readmit(visit: Visit) -> Response:
    """Take the withdrawal back."""
    done = documents.take_back(visit.harvester, WithdrawalRequest(_name(visit), by=visit.visitor.address))
    sites = joined([f"the site {name}" for name in done.sites])
    again = f" The next harvest of {sites} may bring it in again." if done.sites else ""
    notice = f"The withdrawal of {done.document_id} was taken back.{again}"
    return visit.redirect("/console/documents", done.document_id, notice=notice)


def _withdrawn(done: Withdrawn, erase: bool) -> str:
    at = joined([each.target for each in done.at_targets if each.deleted])
    deleted = f"deleted in {at}" if at else "no target had it"
    stays = " ".join(f"{each.target}: {each.stays}." for each in done.at_targets if each.stays)
    number = sum(each.erased for each in done.at_targets)
    erased = f" Its content was erased ({counted(number, 'revision')})." if erase else ""
    return f"{done.document_id} was withdrawn: {deleted}.{erased} {stays} {done.stays}".strip()


def _name(visit: Visit) -> str:
    """The document that the path names, as it is known."""
    with visit.harvester.reading() as session:
        return _known(visit, session).document_id


def _known(visit: Visit, session: Session) -> DocumentHistory:
    """The history of the document that the path names; for a contact, at their own sites. Raises NotFound."""
    known = known_document(session, visit.path["document"], visit.harvester.today())
    if known is None:
        raise NotFound(_UNKNOWN)
    if visit.visitor.role is not Role.CONTACT:
        return known
    own = visit.visitor.sites
    owners = tuple(each for each in known.owners if each.site_id in own)
    listed = tuple(each for each in known.listed if each.site_id in own)
    if not owners and not listed:
        raise NotFound(_UNKNOWN)
    is_owner = bool(owners)
    return replace(
        known,
        title=known.title if is_owner else next((each.title for each in listed if each.title), None),
        owners=owners,
        listed=listed,
        revisions=tuple(each for each in known.revisions if is_owner or each.site_id in own),
        transfers=(),
        history=tuple(each for each in known.history if each.site_id in own),
    )


def _bytes(visit: Visit, known: DocumentHistory, which: UploadedRevision, sites: Sequence[str]) -> bytes:
    content = stored_record(visit.harvester, known.document_id, which.revision or 0, list(dict.fromkeys(sites)))
    if content is None:
        raise RequestError(
            f"The content of revision {which.revision} is not there: it was erased, or its target was removed."
        )
    return content


# -- the time line


def timeline(
    known: DocumentHistory, mails: Iterable[ReportRecord] = (), audit: Iterable[DecisionRecord] = ()
) -> list[TimelineEntry]:
    """The entries, the newest first."""
    entries = [*_runs(known.history), *map(_owner, known.transfers), *map(_mail, mails), *map(_decision, audit)]
    return sorted(entries, key=lambda each: each.end, reverse=True)


def _runs(events: Sequence[DocumentEvent]) -> Iterator[TimelineEntry]:
    for (site, what, why), same in groupby(events, key=_in_words):
        nights = list(same)
        runs = tuple(dict.fromkeys((nights[0].run_id, nights[-1].run_id)))
        yield TimelineEntry(nights[0].at, nights[-1].at, "run", site, what, why, runs, len(nights))


def _in_words(event: DocumentEvent) -> tuple[str, str, str]:
    said = would_be(event.outcome, event.message)
    what = said or (LABELS[OutcomeKind(event.outcome)] if event.outcome else one_line(event.message, _MESSAGE))
    why = "; ".join(dict.fromkeys(f"{each.rule}: {one_line(each.message, _MESSAGE)}" for each in event.findings))
    if event.outcome == OutcomeKind.FILTERED.value:
        why = one_line(event.message, _MESSAGE)
    revision = "" if event.revision is None or not event.outcome else f"revision {event.revision} "
    return event.site or "", f"{revision}{what}", why


def _owner(event: TransferEvent) -> TimelineEntry:
    former = event.from_site or "no registered site"
    by = f"by {event.transferred_by}" if event.transferred_by else ""
    what = f"transferred from {former} to {event.to_site}"
    return TimelineEntry(event.at, event.at, "owner", event.to_site, what, by)


def _mail(report: ReportRecord) -> TimelineEntry:
    people = joined([f"{each.recipient} ({each.status})" for each in report.deliveries])
    at = report.created_at
    return TimelineEntry(at, at, "mail", "", report.subject, people, (report.run_id,), report_id=report.report_id)


def _decision(record: DecisionRecord) -> TimelineEntry:
    by = f"by {record.actor or 'somebody'}{f': {record.reason}' if record.reason else ''}"
    return TimelineEntry(record.at, record.at, "decision", "", _DECISIONS.get(record.action, record.action), by)


_DECISIONS = {
    "documents.transfer": "decided: transferred to another site",
    "documents.withdraw": "decided: withdrawn",
    "documents.readmit": "decided: the withdrawal was taken back",
    "works.decide": "decided: if it is the same as another document, or related",
}
