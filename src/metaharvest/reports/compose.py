"""Composes the two reports: view, table, templates, message; and the administrator's log file, if the settings ask."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.config.files import make_folder
from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestRun, HarvestSiteRun
from metaharvest.mail.message import Attachment, Report, build, message_id, safe_file_name
from metaharvest.model import RunStatus, Site
from metaharvest.model.actions import todo
from metaharvest.reports import phrasing
from metaharvest.reports.admin_view import AdminView, admin_view
from metaharvest.reports.digest_view import digest_view
from metaharvest.reports.notify_policy import is_wanted
from metaharvest.reports.phrasing import NO_TABLE, TableNote, View
from metaharvest.reports.render import render
from metaharvest.reports.site_view import site_view
from metaharvest.reports.tables import attachment_of, documents_csv, least_documents_size, least_log_size, log_csv
from metaharvest.sites.registry import read_site
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import one_line


def site_report(session: Session, site_run_id: int, context: ReportContext) -> Report:
    """The report of a site run to the site's contacts."""
    site_run = session.get_one(HarvestSiteRun, site_run_id)
    return _site_report(session, site_run, read_site(session, site_run.site_schedule_id), context)


def site_reports(
    session: Session, site_run_ids: Sequence[int], registered: Mapping[int, Site | BrokenSite], context: ReportContext
) -> dict[int, Report]:
    """The reports of those site runs that deserve one; `registered` are their sites as registered now."""
    query = select(HarvestSiteRun).where(HarvestSiteRun.site_run_id.in_(site_run_ids))
    site_runs = {row.site_run_id: row for row in session.scalars(query.execution_options(populate_existing=True))}
    reports: dict[int, Report] = {}
    for site_run_id in site_run_ids:
        site_run = site_runs[site_run_id]
        site = registered.get(site_run.site_schedule_id)
        keeps = context.named_targets.of(site_run.site_name).keeps
        if is_wanted(session, site_run, site, context.settings.reports.remind_days, keeps=keeps):
            reports[site_run_id] = _site_report(session, site_run, site, context)
    return reports


def _site_report(
    session: Session, site_run: HarvestSiteRun, site: Site | BrokenSite | None, context: ReportContext
) -> Report:
    number, run = site_run.site_run_id, session.get_one(HarvestRun, site_run.run_id)
    view = site_view(session, site_run, run, site, context)
    attachment: Attachment | None = None
    if context.is_rehearsal:
        view = replace(view, table=TableNote("", "in the table that --csv prints"))
    elif not phrasing.is_quiet(site_run):
        name = f"{safe_file_name(view.site)}-{view.date}.csv"
        content = "every document except unchanged ones without a finding"
        chunks = documents_csv(session, number, for_contacts=True)
        left_out = f"The administrators can send it to you: it is the table of site run {number}."
        without = TableNote(left_out, "in the table that the administrators can send to you")
        least = least_documents_size(session, number)
        attachment, note = _table(chunks, name, content, without, context.settings, least)
        view = replace(view, table=note)
    return _report("site", number, (*_seed(run), site_run.started_at), view, attachment, context)


def admin_report(session: Session, run_id: int, context: ReportContext) -> Report:
    """The composite report of a run to the administrators.

    With reports.admin = "log-file" the whole report and its table are written into files, and the mail has only the
    essentials and the place. If a file cannot be written, the mail says so and has the whole report.
    """
    run, settings = session.get_one(HarvestRun, run_id), context.settings
    view = admin_view(session, run, context)
    name = f"run-{run_id:06}-{view.date}"
    attachment: Attachment | None = None
    if settings.reports.admin == "log-file":
        view = _to_log_file(session, view, settings, name)
    if not view.log_file and not context.is_rehearsal:
        content, least = "the whole log of this run", least_log_size(session, run_id)
        command = todo("log.table", run_id=run_id)
        without = TableNote(f"{command} writes it.", f"in the table that {command} writes")
        attachment, note = _table(log_csv(session, run_id), f"{name}.csv", content, without, settings, least)
        view = replace(view, table=note)
    return _report("admin", run_id, _seed(run), view, attachment, context)


