"""What people do with single reports: look, filter, send again to whom they want, drop."""

from __future__ import annotations

import json
import shlex
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.ports import free_port
from support.smtp_sink import SmtpSink

DAY = "2026-11-20"

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""


@pytest.fixture
def harvested(harvester: Harvester, server: HttpServer) -> Harvester:
    """Two sites, of which nobody has got a report yet: the mail server is away."""
    set_port(harvester, free_port())
    harvester.add_site("elm", publish(server, "a.1.1"), contact_email="old@example.org")
    harvester.add_site("fir", publish(server, "b.1.1", path="/b.xml"))
    harvester.run(DAY)
    return harvester


def set_port(harvester: Harvester, port: int) -> None:
    text = harvester.config.read_text(encoding="utf-8").partition("[mail]")
    mail = f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {port}\nsender = "harvester@example.org"\n'
    rest = text[2].partition("[http]")[2]
    harvester.config.write_text(f"{text[0]}{mail}[http]{rest}", encoding="utf-8")


def listed(harvester: Harvester, *arguments: str) -> list[dict[str, Any]]:
    return list(json.loads(harvester("reports", *arguments, "--json").out))


def number_of(harvester: Harvester, site: str) -> str:
    [report] = listed(harvester, "--site", site)
    return str(report["report_id"])


def test_reports_are_found_by_site_kind_recipient_and_state(harvested: Harvester) -> None:
    def subjects(*arguments: str) -> list[str]:
        return [report["subject"].split(": ")[0] for report in listed(harvested, *arguments)]

    assert subjects("--site", "elm") == ["[Test network] elm"]
    assert subjects("--kind", "admin") == ["[Test network] 2 sites"]
    assert subjects("--recipient", "FIR@example.org") == ["[Test network] fir"]
    assert len(subjects("--state", "waiting")) == 3
    assert subjects("--state", "sent") == []
    assert "old@example.org" in harvested("reports").out
    harvested.add_site("oak", "https://oak.example.org/list.xml", datenextharvest=date(2040, 1, 1))
    assert harvested("reports", "--site", "oak").out == "There is no such report.\n"
    said = harvested("reports", "--site", "ook")
    assert (said.code, "No run has harvested a site named 'ook'." in said.err) == (2, True)
    # A site that was renamed keeps its reports, and is found by its old name as long as no other site has it.
    harvested("sites", "edit", "elm", "--name", "elm wood")
    harvested.run("2026-11-21")
    for name in ("elm wood", "elm"):
        assert subjects("--site", name) == ["[Test network] elm wood", "[Test network] elm"]


def test_a_corrected_contact_gets_the_report_and_the_wrong_address_is_not_tried_again(harvested: Harvester) -> None:
    harvested("sites", "edit", "elm", "--contact", "right@example.org")
    with SmtpSink() as sink:
        set_port(harvested, sink.port)
        said = harvested("reports", "resend", number_of(harvested, "elm"))
        assert said.code == 0
        assert "old@example.org no longer gets these reports. --to sends this one anyway" in said.out
        assert len(sink.to("right@example.org")) == 1
        assert sink.to("old@example.org") == []


def test_a_report_goes_to_whoever_is_named_and_the_first_time_stays(harvested: Harvester) -> None:
    with SmtpSink() as sink:
        set_port(harvested, sink.port)
        assert harvested("reports", "deliver").code == 0
        number = number_of(harvested, "elm")
        [before] = listed(harvested, "--site", "elm")[0]["deliveries"]
        assert harvested("reports", "resend", number, "--to", "curious@example.org").code == 0
        assert harvested("reports", "resend", number).code == 0
        assert (len(sink.to("curious@example.org")), len(sink.to("old@example.org"))) == (1, 2)
        first = {each["recipient"]: each for each in listed(harvested, "--site", "elm")[0]["deliveries"]}
        assert first["old@example.org"]["first_sent_at"] == before["first_sent_at"]
        assert first["old@example.org"]["last_attempt_at"] > before["first_sent_at"]
    said = harvested("reports", "resend", number, "--to", "nobody")
    assert (said.code, "'nobody' is not an email address" in said.err) == (2, True)


