"""One run at a time; what a killed run leaves is taken up by the next, nothing lost, nothing doubled."""

import re
import signal
import threading
from datetime import UTC, datetime

import pytest

from metaharvest.database.engine import run_lock, writers
from metaharvest.database.models import HarvestRun
from support.databases import TestDatabase, on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer, silent
from support.mails import text_of
from support.waiting import wait_until


def killed_run(harvester: Harvester, server: HttpServer, number: int) -> tuple[list[str], list[str]]:
    """A run over `number` documents killed with SIGKILL when some of them are in; the docids, and those that are in."""
    docids = [f"a.{n}.1" for n in range(1, number + 1)]
    held_back = threading.Event()
    for docid in docids:
        server.serve(f"/{docid}.xml", eml(docid))

    def last(asking: Asking) -> None:
        held_back.wait(30)
        asking.answer(eml(docids[-1]))

    server.route(f"/{docids[-1]}.xml", last)
    server.serve("/list.xml", harvest_list([(docid, server.url(f"/{docid}.xml")) for docid in docids]))
    harvester.add_site("site", server.url("/list.xml"))
    process = harvester.start("run", "--date", "2026-11-20")
    wait_until(lambda: len(harvester.held()) >= number // 2)
    process.kill()
    process.communicate()
    held_back.set()
    return docids, list(harvester.held())


@pytest.mark.quick
def test_a_killed_run_is_resumed_and_ends_as_if_nothing_had_happened(harvester: Harvester, server: HttpServer) -> None:
    docids, held = killed_run(harvester, server, 60)
    assert 0 < len(held) < 60
    before = harvester.rows("SELECT status FROM harvest_run")
    assert before == [("running",)]

    run = harvester.run("2026-11-20")
    assert harvester.held() == {docid: eml(docid) for docid in docids}
    outcomes = harvester.rows("SELECT document_id, count(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY 1")
    assert dict(outcomes) == {docid.rpartition(".")[0]: 1 for docid in docids}
    site = run["sites"][0]
    assert (site["listed"], site["inserted"], site["status"]) == (60, 60, "succeeded")
    assert harvester.rows("SELECT run_id, status FROM harvest_run ORDER BY run_id") == [
        (1, "interrupted"),
        (2, "succeeded"),
    ]
    assert {"HarvesterStartup", "RunInterrupted"} <= set(harvester.operations(2))
    assert [s for s in harvester.subjects() if "] site: " in s] == [
        "[Test network] site: all well, 60 new (2026-11-20)"
    ]
    assert any("never ended" in text_of(m) for m in harvester.mails())


@on_one_database
def test_a_resumed_site_run_counts_what_was_logged_before_though_the_list_names_it_no_longer(
    harvester: Harvester, server: HttpServer
) -> None:
    docids, held = killed_run(harvester, server, 50)
    rest = [docid for docid in docids if docid not in held]
    server.serve("/list.xml", harvest_list([(docid, server.url(f"/{docid}.xml")) for docid in rest]))
    site = harvester.run("2026-11-20")["sites"][0]
    assert (site["listed"], site["inserted"], site["status"]) == (50, 50, "succeeded")


@on_one_database
def test_a_resumed_site_run_counts_duplicates_once(harvester: Harvester, server: HttpServer) -> None:
    docids, _ = killed_run(harvester, server, 40)
    first = docids[0]
    with writers(harvester.engine).begin() as session:
        session.connection().exec_driver_sql(
            "UPDATE harvest_log SET outcome = 'duplicate', harvest_operation_code = 'DocDuplicate' WHERE harvest_log_id"
            " = (SELECT min(harvest_log_id) FROM harvest_log WHERE outcome IS NOT NULL AND document_id <> 'a.1')"
        )
    duplicated = harvester.rows("SELECT document_id FROM harvest_log WHERE outcome = 'duplicate'")[0][0]
    entries = [(docid, server.url(f"/{docid}.xml")) for docid in docids]
    entries.append((f"{duplicated}.1", server.url(f"/{first}.xml")))
    server.serve("/list.xml", harvest_list(entries))
    site = harvester.run("2026-11-20")["sites"][0]
    assert (site["listed"], site["duplicate"], site["unchanged"]) == (41, 1, 1)
    assert site["status"] == "succeeded"


@on_one_database
def test_a_resumed_site_run_tells_of_an_unchanged_revision_what_it_would_have_told_undisturbed(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    publish(server, "a.1.1", "a.1.2", "a.2.1")
    server.route("/a.2.1.xml", lambda asking: asking.pause(60))
    process = harvester.start("run", "--date", "2026-11-21")
    wait_until(lambda: "a.1.2" in harvester.held())
    process.kill()
    process.communicate()
    server.serve("/a.2.1.xml", eml("a.2.1"))
    site = harvester.run("2026-11-21")["sites"][0]
    assert (site["updated"], site["inserted"], site["unchanged"]) == (1, 1, 1)
    [mail] = [
        mail for mail in harvester.mails() if "1 new, 1 updated" in mail["Subject"] and "] site:" in mail["Subject"]
    ]
    text = text_of(mail)
    assert "a.1.2  (was revision 1)" in text
    assert "the repository has" not in text


@on_one_database
def test_documents_that_leave_a_list_after_a_killed_run_are_reported(harvester: Harvester, server: HttpServer) -> None:
    """The killed run had begun to replace all revisions."""
    harvester.add_site("site", publish(server, *(f"a.{number}.1" for number in range(10, 30))))
    harvester.run("2026-11-20")
    raised = [f"a.{number}.2" for number in range(10, 30)]
    publish(server, *raised)
    for docid in raised[10:]:
        server.route(f"/{docid}.xml", lambda asking: asking.pause(60))
    process = harvester.start("run", "--date", "2026-11-21")
    wait_until(lambda: len(harvester.held()) == 30)
    process.kill()
    process.communicate()
    publish(server, *raised[:3])
    harvester.run("2026-11-22")
    reported = [
        row[0] for row in harvester.rows("SELECT error_message FROM harvest_detail_log WHERE rule = 'list.vanished'")
    ]
    assert len(reported) == 17
    assert "a.13 is listed no longer; the repository keeps it, at revision 2." in reported
    assert "a.20 is listed no longer; the repository keeps it, at revision 1." in reported
    assert harvester.rows("SELECT count(*) FROM harvest_document") == [(3,)]


def killed_after_deferring(harvester: Harvester, server: HttpServer, away: HttpServer) -> list[str]:
    """A run killed when it had put off documents of the server `away`; their docids."""
    docids = [f"b.{number}.1" for number in range(1, 31)]
    for docid in docids:
        away.serve(f"/{docid}.xml", b"busy", status=503)
    server.route("/a.1.1.xml", lambda asking: asking.pause(60))
    entries = [("a.1.1", server.url("/a.1.1.xml")), *((docid, away.url(f"/{docid}.xml")) for docid in docids)]
    server.serve("/list.xml", harvest_list(entries))
    harvester.add_site("site", server.url("/list.xml"))
    process = harvester.start("run", "--date", "2026-11-20")
    wait_until(lambda: harvester.rows("SELECT document_id FROM harvest_log WHERE outcome = 'deferred'"))
    process.kill()
    process.communicate()
    server.serve("/a.1.1.xml", eml("a.1.1"))
    return docids


@on_one_database
def test_what_a_killed_run_had_put_off_is_done_by_the_run_that_takes_it_up(
    harvester: Harvester, server: HttpServer
) -> None:
    with HttpServer() as away:
        for docid in killed_after_deferring(harvester, server, away):
            away.serve(f"/{docid}.xml", eml(docid))
        site = harvester.run("2026-11-20")["sites"][0]
    assert (site["listed"], site["deferred"]) == (31, 0)
    assert site["inserted"] + site["access_error"] == 31
    assert site["inserted"] >= 20
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "site@example.org"]
    assert "put off" not in text_of(mail)


@on_one_database
def test_where_a_server_is_still_away_the_resumed_site_run_says_why_documents_were_put_off(
    harvester: Harvester, server: HttpServer
) -> None:
    with HttpServer() as away:
        killed_after_deferring(harvester, server, away)
        run = harvester.run("2026-11-20")
    site = run["sites"][0]
    assert site["inserted"] == 1
    assert site["deferred"] + site["access_error"] == 30
    told = harvester.rows("SELECT error_message FROM harvest_detail_log WHERE rule = 'http.server-stopped'")
    assert [f" {site['deferred']} documents were put off" in message for (message,) in told] == [True]


def killed_after_other_sites(harvester: Harvester, server: HttpServer) -> None:
    """A run that had finished the sites `gone` (no list) and `busy` (one that may pass), killed in the site `slow`."""
    harvester.add_site("gone", server.url("/nowhere.xml"))
    busy = publish(server, "b.1.1", "b.2.1", path="/busy.xml")
    server.serve("/b.2.1.xml", b"busy", status=503)
    harvester.add_site("busy", busy)
    slow = publish(server, "s.1.1", path="/slow.xml")
    server.route("/s.1.1.xml", lambda asking: asking.pause(60))
    harvester.add_site("slow", slow)
    process = harvester.start("run", "--date", "2026-11-20")
    finished = "SELECT site_name FROM harvest_site_run WHERE status IN ('list-failed', 'with-errors')"
    wait_until(lambda: len(harvester.rows(finished)) == 2)
    process.kill()
    process.communicate()
    server.serve("/s.1.1.xml", eml("s.1.1"))


def test_the_run_after_a_killed_one_does_not_do_again_what_that_had_finished_today(
    harvester: Harvester, server: HttpServer
) -> None:
    killed_after_other_sites(harvester, server)
    run = harvester.run("2026-11-20")
    assert [(site["site_name"], site["status"]) for site in run["sites"]] == [("slow", "succeeded")]
    assert len(server.asked("/nowhere.xml")) == 1
    assert harvester.rows("SELECT attempts FROM harvest_document WHERE document_id = 'b.2'") == [(1,)]
    recipients = sorted(mail["To"] for mail in harvester.mails())
    assert recipients == ["busy@example.org", "gone@example.org", "slow@example.org", *["steward@example.org"] * 2]


@on_one_database
def test_what_a_killed_run_had_finished_is_done_again_the_next_day_by_name_and_by_the_second_run_after_it(
    harvester: Harvester, server: HttpServer
) -> None:
    killed_after_other_sites(harvester, server)
    assert [site["site_name"] for site in harvester.run("2026-11-20", "--site", "gone")["sites"]] == ["gone"]
    # That run came to its end: this one is a new one, for which `gone` is due and `busy` has a document to try again.
    run = harvester.run("2026-11-20")
    assert {(site["site_name"], site["kind"]) for site in run["sites"]} == {
        ("gone", "scheduled"),
        ("busy", "retry"),
        ("slow", "scheduled"),
    }


@on_one_database
def test_a_run_that_was_killed_is_taken_up_by_the_run_of_the_next_day(harvester: Harvester, server: HttpServer) -> None:
    killed_after_other_sites(harvester, server)
    run = harvester.run("2026-11-21")
    assert {(site["site_name"], site["kind"], site["status"]) for site in run["sites"]} == {
        ("gone", "scheduled", "list-failed"),
        ("busy", "scheduled", "with-errors"),
        ("slow", "scheduled", "succeeded"),
    }
    assert set(harvester.held()) == {"b.1.1", "s.1.1"}
    dates = "SELECT datelastharvest, datenextharvest FROM harvest_site_schedule WHERE name = 'slow'"
    assert harvester.rows(dates) == [("2026-11-21", "2026-11-22")]


@on_one_database
def test_the_night_between_a_killed_run_and_the_next_one_is_no_time_of_a_harvest(
    harvester: Harvester, server: HttpServer
) -> None:
    killed_run(harvester, server, 20)
    for table in ("harvest_run", "harvest_site_run"):
        harvester.rows(f"UPDATE {table} SET started_at = '2026-11-20 01:00:00.000000'")
    harvester.rows("UPDATE harvest_run SET heartbeat_at = '2026-11-20 01:05:00.000000'")
    harvester.run("2026-11-21")
    mails = {str(mail["To"]): " ".join(text_of(mail).split()) for mail in harvester.mails()}
    assert re.search(r"The harvest took [\d.]+ s after its interruption\.", mails["site@example.org"])
    took = re.compile(r"took \d+(\.\d+)? s\b")
    of_runs = [" ".join(text_of(mail).split()) for mail in harvester.mails() if "steward" in str(mail["To"])]
    assert any("Run 1, started 2026-11-20 01:00:00 UTC, took 5 min 0 s" in text for text in of_runs)
    [last] = [text for text in of_runs if "Run 2," in text]
    assert len(took.findall(last)) == 2
    assert harvester.rows("SELECT DISTINCT server_seconds FROM harvest_site_run") == [(None,)]


def test_a_second_run_exits_75_and_says_who_holds_the_lock(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    with writers(harvester.engine).begin() as session:
        at = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
        row = HarvestRun(
            harvest_date=at.date(), started_at=at, status="running", host="nightly", pid=4711, heartbeat_at=at
        )
        session.add(row)
    with run_lock(harvester.engine):
        said = harvester("run")
    assert said.code == 75
    assert "nightly" in said.err
    assert "4711" in said.err
    assert "2026-11-20 03:00" in said.err
    assert harvester.held() == {}


def test_a_run_that_was_taken_over_commits_nothing_more(harvester: Harvester, server: HttpServer) -> None:
    publish(server, "a.1.1")

    def take_over(asking: Asking) -> None:
        harvester.rows("UPDATE harvest_run SET status = 'interrupted'")
        asking.answer(eml("a.1.1"))

    server.route("/a.1.1.xml", take_over)
    harvester.add_site("site", server.url("/list.xml"))
    said = harvester("run", "--date", "2026-11-20")
    assert said.code != 0
    assert "another run has taken over" in said.err
    assert harvester.held() == {}


def test_a_database_of_another_age_is_refused_with_a_sentence(harvester: Harvester) -> None:
    for version, words in (("0000", "older than this program"), ("9999", "newer than this program")):
        harvester.rows("UPDATE alembic_version SET version_num = ?", version)
        said = harvester("run")
        assert (said.code, said.out) == (69, "")
        assert words in said.err


def test_without_a_database_run_says_how_to_make_one(harvester: Harvester, database: TestDatabase) -> None:
    harvester.engine.dispose()
    for file in harvester.folder.glob("metaharvest.db*"):
        file.unlink()
    if database.kind != "sqlite":
        harvester.rows("DROP TABLE alembic_version")
    said = harvester("run")
    assert said.code == 69
    assert "metaharvest init" in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["check", "oai list", "oai validate", "oai identify"])
def test_a_signal_ends_each_command_that_waits_for_a_server_with_130(
    harvester: Harvester, server: HttpServer, command: str, number: signal.Signals
) -> None:
    server.route("/slow", silent())
    with harvester.start(*command.split(), server.url("/slow")) as process:
        wait_until(lambda: server.requests)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Stopped" in err
    assert "Traceback" not in err


@on_one_database
def test_a_run_that_dies_as_it_closes_does_not_make_the_next_one_repeat_its_sites(
    harvester: Harvester, server: HttpServer
) -> None:
    """The run has reported when it dies, so that only the row of its end is missing."""
    harvester.add_site("site", publish(server, "a.1.1", also=[("a.2.1", server.url("/missing.xml"))]))
    dies = "BEFORE UPDATE OF status ON harvest_run WHEN NEW.status <> 'running' BEGIN SELECT RAISE(ABORT, 'dies'); END"
    harvester.rows(f"CREATE TRIGGER dies {dies}")
    assert harvester("run", "--date", "2026-11-20").code != 0
    harvester.rows("DROP TRIGGER dies")
    assert harvester.rows("SELECT status FROM harvest_run") == [("running",)]
    assert "HarvesterShutdown" not in harvester.operations(1)

    assert harvester.run("2026-11-20")["sites"] == []
    assert harvester.rows("SELECT attempts FROM harvest_document WHERE document_id = 'a.2'") == [(1,)]
