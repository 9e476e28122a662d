"""The problems after a run: new, still open, or fixed. The console and the administrators' report count them here.

The reason of a failure may change: a document was invalid, and now its server answers with an error. It still fails:
the problem of tonight is not new, and the problem that it replaces is not fixed. The same is true of a site's list.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, case, exists, func, or_, select, tuple_
from sqlalchemy.orm import Session, aliased

from metaharvest.database.hints import without_index
from metaharvest.database.models import HarvestSiteRun, SiteProblem
from metaharvest.model import SiteRunStatus
from metaharvest.problems.follow import FIXED, OPEN

_PROBLEM, _OTHER, _SITE_RUN = SiteProblem, aliased(SiteProblem), HarvestSiteRun
_FAILED = [
    status.value
    for status in (SiteRunStatus.FAILED, SiteRunStatus.LIST_FAILED, SiteRunStatus.INCOMPLETE, SiteRunStatus.INTERRUPTED)
]


@dataclass(frozen=True, slots=True)
class ProblemNumbers:
    """The numbers of problems after a run: new in it, found before and still there, fixed in it.

    Only problems that need attention count.
    """

    new: int
    still_open: int
    fixed: int


@dataclass(frozen=True, slots=True)
class Progress:
    """The conditions of the problems of ProblemNumbers."""

    new: ColumnElement[bool]
    still_open: ColumnElement[bool]
    fixed: ColumnElement[bool]


def progress(run_id: int) -> Progress:
    """The conditions of the problems that are new, still open, or fixed after this run, which is the newest one."""
    site_runs = select(_SITE_RUN.site_run_id).where(_SITE_RUN.run_id == run_id)
    is_open, needs_attention = _PROBLEM.state == OPEN, _PROBLEM.needs_attention.is_(True)
    began = _PROBLEM.first_site_run.in_(site_runs)
    harvested = _OTHER.site_schedule_id.in_(select(_SITE_RUN.site_schedule_id).where(_SITE_RUN.run_id == run_id))
    was_open = or_(_OTHER.state == OPEN, _OTHER.ended_site_run.in_(site_runs))
    not_seen = (harvested, was_open, _OTHER.last_site_run.not_in(site_runs), *_fails(_OTHER))
    replaces = and_(
        # The sites alone come first: MariaDB searches the problems of a site for each document.
        _PROBLEM.site_schedule_id.in_(select(_OTHER.site_schedule_id).where(*not_seen)),
        _is_failure(_PROBLEM),
        tuple_(*_document(_PROBLEM)).in_(select(*_document(_OTHER)).where(*not_seen)),
    )
    # With IN, PostgreSQL would read all problems that have ended.
    its = (_OTHER.site_schedule_id == _PROBLEM.site_schedule_id, _document(_OTHER)[1] == _document(_PROBLEM)[1])
    began_now = (_OTHER.state == OPEN, _OTHER.first_site_run.in_(site_runs), *_fails(_OTHER))
    is_replaced = and_(_is_failure(_PROBLEM), exists().where(*its, *began_now).correlate(_PROBLEM))
    return Progress(
        new=and_(is_open, needs_attention, began, ~replaces),
        still_open=and_(is_open, needs_attention, or_(~began, replaces)),
        fixed=and_(
            _PROBLEM.ended_site_run.in_(site_runs),
            without_index(_PROBLEM.state) == FIXED,
            needs_attention,
            ~is_replaced,
        ),
    )


def problem_numbers(session: Session, run_id: int) -> ProblemNumbers:
    """The numbers of problems that are new, still open, or fixed after this run, which is the newest one."""
    of = progress(run_id)
    is_new = case((of.new, 1), else_=0)
    is_open = _PROBLEM.state == OPEN, _PROBLEM.needs_attention.is_(True)
    new, number = session.execute(select(func.coalesce(func.sum(is_new), 0), func.count()).where(*is_open)).one()
    fixed = session.scalar(select(func.count()).select_from(_PROBLEM).where(of.fixed)) or 0
    return ProblemNumbers(int(new), number - int(new), fixed)


def _document(problem: type[SiteProblem]) -> tuple[ColumnElement[int], ColumnElement[str]]:
    """The document of a problem, or its site."""
    return problem.site_schedule_id.expression, func.coalesce(problem.document_id, "")


def _fails(problem: type[SiteProblem]) -> tuple[ColumnElement[bool], ...]:
    return problem.needs_attention.is_(True), _is_failure(problem)


def _is_failure(problem: type[SiteProblem]) -> ColumnElement[bool]:
    """True if the problem is about a document, or about a site that failed as a whole."""
    its_site_run = _SITE_RUN.site_run_id == problem.last_site_run
    failed = exists().where(its_site_run, _SITE_RUN.status.in_(_FAILED)).correlate(problem)
    return or_(problem.document_id.is_not(None), failed)
