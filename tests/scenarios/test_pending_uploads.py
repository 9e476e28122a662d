"""A target that does not write in the journal's transaction: uploads are noted before they are sent, and looked up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import Engine, event

from metaharvest.errors import TargetError
from metaharvest.harvest.run import RunRequest, RunResult
from metaharvest.model import Action, Finding, Holding, Site
from metaharvest.targets.base import HeldRevision, Standing, Upload
from support.databases import on_one_database
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer


class FolderTarget:
    """Keeps documents as files, or holds something else instead; `on_upload` is called when one was stored."""

    writes_in_journal: Literal[False] = False
    uploads_at_once = 4

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uploads: list[str] = []
        self.pending: list[tuple[str, str]] = []
        self.on_upload: Callable[[Upload], object] = lambda upload: None
        self.holds_instead: Mapping[str, Holding] = {}

    def describe(self) -> str:
        return "a folder"

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        if self.holds_instead:
            return self.holds_instead
        found: dict[str, Holding] = {}
        for file in self.folder.iterdir():
            document_id, _, revision = file.name.rpartition(".")
            held = found.get(document_id)
            if document_id in document_ids and (held is None or held.revision < int(revision)):
                found[document_id] = Holding(document_id, int(revision))
        return found

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        file = self.folder / f"{document_id}.{revision}"
        return file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256

    @contextmanager
    def session(self, site: Site | None) -> Iterator[FolderTarget]:
        yield self

    def check(self, site: Site | None) -> Iterator[Standing]:
        yield Standing("ok", "Documents go into a folder.")

    def held(self) -> Iterator[HeldRevision]:
        raise NotImplementedError

    def revisions(self, document_id: str) -> list[HeldRevision]:
        raise NotImplementedError

    def content(self, document_id: str, revision: int) -> bytes | None:
        raise NotImplementedError

    def delete(self, document_id: str) -> bool:
        raise NotImplementedError

    def upload(self, upload: Upload) -> Action:
        document = upload.fetched.document
        known = self.holdings([document.document_id])
        self.uploads.append(document.docid)
        (self.folder / document.docid).write_bytes(upload.fetched.content)
        self.on_upload(upload)
        return Action.UPDATE if known else Action.INSERT


def run(harvester: Harvester, target: FolderTarget, day: date) -> RunResult:
    with harvester.opened(target=target) as opened:
        return opened.run(RunRequest(day))


@pytest.fixture
def target(tmp_path: Path) -> FolderTarget:
    (tmp_path / "repository").mkdir()
    return FolderTarget(tmp_path / "repository")


def test_an_upload_is_pending_in_the_ledger_before_it_is_sent_and_no_longer_after_its_outcome(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.1.2"))
    sql = "SELECT revision, pending_run, pending_sha256 IS NOT NULL FROM harvest_document ORDER BY revision"
    seen = []
    target.on_upload = lambda upload: seen.append(harvester.rows(sql)[-1])
    ended = run(harvester, target, date(2026, 11, 20))
    assert seen == [(1, 1, 1), (2, 1, 1)]
    assert harvester.rows(sql) == [(1, None, 0), (2, None, 0)]
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "inserted", "a.1.2": "updated"}
    assert (target.folder / "a.1.2").read_bytes() == eml("a.1.2")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_no_upload_has_the_whole_ledger_read(harvester: Harvester, server: HttpServer, target: FolderTarget) -> None:
    """With very many documents in it, each of them would wait for that."""
    asked: list[tuple[str, Any]] = []

    def listen(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        if "harvest_document" in statement and "pending_sha256 IS NOT NULL" in statement:
            asked.append((statement, parameters))

    harvester.add_site("site", publish(server, "a.1.1"))
    event.listen(Engine, "before_cursor_execute", listen)
    try:
        run(harvester, target, date(2026, 11, 20))
    finally:
        event.remove(Engine, "before_cursor_execute", listen)
    assert asked
    with harvester.engine.connect() as connection:
        for statement, parameters in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
            assert not [row for row in plan if row[3].startswith("SCAN harvest_document")], plan


def test_an_upload_whose_fate_is_unknown_is_looked_up_before_anything_is_sent_again(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    class PowerCut(BaseException):
        """The process ends at this very moment."""

    def cut(upload: Upload) -> None:
        raise PowerCut

    harvester.add_site("site", publish(server, "a.1.1"))
    target.on_upload = cut
    with pytest.raises(PowerCut):
        run(harvester, target, date(2026, 11, 20))
    assert harvester.rows("SELECT status FROM harvest_run") == [("running",)]

    target.on_upload = lambda upload: None
    ended = run(harvester, target, date(2026, 11, 20))
    assert target.uploads == ["a.1.1"]
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "inserted"}
    assert harvester.rows("SELECT pending_run, outcome FROM harvest_document") == [(None, "inserted")]


@on_one_database
def test_an_upload_that_never_arrived_is_sent_again(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    class PowerCut(BaseException):
        """The process ends at this very moment."""

    def lose(upload: Upload) -> None:
        (target.folder / upload.fetched.document.docid).unlink()
        raise PowerCut

    harvester.add_site("site", publish(server, "a.1.1"))
    target.on_upload = lose
    with pytest.raises(PowerCut):
        run(harvester, target, date(2026, 11, 20))
    target.on_upload = lambda upload: None
    ended = run(harvester, target, date(2026, 11, 20))
    assert target.uploads == ["a.1.1", "a.1.1"]
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "inserted"}


def test_a_revision_waits_for_one_of_which_nobody_knows_whether_it_arrived(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    def lose_the_first(upload: Upload) -> None:
        if upload.fetched.document.revision == 1:
            (target.folder / upload.fetched.document.docid).unlink()
            raise TargetError(Finding("target.away", "The repository does not answer.", "Wait."), transient=True)

    harvester.add_site("site", publish(server, "a.1.1", "a.1.2", "a.1.3", "a.2.1"))
    target.on_upload = lose_the_first
    ended = run(harvester, target, date(2026, 11, 20))
    outcomes = dict.fromkeys(("a.1.1", "a.1.2", "a.1.3", "a.2.1"), "deferred")
    assert harvester.outcomes(ended.run_id) == outcomes
    target.on_upload = lambda upload: None
    ended = run(harvester, target, date(2026, 11, 21))
    assert sorted(file.name for file in target.folder.iterdir()) == sorted(outcomes)
    assert [docid for docid in target.uploads[2:] if docid.startswith("a.1.")] == ["a.1.1", "a.1.2", "a.1.3"]


def test_a_refusal_of_the_target_is_an_upload_error(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    def refuse(upload: Upload) -> None:
        (target.folder / upload.fetched.document.docid).unlink()
        raise TargetError(Finding("target.exists", "The repository said no.", "Ask the administrator."))

    harvester.add_site("site", publish(server, "a.1.1"))
    target.on_upload = refuse
    ended = run(harvester, target, date(2026, 11, 20))
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "upload-error"}
    assert harvester.operations(ended.run_id, "site")[-2] == "InsertDocError"


def test_a_target_that_does_not_answer_puts_everything_off_and_the_totals_balance(
    harvester: Harvester, server: HttpServer, target: FolderTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: FolderTarget, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        raise TargetError(Finding("target.away", "The repository does not answer.", "Wait."), transient=True)

    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", also=[("a.1.1", server.url("/a.1.1.xml"))]))
    with monkeypatch.context() as patched:
        patched.setattr(FolderTarget, "holdings", away)
        run(harvester, target, date(2026, 11, 20))
    sql = "SELECT status, listed, deferred, duplicate FROM harvest_site_run ORDER BY site_run_id"
    assert harvester.rows(sql) == [("with-errors", 3, 2, 1)]
    ended = run(harvester, target, date(2026, 11, 21))
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "duplicate", "a.2.1": "inserted"}
    assert sorted(target.uploads) == ["a.1.1", "a.2.1"]


def test_a_target_that_stops_answering_is_asked_no_more_and_the_rest_is_put_off_with_one_finding(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    def away(upload: Upload) -> None:
        (target.folder / upload.fetched.document.docid).unlink()
        raise TargetError(Finding("target.away", "The repository does not answer.", "Wait."), transient=True)

    docids = [f"a.{number}.1" for number in range(60)]
    harvester.add_site("site", publish(server, *docids))
    target.on_upload = away
    ended = run(harvester, target, date(2026, 11, 20))
    assert harvester.rows("SELECT deferred FROM harvest_site_run") == [(60,)]
    assert 5 <= len(target.uploads) < 12
    assert harvester.findings(ended.run_id) == [(None, "warning", "target.away"), (None, "error", "target.away")]
    sql = "SELECT error_message FROM harvest_detail_log JOIN harvest_log USING (harvest_log_id) WHERE site_run_id > 0"
    assert harvester.rows(sql) == [("The repository does not answer. 60 documents were put off to a later run.",)]
    assert harvester.rows("SELECT message FROM harvest_log WHERE harvest_operation_code = 'TargetError'") == [
        ("A folder stopped answering: The repository does not answer. Wait.",)
    ]
    target.on_upload = lambda upload: None
    run(harvester, target, date(2026, 11, 21))
    assert sorted(file.name for file in target.folder.iterdir()) == sorted(docids)


def test_a_target_that_does_what_nobody_expects_costs_the_document_alone(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    """What became of the document is not known then: it is looked up by the next run."""

    def internal_error(upload: Upload) -> None:
        if upload.fetched.document.document_id == "a.1":
            raise RuntimeError("what nobody promised")

    harvester.add_site("site", publish(server, "a.0.1", "a.1.1", "a.2.1"))
    target.on_upload = internal_error
    ended = run(harvester, target, date(2026, 11, 20))
    assert harvester.outcomes(ended.run_id) == {"a.0.1": "inserted", "a.1.1": "upload-error", "a.2.1": "inserted"}
    assert ("a.1", "error", "harvest.surprise") in harvester.findings(ended.run_id)
    assert harvester.rows("SELECT status, inserted, upload_error FROM harvest_site_run") == [("with-errors", 2, 1)]
    sql = "SELECT outcome, pending_sha256 IS NOT NULL FROM harvest_document WHERE document_id = 'a.1'"
    assert harvester.rows(sql) == [("upload-error", 1)]

    ended = run(harvester, target, date(2026, 11, 21))
    assert target.uploads.count("a.1.1") == 1
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "inserted"}
    assert harvester.rows(sql) == [("inserted", 0)]


def test_a_document_on_which_the_harvester_fails_before_it_sends_it_is_not_pending(
    harvester: Harvester, server: HttpServer, target: FolderTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def internal_error(*_: object) -> None:
        raise RuntimeError("what nobody promised")

    harvester.add_site("site", publish(server, "a.1.1", "a.1.2"))
    monkeypatch.setattr("metaharvest.harvest.documents.SiteDocuments._fetched", internal_error)
    ended = run(harvester, target, date(2026, 11, 20))
    assert target.uploads == []
    assert harvester.rows("SELECT document_id, revision, outcome FROM harvest_document ORDER BY revision") == [
        ("a.1", 1, "upload-error"),
        ("a.1", 2, "upload-error"),
    ]
    sql = "SELECT count(*) FROM harvest_log WHERE run_id = ? AND harvest_operation_code = 'UploadUnconfirmed'"
    assert harvester.rows(sql, ended.run_id) == [(0,)]


def test_an_upload_whose_fate_is_unknown_is_told_and_forgotten_once_it_is_listed_no_longer(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    class PowerCut(BaseException):
        """The process ends at this very moment."""

    def cut(upload: Upload) -> None:
        if upload.fetched.document.document_id == "a.2":
            raise PowerCut

    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    target.on_upload = cut
    with pytest.raises(PowerCut):
        run(harvester, target, date(2026, 11, 20))
    publish(server, "a.1.1")
    ended = run(harvester, target, date(2026, 11, 21))
    assert harvester.rows("SELECT document_id FROM harvest_document") == [("a.1",)]
    sql = "SELECT message FROM harvest_log WHERE run_id = ? AND harvest_operation_code = 'UploadUnconfirmed'"
    told = "It is not known whether a.2.1 arrived, and it is listed no longer."
    assert harvester.rows(sql, ended.run_id) == [(told,)]
    # The ledger is what the list says again: the same list need not be read anew.
    assert "HarvestListUnchanged" not in harvester.operations(ended.run_id)
    ended = run(harvester, target, date(2026, 11, 22))
    assert "HarvestListUnchanged" in harvester.operations(ended.run_id)


@on_one_database
@pytest.mark.parametrize(
    ("holding", "outcome", "rule"),
    [
        (Holding("a.1", 2), "stale", "list.stale"),
        (Holding("a.1", 1, site_id=2), "upload-error", "target.other-site"),
        (Holding("a.1", 1), "upload-error", "target.other-content"),
    ],
)
def test_what_never_arrived_and_is_not_to_be_sent_any_more_is_told_for_what_it_is(
    harvester: Harvester,
    server: HttpServer,
    target: FolderTarget,
    holding: Holding,
    outcome: str,
    rule: str,
) -> None:
    """Meanwhile the repository got something else from somebody else."""

    class PowerCut(BaseException):
        """The process ends at this very moment."""

    def lose(upload: Upload) -> None:
        (target.folder / upload.fetched.document.docid).unlink()
        raise PowerCut

    assert harvester.add_site("site", publish(server, "a.1.1")) == 1
    assert harvester.add_site("other", server.url("/none.xml"), enabled="false") == 2
    target.on_upload = lose
    with pytest.raises(PowerCut):
        run(harvester, target, date(2026, 11, 20))
    target.holds_instead = {"a.1": holding}
    ended = run(harvester, target, date(2026, 11, 21))
    assert harvester.outcomes(ended.run_id) == {"a.1.1": outcome}
    assert [found for _, _, found in harvester.findings(ended.run_id)] == [rule]
    assert harvester.rows("SELECT outcome, pending_sha256 FROM harvest_document") == [(outcome, None)]
    assert target.uploads == ["a.1.1"]


@on_one_database
def test_a_target_that_fails_now_and_then_is_not_given_up(
    harvester: Harvester, server: HttpServer, target: FolderTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only failures in a row say that it is away: every other one of these uploads arrives."""
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "1")
    docids = [f"a.{number}.1" for number in range(10, 30)]

    def sometimes(upload: Upload) -> None:
        if len(target.uploads) % 2:
            raise TargetError(Finding("target.away", "The repository does not answer.", "Wait."), transient=True)

    harvester.add_site("site", publish(server, *docids))
    target.uploads_at_once = 1
    target.on_upload = sometimes
    ended = run(harvester, target, date(2026, 11, 20))
    outcomes = list(harvester.outcomes(ended.run_id).values())
    assert (outcomes.count("deferred"), outcomes.count("inserted")) == (10, 10)
    assert "TargetError" not in harvester.operations(ended.run_id)


