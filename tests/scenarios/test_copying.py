"""`metaharvest target copy`: from one target into another, and the harvest goes on there as if nothing had happened."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from metaharvest.database.engine import run_lock
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.oai_network import Network
from support.oai_server import OaiServer
from support.provider import OAI, asked
from support.remote_target import Repository, installed
from support.waiting import wait_until

TESTS = Path(__file__).parents[1]

only_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""For what does not depend on the database."""


@pytest.fixture
def repository(harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository that the settings name as `new`."""
    place = installed(tmp_path)
    monkeypatch.syspath_prepend(place)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(place), str(TESTS))))
    with Repository() as running:
        add(harvester, f'[targets.new]\nkind = "remote"\nurl = "{running.url}"\n')
        yield running


def add(harvester: Harvester, settings: str) -> None:
    """Write a further section into the settings file."""
    harvester.config.write_text(f"{harvester.config.read_text()}{settings}", encoding="utf-8")


def switch_to(harvester: Harvester, repository: Repository) -> None:
    """From now on, harvests go into this repository."""
    add(harvester, f'[target]\nkind = "remote"\nurl = "{repository.url}"\n')


def harvested(harvester: Harvester, server: HttpServer) -> None:
    """Two sites, the documents of the first with several revisions, in the embedded target."""
    assert harvester.add_site("alder", publish(server, "a.1.1", "a.1.2", "a.1.10", "a.2.1", path="/alder.xml")) == 1
    assert harvester.add_site("birch", publish(server, "b.1.3", "b.2.1", path="/birch.xml")) == 2
    assert harvester.run("2026-11-20")["status"] == "succeeded"


HARVESTED = {docid: eml(docid) for docid in ("a.1.1", "a.1.2", "a.1.10", "a.2.1", "b.1.3", "b.2.1")}


def copy(harvester: Harvester, *arguments: str) -> dict[str, Any]:
    """`target copy --json`: what it printed, with its exit code, after its totals were seen to balance."""
    said = harvester("target", "copy", *arguments, "--json")
    assert said.out, said.err
    told: dict[str, Any] = json.loads(said.out)
    ends = ("copied", "there_already", "different", "refused", "unreadable", "left")
    assert sum(told[end] for end in ends) == told["read"]
    return {**told, "exit_code": said.code}


def outcome(told: dict[str, Any]) -> dict[str, int]:
    """The totals that are not 0."""
    ends = ("copied", "there_already", "different", "refused", "unreadable", "left")
    return {end: told[end] for end in ends if told[end]}


def problems(told: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """docid -> how it ended, and the rule."""
    return {f"{each['document_id']}.{each['revision']}": (each["ended"], each["rule"]) for each in told["problems"]}


# -- there, and the harvest goes on


@pytest.mark.quick
def test_every_revision_is_copied_with_its_bytes_in_ascending_order_and_a_second_copy_finds_all_there(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    told = copy(harvester, "embedded", "new")
    assert (told["exit_code"], told["documents"], outcome(told)) == (0, 4, {"copied": 6})
    assert (told["from"], told["to"]) == ("the embedded repository", "a remote repository")
    assert told["bytes"] == sum(map(len, HARVESTED.values()))
    assert repository.documents == HARVESTED
    order = [docid for docid in repository.received if docid.startswith("a.1.")]
    assert order == ["a.1.1", "a.1.2", "a.1.10"]
    told = copy(harvester, "target", "new")
    assert (told["exit_code"], outcome(told)) == (0, {"there_already": 6})
    assert len(repository.received) == 6


def test_the_next_harvest_into_the_new_target_finds_everything_there_and_whose_it_is(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    assert copy(harvester, "embedded", "new")["exit_code"] == 0
    switch_to(harvester, repository)
    server.requests.clear()
    run = harvester.run("2026-11-21")
    assert [(site["status"], site["unchanged"]) for site in run["sites"]] == [("succeeded", 4), ("succeeded", 2)]
    assert not [each.path for each in server.requests if each.path not in ("/alder.xml", "/birch.xml")]
    # A site that lists what belongs to another is refused, as it was before.
    publish(server, "b.1.3", "b.2.1", "a.2.2", path="/birch.xml")
    run = harvester.run("2026-11-22")
    assert harvester.outcomes(run["run_id"]) == {"a.2.2": "upload-error"}
    assert ("a.2", "error", "target.other-site") in harvester.findings(run["run_id"])
    # The site itself goes on.
    publish(server, "a.1.11", "a.2.2", path="/alder.xml")
    run = harvester.run("2026-11-23", "--site", "alder")
    assert harvester.outcomes(run["run_id"]) == {"a.1.11": "updated", "a.2.2": "updated"}
    assert repository.documents == {**HARVESTED, "a.1.11": eml("a.1.11"), "a.2.2": eml("a.2.2")}


def test_back_into_the_embedded_target_all_stays_as_it_was(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    switch_to(harvester, repository)
    harvested(harvester, server)
    assert harvester.held() == {}
    told = copy(harvester, "target", "embedded")
    assert (told["exit_code"], outcome(told)) == (0, {"copied": 6})
    assert harvester.held() == HARVESTED
    harvester.config.write_text(harvester.config.read_text().replace("[target]", "[targets.old]"))
    server.requests.clear()
    run = harvester.run("2026-11-21")
    assert [(site["status"], site["unchanged"]) for site in run["sites"]] == [("succeeded", 4), ("succeeded", 2)]
    assert not [each.path for each in server.requests if each.path not in ("/alder.xml", "/birch.xml")]
    publish(server, "b.1.3", "b.2.1", "a.2.2", path="/birch.xml")
    assert harvester.outcomes(harvester.run("2026-11-22")["run_id"]) == {"a.2.2": "upload-error"}


@only_sqlite
def test_a_copied_document_can_be_transferred_and_stays_so(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    assert harvester("target", "transfer", "a.2", "birch").code == 0
    copy(harvester, "embedded", "new")
    switch_to(harvester, repository)
    assert json.loads(harvester("target", "show", "a.2", "--json").out)["site"] == "birch"
    run = harvester.run("2026-11-21", "--site", "alder")
    assert harvester.outcomes(run["run_id"]) == {"a.2.1": "upload-error"}
    copy(harvester, "target", "embedded")
    assert harvester("target", "transfer", "a.2", "alder").code == 0
    assert outcome(copy(harvester, "embedded", "target")) == {"there_already": 6}


# -- what is not copied


@only_sqlite
def test_what_the_target_has_with_other_bytes_or_cannot_take_is_told_and_left_alone(
    harvester: Harvester, server: HttpServer, repository: Repository, tmp_path: Path
) -> None:
    harvested(harvester, server)
    repository.documents |= {"a.1.2": b"<other/>", "b.1.3": b"<another/>"}
    repository.refused_documents = {"b.2.1"}
    harvester.rows("UPDATE document_revision SET content = CAST(content || 'x' AS BLOB) WHERE document_id = 'a.2'")
    table = tmp_path / "not-copied.csv"
    told = copy(harvester, "embedded", "new", "--csv", str(table))
    assert told["exit_code"] == 1
    assert outcome(told) == {"copied": 1, "different": 2, "refused": 2, "unreadable": 1}
    expected = {
        "a.1.1": ("refused", "copy.superseded"),
        "a.1.2": ("different", "copy.different"),
        "a.2.1": ("unreadable", "copy.unreadable"),
        "b.1.3": ("different", "copy.different"),
        "b.2.1": ("refused", "target.refused"),
    }
    assert problems(told) == expected
    assert all(each["message"].endswith(".") and each["remedy"].endswith(".") for each in told["problems"])
    rows = list(csv.DictReader(table.read_text("utf-8-sig").splitlines()))
    assert {row["docid"]: (row["ended"], row["rule"]) for row in rows} == expected
    assert repository.documents == {"a.1.2": b"<other/>", "b.1.3": b"<another/>", "a.1.10": eml("a.1.10")}
    said = harvester("target", "copy", "embedded", "new")
    assert said.code == 1
    lines = said.out.splitlines()
    assert "other bytes there  2" in lines
    assert any(
        line.startswith("b.1.3: The target has other bytes under b.1.3; they were left alone.") for line in lines
    )


@only_sqlite
def test_of_many_problems_people_see_some_and_the_table_has_all(
    harvester: Harvester, server: HttpServer, repository: Repository, tmp_path: Path
) -> None:
    docids = [f"a.{number}.1" for number in range(30)]
    harvester.add_site("alder", publish(server, *docids))
    harvester.run("2026-11-20")
    repository.refused_documents = set(docids)
    said = harvester("target", "copy", "embedded", "new", "--csv", str(tmp_path / "all.csv"))
    assert len([line for line in said.out.splitlines() if "does not want" in line]) == 20
    assert f"And 10 more; {tmp_path / 'all.csv'} has all of them." in said.out
    assert len((tmp_path / "all.csv").read_text("utf-8-sig").splitlines()) == 31


@only_sqlite
def test_a_document_that_belongs_to_another_site_there_is_refused(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    harvester.rows("INSERT INTO document_owner (document_id, site_schedule_id) VALUES ('a.2', 2)")
    told = copy(harvester, "embedded", "new")
    assert (outcome(told), problems(told)) == ({"copied": 5, "refused": 1}, {"a.2.1": ("refused", "target.other-site")})
    assert "belongs to the site 'birch'" in told["problems"][0]["message"]
    # What belongs to a site that is registered no longer is free.
    harvester("sites", "remove", "birch", "--yes")
    assert outcome(copy(harvester, "embedded", "new")) == {"copied": 1, "there_already": 5}
    assert harvester.rows("SELECT site_schedule_id FROM document_owner WHERE document_id = 'a.2'") == [(1,)]


@only_sqlite
def test_what_got_there_after_the_target_was_asked_is_there_already_or_refused(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    """What a copy that was killed has sent may still be under way."""
    harvested(harvester, server)
    repository.documents |= {"b.1.3": eml("b.1.3"), "b.2.1": b"<other/>"}
    repository.hidden = {"b.1.3", "b.2.1"}
    told = copy(harvester, "embedded", "new")
    assert outcome(told) == {"copied": 4, "there_already": 1, "refused": 1}
    assert problems(told) == {"b.2.1": ("refused", "target.exists")}


@only_sqlite
def test_a_login_that_is_refused_costs_the_documents_of_its_site_alone(
    harvester: Harvester, server: HttpServer, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SITE_PASSWORD", "secret")
    harvested(harvester, server)
    for name in ("alder", "birch"):
        assert harvester("sites", "edit", name, "--ldapdn", f"uid={name}", "--ldappwd", "env:SITE_PASSWORD").code == 0
    repository.refused = {"uid=alder"}
    told = copy(harvester, "embedded", "new")
    assert outcome(told) == {"copied": 2, "refused": 4}
    assert set(problems(told).values()) == {("refused", "target.login")}
    assert repository.logins == ["uid=alder", "uid=birch"]
    assert set(repository.documents) == {"b.1.3", "b.2.1"}


# -- as much as was asked for


@only_sqlite
def test_a_rehearsal_writes_nothing(harvester: Harvester, server: HttpServer, repository: Repository) -> None:
    harvested(harvester, server)
    repository.documents["a.2.1"] = eml("a.2.1")
    with run_lock(harvester.engine):
        told = copy(harvester, "embedded", "new", "--dry-run")
    assert (told["exit_code"], told["dry_run"]) == (0, True)
    assert outcome(told) == {"copied": 5, "there_already": 1}
    assert repository.received == []
    assert harvester.rows("SELECT * FROM document_owner") == []
    said = harvester("target", "copy", "embedded", "new", "--dry-run")
    assert "would be copied  5" in said.out
    assert "This was a rehearsal: nothing was written." in said.out
    repository.documents.clear()
    assert outcome(copy(harvester, "new", "embedded", "--dry-run")) == {}
    assert harvester.held() == HARVESTED


@only_sqlite
def test_no_more_revisions_are_copied_than_were_asked_for_and_the_same_command_goes_on(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    for number in (2, 4, 6):
        told = copy(harvester, "embedded", "new", "--limit", "2")
        # 0 means that all is there.
        assert (told["exit_code"], told["copied"], told["reached_limit"]) == (0 if number == 6 else 1, 2, True)
        assert len(repository.documents) == number
        assert told["left"] == 6 - number
    assert outcome(copy(harvester, "embedded", "new", "--limit", "2")) == {"there_already": 6}
    assert repository.documents == HARVESTED


@only_sqlite
def test_a_copy_that_no_answer_can_have_has_no_format_at_the_provider(
    harvester: Harvester, repository: Repository
) -> None:
    repository.documents |= {"c.1.1": eml("c.1.1"), "c.2.1": b"<!DOCTYPE eml [<!ENTITY e 'x'>]>" + eml("c.2.1")}
    assert outcome(copy(harvester, "new", "embedded")) == {"copied": 2}
    types = dict(harvester.rows("SELECT document_id, document_type FROM catalogue_document"))
    assert types["c.1"]
    assert types["c.2"] == ""


@only_sqlite
def test_what_was_not_even_read_when_the_limit_was_reached_may_have_to_be_copied(
    harvester: Harvester, repository: Repository
) -> None:
    """500 documents are read at a time."""
    documents = {f"a.{number}.1": b"<eml/>" for number in range(501)}
    repository.documents |= documents
    said = harvester("target", "copy", "new", "embedded", "--limit", "500")
    assert said.code == 1
    assert "No more than 500 were asked for; the same command goes on with the rest." in said.out
    told = copy(harvester, "new", "embedded", "--limit", "1")
    assert (told["exit_code"], told["copied"], told["reached_limit"]) == (0, 1, True)
    assert harvester.held() == documents


@only_sqlite
def test_the_documents_of_one_site_alone_may_be_copied(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    told = copy(harvester, "embedded", "new", "--site", "birch")
    assert (told["site"], outcome(told)) == ("birch", {"copied": 2})
    assert set(repository.documents) == {"b.1.3", "b.2.1"}
    said = harvester("target", "copy", "embedded", "new", "--site", "elder")
    assert (said.code, said.out) == (2, "")
    assert "There is no site named 'elder'." in said.err


@only_sqlite
def test_a_copy_to_target_goes_where_the_settings_put_the_documents_of_each_site(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    with Repository() as own:
        switch_to(harvester, repository)
        add(harvester, f'[sites.birch.target]\nkind = "remote"\nurl = "{own.url}"\n')
        assert outcome(copy(harvester, "embedded", "target")) == {"copied": 6}
        assert {docid.partition(".")[0] for docid in repository.documents} == {"a"}
        assert set(own.documents) == {"b.1.3", "b.2.1"}
        run = harvester.run("2026-11-21")
        assert [site["unchanged"] for site in run["sites"]] == [4, 2]
        assert outcome(copy(harvester, "target", "embedded", "--site", "birch")) == {"there_already": 2}


# -- mistakes


@only_sqlite
@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("embedded", "target"), "'embedded' and 'target' are the same target: name two."),
        (("embedded", "old"), "There is no target 'old'. Known are: target, embedded, new, nothing."),
        (("embedded", "nothing"), "The target 'nothing' keeps nothing: documents cannot be copied into it."),
    ],
)
def test_a_copy_between_targets_that_make_no_sense_is_refused_with_a_sentence(
    harvester: Harvester, repository: Repository, names: tuple[str, str], sentence: str
) -> None:
    add(harvester, '[targets.nothing]\nkind = "none"\n')
    said = harvester("target", "copy", *names)
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err


def test_no_copy_is_made_while_a_run_is_under_way_and_no_run_while_one_is_made(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    with run_lock(harvester.engine):
        said = harvester("target", "copy", "embedded", "new")
        assert (said.code, said.out) == (75, "")
        assert "is under way" in said.err
        said = harvester("run")
        assert said.code == 75
        assert "(`target copy`)" in said.err
    assert repository.documents == {}


@only_sqlite
def test_a_table_that_cannot_be_written_is_told_before_anything_is_copied(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    said = harvester("target", "copy", "embedded", "new", "--csv", "no/such/folder/table.csv")
    assert said.code == 1
    assert "no/such/folder/table.csv" in said.err
    assert repository.received == []


# -- targets that stop answering, and copies that are ended


def numbered(harvester: Harvester, server: HttpServer, number: int) -> dict[str, bytes]:
    """A site with so many documents, two revisions each, in the target of the settings; what that holds then."""
    docids = [f"a.{each}.{revision}" for each in range(number // 2) for revision in (1, 2)]
    harvester.add_site("alder", publish(server, *docids))
    harvester.run("2026-11-20")
    return {docid: eml(docid) for docid in docids}


@only_sqlite
@pytest.mark.parametrize("patience", [0, 1, 20])
def test_a_target_that_stops_answering_ends_the_copy_with_a_sentence_and_the_same_command_goes_on(
    harvester: Harvester, server: HttpServer, repository: Repository, patience: int
) -> None:
    documents = numbered(harvester, server, 60)
    repository.patience = patience
    told = copy(harvester, "embedded", "new")
    assert told["exit_code"] == 1
    assert told["left"] >= 30
    assert set(outcome(told)) <= {"copied", "left"}
    assert told["cut_short"].startswith("a remote repository: The repository does not answer: ")
    assert told["cut_short"].endswith("What was copied is there; the same command goes on with the rest.")
    repository.patience = 0
    said = harvester("target", "copy", "embedded", "new")
    assert said.code == 1
    assert said.err.count("does not answer") == 1
    assert "does not answer" not in said.out
    repository.patience = inf
    told = copy(harvester, "embedded", "new")
    assert (told["exit_code"], told["left"]) == (0, 0)
    assert repository.documents == documents
    assert len(repository.received) == len(documents)


@only_sqlite
@pytest.mark.parametrize("patience", [0, 1, 20])
def test_so_does_a_source(harvester: Harvester, server: HttpServer, repository: Repository, patience: int) -> None:
    switch_to(harvester, repository)
    documents = numbered(harvester, server, 60)
    repository.patience = patience
    told = copy(harvester, "new", "embedded")
    assert told["exit_code"] == 1
    assert told["cut_short"].startswith("a remote repository: The repository does not answer: ")
    held = harvester.held()
    assert len(held) == told["copied"]
    # Never a revision without those below it.
    assert not [docid for docid in held if docid.endswith(".2") and f"{docid[:-2]}.1" not in held]
    repository.patience = inf
    told = copy(harvester, "new", "embedded")
    assert (told["exit_code"], told["left"]) == (0, 0)
    assert harvester.held() == documents


@only_sqlite
def test_from_a_target_that_does_not_list_what_it_holds_nothing_is_copied(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    repository.lists_all = False
    told = copy(harvester, "new", "embedded")
    assert (told["exit_code"], told["read"]) == (1, 0)
    sentence = "The remote repository does not list what it holds. Copy from another one."
    assert told["cut_short"] == f"a remote repository: {sentence}"
    said = harvester("target", "list", "--target", "new")
    assert (said.code, said.out, said.err) == (1, "", f"{sentence}\n")
    assert outcome(copy(harvester, "embedded", "new")) == {"copied": 6}


@only_sqlite
def test_several_documents_are_sent_side_by_side_but_never_two_revisions_of_one(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    documents = numbered(harvester, server, 80)
    assert outcome(copy(harvester, "embedded", "new")) == {"copied": 80}
    assert repository.documents == documents
    assert 2 <= repository.most_at_once <= 4
    assert repository.clashes == []


def killed(harvester: Harvester, repository: Repository, *arguments: str) -> int:
    """Kill a copy after the repository was asked a number of times, by chance; 1 if it had not come to its end."""
    asked = repository.asked + random.randint(1, 150)
    with harvester.start("target", "copy", *arguments) as process:
        while process.poll() is None and repository.asked < asked:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    return process.returncode == -signal.SIGKILL


@only_sqlite
def test_a_copy_that_is_killed_again_and_again_loses_nothing_and_doubles_nothing(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    documents = numbered(harvester, server, 160)
    assert sum(killed(harvester, repository, "embedded", "new") for _ in range(3))
    time.sleep(0.1)  # the repository stores what it was receiving
    told = copy(harvester, "embedded", "new")
    assert (told["exit_code"], told["copied"] + told["there_already"]) == (0, 160)
    assert repository.documents == documents
    assert len(repository.received) == 160
    assert repository.clashes == []
    assert harvester.rows("SELECT count(*) FROM document_owner") == [(80,)]


@only_sqlite
def test_so_does_one_into_the_embedded_target(harvester: Harvester, repository: Repository) -> None:
    documents = {f"a.{number}.{revision}": b"<eml/>" for number in range(400) for revision in (1, 2)}
    repository.documents |= documents
    assert sum(killed(harvester, repository, "new", "embedded") for _ in range(3))
    told = copy(harvester, "new", "embedded")
    assert (told["exit_code"], told["copied"] + told["there_already"]) == (0, 800)
    assert harvester.held() == documents


@only_sqlite
def test_a_signal_ends_a_copy_in_order(harvester: Harvester, server: HttpServer, repository: Repository) -> None:
    documents = numbered(harvester, server, 160)
    with harvester.start("target", "copy", "embedded", "new", "--json") as process:
        wait_until(lambda: repository.received)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    told = json.loads(out)
    assert (process.returncode, err) == (130, "")
    assert told["cut_short"] == (
        "The copy was stopped. What was copied is there; the same command goes on with the rest."
    )
    assert told["copied"] == len(repository.documents) > 0
    assert told["copied"] + told["left"] == told["read"]
    assert copy(harvester, "embedded", "new")["exit_code"] == 0
    assert repository.documents == documents
    assert len(repository.received) == 160


@only_sqlite
def test_what_a_target_refuses_for_good_can_be_accepted_and_the_copy_ends_with_0(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    repository.refused_documents = {"b.2.1"}
    assert copy(harvester, "embedded", "new")["exit_code"] == 1
    said = harvester("target", "copy", "embedded", "new")
    assert said.code == 1
    assert "1 revision was not accepted by " in said.out
    assert "All else is there: if that is right, add --accept-refused" in said.out
    said = harvester("target", "copy", "embedded", "new", "--accept-refused")
    assert said.code == 0
    assert "b.2.1: " in said.out
    assert "1 revision was not accepted by " in said.out


@only_sqlite
def test_to_accept_what_is_refused_hides_nothing_else(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    harvested(harvester, server)
    repository.refused_documents, repository.documents = {"b.2.1"}, {"a.2.1": b"<other/>"}
    answer = copy(harvester, "embedded", "new", "--accept-refused")
    assert (answer["exit_code"], answer["refused"], answer["different"]) == (1, 1, 1)


def test_records_that_are_copied_into_the_embedded_target_are_published_as_harvested(tmp_path: Path) -> None:
    def published(network: Network) -> str:
        with asked(network.harvester) as ask:
            root = ask("ListRecords", metadataPrefix="oai_dc")
        for each in root.iter(f"{OAI}datestamp", f"{OAI}responseDate"):
            each.text = ""
        return re.sub(r'harvestDate="[^"]*"', "", etree.tostring(root).decode())

    with OaiServer(records=0) as server:
        for number, identifier in enumerate(("oai:a.example.org:1", "2 % \u00e4")):
            server.put(identifier, sets=(f"set{number}",))
        (tmp_path / "direct").mkdir()
        direct = Network(tmp_path / "direct", server)
        (tmp_path / "moved").mkdir()
        moved = Network(tmp_path / "moved", server)
        settings = moved.harvester.config.read_text()
        moved.harvester.config.write_text(f'{settings}\n[target]\nkind = "folder"\nfolder = "documents"\n')
        for network in (direct, moved):
            network.register()
            network.harvest()
            network.harvest("--full")
        assert copy(moved.harvester, "target", "embedded")["copied"] == 2
        moved.harvester.config.write_text(settings)
        assert moved.harvest("--full") == {"status": "succeeded", "listed": 2, "unchanged": 2}
        assert "originDescription" in published(direct)
        assert published(moved) == published(direct)
        server.put("oai:a.example.org:1", title="changed")
        for network in (direct, moved):
            network.harvest()
        assert published(moved) == published(direct)
        assert published(moved).count("<header") == 2
        for network in (direct, moved):
            network.harvester.close()
