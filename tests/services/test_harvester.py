"""The front door: runs, sites by number, rehearsals and checks, for whoever is no command line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from metaharvest.errors import CannotBeChecked, DatabaseUnavailable, MetaharvestError, ScheduleError
from metaharvest.harvest.context import Progress
from metaharvest.harvest.run import RunRequest
from metaharvest.queries.runs import findings_of, run_record
from metaharvest.rehearsal.check import CheckOptions
from metaharvest.services import harvester as services
from metaharvest.services.documents import Transfer, TransferRequest, transfer
from metaharvest.services.reports import admin_report, letters_about, site_report
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
TODAY = date(2026, 11, 20)


class Watched(Progress):
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, int]] = []

    def site_began(self, name: str) -> None:
        self.told.append(("began", name, 0))

    def documents_listed(self, name: str, listed: int) -> None:
        self.told.append(("listed", name, listed))

    def documents_ended(self, name: str, number: int) -> None:
        self.told.append(("ended", name, number))

    def site_ended(self, name: str) -> None:
        self.told.append(("left", name, 0))


def sites_of(harvester: services.Harvester, run_id: int) -> Mapping[str, str]:
    """Name and kind of each site run of a run."""
    with harvester.reading() as session:
        return {site.site: site.kind for site in run_record(session, run_id).sites}


def test_a_run_harvests_what_is_due_and_tells_its_progress(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1"))
    harvester.add_site("later", server.url("/later.xml"), datenextharvest="2999-12-24")
    watched = Watched()
    with harvester.opened(clock=lambda: NOON) as opened:
        assert opened.today() == TODAY
        result = opened.run(RunRequest(opened.today()), watched)
        assert sites_of(opened, result.run_id) == {"alder": "scheduled"}
    assert (result.status, result.undelivered, result.cut_short) == ("succeeded", 0, "")
    assert set(harvester.held()) == {"a.1.1", "a.2.1"}
    assert watched.told[:2] == [("began", "alder", 0), ("listed", "alder", 2)]
    assert sum(number for word, _, number in watched.told if word == "ended") == 2
    assert watched.told[-1] == ("left", "alder", 0)
    assert harvester.rows("SELECT started_at FROM harvest_run") == [("2026-11-20 12:00:00.000000",)]


def test_the_progress_of_a_site_ends_although_its_row_cannot_be_used(harvester: Harvester) -> None:
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    harvester.rows("UPDATE harvest_site_schedule SET documentlisturl = 'nowhere'")
    watched = Watched()
    with harvester.opened(clock=lambda: NOON) as opened:
        opened.run(RunRequest(opened.today()), watched)
    assert watched.told == [("left", "alder", 0)]


def test_one_site_is_harvested_by_its_number_due_or_not(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("due", server.url("/due.xml"))
    number = harvester.add_site("alder", publish(server, "a.1.1"), datenextharvest="2999-12-24")
    with harvester.opened(clock=lambda: NOON) as opened:
        result = opened.harvest_site(number)
        assert sites_of(opened, result.run_id) == {"alder": "named"}
    assert set(harvester.held()) == {"a.1.1"}


def test_a_site_that_is_not_there_or_switched_off_is_not_harvested_by_its_number(harvester: Harvester) -> None:
    number = harvester.add_site("off", "https://alder.example.org/list.xml", enabled=False)
    with harvester.opened() as opened:
        with pytest.raises(ScheduleError, match=f"no site with the number {number + 1}"):
            opened.harvest_site(number + 1)
        with pytest.raises(ScheduleError, match="off is switched off"):
            opened.harvest_site(number)
    assert harvester.rows("SELECT * FROM harvest_run") == []


def test_a_dry_run_has_a_result_a_journal_and_reports_and_leaves_nothing(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))]))
    with harvester.opened(clock=lambda: NOON) as opened, opened.dry_run(RunRequest(TODAY)) as rehearsed:
        run_id = rehearsed.result.run_id
        with rehearsed.harvester.reading() as session:
            record = run_record(session, run_id)
            rules = [finding.rule for finding in findings_of(session, run_id)]
        assert (record.totals.inserted, record.totals.errors) == (1, 1)
        assert (record.failed_as_a_whole, record.has_document_errors) == (False, True)
        assert rules == ["http.status"]
        assert "a rehearsal: nothing was written" in " ".join(admin_report(rehearsed.harvester, run_id).text.split())
        report = site_report(rehearsed.harvester, record.sites[0].site_run_id)
        assert report.recipients == ("alder@example.org",)
        scratch = Path(rehearsed.harvester.engine.url.database or "")
        assert scratch.exists()
    assert not scratch.parent.exists()
    assert harvester.rows("SELECT * FROM harvest_run") == []
    assert harvester.rows("SELECT datelastharvest FROM harvest_site_schedule") == [(None,)]
    assert harvester.held() == {}
    assert harvester.mails() == []


def test_a_check_is_that_of_the_site_with_this_url_or_of_the_named_one_or_of_a_new_one(
    harvester: Harvester, server: HttpServer, tmp_path: Path
) -> None:
    url, other = publish(server, "a.1.1"), publish(server, "b.1.1", path="/other.xml")
    harvester.add_site("alder", url, enabled=False)
    file = tmp_path / "list.xml"
    file.write_bytes(harvest_list([("a.1.1", server.url("/a.1.1.xml"))]))
    checks = [
        (url, None, "alder"),
        (other, "alder", "alder"),
        (other, None, f"127.0.0.1:{server.port}"),
        (str(file), None, "list.xml"),
        (str(file), "alder", "alder"),
    ]
    with harvester.opened() as opened:
        for place, name, rehearsed_as in checks:
            with opened.check([place], CheckOptions(name)) as rehearsed:
                assert sites_of(rehearsed.harvester, rehearsed.result.run_id) == {rehearsed_as: "named"}
                assert rehearsed.result.status == "succeeded"
    assert harvester.rows("SELECT name, documentlisturl, enabled FROM harvest_site_schedule") == [("alder", url, 0)]


@pytest.mark.parametrize("harvest_list", ["", "ftp://example.org/list.xml", "http://", "file:///none/list.xml"])
def test_what_cannot_be_a_harvest_list_is_not_checked(harvester: Harvester, harvest_list: str) -> None:
    with harvester.opened() as opened, pytest.raises(CannotBeChecked), opened.check([harvest_list], CheckOptions()):
        pass


def test_a_check_does_without_a_database_and_everything_else_says_why_it_cannot(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.close()
    for file in harvester.folder.glob("metaharvest.db*"):
        file.unlink()
    with harvester.opened() as opened:
        assert isinstance(opened.database_error, DatabaseUnavailable)
        with opened.check([publish(server, "a.1.1")], CheckOptions()) as rehearsed:
            assert rehearsed.result.status == "succeeded"
        with pytest.raises(DatabaseUnavailable, match="metaharvest init"):
            opened.run(RunRequest(TODAY))
    assert [file.name for file in harvester.folder.iterdir()] == ["metaharvest.toml"]


def test_an_engine_that_is_given_is_used_and_left_open(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    with harvester.opened(engine=harvester.engine) as opened:
        assert opened.engine is harvester.engine
        pool = harvester.engine.pool
        opened.run(RunRequest(TODAY))
    assert harvester.engine.pool is pool
    assert harvester.held() == {"a.1.1": eml("a.1.1")}


def test_a_document_is_given_to_another_site_by_docid_or_document_id(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    birch = harvester.add_site("birch", "https://birch.example.org/list.xml", enabled=False)
    harvester.run("2026-11-20")
    with harvester.opened() as opened:
        transfers = transfer(opened, TransferRequest(("a.1.1",), "birch"))
        assert transfers == [Transfer("a.1", 1, "alder", done=True)]
        with pytest.raises(MetaharvestError, match=r"no document 'a\.9'"):
            transfer(opened, TransferRequest(("a.9",), "birch"))
        with pytest.raises(ScheduleError, match="no site named 'cedar'"):
            transfer(opened, TransferRequest(("a.1",), "cedar"))
    assert harvester.rows("SELECT site_schedule_id FROM document_revision") == [(birch,)]


def test_split_sites_have_their_settings_as_soon_as_the_database_can_be_used(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with harvester.config.open("a") as file:
        file.write('[sites.alder.target]\nkind = "folder"\nfolder = "alder"\n')
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    harvester.add_site("alder-b", "https://alder.example.org/b.xml", options='{"split_from": "alder"}')

    def away(session: object) -> dict[str, str]:
        raise DatabaseUnavailable("The database is away.")

    with harvester.opened() as opened:
        with monkeypatch.context() as patched:
            patched.setattr("metaharvest.sites.registry.split_sites", away)
            assert "alder-b" not in opened.settings.sites
            with pytest.raises(DatabaseUnavailable):
                opened.targets  # noqa: B018 - it is made at its first use
        assert opened.targets.of("alder-b") is opened.targets.of("alder")
        assert "alder-b" in opened.settings.sites


def test_each_site_gets_its_letter_if_names_differ_in_case_alone(harvester: Harvester, server: HttpServer) -> None:
    for name in ("b", "B"):
        harvester.add_site(name, server.url(f"/{name}.xml"))
    harvester.run("2026-11-20")
    [(rule,)] = harvester.rows("SELECT DISTINCT rule FROM site_problem")
    with harvester.opened() as opened:
        first = letters_about(opened, rule, limit=1)
        assert first.next is not None
        second = letters_about(opened, rule, limit=1, after=first.next)
    assert [each.site for each in (*first.letters, *second.letters)] == ["B", "b"]
