"""`[target] kind = "none"`: a whole network is rehearsed night after night, and everybody is told that it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.databases import TestDatabase
from support.harvester import SETTINGS, Harvester, eml, publish
from support.http_server import HttpServer
from support.mails import text_of
from support.oai_server import OaiServer

NONE = '[target]\nkind = "none"\n'
TOLD = "Nothing was uploaded: no repository is set, so documents were only fetched and checked."

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def harvester(tmp_path: Path, database: TestDatabase) -> Iterator[Harvester]:
    """An installation without a repository."""
    installed = Harvester(tmp_path, SETTINGS + NONE, database)
    yield installed
    installed.close()


def switch(harvester: Harvester, target: str) -> None:
    """Have another section [target]."""
    settings = harvester.config.read_text(encoding="utf-8")
    before = settings[settings.index("[target]") :].partition("\n[")[0]
    harvester.config.write_text(settings.replace(before, target.strip()), encoding="utf-8")


def words(harvester: Harvester, recipient: str, day: str = "2026-11-20") -> str:
    """The text of the mail to somebody about that day."""
    [mail] = [mail for mail in harvester.mails() if mail["To"] == recipient and f"({day})" in mail["Subject"]]
    return " ".join(text_of(mail).split())


def bad(docid: str) -> bytes:
    return eml(docid).replace(b"<title>", b"<titel>").replace(b"</title>", b"</titel>")


@pytest.mark.quick
@on_sqlite
def test_everything_is_fetched_and_checked_and_all_are_told_that_nothing_was_uploaded(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", "a.1.2", "a.2.1", also=[("a.3.1", server.serve("/bad.xml", bad("a.3.1")))])
    harvester.add_site("site", url)
    said = harvester("run", "--date", "2026-11-20")
    assert said.code == 0
    assert TOLD in said.out
    assert {"/a.1.1.xml", "/a.1.2.xml", "/a.2.1.xml", "/bad.xml"} <= {asked.path for asked in server.requests}
    assert harvester.held() == {}
    assert harvester.rows("SELECT * FROM document_owner") == []
    of_site, of_run = (words(harvester, who) for who in ("site@example.org", "steward@example.org"))
    assert "2 would be added, 1 would be updated and 1 is not valid." in of_site
    for text in (of_site, of_run):
        assert TOLD in text
        assert "Central repository: none: documents are fetched and checked, and go nowhere" in text
        assert "were added" not in text
    assert harvester.subjects() == [
        "[Test network] 1 site: 1 with errors; 2 new, 1 updated, nothing was uploaded (2026-11-20)",
        "[Test network] site: 1 error, 2 new, 1 updated, nothing was uploaded (2026-11-20)",
    ]
    [html] = [mail.get_body(("html",)) for mail in harvester.mails() if mail["To"] == "site@example.org"]
    assert html is not None
    assert TOLD in html.get_content()
    messages = [message for (message,) in harvester.rows("SELECT message FROM harvest_log WHERE outcome IS NOT NULL")]
    assert sorted(messages)[:3] == [
        "a.1.1 would be inserted; nothing was uploaded.",
        "a.1.2 would be updated; nothing was uploaded.",
        "a.2.1 would be inserted; nothing was uploaded.",
    ]


@on_sqlite
def test_every_night_is_like_the_first(harvester: Harvester, server: HttpServer) -> None:
    """An unchanged list is no reason to leave its documents alone: a rehearsal is meant to look at them."""
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    for night, day in enumerate(("2026-11-20", "2026-11-21", "2026-11-22"), start=1):
        run = harvester.run(day)
        [site] = run["sites"]
        assert (site["status"], site["inserted"], site["unchanged"]) == ("succeeded", 2, 0)
        assert len(server.asked("/a.1.1.xml")) == night
        assert (site["next_harvest"], site["rehearsal"], run["rehearsal"]) == (None, True, True)


@pytest.mark.parametrize(
    ("target", "held"),
    [
        ('[target]\nkind = "embedded"\n', ["a.1.1", "a.1.2", "a.2.1"]),
        ('[target]\nkind = "folder"\nfolder = "repository"\n', ["a.1.2", "a.2.1"]),
    ],
    ids=["embedded", "folder"],
)
def test_once_there_is_a_repository_everything_goes_in(
    harvester: Harvester, server: HttpServer, target: str, held: list[str]
) -> None:
    """The lists are those of the nights before, and the ledger says of each document that it went in."""
    harvester.add_site("site", publish(server, "a.1.1", "a.1.2", "a.2.1"))
    harvester.run("2026-11-20")
    harvester.run("2026-11-21")
    switch(harvester, target)
    [site] = harvester.run("2026-11-22")["sites"]
    assert (site["status"], site["inserted"], site["updated"]) == ("succeeded", 2, 1)
    listed = json.loads(harvester("target", "list", "--json").out)
    highest = sorted(f"{each['document_id']}.{each['revision']}" for each in listed)
    assert highest == [docid for docid in held if docid != "a.1.1"]
    assert harvester("target", "get", "a.1.1").out == eml("a.1.1").decode()
    [site] = harvester.run("2026-11-23")["sites"]
    assert (site["unchanged"], site["inserted"], site["updated"]) == (3, 0, 0)
    assert "Nothing was uploaded" in words(harvester, "steward@example.org", "2026-11-21")
    assert "Nothing was uploaded" not in words(harvester, "steward@example.org", "2026-11-22")


@on_sqlite
def test_a_repository_that_is_switched_off_for_a_night_is_taken_up_where_it_was(
    harvester: Harvester, server: HttpServer
) -> None:
    switch(harvester, '[target]\nkind = "embedded"\n')
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    switch(harvester, NONE)
    publish(server, "a.1.1", "a.1.2", "a.2.1")
    [site] = harvester.run("2026-11-21")["sites"]
    assert (site["inserted"], site["updated"]) == (2, 1)
    switch(harvester, '[target]\nkind = "embedded"\n')
    [site] = harvester.run("2026-11-22")["sites"]
    assert (site["unchanged"], site["inserted"], site["updated"]) == (1, 1, 1)
    assert set(harvester.held()) == {"a.1.1", "a.1.2", "a.2.1"}


@on_sqlite
def test_one_site_is_rehearsed_while_the_others_are_harvested(harvester: Harvester, server: HttpServer) -> None:
    switch(harvester, '[target]\nkind = "embedded"\n[sites."new".target]\nkind = "none"\n')
    harvester.add_site("old", publish(server, "a.1.1", path="/old.xml"))
    harvester.add_site("new", publish(server, "b.1.1", path="/new.xml"))
    said = harvester("run", "--date", "2026-11-20")
    whose = "Nothing of new was uploaded: no repository is set, so documents were only fetched and checked."
    assert whose in said.out
    assert set(harvester.held()) == {"a.1.1"}
    assert TOLD in words(harvester, "new@example.org")
    assert "uploaded" not in words(harvester, "old@example.org")
    of_run = words(harvester, "steward@example.org")
    assert whose in of_run
    targets = "the embedded repository; new: none: documents are fetched and checked, and go nowhere"
    assert f"Central repository: {targets}" in of_run
    assert "[Test network] 2 sites: 2 well; 2 new (2026-11-20)" in harvester.subjects()


@on_sqlite
def test_commands_tell_no_rehearsed_document_for_one_that_went_in(harvester: Harvester, server: HttpServer) -> None:
    def told(*arguments: str) -> dict[str, Any]:
        known: dict[str, Any] = json.loads(harvester(*arguments, "--json").out)
        return known

    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", "a.2.2"))
    for day in (19, 20, 21, 22):
        harvester.run(f"2026-11-{day}")
    known = told("documents", "show", "a.1")
    assert (known["revisions"], known["owners"]) == ([], [])
    assert [each["repository_revision"] for each in known["history"]] == [None] * 4
    assert known["listed"] == []
    assert {each["outcome"] for each in known["history"]} == {"inserted"}
    shown = harvester("documents", "show", "a.1").out
    assert "What went in" not in shown
    assert "would be inserted; nothing was uploaded, 4 times" in shown
    found = told("diff", "1", "4")
    assert (found["totals"]["inserted"], found["totals"]["updated"]) == (2, 1)
    [site] = found["sites"]
    assert sorted(each["docid"] for each in site["documents"]) == ["a.1.1", "a.2.1", "a.2.2"]

    switch(harvester, '[target]\nkind = "folder"\nfolder = "repository"\n')
    publish(server, "a.1.1", "a.1.2", "a.2.2")
    harvester.run("2026-11-23")
    known = told("documents", "show", "a.1")
    assert [(each["revision"], each["repository"], each["run_id"]) for each in known["revisions"]] == [
        (2, "other", 5),
        (1, "other", 5),
    ]
    assert [each["repository_revision"] for each in known["listed"]] == [1, 2]
    # What went in is told in place of what would have.
    [site] = told("diff", "1", "5")["sites"]
    assert sorted((each["docid"], each["outcome"]) for each in site["documents"]) == [
        ("a.1.1", "inserted"),
        ("a.1.2", "updated"),
        ("a.2.1", "inserted"),
        ("a.2.2", "inserted"),
    ]


STATE = {
    "harvest_document": "harvest_document_id",
    "site_checkpoint": "site_schedule_id",
    "site_problem": "site_problem_id",
    "harvest_site_schedule": "site_schedule_id",
    "document_revision": "document_revision_id",
    "catalogue_document": "document_id",
    "document_owner": "document_id",
}
"""The tables with the state of sites and documents, and the sort keys of their rows."""


def state(harvester: Harvester) -> dict[str, list[tuple[Any, ...]]]:
    return {table: harvester.rows(f"SELECT * FROM {table} ORDER BY {key}") for table, key in STATE.items()}


def test_a_rehearsal_changes_nothing_of_a_site(harvester: Harvester, server: HttpServer) -> None:
    """Failing documents, problems, dates and a repository's watermark stay as the last real run left them."""
    switch(harvester, '[target]\nkind = "embedded"\n')
    url = publish(server, "a.1.1", also=[("a.3.1", server.serve("/bad.xml", bad("a.3.1")))])
    harvester.add_site("site", url)
    harvester.add_site("lost", server.url("/no-list.xml"))
    with OaiServer(3) as repository:
        harvester("sites", "add", "repo", "--oai", repository.base_url, "--contact", "repo@example.org")
        harvester.rows("UPDATE harvest_site_schedule SET datenextharvest = NULL")
        harvester.run("2026-11-20")
        before, failing = state(harvester), harvester("documents", "--failing", "--json").out
        status = {site["site"]: site["last_status"] for site in json.loads(harvester("sites", "list", "--json").out)}
        switch(harvester, NONE)
        server.serve("/bad.xml", eml("a.3.1"))
        publish(server, "a.1.2", path="/no-list.xml")
        repository.delete("oai:test:1")
        repository.put("oai:test:9")
        run = harvester.run("2026-11-21")
        assert {site["site"] for site in run["sites"] if site["rehearsal"]} == {"site", "lost", "repo"}
        harvester.run("2026-11-21", "--force")
    assert state(harvester) == before
    assert harvester("documents", "--failing", "--json").out == failing
    known = json.loads(harvester("sites", "list", "--json").out)
    assert {site["site"]: site["last_status"] for site in known} == status
    assert [each["rehearsal"] for each in known[0]["trend"]] == [False, True, True]
    assert "lost: list-failed since 2026-11-20" in harvester("sites", "list").out


