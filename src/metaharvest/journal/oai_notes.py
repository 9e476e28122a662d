"""The log rows about a source repository's list, beside its documents. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from metaharvest.journal.list_notes import is_much
from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger.records import MarkedMissing
from metaharvest.model import MAX_FINDINGS, Finding, Level, Site
from metaharvest.model.actions import Remedy, todo
from metaharvest.problems.attention import EMPTY, FEWER, LOST, MANY_DELETIONS, MISSING, REPOSITORY_CHANGED, SHRANK
from metaharvest.text import counted, joined, one_line, shown_url

BROKEN_OFF = "oai.broken-off"
"""The rule of findings about an incomplete list: the number of its records, and the reason."""


LIST_SIZE = "oai.list-size"
"""The rule of findings about missing records: their number."""


def begun(site: Site, findings: Sequence[Finding]) -> list[LogRow]:
    """The rows about a source repository that has described itself, and the doubts about that."""
    rows = [LogRow("IdentifySuccess", f"The repository {shown_url(site.list_url)} answers.")]
    changed = tuple(finding for finding in findings if finding.rule == REPOSITORY_CHANGED)
    if changed:
        message = "The repository is not as it was at the last harvest."
        rows.append(LogRow("RepositoryChanged", message, changed))
    others = tuple(finding for finding in findings if finding.rule != REPOSITORY_CHANGED)
    return rows + doubtful(others)


def not_logged(findings: Sequence[Finding], logged: Collection[tuple[str, str]]) -> list[Finding]:
    """The findings about a source repository that the log of an interrupted site run does not have.

    `logged` are rules and messages. The message of a doubt may name the time: its rule counts. Each change is new.
    """
    rules = {rule for rule, _ in logged if rule != REPOSITORY_CHANGED}
    return [each for each in findings if each.rule not in rules and (each.rule, each.message) not in logged]


def doubtful(findings: Sequence[Finding]) -> list[LogRow]:
    """The row about doubts about a list; none if there are none."""
    if not findings:
        return []
    return [LogRow("ListRecordsWarning", findings[0].message, tuple(findings))]


def ended(listed: int, pages: int | None) -> LogRow:
    """The row about a list that came to its end; `pages` is None if several harvests read it."""
    parts = "" if pages is None else f", in {counted(pages, 'part')}"
    return LogRow("ListRecordsSuccess", f"The repository listed {counted(listed, 'record')} to the end{parts}.")


def judged_again() -> LogRow:
    """The row about a full list after a change of the site's files."""
    message = "The site's filters or its normalising have changed: all records are listed, and judged again."
    return LogRow("ListRecordsSuccess", message)


def lost(document_ids: Sequence[str]) -> LogRow:
    """The row about documents that the target no longer has."""
    others = len(document_ids) - 1
    more = f", nor {others:,} of the other documents that came last" if others else ""
    message = (
        f"The target does not have {document_ids[0]}{more}, although earlier harvests succeeded. The target was "
        "restored from an older copy, or is another one than before."
    )
    remedy = "No action is needed: the next harvest asks the repository for all records, and brings in what is missing."
    return doubtful((Finding(LOST, message, remedy, Level.WARNING),))[0]


def broken_off(findings: Sequence[Finding], listed: int, announced: int | None) -> LogRow:
    """The row about an incomplete list: after how many of its records it broke off."""
    if findings[0].rule == BROKEN_OFF:  # its source has said so already
        return LogRow("ListRecordsError", findings[0].message, tuple(findings))
    came = counted(listed, "record") if announced is None else f"{listed:,} of {counted(announced, 'record')}"
    message = f"The list broke off after {came}: {findings[0].message}"
    return LogRow("ListRecordsError", message, (replace(findings[0], message=message), *findings[1:]))


def missing(document_ids: Sequence[str], marked: MarkedMissing) -> LogRow:
    """The row about records that a complete list did not name; the first of them by name."""
    number = len(document_ids)
    were = counted(number, "record that was", "records that were")
    message = f"The complete list does not name {were} there before; {marked.copies:,} are known. Nothing was deleted."
    named = [_missing(each) for each in document_ids[:MAX_FINDINGS]]
    if is_much(marked.number, marked.named):
        return LogRow("DocMissing", message, (Finding(SHRANK, message, _FOUND_OUT, Level.WARNING), *named))
    total = [] if number <= len(named) else [Finding(MISSING, message, _FOUND_OUT, Level.WARNING)]
    return LogRow("DocMissing", message, (*total, *named))


