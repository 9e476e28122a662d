"""Identify of a hostile repository has many addresses and repeats the login of the request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.harvester import Harvester
from support.oai_server import OaiServer

SECRET = "s3cret-login"


class Echo(OaiServer):
    """A server that repeats the login everywhere, and names very many addresses."""

    def _identify(self) -> bytes:
        echoed = f"http://keeper:{SECRET}@127.0.0.1/oai"
        text = super()._identify().decode()
        text = text.replace(f"<baseURL>{self.base_url}", f"<baseURL>{echoed}")
        text = text.replace("</repositoryName>", f" at {echoed}</repositoryName>")
        text = text.replace("<compression>gzip", f"<compression>{echoed}")
        more = "".join(f"<adminEmail>keeper{number}@example.org</adminEmail>" for number in range(60))
        return text.replace("<adminEmail>", f"{more}<adminEmail>", 1).encode()


@pytest.fixture
def echo() -> Iterator[Echo]:
    with Echo(records=2) as made:
        made.friends = [f"http://keeper:{SECRET}@friend.example.org/oai"]
        yield made


def with_login(url: str) -> str:
    return url.replace("http://", f"http://keeper:{SECRET}@")


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_five_contacts_are_taken_and_no_login_is_kept_or_shown(harvester: Harvester, echo: Echo) -> None:
    url = with_login(echo.base_url)
    answer = harvester("sites", "add", "frogs", "--oai", url, "--origin", "frogs")
    assert answer.code == 0, answer.err
    assert "the first 5 of 61: keeper0@example.org, " in answer.out
    [(contacts,)] = harvester.rows("SELECT contact_email FROM harvest_site_schedule")
    assert contacts.count("@") == 5
    run = harvester.run("2026-11-20")
    assert run["status"] == "succeeded", run
    said = [answer.out, answer.err, str(run)]
    for command in ("identify", "formats", "sets", "friends", "validate"):
        for options in ((), ("--json",)):
            each = harvester("oai", command, url, "--allow-network", "127.0.0.0/8", *options)
            said += [each.out, each.err]
    said += [each.as_string() for each in harvester.mails()]
    said.append(str(harvester.rows("SELECT * FROM harvest_detail_log")))
    said.append(str(harvester.rows("SELECT * FROM site_checkpoint")))
    assert not [each for each in said if SECRET in each]
    assert "friend.example.org" in str(said)
