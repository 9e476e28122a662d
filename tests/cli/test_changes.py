"""`changes`: the change feed for another program, each change at least once and in order."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from metaharvest.catalogue.change_feed import ChangedDocument
from metaharvest.cli.export import _print_batch
from metaharvest.database.engine import writers
from metaharvest.database.models import SiteCheckpoint
from metaharvest.services.change_hooks import before_sweeps
from support.databases import on_one_database
from support.harvester import Harvester
from support.provider import delete, document, store

DOCUMENTS = [document(f"a.{number}", b"<eml/>") for number in (1, 2, 3)]


@pytest.fixture
def installed(harvester: Harvester) -> Harvester:
    """Three documents of a site, the second one deleted last."""
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    store(harvester, *DOCUMENTS)
    delete(harvester, DOCUMENTS[1])
    return harvester


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(each) for each in text.splitlines()]


def ids(text: str) -> list[str]:
    return [each["document_id"] for each in lines(text)]


def change(seq: int, site: str | None) -> ChangedDocument:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    names = (f"a.{seq}", 1, f"a.{seq}", None, "urn:dc", None, site)
    return ChangedDocument(seq, at, False, *names, (), None, None, None, None, None, None)


def test_changes_before_the_first_one_of_a_sweep_are_given() -> None:
    found = [change(1, "alder"), change(2, None), change(3, "birch"), change(4, "alder")]
    assert before_sweeps(found, frozenset()) == (found, None)
    assert before_sweeps(found, frozenset({"birch", "elm"})) == (found[:2], "birch")
    assert before_sweeps(found, frozenset({"alder"})) == ([], "alder")


def test_changes_are_printed_as_lines_after_a_number(installed: Harvester) -> None:
    first, second, third = lines(installed("changes", "--since", "0").out)
    assert [first["document_id"], second["document_id"], third["document_id"]] == ["a.1", "a.3", "a.2"]
    assert first.keys() == {
        "change_seq", "document_id", "revision", "document_type", "is_deleted", "changed_at", "site", "title",
    }  # fmt: skip
    assert (first["site"], first["title"], first["is_deleted"]) == ("alder", "A title", False)
    assert (third["title"], third["is_deleted"]) == (None, True)
    assert ids(installed("changes", "--since", str(first["change_seq"]), "--limit", "1").out) == ["a.3"]
    assert installed("changes", "--since", str(third["change_seq"])).out == ""


def test_a_reader_goes_on_where_it_was(installed: Harvester) -> None:
    ask = ("changes", "--name", "portal", "--limit", "2")
    assert ids(installed(*ask).out) == ["a.1", "a.3"]
    assert ids(installed("changes", "--name", "other").out) == ["a.1", "a.3", "a.2"]
    assert ids(installed(*ask).out) == ["a.2"]
    assert installed(*ask).out == ""
    assert installed("changes", "--name", "portal", "--ack", "1").out == ""
    assert len(ids(installed(*ask).out)) == 2
    refused = installed("changes", "--name", "portal", "--ack", "99")
    assert (refused.code, "There is no change 99 yet: the last one is 4." in refused.err) == (2, True)


@on_one_database
def test_documents_that_are_not_public_are_given_as_deleted_or_not_at_all(installed: Harvester) -> None:
    seen = installed("changes", "--name", "portal").out
    assert len(ids(seen)) == 3
    assert installed("sites", "edit", "alder", "--not-public").code == 0
    installed.run("2026-11-20")
    after = lines(installed("changes", "--name", "portal").out)
    assert {(each["document_id"], each["is_deleted"], each["title"]) for each in after} >= {
        ("a.1", True, None), ("a.3", True, None),
    }  # fmt: skip
    store(installed, document("a.9", b"<eml/>"))
    assert "a.9" not in ids(installed("changes", "--since", "0").out)


@on_one_database
def test_a_command_gets_batches_and_keeps_the_position_if_it_fails(installed: Harvester, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fails = f"{sys.executable} -c 'import sys; sys.stdin.read(); sys.exit(3)'"
    said = installed("changes", "--name", "portal", "--run", fails)
    assert said.code == 1
    assert "The command ended with the exit code 3. The position stays where it is" in said.err
    said = installed("changes", "--name", "portal", "--limit", "2", "--run", f"cat >> {kept} && echo >> {kept}")
    assert said.out.startswith("3 changes delivered; the last one is ")
    batches = [[each["document_id"] for each in lines(batch)] for batch in kept.read_text().split("\n\n") if batch]
    assert batches == [["a.1", "a.3"], ["a.2"]]
    assert installed("changes", "--name", "portal").out == ""


@contextmanager
def receiver(*statuses: int) -> Iterator[tuple[str, list[bytes]]]:
    """A web address that answers with these statuses in turn, and what it got."""
    got: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(statuses[len(got) - 1])
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None:
            """Nothing is printed."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://user:secret@127.0.0.1:{server.server_port}/changes", got
        finally:
            server.shutdown()
            thread.join()


