"""The pipeline: how far each stage has come, the documents that failed, and their next try."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from metaharvest.queries.pipeline import PipelineRecord
from metaharvest.rules import RULES, title_of
from metaharvest.services import pipeline
from metaharvest.services.pipeline import FailureFilter
from metaharvest.text import counted, one_line
from metaharvest.web.console.visit import Visit

_FAILURES = "/console/pipeline/failures"
_ON_A_PAGE = 50
_ABOUT = {
    "cleaning": "gives the record one shape over all formats: names, dates, languages, licences, identifiers",
    "full-text": "looks for the file of the full text: in the record, and on the pages that the record names",
    "extraction": "takes text, language and references from the file",
    "duplicates": "finds outputs that are the same, versions of each other, and related outputs",
    "index": "writes the output, its text and its work into the search index",
}
"""The task of each stage, in words for people who do not program."""


def show(visit: Visit) -> Response:
    """The stages, and the failures by rule."""
    return visit.render("pipeline.html", enabled=visit.harvester.settings.pipeline.enabled, **_values(visit))


def show_live(visit: Visit) -> Response:
    """The numbers alone, for polling."""
    return visit.render_fragment("pipeline_live.html", **_values(visit))


def show_failures(visit: Visit) -> Response:
    """The documents that failed at a stage, by a rule, or of a site."""
    stage, rule, site = (visit.query.get(name, "").strip() or None for name in ("stage", "rule", "site"))
    after = visit.query.get("after") or None
    wanted = FailureFilter(stage, rule, site)
    found = pipeline.failed(visit.harvester, wanted, _ON_A_PAGE, after)
    chosen = {"stage": stage, "rule": rule, "site": site}
    return visit.render(
        "pipeline_failures.html",
        rows=found,
        chosen=chosen,
        about=RULES.get(rule or ""),
        stages=[("", "all"), *((name, name) for name in visit.harvester.settings.pipeline.stage_names())],
        may_retry=_may_retry(visit),
        first=visit.link(_FAILURES, **chosen) if after else "",
        next=visit.link(_FAILURES, **chosen, after=found[-1].document_id) if len(found) >= _ON_A_PAGE else "",
    )


def retry(visit: Visit) -> Response:
    """Let the documents that failed at a stage, by a rule if the form names one, be tried again."""
    stage, rule = visit.form.text("stage"), visit.form.text("rule") or None
    number = pipeline.retry(visit.harvester, stage, rule)
    again = f"{counted(number, 'document waits', 'documents wait')} again: the next run of the pipeline tries them."
    return visit.redirect("/console/pipeline", notice=again if number else "There is no such failure any more.")


def _values(visit: Visit) -> dict[str, Any]:
    record = pipeline.shown(visit.harvester)
    rules = [each.rule for each in record.failures]
    return {
        "record": record,
        "is_empty": _is_empty(record),
        "about": _ABOUT,
        "titles": {rule: one_line(title_of(rule)) for rule in rules},
        "may_retry": _may_retry(visit),
    }


def _is_empty(record: PipelineRecord) -> bool:
    """True if no stage has come to any document."""
    return not any(
        each.waiting_documents or each.done_documents or each.skipped_documents or each.failed_documents
        for each in record.stages
    )


def _may_retry(visit: Visit) -> bool:
    return visit.may_open("/console/pipeline/retry", method="POST")
