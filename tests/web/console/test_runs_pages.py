"""Tonight, runs, a run, what changed, the log, and the current jobs, as a steward and a viewer see them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from metaharvest.database.engine import writers
from metaharvest.database.models import DocumentTransfer
from metaharvest.jobs import claims, making, workers
from metaharvest.jobs.making import NewJob
from metaharvest.jobs.workers import WorkerProcess
from metaharvest.web.console.pages import log
from support.console import Page, Served, served_console
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer

pytestmark = pytest.mark.slow

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def harvester(tmp_path: Path) -> Iterator[Harvester]:
    installed = Harvester(tmp_path)
    yield installed
    installed.close()


@pytest.fixture
def nights(harvester: Harvester, server: HttpServer) -> Harvester:
    two_nights(harvester, server)
    return harvester


def two_nights(harvester: Harvester, server: HttpServer) -> None:
    """Two nights of two sites: one document breaks, one is repaired, and one site's list is gone in the second."""
    alder = publish(server, "net.1.1", "net.2.1")
    server.serve("/net.2.1.xml", b"<broken")
    harvester.add_site("alder", alder)
    harvester.add_site("birch", publish(server, "net.5.1", path="/birch.xml"))
    harvester.run("2026-11-23")
    server.serve("/net.2.1.xml", eml("net.2.1"))
    server.serve("/net.3.1.xml", HOSTILE.encode())
    publish(server, "net.1.1", "net.2.1", also=[("net.3.1", server.url("/net.3.1.xml"))])
    server.serve("/net.3.1.xml", HOSTILE.encode())
    server.serve("/birch.xml", b"no list")
    harvester.run("2026-11-24", "--force")


