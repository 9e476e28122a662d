"""People ask the harvester for a harvest, stop a run or a site, and leave a site out; what was asked is never lost."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import pytest

from metaharvest.config.settings import load
from metaharvest.database.engine import run_lock, writers
from metaharvest.journal.journal import Journal
from metaharvest.journal.taken_requests import TakenStops
from metaharvest.journal.writer import GroupLimits
from metaharvest.model.requests import Actor, RequestKind
from metaharvest.requests import asking
from metaharvest.requests.asking import NewRequest
from metaharvest.targets.lookup import Targets
from support.databases import on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer
from support.waiting import wait_until


def asked(harvester: Harvester, *arguments: str) -> dict[str, Any]:
    said = harvester(*arguments, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def states(harvester: Harvester) -> list[tuple[Any, ...]]:
    return harvester.rows("SELECT kind, site_name, state FROM harvest_request ORDER BY request_id")


def held_back(server: HttpServer, *docids: str) -> tuple[str, threading.Event]:
    """A list of these documents, which the server serves when the event is set, and its first one at once."""
    release = threading.Event()

    def route(docid: str) -> Any:
        def late(asking_: Asking) -> None:
            release.wait(30)
            asking_.answer(eml(docid))

        return late

    for docid in docids[1:]:
        server.route(f"/{docid}.xml", route(docid))
    server.serve(f"/{docids[0]}.xml", eml(docids[0]))
    path = f"/{docids[0]}-list.xml"
    server.serve(path, harvest_list((docid, server.url(f"/{docid}.xml")) for docid in docids))
    return server.url(path), release


def test_a_requested_site_is_harvested_though_it_is_not_due_and_asking_twice_is_asking_once(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.add_site("basalt", publish(server, "basalt.1.1", path="/b.xml"))
    assert len(harvester.run("2026-11-20")["sites"]) == 2
    first = asked(harvester, "sites", "harvest", "alder")
    again = asked(harvester, "sites", "harvest", "alder")
    assert first["is_new"]
    assert not again["is_new"]
    assert first["request_id"] == again["request_id"]
    assert "next run" in first["waits_for"]
    assert harvester.run("2026-11-20", "--requested")["sites"][0]["site"] == "alder"
    assert states(harvester) == [("harvest", "alder", "done")]
    [(sentence,)] = harvester.rows("SELECT sentence FROM harvest_request")
    assert sentence == "Run 2 harvested it: succeeded."
    assert "RequestTaken" in harvester.operations(2)


@on_one_database
def test_without_requests_a_requested_run_is_no_run(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    said = harvester("run", "--requested")
    assert (said.code, said.out, said.err) == (0, "", "")
    assert harvester.rows("SELECT run_id FROM harvest_run") == []


@on_one_database
def test_a_nightly_run_takes_requests_along_and_a_run_of_one_site_takes_its_own(
    harvester: Harvester, server: HttpServer
) -> None:
    for name in ("alder", "basalt"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"), datenextharvest="2999-12-24")
        asked(harvester, "sites", "harvest", name)
    assert [each["site"] for each in harvester.run("2026-11-20", "--site", "basalt")["sites"]] == ["basalt"]
    assert states(harvester) == [("harvest", "alder", "waiting"), ("harvest", "basalt", "done")]
    assert [each["site"] for each in harvester.run("2026-11-20")["sites"]] == ["alder"]


@on_one_database
def test_the_whole_list_is_harvested_again_on_request(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.run("2026-11-20")
    harvester.run("2026-11-21")
    assert "HarvestListUnchanged" in harvester.operations(2)
    asked(harvester, "sites", "harvest", "alder", "--everything")
    harvester.run("2026-11-21", "--requested")
    assert "HarvestListUnchanged" not in harvester.operations(3)


@on_one_database
def test_only_failing_documents_are_tried_again_on_request(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "alder.1.1", also=[("alder.2.1", server.url("/alder.2.1.xml"))])
    harvester.add_site("alder", url)
    server.serve("/alder.2.1.xml", b"<broken")
    harvester.run("2026-11-20")
    server.serve("/alder.2.1.xml", eml("alder.2.1"))
    asked(harvester, "sites", "harvest", "alder", "--failing")
    [site] = harvester.run("2026-11-20", "--requested")["sites"]
    assert (site["listed"], site["inserted"], site["kind"]) == (1, 1, "retry")
    asked(harvester, "sites", "harvest", "alder", "--failing")
    assert harvester.run("2026-11-20", "--requested")["sites"] == []
    sentences = harvester.rows("SELECT sentence FROM harvest_request ORDER BY request_id")
    assert sentences[-1] == ("No document of the site fails.",)


@on_one_database
def test_a_failing_revision_below_the_one_in_the_target_is_not_tried_again_on_request(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1", "alder.1.2"))
    server.serve("/alder.1.1.xml", b"not here", status=404)
    harvester.run("2026-11-20")
    asked(harvester, "sites", "harvest", "alder", "--failing")
    assert harvester.run("2026-11-20", "--requested")["sites"] == []
    [request] = harvester.rows("SELECT state, sentence FROM harvest_request")
    assert request == ("done", "No document of the site fails.")


@on_one_database
def test_a_due_site_is_harvested_as_a_whole_though_only_its_failing_documents_are_asked_for(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1", also=[("alder.2.1", server.url("/alder.2.1.xml"))]))
    server.serve("/alder.2.1.xml", b"<broken")
    harvester.run("2026-11-20")
    asked(harvester, "sites", "harvest", "alder", "--failing")
    [site] = harvester.run("2026-11-21")["sites"]
    assert (site["kind"], site["listed"]) == ("named", 2)


@on_one_database
def test_a_request_that_no_run_can_carry_out_is_refused_and_asks_for_no_further_run(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1", also=[("alder.2.1", server.url("/alder.2.1.xml"))]))
    server.serve("/alder.2.1.xml", b"<broken")
    harvester.run("2026-11-20")
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f'{settings}\n[target]\nkind = "none"\n', encoding="utf-8")
    asked(harvester, "sites", "harvest", "alder", "--failing")
    assert harvester.run("2026-11-20", "--requested")["sites"] == []
    [(state, sentence)] = harvester.rows("SELECT state, sentence FROM harvest_request")
    assert state == "refused"
    assert sentence == "Run 2 ended without a result for this site. Read its log, then ask again."


@on_one_database
@pytest.mark.parametrize("reason", ["The site is switched off", "3 runs were killed"])
def test_a_request_that_is_refused_is_in_the_log_and_in_the_report(
    harvester: Harvester, server: HttpServer, reason: str
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"), datenextharvest="2999-12-24")
    harvester.add_site("basalt", publish(server, "basalt.1.1", path="/b.xml"))
    asked(harvester, "sites", "harvest", "alder")
    if "killed" in reason:
        harvester.run("2026-11-19")
        harvester.rows("UPDATE harvest_run SET status = 'running'")
        harvester.rows("UPDATE harvest_request SET state = 'taken', run_id = 1, attempts = 3")
    else:
        assert harvester("sites", "disable", "alder").code == 0
    harvester.run("2026-11-20")
    assert states(harvester) == [("harvest", "alder", "refused")]
    row = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'RequestTaken' ORDER BY harvest_log_id DESC"
    [message] = harvester.rows(row)[0]
    assert f"asked for a harvest of alder. This is refused: {reason}" in message
    to_steward = [each for each in harvester.mails() if each["To"] == "steward@example.org"]
    [body] = [each.get_body(("plain",)) for each in to_steward if each["Subject"].endswith("(2026-11-20)")]
    assert body is not None
    assert f"This is refused: {reason}" in " ".join(body.get_content().split())


def test_who_asks_again_after_the_result_gets_a_new_request(harvester: Harvester, server: HttpServer) -> None:
    url, release = held_back(server, "basalt.1.1", "basalt.2.1")
    harvester.add_site("alder", publish(server, "alder.1.1"), datenextharvest="2999-12-24")
    harvester.add_site("basalt", url)
    first = asked(harvester, "sites", "harvest", "alder")
    run = harvester.start("run")
    wait_until(
        lambda: harvester.rows("SELECT 1 FROM harvest_site_run WHERE site_name = 'alder' AND ended_at IS NOT NULL")
    )
    second = asked(harvester, "sites", "harvest", "alder")
    release.set()
    _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert (second["is_new"], second["request_id"] == first["request_id"]) == (True, False)
    assert states(harvester) == [("harvest", "alder", "done"), ("harvest", "alder", "waiting")]


def test_a_site_is_left_out_of_the_next_run_and_harvested_by_the_one_after(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.add_site("basalt", publish(server, "basalt.1.1", path="/b.xml"))
    asked(harvester, "sites", "skip", "alder")
    assert [each["site"] for each in harvester.run("2026-11-20")["sites"]] == ["basalt"]
    assert states(harvester) == [("skip", "alder", "done")]
    assert "alder is left out" in harvester("log", "--run", "1").out
    [mail] = [each for each in harvester.mails() if each["To"] == "steward@example.org"]
    for kind in ("plain", "html"):
        body = mail.get_body((kind,))
        assert body is not None
        words = " ".join(body.get_content().split())
        assert "Requests of people" in words
        assert "alder is left out of this run: " in words
    assert [each["site"] for each in harvester.run("2026-11-20")["sites"]] == ["alder"]


@on_one_database
def test_not_tonight_can_be_taken_back_and_so_can_any_request_that_waits(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    asked(harvester, "sites", "skip", "alder")
    assert asked(harvester, "sites", "skip", "alder", "--undo")["state"] == "cancelled"
    assert harvester("sites", "skip", "alder", "--undo").code == 2
    request = asked(harvester, "sites", "harvest", "alder")["request_id"]
    assert harvester("requests", "cancel", str(request)).code == 0
    again = harvester("requests", "cancel", str(request))
    assert (again.code, "ended already" in again.err) == (2, True)
    assert harvester("requests", "cancel", "77").code != 0
    assert states(harvester) == [("skip", "alder", "cancelled"), ("harvest", "alder", "cancelled")]
    assert len(harvester.run("2026-11-20")["sites"]) == 1


def test_a_run_stops_within_seconds_of_a_request(harvester: Harvester, server: HttpServer) -> None:
    url, release = held_back(server, *(f"alder.{number}.1" for number in range(1, 40)))
    harvester.add_site("alder", url)
    process = harvester.start("run", "--date", "2026-11-20")
    wait_until(lambda: "alder.1.1" in harvester.held())
    assert "takes it within seconds" in harvester("runs", "stop").out
    wait_until(lambda: states(harvester) == [("stop", None, "taken")])
    release.set()
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert harvester.rows("SELECT status FROM harvest_run") == [("interrupted",)]
    assert states(harvester) == [("stop", None, "done")]
    assert harvester.rows("SELECT site_name FROM site_progress") == []
    said = harvester("runs", "stop")
    assert (said.code, "No run is under way" in said.err) == (2, True)


def test_one_site_stops_and_the_others_are_harvested(harvester: Harvester, server: HttpServer) -> None:
    url, release = held_back(server, *(f"alder.{number}.1" for number in range(1, 40)))
    harvester.add_site("alder", url)
    with HttpServer(host="127.0.0.2") as other:
        other_url, other_release = held_back(other, "basalt.1.1", "basalt.2.1")
        harvester.add_site("basalt", other_url)
        process = harvester.start("run", "--date", "2026-11-20", "--json")
        wait_until(lambda: {"alder.1.1", "basalt.1.1"} <= set(harvester.held()))
        assert harvester("runs", "stop", "--site", "alder").code == 0
        wait_until(lambda: states(harvester) == [("stop", "alder", "taken")])
        release.set()
        wait_until(lambda: harvester.rows("SELECT phase FROM site_progress WHERE site_name = 'alder'") == [("ended",)])
        other_release.set()
        out, err = process.communicate(timeout=60)
    sites = {each["site"]: each for each in json.loads(out)["sites"]}
    assert sites["basalt"]["inserted"] == 2
    assert sites["alder"]["deferred"] > 0
    assert process.returncode == 0, err
    [site] = harvester.run("2026-11-21", "--site", "alder")["sites"]
    assert (site["status"], site["deferred"]) == ("succeeded", 0)


@on_one_database
def test_a_stop_of_a_site_that_has_ended_or_is_not_due_says_so(harvester: Harvester, server: HttpServer) -> None:
    url, release = held_back(server, "alder.1.1", "alder.2.1")
    harvester.add_site("alder", url)
    harvester.add_site("weekly", server.url("/weekly.xml"), datenextharvest="2999-12-24")
    with HttpServer(host="127.0.0.2") as other:
        harvester.add_site("basalt", publish(other, "basalt.1.1"))
        process = harvester.start("run", "--date", "2026-11-20")
        ended = "SELECT 1 FROM harvest_site_run WHERE site_name = 'basalt' AND ended_at IS NOT NULL"
        wait_until(lambda: harvester.rows(ended))
        for name in ("basalt", "weekly"):
            assert harvester("runs", "stop", "--site", name).code == 0
        wait_until(lambda: [state for _, _, state in states(harvester)] == ["taken", "taken"])
        release.set()
        process.communicate(timeout=60)
    assert harvester.rows("SELECT sentence FROM harvest_request ORDER BY request_id") == [
        ("Run 1 had already harvested basalt: succeeded.",),
        ("Run 1 did not harvest weekly.",),
    ]


def test_a_site_that_stops_while_its_list_is_read_is_stopped_and_stays_due(
    harvester: Harvester, server: HttpServer
) -> None:
    release = threading.Event()
    content = harvest_list([("alder.1.1", server.url("/alder.1.1.xml"))])

    def late(asking_: Asking) -> None:
        release.wait(30)
        asking_.answer(content)

    server.serve("/alder.1.1.xml", eml("alder.1.1"))
    harvester.add_site("alder", server.route("/alder-list.xml", late))
    process = harvester.start("run", "--date", "2026-11-20", "--json")
    wait_until(lambda: server.asked("/alder-list.xml"))
    assert harvester("runs", "stop", "--site", "alder").code == 0
    wait_until(lambda: states(harvester) == [("stop", "alder", "taken")])
    release.set()
    out, err = process.communicate(timeout=60)
    [site] = json.loads(out)["sites"]
    assert (process.returncode, site["status"], site["listed"]) == (0, "stopped", 0), err
    assert harvester.rows("SELECT status FROM harvest_run") == [("succeeded",)]
    [site] = harvester.run("2026-11-20")["sites"]
    assert (site["status"], site["inserted"]) == ("succeeded", 1)


@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_run_stops_before_people_see_that_it_has_taken_the_stop(harvester: Harvester) -> None:
    settings, engine, today = load(harvester.config), harvester.engine, date(2026, 11, 20)
    targets, seen = Targets(settings, engine), []
    with (
        run_lock(engine) as lock,
        Journal(engine, settings, targets, lambda: datetime.now(UTC), today, lock, GroupLimits()) as journal,
    ):
        with writers(engine).begin() as session:
            new = NewRequest(kind=RequestKind.STOP, run_id=journal.run_id)
            asking.ask(session, new, Actor("ann", "command line"), datetime.now(UTC))

        def stop(stops: TakenStops) -> None:
            seen.append((stops.whole_run, states(harvester)))

        asyncio.run(journal.beat([], stop))
        assert seen == [(True, [("stop", None, "waiting")])]
        assert states(harvester) == [("stop", None, "taken")]


def is_taken(harvester: Harvester, times: int) -> bool:
    return harvester.rows("SELECT attempts, state FROM harvest_request") == [(times, "taken")]


def test_a_killed_run_loses_no_request(harvester: Harvester, server: HttpServer) -> None:
    url, release = held_back(server, "alder.1.1", "alder.2.1")
    harvester.add_site("alder", url, datenextharvest="2999-12-24")
    asked(harvester, "sites", "harvest", "alder")
    for number in (1, 2):
        process = harvester.start("run", "--requested", "--date", "2026-11-20")
        wait_until(partial(is_taken, harvester, number))
        process.kill()
        process.communicate()
    release.set()
    [site] = harvester.run("2026-11-20", "--requested")["sites"]
    assert site["status"] == "succeeded"
    assert states(harvester) == [("harvest", "alder", "done")]


def test_live_numbers_say_what_runs_now(harvester: Harvester, server: HttpServer) -> None:
    url, release = held_back(server, *(f"alder.{number}.1" for number in range(1, 6)))
    harvester.add_site("alder", url)
    process = harvester.start("run", "--date", "2026-11-20")
    wait_until(lambda: harvester.rows("SELECT done FROM site_progress") == [(1,)])
    now = asked(harvester, "runs", "now")
    [site] = now["run"]["sites"]
    assert (site["site"], site["phase"], site["listed"], site["done"], site["errors"]) == ("alder", "fetching", 5, 1, 0)
    assert "1 of 5 documents" in harvester("runs", "now").out
    release.set()
    process.communicate(timeout=60)
    assert "No run is under way" in harvester("runs", "now").out


def test_many_people_who_ask_at_once_ask_once(harvester: Harvester) -> None:
    new = NewRequest(kind=RequestKind.HARVEST, site_id=7, site="alder")
    begin = threading.Barrier(6)

    def ask(person: int) -> tuple[int, bool]:
        begin.wait()
        with writers(harvester.engine).begin() as session:
            row, is_new = asking.ask(session, new, Actor(f"person {person}"), services_now(harvester))
            return row.request_id, is_new

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(ask, range(6)))
    assert len({number for number, _ in answers}) == 1
    assert sum(is_new for _, is_new in answers) == 1


def services_now(harvester: Harvester) -> Any:
    with harvester.opened(engine=harvester.engine) as opened:
        return opened.now()


@on_one_database
@pytest.mark.parametrize("arguments", [("sites", "harvest", "nobody"), ("sites", "skip", "nobody")])
def test_an_unknown_site_is_a_sentence(harvester: Harvester, arguments: tuple[str, ...]) -> None:
    said = harvester(*arguments)
    assert said.code != 0
    assert "There is no site named 'nobody'" in said.err


@on_one_database
@pytest.mark.slow
def test_a_person_who_stops_a_run_does_not_end_the_daemon(harvester: Harvester, server: HttpServer) -> None:
    url, release = held_back(server, "alder.1.1", "alder.2.1")
    harvester.add_site("alder", url)
    process = harvester.start("daemon")
    wait_until(lambda: harvester.rows("SELECT 1 FROM site_progress"))
    assert harvester("runs", "stop").code == 0
    wait_until(lambda: harvester.rows("SELECT 1 FROM harvest_run WHERE ended_at IS NOT NULL"))
    wait_until(lambda: harvester.rows("SELECT next_run_at FROM daemon_state"))
    assert process.poll() is None
    release.set()
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


@on_one_database
@pytest.mark.slow
def test_the_daemon_harvests_requested_sites_between_its_runs_and_says_when_it_runs_next(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"), datenextharvest="2999-12-24")
    process = harvester.start("daemon", "--delay", "5")
    wait_until(lambda: harvester.rows("SELECT next_run_at FROM daemon_state"))
    coming = asked(harvester, "runs", "now")["next"]
    assert (coming["next_at"] is not None, coming["zone"]) == (True, "UTC")
    seen = harvester.rows("SELECT seen_at FROM daemon_state")
    asked_for = asked(harvester, "sites", "harvest", "alder")
    assert asked_for["waits_for"] == "The daemon takes it within seconds."
    wait_until(lambda: states(harvester) == [("harvest", "alder", "done")])
    wait_until(lambda: harvester.rows("SELECT seen_at FROM daemon_state") != seen)
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert harvester.rows("SELECT * FROM daemon_state") == []
    assert "the daemon does not run" in asked(harvester, "sites", "harvest", "alder")["waits_for"]
