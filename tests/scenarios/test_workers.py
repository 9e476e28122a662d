"""The worker processes that check documents: nobody may notice them but by the time that it takes."""

from __future__ import annotations

import gzip
import json
import multiprocessing.resource_tracker
import multiprocessing.spawn
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metaharvest.harvest.limits import CheckLimits, RunLimits
from support.databases import Servers, TestDatabase
from support.eml_documents import eml as eml_of
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer
from support.waiting import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to find workers in")

DAY = "2026-11-20"
ALWAYS = RunLimits(check=CheckLimits(few=0, small=0))
"""Every document is checked by a worker."""

NEVER = RunLimits(check=CheckLimits(few=10**9, small=10**9))


_of_other_tests: set[int] = set()
"""Processes that an earlier test in this process has left: they may end later."""


def workers(parent: int | None = None) -> list[int]:
    """The process ids of the workers of this process, or of another."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            is_child = int((folder / "stat").read_text().rpartition(")")[2].split()[1]) == (parent or os.getpid())
            if is_child and b"multiprocessing.spawn" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except (OSError, ValueError, IndexError):
            continue
    return [each for each in found if each not in _of_other_tests]


def all_gone() -> bool:
    """Whether no worker is left of a run that has ended: the last of them is told to end, and waited for by nobody."""
    return not workers()


@pytest.fixture
def database(servers: Servers) -> TestDatabase:
    """What a worker does is the same for all databases."""
    return servers.test_database("sqlite")


@pytest.fixture(autouse=True)
def always(harvester: Harvester) -> None:
    harvester.limits = ALWAYS
    _of_other_tests.update(workers())


def valid(server: HttpServer, number: int, content: bytes | None = None) -> tuple[str, str]:
    docid = f"v.{number}.1"
    return docid, server.serve(f"/{docid}.xml", content or eml(docid))


def half_and_silence(asking: Asking) -> None:
    asking.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<eml:eml>")
    asking.pause(10)


def broken_off(asking: Asking) -> None:
    asking.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<eml:eml>")
    asking.end()


def large(docid: str, element: str) -> bytes:
    """A document that is not quickly checked."""
    return eml(docid).replace(b"</dataset>", f"<{element}>{'x' * 60_000}</{element}>".encode() * 2 + b"</dataset>")


def of_all_kinds(server: HttpServer) -> list[tuple[str, str]]:
    """Documents with every sort of ending, valid ones between them."""
    odd: list[tuple[str, Callable[[str], str]]] = [
        ("missing", lambda path: server.url(path)),
        ("refused", lambda path: server.serve(path, b"no", status=403)),
        ("fails", lambda path: server.serve(path, b"no", status=503)),
        ("moved", lambda path: server.redirect(path, server.serve(f"/there{path}", eml("moved.1.1")))),
        ("round", lambda path: server.redirect(path, path)),
        ("elsewhere", lambda path: server.redirect(path, "http://192.0.2.1/x")),
        ("page", lambda path: server.serve(path, b"<!DOCTYPE html><html><title>Log in</title></html>")),
        ("invalid", lambda path: server.serve(path, eml("invalid.1.1").replace(b"title", b"titel"))),
        ("torn", lambda path: server.serve(path, eml("torn.1.1")[:200])),
        ("other", lambda path: server.serve(path, eml("not.1.1"))),
        ("ids", lambda path: server.serve(path, eml_of("2.1.1", '<contact id="creator-1">', package_id="ids.1.1"))),
        ("large", lambda path: server.serve(path, large("large.1.1", "pubPlace"))),
        ("wrong", lambda path: server.serve(path, large("wrong.1.1", "nonsense"))),
        ("huge", lambda path: server.serve(path, eml("huge.1.1") + b" " * 200_000)),
        (
            "packed",
            lambda path: server.serve(path, gzip.compress(eml("packed.1.1")), headers={"Content-Encoding": "gzip"}),
        ),
        ("silent", lambda path: server.route(path, half_and_silence)),
        ("short", lambda path: server.route(path, broken_off)),
        ("empty", lambda path: server.serve(path, b"")),
    ]
    entries = [valid(server, number) for number in range(20)]
    for number, (name, publish_at) in enumerate(odd):
        entries.append((f"{name}.1.1", publish_at(f"/{name}.xml")))
        entries += [valid(server, 100 + 3 * number + more) for more in range(3)]
    return [*entries, ("v.1.2", server.serve("/v.1.2.xml", eml("v.1.2"))), ("v.1.3", server.url("/v.1.3.xml"))]


def test_what_workers_check_ends_as_what_the_run_checks_itself(
    tmp_path: Path, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row by row, byte by byte, request by request."""
    monkeypatch.setenv("METAHARVEST_HTTP__MAX_DOCUMENT_BYTES", "150000")
    monkeypatch.setenv("METAHARVEST_HTTP__READ_TIMEOUT", "3")
    monkeypatch.setenv("METAHARVEST_HTTP__DOCUMENT_DEADLINE", "20")
    url = server.serve("/list.xml", harvest_list(of_all_kinds(server)))
    log = (
        "SELECT document_id, revision, harvest_operation_code, status, outcome, target_revision, size, document_url "
        "FROM harvest_log WHERE document_id IS NOT NULL ORDER BY document_id, revision, harvest_operation_code"
    )
    details = (
        "SELECT document_id, revision, level, rule, error_message, line_number, column_number, xpath, excerpt, remedy "
        "FROM harvest_detail_log ORDER BY document_id, revision, detail_log_id"
    )
    ends = []
    for name, limits in {"alone": NEVER, "workers": ALWAYS}.items():
        (folder := tmp_path / name).mkdir()
        harvester = Harvester(folder)
        harvester.limits = limits
        harvester.add_site("site", url)
        del server.requests[:]
        [site] = harvester.run(DAY)["sites"]
        numbers = {
            name: site[name] for name in ("listed", "inserted", "updated", "access_error", "invalid", "warnings")
        }
        ledger = harvester.rows("SELECT document_id, revision, outcome, sha256 FROM harvest_document ORDER BY 1, 2")
        found = [tuple(_without_seconds(value) for value in row) for row in harvester.rows(details)]
        asked = sorted(request.path for request in server.requests)
        ends.append((numbers, ledger, harvester.rows(log), found, harvester.held(), asked))
        harvester.close()
    alone, helped = ends
    for one, other in zip(alone, helped, strict=True):
        assert one == other
    assert numbers["listed"] == numbers["inserted"] + numbers["updated"] + numbers["access_error"] + numbers["invalid"]
    assert numbers["access_error"] > 8
    assert numbers["invalid"] > 3


