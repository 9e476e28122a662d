"""Several nights of a site that changes: the reports tell what is new, what is still broken, and what was fixed."""

from __future__ import annotations

import re
from email.message import EmailMessage

from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer, answering
from support.mails import text_of

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
    assert "since 2026-11-20" in second["Needs your attention: still broken"]
    assert "In documents that have not changed:" in second["Warnings: still there"]
    assert "a.4" in second["Warnings: still there"]
    assert "site: since 2026-11-20, 2 harvests" in steward["Still failing, since when"]
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
    assert "site: since 2026-11-21, 2 harvests" in steward["Still failing, since when"]
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
    assert "weekly: since 2026-11-20, 1 harvest" in steward["Still failing, since when"]
    assert "last harvested 2026-11-20" in steward["Still failing, since when"]
