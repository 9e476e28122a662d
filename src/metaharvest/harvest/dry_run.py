"""Rehearsals: the same run as tonight's, on a throw-away journal, with a target that keeps nothing.

What is written goes into a temporary folder and leaves with it: no table, document, report or date of the real harvest
changes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sqlalchemy import URL, Engine, insert, or_, select, text
from sqlalchemy.orm import Session

from metaharvest.config.secret_references import NOT_SHOWN, is_reference
from metaharvest.config.settings import Settings
from metaharvest.database.engine import create_tables, open_url, readers
from metaharvest.database.models import HarvestDocument
from metaharvest.model import Action, Holding
from metaharvest.sites.registry import raw_rows
from metaharvest.targets.base import Target, Upload

_COPIED_AT_ONCE = 1000


class RehearsalTarget:
    """Knows what the real target holds (nothing, where there is none), and forgets what it is given."""

    writes_in_journal = True

    def __init__(self, real: Target | None) -> None:
        self._real = real
        self._given: set[str] = set()

    def describe(self) -> str:
        """The real target, with a word that nothing was written there."""
        if self._real is None:
            return "no repository: a rehearsal, which took every document for new"
        return f"{self._real.describe()} (a rehearsal: nothing was written)"

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """What the real target holds."""
        return self._real.holdings(document_ids) if self._real else {}

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """Whether the real target holds these bytes."""
        return self._real is not None and self._real.holds(document_id, revision, sha256)

    def kept(self, site_id: int) -> int:
        """0: the real target does not have this rehearsal's ledger beside it."""
        return 0

    def upload(self, uploads: Sequence[Upload], session: Session | None) -> list[Action]:
        """Say for each whether it would have been an insert or an update."""
        document_ids = [upload.fetched.document.document_id for upload in uploads]
        known = self._given | set(self.holdings(document_ids))
        actions = []
        for document_id in document_ids:
            actions.append(Action.UPDATE if document_id in known else Action.INSERT)
            known.add(document_id)
        self._given.update(document_ids)
        return actions


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a rehearsal plays: settings whose mail stays in a temporary folder, a database, a target."""

    settings: Settings
    engine: Engine
    target: RehearsalTarget


@contextmanager
def stage(settings: Settings, real_target: Target | None, real: Engine | None = None) -> Iterator[Stage]:
    """A stage for one rehearsal; with `real`, the schedule and what waits to be tried again."""
    with tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True) as folder:
        engine = open_url(URL.create("sqlite", database=str(Path(folder) / "rehearsal.db")))
        try:
            create_tables(engine)
            if real is not None:
                _copy(real, engine)
            mail = settings.mail.model_copy(update={"backend": "maildir", "folder": Path(folder) / "mail"})
            reports = settings.reports.model_copy(update={"admin": "mail"})
            # People wait for a rehearsal: they are shown the first failure.
            http = settings.http.model_copy(update={"retries": 0})
            quiet = settings.model_copy(update={"mail": mail, "reports": reports, "http": http})
            yield Stage(quiet, engine, RehearsalTarget(real_target))
        finally:
            engine.dispose()


def _copy(real: Engine, scratch: Engine) -> None:
    """Copy the schedule as it stands, broken rows too, and the ledger's rows of what failed."""
    failed = select(HarvestDocument.__table__).where(
        or_(HarvestDocument.next_attempt.is_not(None), HarvestDocument.failing_since.is_not(None))
    )
    with readers(real)() as session, scratch.begin() as connection:
        for row in raw_rows(session):
            columns = ", ".join(row)
            insertion = text(f"INSERT INTO harvest_site_schedule ({columns}) VALUES (:{', :'.join(row)})")
            plain = {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}
            if not is_reference(plain["ldappwd"]):
                plain["ldappwd"] = NOT_SHOWN
            connection.execute(insertion, plain)
        rows = session.execute(failed.execution_options(yield_per=_COPIED_AT_ONCE)).mappings()
        for chunk in rows.partitions(_COPIED_AT_ONCE):
            connection.execute(insert(HarvestDocument), [dict(row) for row in chunk])
