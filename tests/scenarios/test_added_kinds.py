"""Targets and sources that other distributions add by entry points: found by kind, and used for a whole run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metaharvest.config.kinds import TARGETS
from support.distributions import install
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.mails import text_of

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

SHELF = """\
import hashlib
from contextlib import contextmanager

from metaharvest.model import Action, Holding
from metaharvest.targets.base import HeldRevision, Standing


class Shelf:
    writes_in_journal = False
    uploads_at_once = 1

    def __init__(self, settings, engine):
        self.folder = settings.folder / "shelf"
        self.folder.mkdir(exist_ok=True)

    def describe(self):
        return "the shelf"

    def holdings(self, document_ids):
        found = {}
        for file in sorted(self.folder.iterdir()):
            document_id, _, revision = file.name.rpartition(".")
            if document_id in document_ids:
                found[document_id] = Holding(document_id, int(revision))
        return found

    def holds(self, document_id, revision, sha256):
        file = self.folder / f"{document_id}.{revision}"
        return file.exists() and hashlib.sha256(file.read_bytes()).hexdigest() == sha256

    @contextmanager
    def session(self, site):
        yield self

    def check(self, site):
        yield Standing("ok", "Documents go onto the shelf.")

    def held(self):
        for file in sorted(self.folder.iterdir()):
            document_id, _, revision = file.name.rpartition(".")
            yield HeldRevision(document_id, int(revision))

    def revisions(self, document_id):
        return [each for each in self.held() if each.document_id == document_id][::-1]

    def content(self, document_id, revision):
        return (self.folder / f"{document_id}.{revision}").read_bytes()

    def upload(self, upload):
        known = self.holdings([upload.fetched.document.document_id])
        (self.folder / upload.fetched.document.docid).write_bytes(upload.fetched.content)
        return Action.UPDATE if known else Action.INSERT
"""

LEDGE = """\
from contextlib import contextmanager
from dataclasses import dataclass, field

from metaharvest.targets.base import Standing
from metaharvest.targets.nothing import NoTarget


@dataclass
class Session:
    sessions: list
    writes_in_journal = True
    keeps = True

    def holdings(self, document_ids):
        return {}

    used_up = holdings

    def kept(self, site_id):
        return 0

    def upload(self, uploads, session):
        from metaharvest.model import Action

        return [Action.INSERT for _ in uploads]


@dataclass
class Ledge(NoTarget):
    settings: object
    engine: object
    sessions: list = field(default_factory=list)

    @contextmanager
    def session(self, site):
        yield Session(self.sessions)

    def check(self, site):
        yield Standing("ok", "Documents go onto the ledge.")
"""

NUMBERED = '''\
from math import inf

from metaharvest.model import ListedDocument
from metaharvest.sources.base import Listing
from metaharvest.sources.harvest_list.source import HarvestListSource

TYPE = "eml://ecoinformatics.org/eml-2.1.1"


class Numbered(HarvestListSource):
    """Documents 1 to 3 of a site that has no list."""

    def __init__(self, site, fetcher):
        super().__init__(site, fetcher)
        self.url = site.list_url

    async def list_documents(self, known, seconds=inf):
        return Listing(ListedDocument(f"n.{each}", 1, TYPE, f"{self.url}/n.{each}.1.xml") for each in (1, 2, 3))
'''


def set_target(harvester: Harvester, kind: str) -> None:
    harvester.config.write_text(f'{harvester.config.read_text()}[target]\nkind = "{kind}"\n', encoding="utf-8")


def test_a_target_that_is_installed_gets_the_documents(
    harvester: Harvester, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "added_shelves", SHELF, metaharvest_targets="shelf = Shelf"))
    set_target(harvester, "shelf")
    harvester.add_site("site", publish(server, "a.1.1", "a.1.2", "a.2.1"))
    run = harvester.run("2026-11-20")
    assert (run["status"], run["sites"][0]["inserted"], run["sites"][0]["updated"]) == ("succeeded", 2, 1)
    shelf = {file.name: file.read_bytes() for file in (tmp_path / "shelf").iterdir()}
    assert shelf == {docid: eml(docid) for docid in ("a.1.1", "a.1.2", "a.2.1")}
    assert harvester.held() == {}
    assert harvester.run("2026-11-21")["sites"][0]["unchanged"] == 3
    assert "the shelf" in text_of(harvester.mails()[0])


def test_a_target_that_is_installed_needs_no_hash(
    harvester: Harvester, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dataclass that is not frozen has none."""
    monkeypatch.syspath_prepend(install(tmp_path, "added_ledges", LEDGE, metaharvest_targets="ledge = Ledge"))
    set_target(harvester, "ledge")
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    assert [check["message"] for check in checks if check["check"] == "target"] == ["Documents go onto the ledge."]
    run = harvester.run("2026-11-20")
    assert (run["status"], run["sites"][0]["inserted"]) == ("succeeded", 2)


