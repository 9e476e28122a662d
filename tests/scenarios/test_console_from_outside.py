"""A person outside registers a site, sees it accepted, harvested and broken, and repairs it: in Chromium, by the pages
and the mails alone. axe-core sees every page with a token in its path on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support.chromium import Reader, chromium
from support.console import Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.mails import text_of
from support.waiting import wait_until

pytestmark = [on_one_database, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

ANNA, BEN = "anna@station.example.org", "ben@station.example.org"
KEY = "for tests"


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as served:
        with harvester.config.open("a", encoding="utf-8") as file:
            file.write(f'[web]\nurl = "{served.url}"\ntoken_key = "{KEY}"\n')
        yield served


def run(harvester: Harvester) -> None:
    """A run in a process of its own: Playwright has the event loop of this one."""
    process = harvester.start("run")
    process.communicate(timeout=120)
    assert process.returncode == 0


class Mailbox:
    """The mails to one address, read in the order in which they come."""

    def __init__(self, harvester: Harvester, address: str) -> None:
        self.harvester = harvester
        self.address = address
        self._seen: set[str] = set()

    def link(self, kind: str) -> str:
        """The path of the next link of this kind, which may be on its way."""
        path = wait_until(lambda: self._new(kind))
        self._seen.add(path)
        return path

    def _new(self, kind: str) -> str:
        mails = [text_of(each) for each in self.harvester.mails() if self.address in each["To"]]
        found = {path for mail in mails for path in re.findall(rf"http://[^/\s]+(/console/{kind}/\S+)", mail)}
        return next(iter(found - self._seen), "")


def test_a_stranger_registers_sees_the_site_accepted_harvested_and_broken_and_repairs_it(
    harvester: Harvester, console: Served, server: HttpServer
) -> None:
    mailbox = Mailbox(harvester, ANNA)
    with chromium() as browser:
        anna, wrong = Reader(browser, console.url), list[str]()

        url = publish(server, "anna.1.1")
        anna.open("/console/register")
        anna.fill("Address of the list", url)
        anna.fill("Name of the site", "Alder Creek")
        anna.fill("Your email address", ANNA)
        anna.press("Check and register")
        assert "1 would be added" in anna.text
        wrong += anna.faults("the request")
        line = anna.page.locator(".secret").inner_text()

        anna.open(mailbox.link("register/address"))
        wrong += anna.faults("the proof of the address")
        anna.press("Confirm this address")
        wrong += anna.faults("the proof of the source")
        content = harvest_list([("anna.1.1", server.url("/anna.1.1.xml"))])
        server.serve("/list.xml", content.replace(b"<document>", line.encode() + b"<document>", 1))
        anna.press("Look for the line in the list")
        assert "You have done everything." in anna.text

        steward = Reader(browser, console.url)
        console.signed_in("steward")
        steward.open("/console/login")
        steward.fill("Email address", "steward@example.org")
        steward.press("Send me a link")
        steward.open(Mailbox(harvester, "steward@example.org").link("link"))
        wrong += steward.faults("the link to sign in")
        steward.press("Sign in")
        assert "1 site asks to be registered." in steward.text
        steward.follow("Decide about it: to be registered")
        steward.follow("1 Alder Creek")
        steward.press("Accept")
        assert "The request for Alder Creek is accepted." in steward.text

        anna.open(mailbox.link("my"))
        assert "Sign in" in anna.text
        anna.fill("Email address", ANNA)
        anna.press("Send me a link")
        anna.open(mailbox.link("link"))
        anna.press("Sign in")
        assert "The site has not been harvested yet." in anna.text
        run(harvester)
        anna.open("/console/my/Alder%20Creek")
        assert "There are no open problems." in anna.text

        broken = eml("anna.2.1").replace(b"eml://eco", b"http://eco")
        entries = [(docid, server.url(f"/{docid}.xml")) for docid in ("anna.1.1", "anna.2.1")]
        server.serve("/anna.2.1.xml", broken)
        server.serve("/list.xml", harvest_list(entries))
        anna.press("Harvest tonight")
        run(harvester)
        reader = Reader(browser, console.url)
        reader.open(mailbox.link("site"))
        assert "This page is read-only." in reader.text
        assert "needs attention" in reader.text
        wrong += reader.faults("the site, by the link of a report")

        anna.open("/console/check")
        anna.fill("Address on the web", server.url("/anna.2.1.xml"))
        anna.press("Check")
        with anna.page.expect_download() as download:
            anna.page.get_by_role("button", name="Download the corrected file").click()
        corrected = download.value.path().read_bytes()
        assert corrected == eml("anna.2.1")
        server.serve("/anna.2.1.xml", corrected)
        anna.open("/console/my/Alder%20Creek")
        anna.press("Harvest tonight")
        assert "A harvest of your site is requested." in anna.text
        run(harvester)
        anna.open("/console/my/Alder%20Creek")
        assert "There are no open problems." in anna.text

        anna.fill("The new address for the reports", BEN)
        anna.press("Mail a link")
        anna.open(Mailbox(harvester, BEN).link("my-site/address"))
        wrong += anna.faults("the new address")
        anna.press("Confirm this address")
        assert f"The reports of Alder Creek go to {BEN} from now on." in anna.text
        assert wrong == []
        assert anna.troubles + steward.troubles + reader.troubles == []