@on_sqlite
def test_every_view_marks_a_rehearsal(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    said = harvester("run", "--date", "2026-11-20").out
    assert "It was a rehearsal: no site has a target" in said
    assert "succeeded, rehearsal" in said
    for command in (("runs",), ("runs", "show", "1"), ("sites", "show", "site")):
        assert "succeeded, rehearsal" in harvester(*command).out, command
    assert "none, then rehearsed" in harvester("sites", "list").out
    assert "WARNING  last run: Run 1 of 2026-11-20 ended as succeeded. It was a rehearsal" in harvester("doctor").out
    for command in (("runs",), ("runs", "show", "1")):
        known = json.loads(harvester(*command, "--json").out)
        assert (known[0] if isinstance(known, list) else known)["rehearsal"] is True


@on_sqlite
def test_on_change_is_quiet_while_rehearsals_find_the_same(harvester: Harvester, server: HttpServer) -> None:
    harvester.config.write_text(harvester.config.read_text() + "[reports]\nremind_days = 0\n")
    url = publish(server, "a.1.1", also=[("a.3.1", server.serve("/bad.xml", bad("a.3.1")))])
    harvester.add_site("site", url, notify="on-change")

    def nights_told() -> list[str]:
        mails = [mail for mail in harvester.mails() if mail["To"] == "site@example.org"]
        return sorted(str(mail["Subject"]).rpartition("(")[2].rstrip(")") for mail in mails)

    for day in (20, 21, 22):
        harvester.run(f"2026-11-{day}")
    assert nights_told() == ["2026-11-20"]
    server.serve("/bad.xml", eml("a.3.1"))
    harvester.run("2026-11-23")
    assert nights_told() == ["2026-11-20", "2026-11-23"]
    switch(harvester, '[target]\nkind = "embedded"\n')
    harvester.run("2026-11-24")
    harvester.run("2026-11-25")
    assert nights_told() == ["2026-11-20", "2026-11-23", "2026-11-24"]


@on_sqlite
def test_a_rehearsal_of_the_whole_network_uploads_nothing_of_any_site(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = '[sites."filed".target]\nkind = "folder"\nfolder = "of-filed"\n[sites."inside".target]\nkind = "embedded"\n'
    switch(harvester, f'[target]\nkind = "folder"\nfolder = "repository"\n{own}')
    for number, name in enumerate(("any", "filed", "inside"), start=1):
        harvester.add_site(name, publish(server, f"a.{number}.1", path=f"/{name}.xml"))
    monkeypatch.setenv("METAHARVEST_TARGET__KIND", "none")
    said = harvester("run", "--date", "2026-11-20")
    assert TOLD in said.out
    assert harvester.held() == {}
    assert harvester.rows("SELECT * FROM document_owner") == []
    assert not [each for each in ("repository", "of-filed") if (harvester.folder / each).exists()]
    for name in ("any", "filed", "inside"):
        assert TOLD in words(harvester, f"{name}@example.org")
    of_run = words(harvester, "steward@example.org")
    assert TOLD in of_run
    assert "Central repository: none: documents are fetched and checked, and go nowhere" in of_run
    assert "filed: none" not in of_run
    assert "target of filed" not in harvester("doctor").out
    # A name means the same target afterwards.
    assert harvester("sites", "edit", "filed", "--name", "other").code == 2

    monkeypatch.delenv("METAHARVEST_TARGET__KIND")
    assert harvester.run("2026-11-21")["status"] == "succeeded"
    assert set(harvester.held()) == {"a.3.1"}
    for folder, docid in (("repository", "a.1.1"), ("of-filed", "a.2.1")):
        assert [file.stem for file in (harvester.folder / folder).rglob("*.xml")] == [docid]


@on_sqlite
def test_commands_say_that_there_is_no_repository(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    said = harvester("doctor")
    assert "WARNING  target: There is no repository: documents are fetched and checked, and nothing is uploaded." in (
        said.out
    )
    rehearsed = harvester("run", "--dry-run", "--date", "2026-11-20")
    assert "1 new" in rehearsed.out
    assert json.loads(harvester("target", "list", "--json").out) == []
    assert "has no document 'a.1'" in harvester("target", "show", "a.1").err
