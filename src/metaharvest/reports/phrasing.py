"""The values, words and numbers that all reports share: totals, durations, subjects, the first sentence of a body.

Pure functions of numbers and statuses; site_view.py and admin_view.py read these from the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from metaharvest.model import ATTENTION_OUTCOMES, ERROR_OUTCOMES, OutcomeKind, SiteRunKind, SiteRunStatus
from metaharvest.model.actions import Todo, parts
from metaharvest.model.values import frozen
from metaharvest.text import counted, joined

if TYPE_CHECKING:
    from metaharvest.database.models import HarvestSiteRun


@frozen
class TableNote:
    """The note about the table of all documents: a sentence, and a few words for use after `and 9 more`."""

    sentence: str = ""
    where: str = ""


NO_TABLE = TableNote()


@frozen
class Total:
    """One number among the totals; `tone` is good, doubtful, bad or plain. `change`: to the last harvest, if known."""

    label: str
    number: int
    tone: str
    change: int = 0

    @property
    def changed(self) -> str:
        """The change as people write it: `+3`, `-2`; empty if there is none."""
        return f"{self.change:+,}" if self.change else ""


@frozen(kw_only=True)
class View:
    """The values that every report has. `story` is its subject in a few words, `tone` is good, doubtful or bad."""

    network: str
    date: str
    story: str
    tone: str
    sentence: str
    totals: tuple[Total, ...]
    recipients: tuple[str, ...]
    table: TableNote = NO_TABLE


ALWAYS_TOLD = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED)
ERRORS = (OutcomeKind.ACCESS_ERROR, OutcomeKind.INVALID, OutcomeKind.UPLOAD_ERROR)

LABELS: dict[OutcomeKind, str] = {
    OutcomeKind.INSERTED: "new",
    OutcomeKind.UPDATED: "updated",
    OutcomeKind.UNCHANGED: "unchanged",
    OutcomeKind.DELETED: "deleted",
    OutcomeKind.FILTERED: "left out",
    OutcomeKind.STALE: "stale",
    OutcomeKind.DUPLICATE: "listed twice",
    OutcomeKind.DEFERRED: "put off",
    OutcomeKind.ACCESS_ERROR: "not fetched",
    OutcomeKind.INVALID: "not valid",
    OutcomeKind.UPLOAD_ERROR: "refused",
}
"""Each outcome as a short label for a total."""

OUTCOME_TITLES: dict[OutcomeKind, str] = {
    OutcomeKind.STALE: "The list is behind the repository",
    OutcomeKind.DUPLICATE: "Listed more than once",
    OutcomeKind.DEFERRED: "Put off to a later run",
    OutcomeKind.ACCESS_ERROR: "Could not be fetched",
    OutcomeKind.INVALID: "Not valid",
    OutcomeKind.UPLOAD_ERROR: "Not accepted by the repository",
}
"""Headings for documents that no finding explains."""

STATUSES: dict[SiteRunStatus, str] = {
    SiteRunStatus.FAILED: "failed",
    SiteRunStatus.LIST_FAILED: "list not read",
    SiteRunStatus.INTERRUPTED: "interrupted",
    SiteRunStatus.INCOMPLETE: "incomplete",
    SiteRunStatus.STOPPED: "stopped",
    SiteRunStatus.WITH_ERRORS: "with errors",
    SiteRunStatus.RUNNING: "running",
    SiteRunStatus.SUCCEEDED: "well",
}
"""Each status of a site run in words, the gravest first."""

GRAVITY = tuple(STATUSES)

Counts = Mapping[OutcomeKind, int]

_numbers = attrgetter(*(kind.column for kind in OutcomeKind))


def docid_of(document_id: str | None, revision: int | None) -> str:
    """Document id and revision as people write them; empty if there is no document id."""
    if not document_id:
        return ""
    return document_id if revision is None else f"{document_id}.{revision}"


def duration(seconds: float) -> str:
    """A length of time, in seconds, as people say it: `0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def rate(per_second: float | None) -> str:
    """A rate of documents, with one digit: `0.4`, `12.0`; a slower one is `under 0.1`."""
    if not per_second:
        return "–"
    return f"{per_second:.1f}" if per_second >= 0.1 else "under 0.1"


def without_commands(text: str) -> str:
    """The text for a site's contacts, who cannot type the administrators' commands: `if it is right (COMMAND), ...`.

    Such a command is left out with the brackets around it; without brackets it becomes the action's label in quotes.
    """
    for part in parts(text):
        if isinstance(part, Todo) and not part.is_for_everybody:
            text = text.replace(f" ({part})", "").replace(str(part), f'"{part.label}"')
    return text


PHASES = {
    "server_seconds": "your server",
    "waiting_seconds": "waiting for a free connection",
    "checking_seconds": "checking",
    "storing_seconds": "storing",
}
"""Columns of a site run -> what took this time."""


def phases(seconds: Mapping[str, float | None], whose: str = "your server", documents: int = 0) -> str:
    """The time of each phase of documents: `your server 83 %, 412 ms a document; ... checking 6 %; storing 2 %`.

    `seconds`: the columns of a site run, which are shown if they add up to anything.
    """
    known = {column: seconds[column] or 0.0 for column in PHASES}
    whole = sum(known.values())
    if not whole:
        return ""
    each = f", {1000 * known['server_seconds'] / documents:,.0f} ms a document" if documents else ""
    names = {**PHASES, "server_seconds": whose}
    parts = [f"{names[column]} {_share(took, whole)}" for column, took in known.items()]
    return "; ".join([parts[0] + each, *parts[1:]])


def _share(part: float, whole: float) -> str:
    share = 100 * part / whole
    return f"{share:.0f} %" if share >= 1 or not part else "under 1 %"


def size(number: int) -> str:
    """A number of bytes as people say it: `14.2 MB`."""
    return f"{number / 1_000_000:.1f} MB" if number >= 100_000 else f"{number / 1000:.1f} kB"


def total(counts: Counts, kinds: Iterable[OutcomeKind]) -> int:
    """The number of documents that ended in one of `kinds`."""
    return sum(counts.get(kind, 0) for kind in kinds)


NOTHING_UPLOADED = "nothing was uploaded"


HARVEST_LIST = "harvest list"
OAI_REPOSITORY = "OAI-PMH repository"
"""The content of a site's source."""


@frozen
class Doubts:
    """Doubts about a site run beside the outcomes of its documents.

    `lost`: documents that the list lost, if these are many. `still_broken`: documents that a retry left. `is_empty`: a
    full list of the source repository was empty. `has_fewer`: it has fewer than before. `target_lost`: the target does
    not have the last documents of the site.
    """

    lost: int = 0
    still_broken: int = 0
    is_empty: bool = False
    has_fewer: bool = False
    target_lost: bool = False

    def __bool__(self) -> bool:
        return self.is_grave or self.target_lost or bool(self.still_broken)

    @property
    def is_grave(self) -> bool:
        """True if records may be lost."""
        return bool(self.lost or self.is_empty or self.has_fewer)

    @property
    def in_words(self) -> list[str]:
        """In words, one text for each."""
        empty = ["the repository lists nothing"] if self.is_empty else []
        empty += ["the repository has fewer records than before"] if self.has_fewer else []
        empty += ["the central repository has lost documents"] if self.target_lost else []
        lost = [*empty, *([f"the list lost {counted(self.lost, 'document')}"] if self.lost else [])]
        return lost + ([f"{self.still_broken:,} still broken"] if self.still_broken else [])


NO_DOUBTS = Doubts()


@frozen
class SiteEnd:
    """The end of a site run, for the words about it.

    `source`: the content of the site's source. `noted`: the number of deletions that were only recorded.
    `went_nowhere`: there is no target. `stores_nothing`: there is no target, or this is a rehearsal. `is_enabled`: the
    next run harvests the site.
    """

    status: SiteRunStatus
    kind: SiteRunKind
    counts: Counts
    listed: int
    source: str
    doubts: Doubts
    noted: int
    went_nowhere: bool
    stores_nothing: bool
    is_enabled: bool = True


def site_story(end: SiteEnd) -> str:
    """The story in a site report's subject after the site's name: `all well, 3 new, 1 updated`."""
    status, counts = end.status, end.counts
    if status is SiteRunStatus.LIST_FAILED:
        return f"{end.source} could not be read"
    opening = {
        SiteRunStatus.FAILED: "the harvest failed",
        SiteRunStatus.INTERRUPTED: "the harvest was interrupted",
        SiteRunStatus.STOPPED: "the harvest was stopped",
        SiteRunStatus.INCOMPLETE: "the harvest is incomplete",
    }.get(status)
    if status is SiteRunStatus.FAILED and not any(counts.values()):
        return str(opening)
    # In a site run that succeeded, the faults of a loose site are no errors.
    is_loose = status is SiteRunStatus.SUCCEEDED
    errors = 0 if is_loose else total(counts, ERROR_OUTCOMES)
    if status is SiteRunStatus.WITH_ERRORS and not errors and not counts.get(OutcomeKind.DEFERRED):
        opening = "the list has errors"
    gravest = ([opening] if opening else []) + ([counted(errors, "error")] if errors else [])
    kinds = (*ERRORS, *ATTENTION_OUTCOMES) if is_loose else ATTENTION_OUTCOMES
    doubtful = end.doubts.in_words + [f"{counts[kind]:,} {LABELS[kind]}" for kind in kinds if counts.get(kind)]
    news, last = _news(counts, end.went_nowhere, end.noted), [NOTHING_UPLOADED] if end.went_nowhere else []
    return ", ".join([*gravest, *news, *doubtful, *last] if gravest else [*(doubtful or ["all well"]), *news, *last])


def _news(counts: Counts, went_nowhere: bool, noted: int) -> list[str]:
    """`3 new`, `1 updated`, or `nothing new`; the last not if another sentence says that nothing was uploaded."""
    kinds = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.DELETED)
    totals = _without_noted(counts, noted)
    news = [f"{totals[kind]:,} {LABELS[kind]}" for kind in kinds if totals.get(kind)]
    news += [f"{counted(noted, 'deletion')} noted"] if noted else []
    return news or ([] if went_nowhere else ["nothing new"])


def _without_noted(counts: Counts, noted: int) -> Counts:
    """The totals without the deletions that were only recorded: the copies stay."""
    return {**counts, OutcomeKind.DELETED: counts.get(OutcomeKind.DELETED, 0) - noted} if noted else counts


def statuses_of_sites(site_runs: Iterable[tuple[int, str]]) -> list[SiteRunStatus]:
    """The gravest status of each site in a run, from the number of its site and the status of each site run.

    A site whose list fails may have a retry in the same run.
    """
    statuses = [(site_id, SiteRunStatus(status)) for site_id, status in site_runs]
    return list(dict(sorted(statuses, key=lambda each: GRAVITY.index(each[1]), reverse=True)).values())


def run_story(
    statuses: Sequence[SiteRunStatus],
    counts: Counts,
    went_nowhere: bool = False,
    doubtful: Sequence[Doubts] = (),
    noted: int = 0,
) -> str:
    """The story in the administrator's subject: `26 sites: 24 well, 1 with errors, 1 failed; 31 new, 12 updated`.

    `doubtful`: the doubts about the site runs. `noted`: as of SiteEnd.
    """
    if not statuses:
        return "no site was due"
    kind = SiteRunStatus
    well, unfinished = (kind.SUCCEEDED, kind.WITH_ERRORS), (kind.INCOMPLETE, kind.STOPPED, kind.INTERRUPTED)
    shown = (*well, *unfinished, kind.RUNNING, kind.FAILED)
    numbers = {status: statuses.count(status) for status in shown}
    numbers[kind.FAILED] += statuses.count(kind.LIST_FAILED)
    parts = ", ".join(f"{number:,} {STATUSES[status]}" for status, number in numbers.items() if number)
    news = [*_news(counts, went_nowhere, noted), *([NOTHING_UPLOADED] if went_nowhere else [])]
    return "; ".join([f"{counted(len(statuses), 'site')}: {parts}", *_losses(doubtful), ", ".join(news)])


def _losses(doubtful: Sequence[Doubts]) -> list[str]:
    """The number of source repositories that list nothing or less than before, and the losses of targets and lists."""
    empty, fewer = sum(each.is_empty for each in doubtful), sum(each.has_fewer for each in doubtful)
    lost = [each.lost for each in doubtful if each.lost]
    losses = [f"{counted(empty, 'repository lists', 'repositories list')} nothing"] if empty else []
    losses += [f"{counted(fewer, 'repository has', 'repositories have')} fewer records than before"] if fewer else []
    at_target = sum(each.target_lost for each in doubtful)
    losses += [f"the central repository has lost documents of {counted(at_target, 'site')}"] if at_target else []
    return losses + ([f"{counted(len(lost), 'list')} lost {counted(sum(lost), 'document')}"] if lost else [])


def site_sentence(end: SiteEnd) -> str:
    """The first sentence or two of a site report."""
    status, listed, source = end.status, end.listed, end.source
    if status is SiteRunStatus.LIST_FAILED:
        return f"Your {source} could not be read, so nothing was harvested. The repository keeps what it has."
    documents = (
        f"{counted(listed, 'document')} that had failed before {'was' if listed == 1 else 'were'} tried again"
        if end.kind is SiteRunKind.RETRY
        else f"Your {source} names {counted(listed, 'document')}"
    )
    unfinished = "The harvest is incomplete: some of the listed documents are not accounted for. "
    if source == OAI_REPOSITORY:
        unfinished = "The harvest is incomplete: not all records of the list came; the next one asks for the rest. "
    goes_on = "; the next run goes on with it" if end.is_enabled else ""
    trouble = {
        SiteRunStatus.FAILED: "The harvest of your site failed. ",
        SiteRunStatus.INTERRUPTED: "The harvest of your site was interrupted. ",
        SiteRunStatus.STOPPED: f"The harvest of your site was stopped{goes_on}. ",
        SiteRunStatus.INCOMPLETE: unfinished,
    }.get(status, "")
    if end.doubts.is_empty and not (listed or trouble):
        return f"Your {source} was asked for all records and lists none. The next harvest asks for all of them again."
    if not listed and source == OAI_REPOSITORY and end.kind is not SiteRunKind.RETRY:
        return trouble or f"Your {source} lists nothing that is new or has changed."
    if not listed:
        return trouble or f"{documents}."
    ends = ends_of(end.counts, end.stores_nothing, source, end.noted)
    return f"{trouble}{documents}: {joined(ends)}." if ends else f"{trouble}{documents}."


def ends_of(counts: Counts, is_rehearsal: bool, source: str = HARVEST_LIST, noted: int = 0) -> list[str]:
    """The number of documents with each outcome: `8 would be added`, `4 are not valid`. See SiteEnd."""
    here = "the central repository" if source == OAI_REPOSITORY else "the repository"
    verbs = {
        OutcomeKind.INSERTED: ("was added", "were added"),
        OutcomeKind.UPDATED: ("was updated", "were updated"),
        OutcomeKind.UNCHANGED: ("is unchanged", "are unchanged"),
        OutcomeKind.DELETED: ("is marked as deleted", "are marked as deleted"),
        OutcomeKind.FILTERED: ("was left out", "were left out"),
        OutcomeKind.STALE: ("is older than the repository's", "are older than the repository's"),
        OutcomeKind.DUPLICATE: ("is listed twice", "are listed twice"),
        OutcomeKind.DEFERRED: ("was put off to a later run", "were put off to a later run"),
        OutcomeKind.ACCESS_ERROR: ("could not be fetched", "could not be fetched"),
        OutcomeKind.INVALID: ("is not valid", "are not valid"),
        OutcomeKind.UPLOAD_ERROR: (f"was refused by {here}", f"were refused by {here}"),
    }
    if is_rehearsal:
        verbs |= {
            OutcomeKind.INSERTED: ("would be added", "would be added"),
            OutcomeKind.UPDATED: ("would be updated", "would be updated"),
            OutcomeKind.UPLOAD_ERROR: (f"would be refused by {here}", f"would be refused by {here}"),
        }
    totals, ends = _without_noted(counts, noted), list[str]()
    for kind, (one, many) in verbs.items():
        if totals.get(kind):
            ends.append(counted(totals[kind], one, many))
        if noted and kind is OutcomeKind.DELETED:
            copies = "the copy stays" if noted == 1 else "the copies stay"
            ends.append(f"{counted(noted, one, many)} ({copies})")
    return ends


def frequency(number: int | None, unit: str | None) -> str:
    """`every day`, `every 2 weeks`; a number or unit that makes no sense is shown as the schedule has it."""
    if number is None or not unit:
        return "not set"
    return f"every {unit.removesuffix('s')}" if number == 1 else f"every {number} {unit}"


def site_tone(status: SiteRunStatus, counts: Counts, doubts: Doubts = NO_DOUBTS) -> str:
    """`good`, `doubtful` or `bad`: the colour of a site report."""
    errors = total(counts, ERROR_OUTCOMES)
    if status not in (SiteRunStatus.SUCCEEDED, SiteRunStatus.WITH_ERRORS):
        return "bad"
    if status is SiteRunStatus.WITH_ERRORS:
        return "bad" if errors else "doubtful"
    return "doubtful" if doubts or errors or total(counts, ATTENTION_OUTCOMES) else "good"


def counts_of(site_run: HarvestSiteRun) -> dict[OutcomeKind, int]:
    """The totals of a site run by outcome."""
    return {kind: number or 0 for kind, number in zip(OutcomeKind, _numbers(site_run), strict=True)}


def is_quiet(site_run: HarvestSiteRun) -> bool:
    """True if every document is unchanged, and nothing is doubtful: then the log need not be read."""
    is_well = site_run.status == SiteRunStatus.SUCCEEDED.value and not site_run.warnings
    return is_well and site_run.listed == (site_run.unchanged or 0)


def totals_of(
    listed: int,
    counts: Counts,
    warned: int,
    before: HarvestSiteRun | None = None,
    noted: int = 0,
) -> tuple[Total, ...]:
    """The totals as shown: listed and the fine outcomes always, the others only if there are any, or were `before`.

    `noted`: as of SiteEnd.
    """
    if not listed:
        return ()
    counts = _without_noted(counts, noted)
    earlier: Counts = counts_of(before) if before else counts
    shown = [Total("listed", listed, "plain", listed - before.listed if before else 0)]
    for kind in OutcomeKind:
        number, was = counts.get(kind, 0), earlier.get(kind, 0)
        if kind in ALWAYS_TOLD or number or was:
            shown.append(Total(LABELS[kind], number, _total_tone(kind, number), number - was))
    if noted:
        shown.append(Total("deletion noted" if noted == 1 else "deletions noted", noted, "plain"))
    if warned:
        label = "warning" if warned == 1 else "warnings"
        shown.append(Total(label, warned, "doubtful", warned - before.warnings if before else 0))
    return tuple(shown)


def _total_tone(kind: OutcomeKind, number: int) -> str:
    if kind in ERROR_OUTCOMES:
        return "bad" if number else "plain"
    if kind in ATTENTION_OUTCOMES:
        return "doubtful" if number else "plain"
    return "good" if number and kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED) else "plain"
