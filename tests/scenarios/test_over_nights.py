"""Several nights of a site that changes: the reports tell what is new, what is still broken, and what was fixed."""

from __future__ import annotations

import json
import re
from email.message import EmailMessage

import pytest

from support import mails
from support.databases import on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer, answering
from support.mails import text_of, tone_of

BAD = eml("a.2.1").replace(b"<title>A title</title>", b"")
DOUBTFUL = eml("a.9.9")
"""Its packageId is not that of the list: a warning."""


def parts(mail: EmailMessage) -> dict[str, str]:
    """The parts of a report by their headings."""
    text = text_of(mail)
    headings = list(re.finditer(r"^(\S.*)\n=+\n", text, re.MULTILINE))
    ends = [match.start() for match in headings[1:]] + [len(text)]
    return {match[1]: text[match.end() : end] for match, end in zip(headings, ends, strict=True)}


def night(harvester: Harvester, day: str) -> tuple[dict[str, str], dict[str, str]]:
    """The parts of the site's and of the administrator's report of this day."""
    harvester.run(day)
    mails = [mail for mail in harvester.mails() if day in str(mail["Subject"])]
    [administrator] = [mail for mail in mails if "steward" in str(mail["To"])]
    site = next(mail for mail in mails if mail is not administrator)
    return parts(site), parts(administrator)


