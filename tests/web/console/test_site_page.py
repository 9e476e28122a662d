"""The pages of one site: at a glance, its problems, runs, year, mails, history; its actions, its form, rehearsals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from metaharvest.database.engine import writers
from metaharvest.database.models import HarvestRun, SiteProgress
from metaharvest.model.actions import Remedy, todo
from support.console import Browser, Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.waiting import wait_until

pytestmark = on_one_database

ALDER = "/console/sites/alder"
TITLE = "<script>alert(1)</script>"


@pytest.fixture
def console(harvester: Harvester, server: HttpServer) -> Iterator[Served]:
    harvester.add_site("alder", publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))]))
    harvester.add_site("birch", server.url("/none.xml"))
    with served_console(harvester) as made:
        yield made


@pytest.fixture
def harvested(console: Served, harvester: Harvester) -> Served:
    today = console.harvester.today()
    harvester.run(str(today), "--site", "alder", "--site", "birch")
    harvester.run(str(today), "--site", "alder")
    return console


def test_a_new_site_says_that_nothing_is_known_yet(console: Served) -> None:
    steward = console.signed_in("steward")
    page = steward.open(ALDER)
    assert "No run has harvested it yet" in page.text
    for name in ("problems", "runs", "year", "mails", "missing", "history"):
        found = steward.open(f"{ALDER}/{name}")
        assert (found.status, len(found.root.find_class("empty"))) == (200, 1), name
    assert steward.open("/console/sites/elm").status == 404


def test_a_harvested_site_shows_its_problems_runs_year_and_mails(harvested: Served) -> None:
    steward = harvested.signed_in("steward")
    page = steward.open(ALDER)
    [problem] = page.table("The worst problems")
    assert problem[0] == "a.2"
    assert problem[1].startswith("✕ needs attention")
    assert [row[:1] + row[2:4] for row in page.table("The last harvests, the newest first")] == [
        ["2", "! with errors", "2"],
        ["1", "! with errors", "2"],
    ]
    failing = steward.open("/console/sites").follow("1 failing at alder")
    assert [row[0] for row in failing.table("Documents")] == ["a.2.1"]
    assert len(page.follow("All documents").table("Documents")) == 2
    assert "alder" in page.follow("Log").text
    assert len(page.follow("Problems").table()) == 1
    [week] = page.follow("Year").table()
    assert week[2:7] == ["2", "0", "2", "1", "1"]
    mails = page.follow("Mails")
    mail = mails.follow(mails.table()[-1][0])
    assert "alder@example.org" in mail.text
    assert "could not be fetched" in mail.text
    assert "list not read since" in steward.open("/console/sites/birch").text


def test_two_runs_of_the_site_are_compared(harvested: Served, server: HttpServer, harvester: Harvester) -> None:
    publish(server, "a.1.1", "a.2.1")
    harvester.run(str(harvested.harvester.today()), "--site", "alder")
    page = harvested.signed_in("viewer").open(f"{ALDER}/runs")
    found = page.submit("Compare the two chosen runs", {"run": ["1", "3"]})
    assert found.title == "alder: from run 1 to run 3"
    assert found.table("Changed documents")[0][:2] == ["a.2.1", "✓ fixed"]
    assert "Choose two runs" in page.submit("Compare the two chosen runs", {"run": "1"}).text


def test_a_mail_is_sent_again_and_only_those_of_the_site_are_shown(harvested: Served) -> None:
    steward = harvested.signed_in("steward")
    mails = steward.open(f"{ALDER}/mails")
    page = mails.follow(mails.table()[0][0])
    page = page.submit("Send again", {"to": "anna@example.org"})
    assert page.notice == "The report waits for its delivery to anna@example.org."
    assert "waiting" in {row[1].split()[-1] for row in page.table("Deliveries")}
    assert page.submit("Send again", {"to": "nobody"}).status == 422
    number = page.path.rsplit("/", 1)[1]
    assert steward.open(f"/console/sites/birch/mails/{number}").status == 404
    assert steward.open(f"{ALDER}/mails/99999").status == 404
    assert steward.open(f"{ALDER}/mails/x").status == 404


def test_a_harvest_is_asked_for_taken_back_and_left_out(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open(ALDER)
    page = page.submit("Harvest everything again")
    assert page.notice.startswith("The harvest is asked for.")
    assert page.table("Requests that wait")[0][:2] == ["Harvest (everything again)", "steward@example.org"]
    assert page.submit("Harvest everything again").notice.startswith("This harvest was asked for already.")
    page = page.submit("Take back request 1")
    assert page.notice == "The request is taken back."
    page = page.submit("Leave out of the next run")
    assert "but left out at the next run" in page.text
    page = page.submit("Harvest in the next run")
    assert "left out at" not in page.text
    rows = harvester.rows("SELECT kind, state, asked_by FROM harvest_request ORDER BY request_id")
    by = "steward@example.org"
    assert rows == [("harvest", "cancelled", by), ("skip", "cancelled", by)]


def test_a_request_of_another_site_is_not_taken_back(console: Served) -> None:
    steward = console.signed_in("steward")
    steward.open("/console/sites/birch").submit("Harvest now")
    page = steward.open(ALDER).submit("Harvest now")
    form = page.form("Take back request 2")
    token = dict(form.form_values())["csrf"]
    sent = steward.request("POST", f"{console.url}{ALDER}/cancel", data={"csrf": token, "request": "1"})
    assert sent.notice == "This request no longer waits."
    assert steward.open("/console/sites/birch").table("Requests that wait")


def test_a_site_is_paused_harvested_again_and_removed(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open(ALDER)
    page = page.submit("Pause")
    assert page.notice == "alder is paused: nothing of it is harvested."
    assert "the site is paused" in page.text
    page = page.submit("Resume")
    page = page.follow("History")
    assert [row[2] for row in page.table()] == ["switch on the site alder", "switch off the site alder"]
    page = page.browser.open(ALDER).follow("Remove")
    assert page.title == "Remove alder from the schedule?"
    page = page.submit("Remove alder")
    assert page.notice.startswith("Removed alder from the schedule.")
    assert harvester.rows("SELECT name FROM harvest_site_schedule") == [("birch",)]
    assert page.browser.open(ALDER).status == 404


def test_a_change_that_cannot_be_written_is_no_mistake_of_the_person(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open(f"{ALDER}/edit").submit("Show the changes", {"every": "3"})
    harvester.rows("ALTER TABLE audit_entry RENAME TO lost")
    refused = page.submit("Change alder")
    assert (refused.status, refused.headers["Retry-After"]) == (503, "60")
    assert "The database cannot be used at this moment. Please try again." in refused.text
    harvester.rows("ALTER TABLE lost RENAME TO audit_entry")
    assert page.submit("Change alder").notice == "alder was changed."


def test_two_stewards_do_not_take_back_each_others_changes(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open(f"{ALDER}/edit")
    other = "UPDATE harvest_site_schedule SET contact_email = 'new@example.org', datenextharvest = '2999-01-05'"
    harvester.rows(f"{other} WHERE name = 'alder'")
    preview = page.submit("Show the changes", {"every": "2", "notify": "never"})
    assert [row[0] for row in preview.table()] == ["every", "notify"]
    harvester.rows("UPDATE harvest_site_schedule SET notify = 'on-error' WHERE name = 'alder'")
    refused = preview.submit("Change alder")
    assert refused.status == 422
    [beside] = refused.root.find_class("error")
    assert "another person has changed it since you opened the form. It is now 'on-error'." in beside.text_content()
    changed = refused.submit("Show the changes").submit("Change alder")
    assert changed.notice == "alder was changed."
    columns = "contact_email, updatefrequency, notify"
    found = harvester.rows(f"SELECT {columns} FROM harvest_site_schedule WHERE name = 'alder'")
    assert found == [("new@example.org", 2, "never")]


def test_the_form_of_a_site_shows_both_values_before_it_changes_them(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open(f"{ALDER}/edit")
    values = {"contacts": "anna@example.org, ben@example.org", "every": "2", "groups": "north", "public": "no"}
    page = page.submit("Show the changes", {**values, "name": "alder 2", "max_loss": "5"})
    assert page.title == "Change alder?"
    assert page.table() == [
        ["name", "alder", "alder 2"],
        ["contacts", "alder@example.org", "anna@example.org, ben@example.org"],
        ["every", "1", "2"],
        ["public", "yes", "no"],
        ["max loss", "none", "5"],
        ["groups", "none", "north"],
    ]
    assert harvester.rows("SELECT name FROM harvest_site_schedule ORDER BY name") == [("alder",), ("birch",)]
    page = page.submit("Change alder")
    assert (page.path, page.notice) == ("/console/sites/alder%202", "alder 2 was changed.")
    assert harvester.rows("SELECT updatefrequency FROM harvest_site_schedule WHERE name = 'alder 2'") == [(2,)]
    page = page.follow("History")
    assert "steward@example.org" in page.table()[0][1]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"contacts": ""}, "Contacts: give at least one address"),
        ({"contacts": "nobody"}, "'nobody' is not an email address"),
        ({"every": "0", "next_harvest": "2001-01-01"}, "Next harvest: 2001-01-01 is past"),
        ({"name": "birch"}, "There is a site named 'birch' already"),
        ({"list_url": "ftp://x"}, "ftp"),
        ({"groups": "a b"}, "Groups: 'a b' is no name of a group"),
        ({"allow_networks": "all"}, "Private networks"),
        ({"ldap_password": "secret"}, "reference"),
        ({}, "Nothing was changed"),
    ],
)
def test_a_wrong_value_is_said_and_the_form_keeps_it(console: Served, values: dict[str, str], said: str) -> None:
    page = console.signed_in("steward").open(f"{ALDER}/edit").submit("Show the changes", values)
    assert said in page.text
    assert "`" not in page.text
    beside = page.root.find_class("error")
    assert len(beside) == len(values)
    kept = dict(page.form("Show the changes").form_values())
    assert {name: kept[name] for name in values} == values


def test_a_rehearsal_has_its_report_on_the_page_and_writes_nothing(console: Served, harvester: Harvester) -> None:
    page = console.signed_in("steward").open(ALDER).submit("Rehearse now")
    address = page.path
    page = ended(page.browser, address)
    assert "a.2" in page.table()[0][0]
    assert "1 would be added" in page.text
    assert page.browser.open(f"{address}/live").headers["HX-Refresh"] == "true"
    assert page.browser.open(address.replace("alder", "birch")).status == 404
    assert "The last rehearsal" in page.browser.open(ALDER).text
    assert harvester.rows("SELECT count(*) FROM harvest_run") == [(0,)]


def ended(browser: Browser, address: str) -> Page:
    wait_until(lambda: "Show the present state" not in browser.open(address).text)
    return browser.open(address)


def test_a_contact_reads_the_own_site_and_rehearses_it(harvested: Served, harvester: Harvester) -> None:
    contact = harvested.signed_in_as("alder@example.org")
    page = contact.open(ALDER)
    assert page.table("The last harvests, the newest first")
    for word in ("Pause", "Harvest now", "History", "Edit"):
        assert word not in [each.text_content().strip() for each in page.root.iter("a", "button")]
    for name in ("problems", "runs", "year", "mails", "missing"):
        assert contact.open(f"{ALDER}/{name}").status == 200, name
    assert [contact.open(f"{ALDER}/{name}").status for name in ("history", "edit", "remove")] == [403] * 3
    assert contact.open("/console/sites/birch").status == 404
    assert contact.open("/console/sites").status == 403
    remedy = str(Remedy("Ask the steward ({}).", todo("sites.confirm", name="alder")))
    harvester.rows("UPDATE harvest_detail_log SET remedy = ?", remedy)
    assert "Ask the steward." in contact.open("/console/sites/alder").text
    assert "(metaharvest sites confirm alder)" in harvested.signed_in("viewer").open("/console/sites/alder").text


def test_texts_from_outside_are_shown_as_text(console: Served, harvester: Harvester, server: HttpServer) -> None:
    server.serve("/evil.xml", f"<b>{TITLE}</b>".encode())
    harvester.add_site(TITLE, server.url("/evil.xml"), contact_email="a@example.org")
    harvester.run(str(console.harvester.today()), "--site", TITLE)
    steward = console.signed_in("steward")
    page = steward.open("/console/sites")
    assert b"<script>alert" not in page.content
    page = page.follow(TITLE)
    assert page.title.startswith(TITLE)
    for name in ("Problems", "Runs", "Year", "Mails", "History"):
        assert b"<script>alert" not in page.follow(name).content


def test_a_site_that_is_harvested_now_says_so(console: Served, harvester: Harvester) -> None:
    now = console.harvester.now()
    with writers(harvester.engine).begin() as session:
        session.add(
            HarvestRun(
                run_id=7, harvest_date=now.date(), started_at=now, status="running", host="h", pid=1, heartbeat_at=now
            )
        )
        session.add(
            SiteProgress(
                site_schedule_id=1,
                run_id=7,
                site_name="alder",
                phase="fetching",
                listed=1200,
                done=7,
                errors=1,
                began_at=now,
                updated_at=now,
            )
        )
    page = console.signed_in("steward").open(ALDER)
    assert "It is harvested now, in run 7: fetching, 7 of 1,200 documents done, 1 with errors." in page.text
    asked = page.submit("Harvest now")
    assert "It waits for the run after run 7" in asked.notice


def test_a_list_of_another_site_is_refused_beside_the_field_in_the_words_of_the_form(
    console: Served, harvester: Harvester, server: HttpServer
) -> None:
    page = console.signed_in("steward").open(f"{ALDER}/edit")
    page = page.submit("Show the changes", {"list_url": f"{server.url('/list.xml')}?verb=Identify"})
    [beside] = page.root.find_class("error")
    assert "this is a question to an OAI-PMH repository (verb=Identify)" in beside.text_content()
    assert "another site has this source" not in page.text
    page = page.submit("Show the changes", {"list_url": server.url("/none.xml")})
    [beside] = page.root.find_class("error")
    assert beside.text_content() == "The site 'birch' harvests this list already."
    assert "--" not in page.text
    page = page.submit("Show the changes", {"allow_duplicate": "yes"})
    assert page.submit("Change alder").notice == "alder was changed."
    rows = harvester.rows("SELECT DISTINCT documentlisturl FROM harvest_site_schedule")
    assert rows == [(server.url("/none.xml"),)]


def test_a_sentence_beside_a_field_has_no_column_and_no_command(console: Served) -> None:
    page = console.signed_in("steward").open(f"{ALDER}/edit")
    [beside] = page.submit("Show the changes", {"ldap_password": "secret"}).root.find_class("error")
    assert beside.text_content().startswith("It (not shown) cannot be used, since a secret is never written here")
    assert "metaharvest" not in beside.text_content()
    [beside] = page.submit("Show the changes", {"ldap_name": "x" * 300}).root.find_class("error")
    assert beside.text_content().endswith("it must be at most 255 printable characters.")


def test_a_file_that_is_not_there_is_named_beside_its_field(console: Served) -> None:
    for name in ("filters", "normalize", "ca_file"):
        page = console.signed_in("steward").open(f"{ALDER}/edit").submit("Show the changes", {name: "/nowhere"})
        [field] = page.root.iterfind(".//input[@aria-invalid]")
        assert field.get("name") == name


def test_a_contact_does_not_see_the_options_of_a_broken_row(console: Served, harvester: Harvester) -> None:
    harvester.rows(
        'UPDATE harvest_site_schedule SET options = \'{"ca_file": "/etc/a.pem", "x": 1}\' WHERE name = \'alder\''
    )
    assert "/etc/a.pem" not in console.signed_in_as("alder@example.org").open(ALDER).text
    page = console.signed_in("steward").open(ALDER)
    assert page.text.count("/etc/a.pem") == 1


def test_a_broken_row_is_shown_and_repaired(console: Served, harvester: Harvester) -> None:
    with harvester.engine.begin() as connection:
        connection.execute(
            text("UPDATE harvest_site_schedule SET updatefrequency = NULL, options = '{' WHERE name = 'alder'")
        )
    steward = console.signed_in("steward")
    page = steward.open(ALDER)
    assert "updatefrequency is empty" in page.text
    assert "updatefrequency is empty" in page.follow("Correct it").text
    page = page.follow("Edit").submit("Show the changes", {"every": "3", "groups": "north"})
    assert page.status == 200, page.text
    page = page.submit("Change alder")
    assert page.notice == "alder was changed."
    assert "alder … due" in steward.open(ALDER).text


def test_the_address_of_a_broken_repository_is_corrected(console: Served, harvester: Harvester) -> None:
    options = '{"oai": {"origin": "frogs"}}'
    harvester.add_site("frogs", "https://frogs.example.org/oai", source_kind="oai-pmh", options=options)
    harvester.rows("UPDATE harvest_site_schedule SET documentlisturl = 'frogs' WHERE name = 'frogs'")
    page = console.signed_in("steward").open("/console/sites/frogs/edit")
    page = page.submit("Show the changes", {"list_url": "https://new.example.org/oai"})
    assert page.submit("Change frogs").notice == "frogs was changed."
    sql = "SELECT documentlisturl, options FROM harvest_site_schedule WHERE name = 'frogs'"
    [(url, kept)] = harvester.rows(sql)
    assert (url, "frogs" in kept) == ("https://new.example.org/oai", True)
