"""A stranger registers a site, a steward decides: by the pages alone, without JavaScript."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

from support.console import Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, harvest_list, publish
from support.http_server import HttpServer
from support.mails import text_of
from support.oai_server import OaiServer

pytestmark = on_one_database

ANNA = "anna@station.example.org"


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as made:
        yield made


def registered(console: Served, url: str, **values: str) -> Page:
    given = {"url": url, "name": "Alder <b>Creek</b>", "address": ANNA, **values}
    return console.visitor().open("/console/register").submit("Check and register", given)


def links_in(harvester: Harvester, address: str, words: str = "") -> set[str]:
    """The links to the console in the mails to this address."""
    mails = [text_of(each) for each in harvester.mails() if each["To"] == address and words in each["Subject"]]
    return {link for mail in mails for link in re.findall(r"http://\S+/console/\S+", mail)}


def link_in(harvester: Harvester, address: str, words: str = "") -> str:
    """The one link to the console in the mails to this address."""
    [link] = links_in(harvester, address, words)
    return link


def decisions(harvester: Harvester) -> list[tuple[object, ...]]:
    return harvester.rows("SELECT actor, action, subject FROM audit_entry WHERE action LIKE 'registrations.%'")


def test_a_stranger_registers_a_list_and_a_steward_accepts(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    page = registered(console, url)
    assert page.title == "Alder <b>Creek</b>: check your mail"
    assert "a.2.1" in page.root.find_class("findings")[0].text_content()
    assert page.text.count("1 would be added") == 1
    proof = page.root.find_class("secret")[0].text_content()

    state = console.visitor().open(link_in(harvester, ANNA))
    assert harvester.rows("SELECT address_proved_at FROM site_registration") == [(None,)]
    state = state.submit("Confirm this address")
    assert state.notice == "Your address is confirmed."
    assert "every day" in state.text
    assert "no comment with this token yet" in state.submit("Look for the line in the list").text
    content = harvest_list([("a.1.1", server.url("/a.1.1.xml"))])
    server.serve("/list.xml", content.replace(b"<document>", proof.encode() + b"<document>", 1))
    assert "You have done everything." in state.submit("Look for the line in the list").text

    steward = console.signed_in("steward")
    page = steward.open("/console/registrations")
    assert page.table()[0][1:4] == ["Alder <b>Creek</b>", "new site", "! waiting for decision"]
    page = page.follow("1 Alder <b>Creek</b>")
    rehearsed = page.submit("Rehearse it now")
    assert "1 document: 1 would be added" in rehearsed.text, rehearsed.text
    page = page.submit("Accept")
    assert page.notice == "The request for Alder <b>Creek</b> is accepted."
    assert harvester.rows("SELECT name, documentlisturl FROM harvest_site_schedule") == [("Alder <b>Creek</b>", url)]
    assert decisions(harvester) == [("steward@example.org", "registrations.accept", "Alder <b>Creek</b>")]
    assert page.follow("The page of the site").title.startswith("Alder <b>Creek</b>")
    site = console.signed_in_as(ANNA).open(link_in(harvester, ANNA, "is registered"))
    assert site.title == "Alder <b>Creek</b>"
    assert "No request waits." in steward.open("/console/registrations").text


def test_a_repository_is_proved_by_its_own_address_and_refused(harvester: Harvester, console: Served) -> None:
    with OaiServer(records=3) as repository:
        page = registered(console, repository.base_url, kind="oai-pmh", name="Frogs", address=ANNA)
    assert "3 documents: 3 would be added" in page.text
    console.visitor().open(link_in(harvester, ANNA)).submit("Confirm this address")
    [keeper] = [each["To"] for each in harvester.mails() if each["To"] != ANNA]
    question = console.visitor().open(link_in(harvester, keeper)).submit("I agree")
    assert "You have agreed." in question.text
    page = console.signed_in("steward").open("/console/registrations/1")
    assert "by a mail to an address of the source" in page.text
    assert "Give the reason" in page.submit("Refuse").text
    page = page.submit("Refuse", {"reason": "No <script>frogs</script>."})
    assert page.notice == "The request for Frogs is refused."
    assert "No <script>frogs</script>." in console.visitor().open(link_in(harvester, ANNA, "Confirm")).text
    assert decisions(harvester) == [("steward@example.org", "registrations.refuse", "Frogs")]


def test_a_mistake_keeps_the_form(harvester: Harvester, console: Served, server: HttpServer) -> None:
    page = registered(console, "https://a.example.org/l.xml", address="nobody", every="2", unit="weeks")
    assert page.status == 422
    assert "not an email address" in page.root.get_element_by_id("field-address-note").text
    for field, value in {"name": "-", "url": "ftp://x", "every": "0"}.items():
        wrong = registered(console, **{"url": "https://a.example.org/l.xml", field: value})
        assert wrong.root.get_element_by_id(f"field-{field}").get("aria-invalid") == "true", field
    values = dict(page.form("Check and register").form_values())
    assert (values["name"], values["every"], values["unit"]) == ("Alder <b>Creek</b>", "2", "weeks")
    page = registered(console, server.serve("/list.xml", b"<harvestList><document>"))
    assert page.root.find_class("finding")
    assert dict(page.form("Check and register").form_values())["address"] == ANNA
    assert harvester.mails() == []


def test_a_source_that_is_harvested_already_is_said_without_commands(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    url = publish(server, "a.1.1")
    harvester.add_site("elm", url)
    page = registered(console, url)
    assert page.status == 422
    assert "The site 'elm' harvests this source already. If you are one of its contacts" in page.text
    assert "metaharvest sites" not in page.text


def test_a_client_registers_a_few_times_in_a_quarter_of_an_hour(console: Served) -> None:
    answers = [registered(console, "file:///x").status for _ in range(7)]
    assert answers == [422] * 6 + [429]


def test_a_mail_that_was_not_sent_is_shown_and_sent_again(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    (harvester.folder / "mail").write_text("a file in the way of the folder")
    page = registered(console, publish(server, "a.1.1"))
    assert "could not be sent" in page.text
    page_of_steward = console.signed_in("steward").open("/console/registrations")
    assert "mail not sent" in page_of_steward.text
    (harvester.folder / "mail").unlink()
    again = page.submit("Send the mail again")
    assert f"The link was mailed to {ANNA} again." in again.text
    former = link_in(harvester, ANNA)
    answer = page_of_steward.browser.open("/console/registrations/1").submit(f"Send the mail again to {ANNA}")
    assert answer.notice == f"The mail to {ANNA} was sent again."
    assert console.visitor().open(former).status == 422
    [newer] = links_in(harvester, ANNA) - {former}
    assert console.visitor().open(newer).status == 200
    assert "was mailed 3 times" in page.submit("Send the mail again").text


def test_a_request_without_proofs_needs_a_tick(harvester: Harvester, console: Served, server: HttpServer) -> None:
    registered(console, publish(server, "a.1.1"))
    page = console.signed_in("steward").open("/console/registrations/1")
    refused = page.submit("Accept")
    assert (refused.status, "Tick the box" in refused.text) == (422, True)
    assert "is accepted" in page.submit("Accept", {"without": "yes"}).notice
    assert "there is nothing to decide" in page.submit("Accept", {"without": "yes"}).text


def test_a_mail_that_fails_is_said(harvester: Harvester, console: Served, server: HttpServer) -> None:
    registered(console, publish(server, "a.1.1"))
    page = console.signed_in("steward").open("/console/registrations/1")
    assert "is accepted" in page.submit("Accept", {"without": "yes"}).notice
    shutil.rmtree(harvester.folder / "mail")
    (harvester.folder / "mail").write_text("a file in the way of the folder")
    failed = page.browser.open("/console/registrations/1").submit(f"Send the mail again to {ANNA}")
    assert failed.notice == f"The mail to {ANNA} could not be sent. Try again in an hour."


def test_unknown_links_and_numbers(console: Served) -> None:
    visitor, steward = console.visitor(), console.signed_in("steward")
    assert "no longer valid" in visitor.open("/console/register/address/x").text
    assert "no longer valid" in visitor.open("/console/register/source/x").text
    for number in ("7", "x", "0", "9" * 30):
        assert steward.open(f"/console/registrations/{number}").status == 404
    assert console.signed_in("viewer").open("/console/registrations").status == 403
