"""A run, or a site, that takes too long ends in order; what it leaves is told, and done by the next run."""

from collections.abc import Iterable
from datetime import date

import pytest

from metaharvest.harvest.deadlines import StopSignal
from metaharvest.harvest.limits import RunLimits
from metaharvest.harvest.run import RunRequest, RunResult
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer, Route, dripped
from support.mails import words_of

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

SETTINGS = {"run": "METAHARVEST_HARVESTER__RUN_DEADLINE", "site": "METAHARVEST_HARVESTER__SITE_DEADLINE"}


def publish_slowly(server: HttpServer, docids: Iterable[str], path: str, seconds: float) -> str:
    """As publish(), of a server that takes its time for each document."""

    def slow(docid: str) -> Route:
        def route(asking: Asking) -> None:
            asking.pause(seconds)
            asking.answer(eml(docid))

        return route

    url = publish(server, *docids, path=path)
    for docid in docids:
        server.route(f"/{docid}.xml", slow(docid))
    return url


def admin_mail(harvester: Harvester, day: str) -> tuple[str, str]:
    """The subject and the text of the administrator's report on that day's run, each on one line."""
    [mail] = [m for m in harvester.mails() if m["To"] == "steward@example.org" and day in m["Subject"]]
    return mail["Subject"], words_of(mail)


