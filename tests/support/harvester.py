"""An installation of metaharvest in a folder, used as a person uses it: by its commands, its tables and its mails."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, TextClause, event, make_url, text

from metaharvest.cli import main
from metaharvest.config.settings import load
from metaharvest.database.engine import writers
from metaharvest.harvest.limits import RunLimits
from metaharvest.services import harvester as services
from metaharvest.sites.registry import add_site
from support.databases import TestDatabase, open_sqlite_file
from support.fork_server import ForkedPopen

SETTINGS = """\
[harvester]
name = "Test network"
administrators = ["steward@example.org"]
[mail]
sender = "harvester@example.org"
[http]
allow_networks = ["127.0.0.0/8"]
door_networks = ["127.0.0.0/8"]
connect_timeout = 20
read_timeout = 30
document_deadline = 60
list_deadline = 120
retry_wait = 0.01
"""
"""The limits of time are those that a busy machine does not reach; a test that waits for one sets it: see IMPATIENT."""

IMPATIENT = {
    "METAHARVEST_HTTP__CONNECT_TIMEOUT": "2",
    "METAHARVEST_HTTP__READ_TIMEOUT": "2",
    "METAHARVEST_HTTP__DOCUMENT_DEADLINE": "3",
    "METAHARVEST_HTTP__LIST_DEADLINE": "8",
}
"""Environment variables for limits that servers reach which hang, or drag out what they send."""

EML = """\
<?xml version="1.0" encoding="UTF-8"?>
<eml:eml xmlns:eml="eml://ecoinformatics.org/eml-2.1.1" packageId="{docid}" system="test">
  <dataset>
    <title>{title}</title>
    <creator><organizationName>Test station</organizationName></creator>
    <contact><organizationName>Test station</organizationName></contact>
  </dataset>