def _without_seconds(value: object) -> object:
    return re.sub(r"[0-9.]+ seconds", "some seconds", value) if isinstance(value, str) else value


def test_a_worker_that_is_killed_is_started_again_and_loses_nothing(harvester: Harvester, server: HttpServer) -> None:
    docids = [f"a.{number}.1" for number in range(30)]
    url = publish(server, *docids)
    killed: list[int] = []

    def kill(asking: Asking) -> None:
        killed.extend(wait_until(workers))
        for process in killed:
            os.kill(process, signal.SIGKILL)
        asking.answer(eml("a.17.1"))

    server.route("/a.17.1.xml", kill)
    harvester.add_site("site", url)
    done = harvester.run(DAY)
    assert killed
    assert (done["exit_code"], done["sites"][0]["inserted"]) == (0, 30)
    assert len(server.requests) == 1 + 30
    wait_until(all_gone)


@pytest.fixture
def killed() -> Iterator[list[int]]:
    """Every worker that has worked for longer than it takes to start is killed: these."""
    found: list[int] = []
    ended, most = threading.Event(), max(0.3, 2 * _seconds_to_start())

    def kill() -> None:
        while not ended.wait(0.01):
            for process in workers():
                if process not in found and _processor_seconds(process) > most:
                    found.append(process)
                    os.kill(process, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    yield found
    ended.set()
    thread.join()


def _seconds_to_start() -> float:
    """The processor seconds in which a process imports a worker's modules: it depends on the machine, and its load."""
    before = os.times()
    subprocess.run([sys.executable, "-c", "import metaharvest.validation.worker"], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def _processor_seconds(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def with_keywords(docid: str, number: int) -> bytes:
    """A valid document that takes long to be checked."""
    keywords = b"<keywordSet>" + b"<keyword>x</keyword>" * number + b"</keywordSet>"
    return eml(docid).replace(b"<contact>", keywords + b"<contact>")


def test_a_document_that_ends_every_worker_costs_itself_alone(
    harvester: Harvester, server: HttpServer, killed: list[int]
) -> None:
    docids = [f"a.{number}.1" for number in range(30)]
    url = publish(server, *docids)
    server.serve("/a.17.1.xml", with_keywords("a.17.1", 900_000))
    harvester.add_site("site", url)
    done = harvester.run(DAY)
    assert len(killed) >= 2
    assert (done["sites"][0]["inserted"], done["sites"][0]["access_error"]) == (29, 1)
    assert harvester.findings(1) == [("a.17", "error", "harvest.helper-lost")]
    [report] = [mail for mail in harvester.mails() if mail["To"] == "site@example.org"]
    body = report.get_body(("plain",))
    assert body is not None
    assert "ended, or hung, before it was done" in " ".join(body.get_content().split())
    # It is tried again in the next run, as anything that may pass.
    assert harvester.rows("SELECT next_attempt FROM harvest_document WHERE document_id = 'a.17'") != [(None,)]
    wait_until(all_gone)


def test_a_document_that_takes_longer_than_the_limit_costs_itself_alone(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METAHARVEST_VALIDATION__TIME_LIMIT", "0.05")
    docids = [f"a.{number}.1" for number in range(30)]
    url = publish(server, *docids)
    server.serve("/a.17.1.xml", with_keywords("a.17.1", 400_000))
    harvester.add_site("site", url)
    harvester.add_site("other", publish(server, "b.1.1", path="/other.xml"))
    done = harvester.run(DAY)
    sites = {site["site_name"]: site for site in done["sites"]}
    assert (sites["site"]["inserted"], sites["site"]["invalid"]) == (29, 1)
    assert sites["other"]["status"] == "succeeded"
    assert harvester.findings(1) == [("a.17", "error", "validation.too-expensive")]
    wait_until(all_gone)


def test_a_document_that_a_quick_worker_does_not_finish_is_checked_again_and_so_are_those_of_its_call(
    harvester: Harvester, server: HttpServer
) -> None:
    """Each of them alone, quickly; those that take too long even then, thoroughly."""
    harvester.limits = RunLimits(check=CheckLimits(few=0, small=0, large=10**9, quick_seconds=0.2))
    docids = [f"a.{number}.1" for number in range(30)]
    url = publish(server, *docids)
    slow = with_keywords("a.3.1", 400_000)

    def among_others(asking: Asking) -> None:
        """The worker has begun to start for the first by then; the others that have come wait with this one."""
        wait_until(lambda: len(server.requests) > 6)
        asking.answer(slow)

    server.route("/a.3.1.xml", among_others)
    harvester.add_site("site", url)
    done = harvester.run(DAY)
    assert (done["exit_code"], done["sites"][0]["inserted"]) == (0, 30)
    assert harvester.findings(1) == []
    assert len(server.requests) == 1 + 30
    wait_until(all_gone)


@pytest.fixture
def no_more_processes() -> Iterator[None]:
    """The system may allow no more."""
    # The process that the standard library keeps for its own use is there already.
    multiprocessing.resource_tracker.ensure_running()
    before = multiprocessing.spawn.get_executable()
    multiprocessing.spawn.set_executable("/nonexistent/python")
    yield
    multiprocessing.spawn.set_executable(before)


@pytest.mark.usefixtures("no_more_processes")
def test_without_a_worker_the_run_does_it_itself(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, *(f"a.{number}.1" for number in range(30))))
    done = harvester.run(DAY)
    assert (done["exit_code"], done["sites"][0]["inserted"]) == (0, 30)


@pytest.mark.usefixtures("no_more_processes")
@pytest.mark.parametrize("limits", [ALWAYS, NEVER])
def test_without_a_worker_nothing_is_filtered_as_nothing_could_end_it(
    harvester: Harvester, server: HttpServer, limits: RunLimits
) -> None:
    harvester.limits = limits
    (harvester.folder / "filters.xml").write_text("<filters match='any'><filter xpath='//title'/></filters>")
    options = json.dumps({"filters": "filters.xml"})
    harvester.add_site("filtered", publish(server, *(f"a.{number}.1" for number in range(30))), options=options)
    harvester.add_site("other", publish(server, *(f"b.{number}.1" for number in range(30)), path="/other.xml"))
    done = {site["site"]: site for site in harvester.run(DAY)["sites"]}
    assert (done["other"]["status"], done["other"]["inserted"]) == ("succeeded", 30)
    filtered = done["filtered"]
    assert (filtered["status"], filtered["listed"], filtered["deferred"]) == ("with-errors", 30, 30)
    assert harvester.findings(1) == [(None, "warning", "harvest.no-helper")]
    assert not any(docid.startswith("a.") for docid in harvester.held())


def test_no_more_connections_stay_open_than_a_host_may_have(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "2")
    harvester.add_site("site", publish(server, *(f"a.{number}.1" for number in range(100))))
    done = harvester.run(DAY)
    assert done["sites"][0]["inserted"] == 100
    assert server.most_connections <= 2


def test_a_list_that_comes_late_shares_the_budget_with_documents(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "2")
    first = publish(server, *(f"a.{number}.1" for number in range(100)))
    documents = [(f"b.{number}.1", server.serve(f"/b.{number}.xml", eml(f"b.{number}.1"))) for number in range(50)]

    def late(asking: Asking) -> None:
        """Only once most of the first list was fetched."""
        until = time.monotonic() + 5
        while time.monotonic() < until and len(server.requests) <= 60:
            asking.pause(0.01)
        asking.answer(harvest_list(documents))

    harvester.add_site("first", first)
    harvester.add_site("second", server.route("/late.xml", late))
    done = harvester.run(DAY)
    assert [site["inserted"] for site in done["sites"]] == [100, 50]
    assert server.most_at_once <= 2


def test_a_worker_that_hangs_is_given_up(harvester: Harvester, server: HttpServer) -> None:
    harvester.limits = RunLimits(check=CheckLimits(few=0, small=0, quick_seconds=0.5, patience=1))
    url = publish(server, *(f"a.{number}.1" for number in range(30)))
    hung: list[int] = []

    def hang(asking: Asking) -> None:
        hung.extend(wait_until(workers))
        for process in hung:
            os.kill(process, signal.SIGSTOP)
        asking.answer(eml("a.17.1"))

    server.route("/a.17.1.xml", hang)
    harvester.add_site("site", url)
    done = harvester.run(DAY)
    assert (done["exit_code"], done["sites"][0]["inserted"]) == (0, 30)
    assert hung
    wait_until(all_gone)


def test_a_run_that_is_killed_leaves_no_worker(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, *(f"a.{number}.1" for number in range(400)))
    server.route("/a.399.1.xml", lambda asking: asking.pause(60))
    server.route("/a.398.1.xml", lambda asking: asking.pause(60))
    harvester.add_site("site", url)
    run = harvester.start("run", "--date", DAY)
    try:
        started = wait_until(lambda: workers(run.pid))
        run.kill()
        run.wait()
        wait_until(lambda: not any(Path(f"/proc/{process}").exists() for process in started))
    finally:
        run.kill()
        run.communicate()


def test_a_signal_to_all_processes_loses_nothing_of_what_is_under_way(harvester: Harvester, server: HttpServer) -> None:
    """As a service manager sends it, to each of them."""
    url = publish(server, *(f"a.{number}.1" for number in range(400)))
    stop: list[int] = []

    def end_all(asking: Asking) -> None:
        for process in (*workers(run.pid), run.pid):
            os.kill(process, signal.SIGTERM)
        stop.append(1)
        asking.pause(0.3)
        asking.answer(eml("a.250.1"))

    server.route("/a.250.1.xml", end_all)
    harvester.add_site("site", url)
    run = harvester.start("run", "--date", DAY)
    out, err = run.communicate(timeout=60)
    assert stop, out + err
    assert run.returncode == 130
    assert "Traceback" not in err
    assert harvester.outcomes(1)["a.250.1"] == "inserted"
    assert set(harvester.outcomes(1).values()) == {"inserted", "deferred"}
    assert harvester.rows("SELECT count(*) FROM harvest_detail_log WHERE rule = 'harvest.helper-lost'") == [(0,)]


def test_a_document_that_needs_too_much_memory_costs_itself_alone(harvester: Harvester, server: HttpServer) -> None:
    """Its finding says that it is too expensive; the run does not try it again."""
    harvester.config.write_text(f"{harvester.config.read_text()}\n[validation]\nmemory_limit = 150\n")
    elements = "<a b='1'/>" * 450_000
    tail = f"<additionalMetadata><metadata><x>{elements}</x></metadata></additionalMetadata></eml:eml>".encode()
    large_one = eml("large.1.1").replace(b"</eml:eml>", tail)
    entries = [valid(server, number) for number in range(5)]
    entries.insert(2, ("large.1.1", server.serve("/large.1.1.xml", large_one)))
    harvester.add_site("alder", server.serve("/list.xml", harvest_list(entries)))
    run = harvester.run(DAY)
    assert run["status"] == "with-errors"
    assert set(harvester.held()) == {f"v.{number}.1" for number in range(5)}
    assert harvester.rows("SELECT rule, error_message FROM harvest_detail_log") == [
        (
            "validation.too-expensive",
            "The document could not be checked within 150 MB of memory, the most that it may take.",
        )
    ]
    assert harvester.rows("SELECT next_attempt FROM harvest_document WHERE document_id = 'large.1'") == [(None,)]
    wait_until(all_gone)
