"""Numbers of thousands of digits, for which Python raises an error, become a sentence or a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer

LONG = "9" * 5_000

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.mark.parametrize(
    "command",
    [
        ("target", "show"),
        ("target", "get"),
        ("documents", "show"),
        ("check",),
        ("sites", "edit", "alder", "--full-every"),
    ],
    ids=" ".join,
)
def test_on_the_command_line(harvester: Harvester, server: HttpServer, command: tuple[str, ...]) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    answer = harvester(*command, f"a.1.{LONG}")
    assert answer.code != 0
    assert "Traceback" not in answer.err + answer.out


def test_in_what_servers_and_documents_say(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1", also=[(f"a.3.{LONG}", server.url("/a.1.1.xml"))]))
    harvester.add_site("birch", publish(server, "b.1.1", "b.2.1", path="/birch.xml"))
    page = f"<!DOCTYPE html><html><head><title>&#{LONG};</title></head></html>".encode()
    server.serve("/b.1.1.xml", page, headers={"Content-Type": "text/html"})
    server.serve("/b.2.1.xml", eml(f"b.2.{LONG}"), headers={"Retry-After": LONG, "Age": LONG})
    harvester.run("2026-11-20")
    output = " ".join(str(row) for row in harvester.rows("SELECT error_message FROM harvest_detail_log"))
    assert "unexpected" not in output.lower()
    assert "b.1.1" in harvester.outcomes(1)


def test_in_a_document_to_be_listed(harvester: Harvester, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "a.xml").write_bytes(eml(f"a.1.{LONG}"))
    (folder / "b.xml").write_bytes(eml("a.2.1"))
    answer = harvester("list", "build", str(folder), "--base-url", "https://example.org/")
    assert "Traceback" not in answer.err + answer.out


@pytest.mark.parametrize(
    "command", ["requests --after", "registrations list --after", "decisions --after", "jobs --after", "jobs --run"]
)
def test_that_no_database_can_hold(harvester: Harvester, command: str) -> None:
    answer = harvester(*command.split(), "9" * 20)
    assert (answer.code, "is not in the range" in answer.err) == (2, True)