@pytest.mark.parametrize("which", ["run", "site"])
def test_a_deadline_finishes_what_is_under_way_and_puts_off_the_rest(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    docids = [f"a.{number}.1" for number in range(200)]
    harvester.add_site("slow", publish_slowly(server, docids, "/slow.xml", 0.3))
    harvester.add_site("quick", publish(server, "b.1.1", path="/quick.xml"))
    with monkeypatch.context() as patched:
        patched.setenv(SETTINGS[which], "6")
        run = harvester.run("2026-11-20")
    sites = {site["site_name"]: site for site in run["sites"]}
    slow = sites["slow"]
    assert sites["quick"]["status"] == "succeeded"
    assert (slow["status"], slow["listed"]) == ("with-errors", 200)
    assert slow["inserted"] + slow["deferred"] == 200
    assert slow["inserted"] > 0
    assert slow["deferred"] > 0
    assert len(harvester.held()) == slow["inserted"] + 1
    [(_, _, rule)] = harvester.findings(run["run_id"])
    [(message,)] = harvester.rows("SELECT error_message FROM harvest_detail_log")
    assert rule == f"harvest.{which}-deadline"
    assert f"[harvester] {which}_deadline = 6" in message
    assert f"{slow['deferred']} documents were put off" in message

    # The deadline of a run is the run's affair, that of a site its own, as with a server that stopped answering.
    assert run["exit_code"] == (3 if which == "run" else 0)
    assert bool(run["cut_short"]) == (which == "run")
    subject, text = admin_mail(harvester, "2026-11-20")
    assert "1 well, 1 with errors" in subject
    assert f"{which}_deadline = 6" in text
    assert ("Trouble of the run itself" in text) == (which == "run")

    publish(server, *docids, path="/slow.xml")
    [again] = harvester.run("2026-11-21", "--site", "slow")["sites"]
    assert (again["inserted"], again["unchanged"]) == (slow["deferred"], slow["inserted"])


def test_what_a_deadline_puts_off_comes_back_in_the_next_run_however_long_it_had_failed(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monthly site has mended its documents, and the harvester has no time for all of them."""
    docids = [f"a.{number}.1" for number in range(100)]
    url = publish(server, also=[(docid, server.url(f"/{docid}.xml")) for docid in docids])
    harvester.add_site("site", url, updatefrequency=1, unit="months")
    assert harvester.run("2026-11-01")["sites"][0]["access_error"] == 100
    publish_slowly(server, docids, "/other.xml", 0.3)
    with monkeypatch.context() as patched:
        patched.setenv(SETTINGS["site"], "5")
        [cut] = harvester.run("2026-12-01")["sites"]
    assert 0 < cut["deferred"] < 100
    [retried] = harvester.run("2026-12-02")["sites"]
    assert (retried["kind"], retried["inserted"]) == ("retry", cut["deferred"])


def test_what_is_put_off_for_a_server_that_is_away_comes_back_for_a_week(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a week since it was put off first: that a document was not there the month before does not count."""
    monkeypatch.setenv("METAHARVEST_HTTP__RETRIES", "0")
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "1")
    docids = [f"a.{number:02}.1" for number in range(60)]
    url = publish(server, also=[(docid, server.url(f"/{docid}.xml")) for docid in docids])
    harvester.add_site("site", url, updatefrequency=1, unit="months")
    harvester.run("2026-11-01")
    for docid in docids:
        server.serve(f"/{docid}.xml", b"away", status=503)
    assert harvester.run("2026-12-01")["sites"][0]["deferred"] == 55
    kinds = [[site["kind"] for site in harvester.run(f"2026-12-{day:02}")["sites"]] for day in range(2, 11)]
    assert kinds == [["retry"]] * 7 + [[]] * 2


def test_a_run_that_did_everything_is_not_cut_short_though_its_deadline_passed_meanwhile(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvester.add_site("slow", publish_slowly(server, ["a.1.1"], "/slow.xml", 6))
    monkeypatch.setenv(SETTINGS["run"], "5")
    run = harvester.run("2026-11-20")
    assert (run["status"], run["exit_code"], run["cut_short"]) == ("succeeded", 0, None)
    assert "RunInterrupted" not in harvester.operations(run["run_id"])


@pytest.mark.parametrize("which", ["run", "site"])
def test_a_list_that_is_fetched_beyond_a_deadline_is_given_up(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n"
    server.route("/list.xml", dripped(head, harvest_list([("a.1.1", server.url("/a.1.1.xml"))])))
    harvester.add_site("site", server.url("/list.xml"), datenextharvest="2026-11-20")
    monkeypatch.setenv(SETTINGS[which], "5")
    run = harvester.run("2026-11-20")
    [site] = run["sites"]
    assert (site["status"], site["next_harvest"], run["exit_code"]) == ("list-failed", "2026-11-20", 3)
    assert f"{which}_deadline = 5" in site["failure_reason"]
    assert harvester.rows("SELECT datenextharvest FROM harvest_site_schedule") == [("2026-11-20",)]
    assert len(server.requests) == 1


def test_a_list_that_is_read_beyond_a_deadline_is_given_up(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.url("/a.xml")
    server.serve("/list.xml", harvest_list((f"a.{number}.1", url) for number in range(100_000)))
    harvester.add_site("site", server.url("/list.xml"))
    monkeypatch.setenv("METAHARVEST_HARVESTER__SITE_DEADLINE", "0.4")
    run = harvester.run("2026-11-20")
    [site] = run["sites"]
    assert (site["status"], site["listed"]) == ("list-failed", 0)
    assert "site_deadline = 0.4" in site["failure_reason"]
    assert harvester.held() == {}


def run_until(harvester: Harvester, day: date, stop: StopSignal) -> RunResult:
    """A run in this process that `stop` stops, as the signal does."""
    with harvester.opened() as opened:
        return opened.run(RunRequest(day), stop=stop)


@pytest.mark.parametrize("by", ["signal", "deadline"])
def test_sites_that_were_not_begun_are_told_and_harvested_by_the_next_run(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    harvester.limits = RunLimits(sites_at_once=1)
    stop = StopSignal()
    docids = [f"a.{number}.1" for number in range(60)]
    url = publish_slowly(server, docids, "/a.xml", 0.2)
    harvester.add_site("alder", url, datenextharvest="2026-11-18")
    for name in ("birch", "cedar"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"), datenextharvest="2026-11-20")
    with monkeypatch.context() as patched:
        if by == "deadline":
            patched.setenv(SETTINGS["run"], "2.5")
        else:

            def last_of_a_few(asking: Asking) -> None:
                stop.set()
                asking.answer(eml("a.13.1"))

            server.route("/a.13.1.xml", last_of_a_few)
        ended = run_until(harvester, date(2026, 11, 20), stop)
    assert "2 sites were not begun, and left to the next run: birch, cedar." in ended.cut_short
    assert ended.status == ("interrupted" if by == "signal" else "with-errors")
    sites = harvester.rows("SELECT site_name, status FROM harvest_site_run")
    assert sites == [("alder", "with-errors")]
    _, text = admin_mail(harvester, "2026-11-20")
    assert "2 sites were not begun, and left to the next run: birch, cedar." in text
    assert "Trouble of the run itself" in text
    dates = harvester.rows("SELECT datenextharvest FROM harvest_site_schedule WHERE name <> 'alder'")
    assert dates == [("2026-11-20",)] * 2

    run = harvester.run("2026-11-20")
    assert (run["status"], run["exit_code"], run["cut_short"]) == ("succeeded", 0, None)
    assert {site["site_name"]: site["kind"] for site in run["sites"]} == {
        "alder": "retry",
        "birch": "scheduled",
        "cedar": "scheduled",
    }
    assert len(harvester.held()) == 62


def test_a_run_that_began_no_site_is_not_all_well(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    stop = StopSignal()
    stop.set()
    ended = run_until(harvester, date(2026, 11, 20), stop)
    assert ended.status == "interrupted"
    assert "1 site was not begun, and left to the next run: alder." in ended.cut_short
    subject, text = admin_mail(harvester, "2026-11-20")
    assert "no site was harvested" in subject
    assert "No site was harvested. The run itself had trouble" in text
    assert "no site was harvested" in harvester("runs", "show", str(ended.run_id)).out
    assert harvester.run("2026-11-20")["sites"][0]["status"] == "succeeded"


def test_those_that_have_been_due_for_longest_come_first(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvester.limits = RunLimits(sites_at_once=1)
    for name, day in (("alder", "2026-11-20"), ("birch", "2026-11-18"), ("cedar", "2026-11-19")):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"), datenextharvest=day)
    run = harvester.run("2026-11-20")
    assert [site["site_name"] for site in run["sites"]] == ["birch", "cedar", "alder"]


@pytest.mark.parametrize("which", ["run", "site"])
def test_zero_means_no_deadline(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    monkeypatch.setenv(SETTINGS[which], "0")
    harvester.add_site("site", publish(server, "a.1.1"))
    assert harvester.run("2026-11-20")["status"] == "succeeded"
