"""The records of a repository over several nights, page by page: the target, the ledger, the log, the mail."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import date
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from metaharvest.errors import TargetError
from metaharvest.fetch.client import Fetcher
from metaharvest.harvest.run import RunRequest
from metaharvest.model import Action, Finding, Level, Site
from metaharvest.targets.base import Target, Upload
from support.harvester import SETTINGS, Harvester
from support.mails import words_of
from support.paged_source import BASE_URL, Repository, Source, dc
from support.remote_target import RemoteTarget
from support.remote_target import Repository as Remote

TOTALS = "listed inserted updated unchanged deleted filtered stale duplicate deferred access_error invalid upload_error"


class Nights:
    """A harvester with one repository as its only site; `others` are those of sites that a test adds."""

    def __init__(self, folder: Path, target: str = "") -> None:
        self.harvester = Harvester(folder, SETTINGS + target)
        self.repository = Repository()
        self.others: dict[str, Repository] = {}
        self.register("repo")
        self.night = 20

    def register(self, name: str) -> None:
        """Add a site of records of the same origin."""
        options = json.dumps({"oai": {"origin": "repo"}})
        self.harvester.add_site(name, BASE_URL, source_kind="oai-pmh", options=options)

    def harvest(self, name: str = "repo", *, full: bool = False, target: Target | None = None) -> dict[str, Any]:
        """One night: the status of the site run, and those of its totals that are not 0."""
        with self.harvester.opened(source=self._source, target=target) as opened:
            opened.run(RunRequest(date(2026, 11, self.night), (name,), full=full))
        self.night += 1
        [row] = self.harvester.rows(
            f"SELECT status, {', '.join(TOTALS.split())} FROM harvest_site_run ORDER BY site_run_id DESC LIMIT 1"
        )
        return {"status": row[0], **{name: n for name, n in zip(TOTALS.split(), row[1:], strict=True) if n}}

    def _source(self, site: Site, fetcher: Fetcher) -> Source:
        return self.others.get(site.name, self.repository).source(site, fetcher)

    def lists_changes(self, *changed: str) -> None:
        """From now on the repository lists what has changed: these."""
        self.repository.is_complete, self.repository.changed = False, changed

    def holdings(self) -> dict[str, int]:
        """What the embedded target says that it has: the highest revision of each."""
        with self.harvester.opened() as opened, opened.targets.default.session(None) as session:
            ids = [row[0] for row in self.harvester.rows("SELECT DISTINCT document_id FROM harvest_document")]
            return {each.removeprefix("repo/oai_dc/"): held.revision for each, held in session.holdings(ids).items()}

    def report(self, kind: str = "site") -> str:
        """The text of the last report of this kind."""
        return words_of(self._last(kind))

    def subject(self) -> str:
        """The subject of the last report to the administrator."""
        return str(self._last("admin")["Subject"])

    def _last(self, kind: str) -> EmailMessage:
        sql = "SELECT content FROM report_outbox WHERE kind = ? ORDER BY report_id DESC LIMIT 1"
        [(content,)] = self.harvester.rows(sql, kind)
        return message_from_bytes(content, policy=policy.default)


FOLDER = '[target]\nkind = "folder"\nfolder = "documents"\n'
in_a_folder_too = pytest.mark.parametrize("nights", ["", FOLDER], ids=["embedded", "folder"], indirect=True)


@pytest.fixture
def nights(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Nights]:
    made = Nights(tmp_path, getattr(request, "param", ""))
    yield made
    made.harvester.close()


def records(number: int, first: int = 0) -> dict[str, bytes | None]:
    return {f"r{each}": dc(f"Record {each}") for each in range(first, first + number)}


@pytest.mark.quick
@in_a_folder_too
def test_first_harvest_and_a_second_one_without_changes(nights: Nights) -> None:
    nights.repository.records = records(5)
    assert nights.harvest() == {"status": "succeeded", "listed": 5, "inserted": 5}
    assert nights.holdings() == {f"r{each}": 1 for each in range(5)}
    with nights.harvester.opened() as opened:
        assert opened.targets.default.content("repo/oai_dc/r3", 1) == dc("Record 3")
    assert nights.harvest() == {"status": "succeeded", "listed": 5, "unchanged": 5}


def test_the_embedded_target_keeps_where_a_record_comes_from(tmp_path: Path) -> None:
    nights = Nights(tmp_path)
    nights.repository.records = records(5)
    nights.harvest()
    [origin] = nights.harvester.rows(
        "SELECT base_url, identifier, prefix, datestamp, response_date, altered, sets, about FROM document_origin "
        "WHERE document_id = 'repo/oai_dc/r3'"
    )
    assert origin == (
        BASE_URL, "oai:repository.example.org:r3", "oai_dc", "2026-11-20T00:00:00Z", "2026-11-20T01:00:00Z", 0,
        '["all"]', '["<rights/>"]',
    )  # fmt: skip
    nights.harvester.close()


@pytest.mark.parametrize("way", ["ends_with_records", "without_checkpoint"])
def test_the_records_at_the_end_of_a_list_are_taken_and_none_of_them_is_missing(nights: Nights, way: str) -> None:
    nights.repository.records = records(4)
    nights.harvest()
    setattr(nights.repository, way, True)
    nights.repository.records = records(5)
    assert nights.harvest() == {"status": "succeeded", "listed": 5, "inserted": 1, "unchanged": 4}
    assert nights.harvest() == {"status": "succeeded", "listed": 5, "unchanged": 5}
    assert nights.harvester.rows("SELECT DISTINCT state, listing FROM harvest_document") == [("held", 3)]


def test_a_finding_about_any_page_of_a_list_is_logged(nights: Nights) -> None:
    finding = Finding("oai.token", "The first page has an odd token.", "Nothing.", Level.WARNING)
    nights.repository = Repository(records(5), finding=finding)
    nights.harvest()
    message = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'ListRecordsWarning'"
    assert nights.harvester.rows(message) == [(finding.message,)]


@in_a_folder_too
def test_revisions_rise_where_the_content_differs_not_the_datestamp(nights: Nights) -> None:
    nights.repository.records = records(3)
    nights.harvest()
    nights.repository.datestamp = "2026-11-21T00:00:00Z"
    nights.repository.records["r1"] = dc("Another title")
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "updated": 1, "unchanged": 2}
    assert nights.holdings() == {"r0": 1, "r1": 2, "r2": 1}
    datestamps = nights.harvester.rows("SELECT DISTINCT datestamp FROM harvest_document")
    assert datestamps == [("2026-11-21T00:00:00Z",)]


@in_a_folder_too
def test_a_deleted_record_leaves_a_tombstone_and_its_revisions(nights: Nights) -> None:
    nights.repository.records = records(3)
    nights.harvest()
    nights.repository.records["r1"] = None
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "unchanged": 2, "deleted": 1}
    assert nights.holdings() == {"r0": 1, "r2": 1}
    assert "Deleted by your OAI-PMH repository" in nights.report()
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "unchanged": 3}
    nights.repository.records["r1"] = dc("Record 1")
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "unchanged": 2, "inserted": 1}
    assert nights.holdings() == {"r0": 1, "r1": 2, "r2": 1}
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "unchanged": 3}


def test_a_deleted_record_that_was_never_there_is_only_noted(nights: Nights) -> None:
    nights.repository.records = {"r0": None, **records(1, first=1)}
    assert nights.harvest() == {"status": "succeeded", "listed": 2, "inserted": 1, "unchanged": 1}
    assert nights.harvester.rows("SELECT COUNT(*) FROM document_tombstone") == [(0,)]
    assert nights.harvest() == {"status": "succeeded", "listed": 2, "unchanged": 2}
    assert "Unchanged (1)" in nights.report()
    nights.lists_changes("r0")
    assert nights.harvest() == {"status": "succeeded", "listed": 1, "unchanged": 1}
    nights.repository.records["r0"] = dc("There after all")
    assert nights.harvest() == {"status": "succeeded", "listed": 1, "inserted": 1}


def test_of_what_a_list_of_changes_names_the_mail_names_what_is_there_already(nights: Nights) -> None:
    nights.repository.records = records(5)
    nights.harvest()
    for changed in ("r0", "r3"):
        nights.lists_changes(changed)
        assert nights.harvest() == {"status": "succeeded", "listed": 1, "unchanged": 1}
    assert "Unchanged (1) repo/oai_dc/r3.1" in " ".join(nights.report().replace("=", "").split())


@in_a_folder_too
def test_very_many_deletions_wait_until_somebody_confirms_them(nights: Nights) -> None:
    nights.repository.page = 7
    nights.repository.records = records(40)
    nights.harvest()
    nights.repository.records |= {f"r{each}": None for each in range(25)}
    assert nights.harvest() == {"status": "with-errors", "listed": 40, "unchanged": 15, "deferred": 25}
    assert len(nights.holdings()) == 40
    assert "the administrator of the harvester confirms the deletions, and the next harvest" in nights.report()
    assert "metaharvest sites" not in nights.report()
    assert nights.subject().startswith("[Test network] 25 deletions wait for you; 1 site: 1 with errors")
    first_lines = nights.report("admin").partition("Sites")[0]
    assert "Start here ========== 1. repo: the repository says that 25 documents are deleted." in first_lines
    assert "`metaharvest sites confirm repo`" in first_lines
    with nights.harvester.opened() as opened:
        opened.run(RunRequest(date(2026, 11, 20), ("repo",)))  # for a day on which the site is not due
    assert nights.subject().startswith("[Test network] 25 deletions wait for you; ")
    nights.lists_changes()
    assert nights.harvest() == {"status": "with-errors", "listed": 25, "deferred": 25}
    assert "deletes 25 documents" in nights.harvester("sites", "confirm", "repo").out
    assert nights.harvest() == {"status": "succeeded", "listed": 25, "deleted": 25}
    assert nights.subject().startswith("[Test network] 1 site: 1 well; 25 deleted")
    assert len(nights.holdings()) == 15
    assert nights.harvest() == {"status": "succeeded"}
    assert "Nothing of repo waits" in nights.harvester("sites", "confirm", "repo").out


def deleted(number: int, first: int = 0) -> dict[str, bytes | None]:
    return {f"r{each}": None for each in range(first, first + number)}


def confirm_thirty_of(number: int, nights: Nights) -> None:
    """Have the first thirty of so many records deleted, which waits, and is confirmed."""
    nights.repository.page = 20
    nights.repository.records = records(number)
    nights.harvest()
    nights.repository.records |= deleted(30)
    assert nights.harvest()["deferred"] == 30
    nights.harvester("sites", "confirm", "repo")


def test_a_confirmation_holds_for_what_waited_then_and_not_for_ever(nights: Nights) -> None:
    confirm_thirty_of(60, nights)
    nights.repository.records |= records(30)
    assert nights.harvest()["status"] == "succeeded"
    nights.repository.records |= deleted(30, first=30)
    for _night in range(2):
        assert nights.harvest() == {"status": "with-errors", "listed": 60, "unchanged": 30, "deferred": 30}
    assert len(nights.holdings()) == 60


def test_a_confirmation_holds_for_no_other_documents(nights: Nights) -> None:
    confirm_thirty_of(60, nights)
    nights.repository.records |= records(28) | deleted(28, first=30)
    for _night in range(2):
        assert nights.harvest()["deferred"] == 30
    assert len(nights.holdings()) == 60
    nights.harvester("sites", "confirm", "repo")
    assert nights.harvest()["deleted"] == 30


def test_what_came_since_a_confirmation_takes_no_place_of_what_was_confirmed(nights: Nights) -> None:
    confirm_thirty_of(100, nights)
    nights.repository.records |= deleted(30, first=30)
    assert nights.harvest()["deferred"] == 60
    nights.repository.records |= records(30)
    assert nights.harvest()["deferred"] == 30
    assert len(nights.holdings()) == 100


def test_a_site_that_may_lose_none_loses_none_without_being_asked(nights: Nights) -> None:
    nights.repository.records = records(15)
    nights.harvest()
    nights.harvester("sites", "edit", "repo", "--max-loss", "0")
    nights.repository.records |= deleted(1)
    assert nights.harvest()["deferred"] == 1
    assert "1 of the 15 documents of this site is deleted" in nights.report()
    nights.harvester("sites", "confirm", "repo")
    assert nights.harvest()["deleted"] == 1


class AwayNowAndThen(RemoteTarget):
    """Does not answer four of five deletions."""

    asked = 0

    def delete(self, document_id: str) -> bool:
        self.asked += 1
        if self.asked % 5:
            raise TargetError(Finding("target.away", "The repository does not answer.", "Wait."), transient=True)
        return super().delete(document_id)


def delete_thirty(nights: Nights, page: int, target: Target | None = None) -> None:
    """Have half of sixty records deleted, which waits until somebody confirms it."""
    nights.repository.page = page
    nights.repository.records = records(60)
    nights.harvest(target=target)
    nights.repository.records |= deleted(30)
    nights.harvest(target=target)
    nights.lists_changes()


def confirm_thirty_deletions(nights: Nights, remote: Remote) -> None:
    """Have half of sixty records deleted, which waits, and is confirmed."""
    delete_thirty(nights, 60, RemoteTarget(remote.url))
    nights.harvester("sites", "confirm", "repo")


def test_confirmed_deletions_that_the_target_does_not_take_wait_for_it(nights: Nights) -> None:
    with Remote() as remote:
        confirm_thirty_deletions(nights, remote)
        found = nights.harvest(target=AwayNowAndThen(remote.url))
        assert found == {"status": "with-errors", "listed": 30, "deleted": 6, "deferred": 24}
        assert nights.harvest(target=RemoteTarget(remote.url)) == {"status": "succeeded", "listed": 24, "deleted": 24}
        assert len(remote.highest()) == 30


def test_deletions_that_wait_for_the_target_are_nothing_to_be_confirmed(nights: Nights) -> None:
    with Remote() as remote:
        nights.repository.records = records(9)
        nights.harvest(target=RemoteTarget(remote.url))
        nights.repository.records |= deleted(4)
        found = nights.harvest(target=AwayNowAndThen(remote.url))
        assert found == {"status": "with-errors", "listed": 9, "unchanged": 5, "deferred": 4}
        assert "Nothing of repo waits" in nights.harvester("sites", "confirm", "repo").out
        assert nights.harvest(target=RemoteTarget(remote.url))["deleted"] == 4


@in_a_folder_too
def test_deletions_that_wait_are_not_told_of_documents_of_another_site(nights: Nights) -> None:
    delete_thirty(nights, page=20)
    nights.harvester.add_site("second", "https://second.example.org/list.xml")
    taken = [f"repo/oai_dc/r{each}" for each in range(28)]
    nights.harvester("target", "transfer", *taken, "second")
    nights.harvester("sites", "confirm", "repo")
    assert nights.harvest() == {"status": "with-errors", "listed": 30, "deleted": 2, "upload_error": 28}
    assert len(nights.holdings()) == 58
    assert "r3 belongs to the site 'second'" in nights.report()
    assert "Nothing of repo waits" in nights.harvester("sites", "confirm", "repo").out
    nights.harvester("target", "transfer", taken[0], "repo")
    assert nights.harvest() == {"status": "with-errors", "listed": 28, "deleted": 1, "upload_error": 27}


@in_a_folder_too
def test_deletions_that_wait_are_only_noted_once_the_site_says_so(nights: Nights) -> None:
    delete_thirty(nights, page=20)
    nights.harvester("sites", "edit", "repo", "--deletions", "note")
    assert "deletions of repo are only recorded" in nights.harvester("sites", "confirm", "repo").out
    assert nights.harvest() == {"status": "succeeded", "listed": 30, "deleted": 30}
    assert len(nights.holdings()) == 60
    assert nights.harvest() == {"status": "succeeded"}


@in_a_folder_too
def test_deletions_that_were_noted_are_told_once_when_the_site_says_so(nights: Nights) -> None:
    nights.repository.records = records(5)
    nights.harvest()
    nights.harvester("sites", "edit", "repo", "--deletions", "note")
    nights.repository.records |= deleted(2)
    assert nights.harvest()["deleted"] == 2
    assert len(nights.holdings()) == 5
    nights.harvester("sites", "edit", "repo", "--deletions", "tell")
    assert nights.harvest() == {"status": "succeeded", "listed": 5, "unchanged": 3, "deleted": 2}
    assert len(nights.holdings()) == 3
    assert nights.harvest() == {"status": "succeeded", "listed": 5, "unchanged": 5}


@in_a_folder_too
@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_record_that_moves_to_another_site_is_deleted_only_as_long_as_that_one_does_not_list_it(
    nights: Nights, deleted_first: bool
) -> None:
    nights.register("second")
    nights.others["second"] = Repository(records(1, first=5))
    nights.repository.records = records(3)
    nights.harvest()
    nights.harvest("second")
    nights.repository.records["r1"] = None
    nights.others["second"].records |= records(1, first=1)
    if deleted_first:
        assert nights.harvest()["deleted"] == 1
        assert nights.harvest("second") == {"status": "succeeded", "listed": 2, "inserted": 1, "unchanged": 1}
    else:
        # The document is not deleted then.
        assert nights.harvest("second") == {"status": "succeeded", "listed": 2, "unchanged": 2}
        assert nights.harvest()["deleted"] == 1
        nights.others["second"].is_complete, nights.others["second"].changed = False, ()
        assert nights.harvest("second") == {"status": "succeeded"}
    held = {"r0": 1, "r1": 2 if deleted_first else 1, "r2": 1, "r5": 1}
    assert nights.holdings() == held
    assert nights.harvest("second", full=True)["status"] == "succeeded"
    assert nights.harvest()["status"] == "succeeded"
    assert nights.holdings() == held


def test_a_deletion_leaves_the_origin_of_a_record_that_another_site_lists(nights: Nights) -> None:
    nights.repository.records = records(3)
    nights.harvest()
    state = "SELECT datestamp, sets, about, change_seq FROM document_origin NATURAL JOIN catalogue_document ORDER BY 4"
    before = nights.harvester.rows(state)
    nights.register("second")
    nights.others["second"] = Repository({"r1": None}, datestamp="2026-11-21T00:00:00Z")
    assert nights.harvest("second")["listed"] == 1
    assert nights.holdings() == {"r0": 1, "r1": 1, "r2": 1}
    assert nights.harvester.rows(state) == before


@in_a_folder_too
def test_a_deleted_record_comes_back_to_a_site_that_was_registered_anew(nights: Nights) -> None:
    nights.repository.records = records(3)
    nights.harvest()
    nights.repository.records["r1"] = None
    nights.harvest()
    nights.harvester("sites", "remove", "repo", "--yes")
    nights.register("repo")
    nights.repository.records = records(3)
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "inserted": 1, "unchanged": 2}
    assert nights.holdings() == {"r0": 1, "r1": 2, "r2": 1}


@pytest.mark.parametrize("page", [2, 100])
@pytest.mark.parametrize("deleted_first", [True, False])
def test_a_record_that_has_left_one_of_its_sets_for_another_is_not_deleted(
    nights: Nights, page: int, deleted_first: bool
) -> None:
    """Some repositories say of it, at the same moment, that it is there, and in the list of its former set deleted."""
    nights.repository.page = page
    nights.repository.records = records(5)
    nights.harvest()
    nights.repository.datestamp = "2026-11-21T00:00:00Z"
    named: list[tuple[str, bytes | None, str]] = [
        ("r1", None, "2026-11-21T00:00:00Z"),
        ("r1", dc("Moved"), "2026-11-21T00:00:00Z"),
    ]
    nights.lists_changes()
    nights.repository.also = named if deleted_first else named[::-1]
    for _night in range(3):
        assert nights.harvest()["status"] == "succeeded"
        assert "r1" in nights.holdings()
    revisions = nights.holdings()["r1"]
    nights.harvest(full=True)
    assert nights.holdings()["r1"] == revisions == 2
    nights.repository.also = [("r1", None, "2026-11-22T00:00:00Z")]
    assert nights.harvest()["deleted"] == 1
    assert "r1" not in nights.holdings()


def test_a_full_list_of_nothing_says_nothing_about_what_is_missing_and_forgets_nothing(nights: Nights) -> None:
    nights.repository.records = records(5) | {"r1": b"this is no XML"}
    nights.harvest()
    ledger = "SELECT document_id, outcome, missing_since FROM harvest_document ORDER BY 1"
    before = nights.harvester.rows(ledger)
    assert len(before) == 5
    nights.repository.changed = ()
    found = nights.harvest(full=True)
    assert (found["listed"], found["invalid"]) == (1, 1)
    assert nights.harvester.rows(ledger) == before
    assert "listed none; 4 records were there before" in nights.report()


def test_records_that_a_complete_list_does_not_name_are_missing_and_stay(nights: Nights) -> None:
    nights.repository.records = records(6)
    nights.harvest()
    del nights.repository.records["r2"], nights.repository.records["r4"]
    assert nights.harvest() == {"status": "succeeded", "listed": 4, "unchanged": 4}
    assert len(nights.holdings()) == 6
    assert (
        "does not name 2 records"
        in nights.harvester.rows("SELECT message FROM harvest_log WHERE harvest_operation_code = 'DocMissing'")[0][0]
    )
    missing = "SELECT document_id, missing_since FROM harvest_document WHERE missing_since IS NOT NULL ORDER BY 1"
    assert nights.harvester.rows(missing) == [("repo/oai_dc/r2", "2026-11-21"), ("repo/oai_dc/r4", "2026-11-21")]
    told = json.loads(nights.harvester("documents", "--missing", "--json").out)
    assert [(each["document_id"], each["missing_since"]) for each in told] == nights.harvester.rows(missing)
    assert json.loads(nights.harvester("documents", "--rule", "records.missing", "--json").out) == told
    assert "missing since 2026-11-21" in nights.harvester("documents", "show", "repo/oai_dc/r2").out
    assert "missing" not in nights.harvester("documents", "show", "repo/oai_dc/r1").out
    assert "r2" in nights.report()
    nights.repository.records |= records(6)
    assert nights.harvest() == {"status": "succeeded", "listed": 6, "unchanged": 6}
    assert nights.harvester.rows(missing) == []
    assert nights.harvester("documents", "--missing").out == "There is no such document.\n"


def test_what_failed_and_is_gone_from_a_complete_list_is_forgotten(nights: Nights) -> None:
    with Remote() as remote:
        remote.refused_documents.add("repo/oai_dc/r2.1")
        target = RemoteTarget(remote.url)
        nights.repository.records = records(5) | {"r1": b"this is no XML"}
        found = nights.harvest(target=target)
        assert found == {"status": "with-errors", "listed": 5, "inserted": 3, "invalid": 1, "upload_error": 1}
        del nights.repository.records["r1"], nights.repository.records["r2"]
        assert nights.harvest(target=target) == {"status": "succeeded", "listed": 3, "unchanged": 3}
        assert nights.harvester.rows("SELECT DISTINCT state FROM site_problem") == [("gone",)]
        assert nights.harvester.rows("SELECT COUNT(*) FROM harvest_document") == [(3,)]
        nights.lists_changes()
        assert nights.harvest(target=target) == {"status": "succeeded"}
        nights.repository.records |= records(3)
        nights.lists_changes("r1")
        assert nights.harvest(target=target) == {"status": "succeeded", "listed": 1, "inserted": 1}


def test_a_copy_whose_record_failed_or_was_left_out_before_it_was_lost_is_missing(nights: Nights) -> None:
    filters = nights.harvester.folder / "filters.xml"
    filters.write_text("<filters match='any'><filter xpath=\"//*[. = 'Secret']\" invert='true'/></filters>")
    nights.harvester("sites", "edit", "repo", "--filters", "filters.xml")
    nights.repository.records = records(5)
    nights.harvest()
    nights.repository.records |= {"r1": b"this is no XML", "r2": dc("Secret")}
    found = nights.harvest()
    assert found == {"status": "with-errors", "listed": 5, "unchanged": 3, "invalid": 1, "filtered": 1}
    del nights.repository.records["r1"], nights.repository.records["r2"]
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "unchanged": 3}
    assert "r1 is not in the repository's list any more" in nights.report()
    [(said,)] = nights.harvester.rows("SELECT message FROM harvest_log WHERE harvest_operation_code = 'DocMissing'")
    assert said.startswith("The complete list does not name 2 records that were there before; 5 are known.")
    assert nights.harvester.rows("SELECT state FROM site_problem WHERE document_id LIKE '%r1'") == [("gone",)]
    missing = "SELECT document_id FROM harvest_document WHERE missing_since IS NOT NULL ORDER BY 1"
    assert nights.harvester.rows(missing) == [("repo/oai_dc/r1",), ("repo/oai_dc/r2",)]
    nights.lists_changes()
    assert nights.harvest() == {"status": "succeeded"}
    assert len(nights.holdings()) == 5
    nights.repository.records["r1"] = dc("Record 1, mended")
    nights.lists_changes("r1")
    assert nights.harvest() == {"status": "succeeded", "listed": 1, "updated": 1}


def test_only_a_complete_list_tells_what_is_missing(nights: Nights) -> None:
    nights.repository.records = records(6)
    nights.harvest()
    nights.lists_changes("r1")
    assert nights.harvest() == {"status": "succeeded", "listed": 1, "unchanged": 1}
    assert nights.harvester.rows("SELECT * FROM harvest_document WHERE missing_since IS NOT NULL") == []


def test_a_list_that_breaks_off_goes_on_the_next_night(nights: Nights) -> None:
    nights.repository.records = records(7)
    nights.repository.breaks_after = 2
    assert nights.harvest() == {"status": "incomplete", "listed": 4, "inserted": 4}
    assert "broke off after 4 of 7 records" in nights.report()
    nights.repository.breaks_after = None
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "inserted": 3}
    assert nights.repository.asked == ["list", "from 4"]
    assert len(nights.holdings()) == 7
    assert nights.harvester.rows("SELECT * FROM harvest_document WHERE missing_since IS NOT NULL") == []


def test_a_list_that_begins_anew_is_not_counted_twice(nights: Nights) -> None:
    nights.repository.records = records(7)
    nights.repository.breaks_after = 2
    nights.harvest()
    nights.repository.breaks_after, nights.repository.refuses_tokens = None, True
    assert nights.harvest() == {"status": "succeeded", "listed": 7, "inserted": 3, "unchanged": 4}


def test_what_was_left_out_as_the_list_moved_before_it_was_gone_on_with_is_told_with_its_number(
    nights: Nights,
) -> None:
    nights.repository.records, nights.repository.breaks_after = records(6), 1
    assert nights.harvest()["status"] == "incomplete"
    nights.repository.breaks_after = None
    del nights.repository.records["r0"]
    nights.repository.records["r0"] = dc("Moved to the end")
    assert nights.harvest() == {"status": "succeeded", "listed": 4, "inserted": 3, "updated": 1}
    assert set(nights.holdings()) == {"r0", "r1", "r3", "r4", "r5"}
    assert "announced 6 records (completeListSize), and 5 different ones came" in nights.report()
    assert nights.harvest(full=True)["inserted"] == 1
    assert "different ones came" not in nights.report()


def test_records_that_are_named_twice_are_told(nights: Nights) -> None:
    nights.repository.records = records(5)
    nights.repository.repeated = ["r0", "r1", "r4"]
    assert nights.harvest() == {"status": "succeeded", "listed": 8, "inserted": 5, "duplicate": 3}
    assert len(nights.holdings()) == 5


@in_a_folder_too
@pytest.mark.parametrize("page", [10, 2])
def test_of_several_versions_of_a_record_in_a_list_the_newest_counts(nights: Nights, page: int) -> None:
    """On one page and on several; the repository names those first that changed last."""
    new, old = "2026-11-20T00:00:00Z", "2026-11-19T00:00:00Z"
    nights.repository.page = page
    nights.repository.records = {"r0": dc("New"), "r1": dc("Alive"), "r2": dc("Deleted since")}
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "inserted": 3}
    nights.repository.records["r2"] = None
    nights.repository.also = [("r0", dc("Old"), old), ("r1", None, old), ("r2", dc("Deleted since"), old)]
    harvested = nights.harvest()
    assert harvested == {"status": "succeeded", "listed": 6, "deleted": 1, "unchanged": 2, "duplicate": 3}
    assert nights.holdings() == {"r0": 1, "r1": 1}
    assert nights.harvest() == {"status": "succeeded", "listed": 6, "unchanged": 3, "duplicate": 3}
    nights.repository.also = [("r0", dc("Newer still"), "2026-11-21T00:00:00Z"), ("r0", dc("New"), new)]
    harvested = nights.harvest()
    assert (harvested["status"], harvested["listed"], harvested["updated"]) == ("succeeded", 5, 1)
    assert nights.holdings() == {"r0": 2, "r1": 1}


@in_a_folder_too
def test_a_record_that_comes_again_in_the_next_part_of_an_answer_is_known(nights: Nights) -> None:
    nights.repository.page, nights.repository.parts = 1, 3
    nights.repository.records = {"r0": dc("Old")}
    nights.repository.also = [("r0", dc("New"), "2026-11-21T00:00:00Z"), ("r1", dc("Other"), "2026-11-21T00:00:00Z")]
    assert nights.harvest() == {"status": "succeeded", "listed": 3, "inserted": 2, "updated": 1}
    assert nights.holdings() == {"r0": 2, "r1": 1}


@in_a_folder_too
def test_a_record_that_is_back_before_its_answer_breaks_off_is_not_deleted(nights: Nights) -> None:
    nights.repository.page, nights.repository.parts = 1, 5
    nights.repository.records = {"r0": dc("Old")}
    nights.harvest()
    nights.repository.records["r0"] = None
    nights.repository.also = [("r0", dc("New"), "2026-11-21T00:00:00Z"), ("r1", dc("Other"), "2026-11-21T00:00:00Z")]
    nights.repository.breaks_after = 2
    assert nights.harvest()["status"] == "incomplete"
    assert nights.holdings() == {"r0": 2}


def test_what_could_not_be_stored_is_asked_for_again_though_it_did_not_change(nights: Nights) -> None:
    nights.repository.records = records(3)
    nights.repository.records["r1"] = b"this is no XML"
    assert nights.harvest()["invalid"] == 1
    nights.harvester.rows("UPDATE harvest_document SET outcome = 'upload-error' WHERE document_id LIKE '%r1'")
    nights.repository.records["r1"] = dc("Record 1")
    nights.lists_changes()
    assert nights.harvest() == {"status": "succeeded", "listed": 1, "inserted": 1}
    assert nights.repository.asked[-1] == "r1"


class PowerCut(BaseException):
    """The process ends at this very moment."""


class Cut(RemoteTarget):
    """Lets the power fail as soon as it has been told of so many deletions, or sent so many documents.

    What is known of those before is in the database by then.
    """

    def __init__(self, url: str, harvester: Harvester, after: int) -> None:
        super().__init__(url)
        self._harvester = harvester
        self._left = after
        self._logged = self._outcomes() + after - 1

    def delete(self, document_id: str) -> bool:
        try:
            return super().delete(document_id)
        finally:
            self._is_over()

    def upload(self, upload: Upload) -> Action:
        try:
            return super().upload(upload)
        finally:
            self._is_over()

    def _is_over(self) -> None:
        self._left -= 1
        if self._left == 0:
            while self._outcomes() < self._logged:
                time.sleep(0.01)
            raise PowerCut

    def _outcomes(self) -> int:
        [(number,)] = self._harvester.rows("SELECT COUNT(*) FROM harvest_log WHERE outcome <> 'deferred'")
        return int(number)


@pytest.mark.parametrize("after", [1, 15, 30])
def test_killed_as_it_tells_of_deletions_none_is_lost_or_told_in_two_ways(nights: Nights, after: int) -> None:
    with Remote() as remote:
        confirm_thirty_deletions(nights, remote)
        with pytest.raises(PowerCut):
            nights.harvest(target=Cut(remote.url, nights.harvester, after))
        assert nights.harvest(target=RemoteTarget(remote.url)) == {"status": "succeeded", "listed": 30, "deleted": 30}
        assert len(remote.highest()) == 30
        assert len(remote.told_deleted) == 31
        logged = "SELECT COUNT(*), COUNT(DISTINCT document_id) FROM harvest_log WHERE outcome = 'deleted'"
        assert nights.harvester.rows(logged) == [(30, 30)]
        assert nights.harvest(target=RemoteTarget(remote.url)) == {"status": "succeeded"}


def test_killed_as_it_tells_of_deletions_a_record_that_another_site_lists_is_not_deleted(nights: Nights) -> None:
    with Remote() as remote:
        nights.repository.page = 30
        nights.repository.records = records(30)
        nights.harvest(target=RemoteTarget(remote.url))
        nights.register("second")
        nights.others["second"] = Repository(records(1))
        found = nights.harvest("second", target=RemoteTarget(remote.url))
        assert found == {"status": "succeeded", "listed": 1, "unchanged": 1}
        nights.repository.records |= deleted(3)
        nights.lists_changes(*deleted(3))
        with pytest.raises(PowerCut):
            nights.harvest(target=Cut(remote.url, nights.harvester, 1))
        found = nights.harvest(target=RemoteTarget(remote.url))
        assert found == {"status": "succeeded", "listed": 3, "deleted": 3}
        assert "repo/oai_dc/r0" not in remote.told_deleted
        found = nights.harvest("second", target=RemoteTarget(remote.url))
        assert found == {"status": "succeeded", "listed": 1, "unchanged": 1}


def test_killed_as_deletions_are_refused_none_is_told_twice(nights: Nights) -> None:
    with Remote() as remote:
        nights.repository.page = 30
        nights.repository.records = records(30)
        nights.harvest(target=RemoteTarget(remote.url))
        nights.repository.records |= deleted(9)
        nights.lists_changes(*deleted(9))
        remote.deletes = False
        with pytest.raises(PowerCut):
            nights.harvest(target=Cut(remote.url, nights.harvester, 7))
        found = nights.harvest(target=RemoteTarget(remote.url))
        assert found == {"status": "with-errors", "listed": 9, "upload_error": 9}
        logged = "SELECT COUNT(*), COUNT(DISTINCT document_id) FROM harvest_log WHERE outcome = 'upload-error'"
        assert nights.harvester.rows(logged) == [(9, 9)]
        remote.deletes = True
        assert nights.harvest(target=RemoteTarget(remote.url)) == {"status": "succeeded", "listed": 9, "deleted": 9}


@pytest.mark.parametrize("after", [1, 3, 6])
def test_killed_as_it_tries_again_what_failed_nothing_is_lost_or_doubled(nights: Nights, after: int) -> None:
    with Remote() as remote:
        nights.repository.records = records(8) | {f"r{each}": b"this is no XML" for each in range(6)}
        assert nights.harvest(target=RemoteTarget(remote.url))["invalid"] == 6
        nights.repository.records = records(8)
        nights.lists_changes()
        target = Cut(remote.url, nights.harvester, after)
        target.uploads_at_once = 1
        with pytest.raises(PowerCut):
            nights.harvest(target=target)
        assert nights.harvest(target=RemoteTarget(remote.url)) == {"status": "succeeded", "listed": 6, "inserted": 6}
        assert sorted(remote.received) == [f"repo/oai_dc/r{each}.1" for each in range(8)]
        assert nights.harvest(target=RemoteTarget(remote.url)) == {"status": "succeeded"}


def test_an_upload_of_which_nothing_is_known_is_looked_for_though_its_record_is_gone(nights: Nights) -> None:
    with Remote() as remote:
        nights.repository.records = records(5) | {"r1": b"this is no XML"}
        nights.harvest(target=RemoteTarget(remote.url))
        nights.repository.records = records(5)
        with pytest.raises(PowerCut):
            nights.harvest(target=Cut(remote.url, nights.harvester, 1))
        del nights.repository.records["r1"]
        found = nights.harvest(target=RemoteTarget(remote.url))
        assert found == {"status": "succeeded", "listed": 5, "inserted": 1, "unchanged": 4}
        assert nights.harvest(target=RemoteTarget(remote.url)) == {"status": "succeeded", "listed": 4, "unchanged": 4}
        assert "r1 is not in the repository's list any more" in nights.report()
