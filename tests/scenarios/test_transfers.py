"""Documents that belong to another site from now on: one, several, a whole scope; who is told what."""

from __future__ import annotations

import getpass
import json
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Event, Thread
from unittest.mock import DEFAULT, Mock

import pytest
from sqlalchemy import text, update

from metaharvest.database.engine import readers, writers
from metaharvest.database.models import HarvestRun
from metaharvest.errors import MetaharvestError, TargetError
from metaharvest.harvest.run import RunRequest
from metaharvest.model import Action, Deletion, Finding
from metaharvest.services import documents
from metaharvest.services.documents import Transfer, TransferRequest, transfer
from metaharvest.targets import owners as owners_outside
from metaharvest.targets.base import Upload
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.owners import give
from metaharvest.targets.transfers import Receiving, Taken
from support.catalogue import upload
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.mails import words_of
from support.remote_target import RemoteTarget, Repository

SCOPE = [f"knb-lter-gce.{number}.1" for number in range(1, 6)]
OTHERS = ["knb-lter-gce-old.1.1", "knb-lter-gce.archive.1.1", "knb.7.1"]
BY = getpass.getuser()


@pytest.fixture
def network(harvester: Harvester, server: HttpServer) -> Harvester:
    """Two sites, harvested once: gce lists everything, fern nothing of it."""
    harvester.add_site("gce", publish(server, *SCOPE, *OTHERS, path="/gce.xml"))
    harvester.add_site("fern", publish(server, "fern.1.1", path="/fern.xml"))
    harvester.run("2026-11-20")
    return harvester


def owners(harvester: Harvester) -> dict[str, str]:
    sql = (
        "SELECT r.document_id, s.name FROM document_revision r JOIN harvest_site_schedule s "
        "ON s.site_schedule_id = r.site_schedule_id"
    )
    return dict(harvester.rows(sql))


def test_a_whole_scope_is_transferred_at_once_and_nothing_else(network: Harvester) -> None:
    said = network("target", "transfer", "--scope", "knb-lter-gce", "fern")
    assert said.out.startswith("5 documents belong to fern from now on.\n")
    assert "should take them out of their lists: gce (5)." in said.out
    mine = {docid.rpartition(".")[0] for docid in SCOPE}
    assert {document_id for document_id, site in owners(network).items() if site == "fern"} == {"fern.1", *mine}
    sql = "SELECT document_id, from_site, to_site, transferred_by, run_id FROM document_transfer ORDER BY transfer_id"
    assert network.rows(sql) == [(document_id, "gce", "fern", BY, 1) for document_id in sorted(mine)]
    again = network("target", "transfer", "--scope", "knb-lter-gce", "fern")
    assert again.out == "0 documents belong to fern from now on. 5 documents belong to it already.\n"


