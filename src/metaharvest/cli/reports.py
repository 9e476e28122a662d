"""`metaharvest reports`: the reports, their recipients, and their delivery; sends again, and flushes the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import ROWS, Invocation, day, parsed, trimmed
from metaharvest.cli.printing import (
    Column,
    new_page,
    opened,
    print_fields,
    print_json,
    print_line,
    print_table,
    stamp,
    table_options,
)
from metaharvest.text import clean, counted, one_line

if TYPE_CHECKING:
    from email.message import EmailMessage

_STATES = {"sent": "sent", "queued": "waiting", "refused": "refused"}


@click.group("reports", invoke_without_command=True)
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@click.option("--undelivered", is_flag=True, help="Only reports that a recipient has not got.")
@click.option("--site", metavar="NAME", help="Only reports to the contacts of this site.")
@click.option("--kind", type=click.Choice(["site", "admin", "digest"]), help="Only reports of this kind.")
@click.option(
    "--document",
    metavar="ID",
    callback=trimmed,
    help="Only reports to contacts about harvests that name this document.",
)
@click.option("--recipient", metavar="ADDRESS", help="Only reports to this address.")
@click.option(
    "--state",
    type=click.Choice(list(_STATES.values())),
    callback=parsed(lambda word: next(key for key, each in _STATES.items() if each == word)),
    help="Only reports with a delivery in this state.",
)
@table_options
def command(invocation: Invocation, /, limit: int, as_json: bool, **options: Any) -> None:
    """List the reports, the newest first, their recipients, and their delivery.

    Example: metaharvest reports --site "Alder Creek" --state refused
    """
    which = queries.outbox.ReportFilter(**options)
    reports = invocation.harvester.read(queries.outbox.newest_reports, limit, which)
    if as_json:
        print_json(reports)
        return
    if not reports:
        none = {
            queries.outbox.ReportFilter(): "There is no report yet.",
            queries.outbox.ReportFilter(undelivered=True): "Every report has arrived.",
        }
        click.echo(none.get(which, "There is no such report."))
        return
    headings = [Column("report"), Column("written (UTC)", 4), Column("kind", 5), Column("to", 1)]
    headings += [Column("delivery", 2), Column("subject", 3, wrap=True)]
    print_table(headings, [_row(report) for report in reports])
    for report in reports:
        for delivery in report.deliveries:
            if delivery.last_error:
                print_line(f"{report.report_id}: {delivery.recipient}: {delivery.last_error}")


@command.command("show")
@click.argument("report_id", type=click.IntRange(min=1))
@click.option("--text", "form", flag_value="text", default="text", help="The text. This is the default.")
@click.option("--html", "form", flag_value="html", help="The HTML, as it was sent.")
@click.option("--raw", "form", flag_value="raw", help="The whole message, byte for byte.")
def show(invocation: Invocation, report_id: int, form: str) -> None:
    """Show a report as it was rendered."""
    report, content = _report(invocation, report_id)
    if form == "raw":
        click.echo(content, nl=False)
        return
    message = _message(content)
    if form == "html":
        click.echo(_part(message, "html").encode("utf-8"), nl=False)
        return
    print_fields({"Subject": report.subject, "Date": message["Date"], "From": message["From"]})
    for delivery in report.deliveries:
        reason = f": {one_line(delivery.last_error, 1000)}" if delivery.last_error else ""
        click.echo(f"To       {one_line(delivery.recipient)} ({_STATES[delivery.status]}{reason})")
    click.echo(clean(f"\n{_part(message, 'plain')}"))


@command.command("resend")
@click.argument("report_id", type=click.IntRange(min=1), required=False)
@click.option(
    "--to", multiple=True, metavar="ADDRESS", help="To this address, also if it is no contact. May be repeated."
)
@click.option("--state", type=click.Choice(["refused"]), help="Instead of one report: all refused reports.")
@click.option(
    "--since", metavar="YYYY-MM-DD", callback=day, help="With --state: only reports written on this day or later."
)
def resend(
    invocation: Invocation, report_id: int | None, to: tuple[str, ...], state: str | None, since: date | None
) -> int:
    """Send a report again, under its old Message-ID, to its present recipients.

    A corrected contact gets it; an address that is no longer a contact is not tried again.
    If there are no recipients any more, as the site was removed, --to names one.

    --state refused sends all refused reports again, to the recipients who did not get them.

    \b
    Examples:
      metaharvest reports resend 12 --to steward@example.org
      metaharvest reports resend --state refused --since 2026-11-20
    """
    from metaharvest.errors import LockHeld

    if (report_id is None) == (state is None):
        raise click.UsageError("Name the number of a report, or --state refused for all that were refused.")
    if report_id is None:
        if to:
            raise click.UsageError("--to goes with the number of a report; --state sends to the known recipients.")
        again = _queue_refused(invocation, since)
    else:
        if since is not None:
            raise click.UsageError("--since goes with --state refused.")
        for address in services.reports.resend(invocation.harvester, report_id, to).former:
            click.echo(clean(f"{address} no longer gets these reports. --to sends this one anyway."))
        again = f"Report {report_id} is"
    if not again:
        return 0
    try:
        return _deliver(invocation)
    except LockHeld:
        click.echo(f"{again} in the outbox again; the run that is under way hands it over.")
        return 0


def _queue_refused(invocation: Invocation, since: date | None) -> str:
    """Put all refused deliveries into the outbox again; returns a sentence about the outbox, empty for none."""
    resent = services.reports.resend_refused(invocation.harvester, since)
    for report_id in resent.without_recipient:
        command = f"`metaharvest reports resend {report_id} --to ADDRESS`"
        click.echo(f"Report {report_id} stays refused: nobody gets such reports now. {command} names a recipient.")
    if not resent.deliveries:
        click.echo("No other report was refused." if resent.without_recipient else "No report was refused.")
        return ""
    deliveries = counted(resent.deliveries, "delivery", "deliveries")
    click.echo(f"{deliveries} of {counted(resent.reports, 'report')} to send again.")
    return "They are"


@command.command("drop")
@click.argument("report_id", type=click.IntRange(min=1))
@click.option("--reason", metavar="TEXT", default="", help="The reason, for `metaharvest decisions`.")
def drop(invocation: Invocation, report_id: int, reason: str) -> None:
    """Drop a report: it is not sent again, and `doctor` no longer names it.

    Example: metaharvest reports drop 12
    """
    dropped = services.reports.drop(invocation.harvester, report_id, reason=reason)
    number = dropped.waiting + dropped.refused
    if number:
        deliveries = counted(number, "delivery was", "deliveries were")
        refused = f" The mail server had refused {dropped.refused} of them." if dropped.refused else ""
        click.echo(f"{deliveries} given up.{refused}")
    elif dropped.arrived:
        click.echo("Nothing of it was waiting or refused: nothing was changed.")
    else:
        click.echo("Nothing of it was waiting: nothing was changed.")


@command.command("open")
@click.argument("report_id", type=click.IntRange(min=1))
def open_report(invocation: Invocation, report_id: int) -> None:
    """Open a report in the web browser, as its recipients see it.

    Example: metaharvest reports open 12
    """
    _, content = _report(invocation, report_id)
    _browse(_part(_message(content), "html"), f"report-{report_id}")


def _report(invocation: Invocation, report_id: int) -> tuple[queries.outbox.ReportRecord, bytes]:
    with invocation.harvester.reading() as session:
        return queries.outbox.report_record(session, report_id), queries.outbox.report_content(session, report_id)


def _message(content: bytes) -> EmailMessage:
    from email import message_from_bytes
    from email.policy import default

    return message_from_bytes(content, policy=default)


@command.command("preview")
@click.option("--site", metavar="NAME", help="The report to the contacts of this site. [default: the administrator's]")
@click.option("--html", "as_html", is_flag=True, help="The HTML.")
@click.option("--open", "in_browser", is_flag=True, help="Open it in the web browser.")
def preview(invocation: Invocation, site: str | None, as_html: bool, in_browser: bool) -> None:
    """Show the newest report as it would be written now, with the present templates; nothing is sent.

    Example: metaharvest reports preview --site "Alder Creek"
    """
    report = services.reports.newest_report(invocation.harvester, site)
    if in_browser:
        _browse(report.html, "preview")
    elif as_html:
        click.echo(report.html.encode("utf-8"), nl=False)
    else:
        click.echo(clean(f"Subject: {report.subject}\n\n{report.text}"))


def _browse(page: str, name: str) -> None:
    file = new_page(name)
    file.write_text(page, encoding="utf-8")
    click.echo(opened(file))


@command.command("deliver")
def deliver(invocation: Invocation) -> int:
    """Hand over the waiting reports in the outbox now. Exit code 1 if a report could not be handed over."""
    return _deliver(invocation)


def _deliver(invocation: Invocation) -> int:
    """Flush the outbox and print the result; the exit code."""
    delivered = services.reports.deliver(invocation.harvester)
    done, refused = delivered.deliveries, delivered.refused
    click.echo(f"{done.sent} sent, {done.waiting} waiting, {done.refused} refused.")
    if done.there:
        click.echo(f"Still in the mail folder, and not written again: {done.there} of those sent.")
    if done.former:
        click.echo(f"Not tried any more, as their recipients get these reports no longer: {done.former}.")
    if refused:
        deliveries = counted(refused, "delivery is", "deliveries are")
        again = "`metaharvest reports resend --state refused` sends them again"
        why = "`metaharvest reports --state refused` says why"
        print_line(f"{deliveries} refused and not tried any more: {again}, {why}.", err=True)
    if done.in_doubt:
        print_line(
            f"The mail server refused everybody ({done.in_doubt} of the waiting deliveries). That is a fault of "
            "the server or of [mail], not of the addresses. The next runs try again, for four days.",
            err=True,
        )
    for sentence in delivered.reasons:
        print_line(sentence, err=True)
    return 1 if done.waiting or done.refused else 0


def _row(report: queries.outbox.ReportRecord) -> list[object]:
    recipients = ", ".join(one_line(delivery.recipient) for delivery in report.deliveries)
    about = [report.report_id, stamp(report.created_at), report.kind]
    return [*about, recipients, _summary(report.deliveries), report.subject]


def _summary(deliveries: Sequence[queries.outbox.Delivery]) -> str:
    """`2 sent, 1 refused`; `to nobody` if there is no recipient."""
    states = [delivery.status for delivery in deliveries]
    return ", ".join(f"{states.count(key)} {word}" for key, word in _STATES.items() if key in states) or "to nobody"


def _part(message: EmailMessage, kind: str) -> str:
    """The text or HTML part, as text, with the line ends of this machine."""
    part = message.get_body((kind,))
    return str(part.get_content()).replace("\r\n", "\n") if part is not None else ""
