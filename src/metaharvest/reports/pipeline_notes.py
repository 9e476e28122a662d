"""The pipeline in reports: how far it is for administrators, and records without a file for the contacts of a site.

A report is made before the pipeline of the same night runs. Therefore each note has the time of its numbers. The
page Pipeline of the console has the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from metaharvest.config.settings import PipelineSettings
from metaharvest.model.kinds import StageName, StepState
from metaharvest.model.values import frozen
from metaharvest.rules import RULES, title_of
from metaharvest.text import counted, one_line

_EXAMPLES = 5


class StageLine(NamedTuple):
    """The documents at a stage, in words."""

    stage: str
    counts: str


@frozen
class Reason:
    """Why documents failed: the rule, its title, their number, what to do, and titles of some of them."""

    rule: str
    title: str
    documents: int
    remedy: str
    stage: str = ""
    examples: tuple[str, ...] = ()


@frozen
class PipelineNote:
    """A section of a report about the pipeline: a sentence, the stages, the reasons of failures."""

    sentence: str
    stages: tuple[StageLine, ...] = ()
    reasons: tuple[Reason, ...] = ()
    more_reasons: int = 0


def progress_note(session: Session, settings: PipelineSettings, now: datetime, limit: int) -> PipelineNote | None:
    """How far the pipeline is; None if it is not enabled. If nothing failed and nothing waits, it is one sentence."""
    if not settings.enabled:
        return None
    from metaharvest.catalogue.stage_documents import failure_counts, stage_counts

    counts, names = stage_counts(session), settings.stage_names()
    waiting = sum(counts.get((name, StepState.WAITING), 0) for name in names)
    failed = sum(counts.get((name, StepState.FAILED), 0) for name in names)
    if not waiting and not failed:
        return PipelineNote(f"All is well: nothing waits, and nothing failed ({_as_of(now)}).")
    found = failure_counts(session, names)
    return PipelineNote(
        f"The state of the pipeline before its run of this night ({_as_of(now)}):",
        tuple(StageLine(name, _counts(counts, name)) for name in names),
        tuple(_reason(each.rule, each.number_of_documents, stage=each.stage) for each in found[:limit]),
        max(0, len(found) - limit),
    )


def files_note(session: Session, site_id: int, settings: PipelineSettings, now: datetime) -> PipelineNote | None:
    """The records of a site that lead to no file; None if there are none, or nobody looks for files."""
    if not settings.enabled or not settings.full_text:
        return None
    from metaharvest.catalogue.stage_documents import failed_titles, site_counts

    done, by_rule = site_counts(session, site_id, StageName.FULL_TEXT)
    failed = sum(by_rule.values())
    if not failed:
        return None
    each_of = max(1, _EXAMPLES // len(by_rule))
    reasons = []
    for number, (rule, documents) in enumerate(by_rule.items()):
        examples = failed_titles(session, site_id, StageName.FULL_TEXT, rule, each_of) if number < _EXAMPLES else ()
        shown = tuple(one_line(each, 200) for each in examples)
        for_contact = RULES[rule].for_contact if rule in RULES else ""
        reasons.append(_reason(rule, documents, for_contact, examples=shown))
    records = counted(done + failed, "record")
    leads = "leads" if failed == 1 else "lead"
    return PipelineNote(f"{failed:,} of {records} {leads} to no file ({_as_of(now)}).", reasons=tuple(reasons))


def _counts(counts: Mapping[tuple[str, StepState], int], stage: str) -> str:
    shown = (StepState.DONE, StepState.WAITING, StepState.FAILED)
    return ", ".join(f"{counts.get((stage, state), 0):,} {state.value}" for state in shown)


def _reason(rule: str, documents: int, remedy: str = "", stage: str = "", examples: tuple[str, ...] = ()) -> Reason:
    """The reason, with the remedy of its rule if there is no other `remedy`."""
    remedy = remedy or (RULES[rule].remedy if rule in RULES else "")
    return Reason(rule, one_line(title_of(rule)), documents, remedy, stage, examples)


def _as_of(now: datetime) -> str:
    return f"as of {now:%Y-%m-%d %H:%M} UTC"
