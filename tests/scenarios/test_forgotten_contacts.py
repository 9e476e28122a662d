"""The address of a person is removed from everything that is stored."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer

ANNA = "Anna.Muster@example.org"


@pytest.fixture
def harvested(harvester: Harvester, server: HttpServer) -> Harvester:
    """Two sites with the contact Anna, the second also with namesakes. One report waits for her."""
    text = harvester.config.read_text().replace("steward@example.org", "anna.muster@example.org")
    harvester.config.write_text(text.replace("[reports]\n", "[reports]\ngzip_csv_over = 1\n"))
    if "gzip_csv_over" not in text:
        with harvester.config.open("a") as file:
            file.write("[reports]\ngzip_csv_over = 1\n")
    contacts = f"joanna.muster@example.org, {ANNA}, anna.muster@example.org.uk"
    harvester.add_site("elm", publish(server, "a.1.1", path="/a.xml"), contact_email=contacts)
    harvester.add_site("fir", publish(server, "b.1.1", path="/b.xml"), contact_email=f"{ANNA}, fir@example.org")
    harvester.run("2026-11-20")
    [(number,)] = harvester.rows("SELECT MIN(delivery_id) FROM report_delivery WHERE recipient = ?", ANNA)
    harvester.rows(
        "UPDATE report_delivery SET status = 'queued', last_error = ? WHERE delivery_id = ?",
        f"<{ANNA}>: mailbox full",
        number,
    )
    harvester.rows(
        "UPDATE harvest_log SET message = ? WHERE harvest_log_id = (SELECT n FROM "
        "(SELECT MIN(harvest_log_id) AS n FROM harvest_log) AS first)",
        f"Reported to {ANNA.lower()}, and joanna.muster@example.org.",
    )
    return harvester


def traces(harvester: Harvester) -> list[str]:
    """The columns with the address, in any case; in reports also in encoded parts."""
    tables = ("harvest_site_schedule", "harvest_log", "harvest_detail_log", "report_delivery", "report_outbox")
    found = []
    for table in tables:
        for row in harvester.rows(f"SELECT * FROM {table}"):
            for value in row:
                text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
                if ANNA.lower() in _decoded(text).lower().replace("joanna.muster@example.org", "").replace(
                    "anna.muster@example.org.uk", ""
                ):
                    found.append(table)
    return found


def _decoded(text: str) -> str:
    """A text, with the attachments of a message decoded and lines joined again."""
    from email import message_from_string, policy

    if "MIME-Version" not in text:
        return text
    message = message_from_string(text, policy=policy.default)
    parts = [str(message.items())]
    for part in message.walk():
        content = part.get_payload(decode=True) if not part.is_multipart() else b""
        assert isinstance(content, bytes)
        content = gzip.decompress(content) if part.get_content_type() == "application/gzip" else content
        parts.append(content.decode("utf-8", "replace"))
    return "\n".join(parts)


def test_an_address_is_taken_out_of_everything(harvested: Harvester) -> None:
    assert {"harvest_site_schedule", "harvest_log", "report_delivery", "report_outbox"} <= set(traces(harvested))
    before = harvested.rows("SELECT message_id, content FROM report_outbox ORDER BY report_id")
    refused = harvested("contacts", "forget", ANNA)
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    said = harvested("contacts", "forget", ANNA, "--yes")
    assert said.code == 0, said.err
    assert "contacts of sites: elm, fir" in said.out
    assert "deliveries: 3" in said.out
    assert "stored reports: 3" in said.out
    assert "Still in the settings: take Anna.Muster@example.org out of administrators in [harvester]" in said.out
    assert f"Not changed: the mail folder {harvested.folder / 'mail'}" in said.out
    assert "mails that were sent, backups" in said.out
    assert traces(harvested) == []
    contacts = harvested.rows("SELECT name, contact_email FROM harvest_site_schedule ORDER BY name")
    assert contacts == [
        ("elm", "joanna.muster@example.org, anna.muster@example.org.uk"),
        ("fir", "fir@example.org"),
    ]
    [(message,)] = harvested.rows("SELECT message FROM harvest_log WHERE message LIKE 'Reported to %'")
    assert message == "Reported to (address removed), and joanna.muster@example.org."
    after = harvested.rows("SELECT message_id, content FROM report_outbox ORDER BY report_id")
    assert [each[0] for each in after] == [each[0] for each in before]
    for _, content in after:
        assert base64.b64encode(ANNA.encode())[:20] not in content
        assert max(map(len, content.split(b"\r\n"))) <= 998
    # What waited is not sent, and the reports can still be shown.
    statuses = harvested.rows("SELECT status FROM report_delivery WHERE recipient = '(forgotten)' ORDER BY 1")
    assert statuses == [("refused",), ("sent",), ("sent",)]
    assert harvested("reports", "show", "1").code == 0
    assert harvested("reports", "show", "1", "--html").code == 0
    for file in harvested.folder.glob("metaharvest.db*"):
        assert b"Anna.Muster@example.org" not in file.read_bytes()
    again = harvested("contacts", "forget", ANNA, "--yes", "--json")
    output = json.loads(again.out)
    numbers = ("contact_of", "deliveries_changed", "reports_changed", "log_rows")
    assert [output[name] for name in numbers] == [[], 0, 0, 0]


@on_one_database
def test_an_address_is_taken_out_of_jobs(harvested: Harvester) -> None:
    harvested.rows(
        "INSERT INTO job (kind, subject, work, host, priority, state, not_before, made_at, sentence) VALUES "
        "('deliver', 'mail', '{}', 'mail', 0, 'cancelled', '2026-11-20 02:00:00', '2026-11-20 02:00:00', "
        f"'It was cancelled by {ANNA}.')"
    )
    assert harvested("contacts", "forget", ANNA, "--yes").code == 0
    assert harvested.rows("SELECT sentence FROM job") == [("It was cancelled by (address removed).",)]


@on_one_database
def test_the_only_contact_of_a_site_is_not_forgotten_before_there_is_another(harvested: Harvester) -> None:
    harvested("sites", "edit", "fir", "--contact", ANNA)
    before = harvested.rows("SELECT contact_email FROM harvest_site_schedule ORDER BY name")
    said = harvested("contacts", "forget", ANNA, "--yes")
    assert said.code == 2
    assert "is the only contact of fir, and a site must have one. Nothing was changed." in said.err
    assert "sites edit 'fir' --add-contact ADDRESS" in said.err
    assert harvested.rows("SELECT contact_email FROM harvest_site_schedule ORDER BY name") == before


@on_one_database
def test_an_address_that_is_nowhere_and_one_that_is_none(harvested: Harvester) -> None:
    said = harvested("contacts", "forget", "nobody@example.org", "--yes")
    assert (said.code, "nobody@example.org is in no site, delivery, report or log row." in said.out) == (0, True)
    said = harvested("contacts", "forget", "nobody", "--yes")
    assert (said.code, "'nobody' is not an email address" in said.err) == (2, True)


def test_an_address_that_is_a_part_of_the_sender_is_not_in_the_settings(harvester: Harvester) -> None:
    part = harvester("contacts", "forget", "vester@example.org", "--yes")
    assert (part.code, "Still in the settings" in part.out) == (0, False)
    assert "Still in the settings: sender" in harvester("contacts", "forget", "harvester@example.org", "--yes").out
