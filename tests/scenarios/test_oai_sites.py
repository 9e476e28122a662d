"""OAI-PMH repositories as sites, over several nights, by commands: registered, harvested, told of, and survived."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from math import inf
from pathlib import Path
from typing import Any

import pytest

from metaharvest.ledger import retries
from metaharvest.model.actions import parts, todo
from support.databases import TestDatabase, on_one_database
from support.eml_documents import eml
from support.harvester import harvest_list
from support.oai_network import ALL, Network
from support.oai_server import Asked, OaiServer, Odd
from support.remote_target import Repository, installed


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer, database: TestDatabase) -> Iterator[Network]:
    made = Network(tmp_path, server, database=database)
    yield made
    made.harvester.close()


@on_one_database
def test_registering_asks_the_repository_and_takes_its_contacts(network: Network) -> None:
    said = network.harvester("sites", "add", "repo", "--oai", network.server.base_url)
    assert "Contacts, as the repository names them: keeper@example.org" in said.out
    assert "run --site repo --dry-run" in said.out
    shown = json.loads(network.harvester("sites", "show", "repo", "--json").out)
    assert shown["contacts"] == ["keeper@example.org"]
    assert shown["oai"]["prefix"] == "oai_dc"
    [(kind,)] = network.harvester.rows("SELECT source_kind FROM harvest_site_schedule")
    assert kind == "oai-pmh"


@on_one_database
def test_no_two_repositories_have_one_origin_unless_they_are_given_it(network: Network) -> None:
    urls = {
        "http://127.0.0.1/x/oai": "127.0.0.1-x-oai",
        "http://127.0.0.1/x-oai": "127.0.0.1-x-oai-",
        "http://127.0.0.1/X/oai": "127.0.0.1-x-oai-",
        "http://127.0.0.1:81/oai": "127.0.0.1-81-oai",
        "http://127.0.0.1/81/oai": "127.0.0.1-81-oai-",
        "http://архив.example.ru/oai": "xn-80aer5aza.example.ru-oai",
        "http://музей.example.ru/oai": "xn-e1adhj9a.example.ru-oai",
        "https://127.0.0.1/x-oai/": "127.0.0.1-x-oai-",
    }
    add = ("--unasked", "--contact", "c@example.org", "--oai")
    said = [network.harvester("sites", "add", str(n), *add, url) for n, url in enumerate(urls)]
    assert [each.code for each in said] == [0] * 8
    assert ["Of the same repository" in each.out for each in said] == [False] * 7 + [True]
    origins = [site["oai"]["origin"] for site in json.loads(network.harvester("sites", "list", "--json").out)]
    assert len(set(origins)) == 7
    assert origins[1] == origins[7]
    assert network.harvester("sites", "edit", "2", "--origin", "mine", "--unasked").code == 0
    edited = network.harvester("sites", "edit", "2", "--origin", "none", "--unasked")
    assert "Of the same repository" not in edited.out
    after = [site["oai"]["origin"] for site in json.loads(network.harvester("sites", "list", "--json").out)]
    assert after == origins
    for origin, expected in zip(origins, urls.values(), strict=True):
        assert origin == expected if not expected.endswith("-") else origin.startswith(expected)


@on_one_database
@pytest.mark.parametrize(
    ("question", "right"),
    [
        ("?verb=Identify", "/oai"),
        ("?x=1&verb=Identify", "/oai?x=1"),
        ("?metadataPrefix=oai_dc", "/oai"),
        ("?page=oai&set=frogs", "/oai?page=oai"),
    ],
)
def test_a_question_is_no_part_of_a_base_url(network: Network, question: str, right: str) -> None:
    said = network.harvester("sites", "add", "repo", "--oai", f"{network.server.base_url}{question}")
    assert said.code != 0
    assert "has a question of OAI-PMH behind it" in said.err
    assert f"leave that away: {network.server.base_url.removesuffix('/oai')}{right}" in " ".join(said.err.split())


@on_one_database
def test_an_edit_of_what_is_asked_for_asks_the_repository(network: Network) -> None:
    network.server.sets = {"frogs": "Frogs"}
    network.register()

    def edit(*options: str) -> tuple[str, str, bool]:
        before = len(network.server.answered)
        said = network.harvester("sites", "edit", "repo", *options)
        assert said.code == 0
        return said.out, said.err, len(network.server.answered) > before

    out, err, is_asked = edit("--set", "frogs")
    assert "answers, in OAI-PMH 2.0." in out
    assert (err, is_asked) == ("", True)
    out, err, is_asked = edit("--prefix", "eml", "--set", "toads")
    assert "answers" not in out
    assert "warning: The repository has no set 'toads'" in err
    assert "warning: The repository has no metadata format 'eml'" in err
    assert "The next harvest of repo fails if that stays so." in err
    assert network.harvest() == {"status": "list-failed"}
    assert edit("--unasked", "--prefix", "oai_dc")[1:] == ("", False)
    assert edit("--contact", "b@example.org", "--from", "2026-01-02")[1:] == ("", False)
    network.server.http.serve("/elsewhere", b"<html><title>Frogs</title></html>")
    _, err, _ = edit("--oai", network.server.http.url("/elsewhere"))
    assert "is an HTML page titled 'Frogs'" in err


@pytest.mark.parametrize("is_binding", [True, False])
def test_a_robots_txt_that_forbids_it_is_reported_as_a_repository_is_registered(
    tmp_path: Path, server: OaiServer, is_binding: bool
) -> None:
    network = Network(tmp_path, server, f"obey_robots = {str(is_binding).lower()}\n")
    server.http.serve("/robots.txt", b"User-agent: *\nDisallow: /oai\n")
    said = network.harvester("sites", "add", "repo", "--oai", server.base_url)
    assert "does not allow the harvester to ask for" in said.err
    assert (said.code != 0, server.answered == []) == (is_binding, is_binding)
    assert ("Nothing was registered; --unasked registers it nevertheless." in said.err) is is_binding
    network.harvester.close()


@on_one_database
@pytest.mark.parametrize("written", ["mailto:a@b.org", "Name &lt;a@b.org&gt;", "MAILTO:a@b.org; nobody"])
def test_an_address_is_taken_however_the_repository_writes_it(network: Network, written: str) -> None:
    network.server.tamper = lambda body, asked: body.replace(b"keeper@example.org", written.encode())
    said = network.harvester("sites", "add", "repo", "--oai", network.server.base_url)
    assert (said.code, "Contacts, as the repository names them: a@b.org." in said.out) == (0, True)


@on_one_database
def test_what_a_repository_names_instead_of_an_address_is_quoted(network: Network) -> None:
    for written, told in (
        ("a at b.org", "The repository names no email address that can be used, but 'a at b.org'."),
        (" ", "The repository names no email address."),
    ):
        network.server.tamper = lambda body, asked, new=written: body.replace(b"keeper@example.org", new.encode())
        said = network.harvester("sites", "add", "repo", "--oai", network.server.base_url)
        assert (said.code, f"{told} Give --contact: who gets the reports." in said.err) == (2, True)


@on_one_database
@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (404, "Put the OAI-PMH interface where the URL says, or send the administrator its new address."),
        (410, "Put the OAI-PMH interface where the URL says, or send the administrator its new address."),
        (401, "The server asks for a user name and a password. Make the OAI-PMH interface readable for everybody."),
        (403, "Make the OAI-PMH interface readable for everybody, or ask your web administrator"),
    ],
)
def test_what_is_said_of_a_repository_that_refuses_is_not_about_lists(
    network: Network, status: int, remedy: str
) -> None:
    network.register()
    network.server.http.serve("/oai", b"no", status=status)
    for said in (
        network.harvester("sites", "add", "other", "--oai", network.server.base_url).err,
        network.harvester("oai", "identify", network.server.base_url, "--allow-network", "127.0.0.0/8").err,
    ):
        assert remedy in " ".join(said.split())
    network.harvest()
    assert remedy in network.report()


@on_one_database
def test_the_option_that_is_meant_is_named_where_the_other_one_is_given(network: Network) -> None:
    url = network.server.base_url
    network.server.http.serve("/list.xml", harvest_list([("a.1.1", "https://a.example.org/a.1.1.xml")]))
    said = network.harvester("sites", "add", "repo", "--oai", network.server.http.url("/list.xml"))
    assert (said.code, "If this is the URL of a harvest list, give it with --list-url." in said.err) == (2, True)
    contact = ("--contact", "a@example.org")
    said = network.harvester("sites", "add", "repo", "--list-url", f"{url}?verb=Identify", *contact)
    assert (said.code, f"(verb=Identify): use --oai {url} instead." in said.err) == (2, True)
    own = "https://a.example.org/list?verb=show"
    assert network.harvester("sites", "add", "site", "--list-url", own, *contact).code == 0
    # Nothing is asked here; the rehearsal that is named in the answer, and the first report, have it.
    assert network.harvester("sites", "add", "repo", "--list-url", url, *contact).code == 0
    said = network.harvester("check", url)
    assert "This is an answer of an OAI-PMH repository, not a harvest list." in said.out
    assert "ask the harvester's administrator to register it as an OAI-PMH repository, by its base URL" in said.out


@on_one_database
def test_none_takes_options_of_a_repository_back(network: Network) -> None:
    def shown() -> tuple[Any, ...]:
        oai = json.loads(network.harvester("sites", "show", "repo", "--json").out)["oai"]
        return oai["prefix"], oai["origin"], oai["sets"], oai["begin"], oai["until"], oai["full_every"]

    made = f"127.0.0.1-{network.server.base_url.partition(':')[2].partition(':')[2].replace('/', '-')}"
    options = ("--prefix", "eml", "--set", "a", "--from", "2020-01-01", "--until", "2021-01-01", "--full-every", "9")
    base = ("--oai", network.server.base_url, "--unasked", "--contact", "a@example.org")
    assert network.harvester("sites", "add", "repo", *base, *options, "--origin", "test").code == 0
    assert shown() == ("eml", "test", ["a"], "2020-01-01", "2021-01-01", 9)
    none = [
        part
        for option in ("prefix", "origin", "set", "from", "until", "full-every")
        for part in (f"--{option}", "none")
    ]
    assert network.harvester("sites", "edit", "repo", *none).code == 0
    assert shown() == ("oai_dc", made, [], None, None, None)
    said = network.harvester("sites", "edit", "repo", "--from", "2020")
    assert (said.code, "from (begin) is wrong: '2020' is no datestamp" in said.err) == (2, True)
    network.harvester("sites", "remove", "repo", "--yes")
    assert network.harvester("sites", "add", "repo", *base, *none).code == 0
    assert shown() == ("oai_dc", made, [], None, None, None)


@on_one_database
def test_a_login_that_a_new_url_does_not_have_is_reported(network: Network) -> None:
    def edited(name: str, *options: str) -> list[str]:
        lines = network.harvester("sites", "edit", name, *options).out.splitlines()[1:]
        return [line for line in lines if not line.startswith("  ")]  # what was changed

    lost = ["The user name and password in its former URL were not kept: the new URL needs its own, if any."]
    contact = ("--contact", "a@example.org")
    network.harvester("sites", "add", "repo", "--oai", "https://me:secret@a.example.org/oai", "--unasked", *contact)
    network.harvester("sites", "add", "site", "--list-url", "https://me:secret@a.example.org/l.xml", *contact)
    for name, option in (("repo", "--oai"), ("site", "--list-url")):
        assert edited(name, "--every", "2") == []
        assert edited(name, option, "https://other:one@b.example.org/") == []
        assert edited(name, option, "https://b.example.org/") == lost
        assert edited(name, option, "https://c.example.org/") == []


@on_one_database
def test_a_base_url_that_is_none_is_reported_as_what_it_is(network: Network) -> None:
    said = network.harvester("sites", "add", "a", "--oai", "127.0.0.1/oai")
    assert said.code == 2
    assert "the base URL '127.0.0.1/oai' is not a web address; write it like https://example.org/oai" in said.err


@on_one_database
def test_what_the_repository_does_not_have_is_not_registered(network: Network) -> None:
    network.server.sets = {"maps": "Maps", "theses": "Theses"}
    said = network.harvester("sites", "add", "repo", "--oai", network.server.base_url, "--set", "thesis")
    assert (said.code, network.harvester.rows("SELECT * FROM harvest_site_schedule")) == (2, [])
    assert "There is no set 'thesis'" in said.err or "has no set 'thesis'; there are" in said.err
    assert "maps" in said.err
    said = network.harvester("sites", "add", "repo", "--oai", network.server.base_url, "--prefix", "eml")
    assert "no metadata format 'eml'" in said.err
    network.server.close()
    said = network.harvester("sites", "add", "repo", "--oai", network.server.base_url)
    assert said.code == 2
    assert "--unasked" in said.err
    assert "Traceback" not in said.err


@on_one_database
def test_records_that_cannot_be_named_are_reported_to_the_contact(network: Network) -> None:
    network.register()
    nameless = b"<record><header><datestamp>2026-01-03T00:00:00Z</datestamp></header><metadata><a/></metadata></record>"
    network.server.records["oai:test:3"].xml = nameless
    harvested = network.harvest()
    assert (harvested["status"], harvested["inserted"]) == ("with-errors", 24)
    report = network.report()
    assert "1 of the list's records have no identifier that can be read" in report
    subjects = network.harvester.rows("SELECT subject FROM report_outbox ORDER BY report_id")
    assert subjects == [
        ("[Test network] repo: the list has errors, 24 new (2030-01-01)",),
        ("[Test network] 1 site: 1 with errors; 24 new (2030-01-01)",),
    ]
    assert "no identifier that can be read" in network.harvester("log", "--run", "1").out


@on_one_database
def test_an_error_of_the_list_is_a_problem_as_long_as_it_lasts(network: Network) -> None:
    network.register()
    nameless = b"<record><header><datestamp>2026-01-03T00:00:00Z</datestamp></header><metadata><a/></metadata></record>"
    network.server.records["oai:test:3"].xml = nameless
    seen = []
    for _ in range(2):
        assert network.harvest("--full")["status"] == "with-errors"
        seen += network.harvester.rows("SELECT rule, state, nights FROM site_problem")
    assert seen == [("oai.identifier", "open", 1), ("oai.identifier", "open", 2)]
    report = network.report()
    assert "still broken" in report
    assert "thank you" not in report


@on_one_database
def test_no_record_is_missing_from_a_list_with_one_that_cannot_be_named(network: Network) -> None:
    network.register()
    assert network.harvest()["inserted"] == 25
    nameless = b"<record><header><datestamp>2026-01-03T00:00:00Z</datestamp></header><metadata><a/></metadata></record>"
    network.server.records["oai:test:3"].xml = nameless
    assert network.harvest("--full")["status"] == "with-errors"
    marked = "SELECT document_id FROM harvest_document WHERE missing_since IS NOT NULL"
    assert network.harvester.rows(marked) == []
    assert "does not name" not in network.report()
    network.server.records.pop("oai:test:3")
    assert network.harvest("--full")["status"] == "succeeded"
    assert network.harvester.rows(marked) == [("test/oai_dc/oai:test:3",)]


@on_one_database
def test_a_repository_whose_sets_cannot_be_fetched_is_registered_where_none_is_asked_for(network: Network) -> None:
    network.server.tamper = lambda body, asked: b"<html/>" if asked.verb == "ListSets" else body
    url = network.server.base_url
    said = network.harvester("sites", "add", "repo", "--oai", url, "--set", "maps")
    assert (said.code, network.harvester.rows("SELECT * FROM harvest_site_schedule")) == (2, [])
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}


@on_one_database
def test_tokens_that_live_shorter_than_a_page_of_records_takes_hold_nothing_up(network: Network) -> None:
    def impatient(body: bytes, asked: Asked) -> bytes:
        late = "resumptionToken" in asked.arguments and network.server.answered[-2].verb == "GetRecord"
        start, error = body.partition(b"<ListIdentifiers>")[0], b'<error code="badResumptionToken"/></OAI-PMH>'
        return start + error if late else body

    network.server.tamper = impatient
    network.register("--method", "list-identifiers")
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    assert network.held() == ALL


@on_one_database
def test_options_of_repositories_and_lists_are_not_mixed(network: Network) -> None:
    url = network.server.base_url
    assert "--list-url is for" in network.harvester("sites", "add", "a", "--list-url", url, "--oai", url).err
    said = network.harvester("sites", "add", "a", "--list-url", url, "--contact", "a@example.org", "--prefix", "eml")
    assert "--prefix is for OAI-PMH repositories" in said.err
    network.register()
    assert "give its new address with --oai" in network.harvester("sites", "edit", "repo", "--list-url", url).err
    said = network.harvester("sites", "edit", "repo", "--until", "yesterday")
    assert said.code == 2
    assert "until is wrong: 'yesterday' is no datestamp" in said.err


@on_one_database
def test_dates_and_base_urls_that_cannot_be_are_refused_with_what_to_do(network: Network) -> None:
    url = network.server.base_url
    said = network.harvester("sites", "add", "a", "--oai", url, "--from", "2026-02-30")
    assert (said.code, "'2026-02-30' is no datestamp" in said.err) == (2, True)
    for command in (("sites", "add", "a", "--oai", f"{url}?verb=Identify"), ("oai", "sets", f"{url}?verb=ListSets")):
        said = network.harvester(*command)
        assert (said.code, f"leave that away: {url}" in said.err) == (2, True)
    assert network.harvester.rows("SELECT * FROM harvest_site_schedule") == []


@on_one_database
def test_options_that_cannot_be_are_refused_without_the_text_in_which_they_are_stored(network: Network) -> None:
    network.register("--until", "2026-01-05")
    said = network.harvester("sites", "edit", "repo", "--from", "2026-01-02T00:00:00Z")
    assert (said.code, "{" in said.err) == (2, False)
    assert "repo: the options cannot be used: from (begin) and until must have the same form" in said.err
    said = network.harvester("sites", "add", "other", "--oai", "http://[::1/oai", "--contact", "a@b.org")
    assert (said.code, "the base URL 'http://[::1/oai' is not a web address" in said.err) == (2, True)


@on_one_database
def test_repositories_that_differ_by_what_is_behind_the_question_mark_have_ids_of_their_own(network: Network) -> None:
    url = network.server.base_url
    for name in ("frogs", "toads"):
        said = network.harvester("sites", "add", name, "--oai", f"{url}?collection={name}")
        assert (said.code, "Of the same repository" in said.out) == (0, False)
    shown = [json.loads(network.harvester("sites", "show", name, "--json").out) for name in ("frogs", "toads")]
    assert len({site["oai"]["origin"] for site in shown}) == 2
    assert "toads" not in shown[1]["oai"]["origin"]


@on_one_database
@pytest.mark.parametrize("nothing", ["none", ""])
def test_the_sets_of_a_site_can_be_taken_away(network: Network, nothing: str) -> None:
    network.server.sets = {"frogs": "Frogs"}
    network.register("--set", "frogs")
    assert network.harvester("sites", "edit", "repo", "--set", nothing).code == 0
    assert json.loads(network.harvester("sites", "show", "repo", "--json").out)["oai"]["sets"] == []


@on_one_database
def test_filters_that_cannot_be_read_are_reported_by_file_and_line(network: Network, tmp_path: Path) -> None:
    filters = tmp_path / "filters.xml"
    filters.write_text("<filters match='any'><filter xpath='//a'/></filters>")
    network.register("--filters", str(filters))
    filters.write_text("<filters>")
    assert network.harvest() == {"status": "failed"}
    assert f"{filters}, line 1" in network.report("admin")
    assert str(filters) not in network.report() + network.table()
    assert "the administrator of the harvester gets a report too" in network.table()
    assert str(filters) in network.harvester("log", "--site", "repo", "--csv").out
    assert "In the list" not in network.report()


def test_nights_of_a_repository(network: Network) -> None:
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    assert network.held() == ALL
    assert "oai_dc" in network.harvester("target", "get", "test/oai_dc/oai:test:7.1").out
    assert network.harvest() == {"status": "succeeded"}
    server = network.server
    server.put("oai:test:3", title="Toads")
    server.put("oai:test:26")
    server.delete("oai:test:5")
    assert network.harvest() == {"status": "succeeded", "listed": 3, "inserted": 1, "updated": 1, "deleted": 1}
    assert network.held() == {**{key: 1 for key in ALL if key != "5"}, "3": 2, "26": 1}
    server.forget()
    assert network.harvest()["status"] == "succeeded"
    assert server.asked("ListRecords")[0].arguments["from"] < "2026-11-24"
    assert network.harvest("--full") == {"status": "succeeded", "listed": 26, "unchanged": 26}
    assert network.held() == {**{key: 1 for key in ALL if key != "5"}, "3": 2, "26": 1}


@on_one_database
def test_a_change_in_the_second_of_the_last_harvest_is_not_lost(network: Network) -> None:
    network.register()
    network.harvest()
    network.server.put("oai:test:9", network.server.now, title="Late")
    assert network.harvest() == {"status": "succeeded", "listed": 1, "updated": 1}


def test_a_rehearsal_says_what_would_be_done_and_does_nothing(network: Network) -> None:
    network.register()
    said = network.harvester("run", "--site", "repo", "--dry-run", "--json")
    [site] = json.loads(said.out)["sites"]
    assert (site["status"], site["inserted"]) == ("succeeded", 25)
    assert network.held() == {}
    network.harvest()
    network.server.put("oai:test:3", title="Toads")
    [site] = json.loads(network.harvester("run", "--site", "repo", "--dry-run", "--json").out)["sites"]
    assert (site["listed"], site["updated"]) == (1, 1)
    assert network.harvest() == {"status": "succeeded", "listed": 1, "updated": 1}


def test_half_of_the_records_are_lost(network: Network) -> None:
    network.register()
    network.harvest()
    for number in range(1, 13):
        del network.server.records[f"oai:test:{number}"]
    assert network.harvest("--full") == {"status": "succeeded", "listed": 13, "unchanged": 13}
    assert network.held() == ALL
    assert "oai:test:4 is not in the repository's list any more" in network.report()
    assert "The complete list does not name 12 records that were there before; 25 are known" in network.report()
    assert network.subject("site").endswith("repo: the list lost 12 documents, nothing new (2030-01-02)")
    assert "1 list lost 12 documents" in network.subject("admin")
    assert "Your OAI-PMH repository names 13 documents: 13 are unchanged." in network.report()
    assert network.harvest()["status"] == "succeeded"


@on_one_database
def test_what_was_missing_before_neither_hides_a_loss_nor_is_counted_once_more(network: Network) -> None:
    network.register("--notify", "on-error")
    network.harvest()
    records = network.server.records
    for number in range(1, 5):
        del records[f"oai:test:{number}"]
    network.harvest("--full")
    assert "list lost" not in network.subject("admin")
    for number in range(5, 20):
        del records[f"oai:test:{number}"]
    network.harvest("--full")
    assert "repo: the list lost 15 documents" in network.subject("site")
    for number in range(20, 25):
        del records[f"oai:test:{number}"]
    assert network.harvest("--full")["listed"] == 1
    assert "repo: the list lost 5 documents" in network.subject("site")
    assert "1 list lost 5 documents" in network.subject("admin")
    assert "does not name 24 records that were there before; 25 are known" in network.report()
    records.clear()
    network.harvest("--full")
    assert "listed none; 1 record was there before" in network.report()
    assert "repo: the list lost 1 document" in network.subject("site")


@on_one_database
def test_a_repository_that_has_nothing_is_reported_as_that_by_its_first_harvest(network: Network) -> None:
    network.server.records.clear()
    network.register()
    assert network.harvest() == {"status": "succeeded"}
    assert "The repository was asked for all its records, and listed none." in network.report()
    assert "the format, the set and the dates of the site" in network.report()
    assert network.harvest() == {"status": "succeeded"}
    assert "listed none" in network.report()


@on_one_database
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--set", "a"), "all records of the set a"),
        (("--set", "a", "--from", "2026-01-05"), "all records of the set a from 2026-01-05 on"),
    ],
)
def test_what_a_list_of_nothing_was_to_be_of_is_reported(
    network: Network, options: tuple[str, ...], words: str
) -> None:
    network.server.sets = {"a": "A", "b": "B"}
    network.register(*options)
    network.harvest()
    assert f"The repository was asked for {words}, and listed none." in network.report()
    for record in network.server.records.values():
        record.sets = ("a",)
    network.harvest("--full")
    network.server.records.clear()
    network.harvest("--full")
    assert f"was asked for {words}, and listed none; 2" in network.report()


@on_one_database
def test_a_repository_that_lists_nothing_when_asked_for_everything_is_not_well(network: Network) -> None:
    network.register("--notify", "on-error")
    network.harvest()
    records, network.server.records = network.server.records, {}
    assert network.harvest() == {"status": "succeeded"}  # of changes, there may be none
    assert "repo: the repository has fewer records than before" in network.subject("site")
    assert "it has 0 records (completeListSize); 25 are known" in network.report()
    assert network.harvest("--full") == {"status": "succeeded"}
    assert network.held() == ALL
    assert "repo: the list lost 25 documents" in network.subject("site")
    assert "asked for all its records, and listed none; 25 records were there before. Nothing was" in network.report()
    network.server.records = records
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}


@on_one_database
@pytest.mark.parametrize("deleted", [True, False])
def test_a_missing_record_that_is_named_again_is_not_reported_as_missing_any_more(
    network: Network, deleted: bool
) -> None:
    network.register()
    network.harvest()
    del network.server.records["oai:test:4"], network.server.records["oai:test:5"]
    network.harvest("--full")
    assert "A record is no longer in its repository's list (2)" in network.report()
    assert "A record is no longer in its repository's list: 2 documents, such as" in network.report("admin")
    network.server.now += timedelta(hours=12)
    network.server.put("oai:test:4", deleted=deleted)
    network.harvest()
    assert "Fixed since the last harvest: thank you" in network.report()
    assert "A record is no longer in its repository's list (1), since 2030-01-02" in network.report()


THANKS = "thank you"


def test_nobody_is_thanked_where_the_site_asks_for_less(network: Network) -> None:
    """Of what is not asked for any more, nothing is told as still there, either."""
    network.server.sets = {"all": "All", "few": "Few"}
    for number in range(1, 26):
        network.server.records[f"oai:test:{number}"].sets = ("all", "few") if number > 20 else ("all",)
    network.server.put("oai:test:2", metadata="<b>A</i>", sets=("all",))
    network.register("--set", "all")
    network.harvest()
    for number in (3, 4, 5):
        del network.server.records[f"oai:test:{number}"]
    network.harvest("--full")
    told = network.report()
    assert "A record is no longer in its repository's list (3)" in told
    assert "A record that cannot be read" in told
    network.harvester("sites", "edit", "repo", "--set", "few")
    assert network.harvest()["status"] == "succeeded"
    told = network.report()
    assert THANKS not in told
    assert "no longer in its repository's list" not in told
    assert "A record that cannot be read" not in told
    assert network.harvester.rows("SELECT DISTINCT state FROM site_problem") == [("gone",)]


@on_one_database
def test_records_that_stay_missing_are_not_reported_as_fixed_where_too_many_are_missing_to_name_them_all(
    network: Network,
) -> None:
    network.server.records.clear()
    for number in range(100, 400):
        network.server.put(f"oai:test:{number}")
    network.register()
    network.harvest()
    for number in range(200, 300):
        del network.server.records[f"oai:test:{number}"]
    network.harvest("--full")
    for number in range(100, 130):
        del network.server.records[f"oai:test:{number}"]
    network.harvest("--full")
    assert THANKS not in network.report()
    for number in range(100, 130):
        network.server.put(f"oai:test:{number}")
    network.harvest("--full")
    assert "repository's list (31)" in network.report().partition(THANKS)[2]


def delete_half(network: Network) -> None:
    """Harvest 60 records, then delete 30 of them at the repository. The next harvest leaves that to a person."""
    network.server.records.clear()
    for number in range(1, 61):
        network.server.put(f"oai:test:{number}")
    network.register()
    network.harvest()
    for number in range(1, 31):
        network.server.delete(f"oai:test:{number}")


@pytest.mark.parametrize("by", ["sites confirm", "sites edit", "the repository"])
def test_thanks_for_deletions_that_wait_only_where_the_repository_took_them_back(network: Network, by: str) -> None:
    delete_half(network)
    network.harvest()
    if by == "the repository":
        for number in range(1, 31):
            network.server.put(f"oai:test:{number}", deleted=False)
    else:
        network.harvester(*by.split(), "repo", *(("--deletions", "note") if by == "sites edit" else ()))
    assert network.harvest()["status"] == "succeeded"
    assert (THANKS in network.report()) == (by == "the repository")
    assert "Needs your attention" not in network.report()


def test_nobody_is_thanked_for_a_document_that_was_deleted_or_is_left_out(network: Network, tmp_path: Path) -> None:
    network.register("--validation", "very-strict")
    for number in (1, 2):
        network.server.put(f"oai:test:{number}", metadata=eml("2.2.0", "<contact/>").decode().partition("?>")[2])
    network.harvest()
    assert "Needs your attention" in network.report()
    network.server.delete("oai:test:1")
    filters = tmp_path / "filters.xml"
    filters.write_text("<filters match='all'><filter xpath='/*[local-name() = \"dc\"]'/></filters>")
    network.harvester("sites", "edit", "repo", "--filters", str(filters))
    network.server.now += timedelta(hours=1)
    network.server.put("oai:test:2", metadata=network.server.records["oai:test:2"].metadata)
    assert network.harvest("--full")["filtered"] == 1
    told = network.report()
    assert THANKS not in told
    assert "Needs your attention" not in told


OURS = "You need to do nothing: the administrator of the harvester gets a report too"


@on_one_database
def test_a_contact_learns_nothing_of_the_files_of_the_harvester(network: Network, tmp_path: Path) -> None:
    filters = tmp_path / "filters.xml"
    filters.write_text("<filters match='all'><filter xpath='/*'/></filters>")
    network.register("--filters", str(filters))
    filters.write_text("<filters match='all'>")
    assert network.harvest() == {"status": "failed"}
    assert OURS in network.report()
    assert "A file of filters, or of normalising, cannot be used" in network.report()
    assert "filters.xml" not in network.report()
    assert "filters.xml" in network.report("admin")
    for words in ("filters.xml", "metaharvest filter test"):
        assert words not in network.table()
    filters.write_text("<filters match='all'><filter xpath='/*'/></filters>")
    network.harvest()
    assert THANKS not in network.report()


@on_one_database
@pytest.mark.parametrize("asked", ["--set", "--prefix"])
def test_a_set_or_format_that_is_gone_is_reported_to_each_in_words_of_their_own(network: Network, asked: str) -> None:
    network.server.sets = {"frogs": "Frogs", "newts": "Newts"}
    for record in network.server.records.values():
        record.sets = ("frogs",)
    network.server.formats["mods"] = "http://www.loc.gov/mods/v3"
    network.register("--set", "frogs", "--prefix", "mods")
    del network.server.sets["frogs"], network.server.formats["mods"]
    network.server.sets = network.server.sets if asked == "--set" else {"frogs": "Frogs"}
    if asked == "--set":
        network.server.formats["mods"] = "http://www.loc.gov/mods/v3"
    network.harvest()
    what = "set" if asked == "--set" else "format"
    assert f"Offer this {what} again, if it is gone by mistake; otherwise write to" in network.report()
    assert "of the site, or ask the keeper" not in network.report() + network.table()
    assert f"Correct the {asked[2:]}" in network.report("admin")
    network.harvester("sites", "edit", "repo", asked, "newts" if asked == "--set" else "oai_dc")
    network.harvest()
    assert THANKS not in network.report()


@on_one_database
def test_deletions_that_wait_are_new_on_the_first_night_alone(network: Network) -> None:
    delete_half(network)
    network.harvest()
    assert "new since the last harvest" in network.report()
    network.harvest()
    _, _, still = network.report().partition("Needs your attention: still broken")
    assert "Put off to a later run (30)" in still
    assert "new since the last harvest" not in network.report()


def test_half_of_the_records_are_deleted(network: Network) -> None:
    delete_half(network)
    assert network.harvest() == {"status": "with-errors", "listed": 30, "deferred": 30}
    assert len(network.held()) == 60
    for since in ("new since the last harvest", "still broken"):
        assert "30 of the 60 documents of this site are deleted" in network.report()
        assert f"Needs your attention: {since}" in network.report()
        confirms = "the administrator of the harvester confirms the deletions"
        assert f"{confirms}, and the next harvest makes them" in network.report()
        assert f"{confirms} (`metaharvest sites confirm repo`), and the next" in network.report("admin")
        assert network.harvest() == {"status": "with-errors", "listed": 30, "deferred": 30}
        assert "records.many-deletions" in network.harvester("log", "--level", "error").out
    findings = [each for row in json.loads(network.harvester("log", "--json").out) for each in row["findings"]]
    remedy = next(each["remedy"] for each in findings if each["rule"] == "records.many-deletions")
    assert list(parts(remedy))[1] == todo("sites.confirm", name="repo")
    waiting = "repo: 30 deletions wait. If they are too many to be made unasked"
    assert waiting in network.harvester("doctor").out
    assert "deletes 30 documents" in network.harvester("sites", "confirm", "repo").out
    assert waiting not in network.harvester("doctor").out
    assert network.harvest() == {"status": "succeeded", "listed": 30, "deleted": 30}
    found = json.loads(network.harvester("diff", "4", "5", "--json").out)
    assert {change: number for change, number in found["totals"].items() if number} == {"fixed": 30, "deleted": 30}
    assert {each["outcome"] for each in found["sites"][0]["documents"]} == {"deleted"}
    assert len(network.held()) == 30


@on_one_database
def test_metadata_without_an_xmlns_of_their_own_are_reported_in_the_mail(network: Network) -> None:
    network.register("--validation", "very-strict")
    network.server.put("oai:test:1", metadata=eml("2.2.0").decode().partition("?>")[2])
    network.server.put("oai:test:2", metadata="<metadata><idinfo/></metadata>")
    assert network.harvest() == {"status": "with-errors", "listed": 25, "inserted": 24, "invalid": 1}
    told = " ".join(network.report().split())
    assert "dataset is taken for an element of OAI-PMH" in told
    assert 'Add xmlns="" to <eml:eml>, the root of the metadata' in told
    assert "<metadata>, the root of the metadata, has no xmlns of its own" in told


@on_one_database
def test_deletions_that_are_only_noted_stay_in_the_target(network: Network) -> None:
    network.register("--deletions", "note")
    network.harvest()
    network.server.delete("oai:test:5")
    assert network.harvest() == {"status": "succeeded", "listed": 1, "deleted": 1}
    assert network.held() == ALL
    told = " ".join(network.report().split())
    assert "Deletions: noted only: the copies stay" in told
    assert "1 is marked as deleted (the copy stays)." in told
    assert "Deleted by your OAI-PMH repository: the copies stay (1)" in told
    assert "1 deletion noted" in told
    assert "1 deleted" not in told
    for kind in ("site", "admin"):
        assert "1 deletion noted" in network.subject(kind)
        assert "deleted" not in network.subject(kind)
    assert "1 deletion noted" in network.report("admin")
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}


@on_one_database
def test_a_repository_that_changed_is_reported_once_each_time(network: Network) -> None:
    network.register("--notify", "on-change")
    network.harvest()
    for name in ("Another name", "A third name"):
        network.server.name = name
        network.harvest()
        assert f"now it is '{name}'" in network.report()
        assert "new since the last harvest" in network.report()
    said = network.report()
    network.harvest()
    assert network.report() == said  # there is nothing to tell; nobody has mended anything


@on_one_database
def test_the_choice_of_failing_records_to_fetch_again_is_no_change(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "MOST_FAILED", 2)
    network.register("--notify", "on-change")
    for number in range(3, 8):
        record = f"<identifier>oai:test:{number}</identifier><datestamp>2026-01-03T00:00:00Z</datestamp>"
        network.server.records[f"oai:test:{number}"].xml = f"<record><header>{record}</header></record>".encode()
    assert network.harvest() == {"status": "with-errors", "listed": 25, "inserted": 20, "invalid": 5}
    said = network.report()
    for _ in range(2):
        assert network.harvest() == {"status": "with-errors", "listed": 2, "invalid": 2}
        assert network.report() == said


@on_one_database
def test_a_report_says_that_a_repository_without_a_date_is_listed_whole_each_time(network: Network) -> None:
    network.server.tamper = lambda body, asked: re.sub(b"<responseDate>.*</responseDate>", b"", body)
    network.register()
    network.harvest()
    assert network.harvest() == {"status": "succeeded", "listed": 25, "unchanged": 25}
    assert "The responseDate of the repository's answers is missing" in network.report()
    assert "each of them lists everything" in network.report()


@on_one_database
def test_what_a_full_list_showed_is_not_fixed_as_changes_alone_do_not_show_it(network: Network) -> None:
    network.server.records["oai:test:3"].datestamp += timedelta(hours=1)
    network.server.tamper = lambda body, asked: body.replace(b"2026-01-03T01:00:00Z", b"a day")
    network.register()
    network.harvest()
    assert "oai.datestamp" in network.harvester("log", "--run", "1", "--json").out
    network.harvest()
    assert "Fixed" not in network.report()
    states = "SELECT rule, state FROM site_problem"
    assert network.harvester.rows(states) == [("oai.datestamp", "gone")]


@on_one_database
def test_an_empty_list_of_a_repository_stays_reported_until_it_lists_records(network: Network) -> None:
    records, network.server.records = network.server.records, {}
    network.register()
    network.harvest()
    network.harvest()
    states = "SELECT rule, state FROM site_problem"
    assert network.harvester.rows(states) == [("oai.empty", "open")]
    network.server.records = records
    network.harvest()
    assert network.harvester.rows(states) == [("oai.empty", "fixed")]


@on_one_database
def test_a_repository_that_writes_its_local_time_as_utc_loses_nothing_and_is_reported(network: Network) -> None:
    network.register()
    network.server.ahead = timedelta(hours=2)
    assert network.harvest()["inserted"] == 25
    assert "which is 2 hours ahead of that of its web server" in network.report()
    assert "in UTC, not in local time" in network.report()
    network.server.put("oai:test:26", network.server.now + timedelta(minutes=50))
    assert network.harvest()["inserted"] == 1


@on_one_database
def test_a_harvest_that_goes_on_after_a_kill_warns_of_the_repository_once(network: Network) -> None:
    network.register()
    network.server.ahead = timedelta(hours=2)
    network.kill(lambda asked: "!20!" in str(asked.arguments), "2030-01-01")
    network.server.now += timedelta(minutes=1)
    assert [each["warnings"] for each in network.harvester.run("2030-01-01")["sites"]] == [1]


@on_one_database
def test_a_full_list_that_was_killed_before_it_began_is_asked_for_by_the_next_run(network: Network) -> None:
    network.register()
    network.harvest()
    network.kill(lambda asked: asked.verb == "ListRecords", "2030-01-02", "--site", "repo", "--full")
    network.night = 2
    for is_full in (True, False):
        network.server.forget()
        network.harvest()
        assert ["from" not in each.arguments for each in network.server.asked("ListRecords")][:1] == [is_full]


@on_one_database
def test_all_that_a_repository_does_not_have_is_counted(network: Network) -> None:
    network.server.sets = {"frogs": "Frogs"}
    network.register("--set", "frogs")
    network.server.sets = {"toads": "Toads"}
    network.harvester("sites", "edit", "repo", "--prefix", "eml")
    assert network.harvest() == {"status": "list-failed"}
    [(said,)] = network.harvester.rows("SELECT message FROM harvest_log WHERE harvest_operation_code = 'IdentifyError'")
    assert said.endswith("There is 1 more problem.")


@on_one_database
def test_a_repository_that_changed_is_reported(network: Network) -> None:
    network.register()
    network.harvest()
    network.server.seconds = False
    network.server.name = "Another name"
    network.server.put("oai:test:3", title="Toads")
    assert network.harvest()["updated"] == 1
    assert "granularity changed" in network.report()
    assert "Another name" in network.report()


@on_one_database
def test_a_list_that_breaks_off_says_after_how_many_and_goes_on(network: Network) -> None:
    network.register()
    network.server.odd.add(Odd.SIZE_TOO_HIGH)
    found = network.harvest()
    assert (found["status"], found["listed"]) == ("incomplete", 25)
    assert "broke off after 25 of 50 records" in network.report()
    network.server.odd.clear()
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL


@on_one_database
def test_an_error_that_is_not_well_formed_is_not_taken_for_a_list_of_nothing(network: Network) -> None:
    network.register()
    network.harvest()
    network.server.put("oai:test:26", network.server.now + timedelta(hours=1))

    def refuse(body: bytes, asked: Asked) -> bytes:
        error = b'<error code="badArgument">SQL error near a=1&b=2</error></OAI-PMH>'
        return body.partition(b"<ListRecords>")[0] + error if asked.verb == "ListRecords" else body

    network.server.tamper = refuse
    assert network.harvest()["status"] == "list-failed"
    assert "badArgument (SQL error near a=1&b=2)" in network.report()
    assert codes_of_errors(network) == ["ListRecordsError"]
    network.server.tamper = None
    network.server.now += timedelta(days=9)
    assert network.harvest() == {"status": "succeeded", "listed": 1, "inserted": 1}


@on_one_database
def test_a_token_that_cannot_be_read_leaves_nothing_missing(network: Network) -> None:
    network.register()
    network.harvest()
    network.server.tamper = lambda body, _: body.replace(b"</resumptionToken>", b"</resumptiontoken>")
    assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
    assert "its resumption token cannot be read" in network.report()
    assert "not in the repository's list any more" not in network.report()


@on_one_database
def test_one_bad_record_is_a_finding_and_all_others_go_in(network: Network) -> None:
    network.register()
    network.server.poison.add("oai:test:13")
    found = network.harvest()
    assert found["inserted"] == 24
    assert "oai:test:13" in network.report()
    network.server.poison.clear()
    found = network.harvest()
    assert (found["status"], found.get("inserted")) == ("succeeded", 1)
    assert network.held() == ALL


@on_one_database
def test_a_damaged_record_is_tried_again_as_its_remedy_says(network: Network) -> None:
    network.register()
    record = network.server.records["oai:test:13"]
    record.metadata = "<a>&nbsp;</a>"
    assert network.harvest() == {"status": "with-errors", "listed": 25, "inserted": 24, "invalid": 1}
    report = network.report()
    assert "oai:test:13 cannot be read" in report
    assert "The harvester tries again by itself" in " ".join(report.split())
    assert "datestamp" not in report
    record.metadata = None
    assert network.harvest() == {"status": "succeeded", "listed": 1, "inserted": 1}


@on_one_database
def test_many_bad_neighbours_are_findings_and_all_others_go_in(network: Network) -> None:
    for number in range(26, 61):
        network.server.put(f"oai:test:{number}")
    network.register("--method", "list-identifiers")
    network.server.unreadable |= {f"oai:test:{number}" for number in range(1, 26)}
    found = network.harvest()
    assert found == {"status": "with-errors", "listed": 60, "inserted": 35, "access_error": 25}
    network.server.unreadable.clear()
    assert network.harvest()["status"] == "succeeded"
    assert len(network.held()) == 60


@on_one_database
def test_two_formats_of_a_repository_are_two_sites(network: Network) -> None:
    network.server.formats["other"] = "http://example.org/other/"
    network.register()
    assert "A record that several of them list" not in network.register("--prefix", "other", name="second")
    ran = network.harvester.run("2030-01-01")
    assert [site["inserted"] for site in ran["sites"]] == [25, 25]
    [(number,)] = network.harvester.rows("SELECT COUNT(*) FROM document_revision")
    assert number == 50


@on_one_database
def test_a_repository_that_is_away_fails_and_is_asked_again_the_next_night(network: Network) -> None:
    network.register()
    network.harvest()
    answer = network.server.tamper
    network.server.tamper = lambda body, asked: b"<html><title>Maintenance</title></html>"
    assert network.harvest() == {"status": "list-failed"}
    assert "could not be read" in network.report()
    assert codes_of_errors(network) == ["IdentifyError"]
    network.server.tamper = answer
    network.server.put("oai:test:3", title="Toads")
    assert network.harvest() == {"status": "succeeded", "listed": 1, "updated": 1}


def codes_of_errors(network: Network) -> list[str]:
    return [
        code for (code,) in network.harvester.rows("SELECT harvest_operation_code FROM harvest_log WHERE status = 1")
    ]


FOLDER = '[target]\nkind = "folder"\nfolder = "documents"\n'


@pytest.mark.parametrize(
    ("at", "settings"),
    [*((at, "") for at in range(1, 6)), (2, FOLDER), (5, FOLDER)],
    ids=[*(f"embedded-{at}" for at in range(1, 6)), "folder-2", "folder-5"],
)
def test_killed_at_every_page_nothing_is_lost_or_doubled(tmp_path: Path, at: int, settings: str) -> None:
    with OaiServer(records=25, page=6) as server:
        network = Network(tmp_path, server, settings)
        network.register()
        network.kill(lambda _: len(server.asked("ListRecords")) == at, "2030-01-01")
        ran = network.harvester.run("2030-01-01")
        [site] = ran["sites"]
        assert (site["status"], site["listed"]) == ("succeeded", 25)
        assert site["inserted"] + site["unchanged"] == 25
        assert network.held() == ALL
        [(number,)] = network.harvester.rows(
            "SELECT COUNT(*) FROM harvest_log WHERE outcome = 'inserted' OR outcome = 'updated'"
        )
        assert number == 25
        assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
        network.harvester.close()


def test_a_full_run_that_was_killed_goes_on_from_its_last_page(tmp_path: Path) -> None:
    with OaiServer(records=25, page=5) as server:
        network = Network(tmp_path, server)
        network.register()
        network.harvest()
        network.kill(lambda asked: "!20!" in str(asked.arguments), "2030-01-02", "--site", "repo", "--full")
        server.forget()
        found = network.harvest("--full")
        assert (found["status"], found["listed"], found["unchanged"]) == ("succeeded", 25, 25)
        assert "resumptionToken" in server.asked("ListRecords")[0].arguments
        network.harvester.close()


def test_a_full_list_that_breaks_off_twice_goes_on_from_its_last_page(tmp_path: Path) -> None:
    with OaiServer(records=25, page=5) as server:
        network = Network(tmp_path, server)
        network.register()
        network.harvest()
        network.kill(lambda asked: "!20!" in str(asked.arguments), "2030-01-02", "--site", "repo", "--full")
        server.refuses = lambda asked: True
        assert network.harvest("--full")["status"] == "list-failed"
        server.refuses = lambda asked: False
        server.forget()
        network.harvest()
        assert "resumptionToken" in server.asked("ListRecords")[0].arguments
        network.harvester.close()


def test_a_full_run_that_was_killed_after_its_list_and_in_the_next_one_counts_each_record_once(tmp_path: Path) -> None:
    with OaiServer(records=25, page=5) as server:
        server.sets = {"even": "Even"}
        server.records["oai:test:2"].sets = ("even",)
        network = Network(tmp_path, server)
        network.register()
        network.register("--set", "even", name="whole")
        network.harvester.run("2030-01-01")
        # The site waits for the list of the other one, so its own has ended.
        network.kill(lambda asked: asked.arguments.get("set") == "even", "2030-01-02", "--full")
        ended = "SELECT COUNT(*) FROM harvest_log WHERE harvest_operation_code = 'ListRecordsSuccess'"
        assert network.harvester.rows(ended) == [(3,)]
        network.kill(lambda asked: "!15!" in str(asked.arguments), "2030-01-02", "--full")
        ran = network.harvester.run("2030-01-02", "--full")
        [site] = [each for each in ran["sites"] if each["site_name"] == "repo"]
        assert (site["status"], site["listed"], site["unchanged"]) == ("succeeded", 25, 25)
        network.harvester.close()


@on_one_database
def test_a_site_that_asks_for_other_records_misses_none_of_those_before(network: Network) -> None:
    server = network.server
    server.formats["other"] = "http://example.org/other/"
    server.sets = {"even": "Even"}
    for number in range(2, 26, 2):
        server.records[f"oai:test:{number}"].sets = ("even",)
    network.register()
    network.harvest()
    network.harvester("sites", "edit", "repo", "--prefix", "other")
    assert network.harvest() == {"status": "succeeded", "listed": 25, "inserted": 25}
    assert "list any more" not in network.report()
    network.harvester("sites", "edit", "repo", "--set", "even")
    assert network.harvest() == {"status": "succeeded", "listed": 12, "unchanged": 12}
    assert "list any more" not in network.report()
    del server.records["oai:test:4"]
    assert network.harvest("--full") == {"status": "succeeded", "listed": 11, "unchanged": 11}
    assert "test/other/oai:test:4 is not in the repository's list any more" in network.report()
    network.harvester("sites", "edit", "repo", "--origin", "moved")
    assert network.harvest() == {"status": "succeeded", "listed": 11, "inserted": 11}


@on_one_database
def test_a_repository_that_lost_records_as_it_moved_is_reported(network: Network) -> None:
    network.register()
    network.harvest()
    del network.server.records["oai:test:4"]
    network.harvester("sites", "edit", "repo", "--oai", network.server.http.url("/moved"))
    assert network.harvest() == {"status": "succeeded", "listed": 24, "unchanged": 24}
    assert "oai:test:4 is not in the repository's list any more" in network.report()


@on_one_database
def test_a_record_that_changes_out_of_the_window_is_not_missing(network: Network) -> None:
    network.register("--until", "2026-01-20")
    assert network.harvest()["inserted"] == 20
    network.server.put("oai:test:3", title="Toads")
    assert network.harvest("--full") == {"status": "succeeded", "listed": 19, "unchanged": 19}
    assert "list any more" not in network.report()


@on_one_database
def test_a_stopped_run_goes_on_with_the_rest_of_the_list(network: Network) -> None:
    started: list[subprocess.Popen[str]] = []

    def stop(body: bytes, asked: Asked) -> bytes:
        if asked.verb == "ListRecords" and "resumptionToken" in asked.arguments and started:
            started.pop().send_signal(signal.SIGTERM)
            time.sleep(0.5)
        return body

    network.register()
    network.server.tamper = stop
    process = network.harvester.start("run", "--date", "2030-01-01")
    started.append(process)
    process.communicate(timeout=60)
    network.server.tamper = None
    assert "The run was stopped before its end" in network.report()
    network.night = 1
    assert network.harvest()["status"] == "succeeded"
    assert network.held() == ALL


@on_one_database
def test_a_list_that_breaks_off_is_reported_once(network: Network) -> None:
    network.register()
    network.server.odd.add(Odd.SIZE_TOO_HIGH)
    network.harvest()
    assert "records: The list broke off" not in network.report()
    assert "records: The list broke off" not in network.harvester("log", "--run", "1").out


def test_killed_at_the_end_of_a_list_what_is_missing_is_reported(tmp_path: Path, server: OaiServer) -> None:
    network = Network(tmp_path, server)
    network.register()
    network.harvest()
    del server.records["oai:test:4"]
    with network.harvester.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER killed BEFORE INSERT ON harvest_log WHEN NEW.harvest_operation_code = 'ListRecordsSuccess' "
            "BEGIN SELECT RAISE(ABORT, 'killed'); END"
        )
    assert network.harvester("run", "--date", "2030-01-02", "--full").code != 0
    with network.harvester.engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER killed")
    network.night += 1
    assert network.harvest()["status"] == "succeeded"
    assert "oai:test:4 is not in the repository's list any more" in network.report()
    network.harvester.close()


def test_no_record_is_missing_from_a_list_that_was_killed_behind_one_that_cannot_be_named(tmp_path: Path) -> None:
    with OaiServer(records=25) as server:
        network = Network(tmp_path, server)
        network.register()
        network.harvest()
        nameless = (
            b"<record><header><datestamp>2026-01-03T00:00:00Z</datestamp></header><metadata><a/></metadata></record>"
        )
        server.records["oai:test:3"].xml = nameless
        network.kill(lambda asked: "!20!" in str(asked.arguments), "2030-01-02", "--site", "repo", "--full")
        assert network.harvest("--full")["status"] == "with-errors"
        assert "1 of the list's records have no identifier" in network.report()
        assert network.harvester.rows("SELECT document_id FROM harvest_document WHERE missing_since IS NOT NULL") == []
        network.harvester.close()


@on_one_database
def test_very_many_missing_records_are_reported_with_their_number(network: Network) -> None:
    for number in range(26, 161):
        network.server.put(f"oai:test:{number}")
    network.register()
    network.harvest()
    network.server.records = {"oai:test:1": network.server.records["oai:test:1"]}
    network.harvest("--full")
    assert "The complete list does not name 159 records that were there before" in network.report()


@on_one_database
def test_identifiers_that_differ_only_by_their_encoding_are_two_records(network: Network) -> None:
    network.server.put("oai:test:a b", title="With a space")
    network.server.put("oai:test:a%20b", title="Without")
    network.register()
    assert network.harvest() == {"status": "succeeded", "listed": 27, "inserted": 27}
    assert {"a%20b", "a%2520b"} <= set(network.held())
    assert network.harvest("--full") == {"status": "succeeded", "listed": 27, "unchanged": 27}


@on_one_database
def test_records_that_stay_bad_are_asked_for_a_hundred_a_night(network: Network) -> None:
    for number in range(1, 121):
        network.server.put(f"oai:test:{number}", metadata="")
    network.register()
    assert network.harvest()["invalid"] == 120
    for _night in range(3):
        network.server.forget()
        assert network.harvest() == {"status": "with-errors", "listed": 100, "invalid": 100}
        assert len(network.server.asked("GetRecord")) == 100
    network.server.put("oai:test:7", network.server.records["oai:test:7"].datestamp)
    network.server.put("oai:test:120", network.server.records["oai:test:120"].datestamp)
    network.harvest()
    network.harvest()
    assert set(network.held()) == {"7", "120"}


@on_one_database
def test_a_record_whose_identifier_is_too_long_is_not_asked_for(network: Network) -> None:
    network.register()
    long = "oai:test:" + "x" * 900
    network.server.put(long)
    assert network.harvest() == {"status": "with-errors", "listed": 26, "inserted": 25, "invalid": 1}
    assert network.harvest() == {"status": "with-errors", "listed": 1, "invalid": 1}
    assert "The identifier has more characters than can be kept" in network.report()
    assert network.server.asked("GetRecord") == []
    network.server.delete(long)
    network.harvest()
    network.server.forget()
    assert network.harvest() == {"status": "succeeded"}
    assert network.server.asked("GetRecord") == []


@on_one_database
def test_sites_that_have_records_in_common_are_distinguished_as_they_are_registered(network: Network) -> None:
    network.register()
    assert "in the same format: repo. A record that" in network.register(name="second")


@on_one_database
def test_sites_that_get_records_in_common_are_distinguished_as_one_is_edited(network: Network) -> None:
    network.server.sets = {"frogs": "Frogs", "toads": "Toads"}
    network.register("--set", "frogs")
    network.register("--set", "toads", name="second")
    output = network.harvester("sites", "edit", "second", "--set", "frogs", "--allow-duplicate").out
    assert "in the same format: repo. A record that" in output
    assert "Records that second no longer asks for stay in the target." in output
    for options in (("--every", "2", "--unit", "days"), ("--origin", "other")):
        said = network.harvester("sites", "edit", "second", *options)
        assert said.out.startswith("Changed second")
        assert "in the same format" not in said.out


@on_one_database
def test_what_the_target_refuses_is_not_asked_for_all_over_again_every_night(network: Network) -> None:
    for number in range(26, 131):
        network.server.put(f"oai:test:{number}")
    network.register()
    network.register("--origin", "other", name="second")
    network.harvest()
    network.harvester("target", "transfer", *(f"test/oai_dc/oai:test:{number}" for number in range(1, 131)), "second")
    assert network.harvest("--full")["upload_error"] == 130
    network.server.forget()
    assert network.harvest()["listed"] == 100
    network.harvester("sites", "remove", "second", "--yes")
    assert network.harvest("--full")["unchanged"] == 130


@on_one_database
def test_a_target_that_cannot_delete_costs_the_deletions_alone(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path))
    monkeypatch.setenv("SITE_PASSWORD", "secret")
    with Repository() as remote:
        config = network.harvester.config
        config.write_text(f'{config.read_text()}[target]\nkind = "remote"\nurl = "{remote.url}"\n')
        network.register("--ldapdn", "uid=repo", "--ldappwd", "env:SITE_PASSWORD")
        network.harvest()
        remote.deletes = False
        network.server.delete("oai:test:5")
        network.server.put("oai:test:6", title="Toads")
        assert network.harvest() == {"status": "with-errors", "listed": 2, "updated": 1, "upload_error": 1}
        assert network.harvest() == {"status": "with-errors", "listed": 1, "upload_error": 1}


@on_one_database
def test_a_target_is_asked_of_what_the_list_does_not_name_alone_and_without_its_answer_nothing_is_missing(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path))
    with Repository() as remote:
        config = network.harvester.config
        config.write_text(f'{config.read_text()}[target]\nkind = "remote"\nurl = "{remote.url}"\n')
        network.server.page = 100
        network.register()
        network.harvest()
        asked = remote.asked
        assert network.harvest("--full") == {"status": "succeeded", "listed": 25, "unchanged": 25}
        questions = remote.asked - asked
        del network.server.records["oai:test:4"]
        remote.patience = questions
        network.harvest("--full")
        assert remote.patience < 0
        assert network.harvester.rows("SELECT count(*) FROM harvest_document WHERE missing_since IS NOT NULL") == [(0,)]
        remote.patience, asked = inf, remote.asked
        assert network.harvest("--full") == {"status": "succeeded", "listed": 24, "unchanged": 24}
        assert remote.asked - asked == questions + 1
        assert network.harvester.rows("SELECT count(*) FROM harvest_document WHERE missing_since IS NOT NULL") == [(1,)]


def test_what_the_embedded_target_says_of_a_record_is_what_the_repository_said_last(network: Network) -> None:
    """Also of one whose content has not changed, and of one that was deleted."""
    network.register()
    server = network.server
    server.put("oai:test:3", sets=("a",), about="<x xmlns='urn:x'>old</x>")
    network.harvest()
    server.now += timedelta(days=1)
    changed = server.put("oai:test:3", sets=("b", "c"), about="<x xmlns='urn:x'>new</x>")
    server.delete("oai:test:4")
    assert network.harvest()["unchanged"] == 1
    stamp = f"{changed.datestamp:%Y-%m-%dT%H:%M:%SZ}"
    columns = "revision, datestamp, response_date, sets, about"
    query = f"SELECT {columns} FROM document_origin WHERE identifier = 'oai:test:3'"
    [(revision, datestamp, response_date, sets, about)] = network.harvester.rows(query)
    assert (revision, datestamp, json.loads(sets)) == (1, stamp, ["b", "c"])
    assert response_date > stamp
    assert "new" in about
    assert network.harvester.rows("SELECT document_id, datestamp FROM document_tombstone") == [
        ("test/oai_dc/oai:test:4", stamp)
    ]


@on_one_database
@pytest.mark.parametrize("level", ["strict", "loose"])
@pytest.mark.parametrize("filters", ["", '<filters match="all"><filter xpath="/*"/></filters>'])
def test_records_of_any_size_and_depth_are_taken(network: Network, level: str, filters: str) -> None:
    metadata = {
        "deep": f"<a xmlns='urn:a'>{'<a>' * 300}{'</a>' * 300}</a>",
        "text": f"<a xmlns='urn:a'>{'x' * 11_000_000}</a>",
        "value": f"<a xmlns='urn:a' b='{'y' * 11_000_000}'/>",
    }
    network.server.records.clear()
    for name, written in metadata.items():
        network.server.put(f"oai:test:{name}", metadata=written)
    (network.harvester.folder / "filters.xml").write_text(filters)
    network.register("--validation", level, *(("--filters", "filters.xml") if filters else ()))
    assert network.harvest() == {"status": "succeeded", "listed": 3, "inserted": 3}


@on_one_database
def test_a_deletion_names_the_revision_that_was_there(network: Network) -> None:
    """Not the one of a newer version that the filters left out."""
    server = network.server
    for number in range(1, 26):
        server.put(f"oai:test:{number}", title="Frogs")
    (network.harvester.folder / "filters.xml").write_text(
        '<filters match="all"><filter xpath="/*" regexp="Frogs"/></filters>', encoding="utf-8"
    )
    network.register("--filters", "filters.xml")
    network.harvest()
    server.put("oai:test:3", title="Toads")
    assert network.harvest()["filtered"] == 1
    server.delete("oai:test:3")
    assert network.harvest()["deleted"] == 1
    assert network.harvester.outcomes(3) == {"test/oai_dc/oai:test:3.1": "deleted"}
