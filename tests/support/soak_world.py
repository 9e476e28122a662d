"""An installation that is used by processes alone, and what it holds: as it is, and as it can be compared."""

from __future__ import annotations

import csv
import email
import email.policy
import io
import os
import re
import subprocess
import sys
from collections import Counter
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from metaharvest.config.settings import load
from metaharvest.database.engine import open_database, writers
from metaharvest.sites.registry import add_site
from support.fork_server import ForkedPopen
from support.harvester import any_day, rows_of, settings_for
from support.soak_network import BROKEN, SITES, Network

SETTINGS = """\
[harvester]
name = "Test network"
administrators = ["steward@example.org"]
log_period_days = 2
[mail]
sender = "harvester@example.org"
[http]
allow_networks = ["127.0.0.0/8"]
connect_timeout = 30
read_timeout = 30
document_deadline = 60
retry_wait = 0.05
[reports]
lines_per_group = 1000
"""

Rows = Counter[tuple[Any, ...]]

_OF_THE_NIGHT = "JOIN harvest_run r ON r.run_id = x.run_id WHERE r.harvest_date = ?"


class World:
    """One installation in a folder, with a database of its own."""

    def __init__(self, folder: Path, database: str = "", settings: str = "") -> None:
        folder.mkdir()
        self.folder = folder
        self.mail = folder / "mail"
        self.config = folder / "metaharvest.toml"
        self.config.write_text(SETTINGS + settings + settings_for(database), encoding="utf-8")
        self.engine = open_database(load(self.config, {}))
        self._errors = folder / "errors.txt"

    def close(self) -> None:
        self.engine.dispose()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command in a process of its own; what it says on stderr is kept."""
        return self.start_python("-m", "metaharvest", "--config", str(self.config), *any_day(arguments))

    def start_python(self, *arguments: str) -> subprocess.Popen[bytes]:
        # A new file: processes that a killed run left behind may still write into the old one.
        self._errors.unlink(missing_ok=True)
        with self._errors.open("wb") as errors:
            return ForkedPopen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )

    def said(self) -> str:
        """What the last process said on stderr."""
        return self._errors.read_text(encoding="utf-8", errors="replace")

    def register(self, network: Network) -> None:
        """Register the sites, one of which is then spoilt."""
        with writers(self.engine).begin() as session:
            for name, columns in SITES.items():
                add_site(session, {"name": name, "documentlisturl": network.list_url(name), **columns})
        self.rows("UPDATE harvest_site_schedule SET unit = 'fortnights' WHERE name = ?", BROKEN)

    def is_closed(self, night: str) -> bool:
        """Whether the last run of this night was closed, though its reports may not be delivered yet."""
        statuses = self.rows("SELECT status FROM harvest_run WHERE harvest_date = ? ORDER BY run_id DESC", night)
        return bool(statuses) and statuses[0] != ("running",)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        return rows_of(self.engine, sql, *values)

    def mails(self) -> dict[str, bytes]:
        """Message-ID -> the file, of every message in the Maildir. Each is there once, under new/."""
        found: dict[str, bytes] = {}
        for file in sorted((self.mail / "new").iterdir() if self.mail.exists() else []):
            content = file.read_bytes()
            message_id = str(_message(content)["Message-ID"])
            assert message_id not in found, f"{message_id} is in the Maildir twice"
            found[message_id] = content
        return found


def state_of(world: World, night: str) -> dict[str, Rows]:
    """What the night left, row for row, for comparison with another world's. See test_soak for what is left out."""
    return {
        "documents": Counter(
            world.rows(
                "SELECT document_id, revision, document_type, size, sha256, source_url, site_schedule_id, content "
                "FROM document_revision"
            )
        ),
        "ledger": Counter(
            world.rows(
                "SELECT site_schedule_id, document_id, revision, document_url, document_type, target_revision, "
                "outcome, sha256, failing_since, attempts, next_attempt, pending_run, pending_sha256 "
                "FROM harvest_document"
            )
        ),
        "schedule": Counter(
            world.rows(
                "SELECT name, datenextharvest, datelastharvest, day_of_month, notify, enabled, list_etag, "
                "list_last_modified, list_sha256 FROM harvest_site_schedule"
            )
        ),
        "site runs": Counter(
            world.rows(
                "SELECT site_name, kind, x.status, failure_reason, list_url, listed, inserted, updated, unchanged, "
                "stale, duplicate, deferred, access_error, invalid, upload_error, warnings, next_harvest "
                f"FROM harvest_site_run x {_OF_THE_NIGHT}",
                night,
            )
        ),
        "log": _log(world),
        "detail log": Counter(
            tuple(map(timeless, row))
            for row in world.rows(
                "SELECT l.harvest_date, l.site_schedule_id, l.harvest_operation_code, d.level, d.scope, d.identifier, "
                "d.revision, d.document_id, d.document_url, d.document_type, d.error_message, d.rule, d.line_number, "
                "d.column_number, d.xpath, d.excerpt, d.remedy "
                "FROM harvest_detail_log d JOIN harvest_log l ON l.harvest_log_id = d.harvest_log_id"
            )
        ),
        "deliveries of site reports": Counter(
            world.rows(
                "SELECT s.site_name, r.harvest_date, x.subject, d.recipient, d.status, d.attempts, d.last_error "
                "FROM report_outbox x JOIN harvest_site_run s ON s.site_run_id = x.site_run_id "
                "JOIN harvest_run r ON r.run_id = x.run_id LEFT JOIN report_delivery d ON d.report_id = x.report_id"
            )
        ),
        "mails to sites": Counter(
            (shown_mail(content),) for content in world.mails().values() if b"steward" not in _recipients(content)
        ),
    }