def left_out(number: int, announced: int | None, name: str, *, asks_again: bool) -> LogRow:
    """The row about a list that changed while it was read, and may have left out this number of records.

    `announced`: the announced number, if it is known. `asks_again`: the next harvest requests the list once more.
    """
    others = counted(number, "record was", "records were")
    if announced:
        message = (
            f"The list announced {counted(announced, 'record')} (completeListSize), and {announced - number:,} "
            f"different ones came. If it changed while it was read, {others} left out."
        )
    else:
        message = (
            "Some records came on more than one page: the list changed while it was read, or has no fixed order. If "
            f"records moved between its pages, {others} left out."
        )
    remedy = "No action is needed: the next harvest asks for the same list once more."
    if not asks_again:
        remedy = Remedy(
            "It was asked for twice. The administrator asks for all records ({}), at a time when few of them change.",
            todo("runs.full", name=name),
        )
    return LogRow("ListRecordsWarning", message, (Finding(LIST_SIZE, message, remedy, Level.WARNING),))


def empty(site: Site, known: int) -> list[LogRow]:
    """The row about an empty full list. `known`: the number of records that were there before."""
    asked = f"The repository was asked for {_all_records(site)}, and listed none"
    if not known:
        message = f"{asked}. The next harvest asks for all of them again."
        remedy = "If there should be some, check the format, the set and the dates of the site."
        return doubtful((Finding(EMPTY, message, remedy, Level.WARNING),))
    records = counted(known, "record was", "records were")
    message = f"{asked}; {records} there before. Nothing was deleted."
    remedy = "The repository's keeper should look where they are: lost, moved out of the set, or hidden from programs."
    return [LogRow("DocMissing", message, (Finding(SHRANK, message, remedy, Level.WARNING),))]


def fewer(announced: int, known: int, before: int, name: str) -> list[LogRow]:
    """The row about a source repository with fewer records than are known, or than `before`; none if it has more.

    A list of changes names no lost record. The announced number is an estimate: one of a hundred may be missing.
    """
    if announced >= known - known // 100 and announced >= before - before // 100:
        return []
    has = f"The repository says that it has {counted(announced, 'record')} (completeListSize)"
    had = f"{known:,} are known" if known > announced else f"it had {before:,} at the last full list"
    message = f"{has}; {had}. A list of changes does not name lost records. Nothing was deleted."
    remedy = Remedy(
        "The repository's keeper should look for them. If they were deleted, the repository should say so. A full list "
        "shows which ones are gone: the administrator asks for it ({}).",
        todo("runs.full", name=name),
    )
    return doubtful((Finding(FEWER, message, remedy, Level.WARNING),))


def _all_records(site: Site) -> str:
    oai = site.options.oai
    since = f" from {oai.begin} on" if oai and oai.begin else ""
    if oai is None or oai.set_spec is None:
        return f"all its records{since}"
    return f"all records of the set {one_line(oai.set_spec, 100)}{since}"


def _missing(document_id: str) -> Finding:
    message = f"{document_id} is not in the repository's list any more, and was not said to be deleted; the copy stays."
    return Finding(MISSING, message, _FOUND_OUT, Level.WARNING, docid=document_id)


_FOUND_OUT = (
    'If the record was deleted, the repository should say so (a header with status="deleted"). If it was lost, or '
    "moved out of the set, its keeper should look into it."
)


def deletions_wait(number: int, names: Sequence[str]) -> Finding:
    """The reason why deletions wait: these sites of the same source repository have incomplete lists."""
    documents = counted(number, "document of this site is", "documents of this site are")
    quoted = joined([f"'{name}'" for name in names])
    lists = "The list of the site" if len(names) == 1 else "The lists of the sites"
    return Finding(
        "records.deletions-wait",
        f"The repository says that {documents} deleted. {lists} {quoted} did not come to "
        f"{'its' if len(names) == 1 else 'their'} end and may name them by now. Nothing was deleted.",
        Remedy(
            "No action is needed if the next harvest reads all lists. If not, the repository's keeper should find out "
            "why. The administrator switches off a site that is not needed ({}).",
            todo("sites.disable"),
        ),
        Level.WARNING,
    )


def many_deletions(number: int, held: int, name: str) -> Finding:
    """The finding about deletions that are too many for one harvest."""
    are = "is" if number == 1 else "are"
    return Finding(
        MANY_DELETIONS,
        f"The repository says that {number:,} of the {held:,} documents of this site {are} deleted. As this is more "
        "than the site may lose in one harvest, none was deleted.",
        Remedy(
            "The keeper of the repository should say whether that is right. If it is, the administrator of the "
            "harvester confirms the deletions ({}), and the next harvest makes them. If not, no action is needed "
            "until the repository lists the records again.",
            todo("sites.confirm", name=name),
        ),
    )
