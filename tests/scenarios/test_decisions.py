"""The audit: each decision of a person is kept, with the values before and after, and without secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from metaharvest.model.requests import Actor
from metaharvest.services import sites
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer


def decisions(harvester: Harvester, *arguments: str) -> list[dict[str, Any]]:
    said = harvester("decisions", "--json", *arguments)
    assert said.code == 0, said.err
    found: list[dict[str, Any]] = json.loads(said.out)
    return found


def done(harvester: Harvester, *arguments: str) -> None:
    said = harvester(*arguments)
    assert said.code == 0, said.err


def test_the_life_of_a_site_is_in_the_audit(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_USER", "anna")
    url = publish(server, "alder.1.1")
    done(harvester, "sites", "add", "alder", "--list-url", url, "--contact", "a@example.org")
    done(harvester, "sites", "edit", "alder", "--every", "2", "--unit", "weeks")
    done(harvester, "sites", "edit", "alder", "--every", "2")
    done(harvester, "sites", "disable", "alder")
    done(harvester, "sites", "disable", "alder")
    done(harvester, "sites", "enable", "alder")
    done(harvester, "sites", "harvest", "alder")
    done(harvester, "sites", "edit", "alder", "--name", "birch")
    done(harvester, "sites", "remove", "birch", "--yes")
    found = decisions(harvester)
    assert [each["action"] for each in reversed(found)] == [
        *("sites.add", "sites.edit", "sites.disable", "sites.enable", "sites.harvest", "sites.edit", "sites.remove")
    ]
    assert {(each["actor"], each["via"]) for each in found} == {("anna", "command")}
    assert (found[-2]["before"], found[-2]["after"]) == ({"every": 1, "unit": "days"}, {"every": 2, "unit": "weeks"})
    assert (found[1]["before"], found[1]["after"]) == ({"name": "alder"}, {"name": "birch"})
    assert found[0]["before"]["contacts"] == ["a@example.org"]
    assert decisions(harvester, "--site", "birch") == found
    assert decisions(harvester, "--actor", "anna", "--limit", "2") == found[:2]
    assert decisions(harvester, "--limit", "2", "--after", str(found[1]["decision_id"])) == found[2:4]
    assert decisions(harvester, "--actor", "bert") == []
    assert decisions(harvester, "--since", "2999-01-01") == []
    said = harvester("decisions")
    assert "anna, command: sites.edit birch" in said.out
    assert "  every: 1 -> 2" in said.out
    rows = harvester("decisions", "--csv").out.splitlines()
    assert len(rows) == len(found) + 1


@on_one_database
def test_a_refused_change_leaves_no_decision(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    assert harvester("sites", "edit", "alder", "--every", "0").code != 0
    assert harvester("sites", "edit", "alder", "nobody", "--every", "2").code != 0
    assert harvester("sites", "remove", "nobody", "--yes").code != 0
    assert decisions(harvester) == []


@on_one_database
def test_no_password_and_no_login_is_in_the_audit(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALDER_SECRET", "sesame")
    url = publish(server, "alder.1.1").replace("://", "://user:hunter2@")
    done(harvester, "sites", "add", "alder", "--list-url", url, "--contact", "a@example.org")
    done(harvester, "sites", "edit", "alder", "--list-url", url.replace("hunter2", "hunter3"))
    done(harvester, "sites", "edit", "alder", "--ldapdn", "uid=alder", "--ldappwd", "env:ALDER_SECRET")
    text = json.dumps(harvester.rows("SELECT * FROM audit_entry"))
    assert len(decisions(harvester)) == 3
    for secret in ("hunter", "sesame"):
        assert secret not in text


@on_one_database
def test_an_import_has_a_decision_for_each_site_that_changes(harvester: Harvester, server: HttpServer) -> None:
    for name in ("alder", "basalt"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"))
    exported = json.loads(harvester("sites", "export").out)
    exported["sites"][0]["every"] = 7
    exported["sites"].append({**exported["sites"][1], "name": "cedar", "list_url": server.url("/cedar.xml")})
    file = harvester.folder / "sites.json"
    file.write_text(json.dumps(exported))
    done(harvester, "sites", "import", str(file), "--dry-run")
    assert decisions(harvester) == []
    done(harvester, "sites", "import", str(file))
    found = {each["subject"]: each for each in decisions(harvester)}
    assert sorted(found) == ["alder", "cedar"]
    assert (found["alder"]["before"], found["alder"]["after"]) == ({"every": 1}, {"every": 7})
    assert found["cedar"]["before"] is None


@on_one_database
def test_documents_and_reports_have_decisions(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1", "alder.2.1"))
    harvester.add_site("basalt", publish(server, "basalt.1.1", path="/b.xml"))
    harvester.run("2026-11-20")
    done(harvester, "target", "transfer", "alder.1", "basalt")
    done(harvester, "target", "withdraw", "alder.2", "--reason", "names a person", "--yes")
    done(harvester, "target", "withdraw", "alder.2", "--undo")
    done(harvester, "reports", "resend", "1", "--to", "new@example.org")
    done(harvester, "reports", "drop", "1")
    found = {each["action"]: each for each in decisions(harvester)}
    assert found["documents.transfer"]["before"] == {"site": "alder"}
    assert found["documents.transfer"]["after"] == {"site": "basalt"}
    assert found["documents.withdraw"]["reason"] == "names a person"
    assert {"documents.readmit", "reports.resend", "reports.drop"} <= set(found)


def test_an_old_run_is_removed_by_a_person_and_the_newest_stays(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    for day in ("2026-11-20", "2026-11-21"):
        harvester.run(day)
    said = harvester("runs", "remove", "2", "--yes")
    assert (said.code, "newest run" in said.err) == (2, True)
    assert harvester("runs", "remove", "1").code == 2
    done(harvester, "runs", "remove", "1", "--reason", "a test", "--yes")
    assert harvester.rows("SELECT run_id FROM harvest_run") == [(2,)]
    assert harvester.rows("SELECT DISTINCT run_id FROM harvest_log") == [(2,)]
    [decision] = decisions(harvester)
    assert (decision["action"], decision["subject"], decision["reason"]) == ("runs.remove", "1", "a test")
    assert decision["before"]["inserted"] == 1
    assert harvester("runs", "remove", "77", "--yes").code != 0
    assert harvester.run("2026-11-22")["sites"][0]["status"] == "succeeded"


@on_one_database
def test_the_run_that_last_read_a_list_stays(harvester: Harvester, server: HttpServer) -> None:
    """The next harvest compares its list with it."""
    docids = [f"alder.{number}.1" for number in range(1, 21)]
    harvester.add_site("alder", publish(server, *docids))
    harvester.run("2026-11-20")
    server.serve("/list.xml", b"not here", status=404)
    harvester.run("2026-11-21")
    assert "it has the last harvest of a site" in harvester("runs", "remove", "1", "--yes").err
    publish(server, *docids)
    harvester.run("2026-11-22")
    done(harvester, "runs", "remove", "1", "--yes")


@on_one_database
def test_the_run_of_a_removed_site_whose_harvest_was_interrupted_is_removed(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.run("2026-11-20")
    harvester.rows("UPDATE harvest_site_run SET status = 'interrupted'")
    harvester.add_site("birch", publish(server, "birch.1.1"))
    harvester.run("2026-11-21", "--site", "birch")
    assert "goes on with a site of it" in harvester("runs", "remove", "1", "--yes").err
    done(harvester, "sites", "remove", "alder", "--yes")
    done(harvester, "runs", "remove", "1", "--yes")
    assert harvester.rows("SELECT run_id FROM harvest_run") == [(2,)]


@on_one_database
def test_a_person_who_is_forgotten_leaves_the_audit(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "alder.1.1")
    for address in ("anna@example.org", "bert@example.org"):
        done(
            harvester,
            "sites",
            "edit" if address.startswith("b") else "add",
            "alder",
            *(("--add-contact", address) if address.startswith("b") else ("--list-url", url, "--contact", address)),
        )
    with harvester.opened(engine=harvester.engine) as opened:
        sites.switch(opened.acting(Actor("Anna@example.org", "console")), "alder", False)
    assert "anna@" in json.dumps(harvester.rows("SELECT * FROM audit_entry")).lower()
    done(harvester, "contacts", "forget", "anna@example.org", "--yes")
    left = json.dumps(harvester.rows("SELECT * FROM audit_entry")).lower()
    assert "anna@" not in left
    assert "bert@example.org" in left
    assert len(decisions(harvester)) == 4


def test_a_copy_and_a_delivery_by_hand_are_in_the_audit(harvester: Harvester, server: HttpServer) -> None:
    folder = harvester.folder / "copies"
    folder.mkdir()
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f'{settings}[targets.copies]\nkind = "folder"\nfolder = "{folder}"\n')
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.run("2026-11-20")
    done(harvester, "target", "copy", "embedded", "copies", "--dry-run")
    done(harvester, "target", "copy", "embedded", "copies")
    done(harvester, "reports", "resend", "1")
    done(harvester, "reports", "deliver")
    done(harvester, "reports", "deliver")
    found = list(reversed(decisions(harvester)))
    assert [each["action"] for each in found] == ["documents.copy", "reports.resend", "reports.deliver"]
    assert (found[0]["subject"], found[0]["after"]["copied"]) == ("copies", 1)
    assert found[2]["after"]["sent"] == 1