def test_a_report_of_a_removed_site_goes_to_nobody_but_whom_one_names(harvested: Harvester) -> None:
    number = number_of(harvested, "elm")
    harvested("sites", "remove", "elm", "--yes")
    with SmtpSink() as sink:
        set_port(harvested, sink.port)
        said = harvested("reports", "resend", number)
        assert (said.code, said.out) == (2, "")
        assert "Its site is registered no longer, so that nobody gets such reports now" in said.err
        assert "--to ADDRESS" in said.err
        assert sink.to("old@example.org") == []
        assert harvested("reports", "resend", number, "--to", "new@example.org").code == 0
        assert len(sink.to("new@example.org")) == 1


def test_a_report_of_a_site_whose_row_cannot_be_read_goes_to_nobody_unasked(harvested: Harvester) -> None:
    number = number_of(harvested, "elm")
    harvested.rows("UPDATE harvest_site_schedule SET unit = 'fortnights' WHERE name = 'elm'")
    with SmtpSink() as sink:
        set_port(harvested, sink.port)
        said = harvested("reports", "resend", number)
        assert (said.code, said.out) == (2, "")
        assert "The row of its site in the schedule cannot be read" in said.err
        assert "--to ADDRESS" in said.err
        assert sink.to("old@example.org") == []


def test_a_dropped_report_is_not_tried_any_more(harvested: Harvester) -> None:
    number = number_of(harvested, "elm")
    assert harvested("reports", "drop", number).out == "1 delivery was given up.\n"
    assert harvested("reports", "drop", number).out == "Nothing of it was waiting: nothing was changed.\n"
    with SmtpSink() as sink:
        set_port(harvested, sink.port)
        assert harvested("reports", "deliver").code == 0
        assert (sink.to("old@example.org"), len(sink.to("fir@example.org"))) == ([], 1)
    assert "It was dropped" in harvested("reports", "show", number).out
    assert harvested("reports", "drop", "99").code == 2


def test_a_report_is_previewed_as_it_would_be_written_now(harvested: Harvester) -> None:
    before = listed(harvested)
    assert "Subject: [Test network] elm: all well, 1 new" in harvested("reports", "preview", "--site", "elm").out
    assert harvested("reports", "preview").out.startswith("Subject: [Test network] 2 sites")
    assert harvested("reports", "preview", "--html").out.lstrip().startswith("<!DOCTYPE html>")
    said = harvested("reports", "preview", "--site", "oak")
    assert (said.code, "No run has harvested a site named 'oak'." in said.err) == (2, True)
    assert listed(harvested) == before


def test_a_report_is_opened_in_a_browser_or_its_place_is_told(
    harvested: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    said = harvested("reports", "open", number_of(harvested, "elm"))
    assert said.code == 0
    assert said.out.strip().endswith(".html")


@pytest.mark.parametrize("works", [True, False], ids=["a browser", "no browser"])
@pytest.mark.parametrize("arguments", ["open", "preview"])
def test_whether_a_browser_was_opened_is_told(
    harvested: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool, arguments: str
) -> None:
    script, temporary = tmp_path / "browser", tmp_path / "temporary"
    script.write_text(f'#!/bin/sh\necho "$1" > {shlex.quote(str(tmp_path / "asked"))}\nexit {0 if works else 1}\n')
    script.chmod(0o755)
    temporary.mkdir()
    for name, value in (("BROWSER", f"{script} %s"), ("PATH", ""), ("TMPDIR", str(temporary)), ("DISPLAY", "")):
        monkeypatch.setenv(name, value)
    report = [number_of(harvested, "elm")] if arguments == "open" else ["--open"]
    process = harvested.start("reports", arguments, *report)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    [page] = temporary.iterdir()
    told = "The page is open in your browser" if works else "No browser could be opened; the page is here"
    assert out == f"{told}: {page}\n"
    assert "<html" in page.read_text(encoding="utf-8")
    assert (tmp_path / "asked").read_text().strip() == page.as_uri()
