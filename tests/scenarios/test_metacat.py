"""Whole runs into a Metacat by its old interface, as people make them: by the command line, with settings in a file."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer
from support.metacat_server import Connection, Metacat, Work, dropping, in_turn, refusing_connections, well
from support.waiting import wait_until

HARVESTER = "uid=harvester,o=LTER,dc=ecoinformatics,dc=org"
ALDER, BIRCH = (f"uid={name},o=LTER,dc=ecoinformatics,dc=org" for name in ("alder", "birch"))
MONDAY, TUESDAY, WEDNESDAY = "2026-11-23", "2026-11-24", "2026-11-25"

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def metacat(harvester: Harvester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Metacat]:
    """A Metacat that the settings of the harvester name, with a login for all sites."""
    for name in ("HARVESTER", "ALDER", "BIRCH"):
        monkeypatch.setenv(f"{name}_PASSWORD", f"{name.lower()}-secret")
    users = {HARVESTER: "harvester-secret", ALDER: "alder-secret", BIRCH: "birch-secret"}
    with Metacat(users) as running:
        with harvester.config.open("a") as settings:
            settings.write(
                f'[target]\nkind = "metacat"\nurl = "{running.url}"\nusername = "{HARVESTER}"\n'
                'password = "env:HARVESTER_PASSWORD"\nconnect_timeout = 2\nread_timeout = 2\ndeadline = 5\n'
            )
        yield running


def held(metacat: Metacat, *docids: str) -> bool:
    """Whether it holds just these documents, each uploaded once, its bytes as they were served."""
    assert Counter(docid for _, docid in metacat.written) == Counter(docids)
    return metacat.held == {docid: eml(docid) for docid in docids}


@pytest.mark.quick
def test_night_after_night(harvester: Harvester, server: HttpServer, metacat: Metacat) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.3"), ldapdn=ALDER, ldappwd="env:ALDER_PASSWORD")
    harvester.add_site("birch", publish(server, "b.1.1", path="/b.xml"))
    run = harvester.run(MONDAY)
    assert (run["exit_code"], run["status"]) == (0, "succeeded")
    assert held(metacat, "a.1.1", "a.2.3", "b.1.1")
    assert {name: owner for name, (_, owner) in metacat.current.items()} == {
        "a.1": ALDER,
        "a.2": ALDER,
        "b.1": HARVESTER,
    }
    assert metacat.public == {"a.1.1", "a.2.3", "b.1.1"}
    assert metacat.sessions == {}

    metacat.asked.clear()
    run = harvester.run(TUESDAY)
    assert sum(site["unchanged"] for site in run["sites"]) == 3
    assert sorted(metacat.actions()) == [*["getrevisionanddoctype"] * 3, "login", "login", "logout", "logout"]

    publish(server, "a.1.1", "a.1.2", "a.1.4", "a.2.3", "a.3.1")
    run = harvester.run(WEDNESDAY)
    assert harvester.outcomes(run["run_id"]) == {"a.1.2": "updated", "a.1.4": "updated", "a.3.1": "inserted"}
    assert held(metacat, "a.1.1", "a.2.3", "b.1.1", "a.1.2", "a.1.4", "a.3.1")
    assert [docid for _, docid in metacat.written if docid.startswith("a.1.")] == ["a.1.1", "a.1.2", "a.1.4"]
    assert "-secret" not in "".join(mail.as_string() for mail in harvester.mails())


def test_bytes_are_those_that_were_served_whatever_their_encoding(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    text = eml("a.1.1", "Forêt d'Orléans ± 5 %").decode()
    encodings = {"a.1.1": "UTF-8", "a.2.1": "ISO-8859-1", "a.3.1": "windows-1252", "a.4.1": "UTF-16"}
    served = {}
    for docid, encoding in encodings.items():
        served[docid] = text.replace("a.1.1", docid).replace("UTF-8", encoding).encode(encoding)
        server.serve(f"/{docid}.xml", served[docid], headers={"Content-Type": "text/xml; charset=koi8-r"})
    server.serve("/list.xml", harvest_list((docid, server.url(f"/{docid}.xml")) for docid in encodings))
    harvester.add_site("site", server.url("/list.xml"))
    run = harvester.run(MONDAY)
    assert harvester.outcomes(run["run_id"])["a.4.1"] == "upload-error"
    assert harvester.findings(run["run_id"]) == [("a.4", "error", "target.encoding")]
    del served["a.4.1"]
    assert metacat.held == served
    [report] = [mail for mail in harvester.mails() if "site@example.org" in mail["To"]]
    assert "Save the document as UTF-8" in report.get_body(("plain",)).get_content()  # type: ignore[union-attr]


def test_a_login_that_is_refused_fails_that_site_alone_and_uploads_nothing(
    harvester: Harvester, server: HttpServer, metacat: Metacat, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"), ldapdn=ALDER, ldappwd="env:ALDER_PASSWORD")
    harvester.add_site("birch", publish(server, "b.1.1", path="/b.xml"), ldapdn=BIRCH, ldappwd="env:BIRCH_PASSWORD")
    monkeypatch.setenv("ALDER_PASSWORD", "wrong-secret")
    run = harvester.run(MONDAY)
    assert run["exit_code"] == 3
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {"alder": "failed", "birch": "succeeded"}
    [alder] = [site for site in run["sites"] if site["site_name"] == "alder"]
    assert alder["failure_reason"] == f"Metacat does not let {ALDER} in: Authentication failed for user: {ALDER}."
    assert held(metacat, "b.1.1")
    steward = "".join(mail.as_string() for mail in harvester.mails() if "steward@example.org" in mail["To"])
    assert "does not let" in steward
    assert "-secret" not in steward

    monkeypatch.setenv("ALDER_PASSWORD", "alder-secret")
    assert harvester.run(TUESDAY)["exit_code"] == 0
    assert held(metacat, "a.1.1", "b.1.1")


def test_a_metacat_that_goes_away_in_the_middle_and_comes_back(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    docids = [f"a.{number}.1" for number in range(40)]
    harvester.add_site("site", publish(server, *docids))

    def then_away(connection: Connection, work: Work) -> None:
        well(connection, work)
        if len(metacat.written) == 10:
            for action in ("insert", "getrevisionanddoctype", "login"):
                metacat.on[action] = refusing_connections

    metacat.on["insert"] = then_away
    run = harvester.run(MONDAY)
    [site] = run["sites"]
    assert site["deferred"] + site["upload_error"] + site["inserted"] == 40
    assert site["inserted"] <= 14
    # One for the site, and one for the run.
    told = [rule for document, _, rule in harvester.findings(run["run_id"]) if document is None]
    assert told == ["target.away", "target.away"]
    run = harvester.run(TUESDAY)
    assert run["sites"][0]["inserted"] == 0
    metacat.on.clear()
    run = harvester.run(WEDNESDAY)
    assert run["status"] == "succeeded"
    assert held(metacat, *docids)


def test_a_metacat_that_is_away_as_a_run_begins(harvester: Harvester, server: HttpServer, metacat: Metacat) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.add_site("birch", publish(server, "b.1.1", path="/b.xml"))
    metacat.stop()
    run = harvester.run(MONDAY)
    assert [site["deferred"] for site in run["sites"]] == [1, 1]
    assert {rule for _, _, rule in harvester.findings(run["run_id"])} == {"target.away"}
    assert "did not answer" in harvester("doctor").out
    metacat.start()
    assert harvester.run(TUESDAY)["status"] == "succeeded"
    assert held(metacat, "a.1.1", "b.1.1")


def test_answers_that_are_lost_lose_and_double_nothing(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    metacat.on["insert"] = in_turn(*[dropping, well, refusing_connections] * 8, well)
    metacat.on["update"] = in_turn(*[well, dropping, refusing_connections] * 6, well)
    days, listed = (f"2026-11-{day}" for day in range(10, 30)), []
    for revision in (1, 2):
        listed += [f"a.{number}.{revision}" for number in range(12)]
        harvester.add_site("site", publish(server, *listed)) if revision == 1 else publish(server, *listed)
        while harvester.run(next(days))["status"] != "succeeded":
            pass
    assert held(metacat, *listed)
    assert not harvester.rows("SELECT document_id FROM harvest_document WHERE pending_sha256 IS NOT NULL")


def test_a_metacat_that_is_started_anew_in_the_middle_has_forgotten_the_session(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    docids = [f"a.{number}.1" for number in range(20)]
    harvester.add_site("site", publish(server, *docids), ldapdn=ALDER, ldappwd="env:ALDER_PASSWORD")

    def forgetful(connection: Connection, work: Work) -> None:
        well(connection, work)
        metacat.sessions.clear()

    metacat.on["insert"] = in_turn(*[well] * 6, forgetful, well)
    assert harvester.run(MONDAY)["status"] == "succeeded"
    assert held(metacat, *docids)
    assert {owner for _, owner in metacat.current.values()} == {ALDER}
    assert len(metacat.actions("login")) == 2


def test_runs_that_are_killed_lose_and_double_nothing(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    docids = [f"a.{number}.{revision}" for number in range(30) for revision in (1, 2)]
    harvester.add_site("site", publish(server, *docids))
    metacat.slowest = 0.02
    for number in (2, 9, 17, 31, 46):
        run = harvester.start("run", "--date", MONDAY)
        wait_until(lambda number=number, run=run: len(metacat.written) >= number or run.poll() is not None)  # type: ignore[misc]
        run.kill()
        run.communicate()
        assert run.returncode == -signal.SIGKILL
    ended = harvester.run(MONDAY)
    assert ended["exit_code"] == 0
    assert held(metacat, *docids)
    sql = "SELECT status, listed, inserted, updated, unchanged FROM harvest_site_run"
    assert harvester.rows(sql) == [("succeeded", 60, 30, 30, 0)]


def test_what_a_killed_run_has_sent_and_comes_late_is_inserted_once_and_no_error(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    """The next run asks before it is there, and sends the document after it."""
    let_go = threading.Event()

    def late(connection: Connection, work: Work) -> None:
        let_go.wait(30)
        well(connection, work)

    def fetched_later(asking: Asking) -> None:
        let_go.set()
        wait_until(lambda: bool(metacat.written))
        asking.answer(eml("a.1.1"))

    harvester.add_site("site", publish(server, "a.1.1"))
    metacat.on["insert"] = in_turn(late, well)
    run = harvester.start("run", "--date", MONDAY)
    wait_until(lambda: "insert" in metacat.actions() or run.poll() is not None)
    run.kill()
    run.communicate()
    server.route("/a.1.1.xml", fetched_later)
    ended = harvester.run(MONDAY)
    assert harvester.outcomes(ended["run_id"]) == {"a.1.1": "inserted"}
    assert ended["status"] == "succeeded"
    assert held(metacat, "a.1.1")


def test_metacat_3_is_told_to_the_administrators_with_what_to_use(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    metacat.version = "3.0.0"
    run = harvester.run(MONDAY)
    assert (run["exit_code"], run["sites"][0]["status"]) == (3, "failed")
    assert harvester.findings(run["run_id"]) == [(None, "error", "target.moved")]
    steward = [mail for mail in harvester.mails() if "steward@example.org" in mail["To"]]
    text = " ".join(steward[0].get_body(("plain",)).get_content().split())  # type: ignore[union-attr]
    assert f'url = "http://127.0.0.1:{metacat.port}/knb/d1/mn/v2"' in text
    assert "use the dataone target" in harvester("doctor").out


def test_two_sites_that_list_one_document_have_it_one_after_the_other_refused(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.run(MONDAY, "--site", "alder")
    harvester.add_site("birch", publish(server, "a.1.2", path="/b.xml"))
    run = harvester.run(TUESDAY, "--site", "birch")
    assert harvester.findings(run["run_id"]) == [("a.1", "error", "target.other-site")]
    assert held(metacat, "a.1.1")


def test_what_metacat_holds_is_looked_at_by_commands(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.1.2"))
    harvester.run(MONDAY)
    assert "revisions  2" in harvester("target", "show", "a.1").out
    assert harvester("target", "get", "a.1.1").out.encode() == eml("a.1.1")
    listed = harvester("target", "list")
    assert (listed.code, "cannot list what it holds" in listed.err) == (1, True)
    doctor = harvester("doctor").out
    assert f"It lets {HARVESTER} in." in doctor
    rehearsed = harvester("run", "--dry-run", "--date", TUESDAY)
    assert rehearsed.code == 0
    assert held(metacat, "a.1.1", "a.1.2")


def test_a_withdrawn_document_is_deleted_and_what_metacat_keeps_is_said(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    harvester.add_site("birch", publish(server, "b.1.1", "b.2.1"))
    harvester.run(MONDAY)
    said = harvester("target", "withdraw", "b.1", "--reason", "a person objects", "--erase", "--yes")
    assert said.code == 0, said.err
    assert "deleted; it keeps the bytes of what it deletes: ask its operator to remove them." in said.out
    assert "b.1" not in metacat.current
    run = harvester.run(TUESDAY)
    assert harvester.outcomes(run["run_id"]) == {"b.1.1": "filtered"}
    assert harvester.run(WEDNESDAY)["exit_code"] == 0
    assert Counter(metacat.written)["insert", "b.1.1"] == 1


def test_the_documents_of_a_scope_are_transferred_though_a_metacat_has_no_listing(
    harvester: Harvester, server: HttpServer, metacat: Metacat
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.3", "other.1.1"))
    harvester.add_site("birch", publish(server, "b.1.1", path="/b.xml"))
    harvester.run(MONDAY)
    said = harvester("target", "transfer", "--scope", "a", "birch")
    assert (said.code, said.out.splitlines()[0]) == (0, "2 documents belong to birch from now on."), said.err
    assert "no document of the scope 'nothing'" in harvester("target", "transfer", "--scope", "nothing", "birch").err
