"""The content of a site report, read from the journal: one frozen value, every text in it cleaned for display.

notify_policy.py decides which site runs deserve a report at all; the templates make the layout.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.model import (
    ATTENTION_OUTCOMES,
    ERROR_OUTCOMES,
    Deletions,
    Notify,
    OutcomeKind,
    Site,
    SiteRunKind,
    SiteRunStatus,
)
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.reports import phrasing
from metaharvest.reports.document_lists import NamedDocuments, ended_as, repaired, unchanged
from metaharvest.reports.findings import FindingGroup, already_reported, attention, for_contacts, warnings
from metaharvest.reports.phrasing import View, counts_of, totals_of
from metaharvest.reports.pipeline_notes import PipelineNote, files_note
from metaharvest.reports.problem_history import (
    RememberedProblems,
    doubts,
    fixed,
    has_remembered,
    number_noted,
    previous,
    standing,
)
from metaharvest.reports.start_here import Step, first_steps
from metaharvest.rules import NOTHING_TO_DO
from metaharvest.sites.page_link import page_address
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import counted, joined, one_line, shown_url

_MANY, _LONG = 20, 10.0
"""From this number of documents, or of seconds of their server's time, a report shows the time of each phase."""

_NOTIFY = {
    Notify.ALWAYS: "always: after every harvest",
    Notify.ON_CHANGE: "on-change: when documents went in, or the problems changed",
    Notify.ON_ERROR: "on-error: when something failed",
    Notify.NEVER: "never",
}
"""The occasions on which the contacts of a site get reports, in words."""

_ASK = "reply to this message, and say which one you want"

_Groups = tuple[FindingGroup, ...]
_FETCHED = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, *ERROR_OUTCOMES)


@frozen(kw_only=True)
class SiteView(View):
    """A site report's content. `recipients` are the site's contacts; `registered` is empty if the site is not.

    `attention` has the problems that keep documents out: `news` and `still`, first found in this harvest, and found
    again; `still_unseen` was not checked again. Likewise the warnings. `fixed` was checked, and is well. `copies_stay`:
    the deletions are only recorded. `went_nowhere` says so if the documents go to no target. `start_here`: the first
    steps; `rehearsal`: the command that tries a correction before the next harvest. `page`: the address of the site's
    page, empty if there is none. `files`: the records that lead to no file.
    """

    site: str
    reason: str
    start_here: tuple[Step, ...]
    listed: int
    attention: tuple[FindingGroup, ...]
    news: tuple[FindingGroup, ...]
    still: tuple[FindingGroup, ...]
    still_unseen: tuple[RememberedProblems, ...]
    warnings: tuple[FindingGroup, ...]
    new_warnings: tuple[FindingGroup, ...]
    old_warnings: tuple[FindingGroup, ...]
    standing_warnings: tuple[RememberedProblems, ...]
    fixed: tuple[RememberedProblems, ...]
    has_history: bool
    mended: NamedDocuments
    inserted: NamedDocuments
    updated: NamedDocuments
    deleted: NamedDocuments
    unchanged: NamedDocuments
    next_harvest: str
    time_spent: str
    rehearsal: str
    registered: tuple[tuple[str, str], ...]
    administrators: tuple[str, ...]
    target: str
    site_run: int
    is_rehearsal: bool
    copies_stay: bool
    went_nowhere: str
    page: str
    files: PipelineNote | None


