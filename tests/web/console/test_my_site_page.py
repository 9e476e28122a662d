"""My site: what a contact sees and changes, and what the link of a report shows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from metaharvest.database.engine import writers
from metaharvest.database.models import HarvestRun, SiteProgress
from support.console import Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.mails import text_of

pytestmark = on_one_database

ALDER = "alder@example.org"
WEB = '[web]\nurl = "http://127.0.0.1:1"\ntoken_key = "0123456789abcdef"\n'


@pytest.fixture
def console(harvester: Harvester, server: HttpServer) -> Iterator[Served]:
    harvester.add_site("alder", publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))]))
    harvester.add_site("birch", server.url("/other.xml"))
    with served_console(harvester, token_key="0123456789abcdef") as made:
        yield made


def row(harvester: Harvester, columns: str) -> tuple[object, ...]:
    [found] = harvester.rows(f"SELECT {columns} FROM harvest_site_schedule WHERE name = 'alder'")
    return found


def test_a_contact_sees_the_report_and_the_problems(harvester: Harvester, console: Served) -> None:
    browser = console.signed_in_as(ALDER)
    mine = browser.open("/console/my-sites")
    assert mine.table("1 site") == [["alder", "… due", "never", "0", "the next run"]]
    labels = [cell.get("data-label") for cell in mine.root.iterfind(".//tbody/tr/*")]
    assert labels == ["Site", "State", "Last harvest", "Failing documents", "Next harvest"]
    page = mine.follow("alder")
    assert "has not been harvested yet" in page.text
    assert "every day" in page.text
    harvester.run("2026-11-20")
    [site] = browser.open("/console/my-sites").table("1 site")
    assert site[2:] == ["2026-11-20 ! with errors", "1", "2026-11-21"]
    page = browser.open("/console/my/alder")
    assert "2026-11-20 ! with errors" in page.text
    assert "1, the first since 2026-11-20" in page.text
    [row] = page.table("Open problems")
    assert row[0] == "a.2"
    assert row[1].startswith("✕ needs attention")
    assert "alder: 1 error" in page.text
    for path in ("/console/my/birch", "/console/my/nobody", "/console/my/birch/live", "/console/my/birch/leave"):
        assert browser.open(path).status == 404


def test_a_contact_changes_the_schedule_and_pauses(harvester: Harvester, console: Served) -> None:
    page = console.signed_in_as(ALDER).open("/console/my/alder")
    changed = page.submit("Save", {"every": "2", "unit": "weeks", "notify": "on-error"})
    assert changed.notice.startswith("Changed.")
    assert row(harvester, "updatefrequency, unit, notify") == (2, "weeks", "on-error")
    wrong = page.submit("Save", {"every": "99", "unit": "months"})
    assert "once in a year at least" in wrong.text
    assert "whole number" in page.submit("Save", {"every": "x"}).text
    paused = page.submit("Pause")
    assert "is paused" in paused.notice
    assert "none while the site is paused" in paused.text
    assert "harvested again" in paused.submit("Resume").notice
    actors = harvester.rows("SELECT DISTINCT actor FROM audit_entry WHERE subject = 'alder'")
    assert actors == [(ALDER,)]


def test_an_address_that_cannot_be_used_is_refused_beside_its_field(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    page = console.signed_in_as(ALDER).open("/console/my/alder")
    for url, sentence in {
        server.url("/other.xml"): "This address cannot be taken. Ask the steward.",
        server.url("/list.xml?verb=Identify"): "this is a question to an OAI-PMH repository (verb=Identify).",
        server.url("/\u200bnew.xml"): "The address contains the character U+200B (ZERO WIDTH SPACE). Delete it.",
    }.items():
        answer = page.submit("Change the address", {"url": url})
        assert answer.status == 422
        assert sentence in answer.root.get_element_by_id("field-url-note").text_content()
        assert "--" not in answer.text.partition("The latest report")[0]
        assert "metaharvest sites" not in answer.text
    answer = page.submit("Save", {"every": "100"})
    assert "a whole number from 1 to 99" in answer.root.get_element_by_id("field-every-note").text_content()
    assert row(harvester, "documentlisturl") == (server.url("/list.xml"),)


def test_the_state_is_a_sentence_also_if_the_registration_cannot_be_used(harvester: Harvester, console: Served) -> None:
    browser = console.signed_in_as(ALDER)
    assert "due: it is in the next run" in browser.open("/console/my/alder").text
    harvester.rows("UPDATE harvest_site_schedule SET updatefrequency = 1000 WHERE name = 'alder'")
    assert "its registration cannot be used, ask the steward" in browser.open("/console/my/alder").text


def test_the_state_of_an_overdue_site_says_since_when(harvester: Harvester, console: Served) -> None:
    harvester.run("2026-11-20")
    harvester.rows("UPDATE harvest_site_schedule SET datenextharvest = '2026-11-15' WHERE name = 'alder'")
    page = console.signed_in_as(ALDER).open("/console/my/alder")
    assert "overdue since 2026-11-15: no run has harvested it since then" in page.text


def test_a_site_with_another_name_leads_to_the_sites_of_the_visitor(console: Served) -> None:
    for browser, page, words, sentence in (
        (console.signed_in_as(ALDER), "/console/my/elm", "My sites", "or you are not one of its contacts"),
        (console.signed_in("steward"), "/console/sites/elm", "All sites", "It may have another name now"),
    ):
        answer = browser.open(page)
        assert (answer.status, sentence in answer.title) == (404, True)
        assert answer.follow(words).status == 200


def test_a_form_that_is_refused_leads_back_to_its_page(console: Served) -> None:
    browser = console.signed_in_as(ALDER)
    form = {"Referer": f"{console.url}/console/my/alder"}
    stale = browser.request("POST", "/console/my/alder/schedule", headers=form)
    assert stale.status == 403
    assert stale.follow("Open the page of the form").path == "/console/my/alder"
    # After an error the address is the form's own: a person opens it again.
    opened = browser.open("/console/my/alder/schedule")
    assert opened.status == 405
    assert opened.follow("Open the page of the form").path == "/console/my/alder"
    elsewhere = browser.request(
        "POST", "/console/my/alder/pause", headers={"Referer": "https://evil.example.org/console/x"}
    )
    assert "Open the page of the form" not in elsewhere.links()
    broken = browser.request("POST", "/console/my/alder/pause", headers={"Referer": "http://[x"})
    assert broken.status == 403


def test_a_form_of_everybody_leads_back_to_itself_without_signing_in(console: Served) -> None:
    form = {"Referer": f"{console.url}/console/register"}
    stale = console.visitor().request("POST", "/console/register", headers=form)
    assert stale.status == 403
    assert "Sign in" not in " ".join(each for each, to in stale.links().items() if "next=" in to)
    assert stale.follow("Open the page of the form").path == "/console/register"


def test_a_server_in_front_that_hides_its_host_leads_back_to_the_form(harvester: Harvester) -> None:
    with served_console(harvester, url="http://harvest.example.org") as console:
        form = {"Referer": "http://harvest.example.org/console/sites"}
        stale = console.signed_in("steward").request("POST", "/console/sites/several", headers=form)
        assert stale.status == 403
        assert stale.links()["Open the page of the form"] == "/console/sites"


def test_the_address_of_a_form_is_not_taken_for_a_site(console: Served) -> None:
    form = {"Referer": f"{console.url}/console/sites/several"}
    stale = console.signed_in("steward").request("POST", "/console/sites/several", headers=form)
    assert stale.follow("Open the page of the form").path == "/console/sites"


def test_a_session_that_ended_leads_to_the_page_of_the_form_after_the_next_sign_in(console: Served) -> None:
    stranger = console.visitor()
    token = stranger.open("/console/login").form("Send me a link").fields["csrf"]
    form = {"Referer": f"{console.url}/console/my/alder/schedule"}
    answer = stranger.request("POST", "/console/my/alder/schedule", headers=form, data={"csrf": token})
    assert answer.status == 403
    assert answer.follow("Sign in").path == "/console/login?next=%2Fconsole%2Fmy%2Falder"


def test_a_contact_asks_for_a_harvest(harvester: Harvester, console: Served) -> None:
    page = console.signed_in_as(ALDER).open("/console/my/alder").submit("Harvest tonight")
    assert page.notice == "A harvest of your site is requested. This page shows its progress."
    assert "It begins at the next run at the latest." in page.text
    assert harvester.rows("SELECT kind, asked_by FROM harvest_request") == [("harvest", ALDER)]


@pytest.mark.parametrize(("phase", "is_harvested"), [("waiting", False), ("fetching", True), ("ended", False)])
def test_a_contact_sees_the_harvest_that_is_under_way_and_else_the_request(
    harvester: Harvester, console: Served, phase: str, is_harvested: bool
) -> None:
    now = console.harvester.now()
    moments = {"started_at": now, "heartbeat_at": now, "harvest_date": now.date()}
    with writers(harvester.engine).begin() as session:
        session.add(HarvestRun(run_id=7, status="running", host="h", pid=1, **moments))
        numbers = {"listed": 12, "done": 7, "errors": 0}
        session.add(
            SiteProgress(
                site_schedule_id=1, run_id=7, site_name="alder", phase=phase, began_at=now, updated_at=now, **numbers
            )
        )
    page = console.signed_in_as(ALDER).open("/console/my/alder").submit("Harvest tonight")
    assert ("Your site is being harvested: 7 of 12 documents done." in page.text) is is_harvested
    assert ("A harvest of your site is requested." in page.text.replace(page.notice, "")) is not is_harvested


def test_a_contact_sees_one_date_of_the_next_harvest(harvester: Harvester, console: Served) -> None:
    page = console.signed_in_as(ALDER).open("/console/my/alder")
    assert "Next harvest– , at the next run" in page.text.replace("–,", "– ,")
    harvester.rows("UPDATE harvest_site_schedule SET datenextharvest = '2999-01-05' WHERE name = 'alder'")
    assert "Next harvest2999-01-05 (UTC) Last harvest" in page.browser.open("/console/my/alder").text


def test_a_new_address_is_confirmed_by_its_own_link(harvester: Harvester, console: Served) -> None:
    page = console.signed_in_as(ALDER).open("/console/my/alder")
    page = page.submit("Mail a link", {"address": "ben@example.org"})
    assert "the new email address: ben@example.org" in page.text
    [mail] = [text_of(each) for each in harvester.mails() if each["To"] == "ben@example.org"]
    found = re.search(r"http://\S+/console/my-site/address/\S+", mail)
    assert found
    link = console.visitor().open(found[0])
    assert row(harvester, "contact_email") == (ALDER,)
    assert "go to ben@example.org from now on" in link.submit("Confirm this address").text
    assert row(harvester, "contact_email") == ("ben@example.org",)
    assert "no longer valid" in console.visitor().open(found[0]).text
    assert page.browser.open("/console/my/alder").title == "Sign in"


def test_a_move_says_that_the_login_of_the_list_was_not_kept(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    with_login = server.url("/list.xml").replace("://", "://me:secret@")
    harvester.rows("UPDATE harvest_site_schedule SET documentlisturl = ? WHERE name = 'alder'", with_login)
    page = console.signed_in_as(ALDER).open("/console/my/alder")
    page = page.submit("Change the address", {"url": server.url("/new.xml")})
    assert "The user name and password in its former address were not kept" in page.notice
    assert "not kept" not in page.submit("Change the address", {"url": server.url("/newer.xml")}).notice


def test_a_move_to_another_server_waits_for_a_steward(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    page = console.signed_in_as(ALDER).open("/console/my/alder")
    assert "was changed" in page.submit("Change the address", {"url": server.url("/new.xml")}).notice
    again = console.signed_in_as(ALDER).open("/console/my/alder").submit("Change the address")
    assert "harvested from this address already" in again.root.get_element_by_id("field-url-note").text
    page = page.submit("Change the address", {"url": "https://elsewhere.example.org/list.xml"})
    assert "a steward decides" in page.notice
    tonight = console.signed_in("steward").open("/console/tonight")
    assert "1 site asks to be harvested from another address." in tonight.text
    assert row(harvester, "documentlisturl") == (server.url("/new.xml"),)
    request = console.signed_in("steward").open("/console/registrations/1")
    assert f"harvested from https://elsewhere.example.org/list.xml, and no longer from {server.url('/new.xml')}" in (
        request.text
    )
    request.submit("Accept")
    assert row(harvester, "documentlisturl") == ("https://elsewhere.example.org/list.xml",)


def test_a_contact_leaves_after_a_question(harvester: Harvester, console: Served) -> None:
    page = console.signed_in_as(ALDER).open("/console/my/alder/leave")
    assert "documents stay" in page.text
    page = page.submit("Leave")
    assert "A steward removes it." in page.notice
    assert row(harvester, "enabled") in [(0,), (False,)]
    assert "1 site asks to leave." in console.signed_in("steward").open("/console/tonight").text
    console.signed_in("steward").open("/console/registrations").follow("1 alder").submit("Accept")
    assert harvester.rows("SELECT name FROM harvest_site_schedule") == [("birch",)]


def test_the_link_of_a_report_only_shows(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    with harvester.config.open("a") as file:
        file.write(WEB)
    harvester.run(str(datetime.now(UTC).date()))
    [mail] = [text_of(each) for each in harvester.mails() if each["To"] == ALDER]
    found = re.search(r"http://127.0.0.1:1(/console/site/\S+)", mail)
    assert found
    with served_console(harvester, token_key="0123456789abcdef") as console:
        page = console.visitor().open(found[1])
        assert page.title == "alder"
        assert "The latest report" in page.text
        assert page.root.forms == []
        assert page.links()["ask for a link by mail"] == "/console/login?next=%2Fconsole%2Fmy%2Falder"
        assert "no longer valid" in console.visitor().open(found[1] + "0").text


def test_a_steward_sees_the_page_and_changes_nothing_in_the_name_of_a_contact(console: Served) -> None:
    steward = console.signed_in("steward")
    page = steward.open("/console/my/alder")
    assert "You are not a contact of this site" in page.text
    csrf = dict(page.form("Sign out").form_values())["csrf"]
    for action in ("pause", "harvest", "leave"):
        answer = steward.request("POST", f"/console/my/alder/{action}", data={"csrf": csrf})
        assert "not among the contacts" in answer.text


def test_problems_are_named_by_the_title_of_the_document(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    harvester.run("2026-11-20")
    content = eml("a.1.2", title="Frogs of Alder Creek").replace(b"contact>", b"contat>")
    server.serve("/list.xml", harvest_list([("a.1.2", server.serve("/a.1.2.xml", content))]))
    harvester.run("2026-11-21")
    rows = console.signed_in_as(ALDER).open("/console/my/alder").table("Open problems")
    assert {row[0] for row in rows} == {"Frogs of Alder Creeka.1"}
    assert "contat" in rows[0][1]