def test_a_target_that_is_installed_is_what_the_other_commands_speak_of(
    harvester: Harvester, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "added_more_shelves", SHELF, metaharvest_targets="shelf = Shelf"))
    set_target(harvester, "shelf")
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    assert [check["message"] for check in checks if check["check"] == "target"] == ["Documents go onto the shelf."]
    (tmp_path / "shelf").mkdir(exist_ok=True)
    (tmp_path / "shelf" / "a.1.1").write_bytes(eml("a.1.1"))
    assert harvester("target", "list").out.strip() == "a.1.1"
    assert json.loads(harvester("target", "show", "a.1", "--json").out)["revisions"][0]["revision"] == 1
    harvester("target", "get", "a.1", "-o", str(tmp_path / "got.xml"))
    assert (tmp_path / "got.xml").read_bytes() == eml("a.1.1")
    (tmp_path / "shelf" / "a.1.1").unlink()
    rehearsed = harvester("check", publish(server, "a.1.1"))
    assert rehearsed.code == 0
    assert list((tmp_path / "shelf").iterdir()) == []


def test_a_target_that_cannot_be_loaded_is_told_with_its_distribution(
    harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import a_module_that_nobody_has\n"
    monkeypatch.syspath_prepend(install(tmp_path, "added_broken_shelves", code, metaharvest_targets="shelf = Shelf"))
    set_target(harvester, "shelf")
    said = harvester("run")
    assert said.code == 2
    assert (
        "[target] kind = 'shelf' cannot be used: added_broken_shelves, which adds this kind, cannot be loaded: "
        in said.err
    )
    assert "a_module_that_nobody_has" in said.err
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    assert [check["state"] for check in checks if check["check"] == "target"] == ["PROBLEM"]


def test_a_target_that_cannot_be_made_is_told_like_a_wrong_setting_and_the_doctor_goes_on(
    harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "def make(settings, engine):\n    return settings.target.options['place']\n"
    monkeypatch.syspath_prepend(install(tmp_path, "added_careless_shelves", code, metaharvest_targets="shelf = make"))
    set_target(harvester, "shelf")
    said = harvester("run")
    assert said.code == 2
    assert "[target] kind = 'shelf' cannot be used: KeyError: 'place'." in said.err
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    assert [check["state"] for check in checks if check["check"] == "target"] == ["PROBLEM"]
    assert checks[-1]["check"] == "reports"


def test_a_target_that_is_not_installed_is_refused_with_all_that_is_wrong(
    harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_target(harvester, "shelf")
    kinds = " or ".join(map(repr, TARGETS.built_in))
    monkeypatch.setenv("METAHARVEST_HARVESTER__WORKERS", "many")
    said = harvester("run")
    assert said.code == 2
    assert f"{harvester.config}: [target] kind = 'shelf': input should be {kinds}." in said.err
    assert "METAHARVEST_HARVESTER__WORKERS" in said.err
    monkeypatch.syspath_prepend(install(tmp_path, "added_other_shelves", SHELF, metaharvest_targets="cupboard = Shelf"))
    assert f"[target] kind = 'shelf': input should be {kinds} or 'cupboard'." in harvester("run").err


def test_a_site_of_a_kind_that_is_installed_is_harvested_beside_others(
    harvester: Harvester, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path, "added_numbers", NUMBERED, metaharvest_sources="numbered = Numbered"))
    harvester.add_site("listed", publish(server, "a.1.1"))
    harvester.add_site("numbered", server.url("/numbered"), source_kind="numbered")
    for number in (1, 2, 3):
        server.serve(f"/numbered/n.{number}.1.xml", eml(f"n.{number}.1"))
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: (site["status"], site["inserted"]) for site in run["sites"]} == {
        "listed": ("succeeded", 1),
        "numbered": ("succeeded", 3),
    }
    assert set(harvester.held()) == {"a.1.1", "n.1.1", "n.2.1", "n.3.1"}
    assert harvester("sites", "edit", "numbered", "--every", "2").code == 0
    assert harvester.rows("SELECT source_kind FROM harvest_site_schedule WHERE name = 'numbered'") == [("numbered",)]


def test_a_site_of_a_kind_that_is_not_installed_any_more_fails_alone_and_the_known_kinds_are_named(
    harvester: Harvester, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.syspath_prepend(
            install(tmp_path, "added_gone_numbers", NUMBERED, metaharvest_sources="numbered = Numbered")
        )
        harvester.add_site("numbered", server.url("/"), source_kind="numbered")
    harvester.add_site("listed", publish(server, "a.1.1"))
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {"listed": "succeeded", "numbered": "failed"}
    told = "numbered: source_kind is 'numbered'; it must be one of harvest-list, oai-pmh."
    assert [site["failure_reason"] for site in run["sites"] if site["site_name"] == "numbered"] == [told]
    monkeypatch.syspath_prepend(install(tmp_path, "added_letters", NUMBERED, metaharvest_sources="lettered = Numbered"))
    told = "source_kind is 'numbered'; it must be one of harvest-list, oai-pmh, lettered."
    assert told in harvester("sites", "list").out


def test_a_site_of_a_kind_that_cannot_be_loaded_fails_alone(
    harvester: Harvester, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "raise RuntimeError('no numbers today')\n"
    monkeypatch.syspath_prepend(install(tmp_path, "added_bad_numbers", code, metaharvest_sources="numbered = Numbered"))
    harvester.add_site("numbered", server.url("/"), source_kind="numbered")
    harvester.add_site("listed", publish(server, "a.1.1"))
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {"listed": "succeeded", "numbered": "failed"}
    log = harvester("log", "--site", "numbered").out
    assert "source_kind = 'numbered' cannot be used: added_bad_numbers, which adds this kind, cannot be loaded: " in log
    assert "no numbers today" in log
    assert [rule for _, _, rule in harvester.findings(run["run_id"])] == ["site.row"]
    assert "Traceback" not in log
