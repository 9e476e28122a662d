"""What the administrator reads: the composite of a run, by mail or in a log file."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from email.parser import BytesParser
from email.policy import SMTP as SMTP_POLICY
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from sqlalchemy.orm import Session

from metaharvest import __version__
from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestRun, ReportDelivery, SiteProblem
from metaharvest.mail import outbox
from metaharvest.mail.message import Report
from metaharvest.model import Finding, OutcomeKind
from metaharvest.reports import compose, tables
from support.databases import on_one_database
from support.journal_rows import NAMED, NOW, TODAY, JournalRows

MISSING = Finding("schema.missing-element", "The element 'creator' is missing.", "Add it.", line=9)


def settings_for(folder: Path, **reports_settings: Any) -> Settings:
    return Settings.model_validate(
        {
            "folder": folder,
            "harvester": {"name": "NAME", "administrators": ["steward@example.org"]},
            "mail": {"sender": "harvester@example.org"},
            "reports": reports_settings,
        }
    )


def report_of(session: Session, run: HarvestRun, settings: Settings) -> Report:
    return compose.admin_report(session, run.run_id, ReportContext(settings, NAMED, NOW + timedelta(seconds=200)))


def words_of(report: Report) -> str:
    return " ".join(report.text.split())


def attached(part: Any) -> bytes:
    """What is in an attachment."""
    return bytes(part.get_payload(decode=True))


def html_words(report: Report) -> str:
    page: Any = html.fromstring(report.html.encode())
    return " ".join(page.text_content().split())


def a_mixed_night(rows: JournalRows) -> HarvestRun:
    """One site well, one with errors, one whose list failed, one whose registration is broken."""
    run = rows.run()
    well = rows.site_run(run, rows.site("birch-hollow"))
    rows.document(run, well, "birch.1", 1, OutcomeKind.INSERTED)
    rows.unchanged(run, well, ("birch.2", 1, 1))
    errors = rows.site_run(run, rows.site("alder-creek"))
    for number in range(3):
        rows.document(run, errors, f"alder.{number}", 1, OutcomeKind.INVALID, MISSING)
    rows.document(run, errors, "alder.9", 2, OutcomeKind.UPDATED)
    bad_list = rows.site_run(run, rows.site("cedar-bog"), "list-failed", failure_reason="Line 3 is wrong.")
    rows.log(run, "ValidateHarvestListError", "x", bad_list, (Finding("list.x", "Line 3 is wrong.", "Mend it."),))
    broken = rows.site_run(run, rows.site("dune-field"), "failed", failure_reason="The unit 'fortnights' is unknown.")
    rows.log(run, "SiteError", "The registration of dune-field cannot be used.", broken)
    return run


@on_one_database
def test_the_subject_counts_sites_and_documents(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    report = report_of(session, a_mixed_night(rows), settings_for(tmp_path))

    assert report.subject == "[NAME] 4 sites: 1 well, 1 with errors, 2 failed; 1 new, 1 updated (2026-11-20)"
    assert report.recipients == ("steward@example.org",)


@on_one_database
def test_the_first_step_has_the_remedy_of_the_problem_that_it_names(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    run = rows.run(status="failed")
    reason = "The revision 'two' is no number. There is 1 more problem."
    bad_list = rows.site_run(run, rows.site("cedar-bog"), "list-failed", failure_reason=reason)
    missing = Finding("list.missing", "The entry has no docid.", "Add a docid.")
    revision = Finding("list.revision", "The revision 'two' is no number.", "Write digits.")
    rows.log(run, "ValidateHarvestListError", "x", bad_list, (missing, missing, revision))

    shown = words_of(report_of(session, run, settings_for(tmp_path)))

    start = shown[shown.index("Start here") : shown.index("What failed, and why")]
    assert "cedar-bog: The revision 'two' is no number. There is 1 more problem. Write digits." in start
    assert "Add a docid." not in start


@on_one_database
def test_the_first_step_names_the_line_of_the_problem(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    run = rows.run(status="failed")
    reason = "A comment contains two hyphens. There is 1 more problem."
    bad_list = rows.site_run(run, rows.site("cedar-bog"), "list-failed", failure_reason=reason)
    hyphens = Finding("list.not-well-formed", "A comment contains two hyphens.", "Delete one.", line=3)
    rows.log(run, "ValidateHarvestListError", "x", bad_list, (hyphens,))

    shown = words_of(report_of(session, run, settings_for(tmp_path)))

    assert "cedar-bog: A comment contains two hyphens (line 3). There is 1 more problem. Delete one." in shown


@on_one_database
@pytest.mark.parametrize("others", ["http.dns", "http.status"])
def test_a_night_on_which_no_site_was_reached_begins_with_the_own_network(
    session: Session, rows: JournalRows, tmp_path: Path, others: str
) -> None:
    run = rows.run(status="failed")
    for name, rule in (("alder-creek", "http.dns"), ("cedar-bog", others)):
        failed = rows.site_run(run, rows.site(name), "list-failed", failure_reason="It was not resolved.")
        rows.log(run, "GetHarvestListError", "x", failed, (Finding(rule, "It was not resolved.", "Wait."),))

    shown = words_of(report_of(session, run, settings_for(tmp_path)))

    first = "1. No site could be reached. Check the network of the harvester's machine first"
    assert (first in shown) == (others == "http.dns")


@on_one_database
@pytest.mark.parametrize("unchanged", [0, 1])
def test_a_retry_shows_whether_the_own_network_works(
    session: Session, rows: JournalRows, tmp_path: Path, unchanged: int
) -> None:
    run = rows.run(status="failed")
    for name in ("alder-creek", "cedar-bog"):
        failed = rows.site_run(run, rows.site(name), "list-failed", failure_reason="It was not resolved.")
        rows.log(run, "GetHarvestListError", "x", failed, (Finding("http.dns", "It was not resolved.", "Wait."),))
    counts = {"listed": 3, "access_error": 1, "deferred": 2 - unchanged, "unchanged": unchanged}
    rows.site_run(run, rows.site("tern-lake"), "with-errors", "retry", **counts)

    shown = words_of(report_of(session, run, settings_for(tmp_path)))

    assert ("1. No site could be reached. Check the network" in shown) == (not unchanged)


@on_one_database
def test_a_night_on_which_no_site_was_due_says_so(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    report = report_of(session, rows.run(), settings_for(tmp_path))

    assert report.subject == "[NAME] no site was due (2026-11-20)"
    assert "No site was due." in report.text


@on_one_database
def test_the_table_has_the_failures_first(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    report = report_of(session, a_mixed_night(rows), settings_for(tmp_path))

    for shown in (words_of(report), html_words(report)):
        table = shown[shown.index("Sites") : shown.index("What failed, and why")]
        places = [table.index(name) for name in ("dune-field", "cedar-bog", "alder-creek", "birch-hollow")]
        assert places == sorted(places)
        assert "3 not valid" in table
        assert "3 min 20 s" in table
        assert "2026-11-21" in table


def test_what_failed_is_told_with_its_reason(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    report = report_of(session, a_mixed_night(rows), settings_for(tmp_path))

    for shown in (words_of(report), html_words(report)):
        failed = shown[shown.index("What failed, and why") :]
        assert "The unit 'fortnights' is unknown." in failed
        assert failed.count("Line 3 is wrong.") == 1
        assert "What to do: Mend it." in failed


def test_documents_that_need_attention_are_grouped_by_site_and_rule(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    text = words_of(report_of(session, a_mixed_night(rows), settings_for(tmp_path)))

    attention = text[text.index("Documents that need attention") :]
    assert "3 documents, such as alder.0.1" in attention
    assert attention.count(MISSING.message) == 1


@on_one_database
def test_the_run_its_host_and_its_version_are_named(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    text = words_of(report_of(session, a_mixed_night(rows), settings_for(tmp_path)))

    assert f"metaharvest {__version__} on harvest.example.org" in text
    assert "Central repository: the embedded repository" in text
    assert "started 2026-11-20 02:30:00 UTC, took 3 min 20 s" in text


def test_the_page_of_the_run_is_named_if_the_console_has_an_address(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    run, settings = rows.run(), settings_for(tmp_path)
    assert "console" not in words_of(report_of(session, run, settings))
    served = settings.model_copy(update={"web": settings.web.model_copy(update={"url": "https://example.org/h/"})})
    report, page = report_of(session, run, served), f"https://example.org/h/console/runs/{run.run_id}"
    assert f"The run in the console: {page}" in report.text
    assert f'href="{page}"' in report.html


def test_a_dead_run_found_at_the_start_is_told(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    run = rows.run()
    rows.log(run, "RunInterrupted", "The run 41 never ended.")

    text = words_of(report_of(session, run, settings_for(tmp_path)))

    assert "Trouble of the run itself" in text
    assert "The run 41 never ended." in text


def test_much_trouble_of_the_run_is_counted(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    run, limit = rows.run(), settings_for(tmp_path).reports.lines_per_group
    for number in range(limit + 3):
        rows.log(run, "RunInterrupted", f"The harvest of site-{number} failed.")

    report = report_of(session, run, settings_for(tmp_path))

    assert f"The harvest of site-{limit - 1} failed. and 3 more; `metaharvest log --csv --run {run.run_id}`" in (
        words_of(report)
    )
    assert f"site-{limit} " not in report.text + report.html


def test_mail_that_did_not_arrive_is_told(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    night = timedelta(days=1)
    before = rows.run(TODAY - night, NOW - night, "succeeded")
    contacts = "waiting@example.org, refused@example.org, fresh@example.org, old@example.org"
    site_run = rows.site_run(before, rows.site("alder-creek", contacts))
    report = compose.site_report(session, site_run.site_run_id, ReportContext(settings, NAMED, NOW))
    outbox.queue(session, report, before.run_id, site_run.site_run_id, NOW - night)
    for delivery in session.query(ReportDelivery):
        match delivery.recipient.partition("@")[0]:
            case "waiting":
                delivery.attempts, delivery.last_error = 3, "The mail server cannot be reached."
            case "refused":
                delivery.status, delivery.last_error, delivery.last_attempt_at = "refused", "550 gone", NOW - night
            case "old":
                delivery.status, delivery.last_error, delivery.last_attempt_at = "refused", "550", NOW - 20 * night
    session.flush()

    text = words_of(report_of(session, rows.run(), settings))

    assert "waiting@example.org (waiting, written 2026-11-19, 3 attempts)" in text
    assert "The mail server cannot be reached." in text
    assert "refused@example.org (refused" in text
    assert "fresh@example.org" not in text
    assert "old@example.org" not in text


def test_refused_mail_waits_for_a_person_until_somebody_decides(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    settings, week = settings_for(tmp_path), timedelta(days=7)
    before = rows.run(TODAY - week, NOW - week, "succeeded")
    site_run = rows.site_run(before, rows.site("alder-creek", "gone@example.org"))
    report = compose.site_report(session, site_run.site_run_id, ReportContext(settings, NAMED, NOW))
    outbox.queue(session, report, before.run_id, site_run.site_run_id, NOW - week)
    [delivery] = session.query(ReportDelivery)
    delivery.status, delivery.last_error, delivery.last_attempt_at = "refused", "550 gone", NOW - week
    assert report_of(session, rows.run(), settings).subject.startswith("[NAME] 1 mail refused; ")
    assert "1 mail was refused, and the recipient has no report." in words_of(report_of(session, rows.run(), settings))

    outbox.drop(session, delivery.report_id, "No such person.")

    assert "refused" not in report_of(session, rows.run(), settings).subject


def test_a_run_that_died_before_its_report_hides_no_refusal_and_no_error_of_the_pipeline(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    settings, hour = settings_for(tmp_path), timedelta(hours=1)
    first = rows.run(TODAY, NOW - 9 * hour, "succeeded")
    site_run = rows.site_run(first, rows.site("alder-creek", "gone@example.org"))
    report = compose.site_report(session, site_run.site_run_id, ReportContext(settings, NAMED, NOW))
    outbox.queue(session, report, first.run_id, site_run.site_run_id, NOW - 8 * hour)
    outbox.queue(session, report_of(session, first, settings), first.run_id, None, NOW - 8 * hour)
    [delivery] = session.query(ReportDelivery).filter(ReportDelivery.recipient == "gone@example.org")
    delivery.status, delivery.last_error, delivery.last_attempt_at = "refused", "550 gone", NOW - 7 * hour
    rows.log(first, "PipelineError", "The pipeline did not come to its end.")
    rows.run(TODAY, NOW - 2 * hour, "interrupted")
    session.flush()

    text = words_of(report_of(session, rows.run(), settings))

    assert "gone@example.org (refused" in text
    assert "The pipeline did not come to its end." in text


def test_the_whole_log_is_attached(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    run = a_mixed_night(rows)
    message = BytesParser(policy=SMTP_POLICY).parsebytes(report_of(session, run, settings_for(tmp_path)).content)

    (attachment,) = message.iter_attachments()
    table = list(csv.DictReader(io.StringIO(attached(attachment).decode("utf-8-sig"))))
    assert {row["operation"] for row in table} >= {"InsertDocSuccess", "ValidateDocError", "MetacatHasDoc", "SiteError"}
    assert {row["site"] for row in table} == {"birch-hollow", "alder-creek", "cedar-bog", "dune-field"}
    assert sum(row["rule"] == MISSING.rule for row in table) == 3


def test_the_whole_log_is_attached_as_long_as_it_is_not_too_long(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    """It is not made where its texts alone are too long, however they are written."""
    run = a_mixed_night(rows)
    for number in range(20):
        rows.log(run, "HarvesterStartup", f"{number} Ørsted, “漢字”, and a long tail: {'é' * 40_000}")
    size = sum(len(chunk.encode()) for chunk in tables.log_csv(session, run.run_id))

    for limit, is_attached in ((size, True), (size - 1, False), (size // 2, False)):
        report = report_of(session, run, settings_for(tmp_path, drop_csv_over=limit))
        message = BytesParser(policy=SMTP_POLICY).parsebytes(report.content)
        assert len(list(message.iter_attachments())) == is_attached, limit
        assert (f"metaharvest log --csv --run {run.run_id}" in words_of(report)) is not is_attached


@on_one_database
def test_a_log_file_has_the_whole_and_the_mail_says_where(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    run = a_mixed_night(rows)
    report = report_of(session, run, settings_for(tmp_path, admin="log-file", log_folder="log"))

    name = f"run-{run.run_id:06}-2026-11-20"
    whole = (tmp_path / "log" / f"{name}.txt").read_text(encoding="utf-8")
    assert "Documents that need attention" in whole
    assert "birch-hollow" in whole
    assert "<title>" in (tmp_path / "log" / f"{name}.html").read_text(encoding="utf-8")
    assert MISSING.rule in (tmp_path / "log" / f"{name}.csv").read_text(encoding="utf-8-sig")
    assert len(list((tmp_path / "log").iterdir())) == 3

    assert report.subject == "[NAME] 4 sites: 1 well, 1 with errors, 2 failed; 1 new, 1 updated (2026-11-20)"
    for shown in (words_of(report), html_words(report)):
        assert str(tmp_path / "log" / f"{name}.txt") in shown
        assert "Documents that need attention" not in shown
        assert "The unit 'fortnights' is unknown." in shown
    assert b"text/csv" not in report.content


@on_one_database
def test_a_log_folder_that_cannot_be_written_is_told_and_the_mail_has_it_all(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text("in the way")
    report = report_of(session, a_mixed_night(rows), settings_for(tmp_path, admin="log-file", log_folder="log"))

    assert "could not be written into the folder" in words_of(report)
    assert "Documents that need attention" in report.text
    assert b"text/csv" in report.content


@pytest.mark.parametrize("is_well", [True, False])
@pytest.mark.parametrize("is_written", [True, False])
def test_the_place_of_the_log_file_is_a_paragraph(
    session: Session, rows: JournalRows, tmp_path: Path, is_well: bool, is_written: bool
) -> None:
    if not is_written:
        (tmp_path / "log").write_text("in the way")
    run = rows.run() if is_well else a_mixed_night(rows)
    if is_well:
        rows.document(run, rows.site_run(run, rows.site("birch-hollow")), "birch.1", 1, OutcomeKind.INSERTED)

    text = report_of(session, run, settings_for(tmp_path, admin="log-file", log_folder="log")).text

    paragraphs = text.partition("About this run")[0].rstrip().split("\n\n")
    [place] = [each for each in paragraphs if "The whole report is in the file" in each or "Here is the whole" in each]
    assert place.startswith("The ")
    assert place.endswith("beside it." if is_written else "instead.")
    assert not [each for each in paragraphs if each.startswith("\n") or not each]


def test_a_site_run_taken_up_from_a_dead_run_is_in_the_table(
    session: Session, rows: JournalRows, tmp_path: Path
) -> None:
    dead = rows.run(status="interrupted")
    site_run = rows.site_run(dead, rows.site("alder-creek"))
    run = rows.run(started=NOW + timedelta(hours=1))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INSERTED)

    assert "1 site: 1 well; 1 new" in report_of(session, run, settings_for(tmp_path)).subject


@on_one_database
def test_a_template_that_fails_leaves_a_plain_report(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    own = tmp_path / "email" / "admin_report"
    own.mkdir(parents=True)
    (own / "body.txt").write_text("{{ nothing }}")

    report = report_of(session, a_mixed_night(rows), settings_for(tmp_path, templates=tmp_path))

    text = words_of(report)
    assert "The report template email/admin_report/body.txt could not be used" in text
    assert "alder-creek: with errors; 4 listed. 3 not valid" in text
    assert "The unit 'fortnights' is unknown." in text
    assert "[NAME] 4 sites" in report.subject


@on_one_database
def test_site_names_are_escaped_in_the_table(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("<script>alert(1)</script>"))
    rows.document(run, site_run, "a.1", 1, OutcomeKind.INVALID, Finding("x", "`<script>alert(2)</script>`"))

    report = report_of(session, run, settings_for(tmp_path))

    assert not html.fromstring(report.html.encode()).xpath("//script")
    assert "<script>alert(1)</script>" in html_words(report)


@on_one_database
def test_what_waits_for_a_person_comes_first(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    """In the subject and in the first lines: deletions, documents that two sites claim, refused mail, overdue sites."""
    settings, night = settings_for(tmp_path), timedelta(days=1)
    late = rows.site("dune-lake", datenextharvest=TODAY - 4 * night)
    before = rows.run(TODAY - night, NOW - night, "succeeded")
    site = rows.site("alder's creek")
    site_run = rows.site_run(before, site)
    rows.site_run(before, late, "list-failed")
    report = compose.site_report(session, site_run.site_run_id, ReportContext(settings, NAMED, NOW))
    outbox.queue(session, report, before.run_id, site_run.site_run_id, NOW - night)
    for delivery in session.query(ReportDelivery):
        delivery.status, delivery.last_attempt_at, delivery.last_error = "refused", NOW, "550 No such user."
    for number in range(25):
        rows.ledger(site_run, f"alder.{number}", 1, OutcomeKind.DEFERRED, to_delete=True, next_attempt=TODAY)
    rows.ledger(site_run, "alder.99", 1, OutcomeKind.DEFERRED, to_delete=True)  # waits for a set, not for a person
    session.add(
        SiteProblem(
            site_schedule_id=site.site_schedule_id,
            document_id="moss.4",
            rule="target.other-site",
            fingerprint="x",
            state="open",
            detail_log_id=1,
            nights=1,
            needs_attention=True,
            first_seen=TODAY,
            last_seen=TODAY,
            first_site_run=site_run.site_run_id,
            last_site_run=site_run.site_run_id,
        )
    )
    report = report_of(session, rows.run(), settings)

    assert report.subject == (
        "[NAME] 25 deletions wait for you, 1 document claimed by two sites, 1 mail refused, 1 site overdue; "
        "no site was due (2026-11-20)"
    )
    for shown in (words_of(report), html_words(report)):
        start = shown[shown.index("Start here") : shown.index("What has waited too long")]
        steps = [
            "25 documents are deleted. Nothing is deleted until you confirm.",
            """metaharvest sites confirm 'alder'"'"'s creek'""",
            "1 document belongs to another site, such as moss.4.",
            """metaharvest target transfer moss.4 'alder'"'"'s creek'""",
            "1 mail was refused",
            "metaharvest reports --undelivered",
            "dune-lake has been due since 2026-11-16",
            "metaharvest sites show dune-lake",
        ]
        places = [start.index(step) for step in steps]
        assert places == sorted(places)
