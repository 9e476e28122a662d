"""What may not stop a run, or make it forget: broken values, unwritable rows, changes meanwhile, a stop signal."""

import json
import signal
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session

from metaharvest.journal import site_runs
from metaharvest.journal.site_runs import Closing
from metaharvest.model import ListedDocument, Verdict
from metaharvest.validation.processing_policy import ProcessingPolicy
from metaharvest.validation.validator import Validator
from support.databases import KINDS, on_one_database
from support.distributions import install
from support.harvester import Harvester, eml, publish
from support.http_server import Asking, HttpServer, Route, silent
from support.mails import words_of
from support.smtp_sink import SmtpSink
from support.waiting import wait_until

sqlite_only = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""SQLite alone takes anything in any column, and triggers in its own words."""


@sqlite_only
@pytest.mark.parametrize(
    "change",
    [
        "datenextharvest = '2026-11-20 00:00:00'",
        "datenextharvest = 20261120",
        "datenextharvest = NULL, datelastharvest = '9999-12-31'",
        "contact_email = CAST(x'64e97640782e6f7267' AS TEXT)",
        "notify = 'Never'",
        "name = ' broken'",
    ],
)
def test_values_by_other_peoples_sql_never_stop_the_other_sites(
    harvester: Harvester, server: HttpServer, change: str
) -> None:
    harvester.add_site("broken", server.url("/no-list.xml"))
    harvester.add_site("good", publish(server, "b.1.1"))
    harvester.rows(f"UPDATE harvest_site_schedule SET {change} WHERE name = 'broken'")
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: site["status"] for site in run["sites"]}["good"] == "succeeded"
    assert harvester.rows("SELECT status FROM harvest_run") != [("running",)]


@sqlite_only
@pytest.mark.parametrize("options", ['{"ca_file": "~nosuchuser/ca.pem"}', '{"ca_file": "a\\u0000b"}', "[" * 100_000])
def test_options_that_cannot_be_used_fail_their_site_alone(
    harvester: Harvester, server: HttpServer, options: str
) -> None:
    harvester.add_site("broken", publish(server, "a.1.1"))
    harvester.add_site("good", publish(server, "b.1.1", path="/good.xml"))
    harvester.rows("UPDATE harvest_site_schedule SET options = ? WHERE name = 'broken'", options)
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {"broken": "failed", "good": "succeeded"}
    assert harvester.findings(run["run_id"]) == [(None, "error", "site.row")]
    assert run["exit_code"] == 3
    assert "1 well, 1 failed" in harvester.subjects()[0]


@sqlite_only
@pytest.mark.parametrize(
    "setting", ['folder = "~nosuchuser/mail"', 'ca_file = "~nosuchuser/ca.pem"', 'password = "file:~nosuchuser/pw"']
)
def test_a_home_folder_that_is_not_there_is_told_before_the_run(harvester: Harvester, setting: str) -> None:
    harvester.config.write_text(harvester.config.read_text().replace("[mail]\n", f"[mail]\n{setting}\n"))
    said = harvester("run")
    key = setting.partition(" ")[0]
    assert (said.code, f"[mail] {key} = " in said.err) == (2, True)
    assert "no such home folder" in said.err
    assert harvester.rows("SELECT * FROM harvest_run") == []


@sqlite_only
def test_a_document_that_the_database_refuses_fails_alone(harvester: Harvester, server: HttpServer) -> None:
    harvester.rows(
        "CREATE TRIGGER refuse BEFORE INSERT ON document_revision WHEN NEW.document_id = 'a.2' "
        "BEGIN SELECT RAISE(ABORT, 'this one not'); END"
    )
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted", "a.2.1": "upload-error", "a.3.1": "inserted"}
    assert ("a.2", "error", "target.not-stored") in harvester.findings(run["run_id"])


@sqlite_only
def test_an_outcome_that_cannot_be_written_as_it_is_takes_nothing_from_what_the_ledger_knows(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    publish(server, "a.1.2")
    server.serve("/a.1.2.xml", b"", status=404)
    harvester.run("2026-11-21")
    harvester.rows(
        "CREATE TRIGGER refuse BEFORE INSERT ON harvest_log WHEN NEW.outcome = 'access-error' "
        "BEGIN SELECT RAISE(ABORT, 'this one not'); END"
    )
    run = harvester.run("2026-11-22")
    assert harvester.outcomes(run["run_id"]) == {"a.1.2": "upload-error"}
    assert harvester.rows("SELECT revision, target_revision FROM harvest_document") == [(2, 1)]


@sqlite_only
def test_an_outcome_that_cannot_be_written_at_all_leaves_its_site_run_incomplete(
    harvester: Harvester, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    harvester.rows(
        "CREATE TRIGGER refuse BEFORE INSERT ON harvest_log WHEN NEW.document_id = 'a.2' "
        "BEGIN SELECT RAISE(ABORT, 'this one not'); END"
    )
    harvester.add_site("a-site", publish(server, "a.1.1", "a.2.1"))
    harvester.add_site("b-site", publish(server, "b.1.1", path="/b.xml"))
    run = harvester.run("2026-11-20")
    status = {site["site_name"]: site["status"] for site in run["sites"]}
    assert status == {"a-site": "incomplete", "b-site": "succeeded"}
    assert run["exit_code"] == 3
    assert set(harvester.held()) == {"a.1.1", "b.1.1"}
    dates = dict(harvester.rows("SELECT name, datenextharvest FROM harvest_site_schedule"))
    assert (dates["a-site"], dates["b-site"]) == (None, "2026-11-21")


def test_a_document_that_comes_back_with_other_bytes_is_known_by_the_new_ones(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    harvester.lose()
    server.serve("/a.1.1.xml", eml("a.1.1", "Another title"))
    harvester.run("2026-11-21")
    [(ledger,)] = harvester.rows("SELECT sha256 FROM harvest_document")
    [(held,)] = harvester.rows("SELECT sha256 FROM document_revision")
    assert ledger == held


def test_documents_to_retry_are_tried_though_the_list_is_gone(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", "a.2.1")
    server.serve("/a.2.1.xml", b"busy", status=503)
    harvester.add_site("site", url)
    harvester.run("2026-11-20")
    server.serve("/a.2.1.xml", eml("a.2.1"))
    server.serve("/list.xml", b"gone", status=404)
    run = harvester.run("2026-11-21")
    assert [(site["kind"], site["status"]) for site in run["sites"]] == [
        ("scheduled", "list-failed"),
        ("retry", "succeeded"),
    ]
    assert harvester.outcomes(run["run_id"]) == {"a.2.1": "inserted"}


@on_one_database
def test_what_is_wrong_with_the_address_of_a_list_is_told_of_the_list(harvester: Harvester, server: HttpServer) -> None:
    server.serve("/gone.xml", b"gone", status=404)
    server.serve("/past.xml", b"gone", status=410)
    server.serve("/empty.xml", b"")
    server.serve("/circle.xml", b"", status=302, headers={"Location": "/circle.xml"})
    for name in ("gone", "past", "empty", "circle"):
        harvester.add_site(name, server.url(f"/{name}.xml"))
    harvester.run("2026-11-20")
    sql = "SELECT document_url, error_message, remedy FROM harvest_detail_log WHERE level = 'error'"
    remedies = {message.partition(".xml")[0].rpartition("/")[2]: remedy for _, message, remedy in harvester.rows(sql)}
    circle = "If the server redirects in a circle, correct that; otherwise send the administrator the list's final URL."
    move = "Put the list where the URL says, or send the administrator its new address."
    assert remedies == {
        "gone": move,
        "past": move,
        "empty": "Put the list back in its place on the web server.",
        "circle": circle,
    }
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "gone@example.org"]
    assert move in words_of(mail)


def test_a_date_that_is_set_while_the_site_is_harvested_stays(harvester: Harvester, server: HttpServer) -> None:
    publish(server, "a.1.1")

    def edit(asking: Asking) -> None:
        harvester("sites", "edit", "site", "--next", "2999-05-05", "--every", "2")
        asking.answer(eml("a.1.1"))

    server.route("/a.1.1.xml", edit)
    harvester.add_site("site", server.url("/list.xml"))
    harvester.run("2026-11-20")
    sql = "SELECT updatefrequency FROM harvest_site_schedule"
    assert harvester.rows(sql) == [(2,)]
    shown = harvester("sites", "show", "site", "--json").out
    assert "2999-05-05" in shown


@on_one_database
def test_refused_site_reports_make_the_exit_code_four(harvester: Harvester, server: HttpServer) -> None:
    with SmtpSink() as sink:
        sink.answers["a@example.org"] = "550 no such user"
        smtp = f'backend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\n'
        harvester.config.write_text(harvester.config.read_text().replace("[mail]\n", f"[mail]\n{smtp}"))
        harvester.add_site("site", publish(server, "a.1.1"), contact_email="a@example.org")
        run = harvester.run("2026-11-20")
        assert (run["exit_code"], run["undelivered"]) == (4, 1)
        assert len(sink.to("steward@example.org")) == 1


@pytest.mark.parametrize(
    ("database", "command", "code"),
    [*((kind, "run", 130) for kind in KINDS), ("sqlite", "daemon", 130)],
    indirect=["database"],
)
def test_a_stop_signal_finishes_what_is_under_way_and_leaves_the_rest_to_the_next_run(
    harvester: Harvester, server: HttpServer, command: str, code: int
) -> None:
    docids = [f"a.{number}.1" for number in range(1, 61)]
    url = publish(server, *docids)

    def slow(docid: str) -> Route:
        def route(asking: Asking) -> None:
            asking.pause(0.1)
            asking.answer(eml(docid))

        return route

    for docid in docids:
        server.route(f"/{docid}.xml", slow(docid))
    harvester.add_site("site", url)
    process = harvester.start(command)
    wait_until(lambda: len(server.requests) > 8)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert "Stopped" in err
    [(status, listed, inserted, deferred)] = harvester.rows(
        "SELECT status, listed, inserted, deferred FROM harvest_site_run"
    )
    assert (status, listed) == ("with-errors", 60)
    assert inserted + deferred == 60
    assert deferred > 0
    assert harvester.rows("SELECT status FROM harvest_run") == [("interrupted",)]
    assert any("the run was interrupted; " in subject for subject in harvester.subjects())
    assert "interrupted" in harvester("runs").out
    assert json.loads(harvester("runs", "show", "1", "--json").out)["status"] == "interrupted"
    again = harvester.run(str(datetime.now(UTC).date()))["sites"]  # on the same day, too
    assert [(site["kind"], site["inserted"]) for site in again] == [("retry", deferred)]
    assert harvester.run(str((datetime.now(UTC) + timedelta(days=1)).date()))["sites"][0]["unchanged"] == 60


@sqlite_only
@pytest.mark.parametrize(
    ("command", "numbers"),
    [
        ("run", (signal.SIGINT, signal.SIGINT)),
        ("run", (signal.SIGTERM, signal.SIGINT)),
        ("daemon", (signal.SIGTERM, signal.SIGTERM)),
    ],
)
def test_a_second_stop_signal_ends_it_at_once_and_the_next_run_takes_up_what_was_left(
    harvester: Harvester, server: HttpServer, command: str, numbers: tuple[signal.Signals, ...]
) -> None:
    text = harvester.config.read_text().replace("read_timeout = 30", "read_timeout = 60")
    harvester.config.write_text(text)
    docids = [f"a.{number}.1" for number in range(10)]
    harvester.add_site("site", publish(server, *docids))
    server.route("/a.5.1.xml", silent())
    process = harvester.start(command)
    wait_until(lambda: server.asked("/a.5.1.xml"))
    process.send_signal(numbers[0])
    while process.poll() is None:  # two signals of one number that wait are one
        process.send_signal(numbers[1])
        time.sleep(0.2)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.endswith("Stopped. What was under way is taken up by the next run.\n")
    assert "Traceback" not in err
    assert harvester.rows("SELECT status FROM harvest_run") == [("running",)]

    server.serve("/a.5.1.xml", eml("a.5.1"))
    [site] = harvester.run(str(datetime.now(UTC).date()))["sites"]
    assert (site["listed"], site["status"]) == (10, "succeeded")
    assert set(harvester.held()) == set(docids)


@on_one_database
def test_a_document_that_surprises_the_harvester_fails_alone(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = Validator.check

    def surprised(self: Validator, content: bytes, document: ListedDocument, how: ProcessingPolicy) -> Verdict:
        if document.document_id == "a.2":
            raise ZeroDivisionError("a mistake of ours")
        return real(self, content, document, how)

    monkeypatch.setattr(Validator, "check", surprised)
    harvester.add_site("site", publish(server, *(f"a.{number}.1" for number in range(1, 30))))
    run = harvester.run("2026-11-20")
    site = run["sites"][0]
    assert (site["status"], site["inserted"], site["upload_error"]) == ("with-errors", 28, 1)
    assert harvester.findings(run["run_id"]) == [("a.2", "error", "harvest.surprise")]


@sqlite_only
def test_a_surprise_before_a_site_is_begun_costs_that_site_alone(
    harvester: Harvester,
    server: HttpServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = "def surprising(site, fetcher):\n    raise ZeroDivisionError('a mistake of ours')\n"
    monkeypatch.syspath_prepend(
        install(tmp_path, "added_surprises", code, metaharvest_sources="surprising = surprising")
    )
    harvester.add_site("bad", publish(server, "a.1.1"), source_kind="surprising")
    harvester.add_site("good", publish(server, "b.1.1", path="/good.xml"))
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {"bad": "failed", "good": "succeeded"}
    assert (run["status"], run["exit_code"]) == ("with-errors", 3)
    assert harvester.findings(run["run_id"]) == [(None, "error", "harvest.surprise")]
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "steward@example.org"]
    told = words_of(mail)
    assert "ZeroDivisionError: a mistake of ours" in told


@sqlite_only
@pytest.mark.parametrize("only", [True, False])
def test_a_site_run_that_a_surprise_keeps_from_being_closed_is_taken_up_by_the_next_run(
    harvester: Harvester,
    server: HttpServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    only: bool,
) -> None:
    real = site_runs.close_all

    def surprised(session: Session, closings: Sequence[Closing], *others: Any) -> Sequence[bool]:
        if any(closing.site_run.site.name == "bad" for closing in closings):
            raise ZeroDivisionError("a mistake of ours")
        return real(session, closings, *others)

    harvester.add_site("bad", publish(server, "a.1.1"))
    if not only:
        harvester.add_site("good", publish(server, "b.1.1", path="/good.xml"))
    with monkeypatch.context() as patched:
        patched.setattr(site_runs, "close_all", surprised)
        run = harvester.run("2026-11-20")
    status = {site["site_name"]: site["status"] for site in run["sites"]}
    assert status == ({"bad": "interrupted"} if only else {"bad": "interrupted", "good": "succeeded"})
    assert (run["status"], run["exit_code"]) == ("failed" if only else "with-errors", 3)
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "steward@example.org"]
    told = words_of(mail)
    assert "ZeroDivisionError: a mistake of ours" in told

    again = harvester.run("2026-11-20")
    assert [(site["site_name"], site["status"]) for site in again["sites"]] == [("bad", "succeeded")]
    assert (again["sites"][0]["inserted"], again["exit_code"]) == (1, 0)
    assert harvester.rows("SELECT count(*) FROM harvest_log WHERE outcome = 'inserted'") == [(1 if only else 2,)]
