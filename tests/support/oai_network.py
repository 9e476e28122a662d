"""A harvester, and the OAI-PMH repository that it harvests on loopback, night by night."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from datetime import timedelta
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

from support.databases import TestDatabase
from support.harvester import IN_A_FILE, SETTINGS, Harvester
from support.mails import words_of
from support.oai_server import Asked, OaiServer

TOTALS = "listed inserted updated unchanged deleted filtered duplicate deferred access_error invalid upload_error"
ALL = {str(number): 1 for number in range(1, 26)}
"""What is held of a repository of 25 records: the highest revision of each."""


ALLOWED = ("--allow-duplicate",)
"""Tests register one repository several times: what sites have in common is their subject."""


class Network:
    """A harvester, and the repository of its only site."""

    def __init__(self, folder: Path, server: OaiServer, settings: str = "", database: TestDatabase = IN_A_FILE) -> None:
        self.harvester = Harvester(folder, SETTINGS + settings, database)
        self.server = server
        self.night = 0

    def register(self, *options: str, name: str = "repo") -> str:
        said = self.harvester(
            "sites", "add", name, "--oai", self.server.base_url, "--origin", "test", *ALLOWED, *options
        )
        assert said.code == 0, said.err
        return said.out

    def harvest(self, *options: str) -> dict[str, Any]:
        """The next night: the status of the site run, and its totals that are not 0."""
        self.night += 1
        self.server.now += timedelta(days=1)
        [site] = self.harvester.run(f"2030-01-{self.night:02}", "--site", "repo", *options)["sites"]
        return {"status": site["status"], **{name: site[name] for name in TOTALS.split() if site[name]}}

    def kill(self, is_time: Callable[[Asked], bool], date: str, *options: str) -> None:
        """A run that is killed as it asks the repository for this."""
        started: list[subprocess.Popen[str]] = []

        def kill(body: bytes, asked: Asked) -> bytes:
            if started and is_time(asked):
                started.pop().send_signal(signal.SIGKILL)
            return body

        self.server.tamper = kill
        started.append(process := self.harvester.start("run", "--date", date, *options))
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGKILL
        self.server.tamper = None

    def held(self) -> dict[str, int]:
        """The highest revision of each document that the target says it has."""
        with self.harvester.opened() as opened, opened.targets.default.session(None) as session:
            ids = [row[0] for row in self.harvester.rows("SELECT DISTINCT document_id FROM harvest_document")]
            held = session.holdings(ids) if ids else {}
            return {each.removeprefix("test/oai_dc/oai:test:"): held[each].revision for each in held}

    def report(self, kind: str = "site") -> str:
        """The text of the last report to the site, or of another kind."""
        sql = f"SELECT content FROM report_outbox WHERE kind = '{kind}' ORDER BY report_id DESC LIMIT 1"
        [(content,)] = self.harvester.rows(sql)
        return words_of(message_from_bytes(content, policy=policy.default))

    def table(self) -> str:
        """The table that is attached to the last report to the site."""
        sql = "SELECT content FROM report_outbox WHERE kind = 'site' ORDER BY report_id DESC LIMIT 1"
        [(content,)] = self.harvester.rows(sql)
        mail = message_from_bytes(content, policy=policy.default)
        return "".join(str(part.get_content()) for part in mail.iter_attachments())

    def subject(self, kind: str) -> str:
        """The subject of the last report of this kind."""
        sql = f"SELECT subject FROM report_outbox WHERE kind = '{kind}' ORDER BY report_id DESC LIMIT 1"
        return str(self.harvester.rows(sql)[0][0])


def is_list(asked: Asked) -> bool:
    """Whether this asks for a list of records, or of their identifiers."""
    return asked.verb in ("ListRecords", "ListIdentifiers")


def lists(server: OaiServer) -> list[Asked]:
    """The requests for the list that is harvested, without the short questions beside it."""
    found = [each for each in server.answered if is_list(each)]
    return [each for each in found if each.verb == found[0].verb]


def report(network: Network) -> str:
    """The text of the last report to the site, in one line."""
    return " ".join(network.report().split())


def missing(network: Network) -> int:
    """How many documents are missing in the repository's list."""
    return len(json.loads(network.harvester("documents", "--site", "repo", "--missing", "--json").out))
