"""Sites with a target of their own in one run, and sites that claim the same document in a target outside."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from support.databases import TestDatabase
from support.distributions import install
from support.harvester import SETTINGS, Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer
from support.mails import text_of

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

FOLDER = '[target]\nkind = "folder"\nfolder = "repository"\n'


def files(base: Path) -> dict[str, bytes]:
    """The documents in a folder."""
    found = (path for path in base.rglob("*.xml") if ".metaharvest" not in path.parts)
    return {path.name: path.read_bytes() for path in found}


def mail_to(harvester: Harvester, recipient: str, day: str = "2026-11-20") -> str:
    """The text of the mail to somebody about that day."""
    [mail] = [mail for mail in harvester.mails() if mail["To"] == recipient and f"({day})" in mail["Subject"]]
    return " ".join(text_of(mail).split())


def statuses(run: dict[str, object]) -> dict[str, tuple[str, int]]:
    """Site -> status, and how many of its documents went in."""
    return {site["site_name"]: (site["status"], site["inserted"] + site["updated"]) for site in run["sites"]}  # type: ignore[attr-defined]


# -- targets of their own


def test_each_site_is_harvested_into_its_own_target(tmp_path: Path, server: HttpServer, database: TestDatabase) -> None:
    own = '[sites."filed".target]\nkind = "folder"\nfolder = "repository"\n'
    flat = '[sites."flat site".target]\nkind = "folder"\nfolder = "other"\nlayout = "flat"\n'
    harvester = Harvester(tmp_path, SETTINGS + own + flat, database)
    harvester.add_site("inside", publish(server, "a.1.1", path="/inside.xml"))
    harvester.add_site("filed", publish(server, "b.1.1", "b.1.2", path="/filed.xml"))
    harvester.add_site("flat site", publish(server, "c.1.1", path="/flat.xml"), contact_email="flat@example.org")
    run = harvester.run("2026-11-20")
    assert statuses(run) == {
        "inside": ("succeeded", 1),
        "filed": ("succeeded", 2),
        "flat site": ("succeeded", 1),
    }
    assert set(harvester.held()) == {"a.1.1"}
    assert set(files(tmp_path / "repository")) == {"b.1.1.xml", "b.1.2.xml"}
    assert (tmp_path / "other" / "c.1.1.xml").read_bytes() == eml("c.1.1")
    assert "Central repository: the embedded repository" in mail_to(harvester, "inside@example.org")
    assert "Central repository: the folder " in mail_to(harvester, "filed@example.org")
    of_run = mail_to(harvester, "steward@example.org")
    assert "Central repository: the embedded repository; filed: the folder " in of_run
    assert "; flat site: the folder " in of_run
    publish(server, "b.1.1", "b.1.2", "b.1.3", path="/filed.xml")
    assert statuses(harvester.run("2026-11-21")) == {
        "inside": ("succeeded", 0),
        "filed": ("succeeded", 1),
        "flat site": ("succeeded", 0),
    }
    doctor = harvester("doctor").out
    assert "OK       target: The embedded repository holds 1 document." in doctor
    assert "OK       target of filed: The folder " in doctor
    assert "OK       target of flat site: The folder " in doctor
    said = harvester("target", "rebuild", "--site", "filed")
    assert said.out == "The index was built again: 1 document in 3 files.\n"
    harvester.close()


@on_sqlite
def test_a_target_that_cannot_be_made_costs_its_site_alone(
    tmp_path: Path, server: HttpServer, database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import a_module_that_nobody_has\n"
    monkeypatch.syspath_prepend(install(tmp_path, "added_lost_shelves", code, metaharvest_targets="lost = Shelf"))
    harvester = Harvester(tmp_path, SETTINGS + FOLDER + '[sites."lost".target]\nkind = "lost"\n', database)
    harvester.add_site("good", publish(server, "a.1.1", path="/good.xml"))
    harvester.add_site("lost", publish(server, "b.1.1", path="/lost.xml"), datenextharvest="2026-11-20")
    run = harvester.run("2026-11-20")
    assert run["exit_code"] == 3
    assert statuses(run) == {"good": ("succeeded", 1), "lost": ("failed", 0)}
    [reason] = [site["failure_reason"] for site in run["sites"] if site["site_name"] == "lost"]
    assert "kind = 'lost' cannot be used: added_lost_shelves, which adds this kind, cannot be loaded: " in reason
    assert "a_module_that_nobody_has" in reason
    assert (None, "error", "target.settings") in harvester.findings(run["run_id"])
    assert server.asked("/b.1.1.xml") == []
    next_dates = dict(harvester.rows("SELECT name, datenextharvest FROM harvest_site_schedule"))
    assert next_dates == {"good": "2026-11-21", "lost": "2026-11-20"}
    told = mail_to(harvester, "steward@example.org")
    assert "a_module_that_nobody_has" in told
    assert "Traceback" not in told
    doctor = harvester("doctor")
    assert doctor.code == 1
    assert "PROBLEM  target of lost: " in doctor.out
    rehearsed = json.loads(harvester("run", "--dry-run", "--force", "--json").out)
    assert {site["site_name"]: site["status"] for site in rehearsed["sites"]} == {
        "good": "succeeded",
        "lost": "failed",
    }
    harvester.close()


@on_sqlite
def test_a_folder_that_is_away_costs_the_sites_that_go_into_it_alone(
    tmp_path: Path, server: HttpServer, database: TestDatabase
) -> None:
    own = '[sites."away".target]\nkind = "folder"\nfolder = "away"\n'
    harvester = Harvester(tmp_path, SETTINGS + FOLDER + own, database)
    harvester.add_site("good", publish(server, "a.1.1", path="/good.xml"))
    harvester.add_site("away", publish(server, "b.1.1", path="/away.xml"))
    harvester.run("2026-11-20")
    (tmp_path / "away").rename(tmp_path / "unmounted")
    publish(server, "a.1.2", path="/good.xml")
    publish(server, "b.1.2", path="/away.xml")
    run = harvester.run("2026-11-21")
    assert statuses(run) == {"good": ("succeeded", 1), "away": ("with-errors", 0)}
    assert [site["deferred"] for site in run["sites"] if site["site_name"] == "away"] == [1]
    (tmp_path / "unmounted").rename(tmp_path / "away")
    assert statuses(harvester.run("2026-11-22"))["away"] == ("succeeded", 1)
    harvester.close()


@on_sqlite
def test_a_new_name_does_not_send_documents_into_another_target(
    tmp_path: Path, server: HttpServer, database: TestDatabase
) -> None:
    harvester = Harvester(tmp_path, SETTINGS, database)
    plain = harvester.config.read_text()

    def sections(*names: str) -> None:
        own = (f'[sites."{name}".target]\nkind = "folder"\nfolder = "of-b"\n' for name in names)
        harvester.config.write_text(plain + "".join(own), encoding="utf-8")

    sections("B")
    harvester.add_site("A", publish(server, "a.1.1", path="/a.xml"))
    harvester.add_site("B", publish(server, "b.1.1", path="/b.xml"))
    harvester.run("2026-11-20")
    assert (set(harvester.held()), set(files(tmp_path / "of-b"))) == ({"a.1.1"}, {"b.1.1.xml"})

    said = harvester("sites", "edit", "B", "--name", "Bé")
    assert said.code == 2
    for words in (str(harvester.config), '[sites."B".target]', '[sites."Bé".target]'):
        assert words in said.err
    sections("Bé")
    assert harvester("sites", "edit", "B", "--name", "Bé").code == 2
    sections("B", "Bé")
    assert harvester("sites", "edit", "B", "--name", "Bé").code == 0
    assert harvester("sites", "edit", "Bé", "--every", "2").code == 0

    said = harvester("sites", "edit", "A", "--name", "B")
    assert said.code == 2
    assert '[sites."B".target]' in said.err
    sections("Bé")
    assert harvester("sites", "edit", "A", "--name", "B").code == 0
    run = harvester.run("2026-11-23", "--force")
    assert statuses(run) == {"B": ("succeeded", 0), "Bé": ("succeeded", 0)}
    assert (set(harvester.held()), set(files(tmp_path / "of-b"))) == ({"a.1.1"}, {"b.1.1.xml"})
    harvester.close()


# -- whose a document is


@pytest.fixture
def harvester(tmp_path: Path, database: TestDatabase) -> Harvester:
    return Harvester(tmp_path, SETTINGS + FOLDER, database)


def test_of_two_sites_that_send_a_document_at_the_same_time_one_has_it(
    harvester: Harvester, server: HttpServer
) -> None:
    """Both lists were read, and both documents fetched, before either is sent."""
    together = threading.Barrier(2, timeout=10)

    def both(name: str) -> None:
        content = eml("a.1.1", title=name)

        def route(asking: Asking) -> None:
            together.wait()
            asking.answer(content)

        server.route(f"/{name}.xml", route)
        server.serve(f"/{name}-list.xml", harvest_list([("a.1.1", server.url(f"/{name}.xml"))]))
        harvester.add_site(name, server.url(f"/{name}-list.xml"))

    both("first")
    both("second")
    run = harvester.run("2026-11-20")
    sites = {site["site_name"]: site for site in run["sites"]}
    [winner] = [name for name, site in sites.items() if site["inserted"]]
    [loser] = [name for name, site in sites.items() if site["upload_error"]]
    assert {winner, loser} == {"first", "second"}
    assert harvester.findings(run["run_id"]).count(("a.1", "error", "target.other-site")) == 1
    assert f"a.1 belongs to the site '{winner}'." in mail_to(harvester, f"{loser}@example.org")
    assert files(harvester.folder / "repository") == {"a.1.1.xml": eml("a.1.1", title=winner)}
    owner = "SELECT s.name FROM document_owner o JOIN harvest_site_schedule s USING (site_schedule_id)"
    assert harvester.rows(owner) == [(winner,)]
    # The next night the loser publishes a higher revision: it is not its document all the same.
    for name in ("first", "second"):
        server.serve(f"/{name}.xml", eml("a.1.1", title=name))
    url = server.serve(f"/{loser}-2.xml", eml("a.1.2", title=loser))
    server.serve(f"/{loser}-list.xml", harvest_list([("a.1.2", url)]))
    run = harvester.run("2026-11-21")
    sites = {site["site_name"]: site for site in run["sites"]}
    assert (sites[winner]["unchanged"], sites[loser]["upload_error"]) == (1, 1)
    assert ("a.1", "error", "target.other-site") in harvester.findings(run["run_id"])
    assert server.asked(f"/{loser}-2.xml") == []
    assert set(files(harvester.folder / "repository")) == {"a.1.1.xml"}
    harvester.close()


def test_a_document_is_transferred_to_another_site(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("old", publish(server, "a.1.1", "a.2.1", path="/old.xml"))
    harvester.add_site("new", publish(server, "a.1.2", path="/new.xml"), enabled=False)
    harvester.run("2026-11-20")
    assert harvester("sites", "enable", "new").code == 0
    run = harvester.run("2026-11-21")
    assert ("a.1", "error", "target.other-site") in harvester.findings(run["run_id"])
    said = harvester("target", "transfer", "a.1", "new")
    assert (said.code, said.err) == (0, "")
    assert "a.1 belongs to new from now on." in said.out
    assert "Until now it belonged to old, which should take it out of its list." in said.out
    assert "belongs to new already: nothing was changed." in harvester("target", "transfer", "a.1", "new").out
    run = harvester.run("2026-11-22")
    assert statuses(run)["new"] == ("succeeded", 1)
    assert set(files(harvester.folder / "repository")) == {"a.1.1.xml", "a.1.2.xml", "a.2.1.xml"}
    run = harvester.run("2026-11-23")
    assert statuses(run) == {"old": ("with-errors", 0), "new": ("succeeded", 0)}
    told = mail_to(harvester, "old@example.org", "2026-11-23")
    assert "a.1 was transferred from this site: it has belonged to the site 'new' since " in told
    assert harvester.rows("SELECT document_id FROM document_owner ORDER BY 1") == [("a.1",), ("a.2",)]
    harvester.close()


@on_sqlite
@pytest.mark.parametrize("named", [("a.1",), ("a.1.1",), ("a.1", "a.2"), ("--scope", "a")])
def test_a_document_is_transferred_to_a_site_with_another_target(
    tmp_path: Path, server: HttpServer, database: TestDatabase, named: tuple[str, ...]
) -> None:
    own = "".join(f'[sites."{name}".target]\nkind = "folder"\nfolder = "of-{name}"\n' for name in ("old", "new"))
    harvester = Harvester(tmp_path, SETTINGS + own, database)
    harvester.add_site("old", publish(server, "a.1.1", "a.2.1", "ab.1.1", path="/old.xml"))
    harvester.add_site("new", publish(server, "a.1.2", path="/new.xml"))
    harvester.run("2026-11-20", "--site", "old")
    run = harvester.run("2026-11-20", "--site", "new")
    assert ("a.1", "error", "target.other-site") in harvester.findings(run["run_id"])
    assert "The target has no document 'a.3'." in harvester("target", "transfer", "a.3", "new").err
    assert "does not have 1 of these 2" in harvester("target", "transfer", "a.1", "a.3", "new").err
    assert "no document of the scope 'b'" in harvester("target", "transfer", "--scope", "b", "new").err

    said = harvester("target", "transfer", *named, "new", "--json")
    assert (said.code, said.err) == (0, "")
    moved = ["a.1"] if named in (("a.1",), ("a.1.1",)) else ["a.1", "a.2"]
    told = json.loads(said.out)["documents"]
    assert told == [{"document_id": each, "from_site": "old", "to_site": "new", "transferred": True} for each in moved]
    assert statuses(harvester.run("2026-11-21", "--site", "new")) == {"new": ("succeeded", 1)}
    assert set(files(tmp_path / "of-new")) == {"a.1.2.xml"}
    assert statuses(harvester.run("2026-11-21", "--site", "old")) == {"old": ("with-errors", 0)}
    told_old = mail_to(harvester, "old@example.org", "2026-11-21")
    assert "a.1 was transferred from this site: it has belonged to the site 'new' since " in told_old
    harvester.close()


@on_sqlite
@pytest.mark.parametrize("named", [("a.1",), ("a.1", "a.2"), ("--scope", "a")])
@pytest.mark.parametrize("embedded", ["old", "new"])
def test_a_document_is_transferred_between_the_embedded_target_and_another(
    tmp_path: Path, server: HttpServer, database: TestDatabase, embedded: str, named: tuple[str, ...]
) -> None:
    own = f'[sites."{embedded}".target]\nkind = "embedded"\n'
    harvester = Harvester(tmp_path, SETTINGS + own, database)
    harvester.add_site("old", publish(server, "a.1.1", "a.2.1", "ab.1.1", path="/old.xml"))
    harvester.add_site("new", publish(server, "a.1.2", path="/new.xml"))
    harvester.run("2026-11-20", "--site", "old")
    assert "The target has no document 'a.3'." in harvester("target", "transfer", "a.3", "new").err
    assert "no document of the scope 'b'" in harvester("target", "transfer", "--scope", "b", "new").err
    said = harvester("target", "transfer", *named, "new", "--json")
    assert (said.code, said.err) == (0, "")
    moved = ["a.1"] if named == ("a.1",) else ["a.1", "a.2"]
    reported = json.loads(said.out)["documents"]
    assert reported == [
        {"document_id": each, "from_site": "old", "to_site": "new", "transferred": True} for each in moved
    ]
    again = json.loads(harvester("target", "transfer", *named, "new", "--json").out)["documents"]
    assert [each["transferred"] for each in again] == [False] * len(moved)
    publish(server, "a.1.3", "a.2.1", path="/old.xml")
    assert statuses(harvester.run("2026-11-21", "--site", "new")) == {"new": ("succeeded", 1)}
    assert statuses(harvester.run("2026-11-21", "--site", "old")) == {"old": ("with-errors", 0)}
    assert "a.1 was transferred from this site" in mail_to(harvester, "old@example.org", "2026-11-21")
    assert "a.1.3" not in {**harvester.held(), **files(tmp_path / "repository")}
    harvester.close()


@on_sqlite
def test_a_transfer_needs_a_document_that_is_there(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("old", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    assert "The target has no document 'a.7'." in harvester("target", "transfer", "a.7", "old").err
    assert "nobody" in harvester("target", "transfer", "a.1", "nobody").err
    (harvester.folder / "repository").rename(harvester.folder / "away")
    said = harvester("target", "transfer", "a.1", "old")
    assert (said.code, said.out) == (1, "")
    assert "is not the one that documents went into" in said.err
    harvester.close()


@on_sqlite
def test_the_document_of_a_site_that_was_removed_goes_to_the_next_one_that_lists_it(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("old", publish(server, "a.1.1", path="/old.xml"))
    harvester.run("2026-11-20")
    harvester("sites", "remove", "old", "--yes")
    harvester.add_site("new", publish(server, "a.1.2", path="/new.xml"))
    assert statuses(harvester.run("2026-11-21")) == {"new": ("succeeded", 1)}
    assert harvester.rows("SELECT site_schedule_id FROM document_owner") == [(2,)]
    harvester.close()