def test_a_large_transfer_is_committed_in_parts(network: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of a transfer that ended early is transferred by the same command."""
    monkeypatch.setattr(documents, "_IN_A_TRANSACTION", 2)
    with monkeypatch.context() as patch:
        given = Mock(side_effect=[DEFAULT, DEFAULT, MetaharvestError("The target is away.")], wraps=give)
        patch.setattr(documents, "give", given)
        assert network("target", "transfer", "--scope", "knb-lter-gce", "fern").code == 2
    assert sum(site == "fern" for site in owners(network).values()) == 1 + 4
    again = network("target", "transfer", "--scope", "knb-lter-gce", "fern")
    assert again.out.startswith("1 document belongs to fern from now on. 4 documents belong to it already.")


def test_several_documents_and_a_file_of_them_are_transferred_or_none(network: Harvester) -> None:
    file = network.folder / "moved.txt"
    # As editors on Windows write it, with a byte order mark.
    file.write_text("knb.7   # the last one\n\nknb-lter-gce.2.1\n# that is all\n", encoding="utf-8-sig", newline="\r\n")
    said = network("target", "transfer", "--from-file", str(file), "knb-lter-gce.1", "knb.8", "x.9", "fern")
    assert said.code == 2
    assert "The target does not have 2 of these 5 documents: knb.8, x.9." in said.err
    assert "fern" not in {site for document_id, site in owners(network).items() if document_id != "fern.1"}
    assert network.rows("SELECT count(*) FROM document_transfer") == [(0,)]
    said = network("target", "transfer", "--from-file", str(file), "knb-lter-gce.1", "fern", "--json")
    assert json.loads(said.out)["documents"] == [
        {"document_id": document_id, "from_site": "gce", "to_site": "fern", "transferred": True}
        for document_id in ("knb-lter-gce.1", "knb.7", "knb-lter-gce.2")
    ]


def test_a_rehearsed_transfer_changes_nothing(network: Harvester) -> None:
    before = owners(network)
    said = network("target", "transfer", "--scope", "knb-lter-gce", "--dry-run", "fern")
    assert said.out.startswith("5 documents would belong to fern from now on.\n")
    assert said.out.endswith("nothing was changed.\n")
    assert owners(network) == before
    assert network.rows("SELECT count(*) FROM document_transfer") == [(0,)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fern",), "Name the documents to transfer"),
        (("--scope", "nothing", "fern"), "no document of the scope 'nothing'"),
        (("--scope", "knb-lter-gce", "nobody"), "There is no site named 'nobody'"),
        (("--from-file", "empty.txt", "fern"), "names no document"),
        (("--from-file", "bytes.txt", "fern"), "is not UTF-8 text"),
    ],
)
def test_what_cannot_be_meant_is_told(
    network: Harvester, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], sentence: str
) -> None:
    monkeypatch.chdir(network.folder)
    Path("empty.txt").write_text("# nothing\n")
    Path("bytes.txt").write_bytes(b"\xff\xfe")
    said = network("target", "transfer", *arguments)
    assert said.code == 2
    assert sentence in said.err
    assert network.rows("SELECT count(*) FROM document_transfer") == [(0,)]


def test_the_former_site_is_told_whose_the_document_is_by_now(network: Harvester, server: HttpServer) -> None:
    network.add_site("gale", publish(server, "gale.1.1", path="/gale.xml"))
    for site in ("fern", "gale"):
        network("target", "transfer", "knb.7", site)
    network.rows("UPDATE document_transfer SET transferred_on = '2026-11-20' WHERE to_site = 'fern'")
    network.rows("UPDATE document_transfer SET transferred_on = '2026-11-21' WHERE to_site = 'gale'")
    network.run("2026-11-22", "--site", "gce")
    report = [words_of(mail) for mail in network.mails() if mail["To"] == "gce@example.org"]
    told = "knb.7 was transferred from this site: it has belonged to the site 'gale' since 2026-11-21."
    assert any(told in text and "Take it out of your list: 'gale' publishes it now." in text for text in report)
    network("target", "transfer", "knb.7", "gce")
    outcomes = {site["site_name"]: site for site in network.run("2026-11-23", "--site", "gce")["sites"]}
    assert (outcomes["gce"]["unchanged"], outcomes["gce"]["upload_error"]) == (8, 0)


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_run_that_is_under_way_does_not_take_back_a_transferred_document(network: Harvester) -> None:
    """A commit of the run waits for the transfer, and then finds that the document belongs to the other site."""
    to = Receiving(2, "fern", "kim", date(2026, 11, 20), datetime(2026, 11, 20, tzinfo=UTC))
    target, said = EmbeddedTarget(readers(network.engine)), list[str]()

    def commit_of_the_run() -> None:
        try:
            with writers(network.engine).begin() as session:
                session.execute(update(HarvestRun).values(host="this"))
                target.upload([replace(upload("knb.7.99"), site_id=1)], session)
            said.append("stored")
        except TargetError as error:
            said.append(error.findings[0].rule)

    run = Thread(target=commit_of_the_run)
    with writers(network.engine).begin() as session:
        give(session, target, [Taken("knb.7", 1, "gce")], to)
        run.start()
        run.join(1)
        assert not said
    run.join(30)
    assert said == ["target.other-site"]
    owner = "SELECT site_schedule_id FROM {} WHERE document_id = 'knb.7'"
    assert {*network.rows(owner.format("catalogue_document"))} == {*network.rows(owner.format("document_revision"))}


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("is_first", "deletes"), [("the transfer", False), ("the worker", False), ("the transfer", True)]
)
def test_a_worker_does_not_take_back_a_transferred_document(network: Harvester, is_first: str, deletes: bool) -> None:
    """A worker leaves the row of the run alone. It writes or deletes the document, and writes a row of the log."""
    network.rows("UPDATE harvest_run SET distributed = TRUE")
    to = Receiving(2, "fern", "kim", date(2026, 11, 20), datetime(2026, 11, 20, tzinfo=UTC))
    target, said = EmbeddedTarget(readers(network.engine)), list[str]()
    columns = "harvest_date, logged_at, status, message, harvest_operation_code, run_id"
    log = f"INSERT INTO harvest_log ({columns}) SELECT {columns} FROM harvest_log LIMIT 1"

    def commit(first: Event, second: Event) -> None:
        try:
            with writers(network.engine).begin() as session:
                if deletes:
                    document = upload("knb.7.99").fetched.document
                    target.delete(Deletion(document, 1, datetime(2026, 11, 20, tzinfo=UTC)), session)
                else:
                    target.upload([replace(upload("knb.7.99"), site_id=1)], session)
                first.set()
                second.wait(1)
                session.execute(text(log))
            said.append("stored")
        except TargetError as error:
            said.append(error.findings[0].rule)

    stored, transferred = Event(), Event()
    worker = Thread(target=commit, args=(stored, transferred))
    if is_first == "the worker":
        worker.start()
        assert stored.wait(30)
    with writers(network.engine).begin() as session:
        give(session, target, [Taken("knb.7", 1, "gce")], to)
        if is_first == "the transfer":
            worker.start()
            worker.join(1)
            assert not said
    transferred.set()
    worker.join(30)
    assert said == ["target.other-site" if is_first == "the transfer" else "stored"]
    found = network.rows("SELECT site_schedule_id, deleted FROM catalogue_document WHERE document_id = 'knb.7'")
    assert found == [(2, False)]


@pytest.mark.slow
@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_of_two_workers_one_alone_sends_a_new_document(network: Harvester) -> None:
    pending = (
        "INSERT INTO harvest_document (site_schedule_id, document_id, revision, document_url, document_type, state, "
        "attempts, to_delete, pending_sha256) VALUES (:site, 'a.1', 1, '', '', 'pending', 0, FALSE, 'x')"
    )
    said = list[str | None]()

    def mark(site_id: int, noted: Event, seconds: float) -> None:
        with writers(network.engine).begin() as session:
            owners_outside.wait_for_senders(session, "a.1", site_id)
            said.append(owners_outside.other_sender(session, "a.1", [site_id]))
            if said[-1] is None:
                session.execute(text(pending), {"site": site_id})
            noted.set()
            time.sleep(seconds)

    noted = Event()
    first = Thread(target=mark, args=(1, noted, 1))
    first.start()
    assert noted.wait(30)
    mark(2, Event(), 0)
    first.join(30)
    assert said == [None, "gce"]
    assert network.rows("SELECT count(*) FROM document_owner") == [(0,)]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_transfer_before_the_first_run_is_logged_and_told(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("fern", "https://fern.example.org/list.xml", enabled=False)
    harvester.add_site("gce", publish(server, "knb.7.2", path="/gce.xml"))
    with Repository() as repository:
        repository.documents |= {"knb.7.1": b"<old/>", "knb.8.1": b"<old/>", "x.1.1": b"<old/>"}
        with harvester.opened(target=RemoteTarget(repository.url)) as opened:
            transfer(opened, TransferRequest(("knb.7",), "gce", "kim"))
            moved = transfer(opened, TransferRequest((), "fern", "kim", ("knb",)))
            assert [each.former for each in moved] == ["gce", None]
            assert transfer(opened, TransferRequest(("knb.8", "knb.7.1"), "fern")) == [
                Transfer("knb.8", None, "fern", done=False),
                Transfer("knb.7", 1, "fern", done=False),
            ]
            with pytest.raises(MetaharvestError, match=r"does not have 1 of these 2 documents: x\.2\."):
                transfer(opened, TransferRequest(("x.2", "x.1"), "fern"))
    message = "knb.7 was transferred from the site 'gce' to the site 'fern' by kim."
    for arguments in (("--document", "knb.7"), ("--document", "knb.7.1"), ("--site", "fern", "--since", "2020-01-01")):
        logged = json.loads(harvester("log", *arguments, "--json").out)
        assert message in [row["message"] for row in logged], arguments
    assert {row["run_id"] for row in json.loads(harvester("log", "--json").out)} == {None}
    assert message in harvester("log", "--csv", "--document", "knb.7").out
    assert json.loads(harvester("log", "--document", "knb.7", "--level", "warning", "--json").out) == []
    shown = json.loads(harvester("documents", "show", "knb.7", "--json").out)
    assert [(each["from_site"], each["to_site"], each["transferred_by"]) for each in shown["transfers"]] == [
        (None, "gce", "kim"),
        ("gce", "fern", "kim"),
    ]
    assert shown["owners"] == [{"repository": "other", "site": "fern", "site_id": 1, "registered": True}]


@pytest.mark.parametrize("is_pending", [True, False], ids=["pending", "under way"])
def test_an_upload_of_the_former_site_does_not_take_a_document_back(
    harvester: Harvester, server: HttpServer, is_pending: bool
) -> None:
    harvester.add_site("gce", publish(server, "knb.7.1", path="/gce.xml"))
    harvester.add_site("fern", publish(server, "fern.1.1", path="/fern.xml"))

    class Slow(RemoteTarget):
        def upload(self, upload: Upload) -> Action:
            action = super().upload(upload)
            if upload.fetched.document.docid == "knb.7.2" and is_pending:
                raise TargetError(Finding("target.away", "The answer is lost.", "Wait."), transient=True)
            if upload.fetched.document.docid == "knb.7.2":
                transfer(opened, TransferRequest(("knb.7",), "fern", "kim"))
            return action

    with Repository() as repository, harvester.opened(target=Slow(repository.url)) as opened:
        opened.run(RunRequest(date(2026, 11, 20)))
        publish(server, "knb.7.2", path="/gce.xml")
        opened.run(RunRequest(date(2026, 11, 21), ("gce",)))
        if is_pending:
            transfer(opened, TransferRequest(("knb.7",), "fern", "kim"))
        opened.run(RunRequest(date(2026, 11, 22)))
        publish(server, "fern.1.1", "knb.7.3", path="/fern.xml")
        run = opened.run(RunRequest(date(2026, 11, 23), ("fern",)))
    assert harvester.outcomes(run.run_id) == {"knb.7.3": "updated"}