def test_what_is_new_what_is_still_broken_and_what_was_fixed(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", "a.3.1", "a.4.1"))
    server.serve("/a.2.1.xml", BAD)
    server.serve("/a.4.1.xml", DOUBTFUL)
    first, _ = night(harvester, "2026-11-20")
    assert "a.2.1" in first["Needs your attention"]
    assert "a.4.1" in first["Warnings"]

    # The next night another document breaks, and nothing is mended.
    server.route("/a.5.1.xml", answering(b"gone", status=404))
    server.serve(
        "/list.xml", harvest_list((d, server.url(f"/{d}.xml")) for d in ("a.1.1", "a.2.1", "a.3.1", "a.4.1", "a.5.1"))
    )
    second, steward = night(harvester, "2026-11-21")
    assert "a.5.1" in second["Needs your attention: new since the last harvest"]
    assert "a.2.1" not in second["Needs your attention: new since the last harvest"]
    assert "a.2.1" in second["Needs your attention: still broken"]
    assert "failing since 2026-11-20, 2 nights, 2 attempts" in second["Needs your attention: still broken"]
    assert "Not looked at again this time:" in second["Warnings: still there"]
    assert "(1), since 2026-11-20, 2 nights: a.4" in " ".join(second["Warnings: still there"].split())
    assert "site: since 2026-11-20, 2 nights" in steward["Still failing, since when"]
    assert any("5  listed (+1)" in text_of(mail) for mail in harvester.mails())

    # The bad one is mended, with the revision that it has; the doubtful one gets a new revision that is well.
    server.serve("/a.2.1.xml", eml("a.2.1"))
    docids = ("a.1.1", "a.2.1", "a.3.1", "a.4.2")
    server.serve("/a.4.2.xml", eml("a.4.2"))
    server.serve("/list.xml", harvest_list((docid, server.url(f"/{docid}.xml")) for docid in docids))
    third, steward = night(harvester, "2026-11-22")
    fixed = third["Fixed since the last harvest: thank you"]
    assert "a.2" in fixed
    assert "a.4" in fixed
    # Nobody mended the one that is listed no longer.
    assert "a.5" not in fixed
    assert not [heading for heading in third if heading.startswith(("Needs", "Warnings"))]
    assert "Still failing, since when" not in steward
    sql = "SELECT document_id, state, nights FROM site_problem ORDER BY document_id"
    assert harvester.rows(sql) == [("a.2", "fixed", 3), ("a.4", "fixed", 3), ("a.5", "gone", 2)]

    # What comes back is new again.
    server.serve("/a.2.1.xml", BAD)
    server.serve("/a.2.2.xml", BAD)
    docids = ("a.1.1", "a.2.2", "a.3.1", "a.4.2")
    server.serve("/list.xml", harvest_list((docid, server.url(f"/{docid}.xml")) for docid in docids))
    fourth, _ = night(harvester, "2026-11-23")
    assert "a.2.2" in fourth["Needs your attention: new since the last harvest"]
    assert "Needs your attention: still broken" not in fourth


@pytest.mark.parametrize("failure", [pytest.param(404, id="not there"), pytest.param(200, id="not valid")])
def test_a_revision_that_came_too_late_has_not_been_fixed(
    harvester: Harvester, server: HttpServer, failure: int
) -> None:
    """The repository has a higher one, and takes it no more; taking it out of the list mends it."""
    harvester.add_site("site", publish(server, "a.1.1", "a.1.2", "a.3.1"))
    server.serve("/a.1.1.xml", b"<eml", status=failure)
    server.serve("/a.3.1.xml", b"<eml")
    first, _ = night(harvester, "2026-11-20")
    assert "a.1.1" in first["Needs your attention"]
    server.serve("/a.3.1.xml", eml("a.3.1"))
    second, _ = night(harvester, "2026-11-21")
    fixed = second["Fixed since the last harvest: thank you"]
    assert "a.3" in fixed
    assert "a.1" not in fixed
    states = harvester.rows("SELECT document_id, state FROM site_problem ORDER BY document_id")
    assert states == [("a.1", "gone"), ("a.3", "fixed")]


def test_a_document_that_cannot_be_fetched_has_not_been_fixed(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    server.serve("/a.2.1.xml", BAD)
    night(harvester, "2026-11-20")
    server.route("/a.2.1.xml", answering(b"gone", status=404))
    second, _ = night(harvester, "2026-11-21")
    assert "Fixed since the last harvest: thank you" not in second
    assert "Not looked at again this time:" in second["Needs your attention: still broken"]
    server.serve("/a.2.1.xml", eml("a.2.1"))
    third, _ = night(harvester, "2026-11-22")
    assert third["Fixed since the last harvest: thank you"].count("a.2") == 2


def test_a_list_that_can_be_read_again_was_fixed(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    good = harvest_list([("a.1.1", server.url("/a.1.1.xml"))])
    night(harvester, "2026-11-20")
    server.serve("/list.xml", good.replace(b"</document>", b""))
    second, _ = night(harvester, "2026-11-21")
    assert "Needs your attention: new since the last harvest" in second
    third, steward = night(harvester, "2026-11-22")
    assert "Needs your attention: still broken" in third
    assert "site: since 2026-11-21, 2 nights" in steward["Still failing, since when"]
    server.serve("/list.xml", good)
    fourth, steward = night(harvester, "2026-11-23")
    assert "Fixed since the last harvest: thank you" in fourth
    assert "Still failing, since when" not in steward


def test_a_site_that_is_not_due_tonight_is_still_failing(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("weekly", publish(server, "a.2.1"), unit="weeks")
    harvester.add_site("daily", publish(server, "b.1.1", path="/other.xml"), contact_email="daily@example.org")
    server.serve("/a.2.1.xml", BAD)
    night(harvester, "2026-11-20")
    _, steward = night(harvester, "2026-11-21")
    assert "weekly: since 2026-11-20, 2 nights" in steward["Still failing, since when"]
    assert "last harvested 2026-11-20" in steward["Still failing, since when"]


FIXED = "Fixed since the last harvest: thank you"
STILL = "Needs your attention: still broken"
TWO_ONES = eml("a.1.1").replace(b"<creator>", b'<creator id="x">').replace(b"<contact>", b'<contact id="x">')
"""Two elements have one id: the schema has nothing against that."""


@on_one_database
def test_what_a_check_did_not_come_to_has_not_been_fixed(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    server.serve("/a.1.1.xml", TWO_ONES)
    night(harvester, "2026-11-20")
    # A mistake against the schema hides what is looked at after it, and one against XML hides both.
    server.serve("/a.1.1.xml", TWO_ONES.replace(b"<title>A title</title>", b""))
    second, _ = night(harvester, "2026-11-21")
    assert FIXED not in second
    server.serve("/a.1.1.xml", TWO_ONES.replace(b"</dataset>", b""))
    third, _ = night(harvester, "2026-11-22")
    assert FIXED not in third
    assert third[STILL].count("A required element is missing") == third[STILL].count("An id that is not unique") == 1
    server.serve("/a.1.1.xml", TWO_ONES)
    fourth, _ = night(harvester, "2026-11-23")
    assert "A required element is missing" in fourth[FIXED]
    assert "An id" not in fourth[FIXED]
    assert "since 2026-11-20" in fourth[STILL]
    assert fourth.keys().isdisjoint({"Needs your attention: new since the last harvest"})


@on_one_database
def test_what_a_loose_site_is_warned_of_is_fixed_where_something_else_is_wrong(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    assert harvester("sites", "edit", "site", "--validation", "loose").code == 0
    server.serve("/a.1.1.xml", eml("a.1.1", "A & B"))
    night(harvester, "2026-11-20")
    server.serve("/a.1.1.xml", eml("a.1.1").replace(b"</dataset>", b""))
    second, steward = night(harvester, "2026-11-21")
    assert "`&` is not written as `&amp;`" in second[FIXED]
    assert "Still failing, since when" not in steward


@on_one_database
def test_a_document_that_is_refused_unseen_has_not_been_fixed(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.add_site("elm", publish(server, "b.1.1", path="/b.xml"), contact_email="elm@example.org")
    harvester.run("2026-11-19")
    publish(server, "a.1.2")
    server.serve("/a.1.2.xml", BAD)
    harvester.run("2026-11-20")
    assert harvester("target", "transfer", "a.1", "elm").code == 0
    harvester.run("2026-11-21")
    told = parts(
        next(mail for mail in harvester.mails() if "site: 1 error" in mail["Subject"] and "-21" in mail["Subject"])
    )
    assert FIXED not in told
    assert "A required element is missing" in told[STILL]


@on_one_database
def test_why_documents_were_put_off_is_over_once_they_are_in(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "1")
    docids = [f"a.{number}.1" for number in range(10, 18)]
    harvester.add_site("site", publish(server, *docids), unit="weeks")
    server.serve("/a.11.1.xml", b"busy", status=503, headers={"Retry-After": "3600"})
    night(harvester, "2026-11-20")
    server.serve("/a.11.1.xml", eml("a.11.1"))
    site, steward = night(harvester, "2026-11-21")
    assert "site: all well, 7 new (2026-11-21)" in " ".join(harvester.subjects())
    assert STILL not in site
    assert "Still failing, since when" not in steward


@on_one_database
def test_documents_that_stay_put_off_are_still_failing(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "1")
    server.serve("/b.1.1.xml", eml("b.1.1"))
    also = [("a.2.1", server.url("/b.1.1.xml"))]
    harvester.add_site("site", publish(server, "a.1.1", also=also))
    server.serve("/a.1.1.xml", b"busy", status=503, headers={"Retry-After": "3600"})
    night(harvester, "2026-11-20")
    harvester.rows("UPDATE harvest_document SET outcome = 'deferred', state = 'deferred'")
    harvester.rows("DELETE FROM site_problem")
    server.serve("/list.xml", b"busy", status=503, headers={"Retry-After": "3600"})
    _, steward = night(harvester, "2026-11-21")
    failing = " ".join(steward["Still failing, since when"].split())
    assert "site: since 2026-11-20, 2 nights, 2 documents" in failing
    assert "Put off to a later run (2)" in failing


@on_one_database
def test_a_retry_says_what_is_still_broken(harvester: Harvester, server: HttpServer) -> None:
    gone = ("a.2.1", server.url("/gone.xml"))
    harvester.add_site("site", publish(server, "a.1.1", "a.3.1", also=[gone]), unit="weeks")
    server.serve("/a.1.1.xml", b"busy", status=503)
    harvester.run("2026-11-20")
    server.serve("/a.1.1.xml", eml("a.1.1"))
    night(harvester, "2026-11-21")
    [mail] = [mail for mail in harvester.mails() if "site: 1 still broken, 1 new (2026-11-21)" in mail["Subject"]]
    assert "a.2" in parts(mail)[STILL]
    assert tone_of(mail) == mails.DOUBTFUL


@on_one_database
def test_a_list_that_is_served_again_is_served_whatever_is_wrong_with_it(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1")
    harvester.add_site("site", url)
    good = harvest_list([("a.1.1", server.url("/a.1.1.xml"))])
    server.serve("/list.xml", b"gone", status=404)
    night(harvester, "2026-11-20")
    server.serve("/list.xml", good.replace(b"</document>", b""))
    second, _ = night(harvester, "2026-11-21")
    assert STILL not in second
    assert "The server answered with an error" in second[FIXED]
    # What stops it from being served says nothing of what is wrong with it.
    server.serve("/list.xml", b"gone", status=404)
    third, steward = night(harvester, "2026-11-22")
    assert "well-formed" in third[STILL]
    failing = " ".join(steward["Still failing, since when"].split())
    assert "site: since 2026-11-21, 2 nights" in failing
    assert "The server answered with an error (1), The list is not well-formed XML (1)" in failing
    harvester.run("2026-11-23")
    [mail] = [mail for mail in harvester.mails() if "site@" in str(mail["To"]) and "-23)" in mail["Subject"]]
    page = mail.get_body(("html",))
    assert page is not None
    assert ">Since 2026-11-22, 2 nights<" in page.get_content()


@on_one_database
def test_reports_and_commands_count_the_same_failing_documents(harvester: Harvester, server: HttpServer) -> None:
    """Commands count up to today, or to the last harvest if that is later, as it is here."""
    harvester.add_site("site", publish(server, "a.1.1", "a.2.3", "a.3.1"))
    harvester.add_site("off", publish(server, "b.1.1", path="/b.xml"), contact_email="b@example.org")
    harvester.run("2126-11-19")
    server.serve("/a.4.1.xml", BAD)
    also = [("a.4.1", server.url("/a.4.1.xml")), ("a.1.1", server.url("/a.1.1.xml")), ("a.5.1", server.url("/no"))]
    publish(server, "a.1.1", "a.2.1", also=also)
    publish(server, "b.1.2", path="/b.xml")
    server.serve("/b.1.2.xml", BAD)
    harvester.run("2126-11-20")
    assert harvester("sites", "disable", "off").code == 0
    [site] = harvester.run("2126-11-22")["sites"]
    assert (site["invalid"], site["access_error"], site["stale"], site["duplicate"]) == (1, 1, 1, 1)
    assert any("site: 2 errors" in subject and "-22" in subject for subject in harvester.subjects())
    [mail] = [mail for mail in harvester.mails() if "steward" in str(mail["To"]) and "-22" in mail["Subject"]]
    failing = parts(mail)["Still failing, since when"]
    assert "site: since 2126-11-20, 3 nights, 2 documents" in failing
    assert "off" not in failing
    documents = json.loads(harvester("documents", "--failing", "--json").out)
    assert [(row["document_id"], row["nights"]) for row in documents] == [("a.4", 3), ("a.5", 3)]
    sites = {row["name"]: row["failing"] for row in json.loads(harvester("sites", "list", "--json").out)}
    assert sites["site"] == 2
