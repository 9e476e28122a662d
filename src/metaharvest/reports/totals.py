"""The numbers of a site run: its totals by outcome, and how a report shows them."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from metaharvest.database.models import HarvestSiteRun
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, SiteRunStatus
from metaharvest.reports import words

_numbers = attrgetter(*(kind.column for kind in OutcomeKind))


@dataclass(frozen=True, slots=True)
class Total:
    """One number among the totals; `tone` is good, doubtful, bad or plain."""

    label: str
    number: int
    tone: str


def counts_of(site_run: HarvestSiteRun) -> dict[OutcomeKind, int]:
    """The totals of a site run by outcome."""
    return {kind: number or 0 for kind, number in zip(OutcomeKind, _numbers(site_run), strict=True)}


def is_quiet(site_run: HarvestSiteRun) -> bool:
    """Whether the totals say that there is nothing to tell: every document was there already, and nothing is doubtful.

    Then the log has no outcome and no finding of this site run, and does not have to be read.
    """
    return (
        site_run.status == SiteRunStatus.SUCCEEDED.value
        and not site_run.warnings
        and site_run.listed == (site_run.unchanged or 0)
    )


def totals_of(listed: int, counts: words.Counts, warned: int) -> tuple[Total, ...]:
    """The totals as shown: listed and the fine outcomes always, the others only if there are any."""
    if not listed:
        return ()
    shown = [Total("listed", listed, "plain")]
    for kind in OutcomeKind:
        number = counts.get(kind, 0)
        if kind in words.FINE or number:
            shown.append(Total(words.LABELS[kind], number, _tone(kind, number)))
    if warned:
        shown.append(Total("warning" if warned == 1 else "warnings", warned, "doubtful"))
    return tuple(shown)


def _tone(kind: OutcomeKind, number: int) -> str:
    if kind in ERROR_OUTCOMES:
        return "bad"
    if kind in words.ATTENTION:
        return "doubtful"
    return "good" if number and kind is not OutcomeKind.UNCHANGED else "plain"