@pytest.fixture
def console(nights: Harvester) -> Iterator[Served]:
    with served_console(nights) as made:
        yield made


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The console of the same two nights, for tests that only read."""
    harvester = Harvester(tmp_path_factory.mktemp("nights"))
    with HttpServer() as server:
        two_nights(harvester, server)
    with served_console(harvester) as made:
        yield made
    harvester.close()


@pytest.fixture
def empty(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as made:
        yield made


def rows_of_csv(page: Page) -> list[dict[str, str]]:
    assert page.headers["content-disposition"].startswith("attachment")
    return list(csv.DictReader(io.StringIO(page.content.decode("utf-8-sig"))))


def test_tonight_says_what_failed_and_what_changed(console: Served) -> None:
    page = console.signed_in("steward").open("/console/")
    assert page.path == "/console/tonight"
    assert (
        "Run 2 of 2026-11-24 needs attention: of 2 sites, 1 failed as a whole, 1 document was not accepted" in page.text
    )
    [failed] = page.table("Sites whose last harvest failed as a whole, the longest first")
    assert failed[0] == "birch"
    assert failed[2] == "2026-11-24"
    assert "✕ New 2" in page.text
    assert "✓ Fixed 1" in page.text
    assert "net.2" in page.follow("Documents that are fixed").text
    assert "No run is under way." in page.text
    page = page.submit("Harvest now birch")
    assert page.notice.startswith("Request 1: It waits for the next run")


def test_a_run_has_the_numbers_of_its_mail(console: Served, nights: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    page = console.signed_in("viewer").open("/console/runs").follow("Run 2")
    [subject] = [each for each in nights.subjects() if "2 sites" in each and "1 failed" in each]
    assert subject.partition(": ")[2].partition(" [")[0].split(";")[0] in page.text
    table = {row[0]: row for row in page.table("Sites of run 2")}
    assert table["alder"][2:8] == ["3", "1", "0", "1", "0", "1"]
    assert "list not read" in table["birch"][1]
    assert "Since 2026-11-24, 1 night." in table["birch"][1]
    assert "Delete this run" not in page.links()
    assert [row["site"] for row in rows_of_csv(page.follow("Sites (CSV)"))] == ["alder", "birch"]
    nights.rows("UPDATE harvest_site_run SET listed = listed + 5, deleted = 2, filtered = 1 WHERE run_id = 2")
    monkeypatch.setattr("metaharvest.web.console.pages.runs._SITES_SHOWN", 1)
    [totals] = console.signed_in("viewer").open("/console/runs/2").root.find_class("totals")
    assert [each.text_content() for each in totals.findall("div")][-2:] == ["deleted4", "left out2"]


def test_what_changed_between_two_runs(unchanged: Served) -> None:
    page = unchanged.signed_in("viewer").open("/console/runs/2").follow("What changed")
    assert "2 sites have changes or failures" in page.text
    table = {row[0]: row for row in page.table("Changes by site")}
    assert table["alder"][1:] == ["with errors", "2 → 3", "1", "", "1", "1", "", ""]
    assert "net.2.1: new (before: xml.unclosed)" in page.text
    changes = rows_of_csv(page.follow("All as a table (CSV)"))
    assert [(row["change"], row["document_id"]) for row in changes if row["site"] == "alder"] == [
        ("newly_failing", "net.3"),
        ("fixed", "net.2"),
        ("inserted", "net.2"),
    ]


def test_a_run_is_compared_with_a_later_one(unchanged: Served) -> None:
    viewer = unchanged.signed_in("viewer")
    page = viewer.open("/console/runs/1/changes?other=2")
    assert dict(page.form("Compare").form_values()) == {"other": "2"}
    assert page.submit("Compare").table("Changes by site") == page.table("Changes by site")
    changes = page.follow("All as a table (CSV)")
    assert changes.content == viewer.open("/console/runs/2/changes.csv?other=1").content
    assert 'filename="changes-1-2.csv"' in changes.headers["content-disposition"]


def test_the_table_of_changes_begins_with_the_run_before(unchanged: Served) -> None:
    viewer = unchanged.signed_in("viewer")
    assert rows_of_csv(viewer.open("/console/runs/2/changes.csv"))
    assert "There is no run before this one." in viewer.open("/console/runs/1/changes.csv").text


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/console/runs/99", 404, "There is no run 99."),
        ("/console/runs/x", 404, "There is no run 'x'."),
        ("/console/runs/2/changes?other=99", 422, "There is no run 99."),
        ("/console/runs/2/changes?other=2", 422, "Name the earlier run first"),
        ("/console/runs/1/changes", 200, "This is the first run"),
        ("/console/runs/99/sites.csv", 422, "There is no run 99."),
        ("/console/runs/2/documents.csv?site_run=x", 404, "There is no run 'x'."),
        ("/console/log?run=99", 422, "There is no run 99."),
        ("/console/log?level=loud", 422, "There is no level 'loud'."),
        ("/console/log?since=yesterday", 422, "'yesterday' is not a day"),
        ("/console/log?until=9999-12-31", 422, "9999-12-31 is too far away"),
        (f"/console/log?rule={HOSTILE}", 422, f"There is no rule '{HOSTILE}'"),
        ("/console/log?site=nobody", 422, "nobody"),
        ("/console/log?document=net.99", 200, "No row of the log matches these filters."),
    ],
)
def test_unknown_names_get_a_sentence(unchanged: Served, path: str, status: int, sentence: str) -> None:
    page = unchanged.signed_in("viewer").open(path)
    assert (page.status, sentence in page.text) == (status, True), page.text


def test_the_log_has_filters_findings_and_a_table(unchanged: Served) -> None:
    page = unchanged.signed_in("viewer").open("/console/runs/2").follow("Errors")
    assert {row[2] for row in page.table()} == {"alder", "birch"}
    page = page.submit("Show", {"site": "alder"})
    [row] = page.table()
    assert row[4] == "net.3.1"
    assert HOSTILE.encode() not in page.content
    [line] = rows_of_csv(page.follow("All of these rows as a table (CSV)"))
    assert line["docid"] == "net.3.1"
    page = unchanged.signed_in("viewer").open("/console/log?rule=xml.unclosed")
    assert [row[4] for row in page.table()] == ["net.2.1"]
    assert "(run 1)" in page.text


def test_the_last_page_of_the_log_has_all_transfers_before_the_first_run(
    console: Served, nights: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writers(nights.engine).begin() as session:
        when = {"transferred_on": date(2020, 1, 1), "transferred_at": datetime.now(UTC), "transferred_by": "kim"}
        for number in range(3):
            session.add(DocumentTransfer(document_id=f"old.{number}", to_site="alder", message="given", **when))
    [(number,)] = nights.rows("SELECT count(*) FROM harvest_log")
    viewer = console.signed_in("viewer")
    address = "/console/log?since=2010-01-01&level=debug"
    for most in (number, number - 1):
        monkeypatch.setattr(log, "_SHOWN", most)
        page = viewer.open(address)
        shown = page.table()
        if most < number:
            shown = page.follow("Earlier rows").table() + shown
        assert len(shown) == number + 3
        assert [row[4] for row in shown[:3]] == ["old.0", "old.1", "old.2"]


def test_the_pages_of_the_log_of_a_site_stay_those_of_one_harvest(
    console: Served, nights: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "_SHOWN", 2)
    page = console.signed_in("viewer").open("/console/log?site=alder&level=debug")
    earlier = page.follow("Earlier rows").table()
    assert earlier
    nights.run("2026-11-29", "--site", "alder")
    assert page.follow("Earlier rows").table() == earlier


def test_a_download_that_is_not_read_holds_no_session(console: Served, nights: Harvester) -> None:
    columns = "harvest_date, logged_at, status, message, harvest_operation_code, site_schedule_id, site_run_id, run_id"
    nights.rows("UPDATE harvest_log SET message = ?", "m" * 8000)
    for _ in range(8):
        nights.rows(f"INSERT INTO harvest_log ({columns}) SELECT {columns} FROM harvest_log WHERE run_id = 2")
    viewer = console.signed_in("viewer")
    with viewer.session.get(f"{console.url}/console/log.csv?run=2", stream=True, timeout=60) as answer:
        assert int(answer.headers["Content-Length"]) > 10_000_000
        assert next(answer.iter_content(3)) == b"\xef\xbb\xbf"
        assert nights.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


def test_an_old_run_is_deleted_after_a_question(console: Served, nights: Harvester) -> None:
    nights.run("2026-11-25", "--force")
    steward = console.signed_in("steward")
    page = steward.open("/console/runs/3").follow("Delete this run")
    assert "Run 3 cannot be deleted: it is the newest run." in page.text
    assert [form for form in page.root.forms if "actions" in form.get("action")] == []
    nights.run("2026-11-26", "--force")
    page = steward.open("/console/runs/3").follow("Delete this run")
    assert "Its log, its site runs and its reports are deleted" in page.text
    page = page.submit("Delete the run 3 with its log")
    assert page.path == "/console/runs"
    assert page.notice.startswith("Deleted run 3 of 2026-11-25: 2 site runs, ")
    assert nights.rows("SELECT run_id FROM harvest_run ORDER BY run_id") == [(1,), (2,), (4,)]
    assert steward.open("/console/runs/3").status == 404
    assert "From run 2 " in steward.open("/console/runs/4/changes").text


def test_a_request_is_made_shown_and_taken_back(console: Served, nights: Harvester) -> None:
    nights.rows("UPDATE harvest_site_schedule SET datenextharvest = '2020-01-01'")
    steward = console.signed_in("steward")
    page = steward.open("/console/jobs").submit("Leave out of the next run alder")
    assert page.notice == "Request 1: It is left out at the next run."
    assert [row[0] for row in page.table("Left out of the next run")] == ["alder"]
    page = page.submit("Harvest in the next run alder")
    assert page.notice == "The site alder is harvested as scheduled."
    page = page.submit("Harvest now birch")
    [row] = page.table("Open requests, the newest first")
    assert row[1:4] == ["birch", "Harvest", "– waiting"]
    assert "by steward@example.org (console)" in row[4]
    page = page.submit("Take back request 2")
    assert page.notice == "Request 2 is taken back."
    assert "No request is open." in steward.open("/console/jobs/live?requests=yes").text
    assert [row[3] for row in page.table("Ended requests, the newest first")] == ["– cancelled", "– cancelled"]
    actions = nights.rows("SELECT action, actor FROM audit_entry WHERE via = 'console' ORDER BY audit_entry_id")
    assert actions == [
        (action, "steward@example.org")
        for action in ("sites.skip", "requests.cancel", "sites.harvest", "requests.cancel")
    ]


def test_a_run_under_way_is_shown_and_stopped(console: Served, nights: Harvester) -> None:
    start_a_run(nights)
    steward = console.signed_in("steward")
    fragment = steward.open("/console/jobs/live")
    assert b"<html" not in fragment.content
    [row] = fragment.table("Sites under way")
    assert [*row[:5], row[-1]] == ["alder", "checking", "40", "10", "2", "Stop alder"]
    assert "11 of 41 documents, 2 errors" in fragment.text
    page = steward.open("/console/runs/3")
    assert "Run 3 of 2026-11-25 is under way" in page.text
    page = page.follow("Stop alder").submit("Stop the harvest of the site alder")
    assert page.notice == "Request 1: Run 3 takes it within seconds."
    page = page.follow("Stop the run")
    assert "Documents under way are finished." in page.text
    assert page.submit("Stop the run under way").notice == "Request 2: Run 3 takes it within seconds."
    assert nights.rows("SELECT kind, site_name, run_id FROM harvest_request ORDER BY 1, 2") == [
        ("stop", None, 3),
        ("stop", "alder", 3),
    ]
    viewer = console.signed_in("viewer").open("/console/jobs")
    assert not {"Stop the run", "Stop alder"} & set(viewer.links())


def start_a_run(harvester: Harvester, seconds_ago: int = 30, done: int = 10) -> None:
    """The rows of a run that harvests alder, began this time ago, and has not written since; birch has ended."""
    moment = f"{datetime.now(UTC) - timedelta(seconds=seconds_ago):%Y-%m-%d %H:%M:%S}"
    harvester.rows(
        "INSERT INTO harvest_run (run_id, harvest_date, started_at, status, host, pid, heartbeat_at) "
        f"SELECT 3, '2026-11-25', '{moment}', 'running', 'here', 1, '{moment}'"
    )
    for site_id, name, phase, has_done in ((1, "alder", "checking", done), (2, "birch", "ended", 1)):
        harvester.rows(
            "INSERT INTO site_progress (run_id, site_schedule_id, site_name, phase, listed, done, errors, began_at, "
            f"updated_at) VALUES (3, {site_id}, '{name}', '{phase}', {40 if has_done != 1 else 1}, {has_done}, "
            f"{2 if has_done != 1 else 0}, '{moment}', '{moment}')"
        )


@pytest.mark.parametrize(
    ("seconds_ago", "done", "left", "rate"),
    [(240, 30, "1 min ", "0.1"), (30, 0, "–", "–"), (1000, 8, "1 h", "under 0.1")],
    ids=["by its rate", "unknown", "slow"],
)
def test_an_estimate_is_shown_if_there_is_one(
    console: Served, nights: Harvester, seconds_ago: int, done: int, left: str, rate: str
) -> None:
    start_a_run(nights, seconds_ago, done)
    fragment = console.signed_in("viewer").open("/console/jobs/live")
    [row] = fragment.table("Sites under way")
    assert row[5] == rate
    assert row[7].startswith(left)
    assert (" left:" in fragment.text) == (left != "–")
    shown = nights("runs", "now").out
    assert ("left:" in shown.splitlines()[0]) == (left != "–")


def test_a_run_that_was_killed_before_it_wrote_numbers_shows_none(console: Served, nights: Harvester) -> None:
    start_a_run(nights, 300)
    nights.rows("DELETE FROM site_progress")
    for said in (console.signed_in("viewer").open("/console/jobs/live").text, nights("runs", "now").out):
        assert "no document is listed yet" in said
        assert "may have ended" in said
        assert "0 of 0" not in said
        assert "Sites: " not in said


def test_tonight_shows_the_start_of_a_run_in_the_time_zone_of_the_installation(
    nights: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_a_run(nights)
    nights.rows("UPDATE harvest_run SET started_at = '2026-11-25 20:30:00' WHERE run_id = 3")
    monkeypatch.setenv("METAHARVEST_HARVESTER__TIME_ZONE", "Asia/Kathmandu")
    with served_console(nights) as console:
        page = console.signed_in("viewer").open("/console/tonight")
    assert "Run 3 is under way since 2026-11-26 02:15 Asia/Kathmandu." in page.text


def test_a_request_to_a_run_that_was_killed_says_so(console: Served, nights: Harvester) -> None:
    start_a_run(nights, 300)
    steward = console.signed_in("steward")
    page = steward.open("/console/jobs").follow("Stop the run").submit("Stop the run under way")
    assert page.notice == (
        "Request 1: Run 3 has not written for 2 minutes: its process may have ended. The next run goes on."
    )
    assert "may have ended" in steward.open("/console/jobs/live").text
    page = page.submit("Harvest now birch")
    assert page.notice == (
        "Request 2: It waits for the next run, or for metaharvest run --requested: the daemon does not run."
    )


def test_an_empty_installation_says_what_its_pages_mean(empty: Served) -> None:
    viewer = empty.signed_in("viewer")
    page = viewer.open("/console/tonight")
    assert "There has been no run yet." in page.text
    assert "Add a site" not in page.links()
    assert empty.signed_in("steward").open("/console/tonight").follow("Add a site").title == "Add a site"
    assert "There has been no run yet." in viewer.open("/console/runs").text
    assert "No site is due in the next run." in viewer.open("/console/jobs").text
    assert "No row of the log matches these filters." in viewer.open("/console/log").text


@pytest.fixture
def with_workers(nights: Harvester) -> Iterator[Served]:
    settings = nights.config.read_text(encoding="utf-8")
    workers_of = '[workers]\nbroker = "amqp://guest@127.0.0.1:1/"\nrun_at = 02:30:00\n'
    nights.config.write_text(settings + workers_of, encoding="utf-8")
    with served_console(nights) as made:
        yield made


def test_the_jobs_of_workers_are_shown(with_workers: Served, nights: Harvester) -> None:
    with writers(nights.engine).begin() as session:
        making.make(session, [NewJob("harvest_site", "key", subject="alder", priority=50)])
    viewer = with_workers.signed_in("viewer")
    page = viewer.open("/console/jobs")
    assert "Workers harvest the due sites from 02:30 (UTC) on" in page.text
    assert "Jobs wait, and no worker is there." in page.text
    assert [row[:5] for row in page.table("Open jobs, the newest first")] == [
        ["1", "harvest_site", "alder", "– ready", "50"]
    ]
    with writers(nights.engine).begin() as session:
        [mine] = claims.claim(session, "worker-1", ["harvest_site"])
        workers.note(session, WorkerProcess("worker-1", "machine", 7, "1"), [mine.job_id])
    page = viewer.open("/console/jobs")
    [row] = page.table("Workers")
    assert (row[:2], row[4]) == (["worker-1", "machine, process 7"], "harvest_site: alder")
    nights.rows("UPDATE worker SET seen_at = '2020-01-01 00:00:00'")
    [row] = viewer.open("/console/jobs").table("Workers")
    assert row[4] == "! silent: it may have died harvest_site: alder; the next free worker takes its jobs"
