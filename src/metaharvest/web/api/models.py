"""The arguments and bodies of the API's operations. pydantic checks them, and writes their schemas."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from metaharvest.model import Deletions, Notify, OutcomeKind, Unit
from metaharvest.model.jobs import JobState
from metaharvest.model.requests import HarvestScope, RequestState
from metaharvest.services.search import MOST_OUTPUTS, Sort

MOST_ROWS = 500

_Name = Annotated[str, Field(min_length=1, max_length=255)]
_Text = Annotated[str, Field(min_length=1, max_length=2000)]
_Id = Annotated[int, Field(ge=1, le=2**53)]


def _flag(value: object) -> object:
    """In a query, only these two words are a flag."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _day(value: object) -> object:
    """Only a day as it is written, no number of seconds."""
    if isinstance(value, str) and _WRITTEN_DAY.fullmatch(value):
        return value
    raise ValueError("write the day as 2026-11-20")


_WRITTEN_DAY = re.compile(r"(?:19|2\d)\d\d-\d\d-\d\d", re.ASCII)
_Day = Annotated[date, BeforeValidator(_day)]
_Flag = Annotated[bool, BeforeValidator(_flag), Field(strict=True)]


class Nothing(BaseModel):
    """No argument, or an empty body."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Paged(Nothing):
    """The arguments of each list: `cursor` is the `next_cursor` of the page before."""

    limit: int = Field(100, ge=1, le=MOST_ROWS, description="The most rows of a page.")
    cursor: str | None = Field(None, min_length=1, max_length=2000, description="`next_cursor` of the page before.")


class RunsQuery(Paged):
    """The runs; a run may have a thousand sites, whose totals are counted."""

    limit: int = Field(20, ge=1, le=50, description="The most rows of a page.")


class SitesQuery(Paged):
    """The selection of sites."""

    state: Literal["off", "due", "waiting", "overdue", "broken"] | None = None
    kind: Literal["harvest-list", "oai-pmh"] | None = None
    group: _Name | None = None
    text: str | None = Field(None, max_length=255, description="A part of the name, of the URL or of a contact.")
    failing: _Flag = False
    overdue: _Flag = False


class DocumentsQuery(Paged):
    """The selection of documents."""

    site: _Name | None = None
    failing: _Flag = False
    missing: _Flag = False
    rule: _Name | None = None
    outcome: OutcomeKind | None = None
    nights: int | None = Field(None, ge=1, le=100_000, description="Failing for at least this number of nights.")


class LogQuery(Paged):
    """The selection of rows of the log; without a run, a document, a rule or a day: of the newest run."""

    run: _Id | None = None
    site: _Name | None = None
    document: _Text | None = None
    rule: _Name | None = None
    level: Literal["error", "warning", "info", "debug"] = "info"
    since: _Day | None = None
    until: _Day | None = None


class ProblemsQuery(Nothing):
    """The selection of problems."""

    site: _Name | None = None


class FiguresQuery(Nothing):
    """The period, and the rows of it."""

    since: _Day | None = Field(None, description="The first day; without it 1 January.")
    until: _Day | None = Field(None, description="The last day; without it today.")
    per: Literal["week", "month", "site"] | None = Field(None, description="A row for each of these.")


class OutboxQuery(Paged):
    """The selection of mails."""

    state: Literal["undelivered", "queued", "refused", "sent"] | None = None
    kind: Literal["site", "admin", "digest"] | None = None
    site: _Name | None = None
    recipient: _Text | None = None
    document: _Text | None = None


class RequestsQuery(Paged):
    """The selection of requests."""

    state: RequestState | None = None


class JobsQuery(Paged):
    """The selection of jobs."""

    state: JobState | None = None
    open: _Flag = Field(False, description="Jobs that wait, or that a worker has.")
    run: _Id | None = None


class RegistrationsQuery(Paged):
    """The selection of registrations."""

    everything: _Flag = Field(False, description="Also decided and expired ones.")


class DecisionsQuery(Paged):
    """The selection of decisions."""

    site: _Name | None = None
    actor: _Text | None = None
    action: _Text | None = None
    since: _Day | None = None
    until: _Day | None = None


class SearchQuery(Nothing):
    """A search. docs/search.md has the language of `q`."""

    q: str = Field("", max_length=2000, description="The words, phrases and fields. Empty: all outputs.")
    site: _Name | None = None
    year: _Name | None = Field(None, description="A year, or years: `2019`, `2010..2020`, `2010..`.")
    type: _Name | None = Field(None, description="The type of outputs in the words of COAR, such as `dataset`.")
    language: _Name | None = Field(None, description="A code of ISO 639 or a name, such as `en` or `English`.")
    licence: _Name | None = Field(None, description="An identifier of SPDX, such as `CC-BY-4.0`.")
    full_text: Literal["yes", "no"] | None = None
    sort: Sort = Sort.RELEVANCE
    limit: int = Field(20, ge=1, le=MOST_OUTPUTS, description="The most outputs of a page.")
    cursor: str | None = Field(None, min_length=1, max_length=500, description="`next_cursor` of the page before.")


class RecommendQuery(Nothing):
    """The number of related outputs."""

    limit: int = Field(10, ge=1, le=50, description="The most outputs.")


class HarvestBody(Nothing):
    """A harvest that is asked for. The highest priority comes first."""

    site: _Name
    scope: HarvestScope = HarvestScope.DUE
    priority: int = Field(0, ge=0, le=100, strict=True)


class StopBody(Nothing):
    """The site whose harvest stops; without it the whole run stops."""

    site: _Name | None = None


class SkipBody(Nothing):
    """The site that the next run leaves out."""

    site: _Name


class ResendBody(Nothing):
    """The recipients of a mail; none: the present recipients of such mails."""

    to: list[Annotated[str, Field(min_length=3, max_length=320)]] = Field(default=[], max_length=50)


class AcceptBody(Nothing):
    """`without_proofs`: the steward knows the people."""

    without_proofs: Annotated[bool, Field(strict=True)] = False


class RefuseBody(Nothing):
    """The reason is mailed to the person who asked."""

    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


class SiteBody(Nothing):
    """The values of a site that change; the others stay. RFC 7396, without removal: null is refused."""

    site: str = Field("", min_length=1, max_length=100, description="The new name.")
    list_url: str = Field("", min_length=1, max_length=2000, description="Of a list, or of a repository.")
    contacts: list[Annotated[str, Field(min_length=3, max_length=320)]] = Field(default=[], min_length=1, max_length=50)
    every: int = Field(1, ge=1, le=10_000, strict=True)
    unit: Unit = Unit.DAYS
    next_harvest: _Day = date(2000, 1, 1)
    notify: Notify = Notify.ALWAYS
    enabled: Annotated[bool, Field(strict=True)] = True
    public: Annotated[bool, Field(strict=True)] = True
    groups: list[Annotated[str, Field(min_length=1, max_length=60)]] = Field(default=[], max_length=50)
    deletions: Deletions = Deletions.KEEP
    max_loss: int = Field(0, ge=0, le=100, strict=True)
