"""The one table of the operations of the API, and of the roles that may call them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metaharvest.model.kinds import Role
from metaharvest.web.api import acting, finding, models, reading
from metaharvest.web.api.call import Operation

PUBLIC, _, VIEWER, STEWARD, OPERATOR = Role

_TIME = {"type": ["string", "null"], "format": "date-time"}
_TEXT = {"type": "string"}


def _object(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _with(base: Mapping[str, Any], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an object with more properties."""
    return {"allOf": [base], "type": "object", "properties": properties, "required": list(properties)}


_REQUEST = _with(
    {"$ref": "requests.json#/items"},
    waits_for={"type": "string", "description": "A sentence: what it waits for, or how it ended."},
    url={"type": "string", "description": "The address of the request."},
)
_MAIL = {"$ref": "reports.json#/items"}
_ME = _object(key=_TEXT, role={"enum": ["viewer", "steward", "operator"]}, made_at=_TIME, expires_at=_TIME)
_CONFIRMED = _object(site=_TEXT, deletions={"type": "integer"})

_URL = {"url": {"type": "string", "description": "The address of its page."}}
_FOUND = _with({"$ref": "search.json#/properties/outputs/items"}, **_URL)
_SEARCH = _object(
    total={"$ref": "search.json#/properties/total"},
    outputs={"type": "array", "items": _FOUND},
    facets={"$ref": "search.json#/properties/facets"},
    advice={"$ref": "search.json#/properties/advice"},
)
_SUMMARY = _with({"$ref": "output-summary.json"}, **_URL)
_OUTPUT = _with({"$ref": "output.json"}, **_URL)
_WORK = _object(work={"type": "integer", "minimum": 1}, outputs={"type": "array", "items": _SUMMARY})
_RELATED = _with(
    {"$ref": "output-summary.json"},
    **_URL,
    score={"type": "number"},
    shares={"type": "array", "items": _TEXT, "description": "Words that both have, without accents."},
    reason={"type": "string", "description": "Why it is related, in a sentence."},
)

OPERATIONS = (
    Operation(
        "GET", "/decisions", reading.decisions, VIEWER, "List who changed what", "decisions", models.DecisionsQuery
    ),
    Operation("GET", "/documents", reading.documents, VIEWER, "List documents", "documents", models.DocumentsQuery),
    Operation("GET", "/documents/{document}", reading.document, VIEWER, "Show a document", "documents-show"),
    Operation("GET", "/figures", reading.figures, VIEWER, "Show totals of a period", "figures", models.FiguresQuery),
    Operation(
        "POST", "/harvests", acting.harvest, STEWARD, "Ask for a harvest", _REQUEST,
        body=models.HarvestBody, status=202, refused=409,
    ),
    Operation("GET", "/jobs", reading.jobs, VIEWER, "List jobs of workers", "jobs", models.JobsQuery),
    Operation("GET", "/jobs/{job}", reading.job, VIEWER, "Show a job and its events", "jobs-show"),
    Operation("GET", "/log", reading.log, VIEWER, "Read the log", "log", models.LogQuery),
    Operation("GET", "/me", reading.me, VIEWER, "Show the key of this call", _ME),
    Operation("GET", "/outbox", reading.outbox, VIEWER, "List mails", "reports", models.OutboxQuery),
    Operation("GET", "/outbox/{report}", reading.mail, VIEWER, "Show a mail and its deliveries", _MAIL),
    Operation(
        "POST", "/outbox/{report}/resend", acting.resend, STEWARD, "Send a mail again", _MAIL,
        body=models.ResendBody, status=202,
    ),
    Operation("GET", "/outputs/{document}", finding.output, PUBLIC, "Show an output", _OUTPUT),
    Operation("GET", "/problems", reading.problems, VIEWER, "Count open problems", "problems", models.ProblemsQuery),
    Operation(
        "GET", "/registrations", reading.registrations, STEWARD, "List registrations", "registrations-list",
        models.RegistrationsQuery,
    ),
    Operation(
        "GET", "/registrations/{registration}", reading.registration, STEWARD, "Show a registration",
        "registrations-show",
    ),
    Operation(
        "POST", "/registrations/{registration}/accept", acting.accept, STEWARD, "Accept a registration",
        "registrations-show", body=models.AcceptBody, refused=409,
    ),
    Operation(
        "POST", "/registrations/{registration}/refuse", acting.refuse, STEWARD, "Refuse a registration",
        "registrations-show", body=models.RefuseBody, refused=409,
    ),
    Operation(
        "GET", "/recommend/{document}", finding.recommend, PUBLIC, "List related outputs",
        {"type": "array", "items": _RELATED}, models.RecommendQuery,
    ),
    Operation("GET", "/requests", reading.requests, VIEWER, "List requests", "requests", models.RequestsQuery),
    Operation("GET", "/requests/{request}", reading.request, VIEWER, "Show a request", _REQUEST),
    Operation("DELETE", "/requests/{request}", acting.cancel, STEWARD, "Take a request back", _REQUEST, refused=409),
    Operation("GET", "/runs", reading.runs, VIEWER, "List runs", "runs", models.RunsQuery),
    Operation("GET", "/runs/{run}", reading.run, VIEWER, "Show a run", "runs-show"),
    Operation("GET", "/search", finding.search, PUBLIC, "Find outputs", _SEARCH, models.SearchQuery),
    Operation("GET", "/sites", reading.sites, VIEWER, "List sites", "sites-list", models.SitesQuery),
    Operation("GET", "/sites/{site}", reading.site, VIEWER, "Show a site", "site"),
    Operation(
        "PATCH", "/sites/{site}", acting.edit, STEWARD, "Change a site", "site", body=models.SiteBody, is_edit=True
    ),
    Operation(
        "POST", "/sites/{site}/confirm", acting.confirm, STEWARD, "Confirm deletions", _CONFIRMED, refused=409
    ),
    Operation(
        "POST", "/skips", acting.skip, STEWARD, "Leave a site out of the next run", _REQUEST,
        body=models.SkipBody, status=202, refused=409,
    ),
    Operation(
        "POST", "/stops", acting.stop, STEWARD, "Stop the run, or a site in it", _REQUEST,
        body=models.StopBody, status=202, refused=409,
    ),
    Operation("GET", "/workers", reading.workers, VIEWER, "List workers", "workers"),
    Operation("GET", "/works/{work}", finding.work, PUBLIC, "Show a work with its outputs", _WORK),
)  # fmt: skip
