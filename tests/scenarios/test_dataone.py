"""Harvests into a DataONE member node: GMN, a real one, through the command line.

What the node has in the end is compared byte for byte with what the sites publish.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from metaharvest.targets.dataone import listing
from support.gmn import HARVESTER, READER, MemberNode
from support.harvester import SETTINGS, Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer
from support.oai_server import OaiServer
from support.tcp_proxy import TcpProxy
from support.waiting import wait_until

SECTION = """\
[target]
kind = "dataone"
url = "{url}"
"""
MONDAY, TUESDAY, WEDNESDAY = "2026-11-16", "2026-11-17", "2026-11-18"

Install = Callable[..., Harvester]


@pytest.fixture
def install(tmp_path: Path, node: MemberNode) -> Iterator[Install]:
    """An installation whose target is the node, with a good token unless another is given, and these other keys."""
    made: list[Harvester] = []

    def installed(url: str = node.url, token: str | None = node.token(), **keys: str) -> Harvester:
        lines = [f"{name} = {value!r}" for name, value in keys.items()]
        if token is not None:
            (tmp_path / "token").write_text(token)
            (tmp_path / "token").chmod(0o600)
            lines.append("token = 'file:token'")
        made.append(Harvester(tmp_path, SETTINGS + SECTION.format(url=url) + "\n".join([*lines, ""])))
        return made[-1]

    yield installed
    for harvester in made:
        harvester.close()


def published(*docids: str) -> dict[str, bytes]:
    return {docid: eml(docid) for docid in docids}


def details(harvester: Harvester) -> list[tuple[str, str, str]]:
    """Rule, message and remedy of every finding."""
    return harvester.rows("SELECT rule, error_message, remedy FROM harvest_detail_log ORDER BY detail_log_id")


# -- nights


def test_records_that_a_repository_deletes_are_archived_in_the_node(node: MemberNode, install: Install) -> None:
    harvester = install(format_id="application/octet-stream")
    with OaiServer(records=5) as repository:
        options = ("--oai", repository.base_url, "--origin", "frogs")
        said = harvester("sites", "add", "frogs", *options)
        assert said.code == 0, said.err

        def harvest(day: str, *options: str) -> dict[str, str]:
            repository.now += timedelta(days=1)
            run = harvester.run(day, *options)
            outcomes = harvester.outcomes(run["run_id"])
            return {docid.removeprefix("frogs/oai_dc/oai:test:"): outcome for docid, outcome in outcomes.items()}

        def archived() -> dict[str, bool]:
            stored = node.stored().items()
            return {pid.removeprefix("frogs/oai_dc/oai:test:"): each.archived for pid, each in stored}

        first = harvest("2030-01-01")
        assert first == {f"{number}.1": "inserted" for number in range(1, 6)}
        repository.put("oai:test:2", title="Toads")
        repository.delete("oai:test:2")
        repository.delete("oai:test:3")
        repository.put("oai:test:4", title="Newts")
        second = harvest("2030-01-02")
        assert sorted(second.values()) == ["deleted", "deleted", "updated"]
        assert archived() == {"1.1": False, "2.1": True, "3.1": True, "4.1": False, "4.2": False, "5.1": False}

        # Nothing is done twice; and what comes back is there again, as a revision of its own.
        assert harvest("2030-01-03", "--site", "frogs", "--full") == {}
        repository.put("oai:test:3", title="Frogs again")
        assert harvest("2030-01-04") == {"3.2": "inserted"}
        held = archived()
        assert (held["3.1"], held["3.2"]) == (True, False)
        assert b"Frogs again" in node.stored()["frogs/oai_dc/oai:test:3.2"].content
        assert harvester("target", "list").code == 0
        assert details(harvester) == []


def test_deletions_that_were_made_are_not_made_again_after_the_listing_was_read(
    node: MemberNode, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node lists its archived objects like others."""
    monkeypatch.setattr(listing, "_FEW", 0)
    harvester = install(format_id="application/octet-stream")
    with OaiServer(records=4) as repository:
        harvester("sites", "add", "frogs", "--oai", repository.base_url, "--origin", "frogs")

        def harvest(day: int, *options: str) -> dict[str, str]:
            repository.now += timedelta(days=1)
            run = harvester.run(f"2030-01-{day:02}", *options)
            outcomes = harvester.outcomes(run["run_id"])
            return {docid.removeprefix("frogs/oai_dc/oai:test:"): outcome for docid, outcome in outcomes.items()}

        full = ("--site", "frogs", "--full")
        harvest(1)
        repository.put("oai:test:2", title="Toads")
        harvest(2)
        repository.delete("oai:test:2")
        repository.delete("oai:test:3")
        assert sorted(harvest(3).values()) == ["deleted", "deleted"]
        assert harvest(4, *full) == {}

        # The content of the deleted revision comes back, and is deleted again.
        repository.put("oai:test:2", title="Toads")
        assert harvest(5) == {"2.3": "inserted"}
        assert harvest(6, *full) == {}
        repository.delete("oai:test:2")
        assert harvest(7) == {"2.3": "deleted"}
        assert harvest(8, *full) == {}
    archived = {pid.rpartition(":")[2] for pid, each in node.stored().items() if each.archived}
    assert archived == {"2.2", "2.3", "3.1"}
    assert details(harvester) == []


