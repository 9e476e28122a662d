"""A target that does not write in the journal's transaction: uploads are noted before they are sent, and looked up."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from metaharvest.cli.progress import shown_progress
from metaharvest.controller import Ended, Request, run_once
from metaharvest.errors import TargetError
from metaharvest.records import Action, Finding, Holding
from metaharvest.settings import load
from metaharvest.targets import Upload
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer


class FolderTarget:
    """Keeps documents as files; `crash_after` uploads it loses the connection to whoever sent them."""

    writes_in_journal = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uploads: list[str] = []
        self.pending: list[tuple[str, str]] = []
        self.on_upload = lambda upload: None

    def describe(self) -> str:
        return "a folder"

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        found: dict[str, Holding] = {}
        for file in self.folder.iterdir():
            document_id, _, revision = file.name.rpartition(".")
            held = found.get(document_id)
            if document_id in document_ids and (held is None or held.revision < int(revision)):
                found[document_id] = Holding(document_id, int(revision))
        return found

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        import hashlib

        file = self.folder / f"{document_id}.{revision}"
        return file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256

    def upload(self, uploads: Sequence[Upload], session: Session | None) -> list[Action]:
        assert session is None
        [upload] = uploads
        document = upload.fetched.document
        known = self.holdings([document.document_id])
        self.uploads.append(document.docid)
        (self.folder / document.docid).write_bytes(upload.fetched.content)
        self.on_upload(upload)
        return [Action.UPDATE if known else Action.INSERT]


def run(harvester: Harvester, target: FolderTarget, day: date) -> Ended:
    settings = load(harvester.config, {})
    with shown_progress() as progress:
        return run_once(settings, harvester.engine, target, Request(day), lambda: datetime.now(UTC), progress)


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
        raise TargetError(Finding("target.away", "The repository does not answer.", "Wait."), passing=True)

    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", also=[("a.1.1", server.url("/a.1.1.xml"))]))
    with monkeypatch.context() as patched:
        patched.setattr(FolderTarget, "holdings", away)
        run(harvester, target, date(2026, 11, 20))
    sql = "SELECT status, listed, deferred, duplicate FROM harvest_site_run ORDER BY site_run_id"
    assert harvester.rows(sql) == [("with-errors", 3, 2, 1)]
    ended = run(harvester, target, date(2026, 11, 21))
    assert harvester.outcomes(ended.run_id) == {"a.1.1": "duplicate", "a.2.1": "inserted"}
    assert sorted(target.uploads) == ["a.1.1", "a.2.1"]