def digest(session: Session, run_id: int, context: ReportContext) -> Report | None:
    """The administrators' digest of the weeks until this run's day; None unless this is the first day for it.

    The settings name the day; the digest is made on it, or on the first one after it that has a run. Its key is the day
    in the settings: further runs have no digest of their own.
    """
    run, settings = session.get_one(HarvestRun, run_id), context.settings
    today = run.harvest_date
    week = (today - timedelta(days=number) for number in range(7))
    due = next((day for day in week if f"{day:%A}".lower() == settings.reports.digest), None)
    if due is None or _has_ended(session, due, today):
        return None
    return _report("digest", due.toordinal(), (due, *_seed(run)), digest_view(session, today, settings), None, context)


def _has_ended(session: Session, first: date, before: date) -> bool:
    """True if a run of these days reached its reports."""
    of_days = (HarvestRun.harvest_date >= first, HarvestRun.harvest_date < before)
    ended = HarvestRun.status.in_([RunStatus.SUCCEEDED.value, RunStatus.WITH_ERRORS.value, RunStatus.FAILED.value])
    return session.scalar(select(HarvestRun.run_id).where(*of_days, ended).limit(1)) is not None


def _report(
    kind: str,
    number: int,
    seed: Iterable[object],
    view: View,
    attachment: Attachment | None,
    context: ReportContext,
) -> Report:
    key, settings = f"{kind}:{number}", context.settings
    rendered = render(f"{kind}_report", view, settings)
    identifier = message_id(key, seed, settings)
    return build(kind, key, identifier, view.recipients, rendered, attachment, settings, context.now, view.tone)


def _seed(run: HarvestRun) -> tuple[object, ...]:
    """A text that differs for a run of the same number in another database; for the Message-ID."""
    return (run.run_id, run.started_at.isoformat(), run.host, run.pid)


def _table(
    chunks: Generator[str, None, None],
    file_name: str,
    content: str,
    without: TableNote,
    settings: Settings,
    at_least: int,
) -> tuple[Attachment | None, TableNote]:
    """The table as an attachment, if it has rows and is not too long, and the report's note about it.

    `without`: the note's end if the table is too long. `at_least`: see attachment_of.
    """
    attachment, rows = attachment_of(chunks, file_name, settings.reports, at_least)
    if attachment is None:
        limit = phrasing.size(settings.reports.drop_csv_over)
        sentence = f"The table of {content} is longer than {limit} and was left out. {without.sentence}"
        return None, replace(without, sentence=sentence)
    if not rows:
        return None, NO_TABLE
    packed = "; unpack it first" if attachment.gzipped else ""
    sentence = f"The attached table {attachment.file_name} has {content}, with all findings, for a spreadsheet{packed}."
    return attachment, TableNote(sentence, "in the attached table")


def _to_log_file(session: Session, view: AdminView, settings: Settings, name: str) -> AdminView:
    """Write the whole report and its table into the log folder; return the view with the place, or with the error."""
    folder = settings.path(settings.reports.log_folder)
    note = TableNote(f"The table {name}.csv beside this file has the whole log of this run.", f"in {name}.csv")
    rendered = render("admin_report", replace(view, table=note), settings)
    try:
        make_folder(folder)
        _write(folder / f"{name}.csv", log_csv(session, view.run))
        _write(folder / f"{name}.txt", (rendered.subject, "\n\n", rendered.text))
        _write(folder / f"{name}.html", (rendered.html,))
    except OSError as error:
        reason = one_line(error.strerror or str(error))
        problem = f"The report could not be written into the folder {folder}: {reason}."
        return replace(view, log_file_error=f"{problem} Here is the whole of it instead.")
    return replace(view, log_file=str(folder / f"{name}.txt"))


def _write(path: Path, chunks: Iterable[str]) -> None:
    """Write a file as a whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.writelines(chunks)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
