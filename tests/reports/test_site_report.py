"""What a site's contacts read: subject, text, HTML, headers, and the attached table."""

from __future__ import annotations

import csv
import gzip
import io
import re
from dataclasses import replace
from datetime import date, timedelta
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import SMTP as SMTP_POLICY
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.mail.message import Report
from metaharvest.model import Finding, Level, OutcomeKind
from metaharvest.model.actions import Remedy, todo
from metaharvest.reports import compose
from metaharvest.reports.problem_history import doubts
from support.databases import on_one_database
from support.journal_rows import NAMED, NOW, TODAY, JournalRows

HEADERS = {"from", "to", "subject", "date", "message-id", "reply-to", "auto-submitted", "mime-version", "content-type"}

MISSING = Finding(
    "schema.missing-element",
    "The element 'creator' is missing before 'pubDate'.",
    "Add at least one creator above pubDate.",
    line=9,
    xpath="/eml:eml/dataset",
    excerpt="<pubDate>2026</pubDate>",
)
DOUBTFUL = Finding("eml.package-id", "The packageId is another one.", "Make them the same.", Level.WARNING, line=2)


def settings_with(name: str = "NAME", **reports_settings: Any) -> Settings:
    return Settings.model_validate(
        {
            "harvester": {"name": name, "administrators": ["steward@example.org", "second@example.org"]},
            "mail": {"sender": "harvester@example.org"},
            "reports": reports_settings,
        }
    )


def report_of(session: Session, site_run: Any, settings: Settings | None = None) -> Report:
    return compose.site_report(session, site_run.site_run_id, ReportContext(settings or settings_with(), NAMED, NOW))


def parsed(report: Report) -> EmailMessage:
    return BytesParser(policy=SMTP_POLICY).parsebytes(report.content)


def text_of(report: Report) -> str:
    body = parsed(report).get_body(("plain",))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def words_of(report: Report) -> str:
    """The text with its line breaks folded, so that a sentence is found wherever it was wrapped."""
    return " ".join(text_of(report).split())


def attached(part: Any) -> bytes:
    """What is in an attachment."""
    return bytes(part.get_payload(decode=True))


def html_words(report: Report) -> str:
    page: Any = html.fromstring(report.html.encode())
    return " ".join(page.text_content().split())


@on_one_database
def test_the_subject_says_that_all_is_well_and_what_is_new(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    for number in range(3):
        rows.document(run, site_run, f"alder.{number}", 1, OutcomeKind.INSERTED)
    rows.document(run, site_run, "alder.9", 2, OutcomeKind.UPDATED, target_revision=1)
    rows.unchanged(run, site_run, ("alder.20", 4, 4), ("alder.21", 2, 5))

    report = report_of(session, site_run)

    assert parsed(report)["Subject"] == "[NAME] alder-creek: all well, 3 new, 1 updated (2026-11-20)"
    text = words_of(report)
    assert "names 6 documents: 3 were added, 1 was updated and 2 are unchanged." in text
    assert "alder.9.2 (was revision 1)" in text
    assert "alder.21.2 (the repository has revision 5)" in text
    assert text.index("alder.21.2") < text.index("alder.20.4")
    assert "Next harvest: 2026-11-21" in text


def test_the_subject_counts_errors_first(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, MISSING)
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.ACCESS_ERROR, Finding("http.status", "404 Not Found."))
    rows.document(run, site_run, "alder.3", 1, OutcomeKind.INSERTED)
    rows.document(run, site_run, "alder.4", 1, OutcomeKind.DEFERRED)

    subject = report_of(session, site_run).subject

    assert subject == "[NAME] alder-creek: 2 errors, 1 new, 1 put off (2026-11-20)"


