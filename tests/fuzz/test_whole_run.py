"""Whole runs over hostile text: what ends up in tables, mails, terminals and files does no harm, and totals balance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import seeds
from fuzz.mutations import mutated
from fuzz.properties import assert_csv, assert_html, assert_plain
from metaharvest.model import OutcomeKind
from support.harvester import SETTINGS, TYPE, Harvester, harvest_list
from support.harvester import eml as small_eml
from support.http_server import HttpServer, raw

COLUMNS = ", ".join(kind.column for kind in OutcomeKind)
IN_XML = [
    escape(text)
    for text in seeds.TEXTS
    if not any(ord(c) < 32 or 0xD7FF < ord(c) < 0xE000 or c in "\ufffe\uffff" for c in text)
]


class World:
    """One installation, whose every request goes through a proxy on loopback, wherever a mutated URL may lead."""

    def __init__(self, folder: Path) -> None:
        self.server = HttpServer()
        network = SETTINGS + f'retries = 0\nproxy = "{self.server.url("")}"\n[reports]\nlines_per_group = 3\n'
        self.harvester = Harvester(folder, network)
        self._number = count(1)

    def run(self, listed: bytes, answers: dict[str, bytes]) -> int:
        """Harvest a new site that serves `listed`, and raw answers by path; the number of the run."""
        name = f"site-{next(self._number)}"
        self.server.serve("/list.xml", listed)
        for path, answer in answers.items():
            self.server.route(path, raw(answer))
        self.harvester.add_site(name, "http://site.example.org/list.xml")
        done = self.harvester.run("2026-11-20", "--site", name)
        assert done["exit_code"] in (0, 3)
        return int(done["run_id"])

    def check(self, run_id: int) -> None:
        """Totals that balance, rows, mails and output that do no harm."""
        [(status, listed, *kinds)] = self.harvester.rows(
            f"SELECT status, listed, {COLUMNS} FROM harvest_site_run WHERE run_id = ?", run_id
        )
        assert status in ("succeeded", "with-errors", "list-failed")
        assert listed == sum(kinds)
        assert "harvest.surprise" not in [rule for _, _, rule in self.harvester.findings(run_id)]
        for mail in self.harvester.mails():
            for name, value in mail.items():
                assert_plain(str(value))
                assert name in _HEADERS, name
            for part in mail.walk():
                if part.get_content_type() == "text/html":
                    assert_html(part.get_content())
                elif part.get_content_type() == "text/csv":
                    assert (part.get_filename() or "").isascii()
                    assert_csv(part.get_content().replace("\n", "\r\n").replace("\r\r", "\r"))
                elif part.get_content_type() == "text/plain":
                    assert_plain(part.get_content(), lines=True)
        self._clean_up()
        for command in (("log", "--level", "debug"), ("runs", "show", str(run_id)), ("reports",), ("target", "list")):
            for more in ((), ("--json",)):
                if more and command[0] == "runs":
                    command = ("runs", "show", str(run_id))
                said = self.harvester(*command, *more)
                assert said.code == 0, said.err
                assert_plain(said.out + said.err, lines=True)
                if more:
                    json.loads(said.out)
        assert_csv(self.harvester("log", "--run", str(run_id), "--csv").out)

    def _clean_up(self) -> None:
        for file in (self.harvester.folder / "mail" / "new").glob("*"):
            file.unlink()

    def close(self) -> None:
        self.harvester.close()
        self.server.close()


_HEADERS = frozenset(
    {"Subject", "From", "To", "Reply-To", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"}
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


def entries(texts: list[str]) -> bytes:
    """A list with each text in a documentType and a URL."""
    head, _, tail = harvest_list([]).partition(b"</h:harvestList>")
    rows = "".join(
        f"<document><docid><scope>s{number}</scope><identifier>1</identifier><revision>1</revision></docid>"
        f"<documentType>{text} x</documentType><documentURL>http://user:secret@site.example.org/d{number}?"
        f"{''.join(text.split())}</documentURL></document>"
        for number, text in enumerate(texts)
    )
    return head + rows.encode("utf-8", "replace") + b"</h:harvestList>" + tail


def served(content: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content)


@settings(deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), max_examples=6)
@given(
    mutated([entries([text]) for text in IN_XML[:4]], seeds.PIECES, xml=True),
    mutated(seeds.documents(), seeds.PIECES, xml=True),
    mutated(seeds.answers(), seeds.HTTP_PIECES, xml=False),
    st.sampled_from(IN_XML),
)
def test_whole_runs_over_mutated_lists_documents_and_answers(
    world: World, listed: bytes, document: bytes, answer: bytes, text: str
) -> None:
    for list_bytes in (listed, entries([text, "plain"])):
        world.check(world.run(list_bytes, {"/d0": served(document), "/d1": answer}))


def test_hostile_texts_do_no_harm_wherever_a_site_can_put_them(world: World) -> None:
    answers = {}
    for number, text in enumerate(IN_XML):
        title = small_eml(f"s{number}.1.1", f"{text}</title><{'x' if number % 2 else 'title'}>{text}")
        reason = "".join(text.split()).encode("utf-8", "replace")
        status = b"HTTP/1.1 503 %b\r\nServer: %b\r\nRetry-After: %b\r\n\r\n<html><title>%b</title></html>"
        answers[f"/d{number}"] = [
            served(title),
            status % (reason, reason, reason, text.encode()),
            served(small_eml("s.1.1").replace(b'packageId="s.1.1"', f'packageId="{text}" id="{text}"'.encode())),
            served(f'<x xmlns="{text}">'.encode() + TYPE.encode() + b"</x>"),
        ][number % 4]
    world.check(world.run(entries(IN_XML), answers))


HOSTILE_NAME = "\x1b]0;evil\x07\u202e<script>=1\x9b31m"


def test_hostile_rows_of_other_programs_are_shown_harmlessly(tmp_path: Path, server: HttpServer) -> None:
    harvester = Harvester(tmp_path)
    harvester.add_site("alder", server.url("/missing"))
    done = harvester.run("2026-11-20", "--site", "alder")
    for table, column in (
        ("harvest_site_run", "site_name"),
        ("harvest_site_run", "failure_reason"),
        ("harvest_log", "message"),
        ("harvest_detail_log", "error_message"),
        ("harvest_detail_log", "excerpt"),
        ("harvest_detail_log", "document_type"),
        ("report_outbox", "subject"),
        ("report_delivery", "last_error"),
        ("report_delivery", "recipient"),
        ("harvest_run", "host"),
    ):
        harvester.rows(f"UPDATE {table} SET {column} = ?", HOSTILE_NAME)
    harvester.rows("UPDATE report_delivery SET status = 'refused'")
    harvester.rows("UPDATE harvest_site_schedule SET name = ?, contact_email = ?", HOSTILE_NAME, f"{HOSTILE_NAME}@x")
    run_id = str(done["run_id"])
    commands = [
        *(
            ("log", "--level", "debug"),
            ("log", "--json"),
            ("log", "--site", "nobody"),
            ("log", "--csv", "--run", run_id),
        ),
        *(("runs",), ("runs", "--json"), ("runs", "show", run_id), ("runs", "show", run_id, "--json")),
        *(("reports",), ("reports", "--json"), ("reports", "show", "1"), ("reports", "deliver")),
        *(("sites", "list"), ("sites", "list", "--json"), ("sites", "show", HOSTILE_NAME), ("sites", "show", "nobody")),
        *(("sites", "enable", HOSTILE_NAME), ("sites", "disable", HOSTILE_NAME), ("doctor",), ("doctor", "--json")),
        *(("target", "list"), ("target", "show", HOSTILE_NAME), ("run", "--site", "nobody")),
        *(("run", "--date", "2026-11-21"), ("run", "--date", "2026-11-22", "--json"), ("reports", "resend", "1")),
        ("sites", "remove", "--yes", HOSTILE_NAME),
    ]
    try:
        for command in commands:
            said = harvester(*command)
            assert_plain((said.out + said.err).removeprefix("\ufeff").replace("\r\n", "\n"), lines=True)
    finally:
        harvester.close()