def site_view(
    session: Session,
    site_run: HarvestSiteRun,
    run: HarvestRun,
    registered: Site | BrokenSite | None,
    context: ReportContext,
) -> SiteView:
    """Read the content of the report of this site run. `registered` is the site as it is registered now."""
    harvester, limit, today = context.settings.harvester, context.limit, run.harvest_date
    schedule = registered if isinstance(registered, Site) else None
    status, counts = SiteRunStatus(site_run.status), counts_of(site_run)
    # The totals show if there is anything to read: on most nights most sites have nothing to report.
    doubtful = doubts(session, site_run)
    is_well = status is SiteRunStatus.SUCCEEDED and not doubtful and not phrasing.total(counts, ATTENTION_OUTCOMES)
    found = session, site_run.site_run_id, today, limit
    remembered, nothing = has_remembered(session, site_run), ((), (), ())
    problems, news, still = nothing if is_well else _by_age(partial(attention, *found), remembered)
    warned, new_warned, old_warned = _by_age(partial(warnings, *found), remembered) if site_run.warnings else nothing
    reason = one_line(site_run.failure_reason or "", 1000)
    target = context.named_targets.of(site_run.site_name)
    before = previous(session, site_run)
    source = phrasing.OAI_REPOSITORY if schedule and schedule.options.oai else phrasing.HARVEST_LIST
    noted = number_noted(session, [site_run])
    end = phrasing.SiteEnd(
        status=status,
        kind=SiteRunKind(site_run.kind),
        counts=counts,
        listed=site_run.listed,
        source=source,
        doubts=doubtful,
        noted=noted,
        went_nowhere=not target.keeps,
        stores_nothing=context.is_rehearsal or not target.keeps,
        is_enabled=schedule is None or schedule.enabled,
    )
    # The lists of a source repository differ from night to night: everything, or only the changes.
    shown, rehearsal = for_contacts(problems), "" if context.is_rehearsal else _rehearsal(schedule)
    is_compared = site_run.kind != SiteRunKind.RETRY.value and source == phrasing.HARVEST_LIST
    return SiteView(
        network=one_line(harvester.name),
        site=one_line(site_run.site_name),
        date=today.isoformat(),
        story=phrasing.site_story(end),
        tone=phrasing.site_tone(status, counts, doubtful),
        sentence=phrasing.site_sentence(end),
        reason="" if already_reported(reason, problems) else reason,
        start_here=_start_here(shown, rehearsal, _check_page(context.settings, schedule)),
        listed=site_run.listed,
        totals=totals_of(site_run.listed, counts, site_run.warnings, before if is_compared else None, noted),
        attention=shown,
        news=for_contacts(news),
        still=for_contacts(still),
        still_unseen=standing(session, site_run, limit, grave=True) if remembered else (),
        warnings=for_contacts(warned),
        new_warnings=for_contacts(new_warned),
        old_warnings=for_contacts(old_warned),
        standing_warnings=standing(session, site_run, limit, grave=False) if remembered else (),
        fixed=fixed(session, site_run, limit) if remembered else (),
        has_history=remembered or before is not None,
        mended=repaired(session, site_run, limit),
        inserted=ended_as(session, site_run, OutcomeKind.INSERTED, limit),
        updated=ended_as(session, site_run, OutcomeKind.UPDATED, limit),
        deleted=ended_as(session, site_run, OutcomeKind.DELETED, limit),
        unchanged=unchanged(session, site_run, limit),
        next_harvest=_next_harvest(site_run, run, schedule),
        time_spent=_time_spent(session, site_run, run, counts, context.now),
        rehearsal=rehearsal,
        registered=_registered(site_run, schedule) if registered else (),
        recipients=registered.contacts if registered else (),
        administrators=harvester.administrators,
        target=one_line(target.words),
        site_run=site_run.site_run_id,
        is_rehearsal=context.is_rehearsal,
        copies_stay=0 < noted == counts[OutcomeKind.DELETED],
        went_nowhere=context.named_targets.went_nowhere([site_run.site_name] if site_run.listed else []),
        page=page_address(context.settings, schedule, today) if schedule and not context.is_rehearsal else "",
        files=files_note(session, site_run.site_schedule_id, context.settings.pipeline, context.now),
    )


def _by_age(read: Callable[..., _Groups], remembered: bool) -> tuple[_Groups, _Groups, _Groups]:
    """All findings; the new ones; those that were found before, if these are `remembered`."""
    found = read()
    if not (found and remembered):
        return found, found, ()
    return found, read(news=True), read(news=False)


def _rehearsal(schedule: Site | None) -> str:
    """The command by which contacts try a correction; empty if the site is not registered."""
    if schedule is None:
        return ""
    action = "repositories.rehearse" if schedule.options.oai else "lists.check"
    return todo(action, url=shown_url(schedule.list_url)).command


def _check_page(settings: Settings, schedule: Site | None) -> str:
    """The page of the console that checks a harvest list; empty if there is none for this site."""
    if schedule is None or schedule.options.oai or not settings.web.url:
        return ""
    return f"{settings.web.url.rstrip('/')}/console/check"


