"""`metaharvest reports`: what was written to whom, and whether it arrived; sends again, and flushes the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.app import ROWS, App, print_fields, print_json, print_table
from metaharvest.text import clean, one_line

if TYPE_CHECKING:
    from email.message import EmailMessage

    from sqlalchemy.orm import Session

    from metaharvest.database.models import ReportDelivery, ReportOutbox


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
def show(app: App, report_id: int, form: str) -> None:
    """Show a report as it was rendered."""
    from email import message_from_bytes
    from email.policy import default

    from metaharvest.cli.queries import reading

    with reading(app) as session:
        report = _find(session, report_id)
        deliveries = _deliveries(session, report_id)
    if form == "raw":
        click.echo(report.content, nl=False)
        return
    message = message_from_bytes(report.content, policy=default)
    if form == "html":
        click.echo(_part(message, "html").encode("utf-8"), nl=False)
        return
    print_fields({"Subject": report.subject, "Date": message["Date"], "From": message["From"]})
    for delivery in deliveries:
        click.echo(_delivery_line(delivery))
    click.echo(clean(f"\n{_part(message, 'plain')}"))


@command.command("resend")
@click.argument("report_id", type=click.IntRange(min=1))
@click.pass_obj
def resend(app: App, report_id: int) -> int:
    """Send a report again to all its recipients, under its old Message-ID."""
    from metaharvest import reports
    from metaharvest.cli.queries import writing
    from metaharvest.errors import LockHeld

    with writing(app) as session:
        reports.resend(session, report_id)
    try:
        return _deliver(app)
    except LockHeld:
        click.echo(f"Report {report_id} is in the outbox again; the run that is under way hands it over.")
        return 0


@command.command("deliver")
@click.pass_obj
def deliver(app: App) -> int:
    """Hand over now whatever waits in the outbox. Exit code 1 if something could not be handed over."""
    return _deliver(app)


def _deliver(app: App) -> int:
    """Flush the outbox, under the run lock, so that no run sends the same at the same time."""
    from metaharvest import reports
    from metaharvest.cli.queries import reading
    from metaharvest.database.engine import database_errors, run_lock, writers

    with run_lock(app.engine), database_errors(app.engine):
        done = reports.deliver(writers(app.engine), app.settings, app.now())
    click.echo(f"{done.sent} sent, {done.waiting} waiting, {done.refused} refused.")
    if done.there:
        click.echo(f"Still in the mail folder, and not written again: {done.there} of those sent.")
    if not done.waiting and not done.refused:
        return 0
    with reading(app) as session:
        for sentence in _reasons(session):
            click.echo(one_line(sentence, 2000), err=True)
    return 1


def _reasons(session: Session) -> list[str]:
    """Why reports wait or were refused, each reason once, the newest first."""
    from sqlalchemy import select

    from metaharvest.database.models import ReportDelivery

    statement = (
        select(ReportDelivery.last_error)
        .where(ReportDelivery.status != "sent", ReportDelivery.last_error.is_not(None))
        .order_by(ReportDelivery.last_attempt_at.desc())
        .limit(1000)
    )
    return list(dict.fromkeys(str(reason) for reason in session.scalars(statement)))[:10]


def _list(app: App, limit: int, undelivered: bool, as_json: bool) -> None:
    from metaharvest.cli.queries import reading, stamp

    with reading(app) as session:
        rows = _rows(session, limit, undelivered)
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("Every report has arrived." if undelivered else "There is no report yet.")
        return
    table = [
        [row["report_id"], stamp(row["created_at"]), row["kind"], _summary(row["deliveries"]), row["subject"]]
        for row in rows
    ]
    print_table(["report", "written (UTC)", "kind", "delivery", "subject"], table)
    for row in rows:
        for delivery in row["deliveries"]:
            if delivery["last_error"]:
                click.echo(one_line(f"{row['report_id']}: {delivery['recipient']}: {delivery['last_error']}", 2000))


def _rows(session: Session, limit: int, undelivered: bool) -> list[dict[str, Any]]:
    from sqlalchemy import select
    from sqlalchemy.orm import defer

    from metaharvest.database.models import ReportDelivery, ReportOutbox

    statement = select(ReportOutbox).options(defer(ReportOutbox.content))
    if undelivered:
        missing = select(ReportDelivery.report_id).where(ReportDelivery.status != "sent")
        statement = statement.where(ReportOutbox.report_id.in_(missing))
    statement = statement.order_by(ReportOutbox.report_id.desc()).limit(limit)
    return [
        {
            "report_id": report.report_id,
            "created_at": report.created_at,
            "kind": report.kind,
            "run_id": report.run_id,
            "site_run_id": report.site_run_id,
            "subject": report.subject,
            "message_id": report.message_id,
            "deliveries": [_delivery_values(row) for row in _deliveries(session, report.report_id)],
        }
        for report in session.scalars(statement)
    ]


def _delivery_values(delivery: ReportDelivery) -> dict[str, Any]:
    names = ("recipient", "status", "attempts", "last_error", "last_attempt_at")
    return {name: getattr(delivery, name) for name in names}


def _summary(deliveries: list[dict[str, Any]]) -> str:
    """`2 sent, 1 refused`; `to nobody` where there is no recipient."""
    words = {"sent": "sent", "queued": "waiting", "refused": "refused"}
    states = [delivery["status"] for delivery in deliveries]
    return ", ".join(f"{states.count(key)} {word}" for key, word in words.items() if key in states) or "to nobody"


def _delivery_line(delivery: ReportDelivery) -> str:
    state = "waiting" if delivery.status == "queued" else delivery.status
    reason = f": {one_line(delivery.last_error, 1000)}" if delivery.last_error else ""
    return f"To       {one_line(delivery.recipient)} ({state}{reason})"


def _deliveries(session: Session, report_id: int) -> list[ReportDelivery]:
    from sqlalchemy import select

    from metaharvest.database.models import ReportDelivery

    statement = select(ReportDelivery).where(ReportDelivery.report_id == report_id).order_by(ReportDelivery.delivery_id)
    return list(session.scalars(statement))


def _find(session: Session, report_id: int) -> ReportOutbox:
    from metaharvest.database.models import ReportOutbox
    from metaharvest.errors import MetaharvestError

    report = session.get(ReportOutbox, report_id) if report_id < 2**63 else None
    if report is None:
        raise MetaharvestError(f"There is no report {report_id}. `metaharvest reports` lists those there are.")
    return report


def _part(message: EmailMessage, kind: str) -> str:
    """The text or HTML part, as text, with the line ends of this machine."""
    part = message.get_body((kind,))
    return str(part.get_content()).replace("\r\n", "\n") if part is not None else ""