@on_one_database
def test_a_web_address_gets_batches_and_keeps_the_position_if_it_fails(installed: Harvester) -> None:
    with receiver(204, 503, 200) as (url, got):
        ask = ("changes", "--name", "portal", "--limit", "2", "--post", url)
        said = installed(*ask)
        assert (said.code, "127.0.0.1 answered with HTTP 503." in said.err, "secret" in said.err) == (1, True, False)
        assert installed(*ask).code == 0
    assert [ids(each.decode()) for each in got] == [["a.1", "a.3"], ["a.2"], ["a.2"]]
    said = installed("changes", "--name", "portal", "--ack", "0")
    said = installed(*ask)
    assert (said.code, "127.0.0.1 did not answer (ConnectionError)." in said.err) == (1, True)


def test_documents_of_a_sweep_under_way_wait_and_are_not_skipped(installed: Harvester) -> None:
    ask = ("changes", "--name", "portal", "--not-during-sweep")
    with writers(installed.engine).begin() as session:
        session.add(SiteCheckpoint(site_schedule_id=1, kind="full", checkpoint="{}"))
    said = installed(*ask)
    assert (said.code, said.out) == (0, "")
    assert "The next changes wait: the list of alder is being harvested." in said.err
    installed.rows("UPDATE site_checkpoint SET kind = NULL")
    assert ids(installed(*ask).out) == ["a.1", "a.3", "a.2"]


def test_documents_of_a_harvest_list_wait_while_a_run_harvests_it(installed: Harvester) -> None:
    installed.run("2026-11-20")
    running = "UPDATE {} SET status = 'running' WHERE run_id = 1"
    for table in ("harvest_run", "harvest_site_run"):
        installed.rows(running.format(table))
    found = json.loads(installed("changes", "--name", "portal", "--not-during-sweep", "--json").out)
    assert found == {"changes": [], "delivered_changes": 0, "position": 0, "waiting_site": "alder"}
    installed.rows("UPDATE harvest_run SET status = 'failed'")  # the site run is left over from a dead run
    assert len(ids(installed("changes", "--name", "portal", "--not-during-sweep").out)) == 3


@on_one_database
def test_a_reader_gets_one_document_and_its_position_moves(installed: Harvester) -> None:
    ask = ("changes", "--name", "portal", "--limit", "2", "--json")
    first, second, third = (json.loads(installed(*ask).out) for _ in range(3))
    assert [[each["document_id"] for each in found["changes"]] for found in (first, second, third)] == [
        ["a.1", "a.3"], ["a.2"], [],
    ]  # fmt: skip
    assert third["position"] == second["position"] == second["changes"][0]["change_seq"]
    delivered = json.loads(installed("changes", "--name", "other", "--run", "cat > /dev/null", "--json").out)
    assert (delivered["changes"], delivered["delivered_changes"]) == ([], 3)


@on_one_database
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--since", "0", "--name", "x"), "Give --since SEQ or --name NAME, not both."),
        (("--since", "0", "--ack", "1"), "--ack needs --name NAME"),
        (("--since", "0", "--run", "x", "--post", "http://x"), "Give --run or --post, not both."),
        (("--name", "pipeline-index"), "is the name of this program's own pipeline"),
        (("--since", "0", "--post", "ftp://x/"), "has to begin with http:// or https://"),
    ],
)
def test_a_wrong_call_gets_a_sentence(harvester: Harvester, arguments: tuple[str, ...], sentence: str) -> None:
    said = harvester("changes", *arguments)
    assert (said.code, sentence in " ".join(said.err.split())) == (2, True)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_lines_are_in_utf_8_whatever_the_terminal_has(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], encoding: str
) -> None:
    line = json.dumps({"title": "\xe9 \U0001f600"}, ensure_ascii=False) + "\n"
    with open(1, "w", encoding=encoding, errors="backslashreplace", closefd=False) as stdout:
        monkeypatch.setattr("sys.stdout", stdout)
        _print_batch(line)
    assert capfdbinary.readouterr().out == line.encode()
