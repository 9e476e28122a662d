"""A run, its exit code, its reports and its target, without the command line."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime

import pytest

from metaharvest.errors import MetaharvestError, RequestError, ScheduleError, UnknownDocument
from metaharvest.services import documents, reports, runs, targets
from metaharvest.services.exit_codes import ExitCode
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.services.runs import StopSignal
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer

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
    assert "pipeline" in note


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