def test_after_a_revision_that_was_not_confirmed_no_higher_one_is_sent(
    harvester: Harvester, server: HttpServer, target: FolderTarget
) -> None:
    """It may still be under way, or have arrived."""

    def lose(upload: Upload) -> None:
        if upload.fetched.document.docid == "a.1.1":
            (target.folder / "a.1.1").unlink()
            raise TargetError(Finding("target.away", "The repository does not answer.", "Wait."), transient=True)

    harvester.add_site("site", publish(server, "a.1.1", "a.1.2", "a.1.3", "a.2.1"))
    target.on_upload = lose
    ended = run(harvester, target, date(2026, 11, 20))
    assert harvester.outcomes(ended.run_id) == {
        "a.1.1": "deferred",
        "a.1.2": "deferred",
        "a.1.3": "deferred",
        "a.2.1": "inserted",
    }
    told = [rule for _, _, rule in harvester.findings(ended.run_id)]
    assert sorted(told) == ["target.away", "target.lower-revision"]
    target.on_upload = lambda upload: None
    ended = run(harvester, target, date(2026, 11, 21))
    assert [docid for docid in target.uploads if docid.startswith("a.1.")] == ["a.1.1", "a.1.1", "a.1.2", "a.1.3"]
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "inserted", "a.1.2": "updated", "a.1.3": "updated"}
