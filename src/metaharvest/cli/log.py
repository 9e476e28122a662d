"""`metaharvest log`: the journal, row by row, with the findings under each; or its tables as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.app import ROWS, App, print_json

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.orm import Session

    from metaharvest.database.models import HarvestDetailLog, HarvestLog

_LEVELS = ("error", "warning", "notice", "info", "debug")
_SHOWN_TO_PEOPLE = 200


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is asked for, as options name it."""

    run_id: int | None
    site_run_id: int | None
    site: str | None
    document: str | None
    level: str
    limit: int | None


@click.command("log")
@click.option("--run", "run_id", type=click.IntRange(min=1), metavar="N", help="A run. [default: the newest]")
@click.option("--site-run", "site_run_id", type=click.IntRange(min=1), metavar="N", help="One site's part of a run.")
@click.option("--site", metavar="NAME", help="A site; without --run, the newest run that harvested it.")
@click.option("--document", metavar="DOCID", help="A document, with or without its revision; without --run, all runs.")
@click.option(
    "--level", type=click.Choice(_LEVELS), default="info", show_default=True, help="This level, and graver ones."
)
@click.option(
    "--limit",
    type=ROWS,
    metavar="N",
    help=f"The last N rows. [default: {_SHOWN_TO_PEOPLE}, with --json all]",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="The table of a site run's documents, or with --run the whole log of that run.",
)
@click.option("--all", "unchanged", is_flag=True, help="With --csv and a site run: unchanged documents too.")
@click.pass_context
def command(context: click.Context, /, as_json: bool, as_csv: bool, unchanged: bool, **options: Any) -> None:
    """Read the log: what happened, and what was found wrong with which document."""
    from metaharvest.cli.queries import reading

    app: App = context.obj
    wanted = _Wanted(**options)
    _check_options(context, wanted, as_json, as_csv, unchanged)
    with reading(app) as session:
        if as_csv:
            _write_csv(session, wanted, unchanged)
        elif as_json:
            print_json([_as_json(entry) for entry in _entries(session, wanted)])
        else:
            _print(session, wanted)


def _check_options(context: click.Context, wanted: _Wanted, as_json: bool, as_csv: bool, unchanged: bool) -> None:
    if wanted.run_id is not None and wanted.site_run_id is not None:
        raise click.UsageError("--site-run already says which run: leave out --run.")
    if as_json and as_csv:
        raise click.UsageError("Use one of --json and --csv.")
    filtered = wanted.document or wanted.limit or _was_given(context, "level")
    if as_csv and filtered:
        raise click.UsageError("--csv writes a whole table: leave out --document, --level and --limit.")
    if unchanged and not (as_csv and (wanted.site_run_id or wanted.site)):
        raise click.UsageError("--all goes with --csv and --site-run (or --site): it lists unchanged documents too.")


def _was_given(context: click.Context, parameter: str) -> bool:
    return context.get_parameter_source(parameter) is not click.core.ParameterSource.DEFAULT


# -- which rows


def _conditions(session: Session, wanted: _Wanted) -> list[ColumnElement[bool]] | None:
    """What the rows must meet; None where there has been no run yet."""
    from sqlalchemy import or_, select

    from metaharvest.cli.queries import newest_run
    from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestOperation

    run_id, site_run_id = _scope(session, wanted)
    levels = _LEVELS[: _LEVELS.index(wanted.level) + 1]
    details = select(HarvestDetailLog.harvest_log_id).where(HarvestDetailLog.level.in_(levels))
    conditions: list[ColumnElement[bool]] = [
        or_(HarvestOperation.level.in_(levels), HarvestLog.harvest_log_id.in_(details))
    ]
    if site_run_id is not None:
        conditions.append(HarvestLog.site_run_id == site_run_id)
    elif run_id is not None:
        conditions.append(HarvestLog.run_id == run_id)
    elif wanted.document is None:
        newest = newest_run(session)
        if newest is None:
            return None
        conditions.append(HarvestLog.run_id == newest)
    if wanted.document is not None:
        conditions.append(_is_document(wanted.document))
    return conditions


def _scope(session: Session, wanted: _Wanted) -> tuple[int | None, int | None]:
    """The run and the site run that are meant, as far as the options say. Raises MetaharvestError for unknown ones."""
    from sqlalchemy import select

    from metaharvest.cli.queries import find_run, find_site_run, newest_site_run
    from metaharvest.database.models import HarvestSiteRun
    from metaharvest.errors import MetaharvestError

    if wanted.site_run_id is not None:
        return None, find_site_run(session, wanted.site_run_id).site_run_id
    if wanted.run_id is not None:
        find_run(session, wanted.run_id)
    if wanted.site is None:
        return wanted.run_id, None
    if wanted.run_id is None:
        return None, newest_site_run(session, wanted.site).site_run_id
    rows = session.execute(
        select(HarvestSiteRun.site_name, HarvestSiteRun.site_run_id).where(HarvestSiteRun.run_id == wanted.run_id)
    )
    site_runs = dict(rows.all())
    if wanted.site not in site_runs:
        known = ", ".join(sorted(site_runs)) or "none"
        raise MetaharvestError(
            f"The run {wanted.run_id} did not harvest a site named '{wanted.site}'. It harvested: {known}."
        )
    return None, site_runs[wanted.site]


def _is_document(name: str) -> ColumnElement[bool]:
    from sqlalchemy import and_, or_

    from metaharvest.database.models import HarvestDetailLog, HarvestLog

    head, _, tail = name.rpartition(".")
    about = HarvestLog.document_id == name
    listed = HarvestLog.harvest_log_id.in_(_detailed(HarvestDetailLog.document_id == name))
    if not head or not tail.isdecimal() or not tail.isascii() or int(tail) >= 2**63:
        return or_(about, listed)
    return or_(about, listed, and_(HarvestLog.document_id == head, HarvestLog.revision == int(tail)))