@on_one_database
def test_who_has_no_program_checks_a_correction_on_a_page(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, MISSING)
    assert "Without the program" not in words_of(report_of(session, site_run))
    settings = settings_with()
    served = settings.model_copy(update={"web": settings.web.model_copy(update={"url": "https://example.org/h/"})})
    report = report_of(session, site_run, served)
    assert "writes nothing. Without the program: https://example.org/h/console/check" in words_of(report)
    assert "https://example.org/h/console/check" in html_words(report)


@on_one_database
@pytest.mark.parametrize(
    ("status", "story"),
    [
        ("succeeded", "all well, nothing new"),
        ("list-failed", "harvest list could not be read"),
        ("failed", "the harvest failed"),
        ("incomplete", "the harvest is incomplete, nothing new"),
    ],
)
def test_the_subject_tells_how_the_harvest_ended(session: Session, rows: JournalRows, status: str, story: str) -> None:
    site_run = rows.site_run(rows.run(), rows.site("alder-creek"), status)

    assert report_of(session, site_run).subject == f"[NAME] alder-creek: {story} (2026-11-20)"


@on_one_database
@pytest.mark.parametrize("twice", [0, 6, 8])
def test_entries_that_name_a_document_twice_do_not_hide_a_loss(session: Session, rows: JournalRows, twice: int) -> None:
    site = rows.site("alder-creek")
    before = rows.run(TODAY - timedelta(days=1))
    rows.site_run(before, site, listed=10, unchanged=10)
    run = rows.run()
    site_run = rows.site_run(run, site, listed=4 + twice, unchanged=4, duplicate=twice)
    shrank = Finding("list.shrank", "The list names 4 documents; at the last harvest it named 10.", "", Level.WARNING)
    rows.log(run, "ValidateHarvestListWarning", site_run=site_run, findings=(shrank,))
    site_run.warnings = 1
    assert doubts(session, site_run).lost == 6


