"""Targets with costly or endless answers: the run or the command goes on, or ends in time."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from support.harvester import SETTINGS, Harvester, publish
from support.hostile_run import GZIP, GoodSite, measured_run, zipped
from support.http_server import Asking, HttpServer
from support.metacat_server import Metacat, answering
from support.waiting import wait_until

NIGHT = "2026-11-20"
USER = "uid=harvester,o=LTER,dc=ecoinformatics,dc=org"
TYPES = "http://ns.dataone.org/service/types/v2.0"
LONG = "9" * 400
CHECKSUM = f'<checksum algorithm="SHA-256">{"0" * 64}</checksum>'


@pytest.fixture
def node(server: HttpServer, tmp_path: Path) -> Iterator[tuple[HttpServer, Harvester]]:
    """A member node with the answers of a test, and an installation with it as the target."""
    section = f'[target]\nkind = "dataone"\nurl = "{server.url("/v2")}"\nrights_holder = "CN=us"\n'
    limits = "connect_timeout = 20\nread_timeout = 20\ndeadline = 60\n"
    harvester = Harvester(tmp_path, SETTINGS + section + limits)
    server.route("/v2/object", lambda asking: asking.answer(listing(asking, total=0)))
    yield server, harvester
    harvester.close()


def listing(asking: Asking, total: int | str, entries: str = "") -> bytes:
    return f'<d:objectList xmlns:d="{TYPES}" count="1" start="0" total="{total}">{entries}</d:objectList>'.encode()


def entry(pid: str) -> str:
    return (
        f"<objectInfo><identifier>{pid}</identifier><formatId>eml://ecoinformatics.org/eml-2.1.1</formatId>"
        f"{CHECKSUM}<size>10</size></objectInfo>"
    )


def meta(pid: str, more: str = "") -> bytes:
    head = f"<identifier>{pid}</identifier><formatId>f</formatId><size>10</size>{CHECKSUM}"
    return f'<d:systemMetadata xmlns:d="{TYPES}">{head}{more}</d:systemMetadata>'.encode()


def start_of(asking: Asking) -> int:
    return int(parse_qs(urlsplit(asking.path).query).get("start", ["0"])[0])


def endless_listing(asking: Asking) -> None:
    """A listing that always has more objects than it has listed."""
    asking.pause(0.01)
    start = start_of(asking)
    asking.answer(listing(asking, start + 200, "".join(entry(f"x.{start + n}.1") for n in range(100))))


def not_found(asking: Asking) -> None:
    asking.answer(b'<error name="NotFound" errorCode="404" detailCode="1"/>', 404)


def messages(harvester: Harvester) -> str:
    return " ".join(row[0] for row in harvester.rows("SELECT error_message FROM harvest_detail_log"))


# -- DataONE


def test_a_listing_without_end_is_given_up_by_its_numbers(node: tuple[HttpServer, Harvester]) -> None:
    server, harvester = node
    server.route("/v2/object", endless_listing)
    answer = harvester("target", "list")
    assert answer.code != 0
    assert "was not read to its end" in answer.err
    assert "Traceback" not in answer.err


def test_a_listing_of_tiny_pages_is_given_up(node: tuple[HttpServer, Harvester]) -> None:
    server, harvester = node
    server.route("/v2/object", lambda asking: asking.answer(listing(asking, 1000, entry(f"x.{start_of(asking)}.1"))))
    answer = harvester("target", "list")
    assert answer.code != 0
    assert "151 pages gave 150 of 1,000 objects" in answer.err


@pytest.mark.parametrize("how", ["signal", "deadline"])
def test_a_run_ends_though_a_node_lists_without_end(
    node: tuple[HttpServer, Harvester], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    server, harvester = node

    def drip(asking: Asking) -> None:
        asking.pause(0.05)
        start = start_of(asking)
        # As many as there are allowed to be, so that no number ends it.
        asking.answer(listing(asking, 990_000, "".join(entry(f"x.{start + n}.1") for n in range(100))))

    def object_asked(asking: Asking) -> None:
        listing_total = "count=0" in asking.path
        asking.answer(listing(asking, 10)) if listing_total else drip(asking)

    server.route("/v2/object", object_asked)
    server.otherwise = not_found
    docids = [f"a.{number}.1" for number in range(60)]
    harvester.add_site("alder", publish(server, *docids))
    if how == "deadline":
        monkeypatch.setenv("METAHARVEST_HARVESTER__RUN_DEADLINE", "8")
    running = harvester.start("run", "--json", "--date", NIGHT)
    wait_until(lambda: len([each for each in server.requests if "start=" in each.path]) > 3)
    if how == "signal":
        running.send_signal(signal.SIGTERM)
    _, err = running.communicate(timeout=60)
    assert "Traceback" not in err
    assert set(harvester.outcomes(1).values()) == {"deferred"}
    assert harvester.rows("SELECT count(*) FROM harvest_run WHERE ended_at IS NULL") == [(0,)]
    assert "target.away" not in str(harvester.findings(1))


def test_a_copy_ends_though_its_source_lists_without_end(node: tuple[HttpServer, Harvester]) -> None:
    server, harvester = node

    def slow(asking: Asking) -> None:
        asking.pause(0.05)
        start = start_of(asking)
        asking.answer(listing(asking, 990_000, "".join(entry(f"x.{start + n}.1") for n in range(1000))))

    server.route("/v2/object", slow)
    running = harvester.start("target", "copy", "target", "embedded")
    wait_until(lambda: len(server.requests) > 5)
    running.send_signal(signal.SIGTERM)
    out, err = running.communicate(timeout=60)
    assert "The copy was stopped" in out + err
    assert "Traceback" not in err


def test_a_chain_without_end_costs_its_document_alone(node: tuple[HttpServer, Harvester]) -> None:
    server, harvester = node
    server.route("/v2/object", lambda asking: asking.answer(listing(asking, 1, entry("a.1.1"))))

    def chain(asking: Asking) -> None:
        pid = asking.path.rpartition("/")[2]
        found = re.fullmatch(r"a\.1\.1|next\.(\d+)\.1", pid)
        if found is None:
            return not_found(asking)
        following = f"next.{int(found[1] or 0) + 1}.1"
        return asking.answer(meta(pid, f"<obsoletedBy>{following}</obsoletedBy>"))

    server.otherwise = chain
    harvester.add_site("alder", publish(server, "a.1.2"))
    run = harvester.run(NIGHT)
    assert harvester.outcomes(1) == {"a.1.2": "upload-error"}
    assert run["status"] == "with-errors"
    assert "names more than 500 objects, each of which supersedes another, since a.1.1" in messages(harvester)
    assert len(server.requests) < 700


@pytest.mark.parametrize(
    "answer",
    [
        f'<d:objectList xmlns:d="{TYPES}" total="{LONG}"/>'.encode(),
        f'<d:objectList xmlns:d="{TYPES}" total="{"9" * 5000}"/>'.encode(),
        f'<d:objectList xmlns:d="{TYPES}" total="1">{entry("a.1.1").replace("10", "1" * 5000)}</d:objectList>'.encode(),
        f'<d:objectList xmlns:d="{TYPES}" total="1">{entry("a" * 900)}</d:objectList>'.encode(),
        f'<d:objectList xmlns:d="{TYPES}" total="-1"/>'.encode(),
    ],
    ids=["400 digits", "5000 digits", "a size of 5000 digits", "a long identifier", "negative"],
)
def test_numbers_and_names_that_are_none_become_a_sentence(node: tuple[HttpServer, Harvester], answer: bytes) -> None:
    server, harvester = node
    server.route("/v2/object", lambda asking: asking.answer(answer))
    result = harvester("target", "list")
    assert result.code != 0
    assert "did not answer as a DataONE member node does" in result.err
    assert "Traceback" not in result.err


def bomb(root: str, megabytes: int) -> bytes:
    """The smallest elements, gzipped: some kilobytes on the wire."""
    name = root.partition(" ")[0]
    return zipped(f"<{root}>{'<a/>' * (megabytes * 262_144)}</{name}>".encode())


BOMBS = {
    "system metadata": ("/v2/meta/", "systemMetadata", 200),
    "a page of a listing": ("/v2/object", 'objectList total="5"', 200),
    "an error": ("/v2/meta/", 'error name="NotFound"', 404),
    "a refusal": ("/v2/", 'error name="NotAuthorized"', 403),
}


@pytest.mark.parametrize(
    ("which", "megabytes"),
    [
        ("system metadata", 1),
        ("system metadata", 60),
        ("a page of a listing", 7),
        ("a page of a listing", 60),
        ("an error", 1),
        ("a refusal", 60),
    ],
)
def test_a_bomb_costs_little_and_holds_no_other_site_up(
    node: tuple[HttpServer, Harvester], which: str, megabytes: int
) -> None:
    server, harvester = node
    begins, root, status = BOMBS[which]
    answer = bomb(root, megabytes)

    def otherwise(asking: Asking) -> None:
        if asking.path.startswith(begins):
            asking.answer(answer, status, GZIP)
        elif asking.path.startswith("/v2/object"):
            asking.answer(listing(asking, total=0))
        else:
            not_found(asking)

    server.otherwise = otherwise
    del server._routes["/v2/object"]
    harvester.config.write_text(harvester.config.read_text() + '[sites.good.target]\nkind = "embedded"\n')
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    with GoodSite(documents=20) as good:
        harvester.add_site("good", good.list_url)
        cost = measured_run(harvester, good, "--date", NIGHT)
        assert good.is_harvested(harvester), cost
    assert (cost.peak_mb < 400, cost.gap < 8, cost.processor < 40) == (True, True, True), cost
    assert "Traceback" not in cost.err
    assert {docid: kind for docid, kind in harvester.outcomes(1).items() if docid.startswith("a.")} != {}


def test_a_listing_of_very_long_identifiers_is_given_up(
    node: tuple[HttpServer, Harvester], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, harvester = node
    monkeypatch.setattr("metaharvest.targets.dataone.listing._MOST_CHARACTERS", 1_000_000)

    def long(asking: Asking) -> None:
        start = start_of(asking)
        asking.answer(listing(asking, 10_000, "".join(entry(f"{'x' * 790}.{start + n}.1") for n in range(1000))))

    server.route("/v2/object", long)
    answer = harvester("target", "list")
    assert answer.code != 0
    assert "its identifiers have more than 1,000,000 characters" in answer.err
    assert len(server.requests) < 10


# -- Metacat


@pytest.fixture
def metacat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Metacat, Harvester]]:
    monkeypatch.setenv("METACAT_PASSWORD", "secret")
    with Metacat({USER: "secret"}) as running:
        section = f'[target]\nkind = "metacat"\nurl = "{running.url}"\nusername = "{USER}"\n'
        harvester = Harvester(tmp_path, SETTINGS + section + 'password = "env:METACAT_PASSWORD"\n')
        yield running, harvester
        harvester.close()


BLANK = b" " * 60_000
MARKUP = {
    "a user name of blanks": ("getloggedinuserinfo", b"<username>" + BLANK),
    "a version of blanks": ("getversion", b"<metacatVersion>" + BLANK),
    "messages without end": ("login", b"<message>" * 20_000),
    "errors without end": ("getrevisionanddoctype", b"<error>" * 100_000),
    "references without end": ("getrevisionanddoctype", b"<error>&#" + b"1" * 50_000 + b";</error>"),
    "a revision of many digits": ("getrevisionanddoctype", b"1" * 60_000 + b";eml"),
    "tags without end": ("insert", b"<error>" + b"<a" * 50_000),
    "a docid of blanks": ("getalldocids", b"<idList><docid>" + BLANK * 10),
    "a docid of many digits": ("getalldocids", b"<idList><docid>a_b.1." + b"1" * 9_000 + b"</docid></idList>"),
}


@pytest.mark.parametrize("which", MARKUP)
def test_answers_of_a_metacat_cost_no_time(metacat: tuple[Metacat, Harvester], server: HttpServer, which: str) -> None:
    repository, harvester = metacat
    action, answer = MARKUP[which]
    repository.on[action] = answering(answer)
    harvester.add_site("alder", publish(server, "a.1.1", "a_b.1.1"))
    began = time.monotonic()
    harvester("target", "check")
    run = harvester.run(NIGHT)
    assert time.monotonic() - began < 60
    assert run["status"] in ("succeeded", "with-errors", "failed")
    assert "unexpected" not in messages(harvester).lower()
    assert harvester.rows("SELECT count(*) FROM harvest_run WHERE ended_at IS NULL") == [(0,)]