def _start_here(groups: _Groups, rehearsal: str, page: str) -> tuple[Step, ...]:
    steps = first_steps(groups)
    if not rehearsal or all(step.todo == NOTHING_TO_DO for step in steps):
        return steps
    ways = f"`{rehearsal}` writes nothing." + (f" Without the program: {page}" if page else "")
    return (*steps, Step("Check your correction before the next harvest.", ways))


def _next_harvest(site_run: HarvestSiteRun, run: HarvestRun, schedule: Site | None) -> str:
    if schedule is None:
        return "none: the site is not registered, or its registration cannot be used"
    if not schedule.enabled:
        return "none: the site is switched off"
    planned = site_run.next_harvest or schedule.next_harvest
    if planned is None or planned <= run.harvest_date:
        return "in the next run"
    return planned.isoformat()


def _time_spent(
    session: Session, site_run: HarvestSiteRun, run: HarvestRun, counts: phrasing.Counts, now: datetime
) -> str:
    """The duration of the harvest, and the time of the site's server, if it was asked for any document."""
    log = HarvestLog
    seconds = ((site_run.ended_at or now) - max(site_run.started_at, run.started_at)).total_seconds()
    interrupted = " after its interruption" if site_run.started_at < run.started_at else ""
    taken = f"The harvest took {phrasing.duration(seconds)}{interrupted}."
    if not phrasing.total(counts, _FETCHED):
        return taken
    here = (log.site_run_id == site_run.site_run_id) & log.seconds.is_not(None) & log.outcome.is_not(None)
    number, mean = session.execute(select(func.count(), func.avg(log.seconds)).where(here)).one()
    if not number:
        return taken
    if number == 1:
        return f"{taken} Your server was asked for 1 document and took {phrasing.duration(mean)}."
    slowest = session.scalars(select(log).where(here).order_by(log.seconds.desc()).limit(1)).one()
    docid = one_line(phrasing.docid_of(slowest.document_id, slowest.revision))
    asked = f"Your server was asked for {counted(number, 'document')} and took {phrasing.duration(mean)} for each"
    longest = f"the slowest, {docid}, took {phrasing.duration(slowest.seconds or 0)}"
    return f"{taken} {asked} on average; {longest}.{_phases(site_run, number, mean)}"


def _phases(site_run: HarvestSiteRun, documents: int, mean: float) -> str:
    """The time of each phase of the documents, if it is large enough to report."""
    if documents < _MANY and documents * mean < _LONG:
        return ""
    phases = phrasing.phases({name: getattr(site_run, name) for name in phrasing.PHASES}, documents=documents)
    return f" Where the time of the documents went: {phases}." if phases else ""


def _registered(site_run: HarvestSiteRun, schedule: Site | None) -> tuple[tuple[str, str], ...]:
    """The site's registration as label and value."""
    if schedule is None:
        return (("Harvest list", shown_url(site_run.list_url or "")),)
    oai = schedule.options.oai
    settings = [
        ("OAI-PMH" if oai else "Harvest list", shown_url(schedule.list_url)),
        ("Harvested", phrasing.frequency(schedule.frequency, schedule.unit)),
        ("Contacts", one_line(", ".join(schedule.contacts), 1000)),
        ("Reports", _NOTIFY[schedule.notify]),
        ("Other reports", f"{joined([each.value for each in Notify if each is not schedule.notify])}: {_ASK}"),
        ("Enabled", "yes" if schedule.enabled else "no"),
    ]
    if oai:
        settings.append(("Format", oai.prefix))
        settings += [("Set", oai.set_spec)] if oai.set_spec else []
        settings += [("From", oai.begin)] if oai.begin else []
        settings += [("Until", oai.until)] if oai.until else []
        if schedule.options.deletions is Deletions.KEEP:
            settings.append(("Deletions", "noted only: the copies stay"))
    if schedule.options.package_id_mismatch:
        settings.append(("package id mismatch", schedule.options.package_id_mismatch.value))
    if schedule.options.allow_networks:
        settings.append(("allow networks", ", ".join(str(network) for network in schedule.options.allow_networks)))
    return tuple((label, one_line(value, 2000)) for label, value in settings)
