"""A contact changes their own site within bounds; a report's link only reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from metaharvest.errors import RequestError
from metaharvest.model import Notify, Site, Unit
from metaharvest.services import my_site, registrations, schedule_files, sites
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.services.my_site import Schedule
from metaharvest.services.registrations import State
from metaharvest.services.sites import SiteValues
from metaharvest.sites import page_link
from metaharvest.sites.registry import read_sites
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.mails import text_of

pytestmark = on_one_database
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ANNA, BEN = "alder@example.org", "ben@example.org"
URL = "https://alder.example.org/list.xml"
WEB = '[web]\nurl = "https://harvest.example.org"\ntoken_key = "a key of the tests"\n'


@pytest.fixture
def opened(harvester: Harvester) -> Iterator[Opened]:
    with harvester.config.open("a") as file:
        file.write(WEB)
    harvester.add_site("alder", URL)
    with harvester.opened(clock=lambda: NOON) as made:
        yield made


def test_a_schedule_is_changed_within_bounds_by_contacts_alone(opened: Opened) -> None:
    edited = my_site.change_schedule(opened, "alder", ANNA.upper(), Schedule(2, Unit.WEEKS, Notify.ON_ERROR))
    assert (edited.site.frequency, edited.site.unit, edited.site.notify) == (2, Unit.WEEKS, Notify.ON_ERROR)
    with pytest.raises(RequestError, match="once in a year at least"):
        my_site.change_schedule(opened, "alder", ANNA, Schedule(13, Unit.MONTHS, Notify.ALWAYS))
    with pytest.raises(RequestError, match="not among the contacts"):
        my_site.change_schedule(opened, "alder", BEN, Schedule(1, Unit.DAYS, Notify.ALWAYS))


def test_a_contact_ends_only_a_pause_of_a_contact(opened: Opened) -> None:
    my_site.pause(opened, "alder", ANNA)
    assert not sites.find(opened, "alder").enabled
    my_site.resume(opened, "alder", ANNA)
    assert sites.find(opened, "alder").enabled
    sites.switch(opened, "alder", enabled=False)
    with pytest.raises(RequestError, match="A steward has switched the site off"):
        my_site.resume(opened, "alder", ANNA)


def test_a_steward_who_switches_a_paused_site_ends_the_pause(opened: Opened) -> None:
    my_site.pause(opened, "alder", ANNA)
    sites.switch(opened, "alder", enabled=True)
    sites.switch(opened, "alder", enabled=False)
    with pytest.raises(RequestError, match="A steward has switched the site off"):
        my_site.resume(opened, "alder", ANNA)


def test_a_file_that_switches_a_paused_site_ends_the_pause(opened: Opened) -> None:
    my_site.pause(opened, "alder", ANNA)
    for enabled in ("true", "false"):
        schedule_files.import_file(opened, f"name,enabled\nalder,{enabled}\n".encode())
    with pytest.raises(RequestError, match="A steward has switched the site off"):
        my_site.resume(opened, "alder", ANNA)


def test_a_contact_who_resumes_does_not_leave(opened: Opened) -> None:
    asked = my_site.leave(opened, "alder", ANNA)
    my_site.resume(opened, "alder", ANNA)
    assert my_site.waiting(opened, "alder") == []
    with pytest.raises(RequestError, match="nothing to decide"):
        registrations.accept(opened, asked.registration_id)
    assert sites.find(opened, "alder").enabled


def test_only_its_link_decides_about_a_new_address(harvester: Harvester, opened: Opened) -> None:
    my_site.ask_for_address(opened, "alder", ANNA, BEN)
    [asked] = my_site.waiting(opened, "alder")
    found = re.search(r"/console/my-site/address/(\S+)", text_of(harvester.mails()[0]))
    assert found is not None
    with pytest.raises(RequestError, match="its link confirms it"):
        registrations.accept(opened, asked.registration_id, without_proofs=True)
    with pytest.raises(RequestError, match="its link confirms it"):
        registrations.refuse(opened, asked.registration_id, "No.")
    with pytest.raises(RequestError, match="no longer valid"):
        registrations.prove_address(opened, found[1])
    my_site.prove_address(opened, found[1])
    assert sites.find(opened, "alder").contacts == (BEN,)


def test_an_address_is_confirmed_at_the_new_one_and_announced_at_the_old_one(
    harvester: Harvester, opened: Opened
) -> None:
    my_site.ask_for_address(opened, "alder", ANNA, BEN)
    [mail] = harvester.mails()
    assert mail["To"] == BEN
    assert sites.find(opened, "alder").contacts == (ANNA,)
    found = re.search(r"/console/my-site/address/(\S+)", text_of(mail))
    assert found is not None
    my_site.prove_address(opened, found[1])
    assert sites.find(opened, "alder").contacts == (BEN,)
    [announced] = [each for each in harvester.mails() if each["To"] == ANNA]
    assert BEN in text_of(announced)
    with pytest.raises(RequestError, match="no longer valid"):
        my_site.prove_address(opened, found[1])


def test_addresses_are_not_changed_all_day(harvester: Harvester, opened: Opened) -> None:
    for number in range(3):
        my_site.ask_for_address(opened, "alder", ANNA, f"b{number}@example.org")
    with pytest.raises(RequestError, match="too often today"):
        my_site.ask_for_address(opened, "alder", ANNA, "b3@example.org")
    assert len(harvester.mails()) == 3


def test_a_list_moves_on_its_host_and_a_steward_decides_about_another_host(opened: Opened) -> None:
    assert my_site.move(opened, "alder", ANNA, "https://alder.example.org/new.xml") is None
    assert sites.find(opened, "alder").list_url == "https://alder.example.org/new.xml"
    for other in ("https://other.example.org/list.xml", "https://alder.example.org:8443/list.xml"):
        asked = my_site.move(opened, "alder", ANNA, other)
        assert asked is not None
        assert asked.state is State.WAITING_FOR_DECISION
        with pytest.raises(RequestError, match="already waits for the steward"):
            my_site.move(opened, "alder", ANNA, other)
        assert [each.url for each in my_site.waiting(opened, "alder")] == [other]
        registrations.accept(opened, asked.registration_id)
        assert sites.find(opened, "alder").list_url == other


def test_the_shown_address_of_a_list_with_a_login_is_no_move(opened: Opened) -> None:
    with_login = "https://me:secret@alder.example.org/list.xml"
    sites.edit(opened, ["alder"], SiteValues(list_url=with_login))
    with pytest.raises(RequestError, match="harvested from this address already"):
        my_site.move(opened, "alder", ANNA, URL)
    assert sites.find(opened, "alder").list_url == with_login


def test_a_steward_sees_that_a_move_loses_the_login_of_the_list(opened: Opened) -> None:
    sites.edit(opened, ["alder"], SiteValues(list_url="https://me:secret@alder.example.org/list.xml"))
    asked = my_site.move(opened, "alder", ANNA, "https://other.example.org/list.xml")
    assert asked is not None
    moved, lost = registrations.effect(opened, asked)
    assert f"no longer from {URL}" in moved
    assert "The user name and password in its former URL are not kept" in lost


def test_a_site_that_leaves_is_switched_off_and_removed_by_a_steward(opened: Opened) -> None:
    asked = my_site.leave(opened, "alder", ANNA)
    assert not sites.find(opened, "alder").enabled
    registrations.accept(opened, asked.registration_id)
    with opened.reading() as session:
        assert read_sites(session) == []


def test_a_report_has_a_link_that_reads_the_site(harvester: Harvester, server: HttpServer) -> None:
    with harvester.config.open("a") as file:
        file.write(WEB)
    harvester.add_site("birch", publish(server, "a.1.1"))
    harvester.run("2026-11-20", "--site", "birch")
    [report] = [each for each in harvester.mails() if each["To"] == "birch@example.org"]
    found = re.search(r"https://harvest\.example\.org/console/site/(\S+)", text_of(report))
    assert found is not None
    with harvester.opened(clock=lambda: NOON) as opened:
        assert my_site.of_report_link(opened, found[1]).name == "birch"
        number, day, signature = found[1].split(".")
        for forged in ("", "x", f"{number}.{int(day) + 1}.{signature}", f"{int(number) + 1}.{day}.{signature}"):
            with pytest.raises(RequestError, match="no longer valid"):
                my_site.of_report_link(opened, forged)
        sites.edit(opened, ["birch"], sites.SiteValues(contacts=(BEN,)))
        with pytest.raises(RequestError, match="no longer valid"):
            my_site.of_report_link(opened, found[1])


def test_the_log_says_why_reports_have_no_link(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    web = opened.settings.web.model_copy(update={"token_key": "env:NO_TOKEN_KEY"})
    site = sites.find(opened, "alder")
    assert isinstance(site, Site)
    assert page_link.page_address(opened.settings.model_copy(update={"web": web}), site, opened.today()) == ""
    assert "Reports have no link to the page of their site" in caplog.text
    assert "NO_TOKEN_KEY" in caplog.text


def test_a_link_ends_after_its_time(opened: Opened) -> None:
    site = sites.find(opened, "alder")
    assert isinstance(site, Site)
    address = page_link.page_address(opened.settings, site, date(2026, 11, 20))
    token = address.rpartition("/")[2]
    last = date(2026, 11, 20) + page_link.LIFETIME
    assert page_link.is_valid(opened.settings, token, site, last)
    assert not page_link.is_valid(opened.settings, token, site, last + timedelta(days=1))
    assert not page_link.is_valid(opened.settings, token, replace(site, site_id=9), last)
    without = opened.settings.model_copy(update={"web": opened.settings.web.model_copy(update={"url": ""})})
    assert page_link.page_address(without, site, last) == ""


def test_a_former_address_that_is_no_contact_changes_nothing(harvester: Harvester, opened: Opened) -> None:
    my_site.ask_for_address(opened, "alder", ANNA, BEN)
    found = re.search(r"/console/my-site/address/(\S+)", text_of(harvester.mails()[0]))
    assert found is not None
    sites.edit(opened, ["alder"], sites.SiteValues(contacts=("carla@example.org",)))
    with pytest.raises(RequestError, match="no longer a contact"):
        my_site.prove_address(opened, found[1])
    assert sites.find(opened, "alder").contacts == ("carla@example.org",)
    assert [each.state for each in my_site.waiting(opened, "alder")] == [State.WAITING_FOR_PROOFS]


def test_a_mail_to_a_new_address_that_was_not_sent_leaves_no_request(harvester: Harvester, opened: Opened) -> None:
    (harvester.folder / "mail").write_text("a file in the way of the folder")
    with pytest.raises(RequestError, match="could not be sent"):
        my_site.ask_for_address(opened, "alder", ANNA, BEN)
    assert my_site.waiting(opened, "alder") == []
    [asked] = registrations.waiting(opened, everything=True)
    assert (asked.state, "could not be sent" in asked.mail_problem) == (State.EXPIRED, True)


def test_the_steward_sees_that_the_former_address_got_no_mail(harvester: Harvester, opened: Opened) -> None:
    my_site.ask_for_address(opened, "alder", ANNA, BEN)
    found = re.search(r"/console/my-site/address/(\S+)", text_of(harvester.mails()[0]))
    assert found is not None
    (harvester.folder / "mail").rename(harvester.folder / "mail before")
    (harvester.folder / "mail").write_text("a file in the way of the folder")
    my_site.prove_address(opened, found[1])
    assert sites.find(opened, "alder").contacts == (BEN,)
    [asked] = registrations.waiting(opened, everything=True)
    assert f"The mail to {ANNA} could not be sent" in asked.mail_problem
