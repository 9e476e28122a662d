"""`metaharvest reports`: what was written to whom, and whether it arrived; sends again, and flushes the outbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import ROWS, Invocation
from metaharvest.cli.printing import print_fields, print_json, print_line, print_table, stamp
from metaharvest.text import clean, one_line

if TYPE_CHECKING:
    from email.message import EmailMessage

    from metaharvest.queries.records import Record

_STATES = {"sent": "sent", "queued": "waiting", "refused": "refused"}


@click.group("reports", invoke_without_command=True)
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@click.option("--undelivered", is_flag=True, help="Only those that somebody has not got.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(context: click.Context, limit: int, undelivered: bool, as_json: bool) -> None:
    """List the reports, the newest first, and whether they arrived."""
    if context.invoked_subcommand is None:
        _list(context.obj, limit, undelivered, as_json)


@command.command("show")
@click.argument("report_id", type=click.IntRange(min=1))
@click.option("--text", "form", flag_value="text", default="text", help="The text. This is the default.")
@click.option("--html", "form", flag_value="html", help="The HTML, as it was sent.")
@click.option("--raw", "form", flag_value="raw", help="The whole message, byte for byte.")
@click.pass_obj
def show(invocation: Invocation, report_id: int, form: str) -> None:
    """Show a report as it was rendered."""
    from email import message_from_bytes
    from email.policy import default

    from metaharvest.queries.outbox import report_content, report_record

    with invocation.harvester.reading() as session:
        report = report_record(session, report_id)
        content = report_content(session, report_id)
    if form == "raw":
        click.echo(content, nl=False)
        return
    message = message_from_bytes(content, policy=default)
    if form == "html":
        click.echo(_part(message, "html").encode("utf-8"), nl=False)
        return
    print_fields({"Subject": report["subject"], "Date": message["Date"], "From": message["From"]})
    for delivery in report["deliveries"]:
        click.echo(_delivery_line(delivery))
    click.echo(clean(f"\n{_part(message, 'plain')}"))


@command.command("resend")
@click.argument("report_id", type=click.IntRange(min=1))
@click.pass_obj
def resend(invocation: Invocation, report_id: int) -> int:
    """Send a report again to all its recipients, under its old Message-ID."""
    from metaharvest.errors import LockHeld

    invocation.harvester.resend(report_id)
    try:
        return _deliver(invocation)
    except LockHeld:
        click.echo(f"Report {report_id} is in the outbox again; the run that is under way hands it over.")
        return 0


@command.command("deliver")
@click.pass_obj
def deliver(invocation: Invocation) -> int:
    """Hand over now whatever waits in the outbox. Exit code 1 if something could not be handed over."""
    return _deliver(invocation)


def _deliver(invocation: Invocation) -> int:
    """Flush the outbox and say how that went; the exit code."""
    from metaharvest.queries.outbox import reasons_not_delivered

    began = invocation.harvester.now()
    done = invocation.harvester.deliver()
    click.echo(f"{done.sent} sent, {done.waiting} waiting, {done.refused} refused.")
    if done.there:
        click.echo(f"Still in the mail folder, and not written again: {done.there} of those sent.")
    if done.former:
        click.echo(f"Not tried any more, as their recipients get these reports no longer: {done.former}.")
    if not done.waiting and not done.refused:
        return 0
    with invocation.harvester.reading() as session:
        for sentence in reasons_not_delivered(session, began):
            print_line(sentence, err=True)
    return 1


def _list(invocation: Invocation, limit: int, undelivered: bool, as_json: bool) -> None:
    from metaharvest.queries.outbox import newest_reports

    with invocation.harvester.reading() as session:
        reports = newest_reports(session, limit, undelivered=undelivered)
    if as_json:
        print_json(reports)
        return
    if not reports:
        click.echo("Every report has arrived." if undelivered else "There is no report yet.")
        return
    print_table(
        ["report", "written (UTC)", "kind", "delivery", "subject"],
        [
            [
                report["report_id"],
                stamp(report["created_at"]),
                report["kind"],
                _summary(report["deliveries"]),
                report["subject"],
            ]
            for report in reports
        ],
    )
    for report in reports:
        for delivery in report["deliveries"]:
            if delivery["last_error"]:
                print_line(f"{report['report_id']}: {delivery['recipient']}: {delivery['last_error']}")


def _summary(deliveries: Sequence[Record]) -> str:
    """`2 sent, 1 refused`; `to nobody` if there is no recipient."""
    states = [delivery["status"] for delivery in deliveries]
    return ", ".join(f"{states.count(key)} {word}" for key, word in _STATES.items() if key in states) or "to nobody"


def _delivery_line(delivery: Record) -> str:
    reason = f": {one_line(delivery['last_error'], 1000)}" if delivery["last_error"] else ""
    return f"To       {one_line(delivery['recipient'])} ({_STATES[delivery['status']]}{reason})"


def _part(message: EmailMessage, kind: str) -> str:
    """The text or HTML part, as text, with the line ends of this machine."""
    part = message.get_body((kind,))
    return str(part.get_content()).replace("\r\n", "\n") if part is not None else ""
