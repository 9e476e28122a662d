"""Sites of one source repository with one set each: how they are registered, and that each of them fails alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.oai_network import ALL, ALLOWED, Network
from support.oai_server import OaiServer


@pytest.fixture
def server() -> Iterator[OaiServer]:
    with OaiServer(records=25) as made:
        made.sets = {"a": "A", "b": "B", "c": "C"}
        for number in range(1, 26):
            made.records[f"oai:test:{number}"].sets = ("a" if number < 10 else "b" if number < 14 else "c",)
        yield made


@pytest.fixture
def network(tmp_path: Path, server: OaiServer) -> Iterator[Network]:
    made = Network(tmp_path, server)
    yield made
    made.harvester.close()


def registered(network: Network) -> dict[str, list[str]]:
    """The sites, and the sets of each."""
    sites = json.loads(network.harvester("sites", "list", "--json").out)
    return {site["name"]: site["oai"]["sets"] for site in sites}


def add(network: Network, *options: str) -> Any:
    return network.harvester("sites", "add", "repo", "--oai", network.server.base_url, *options)


# -- registering


def test_several_sets_are_registered_as_sites_of_one_set_each(network: Network) -> None:
    asked_before = len(network.server.answered)
    said = add(network, "--set", "a", "--set", "b", "--set", "a")
    assert said.code == 0, said.err
    assert registered(network) == {"repo-a": ["a"], "repo-b": ["b"]}
    assert [line.partition(":")[0] for line in said.out.splitlines() if line.startswith("Registered")] == [
        "Registered repo-a",
        "Registered repo-b",
    ]
    assert "run --site repo-a --site repo-b --dry-run" in said.out
    assert said.out.count("answers, in OAI-PMH") == said.out.count("Contacts, as") == 1
    assert [each.verb for each in network.server.answered[asked_before:]].count("ListSets") == 1
    run = network.harvester.run("2030-01-01")
    assert {site["site_name"]: site["inserted"] for site in run["sites"]} == {"repo-a": 9, "repo-b": 4}


def test_one_set_is_a_site_of_the_name_that_is_given(network: Network) -> None:
    assert add(network, "--set", "a").code == 0
    assert registered(network) == {"repo": ["a"]}


@pytest.mark.parametrize(
    ("before", "specs", "words"),
    [
        ("other", ("a", "thesis"), "The repository has no set 'thesis'; there are 'a', 'b', 'c'."),
        ("repo-b", ("a", "b"), "There is a site named 'repo-b' already"),
        ("other", ("a", "c"), "The site 'other' harvests this repository for the same format and set already"),
        ("other", ("a", "b b"), "'b b' is not a setSpec"),
    ],
    ids=["no-set", "name-taken", "twice", "no-setspec"],
)
def test_nothing_is_registered_where_one_of_the_sets_cannot_be(
    network: Network, before: str, specs: tuple[str, ...], words: str
) -> None:
    said = network.harvester("sites", "add", before, "--oai", network.server.base_url, "--set", "c")
    assert said.code == 0
    said = add(network, *(part for spec in specs for part in ("--set", spec)))
    assert said.code == 2
    assert words in said.err
    assert "Registered" not in said.out
    assert registered(network) == {before: ["c"]}


def test_the_names_of_sets_make_names_of_sites_that_are_valid_and_differ(network: Network) -> None:
    long = "x" * 200
    specs = ("col:frogs", "it's", f"{long}1", f"{long}2")
    said = add(
        network, "--unasked", "--contact", "a@example.org", *(part for spec in specs for part in ("--set", spec))
    )
    assert said.code == 0, said.err
    names = {sets[0]: name for name, sets in registered(network).items()}
    assert (names["col:frogs"], names["it's"]) == ("repo-col:frogs", "repo-it's")
    assert len({*names.values()}) == 4
    assert max(map(len, names.values())) == 100
    for spec, name in names.items():
        assert json.loads(network.harvester("sites", "show", name, "--json").out)["oai"]["sets"] == [spec]


def test_an_edit_takes_one_set(network: Network) -> None:
    add(network, "--set", "a")
    said = network.harvester("sites", "edit", "repo", "--set", "b", "--set", "c")
    assert (said.code, "a site has one set: register another site" in said.err) == (2, True)
    said = network.harvester("sites", "edit", "repo", "--set", "b")
    assert "oai set: a -> b" in said.out
    assert "\noai set b\n" in re.sub(" +", " ", network.harvester("sites", "show", "repo").out)


@pytest.mark.parametrize("command", ["list", "validate"])
def test_a_look_at_a_repository_takes_one_set(network: Network, command: str) -> None:
    said = network.harvester("oai", command, network.server.base_url, "--set", "b", "--set", "c")
    assert (said.code, "give one, and run the command for each set" in said.err) == (2, True)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_file_of_sites_with_two_sets_in_one_is_refused(network: Network, form: str) -> None:
    add(network, "--set", "a")
    exported = network.harvester("sites", "export", *(("--csv",) if form == "csv" else ()))
    file = network.harvester.folder / f"sites.{form}"
    if form == "csv":
        file.write_text(exported.out.replace(",a,", ",a b,"))
    else:
        stored = json.loads(exported.out)
        stored["sites"][0]["oai"]["sets"] = ["a", "b"]
        file.write_text(json.dumps(stored))
    said = network.harvester("sites", "import", str(file))
    assert said.code == 2
    assert "a site has one set, and this one has 2 (a, b): write one site for each set, each with a name" in said.err
    assert registered(network) == {"repo": ["a"]}


# -- harvests


def refused(server: OaiServer) -> None:
    server.refuses = lambda asked: "!b!" in str(asked.arguments) or asked.arguments.get("set") == "b"


def said_to_be_wrong(server: OaiServer) -> None:
    error = b'<error code="badArgument">not that set</error>'
    server.tamper = lambda body, asked: (
        re.sub(rb"<(List.*</List\w+|error.*</error)>", error, body, flags=re.DOTALL)
        if asked.arguments.get("set") == "b"
        else body
    )


def forbidden(server: OaiServer) -> None:
    refused(server)
    server.poisoned = (b"no", 403, {})


def no_longer_named(server: OaiServer) -> None:
    server.tamper = lambda body, asked: re.sub(rb"<set><setSpec>b</setSpec>.*?</set>", b"", body, flags=re.DOTALL)


@pytest.mark.parametrize("breaks_off", [refused, said_to_be_wrong, forbidden, no_longer_named])
def test_the_sites_of_other_sets_are_harvested_where_the_list_of_one_fails(
    network: Network, breaks_off: Callable[[OaiServer], None]
) -> None:
    server = network.server
    assert add(network, "--set", "a", "--set", "b", "--set", "c", "--origin", "test", *ALLOWED).code == 0
    breaks_off(server)
    others = {number for number in ALL if "b" not in server.records[f"oai:test:{number}"].sets}
    # A record that is deleted may be in the set b by now, unless that is gone.
    waiting: set[str] = set()
    for night, title in enumerate(("Toads", "Newts"), 1):
        run = network.harvester.run(f"2030-01-0{night}")
        failed = {site["site_name"]: site["status"] for site in run["sites"] if site["status"] != "succeeded"}
        assert failed.pop("repo-b") in ("list-failed", "incomplete")
        assert failed == ({"repo-a": "with-errors"} if waiting else {})
        assert set(network.held()) == others | waiting
        server.delete(f"oai:test:{night}")
        others.discard(str(night))
        waiting |= set() if breaks_off is no_longer_named else {str(night)}
        for number in sorted(others):
            server.put(f"oai:test:{number}", title=title, sets=server.records[f"oai:test:{number}"].sets)
    server.tamper, server.refuses = None, lambda asked: False
    run = network.harvester.run("2030-01-03")
    assert {site["status"] for site in run["sites"]} == {"succeeded"}
    assert network.held() == {number: 3 if number in others else 1 for number in ALL if number not in ("1", "2")}