_LIST_ROWS = ("GetHarvestListSuccess", "ValidateHarvestListSuccess", "HarvestListUnchanged")


def _log(world: World) -> Rows:
    """The log of the sites; the rows that say that a list was read, once a site run, however often it was resumed."""
    rows = world.rows(
        "SELECT x.site_run_id, harvest_date, s.site_name, s.kind, harvest_operation_code, x.status, message, "
        "document_id, revision, document_url, outcome, target_revision, size "
        "FROM harvest_log x JOIN harvest_site_run s ON s.site_run_id = x.site_run_id"
    )
    counted = Counter(tuple(map(timeless, row[1:])) for row in rows)
    of_lists = Counter(row[1:] for row in {row for row in rows if row[4] in _LIST_ROWS})
    return Counter({row: of_lists.get(row, number) for row, number in counted.items()})


def problems_of(world: World, night: str) -> list[str]:
    """What is wrong with the rows of a night that has ended, of runs that were interrupted or not."""
    found: list[str] = []

    def none_of(what: str, sql: str, *values: object) -> None:
        if rows := world.rows(sql, *values):
            found.append(f"{what}: {rows[:3]}")

    none_of("runs never closed", "SELECT run_id FROM harvest_run WHERE status = 'running'")
    none_of(
        "site runs never closed",
        "SELECT site_name, status FROM harvest_site_run WHERE status IN ('running', 'interrupted', 'incomplete')",
    )
    none_of(
        "totals that do not balance",
        "SELECT site_name, listed FROM harvest_site_run WHERE listed <> inserted + updated + unchanged + stale + "
        "duplicate + deferred + access_error + invalid + upload_error",
    )
    none_of(
        "more than one outcome",
        "SELECT site_run_id, document_id, revision, count(*) FROM harvest_log WHERE outcome IS NOT NULL "
        "AND outcome <> 'duplicate' GROUP BY site_run_id, document_id, revision HAVING count(*) > 1",
    )
    none_of(
        "runs without their one report to the administrators",
        "SELECT x.run_id FROM harvest_run x WHERE x.harvest_date = ? AND 1 <> (SELECT count(*) FROM report_outbox o "
        "WHERE o.run_id = x.run_id AND o.kind = 'admin')",
        night,
    )
    none_of("reports not delivered", "SELECT recipient, status FROM report_delivery WHERE status <> 'sent'")
    interrupted = "SELECT run_id FROM harvest_run WHERE status = 'interrupted' AND harvest_date = ?"
    told = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'RunInterrupted' AND harvest_date = ?"
    if len(world.rows(interrupted, night)) != len(world.rows(told, night)):
        found.append("interrupted runs that the log does not tell of, once each")
    return [*found, *_mail_problems(world, night)]


def _mail_problems(world: World, night: str) -> list[str]:
    found = []
    mails = world.mails()
    if left := [file.name for folder in ("tmp", "cur") for file in (world.mail / folder).iterdir()]:
        found.append(f"files left in tmp/ or cur/: {left}")
    queued = world.rows("SELECT message_id, content, run_id, kind FROM report_outbox")
    for message_id, content, _, _ in queued:
        if mails.get(message_id, b"") != content.replace(b"\r\n", b"\n"):
            found.append(f"{message_id} is not in the Maildir as it was queued")
    for run_id, site in world.rows(f"SELECT x.run_id, site_name FROM harvest_site_run x {_OF_THE_NIGHT}", night):
        [text] = [_text(content) for _, content, of, kind in queued if (of, kind) == (run_id, "admin")]
        if not re.search(rf"^{re.escape(site)}\b", text, re.MULTILINE):
            found.append(f"the report of run {run_id} to the administrators does not tell of {site}")
    return found


def _message(content: bytes) -> EmailMessage:
    return email.message_from_bytes(content, policy=email.policy.default)


def _recipients(content: bytes) -> bytes:
    return str(_message(content)["To"]).encode()


def _text(content: bytes) -> str:
    part = _message(content).get_body(("plain",))
    assert part is not None
    return str(part.get_content())


def timeless(value: Any) -> Any:
    """Text without the durations that findings tell."""
    return re.sub(r"over [0-9.]+ seconds", "over some time", value) if isinstance(value, str) else value


_TIMES = re.compile(r"The harvest took [\s\S]*?\n(?=Central repository)")


def shown_mail(content: bytes) -> str:
    """A message without its times and numbers: headers, text, the table with its rows sorted."""
    message = _message(content)
    lines = [f"{name}: {message[name]}" for name in ("From", "To", "Reply-To", "Subject", "Auto-Submitted")]
    # Sentences are broken into lines where they end, not where a duration of one digit more would break them.
    text = " ".join(_TIMES.sub("", _text(content)).split())
    lines += timeless(text).replace(". ", ".\n").split("\n")
    for part in message.iter_attachments():
        table = list(csv.reader(io.StringIO(part.get_content().lstrip("\ufeff"))))
        seconds = table[0].index("seconds")
        rows = [[cell for number, cell in enumerate(row) if number != seconds] for row in table]
        lines += [str(part.get_filename()), *sorted(timeless(str(row)) for row in rows)]
    return "\n".join(lines)
