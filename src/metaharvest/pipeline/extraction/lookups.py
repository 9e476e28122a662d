"""Asks Crossref about references that no document of the catalogue fits. Answers are kept for half a year."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import LookupAnswer
from metaharvest.database.rows import insert_rows
from metaharvest.pipeline.extraction import crossref
from metaharvest.pipeline.extraction.citation import Reference
from metaharvest.pipeline.extraction.matching import Match, by_title
from metaharvest.pipeline.extraction.services import ServiceAway, ServiceClient, ServiceRefused
from metaharvest.pipeline.stage import Context

KEPT = timedelta(days=180)
"""How long an answer is used: new works come to Crossref."""

MOST = 500
"""References of one document that Crossref is asked about."""

_TABLE = Base.metadata.tables[LookupAnswer.__tablename__]


@dataclass(slots=True)
class Lookups:
    """Crossref for the documents of a batch. `away` is why it was given up, after the first failure."""

    context: Context
    client: ServiceClient
    away: str = ""
    new: dict[str, str] = field(default_factory=dict)

    def matches(self, references: Sequence[Reference]) -> list[Match | None]:
        """The work of Crossref that each reference names. After a failure, only answers that are kept are used."""
        settings = self.context.settings.pipeline
        asked = references[:MOST]
        urls = [crossref.request_url(settings.crossref, each.raw, settings.mail) for each in asked]
        keys = [hashlib.sha256(url.encode()).hexdigest() for url in urls]
        kept = self._kept(keys)
        found: list[Match | None] = [None] * len(references)
        for place, (reference, url, key) in enumerate(zip(asked, urls, keys, strict=True)):
            answer = kept.get(key) or self.new.get(key) or self._answer(url, key)
            works = crossref.works_in(answer) if answer else None
            found[place] = by_title(reference, works or (), "crossref")
        return found

    def taken(self) -> Mapping[str, str]:
        """The new answers since the last call, by the digest of the request."""
        new, self.new = self.new, {}
        return new

    def _answer(self, url: str, key: str) -> str | None:
        """The answer of Crossref; None if it gives none that can be used."""
        if self.away:
            return None
        try:
            answer = self.client.get(url)
        except ServiceRefused:
            return None
        except ServiceAway as away:
            self.away = str(away)
            return None
        if crossref.works_in(answer) is None:
            self.away = f"The answer of {self.client.at(url)} is not one of Crossref."
            return None
        self.new[key] = answer
        return answer

    def _kept(self, keys: Sequence[str]) -> Mapping[str, str]:
        since = self.context.now() - KEPT
        found: dict[str, str] = {}
        with self.context.reading() as session:
            for some in batches(list(dict.fromkeys(keys))):
                query = select(_TABLE.c.request_sha256, _TABLE.c.answer)
                rows = session.execute(query.where(_TABLE.c.request_sha256.in_(some), _TABLE.c.answered_at >= since))
                found.update((key, answer) for key, answer in rows)
        return found


def store(session: Session, answers: Mapping[str, str], now: datetime) -> None:
    """Keep answers, in the place of older ones."""
    for some in batches(sorted(answers)):
        session.execute(delete(_TABLE).where(_TABLE.c.request_sha256.in_(some)))
        rows = [{"request_sha256": key, "answer": answers[key], "answered_at": now} for key in some]
        insert_rows(session.connection(), _TABLE, rows)


def delete_old(session: Session, now: datetime) -> None:
    """Delete the answers that are no longer used."""
    session.execute(delete(_TABLE).where(_TABLE.c.answered_at < now - KEPT))
