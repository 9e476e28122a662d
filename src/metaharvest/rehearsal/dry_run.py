"""Rehearsals: the same run as tonight's, on a temporary journal, with a target that keeps nothing.

Everything that a rehearsal writes goes into a temporary folder and is deleted with it: no table, document, report or
date of the real harvest changes. `metaharvest.services.harvester.Harvester` runs on it, and reads it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from enum import Enum, auto
from pathlib import Path

from sqlalchemy import URL, Engine, insert, select, text
from sqlalchemy.exc import DBAPIError

from metaharvest.config.secret_references import NOT_SHOWN, is_reference
from metaharvest.config.settings import Settings
from metaharvest.database.dialects import reason_of
from metaharvest.database.engine import Sessions, create_tables, database_errors, open_url, readers
from metaharvest.database.models import DocumentWithdrawal
from metaharvest.errors import DatabaseUnavailable
from metaharvest.ledger.rows import copy_rows
from metaharvest.model import Holding, Site
from metaharvest.model.values import frozen
from metaharvest.sites.registry import raw_rows
from metaharvest.targets.base import Holder, Target
from metaharvest.targets.lookup import Targets
from metaharvest.targets.nothing import ForgettingSession, NoTarget
from metaharvest.targets.owners import session_of


class Compared(Enum):
    """How the documents of a rehearsed site are compared with what the target holds."""

    AS_A_SITE = auto()
    AS_NOBODY = auto()
    """The owner of a document does not matter."""
    NOT = auto()


class RehearsalTarget:
    """Knows the holdings of the real target (empty, if there is none), and forgets all that it receives.

    `compared` has the sites, by name, whose documents are compared in another way.
    """

    uploads_at_once = 1

    def __init__(self, real: Target | None, sessions: Sessions, compared: Mapping[str, Compared]) -> None:
        self._real = real or NoTarget()
        self._is_real = real is not None
        self._sessions = sessions
        self._compared = compared
        self.check = self._real.check
        self.held = self._real.held
        self.revisions = self._real.revisions
        self.content = self._real.content

    def describe(self) -> str:
        """The description of the real target, with the remark that nothing was written there."""
        if not self._is_real:
            return "no repository: a rehearsal, which took every document for new"
        return f"{self._real.describe()} (a rehearsal: nothing was written)"

    def compared_with_of(self, site_name: str) -> str:
        """The target with which the documents of this site are compared, in words; empty if there is none."""
        is_compared = self._is_real and self._compared.get(site_name) is not Compared.NOT
        return self._real.describe() if is_compared else ""

    @contextmanager
    def session(self, site: Site | None) -> Iterator[ForgettingSession]:
        """A session that asks the real target, logged in as the site, and forgets all that it receives."""
        how = self._compared.get(site.name, Compared.AS_A_SITE) if site else Compared.AS_A_SITE
        if how is Compared.NOT:
            yield ForgettingSession(None)
        elif how is Compared.AS_NOBODY:
            with self._real.session(None) as real:
                yield ForgettingSession(_Unowned(real))
        else:
            with session_of(self._real, site, self._sessions) as real:
                yield ForgettingSession(real)


class _Unowned:
    """The holdings of a target, whichever site owns them."""

    def __init__(self, real: Holder) -> None:
        self._real = real
        self.holds = real.holds
        self.used_up = real.used_up

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        held = self._real.holdings(document_ids)
        return {name: replace(holding, site_id=None, taken_from=()) for name, holding in held.items()}


@frozen
class Rehearsal:
    """The parts of a rehearsal: settings whose mail stays in a temporary folder, a database, the targets.

    `folder` is the temporary folder. `compared` decides how the targets compare: see RehearsalTarget.
    """

    settings: Settings
    engine: Engine
    targets: Targets
    folder: Path
    compared: dict[str, Compared]


@contextmanager
def rehearsal(
    settings: Settings,
    given: Target | None,
    real: Engine | None,
    against: str | None = None,
    *,
    with_records: bool = False,
    site_ids: Collection[int] | None = None,
) -> Iterator[Rehearsal]:
    """The parts of a rehearsal; with `real`, the schedule of that database and the documents to retry.

    `with_records`: the records of source repositories as well, and the progress of their listings; with `site_ids`
    only for these sites.

    `given` replaces the targets of the settings. Without `real`, the only target is the one with the name `against`:
    see `Targets.named`.

    Raises SettingsError if there is no such target; DatabaseUnavailable, which names the folder for temporary files, if
    there is no room for it.
    """
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True))
            engine = open_url(URL.create("sqlite", database=str(Path(folder) / "rehearsal.db")))
            stack.callback(engine.dispose)
            create_tables(engine)
            if real is not None:
                _copy(real, engine, with_records, site_ids)
        except (DBAPIError, OSError) as error:
            raise _no_room(reason_of(error)) from error
        mail = settings.mail.model_copy(update={"backend": "maildir", "folder": Path(folder) / "mail"})
        reports = settings.reports.model_copy(update={"admin": "mail"})
        # A person waits for a rehearsal: it shows the first failure.
        http = settings.http.model_copy(update={"retries": 0})
        quiet = settings.model_copy(update={"mail": mail, "reports": reports, "http": http})
        compared: dict[str, Compared] = {}
        sessions = readers(real or engine)
        of_settings = Targets(settings, real or engine, given)
        if against is not None:
            targets = Targets(settings, engine, RehearsalTarget(of_settings.named(against), sessions, compared))
        elif real is None:
            targets = Targets(settings, engine, RehearsalTarget(None, sessions, compared))
        else:
            targets = Targets(settings, real, given, lambda target: RehearsalTarget(target, sessions, compared))
        try:
            yield Rehearsal(quiet, engine, targets, Path(folder), compared)
        except DatabaseUnavailable as error:
            if folder not in str(error):
                raise
            raise _no_room(reason_of(error.__cause__ or error)) from error


def _no_room(reason: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"The temporary files of a rehearsal cannot be written in {tempfile.gettempdir()}: {reason}. "
        "Make room there, or have TMPDIR name another folder."
    )


def _copy(real: Engine, scratch: Engine, with_records: bool, site_ids: Collection[int] | None) -> None:
    """Copy the schedule, broken rows too, and the ledger's rows of failed documents; see `rehearsal`."""
    with readers(real)() as session, scratch.begin() as connection:
        with database_errors(real):
            rows = list(raw_rows(session))
            withdrawn = [dict(row) for row in session.execute(select(DocumentWithdrawal.__table__)).mappings()]
        for row in rows:
            columns = ", ".join(row)
            insertion = text(f"INSERT INTO harvest_site_schedule ({columns}) VALUES (:{', :'.join(row)})")
            plain = {name: value.isoformat() if isinstance(value, date) else value for name, value in row.items()}
            if not is_reference(plain["ldappwd"]):
                plain["ldappwd"] = NOT_SHOWN
            connection.execute(insertion, plain)
        if withdrawn:
            connection.execute(insert(DocumentWithdrawal), withdrawn)
        copy_rows(session, connection, with_records=with_records, site_ids=site_ids)