</eml:eml>
"""
IN_A_FILE = TestDatabase("sqlite", "")

PASSWORD = "METAHARVEST_TEST_PASSWORD"
"""The variable that the password of a test server is put into: settings files hold none."""

TYPE = "eml://ecoinformatics.org/eml-2.1.1"


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


class Harvester:
    """One installation. `database` is an empty one with all tables; without it, it is a SQLite file in the folder.

    `limits` are those of its runs in this process, if a test sets them. If `keeps_engine`, all commands in this process
    work with one engine, which has compiled most statements already; otherwise each opens the database that it finds in
    the settings, as people's commands do.
    """

    def __init__(self, folder: Path, settings: str = SETTINGS, database: TestDatabase = IN_A_FILE) -> None:
        self.folder = folder
        self.config = folder / "metaharvest.toml"
        self.config.write_text(settings + settings_for(database.url), encoding="utf-8")
        self.limits: RunLimits | None = None
        self.keeps_engine = True
        self._own_engine = database.engine is None
        self.engine = database.engine or open_sqlite_file(folder / "metaharvest.db")

    def close(self) -> None:
        if self._own_engine:
            self.engine.dispose()

    def add_site(self, name: str, url: str, **columns: object) -> int:
        values = {"name": name, "documentlisturl": url, "contact_email": f"{name}@example.org", **columns}
        with writers(self.engine).begin() as session:
            return add_site(session, values).site_id

    def __call__(self, *arguments: str) -> Said:
        """Run a command in this process."""
        engine = self.engine if self.keeps_engine else None
        return said("--config", str(self.config), *any_day(arguments), limits=self.limits, engine=engine)

    def opened(self, **given: Any) -> services.Harvester:
        """What the command works with, for a test that wants to give it something of its own; to be closed."""
        return services.Harvester(load(self.config), **{"limits": self.limits, **given})

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command in a process of its own, which takes signals also where the tests ignore them."""
        return ForkedPopen(
            [sys.executable, "-m", "metaharvest", "--config", str(self.config), *any_day(arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    def run(self, day: str, *arguments: str) -> dict[str, Any]:
        """`run --json` on this day: what it printed."""
        said = self("run", "--json", "--date", day, *arguments)
        assert said.out, said.err
        return {**json.loads(said.out), "exit_code": said.code}

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database says: see `rows_of`."""
        return rows_of(self.engine, sql, *values)

    def lose(self, document_id: str = "%") -> None:
        """Let the embedded target lose documents, as somebody with SQL may."""
        for table in ("document_revision", "catalogue_document"):
            self.rows(f"DELETE FROM {table} WHERE document_id LIKE ?", document_id)

    def outcomes(self, run_id: int) -> dict[str, str]:
        """docid -> outcome, as the log of a run has it."""
        sql = (
            "SELECT document_id, revision, outcome FROM harvest_log "
            "WHERE run_id = ? AND outcome IS NOT NULL ORDER BY harvest_log_id"
        )
        return {f"{document_id}.{revision}": outcome for document_id, revision, outcome in self.rows(sql, run_id)}

    def findings(self, run_id: int) -> list[tuple[str | None, str, str]]:
        """(document id, level, rule) of every detail row of a run."""
        sql = (
            "SELECT d.document_id, d.level, d.rule FROM harvest_detail_log d JOIN harvest_log l USING (harvest_log_id) "
            "WHERE l.run_id = ? ORDER BY d.detail_log_id"
        )
        return self.rows(sql, run_id)

    def operations(self, run_id: int, site: str | None = None) -> list[str]:
        """The operation codes that a run logged, of one site or of none."""
        where = "AND site_run_id IN (SELECT site_run_id FROM harvest_site_run WHERE site_name = ?)" if site else ""
        sql = f"SELECT harvest_operation_code FROM harvest_log WHERE run_id = ? {where} ORDER BY harvest_log_id"
        return [code for (code,) in self.rows(sql, run_id, *([site] if site else []))]

    def held(self) -> dict[str, bytes]:
        """docid -> bytes, as the embedded target has them."""
        rows = self.rows("SELECT document_id, revision, content FROM document_revision")
        return {f"{document_id}.{revision}": content for document_id, revision, content in rows}

    def mails(self) -> list[EmailMessage]:
        """The mails in the Maildir, in no order."""
        found = sorted((self.folder / "mail" / "new").glob("*"))
        return [_message(file.read_bytes()) for file in found]

    def subjects(self) -> list[str]:
        """Their subjects, sorted."""
        return sorted(mail["Subject"] for mail in self.mails())


def said(*arguments: str, **given: Any) -> Said:
    """What a command says, and its exit code, run in this process; `given`: see metaharvest.cli.main."""
    out, err, code = io.BytesIO(), io.BytesIO(), 0
    with (
        io.TextIOWrapper(out, "utf-8", write_through=True) as stdout,
        io.TextIOWrapper(err, "utf-8", write_through=True) as stderr,
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            main(list(arguments), **given)
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Said(code, out.getvalue().decode(), err.getvalue().decode())


def any_day(arguments: Sequence[str]) -> tuple[str, ...]:
    """The arguments of a command, so that a run may have any date: dates in tests are far from the clock."""
    is_run = arguments[:1] == ("run",) and "--date" in arguments and "--force-date" not in arguments
    return (*arguments, "--force-date") if is_run else tuple(arguments)


def settings_for(database: str) -> str:
    """The section of a settings file that names this database; nothing for the default."""
    if not database:
        return ""
    url = make_url(database)
    if url.password is None:
        return f'[database]\nurl = "{database}"\n'
    os.environ[PASSWORD] = str(url.password)
    bare = url._replace(password=None).render_as_string()
    return f'[database]\nurl = "{bare}"\npassword = "env:{PASSWORD}"\n'


def rows_of(engine: Engine, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """What a database answers to SQL with a `?` for each value, in the same types whichever database it is.

    Dates and timestamps as ISO text, whole numbers as int; what is changed is committed.
    """
    with engine.execution_options(sqlite_begin="BEGIN IMMEDIATE").begin() as connection:
        result = connection.execute(_statement(sql), {f"v{number}": value for number, value in enumerate(values)})
        return [tuple(map(_plain, row)) for row in result] if result.returns_rows else []


@lru_cache
def _statement(sql: str) -> TextClause:
    parts = sql.split("?")
    return text("".join(f"{part}:v{number}" for number, part in enumerate(parts[:-1])) + parts[-1])


@lru_cache
def _message(content: bytes) -> EmailMessage:
    """Messages of one content are one object: some tests read all mails after each of several nights."""
    return message_from_bytes(content, policy=policy.default)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date):
        return value.isoformat()
    return int(value) if isinstance(value, Decimal) else value


def eml(docid: str, title: str = "A title") -> bytes:
    """A small valid EML document."""
    return EML.format(docid=docid, title=title).encode()


def harvest_list(entries: Iterable[tuple[str, str]], document_type: str = TYPE) -> bytes:
    """A harvest list of (docid, URL)."""
    lines = ['<?xml version="1.0"?>', '<h:harvestList xmlns:h="eml://ecoinformatics.org/harvestList">']
    for docid, url in entries:
        scope, identifier, revision = docid.rsplit(".", 2)
        lines.append(
            f"<document><docid><scope>{scope}</scope><identifier>{identifier}</identifier>"
            f"<revision>{revision}</revision></docid><documentType>{document_type}</documentType>"
            f"<documentURL>{url}</documentURL></document>"
        )
    return "\n".join([*lines, "</h:harvestList>\n"]).encode()


def publish(server: Any, *docids: str, path: str = "/list.xml", also: Iterable[tuple[str, str]] = ()) -> str:
    """Serve a valid document for each docid, and a list that names them and `also`; the list's URL."""
    for docid in docids:
        server.serve(f"/{docid}.xml", eml(docid))
    entries = [(docid, server.url(f"/{docid}.xml")) for docid in docids]
    server.serve(path, harvest_list([*entries, *also]))
    return str(server.url(path))


@contextlib.contextmanager
def no_more_room(harvester: Harvester, kilobytes: int) -> Iterator[None]:
    """Let the SQLite file grow by this number of kilobytes at most: beyond, SQLite reports a full disk."""
    [(size,)] = harvester.rows("PRAGMA page_count")
    [(page,)] = harvester.rows("PRAGMA page_size")

    def limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {size + kilobytes * 1024 // page}").close()

    harvester.engine.dispose()
    event.listen(Engine, "connect", limit)
    try:
        yield
    finally:
        event.remove(Engine, "connect", limit)
