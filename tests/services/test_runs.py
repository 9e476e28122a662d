"""A run, its exit code, its reports and its target, without the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from metaharvest.database.engine import outbox_lock
from metaharvest.errors import LockHeld, MetaharvestError, RequestError, ScheduleError, UnknownDocument
from metaharvest.services import documents, reports, runs, targets
from metaharvest.services.exit_codes import ExitCode
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.services.runs import StopSignal
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.ports import free_port
from support.provider import dc, record, store

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

TODAY = date(2026, 11, 20)


@pytest.fixture
def opened(harvester: Harvester) -> Iterator[Opened]:
    with harvester.opened(clock=lambda: datetime(2026, 11, 20, 12, tzinfo=UTC)) as made:
        yield made


def test_a_request_is_for_named_sites_or_all_and_for_a_day_near_the_clock(opened: Opened) -> None:
    assert runs.request(opened) == runs.RunRequest(TODAY)
    assert runs.request(opened, ["alder"], full=True) == runs.RunRequest(TODAY, ("alder",), full=True)
    with pytest.raises(RequestError, match="use one of the two"):
        runs.request(opened, ["alder"], force=True)
    far = date(2026, 12, 20)
    with pytest.raises(RequestError, match="30 days from today"):
        runs.request(opened, day=far)
    assert runs.request(opened, day=far, any_day=True).today == far


def test_a_finished_run_has_its_record_and_exit_code(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))]))
    done = runs.harvest(opened, runs.request(opened))
    assert (done.exit_code, done.record.totals.inserted, done.record.totals.errors) == (ExitCode.DONE, 1, 1)
    again = runs.harvest(opened, runs.request(opened, ["alder"]), strict=True)
    assert again.exit_code is ExitCode.SITE_FAILED
    harvester.add_site("birch", server.url("/none.xml"))
    assert runs.harvest(opened, runs.request(opened)).exit_code is ExitCode.SITE_FAILED


def test_a_stopped_run_says_so_to_whoever_started_it(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    stop, notes = StopSignal(), list[str]()
    stop.set()
    done = runs.harvest(opened, runs.request(opened), stop=stop, note=notes.append)
    assert done.exit_code is ExitCode.INTERRUPTED
    assert notes == [
        "Stopped: what was under way is finished, the rest is left to the next run.",
        done.result.cut_short,
    ]


def test_a_metrics_file_that_cannot_be_written_is_a_note_and_no_failure(harvester: Harvester) -> None:
    text = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f'{text}[monitoring]\nmetrics_file = "none/there.prom"\n', encoding="utf-8")
    notes: list[str] = []
    with harvester.opened() as opened:
        assert runs.harvest(opened, runs.request(opened), note=notes.append).exit_code is ExitCode.DONE
        with pytest.raises(ScheduleError):
            runs.harvest(opened, runs.request(opened, ["none"]), note=notes.append)
    [note] = notes
    assert "metrics_file: none/there.prom cannot be written" in note


def test_an_error_of_the_pipeline_does_not_change_the_run(harvester: Harvester) -> None:
    text = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f'{text}[pipeline]\nenabled = true\nfolder = "full"\n', encoding="utf-8")
    (harvester.folder / "full").write_bytes(b"no folder")
    notes: list[str] = []
    with harvester.opened() as opened:
        assert runs.harvest(opened, runs.request(opened), note=notes.append).exit_code is ExitCode.DONE
    [note] = notes
    assert "The pipeline did not come to its end after run 1: The pipeline cannot use" in note
    assert harvester("log", "--run", "1", "--level", "error").out.count("The pipeline did not come to its end") == 1


def doctor(harvester: Harvester) -> dict[str, dict[str, str]]:
    said = harvester("doctor", "--json")
    return {each["check"]: each for each in json.loads(said.out)["checks"]}


def test_the_next_report_of_the_administrator_says_that_the_pipeline_failed(harvester: Harvester) -> None:
    text = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(
        f'{text}[pipeline]\nenabled = true\nfolder = "full"\n[monitoring]\nmetrics_file = "m.prom"\n', encoding="utf-8"
    )
    (harvester.folder / "full").write_bytes(b"no folder")
    harvester.add_site("alder", "https://alder.example.org/list.xml", enabled=False)
    store(harvester, record("a", dc("Beech")))
    assert harvester.run("2026-11-20")["exit_code"] == 0
    assert "metaharvest_pipeline_failed 1.0" in (harvester.folder / "m.prom").read_text()
    checks = doctor(harvester)
    assert checks["pipeline"]["state"] == "PROBLEM"
    assert "after run 1" in checks["pipeline"]["message"]
    assert "Waiting: 1 document at " in checks["pipeline"]["message"]
    assert checks["pipeline folder"]["state"] == "PROBLEM"
    (harvester.folder / "full").unlink()
    harvester.run("2026-11-21")
    said = " ".join(harvester("reports", "show", "2").out.split())
    assert "The pipeline did not come to its end after run 1" in said
    assert "Correct the cause. The next run goes on by itself; `metaharvest pipeline run` does so now." in said
    checks = doctor(harvester)
    assert (checks["pipeline"]["state"], checks["pipeline"]["message"]) == ("OK", "No document waits.")
    metrics = (harvester.folder / "m.prom").read_text()
    assert "metaharvest_pipeline_failed 0.0" in metrics
    assert 'metaharvest_pipeline_documents{stage="cleaning",state="done"} 1.0' in metrics


def test_the_doctor_names_services_of_the_pipeline_that_are_away(harvester: Harvester) -> None:
    away = f"http://127.0.0.1:{free_port()}"
    text = harvester.config.read_text(encoding="utf-8")
    services = f'grobid = "{away}"\nsearch = "{away}"\nfiles = "nosuch://bucket"\n'
    harvester.config.write_text(f"{text}[pipeline]\nenabled = true\n{services}", encoding="utf-8")
    checks = doctor(harvester)
    states = {name: checks[name]["state"] for name in ("pipeline", "pipeline files", "search index", "GROBID")}
    assert states == {"pipeline": "OK", "pipeline files": "PROBLEM", "search index": "PROBLEM", "GROBID": "WARNING"}
    assert "Searches do not work until it answers again." in checks["search index"]["message"]
    assert "References of PDF files wait for it" in checks["GROBID"]["message"]


def test_the_doctor_reaches_grobid_by_a_proxy_with_a_password(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", "s3/cr@et")
    server.serve("http://grobid.invalid/api/isalive", b"true")
    proxy = f'proxy = "{server.url("", host="anna@127.0.0.1")}"\nproxy_password = "env:PROXY_PASSWORD"\n'
    text = harvester.config.read_text(encoding="utf-8").replace("[http]\n", f"[http]\n{proxy}")
    text += '[pipeline]\nenabled = true\ngrobid = "http://grobid.invalid"\n'
    harvester.config.write_text(text, encoding="utf-8")
    assert doctor(harvester)["GROBID"]["state"] == "OK"
    [request] = server.requests
    assert request.headers["proxy-authorization"] == "Basic YW5uYTpzMy9jckBldA=="
    monkeypatch.delenv("PROXY_PASSWORD")
    assert doctor(harvester)["GROBID"]["state"] == "PROBLEM"


def test_a_dry_run_has_the_exit_code_of_the_command(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))]))
    with opened.dry_run(runs.request(opened)) as rehearsed:
        assert rehearsed.record.totals.inserted == 1
        assert runs.exit_code_of_dry_run(rehearsed, strict=False) is ExitCode.DONE
        assert runs.exit_code_of_dry_run(rehearsed, strict=True) is ExitCode.SITE_FAILED
    assert harvester.held() == {}


def test_a_report_is_sent_again_to_somebody_else(harvester: Harvester, opened: Opened, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    runs.harvest(opened, runs.request(opened))
    assert "alder" in reports.newest_report(opened, "alder").subject
    [(number,)] = harvester.rows("SELECT report_id FROM report_outbox WHERE kind = 'site'")
    with pytest.raises(RequestError, match="nobody"):
        reports.resend(opened, number, ["nobody"])
    assert reports.resend(opened, number, ["steward@example.org"]).recipients == ("steward@example.org",)
    delivered = reports.deliver(opened)
    assert (delivered.deliveries.sent, delivered.refused, delivered.reasons) == (1, 0, ())
    assert reports.drop(opened, number).waiting == 0


def test_reports_are_not_delivered_twice_while_a_worker_delivers_them(opened: Opened) -> None:
    with outbox_lock(opened.engine), pytest.raises(LockHeld, match="Another process delivers the reports"):
        reports.deliver(opened)


def test_a_document_of_a_target_is_found_withdrawn_and_taken_back(
    harvester: Harvester, opened: Opened, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    runs.harvest(opened, runs.request(opened))
    [held] = targets.held_documents(opened, "target")
    assert (held.revision.docid, held.site) == ("a.1.1", "alder")
    found = targets.find(opened, "target", "a.1.1")
    assert (found.document_id, found.revision, found.highest(), found.departure()) == ("a.1", 1, 1, "")
    assert found.content(1) == eml("a.1.1")
    with pytest.raises(UnknownDocument):
        targets.find(opened, "target", "a.9")
    request = documents.WithdrawalRequest("a.1", "names a person", "steward")
    assert documents.withdraw(opened, request).sites == ("alder",)
    assert "names a person" in targets.find(opened, "target", "a.1").departure()
    documents.take_back(opened, request)
    assert targets.find(opened, "target", "a.1").departure() == ""
    assert {check.state for check in targets.check(opened)} == {"OK"}
    with pytest.raises(MetaharvestError, match="only a folder has an index"):
        targets.rebuild_index(opened)
