"""What a site's robots.txt says: told to its contacts, and binding only where the settings say so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.harvester import SETTINGS, Harvester, publish
from support.hostile_run import GoodSite, measured_run
from support.http_server import HttpServer
from support.mails import words_of

FORBIDDEN = b"User-agent: *\nDisallow: /list.xml\n"


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as made:
        made.route("/robots.txt", lambda asking: asking.answer(FORBIDDEN, 200, {"Content-Type": "text/plain"}))
        yield made


def test_what_is_forbidden_is_harvested_and_told(tmp_path: Path, server: HttpServer) -> None:
    harvester = Harvester(tmp_path)
    harvester.add_site("site", publish(server, "a.1.1"))
    [site] = harvester.run("2026-11-20")["sites"]
    assert (site["status"], site["inserted"], site["warnings"]) == ("succeeded", 1, 1)
    assert harvester.findings(1) == [(None, "warning", "http.robots")]
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "site@example.org"]
    assert "does not allow the harvester to ask for" in words_of(mail)
    harvester.close()


def test_where_it_is_binding_nothing_is_asked_for(tmp_path: Path, server: HttpServer) -> None:
    settings = SETTINGS.replace("[http]\n", "[http]\nobey_robots = true\n")
    harvester = Harvester(tmp_path, settings)
    harvester.add_site("site", publish(server, "a.1.1"))
    [site] = harvester.run("2026-11-20")["sites"]
    assert site["status"] == "list-failed"
    assert "the harvester's settings make that binding" in site["failure_reason"]
    assert server.asked("/list.xml") == []
    harvester.run("2026-11-21")
    [mail] = [mail for mail in harvester.mails() if "steward" in str(mail["To"]) and "2026-11-21" in mail["Subject"]]
    assert "site: since 2026-11-20, 2 nights" in words_of(mail)
    harvester.close()


@pytest.mark.parametrize(
    ("rules", "warnings"),
    [
        (b"User-agent: *\nDisallow: http://[x\nDisallow: //[\n", 0),  # addresses that are none
        (b"\xef\xbb\xbfUser-agent: *\r\nDisallow: /\r\n", 1),
        (b"User-agent: *\nDisallow: /\nAllow: /list.xml\n", 1),  # the longer path decides (RFC 9309, 2.2.2): a document
        (b"User-agent: *\nDisallow: /\nAllow: /list.xml\nAllow: /a.\n", 0),
        (b"User-agent: *\nDisallow: /*.xml$\n", 1),
        (b"User-agent: *\nDisallow: /\n\nUser-agent: MetaHarvest\nDisallow:\n", 0),
    ],
)
def test_what_is_said_by_the_standard_and_by_mistake(
    tmp_path: Path, server: HttpServer, rules: bytes, warnings: int
) -> None:
    server.serve("/robots.txt", rules)
    harvester = Harvester(tmp_path)
    harvester.add_site("site", publish(server, "a.1.1"))
    [site] = harvester.run("2026-11-20")["sites"]
    assert (site["status"], site["inserted"], site["warnings"]) == ("succeeded", 1, warnings)
    harvester.close()


def test_documents_that_are_forbidden_are_told_once_and_not_again(tmp_path: Path, server: HttpServer) -> None:
    server.serve("/robots.txt", b"User-agent: *\nDisallow: /a.\n")
    harvester = Harvester(tmp_path)
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    [site] = harvester.run("2026-11-20")["sites"]
    assert (site["status"], site["inserted"], site["warnings"]) == ("succeeded", 3, 1)
    assert [rule for _, _, rule in harvester.findings(1)] == ["http.robots"]
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "site@example.org"]
    assert "does not allow the harvester to ask for" in words_of(mail)
    publish(server, "a.1.1", "a.2.1", "a.3.1", "b.1.1")
    [site] = harvester.run("2026-11-21")["sites"]
    assert (site["status"], site["inserted"], site["warnings"]) == ("succeeded", 1, 0)
    harvester.close()


@pytest.mark.parametrize("status", [429, 503])
def test_a_robots_txt_that_is_to_be_asked_for_later_stops_nothing(
    tmp_path: Path, server: HttpServer, status: int
) -> None:
    server.route("/robots.txt", lambda asking: asking.answer(b"busy", status, {"Retry-After": "3600"}))
    harvester = Harvester(tmp_path)
    harvester.add_site("site", publish(server, "a.1.1"))
    [site] = harvester.run("2026-11-20")["sites"]
    assert (site["status"], site["inserted"], site["warnings"]) == ("succeeded", 1, 0)
    harvester.close()


def test_where_it_is_binding_documents_that_are_forbidden_are_not_asked_for(tmp_path: Path, server: HttpServer) -> None:
    server.serve("/robots.txt", b"User-agent: *\nDisallow: /a.2\n")
    harvester = Harvester(tmp_path, SETTINGS.replace("[http]\n", "[http]\nobey_robots = true\n"))
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    [site] = harvester.run("2026-11-20")["sites"]
    assert (site["inserted"], site["access_error"]) == (1, 1)
    assert not [each for each in server.requests if "a.2" in each.path]
    harvester.close()


@pytest.mark.parametrize("number", [1_500, 12_000])
def test_many_agents_with_many_rules_hold_no_other_site_up(tmp_path: Path, server: HttpServer, number: int) -> None:
    agents = "".join(f"User-agent: {each}\n" for each in range(number))
    rules = "".join(f"Disallow: /{each}*b\n" for each in range(number))
    server.serve("/robots.txt", f"{agents}User-agent: *\n{rules}".encode())
    harvester = Harvester(tmp_path)
    harvester.add_site("site", publish(server, "a.1.1"))
    with GoodSite(documents=60) as good:
        harvester.add_site("good", good.list_url)
        cost = measured_run(harvester, good, "--date", "2026-11-20")
        assert good.is_harvested(harvester)
    assert (cost.code, cost.peak_mb < 300, cost.gap < 5, cost.processor < 30) == (0, True, True, True), cost
    harvester.close()
