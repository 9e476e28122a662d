"""The newest run at a glance: how it went, what waits for a person, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from enum import StrEnum
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from metaharvest.database.console_models import SiteRegistration
from metaharvest.database.models import HarvestSiteRun, SiteProblem
from metaharvest.database.statements import without_index
from metaharvest.ledger.deletions import deletions_unconfirmed
from metaharvest.model import RunStatus
from metaharvest.model.actions import Todo, todo
from metaharvest.model.values import frozen
from metaharvest.problems.attention import OTHER_SITE, claimed_documents
from metaharvest.problems.follow import FIXED, OPEN
from metaharvest.queries.outbox import number_refused
from metaharvest.queries.problems import IS_OF_REGISTERED_SITE
from metaharvest.queries.runs import RunSummary, run_summaries
from metaharvest.queries.sites import ListedSite, last_names, listed_sites
from metaharvest.queries.trends import FailedSite
from metaharvest.sites.registrations.policy import State as RegistrationState
from metaharvest.text import counted

_UTC = ZoneInfo("UTC")
_IS_FIXED = without_index(SiteProblem.state) == FIXED


class State(StrEnum):
    """The state of the night in one word."""

    NONE = "none"
    """There has been no run yet."""
    RUNNING = "running"
    WELL = "well"
    ATTENTION = "attention"
    """Something failed, or waits for a person."""


class Reason(StrEnum):
    """The reason why something waits for a person."""

    DELETIONS = "deletions"
    OWNERSHIP = "ownership"
    OVERDUE = "overdue"
    BROKEN = "broken"
    REFUSED_MAIL = "refused-mail"


@frozen
class Waiting:
    """Something that waits for a person; `site` is None if it is about no single site. `action` carries it out."""

    reason: Reason
    sentence: str
    number: int
    site: str | None
    action: Todo


@frozen
class ProblemNumbers:
    """The numbers of problems after a run: found for the first time in it, found before and still there, fixed in it.

    Only problems that need attention count.
    """

    new: int
    still_open: int
    fixed: int


@frozen
class Tonight:
    """The newest run. `waiting` needs a person; `failed` are the sites that failed as a whole, the longest first.

    `next_harvest` is the earliest day on which a site is due, `number_next` the number of sites that are due on it.
    """

    state: State
    sentence: str
    run: RunSummary | None
    waiting: tuple[Waiting, ...]
    failed: tuple[FailedSite, ...]
    problems: ProblemNumbers
    next_harvest: date | None
    number_next: int


def tonight(session: Session, today: date, number_of_others: int = 0, zone: ZoneInfo = _UTC) -> Tonight:
    """The newest run, and what it left behind. `number_of_others`: matters of other pages that the reader decides.

    Its sentence has moments in `zone`.
    """
    runs = run_summaries(session, 1)
    run = runs[0] if runs else None
    sites = listed_sites(session, today)
    waiting = tuple(_waiting(session, sites))
    failed = sorted((site.failed for site in sites if site.failed and site.enabled), key=lambda each: each.failed_since)
    state = _state(run, waiting, failed)
    days = [site.next_harvest for site in sites if site.enabled and site.next_harvest]
    return Tonight(
        state,
        sentence(state, run, len(waiting) + number_of_others, _number_before(session, run, failed), zone),
        run,
        waiting,
        tuple(failed),
        problem_numbers(session, run.run_id) if run else ProblemNumbers(0, 0, 0),
        min(days, default=None),
        days.count(min(days)) if days else 0,
    )


def _state(run: RunSummary | None, waiting: Sequence[Waiting], failed: Sequence[FailedSite]) -> State:
    if run is None:
        return State.NONE
    if run.status == RunStatus.RUNNING:
        return State.RUNNING
    is_well = run.status == RunStatus.SUCCEEDED and not waiting and not failed
    return State.WELL if is_well else State.ATTENTION


def _number_before(session: Session, run: RunSummary | None, failed: Sequence[FailedSite]) -> int:
    """The number of these sites that failed in a run before this one, and were in none since."""
    site_runs = [site.site_run_id for site in failed]
    its = HarvestSiteRun.site_run_id.in_(site_runs), HarvestSiteRun.run_id == (run.run_id if run else None)
    return len(failed) - (session.scalar(select(func.count()).where(*its)) or 0)


def sentence(state: State, run: RunSummary | None, number_waiting: int, number_before: int, zone: ZoneInfo) -> str:
    """The state of the night in one sentence; `number_before` is the number of sites that failed in earlier runs."""
    if run is None:
        return "There has been no run yet."
    if state is State.RUNNING:
        return f"Run {run.run_id} is under way since {run.started_at.astimezone(zone):%Y-%m-%d %H:%M} {zone.key}."
    totals, sites = run.totals, counted(run.totals.sites, "site")
    if state is State.WELL:
        well = f"All is well: run {run.run_id} harvested {sites} on {run.harvest_date}."
        return f"{well} {_waits(number_waiting)}." if number_waiting else well
    parts = []
    if totals.failed:
        parts.append(f"{totals.failed:,} failed as a whole")
    if totals.errors:
        parts.append(f"{counted(totals.errors, 'document was', 'documents were')} not accepted")
    if parts:
        parts[0] = f"of {sites}, {parts[0]}"
    elif run.status != RunStatus.SUCCEEDED:
        parts.append(f"it ended as {run.status}")
    if number_before:
        parts.append(f"{counted(number_before, 'other site')} failed before")
    if number_waiting:
        parts.append(_waits(number_waiting))
    return f"Run {run.run_id} of {run.harvest_date} needs attention: {', '.join(parts)}."


def _waits(number: int) -> str:
    return f"{counted(number, 'matter')} {'waits' if number == 1 else 'wait'} for a decision"


def _waiting(session: Session, sites: Sequence[ListedSite]) -> Iterator[Waiting]:
    names = {site.site_id: site.site for site in sites}
    for site_name, number in deletions_unconfirmed(session).items():
        said = f"{site_name} would lose {counted(number, 'document')}: confirm the deletions, or ask the site."
        yield Waiting(Reason.DELETIONS, said, number, site_name, todo("sites.confirm", name=site_name))
    for site_id, (number, _) in claimed_documents(session).items():
        if name := names.get(site_id):
            belong = "belongs" if number == 1 else "belong"
            said = f"{name} lists {counted(number, 'document')} that {belong} to another site."
            action = todo("documents.of_rule", name=name, rule=OTHER_SITE)
            yield Waiting(Reason.OWNERSHIP, said, number, name, action)
    for site in sites:
        if site.state == "broken" and site.enabled:
            said = f"The registration of {site.site} cannot be used: {'; '.join(site.problems)}"
            yield Waiting(Reason.BROKEN, said, len(site.problems), site.site, todo("sites.edit", name=site.site))
        elif site.state == "overdue" and not site.failed:
            said = f"{site.site} is overdue since {site.overdue_since}."
            yield Waiting(Reason.OVERDUE, said, 1, site.site, todo("sites.show", name=site.site))
    if number := number_refused(session):
        verb = "was" if number == 1 else "were"
        said = f"{counted(number, 'mail')} {verb} refused: correct the addresses, then send them again."
        yield Waiting(Reason.REFUSED_MAIL, said, number, None, todo("reports.resend_refused"))


def problem_numbers(session: Session, run_id: int) -> ProblemNumbers:
    """The numbers of problems that the run found for the first time, found again, and found to be fixed."""
    is_open, is_new, is_fixed = _conditions_of(run_id)
    of_open = select(func.count(), func.count(case((is_new, 1)))).select_from(SiteProblem).where(is_open)
    number, new = session.execute(of_open).one()
    fixed = session.scalar(select(func.count()).select_from(SiteProblem).where(is_fixed)) or 0
    return ProblemNumbers(new, number - new, fixed)


def _conditions_of(run_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool], ColumnElement[bool]]:
    """The conditions of the problems that need attention and are open; of the new ones; of those that are fixed."""
    problem = SiteProblem
    site_runs = select(HarvestSiteRun.site_run_id).where(HarvestSiteRun.run_id == run_id)
    is_open = problem.needs_attention.is_(True) & (problem.state == OPEN) & IS_OF_REGISTERED_SITE
    is_fixed = problem.needs_attention.is_(True) & _IS_FIXED & problem.ended_site_run.in_(site_runs)
    return is_open, problem.first_site_run.in_(site_runs), is_fixed


def registrations_waiting(session: Session) -> dict[str, int]:
    """The numbers of requests that a steward has to accept or refuse, by kind: site, move, leave."""
    kind, its = SiteRegistration.kind, SiteRegistration.state == RegistrationState.WAITING_FOR_DECISION.value
    return {row[0]: row[1] for row in session.execute(select(kind, func.count()).where(its).group_by(kind))}


@frozen
class ProblemGroup:
    """The number of problems of a rule at a site, and the day since which the oldest of them is known."""

    site: str
    rule: str
    number: int
    since: date


@frozen
class ProblemGroups:
    """The problems of ProblemNumbers by site and rule, the largest groups first."""

    new: tuple[ProblemGroup, ...]
    still_open: tuple[ProblemGroup, ...]
    fixed: tuple[ProblemGroup, ...]


def problem_groups(session: Session, run_id: int, limit: int) -> ProblemGroups:
    """The groups of problems that the run found for the first time, found again, and found to be fixed."""
    group, number, names = (SiteProblem.site_schedule_id, SiteProblem.rule), func.count(), last_names(session)
    query = select(*group, number, func.min(SiteProblem.first_seen)).group_by(*group)
    largest = query.order_by(number.desc(), *group).limit(limit)

    def groups(its: ColumnElement[bool]) -> tuple[ProblemGroup, ...]:
        rows = session.execute(largest.where(its))
        return tuple(ProblemGroup(names.get(row[0]) or f"site {row[0]}", row[1], row[2], row[3]) for row in rows)

    is_open, is_new, is_fixed = _conditions_of(run_id)
    return ProblemGroups(groups(is_open & is_new), groups(is_open & ~is_new), groups(is_fixed))