def test_records_of_other_formats_are_found_again_on_a_large_node(
    node: MemberNode, install: Install, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such a node is not listed whole, but format by format."""
    monkeypatch.setattr(listing, "_FEW", 0)
    monkeypatch.setattr(listing, "_WHOLE", 0)
    node.put("data.1.1", b"1, 2, 3", format_id="text/csv")
    harvester = install()
    with harvester.config.open("a") as settings:
        settings.write(f'[targets.copy]\nkind = "folder"\nfolder = "{tmp_path / "copy"}"\n')
    with OaiServer(records=3) as repository:
        harvester("sites", "add", "frogs", "--oai", repository.base_url, "--origin", "frogs")
        first = harvester.run("2030-01-01")
        assert set(harvester.outcomes(first["run_id"]).values()) == {"inserted"}
        again = harvester.run("2030-01-02", "--site", "frogs", "--full")
        assert (again["sites"][0]["unchanged"], node.number()) == (3, 1 + 3)
        said = harvester("target", "copy", "target", "copy")
        assert (said.code, len(list((tmp_path / "copy").rglob("*.xml")))) == (0, 3), said.out + said.err
        repository.now += timedelta(days=3)
        repository.delete("oai:test:3")
        harvester.run("2030-01-03", "--site", "frogs", "--full")
    assert [pid for pid, each in node.stored().items() if each.archived] == ["frogs/oai_dc/oai:test:3.1"]
    listed = harvester("target", "list").out
    assert ("oai:test:1" in listed, "data.1" in listed) == (True, False)


def test_a_first_harvest_and_the_nights_after_it(server: HttpServer, node: MemberNode, install: Install) -> None:
    harvester = install()
    url = publish(server, "alder.1.1", "alder.2.3", "alder.3.1", "alder.4.7")
    harvester.add_site("alder", url)

    first = harvester.run(MONDAY)
    assert set(harvester.outcomes(first["run_id"]).values()) == {"inserted"}
    assert node.held() == published("alder.1.1", "alder.2.3", "alder.3.1", "alder.4.7")
    for pid, stored in node.stored().items():
        assert (stored.series_id, stored.obsoletes) == (pid.rpartition(".")[0], None)
        assert stored.format_id == "eml://ecoinformatics.org/eml-2.1.1"

    second = harvester.run(TUESDAY)
    assert (second["status"], second["sites"][0]["unchanged"]) == ("succeeded", 4)
    assert node.held() == published("alder.1.1", "alder.2.3", "alder.3.1", "alder.4.7")

    # Raised, skipped, unchanged, gone back, new.
    publish(server, "alder.1.2", "alder.2.9", "alder.3.1", "alder.4.5", "alder.5.1")
    third = harvester.run(WEDNESDAY)
    assert harvester.outcomes(third["run_id"]) == {
        "alder.1.2": "updated",
        "alder.2.9": "updated",
        "alder.4.5": "stale",
        "alder.5.1": "inserted",
    }
    assert node.held() == published(
        "alder.1.1", "alder.1.2", "alder.2.3", "alder.2.9", "alder.3.1", "alder.4.7", "alder.5.1"
    )
    assert node.stored()["alder.2.9"].obsoletes == "alder.2.3"
    assert node.stored()["alder.2.9"].series_id == "alder.2"


def test_several_revisions_in_one_list_become_one_series(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    harvester = install()
    harvester.add_site("alder", publish(server, "alder.1.3", "alder.1.1", "alder.1.10"))
    run = harvester.run(MONDAY)
    assert harvester.outcomes(run["run_id"]) == {
        "alder.1.1": "inserted",
        "alder.1.3": "updated",
        "alder.1.10": "updated",
    }
    assert node.held() == published("alder.1.1", "alder.1.3", "alder.1.10")
    assert node.stored()["alder.1.10"].obsoletes == "alder.1.3"


def test_what_was_there_before_without_a_series_id_or_with_another_is_gone_on_with(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    node.put("alder.1.1", eml("alder.1.1"))
    node.put("alder.2.1", eml("alder.2.1"))
    node.put("alder.2.2", eml("alder.2.2"), supersedes="alder.2.1")
    node.put("alder.3.1", eml("alder.3.1"), series_id="doi:10.5072/alder3")
    node.put("alder.4.1", eml("alder.4.1"))
    node.put("urn:uuid:4", b"<moved/>", supersedes="alder.4.1", format_id="text/xml")
    harvester = install()
    harvester.add_site("alder", publish(server, "alder.1.2", "alder.2.2", "alder.3.5", "alder.4.2"))
    run = harvester.run(MONDAY)
    assert harvester.outcomes(run["run_id"]) == {
        "alder.1.2": "updated",
        "alder.3.5": "updated",
        "alder.4.2": "updated",
    }
    stored = node.stored()
    assert [(stored[pid].obsoletes, stored[pid].series_id) for pid in ("alder.1.2", "alder.3.5", "alder.4.2")] == [
        ("alder.1.1", "alder.1"),
        ("alder.3.1", "doi:10.5072/alder3"),
        ("urn:uuid:4", "alder.4"),
    ]
    assert harvester.run(TUESDAY)["sites"][0]["unchanged"] == 4
    assert len(node.stored()) == 9


def test_documents_in_any_encoding_arrive_as_they_are(server: HttpServer, node: MemberNode, install: Install) -> None:
    def in_german(docid: str, encoding: str) -> bytes:
        return eml(docid, "Ärger").replace(b"UTF-8", encoding.encode()).decode().encode(encoding)

    documents = {
        "alder.1.1": in_german("alder.1.1", "ISO-8859-1"),
        "alder.2.1": eml("alder.2.1", "Ärger").decode().replace("UTF-8", "UTF-16").encode("utf-16"),
        "alder.3.1": in_german("alder.3.1", "windows-1252"),
        "alder.4.1": eml("alder.4.1").replace(
            b"eml://ecoinformatics.org/eml-2.1.1", b"https://eml.ecoinformatics.org/eml-2.2.0"
        ),
    }
    for docid, content in documents.items():
        server.serve(f"/{docid}.xml", content)
    server.serve("/list.xml", harvest_list((docid, server.url(f"/{docid}.xml")) for docid in documents))
    harvester = install()
    harvester.add_site("alder", server.url("/list.xml"))
    harvester.run(MONDAY)
    assert node.held() == documents
    assert {pid: each.format_id for pid, each in node.stored().items()} == {
        **dict.fromkeys(list(documents)[:3], "eml://ecoinformatics.org/eml-2.1.1"),
        "alder.4.1": "https://eml.ecoinformatics.org/eml-2.2.0",
    }


# -- what the node does not take


def test_what_the_node_refuses_is_told_with_its_own_words(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    old = b"eml://ecoinformatics.org/eml-2.0.1"
    server.serve("/old.xml", eml("alder.1.1").replace(b"eml://ecoinformatics.org/eml-2.1.1", old))
    server.serve("/list.xml", harvest_list([("alder.1.1", server.url("/old.xml"))], old.decode()))
    harvester = install()
    harvester.add_site("alder", server.url("/list.xml"))
    run = harvester.run(MONDAY)
    ((rule, message, remedy),) = details(harvester)
    assert harvester.outcomes(run["run_id"]) == {"alder.1.1": "upload-error"}
    assert rule == "target.refused"
    assert message.startswith(
        "The repository refused alder.1.1: InvalidRequest: Unable to create lxml schema validator"
    )
    assert remedy.startswith("The repository cannot check documents of this version of EML, good or bad.")
    assert node.stored() == {}


def test_a_checksum_that_the_node_does_not_know(server: HttpServer, node: MemberNode, install: Install) -> None:
    harvester = install(checksum_algorithm="SHA-256")
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.run(MONDAY)
    ((_, message, remedy),) = details(harvester)
    assert "InvalidSystemMetadata: Checksum algorithm is unsupported" in message
    assert remedy.startswith("The administrator should set checksum_algorithm in the target's settings")
    assert node.stored() == {}


# -- logins


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("wrong", "session_subjects"),
        ("expired", "expired on"),
        ("reader", f'session_subjects="{READER} (primary), public"'),
        ("none", 'session_subjects="public (primary)"'),
    ],
)
def test_a_login_that_the_node_refuses_fails_the_site_and_uploads_nothing(
    server: HttpServer, node: MemberNode, install: Install, token: str, words: str
) -> None:
    tokens = {
        "wrong": f"{node.token()[:-20]}{'A' * 20}",
        "expired": node.token(expires_in=-60),
        "reader": node.token(READER),
        "none": None,
    }
    harvester = install(token=tokens[token], rights_holder=HARVESTER)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    run = harvester.run(MONDAY)
    ((reason,),) = harvester.rows("SELECT failure_reason FROM harvest_site_run")
    assert (run["status"], run["exit_code"]) == ("failed", 3)
    assert words in reason
    assert node.stored() == {}
    assert not [request for request in server.requests if request.path == "/alder.1.1.xml"]
    said = harvester("doctor")
    assert "PROBLEM  target: " in said.out
    for secret in filter(None, (tokens[token],)):
        mails = "".join(mail.as_string() for mail in harvester.mails())
        assert secret not in said.out + said.err + reason + mails


def test_a_node_that_trusts_everybody(server: HttpServer, node: MemberNode, install: Install) -> None:
    harvester = install(node.open_url, token=None, rights_holder=HARVESTER)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    assert harvester.run(MONDAY)["status"] == "succeeded"
    assert node.held() == published("alder.1.1")


def client_certificate(authority: trustme.CA, folder: Path, **dates: object) -> None:
    certificate = authority.issue_cert(
        "harvester@example.org",
        common_name="harvester",
        organization_name="Example",
        organization_unit_name="Network",
        **dates,  # type: ignore[arg-type]
    )
    certificate.cert_chain_pems[0].write_to_path(str(folder / "client.pem"))
    certificate.private_key_pem.write_to_path(str(folder / "client.key"))


OF_CERTIFICATE = "CN=harvester,OU=Network,O=Example"


def test_a_client_certificate(server: HttpServer, node: MemberNode, install: Install, tmp_path: Path) -> None:
    keys = {"certificate": "client.pem", "key": "client.key", "ca_file": str(node.ca_file)}
    client_certificate(node.authority, tmp_path)
    node.allow(OF_CERTIFICATE)
    harvester = install(node.encrypted(), token=None, rights_holder=OF_CERTIFICATE, **keys)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.run(MONDAY)
    assert node.held() == published("alder.1.1")
    publish(server, "alder.1.2")
    harvester.run(TUESDAY)
    assert node.held() == published("alder.1.1", "alder.1.2")


def test_a_client_certificate_that_has_expired(
    server: HttpServer, node: MemberNode, install: Install, tmp_path: Path
) -> None:
    keys = {"certificate": "client.pem", "key": "client.key", "ca_file": str(node.ca_file)}
    then = datetime(2020, 1, 1, tzinfo=UTC)
    client_certificate(node.authority, tmp_path, not_before=then, not_after=then + timedelta(days=9))
    harvester = install(node.encrypted(), token=None, rights_holder=OF_CERTIFICATE, **keys)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    run = harvester.run(MONDAY)
    assert (run["exit_code"], harvester.outcomes(run["run_id"])) == (3, {"alder.1.1": "deferred"})
    assert "does not accept the harvester's certificate: it has expired." in harvester("doctor").out
    assert node.stored() == {}


# -- nodes that go away


def test_a_node_that_is_away_defers_everything_and_has_it_the_next_night(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    docids = [f"alder.{number}.1" for number in range(1, 9)]
    harvester = install()
    harvester.add_site("alder", publish(server, *docids))
    node.kill()
    run = harvester.run(MONDAY)
    assert set(harvester.outcomes(run["run_id"]).values()) == {"deferred"}
    (away,) = run["targets_away"]
    assert away.startswith(f"The DataONE member node at 127.0.0.1:{node.port} stopped answering: {node.url}/object did")
    assert run["exit_code"] == 3
    node.start()
    harvester.run(TUESDAY)
    assert node.held() == published(*docids)


def half_published(server: HttpServer, docids: list[str]) -> tuple[str, threading.Event]:
    """A list of these documents; the server keeps the second half of them back until the event is set."""
    release = threading.Event()

    def late(asking: Asking) -> None:
        release.wait(60)
        asking.answer(eml(asking.path.removeprefix("/").removesuffix(".xml")))

    url = publish(server, *docids)
    for docid in docids[len(docids) // 2 :]:
        server.route(f"/{docid}.xml", late)
    return url, release


def test_a_node_that_is_killed_in_the_middle_and_comes_back(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    docids = [f"alder.{number}.1" for number in range(10, 24)]
    harvester = install(uploads_at_once="2")
    url, release = half_published(server, docids)
    harvester.add_site("alder", url)
    running = harvester.start("run", "--date", MONDAY)
    wait_until(lambda: node.number() >= 4)
    node.kill()
    release.set()
    running.communicate(timeout=60)
    node.start()
    there = node.held()
    assert 0 < len(there) < len(docids)
    harvester.run(TUESDAY)
    assert node.held() == published(*docids)


def test_a_run_that_is_killed_in_the_middle_is_gone_on_with(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    docids = [f"alder.{number}.1" for number in range(10, 24)]
    harvester = install()
    url, release = half_published(server, docids)
    harvester.add_site("alder", url)
    running = harvester.start("run", "--date", MONDAY)
    wait_until(lambda: node.number() >= 4)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate(timeout=60)
    release.set()
    harvester.run(TUESDAY)
    assert node.held() == published(*docids)
    outcomes = harvester.rows("SELECT outcome, COUNT(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY outcome")
    assert outcomes == [("inserted", len(docids))]


def test_a_login_that_ends_in_the_middle_defers_the_rest_and_has_it_the_next_night(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    docids = [f"alder.{number}.1" for number in range(10, 30)]
    harvester = install()
    url, release = half_published(server, docids)
    harvester.add_site("alder", url, updatefrequency=1, unit="months")
    try:
        running = harvester.start("run", "--date", MONDAY)
        wait_until(lambda: node.number() == 10)
        node.forbid(HARVESTER)
        release.set()
        running.communicate(timeout=60)
    finally:
        node.allow(HARVESTER)
    assert running.returncode == 3
    assert Counter(harvester.outcomes(1).values()) == {"inserted": 10, "deferred": 10}
    ((message,),) = harvester.rows("SELECT message FROM harvest_log WHERE harvest_operation_code = 'TargetError'")
    assert "does not let the harvester create documents" in message
    run = harvester.run(TUESDAY)
    assert (run["status"], run["sites"][0]["inserted"]) == ("succeeded", 10)
    assert node.held() == published(*docids)


@pytest.mark.parametrize("lost", ["every", "every other"])
def test_answers_that_are_lost_after_the_work_was_done_cost_nothing(
    server: HttpServer, node: MemberNode, install: Install, lost: str
) -> None:
    """The node is asked what it has: nothing is sent twice, and nothing is put off."""
    numbers = itertools.count()

    def loses(first: bytes) -> bool:
        return _is_upload(first) and (lost == "every" or next(numbers) % 2 == 0)

    with TcpProxy("127.0.0.1", node.port, loses) as proxy:
        harvester = install(f"http://127.0.0.1:{proxy.port}/v2")
        docids = [f"alder.{number}.1" for number in range(1, 7)]
        harvester.add_site("alder", publish(server, *docids))
        first = harvester.run(MONDAY)
        assert (first["status"], first["sites"][0]["inserted"]) == ("succeeded", 6)
        later = [f"alder.{number}.2" for number in range(1, 7)]
        publish(server, *later)
        second = harvester.run(TUESDAY)
        assert (second["status"], second["sites"][0]["updated"]) == ("succeeded", 6)
    assert node.held() == published(*docids, *later)


def test_a_node_that_answers_no_question_after_an_upload_is_asked_the_next_night(
    server: HttpServer, node: MemberNode, install: Install
) -> None:
    """Then it is not known whether a document arrived: it did, and the next night says so."""
    cut = threading.Event()

    def loses(first: bytes) -> bool:
        if _is_upload(first):
            cut.set()
        return cut.is_set()

    with TcpProxy("127.0.0.1", node.port, loses) as proxy:
        harvester = install(f"http://127.0.0.1:{proxy.port}/v2")
        harvester.add_site("alder", publish(server, "alder.1.1"))
        first = harvester.run(MONDAY)
        assert harvester.outcomes(first["run_id"]) == {"alder.1.1": "deferred"}
    assert node.held() == published("alder.1.1")
    proxied = harvester.config.read_text().replace(f"127.0.0.1:{proxy.port}", f"127.0.0.1:{node.port}")
    harvester.config.write_text(proxied)
    second = harvester.run(TUESDAY)
    assert harvester.outcomes(second["run_id"]) == {"alder.1.1": "inserted"}
    assert ("alder.1", "warning", "target.unconfirmed") in harvester.findings(second["run_id"])
    assert node.held() == published("alder.1.1")


def _is_upload(request: bytes) -> bool:
    """Whether a document is sent, not the creation of nothing that tells what we may do."""
    length = re.search(rb"Content-Length: (\d+)", request)
    return request.startswith((b"POST", b"PUT")) and length is not None and int(length[1]) > 1000


# -- the commands


def test_the_commands_look_into_the_node(
    server: HttpServer, node: MemberNode, install: Install, tmp_path: Path
) -> None:
    harvester = install()
    harvester.add_site("alder", publish(server, "alder.1.1", "alder.1.2", "alder.2.1"))
    harvester.run(MONDAY)
    listed = harvester("target", "list").out
    assert ("alder.1.2" in listed, "alder.2.1" in listed, "alder.1.1" in listed) == (True, True, False)
    assert f"{node.url}/object/alder.1.1" in harvester("target", "show", "alder.1").out
    assert harvester("target", "get", "alder.1.1", "-o", str(tmp_path / "got.xml")).code == 0
    assert (tmp_path / "got.xml").read_bytes() == eml("alder.1.1")
    said = harvester("doctor").out
    assert "urn:node:mnMetaharvest (A node for tests). It lists 3 objects to us." in said
    assert f"The token is that of {HARVESTER}; it expires on" in said
    assert f"We may create documents there. They will belong to {HARVESTER}." in said


def test_a_withdrawn_document_is_archived_and_what_the_node_keeps_is_said(
    install: Install, node: MemberNode, server: HttpServer
) -> None:
    harvester = install()
    harvester.add_site("elm", publish(server, "w.1.1", "w.2.1"))
    harvester.run(MONDAY)
    said = harvester("target", "withdraw", "w.1", "--reason", "a person objects", "--erase", "--yes")
    assert said.code == 0, said.err
    assert "deleted; it keeps the bytes of what it deletes: ask its operator to remove them." in said.out
    run = harvester.run(TUESDAY)
    assert harvester.outcomes(run["run_id"]) == {"w.1.1": "filtered"}
    assert {pid: each.archived for pid, each in node.stored().items()} == {"w.1.1": True, "w.2.1": False}


def test_a_check_after_a_withdrawal_does_not_read_the_listing_of_the_node(
    install: Install, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvester = install()
    harvester.add_site("elm", publish(server, "w.1.1", "w.2.1"))
    harvester.run(MONDAY)
    assert harvester("target", "withdraw", "w.1", "--reason", "a person objects", "--yes").code == 0
    monkeypatch.delattr(listing.NodeListing, "_read")
    assert "No problem, 1 warning" in harvester("target", "check").out