def _detailed(condition: ColumnElement[bool]) -> Any:
    from sqlalchemy import select

    from metaharvest.database.models import HarvestDetailLog

    return select(HarvestDetailLog.harvest_log_id).where(condition)


# -- the rows


@dataclass(frozen=True, slots=True)
class _Entry:
    """One row of the log, the level of its operation, its site, its findings."""

    row: HarvestLog
    level: str
    site: str | None
    findings: list[HarvestDetailLog]


def _entries(session: Session, wanted: _Wanted) -> Iterator[_Entry]:
    """The rows in the order in which they were written; with a limit, the last ones."""
    from sqlalchemy import select

    from metaharvest.database.models import HarvestLog, HarvestOperation, HarvestSiteRun

    conditions = _conditions(session, wanted)
    if conditions is None:
        return
    statement = (
        select(HarvestLog, HarvestOperation.level, HarvestSiteRun.site_name)
        .outerjoin(HarvestOperation, HarvestOperation.harvest_operation_code == HarvestLog.harvest_operation_code)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == HarvestLog.site_run_id)
        .where(*conditions)
        .order_by(HarvestLog.harvest_log_id.desc())
        .limit(wanted.limit)
    )
    rows = session.execute(statement).all()[::-1]
    findings = _findings(session, [row[0].harvest_log_id for row in rows])
    for row, level, site in rows:
        yield _Entry(row, level or "", site, findings.get(row.harvest_log_id, []))


def _findings(session: Session, log_ids: list[int]) -> dict[int, list[HarvestDetailLog]]:
    from sqlalchemy import select

    from metaharvest.database.models import HarvestDetailLog

    found: dict[int, list[HarvestDetailLog]] = {}
    for start in range(0, len(log_ids), 500):
        statement = (
            select(HarvestDetailLog)
            .where(HarvestDetailLog.harvest_log_id.in_(log_ids[start : start + 500]))
            .order_by(HarvestDetailLog.detail_log_id)
        )
        for detail in session.scalars(statement):
            found.setdefault(detail.harvest_log_id, []).append(detail)
    return found


# -- how they are shown


def _print(session: Session, wanted: _Wanted) -> None:
    limit = wanted.limit or _SHOWN_TO_PEOPLE
    one_more = _Wanted(wanted.run_id, wanted.site_run_id, wanted.site, wanted.document, wanted.level, limit + 1)
    entries = list(_entries(session, one_more))
    if not entries:
        click.echo("The log has nothing of that.")
    if len(entries) > limit:
        click.echo(f"Only the last {limit:,} rows are shown; --limit shows more, --csv writes all of them.", err=True)
    for entry in entries[-limit:]:
        click.echo("\n".join(_lines(entry)))


def _lines(entry: _Entry) -> Iterable[str]:
    from metaharvest.text import one_line

    row = entry.row
    when = f"{row.logged_at:%Y-%m-%d %H:%M:%S}"
    site = f"{one_line(entry.site)}: " if entry.site else ""
    yield f"{when}  {entry.level:<7}  {row.harvest_operation_code:<26}  {site}{one_line(_message(entry), 2000)}"
    for finding in entry.findings:
        yield f"{'':21}{_place(finding)}: {one_line(finding.error_message, 2000)} [{finding.rule}]"
        if finding.excerpt:
            yield f"{'':23}{one_line(finding.excerpt)}"
        if finding.remedy:
            yield f"{'':23}What to do: {one_line(finding.remedy, 2000)}"


def _message(entry: _Entry) -> str:
    """The row's message, without what the findings under it say again."""
    message = entry.row.message
    for finding in entry.findings:
        if len(finding.error_message) < len(message):
            message = message.removesuffix(finding.error_message).rstrip()
    return message


def _place(finding: HarvestDetailLog) -> str:
    return finding.level if finding.line_number is None else f"{finding.level}, line {finding.line_number}"


def _as_json(entry: _Entry) -> dict[str, Any]:
    row = entry.row
    return {
        "harvest_log_id": row.harvest_log_id,
        "logged_at": row.logged_at.isoformat(),
        "harvest_date": row.harvest_date,
        "level": entry.level,
        "status": row.status,
        "operation": row.harvest_operation_code,
        "message": row.message,
        "run_id": row.run_id,
        "site_run_id": row.site_run_id,
        "site": entry.site,
        "document_id": row.document_id,
        "revision": row.revision,
        "document_url": row.document_url,
        "outcome": row.outcome,
        "target_revision": row.target_revision,
        "seconds": row.seconds,
        "size": row.size,
        "findings": [_finding_as_json(finding) for finding in entry.findings],
    }


def _finding_as_json(finding: HarvestDetailLog) -> dict[str, Any]:
    names = ("level", "rule", "error_message", "remedy", "line_number", "column_number", "xpath", "excerpt")
    return {"document_id": finding.document_id, **{name: getattr(finding, name) for name in names}}


def _write_csv(session: Session, wanted: _Wanted, unchanged: bool) -> None:
    from metaharvest.cli.queries import newest_run
    from metaharvest.errors import MetaharvestError
    from metaharvest.reports import documents_csv, log_csv

    run_id, site_run_id = _scope(session, wanted)
    run_id = newest_run(session) if run_id is None else run_id
    if site_run_id is not None:
        chunks = documents_csv(session, site_run_id, unchanged=unchanged)
    elif run_id is not None:
        chunks = log_csv(session, run_id)
    else:
        raise MetaharvestError("There has been no run yet, so there is no log.")
    for chunk in chunks:
        click.echo(chunk.encode("utf-8", "replace"), nl=False)