@on_one_database
def test_a_list_that_is_not_valid_is_told_with_its_lines(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site = rows.site("cedar-bog", datenextharvest=TODAY)
    reason = "Line 31: revision 'two' is not a whole number."
    site_run = rows.site_run(run, site, "list-failed", failure_reason=reason, next_harvest=TODAY)
    finding = Finding("list.revision", reason, "Write it as a whole number.", line=31, docid="cedar.9.two")
    rows.log(run, "ValidateHarvestListError", "The list is not valid.", site_run, (finding,))

    text = words_of(report_of(session, site_run))

    assert "nothing was harvested" in text
    assert "cedar.9.two, line 31" in text
    assert text.count(reason) == 1
    assert "What to do: Write it as a whole number." in text
    assert "Next harvest: in the next run" in text


def test_every_finding_is_shown_with_place_excerpt_and_remedy(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    url = "https://alder.example.org/a%20b.xml"
    rows.document(run, site_run, "alder.1", 7, OutcomeKind.INVALID, MISSING, url=url)
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.INSERTED, warnings=(DOUBTFUL,))
    rows.document(run, site_run, "alder.3", 1, OutcomeKind.INVALID, MISSING)
    rows.ledger(site_run, "alder.1", 7, OutcomeKind.INVALID, failing_since=date(2026, 11, 3), attempts=4)
    rows.ledger(site_run, "alder.3", 1, OutcomeKind.INVALID, failing_since=TODAY, attempts=1)

    report = report_of(session, site_run)

    for shown in (words_of(report), html_words(report)):
        for part in (
            "alder.1.7, line 9, /eml:eml/dataset",
            url,
            MISSING.message,
            MISSING.excerpt,
            f"What to do: {MISSING.remedy}",
            "failing since 2026-11-03, 18 nights, 4 attempts",
            "Warnings",
            DOUBTFUL.message,
        ):
            assert part in shown
        assert shown.index(MISSING.message) < shown.index(DOUBTFUL.message)
        assert shown.count("failing since") == 1


@on_one_database
def test_documents_put_off_share_one_reason(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    reason = Finding("http.host-silent", "The server stopped answering.", "Look at it.", Level.WARNING)
    rows.log(run, "DocDeferred", reason.message, site_run, (reason,))
    for number in range(3):
        rows.document(run, site_run, f"alder.{number}", 1, OutcomeKind.DEFERRED)

    text = words_of(report_of(session, site_run))

    attention = text[text.index("Needs your attention") : text.index("About this harvest")]
    assert attention.count(reason.message) == 1
    assert "Put off to a later run (3)" in attention
    assert "Warnings" not in attention


@on_one_database
def test_long_groups_are_cut_and_say_where_the_rest_is(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    for number in range(415):
        rows.document(run, site_run, f"alder.{number}", 1, OutcomeKind.INVALID, MISSING)
    rows.unchanged(run, site_run, *((f"birch.{number}", 1, 1) for number in range(12)))

    text = text_of(report_of(session, site_run, settings_with(lines_per_group=3)))

    assert "and 412 more in the attached table" in text
    assert text.count(MISSING.message) == 3
    assert "  birch.0.1, birch.1.1, birch.2.1, and 9 more" in text


def test_a_document_that_failed_before_and_went_in_is_reported_as_repaired(session: Session, rows: JournalRows) -> None:
    site = rows.site("alder-creek")
    night = timedelta(days=1)
    before = rows.run(TODAY - night, NOW - night, "with-errors")
    failed = rows.site_run(before, site)
    rows.document(before, failed, "alder.1", 1, OutcomeKind.INVALID, MISSING)
    run = rows.run()
    site_run = rows.site_run(run, site)
    rows.document(run, site_run, "alder.1", 2, OutcomeKind.UPDATED)
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.INSERTED)

    text = text_of(report_of(session, site_run))

    mended = text[text.index("Corrected since") : text.index("New (1)")]
    assert "alder.1.2" in mended
    assert "alder.2.1" not in mended


@on_one_database
def test_a_retry_speaks_of_the_documents_tried_again(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"), kind="retry")
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INSERTED)

    assert "1 document that had failed before was tried again: 1 was added." in words_of(report_of(session, site_run))


@on_one_database
def test_a_retry_names_no_document_that_was_not_tried_again(session: Session, rows: JournalRows) -> None:
    """The ledger does not tell which of those that are there were asked for again, and found to be there already."""
    site, night, now = rows.site("alder-creek"), rows.run(), rows.run()
    rows.unchanged(night, rows.site_run(night, site), ("alder.1", 1, 1), ("alder.2", 1, 2))
    retry = rows.site_run(now, site, kind="retry")
    rows.document(now, retry, "alder.4", 1, OutcomeKind.INSERTED)
    rows.unchanged(now, retry, ("alder.3", 1, 1))

    report = report_of(session, retry)
    assert "1 is unchanged" in words_of(report)
    for text in (report.text, report.html):
        assert "alder.4.1" in text
        assert "alder.1.1" not in text
        assert "alder.2.1" not in text


@on_one_database
def test_the_registered_settings_are_shown_without_credentials(session: Session, rows: JournalRows) -> None:
    site = rows.site(
        "alder-creek",
        "a@example.org; b@example.org",
        documentlisturl="https://user:hush@alder.example.org/list.xml",
        updatefrequency=2,
        unit="weeks",
        notify="on-change",
        options='{"package_id_mismatch": "error"}',
    )
    report = report_of(session, rows.site_run(rows.run(), site))

    text = words_of(report)
    assert "https://alder.example.org/list.xml" in text
    assert "every 2 weeks" in text
    assert "on-change" in text
    assert "a@example.org, b@example.org" in text
    assert "package id mismatch: error" in text
    assert "it goes to steward@example.org, second@example.org" in text
    assert b"hush" not in report.content
    assert "hush" not in report.html


@on_one_database
def test_the_message_is_proper_mail(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek", "a@example.org, b@example.org ; not an address"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, MISSING)

    report = report_of(session, site_run, settings_with("Réseau d’essai"))
    message = parsed(report)

    assert {name.lower() for name in message} == HEADERS
    assert message["From"].addresses[0].display_name == "Réseau d’essai"
    assert message["From"].addresses[0].addr_spec == "harvester@example.org"
    assert str(message["To"]) == "a@example.org, b@example.org"
    assert str(message["Reply-To"]) == "steward@example.org, second@example.org"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Date"].datetime == NOW
    assert re.fullmatch(r"<[0-9a-f]{32}@example\.org>", message["Message-ID"])
    assert report.message_id == message["Message-ID"]
    assert message.get_content_type() == "multipart/mixed"
    alternative, table = message.iter_parts()
    assert [part.get_content_type() for part in alternative.iter_parts()] == ["text/plain", "text/html"]
    assert {part.get_content_charset() for part in alternative.iter_parts()} == {"utf-8"}
    assert table.get_filename() == "alder-creek-2026-11-20.csv"
    assert report.content.isascii()
    assert b"\n" not in report.content.replace(b"\r\n", b"")


@on_one_database
def test_the_html_is_simple_and_fetches_nothing(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, MISSING, url="javascript:alert(1)")

    page: Any = html.fromstring(report_of(session, site_run).html.encode())

    assert not page.xpath("//script | //img | //link | //iframe | //object | //form | //*[@src] | //*[@background]")
    assert not [name for element in page.iter() for name in element.attrib if name.startswith("on")]
    assert all(re.match(r"https?://|mailto:", link) for link in page.xpath("//a/@href"))
    assert page.xpath("//meta[@name='viewport']")
    assert page.xpath("//meta[@name='color-scheme']/@content") == ["light dark"]
    assert "url(" not in report_of(session, site_run).html


HOSTILE = (
    "<script>alert(1)</script>\r\nBcc: victim@example.org\x1b[31m\u202etxt.exe =?utf-8?q?a=0ABcc:_x=40example.org?="
)


def test_hostile_text_does_no_harm_anywhere(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site = rows.site("hostile")
    site.name = HOSTILE[:100]
    site_run = rows.site_run(run, site, failure_reason=HOSTILE)
    nasty = Finding("x.y", HOSTILE * 50, HOSTILE, line=3, excerpt=HOSTILE, xpath=HOSTILE)
    rows.document(run, site_run, "=cmd|' /C calc'!A0", 1, OutcomeKind.INVALID, nasty, url=f"https://x/{HOSTILE}")
    rows.document(run, site_run, "plain.1", 1, OutcomeKind.INSERTED)

    report = report_of(session, site_run, settings_with(HOSTILE[:90]))
    message = parsed(report)

    assert {name.lower() for name in message} == HEADERS
    assert max(len(line) for line in report.content.split(b"\r\n")) <= 998
    assert "\n" not in report.subject
    assert not html.fromstring(report.html.encode()).xpath("//script")
    for shown in (report.text, report.html):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    (table,) = message.iter_attachments()
    for row in csv.reader(io.StringIO(attached(table).decode("utf-8-sig"))):
        assert not [cell for cell in row if cell[:1] in tuple("=+-@\t\r")]


@on_one_database
def test_encoded_headers_keep_to_the_length_of_encoded_words(session: Session, rows: JournalRows) -> None:
    site_run = rows.site_run(
        rows.run(), rows.site("Übungsfläche am großen Bärensee, Außenstelle für Böden und Gewässer")
    )

    report = report_of(
        session, site_run, settings_with("Ökologisches Netzwerk für Hochmoore, Flüsse und Küstengewässer")
    )

    words = re.findall(rb"=\?utf-8\?[qb]\?[^?]*\?=", report.content.partition(b"\r\n\r\n")[0], re.IGNORECASE)
    assert words
    assert max(map(len, words)) <= 75
    assert "Außenstelle für Böden und Gewässer: all well" in parsed(report)["Subject"]


def test_a_message_of_5000_characters_stays_within_the_limits_of_mail(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, Finding("x.y", "é" * 5000, excerpt="<" * 5000))

    report = report_of(session, site_run)

    assert max(len(line) for line in report.content.split(b"\r\n")) <= 998
    assert "é" * 700 in text_of(report)
    (table,) = parsed(report).iter_attachments()
    assert "é" * 5000 in attached(table).decode("utf-8-sig")


@on_one_database
def test_contacts_get_no_command_that_only_administrators_can_type(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    remedy = Remedy("The administrator confirms it ({}).", todo("sites.confirm", name="alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, replace(MISSING, remedy=remedy))

    report = report_of(session, site_run)

    (table,) = parsed(report).iter_attachments()
    for shown in (words_of(report), html_words(report), attached(table).decode("utf-8-sig")):
        assert "The administrator confirms it." in shown
        assert "metaharvest sites" not in shown


@on_one_database
def test_a_long_table_is_gzipped_and_a_very_long_one_left_out(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    for number in range(30):
        rows.document(run, site_run, f"alder.{number}", 1, OutcomeKind.INVALID, MISSING)

    gzipped = parsed(report_of(session, site_run, settings_with(gzip_csv_over=1000)))
    (attachment,) = gzipped.iter_attachments()
    assert attachment.get_filename() == "alder-creek-2026-11-20.csv.gz"
    assert attachment.get_content_type() == "application/gzip"
    table = gzip.decompress(attached(attachment)).decode("utf-8-sig")
    assert len(list(csv.reader(io.StringIO(table)))) == 31

    left_out = report_of(session, site_run, settings_with(gzip_csv_over=1000, drop_csv_over=2000, lines_per_group=4))
    assert list(parsed(left_out).iter_attachments()) == []
    whom_to_ask = f"The administrators can send it to you: it is the table of site run {site_run.site_run_id}."
    assert whom_to_ask in words_of(left_out)
    assert "attached table" not in words_of(left_out)


def test_a_report_says_that_a_long_table_has_to_be_unpacked(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, MISSING)

    assert "with all findings, for a spreadsheet." in words_of(report_of(session, site_run))
    packed = words_of(report_of(session, site_run, settings_with(gzip_csv_over=1)))
    assert "with all findings, for a spreadsheet; unpack it first." in packed


@on_one_database
def test_without_anything_to_list_no_table_is_attached(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.unchanged(run, site_run, ("alder.1", 1, 1))

    report = report_of(session, site_run)

    assert parsed(report).get_content_type() == "multipart/alternative"
    assert "attached" not in words_of(report)


@on_one_database
def test_a_template_of_ones_own_replaces_just_that_file(session: Session, rows: JournalRows, tmp_path: Path) -> None:
    site_run = rows.site_run(rows.run(), rows.site("alder-creek"))
    own = tmp_path / "own" / "email" / "site_report"
    own.mkdir(parents=True)
    (own / "subject.txt").write_text("Nachricht für {{ report.site }}: {{ report.story }}\n", encoding="utf-8-sig")
    (own / "body.html").write_text("<p>{{ report.site }} & {{ report.sentence }}</p>", encoding="utf-8-sig")

    report = report_of(session, site_run, settings_with(templates=tmp_path / "own"))

    assert report.subject == "Nachricht für alder-creek: all well, nothing new"
    assert report.html.startswith("<p>alder-creek &")
    assert "Next harvest" in report.text


@on_one_database
@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{% if %}", "line 1"),
        ("{{ report.no_such_thing }}", "no_such_thing"),
        ("{{ undefined_name }}", "undefined_name"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
    ],
)
def test_a_template_that_fails_is_replaced_by_a_plain_report_that_says_so(
    session: Session, rows: JournalRows, tmp_path: Path, template: str, reason: str
) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("<b>alder-creek"))
    rows.document(run, site_run, "alder.1", 7, OutcomeKind.INVALID, MISSING)
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.INSERTED)
    own = tmp_path / "email" / "site_report"
    own.mkdir(parents=True)
    (own / "body.html").write_text(template)

    report = report_of(session, site_run, settings_with(templates=tmp_path))

    assert report.subject == "[NAME] <b>alder-creek: 1 error, 1 new (2026-11-20)"
    for shown in (words_of(report), html_words(report)):
        assert "The report template email/site_report/body.html could not be used" in shown
        assert reason in shown
        assert "alder.1.7 line 9" in shown
        assert MISSING.message in shown
        assert MISSING.remedy in shown
        assert "alder.2.1" in shown
    assert not html.fromstring(report.html.encode()).xpath("//b")
    assert len(list(parsed(report).iter_attachments())) == 1


@on_one_database
def test_each_rule_is_linked_to_its_page_where_the_settings_say_where_that_is(
    session: Session, rows: JournalRows
) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, MISSING)
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.INSERTED, warnings=(DOUBTFUL,))

    report = report_of(session, site_run, settings_with(docs_url="https://harvest.example.org/docs/"))
    links = [a.get("href") for a in html.fromstring(report.html.encode()).iter("a")]
    assert "https://harvest.example.org/docs/rules.html#schemamissing-element" in links
    assert text_of(report).count("https://harvest.example.org/docs/rules.html\n") == 1

    without = report_of(session, site_run)
    assert "rules.html" not in without.html + text_of(without)


@on_one_database
def test_a_report_in_which_all_is_well_names_no_page_of_rules(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.2", 1, OutcomeKind.INSERTED)
    assert "rules.html" not in text_of(report_of(session, site_run, settings_with(docs_url="https://example.org/docs")))


def test_a_report_begins_with_what_to_do_first_and_how_to_rehearse_it(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    for number in range(3):
        rows.document(run, site_run, f"alder.{number}", 1, OutcomeKind.INVALID, MISSING)
        rows.ledger(site_run, f"alder.{number}", 1, OutcomeKind.INVALID, title=f"Stream chemistry, part {number}")
    report = report_of(session, site_run)
    command = "metaharvest check https://alder-creek.example.org/harvestList.xml"

    for shown in (words_of(report), html_words(report)):
        start, first, details = shown.index("Start here"), shown.index(MISSING.remedy), shown.index("Needs your")
        assert start < first < details
        assert command in shown[start:details]
        assert "Rule schema.missing-element" in shown[details:]
        assert "Stream chemistry, part 2" in shown[details:]
        assert "always: after every harvest" in shown
        assert "on-change, on-error and never: reply to this message" in shown


def test_a_report_asks_for_no_correction_if_the_fault_is_ours(session: Session, rows: JournalRows) -> None:
    run = rows.run(status="failed")
    site_run = rows.site_run(run, rows.site("alder-creek"), "list-failed", failure_reason="The proxy does not work.")
    proxy = Finding("http.proxy", "The proxy does not work.", "Check http.proxy.")
    rows.log(run, "GetHarvestListError", "x", site_run, (proxy,))

    text = words_of(report_of(session, site_run))

    assert "You need to do nothing" in text
    assert "Check your correction" not in text


def test_a_rule_is_named_with_its_page(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INVALID, MISSING)

    text = words_of(report_of(session, site_run, settings_with(docs_url="https://docs.example.org")))

    assert "Rule schema.missing-element: https://docs.example.org/rules.html#schemamissing-element" in text


def test_all_well_asks_for_nothing(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    site_run = rows.site_run(run, rows.site("alder-creek"))
    rows.document(run, site_run, "alder.1", 1, OutcomeKind.INSERTED)
    rows.ledger(site_run, "alder.1", 1, OutcomeKind.INSERTED, title="Stream chemistry")

    text = words_of(report_of(session, site_run))

    assert "Start here" not in text
    assert 'alder.1.1 https://data.example.org/eml/alder.1.1.xml "Stream chemistry"' in text
