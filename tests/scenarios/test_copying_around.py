"""From the embedded target into a folder, from there into a member node and into a Metacat, and back: whoever has the
documents, the next harvest finds them there."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.gmn import MemberNode
from support.harvester import SETTINGS, Harvester, eml, publish
from support.http_server import HttpServer
from support.metacat_server import Metacat

DOCUMENTS = {docid: eml(docid) for docid in ("a.1.1", "a.1.2", "a.1.10", "a.2.1", "b.1.3", "b.2.1")}
LISTS = ("/alder.xml", "/birch.xml")


@pytest.fixture
def metacat() -> Iterator[Metacat]:
    users = {"uid=harvester": "harvester-secret", "uid=alder": "alder-secret"}
    with Metacat(users) as running:
        yield running


@pytest.fixture
def sections(node: MemberNode, metacat: Metacat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The keys of each target, by its name."""
    monkeypatch.setenv("NODE_TOKEN", node.token())
    monkeypatch.setenv("HARVESTER_PASSWORD", "harvester-secret")
    monkeypatch.setenv("ALDER_PASSWORD", "alder-secret")
    (tmp_path / "documents").mkdir()
    return {
        "embedded": 'kind = "embedded"',
        "files": 'kind = "folder"\nfolder = "documents"',
        "node": f'kind = "dataone"\nurl = "{node.url}"\ntoken = "env:NODE_TOKEN"',
        "metacat": f'kind = "metacat"\nurl = "{metacat.url}"\nusername = "uid=harvester"\n'
        'password = "env:HARVESTER_PASSWORD"',
    }


@pytest.fixture
def harvester(tmp_path: Path, sections: Mapping[str, str], server: HttpServer) -> Iterator[Harvester]:
    """Two sites, one with a login of its own, harvested into the embedded target."""
    installed = Harvester(tmp_path)
    use(installed, sections, "embedded")
    alder = publish(server, "a.1.1", "a.1.2", "a.1.10", "a.2.1", path="/alder.xml")
    installed.add_site("alder", alder, ldapdn="uid=alder", ldappwd="env:ALDER_PASSWORD")
    installed.add_site("birch", publish(server, "b.1.3", "b.2.1", path="/birch.xml"))
    assert installed.run("2026-11-20")["status"] == "succeeded"
    yield installed
    installed.close()


def use(harvester: Harvester, sections: Mapping[str, str], name: str) -> None:
    """Let harvests go into this target from now on."""
    others = "".join(f"[targets.{other}]\n{keys}\n" for other, keys in sections.items() if other != "embedded")
    harvester.config.write_text(f"{SETTINGS}[target]\n{sections[name]}\n{others}", encoding="utf-8")


def copied(harvester: Harvester, source: str, target: str) -> Counter[str]:
    """What a copy that must succeed came to."""
    said = harvester("target", "copy", source, target, "--json")
    assert said.code == 0, (said.out, said.err)
    told: dict[str, Any] = json.loads(said.out)
    return Counter({end: told[end] for end in ("copied", "there_already")})


def finds_all_there(harvester: Harvester, server: HttpServer, day: str) -> bool:
    """Whether a harvest of all sites finds every document, and fetches none."""
    server.requests.clear()
    run = harvester.run(day)
    assert [site["status"] for site in run["sites"]] == ["succeeded", "succeeded"]
    assert not [each.path for each in server.requests if each.path not in LISTS]
    return [site["unchanged"] for site in run["sites"]] == [4, 2]


def test_documents_may_be_copied_from_each_target_into_the_next_and_back(
    harvester: Harvester,
    server: HttpServer,
    sections: Mapping[str, str],
    node: MemberNode,
    metacat: Metacat,
    tmp_path: Path,
) -> None:
    ways = [("embedded", "files"), ("files", "node"), ("node", "metacat")]
    for day, (source, target) in enumerate(ways, start=21):
        assert copied(harvester, source, target) == {"copied": 6, "there_already": 0}
        assert copied(harvester, source, target) == {"copied": 0, "there_already": 6}
        use(harvester, sections, target)
        assert harvester("target", "check").code == 0
        assert finds_all_there(harvester, server, f"2026-11-{day}")
    files = [file for file in (tmp_path / "documents").rglob("*.xml") if ".metaharvest" not in file.parts]
    assert {file.stem: file.read_bytes() for file in files} == DOCUMENTS
    assert node.held() == DOCUMENTS
    stored = node.stored()
    assert (stored["a.1.10"].series_id, stored["a.1.10"].obsoletes) == ("a.1", "a.1.2")
    assert metacat.held == DOCUMENTS
    # Each site's documents are its own there, so that it can change them later.
    assert {owner for document_id, (_, owner) in metacat.current.items() if document_id[0] == "a"} == {"uid=alder"}
    assert {owner for document_id, (_, owner) in metacat.current.items() if document_id[0] == "b"} == {"uid=harvester"}

    said = harvester("target", "copy", "metacat", "embedded")
    assert said.code == 1
    assert "cannot list what it holds" in said.err
    harvester.lose()
    assert copied(harvester, "node", "embedded") == {"copied": 6, "there_already": 0}
    assert harvester.held() == DOCUMENTS
    owners = "SELECT DISTINCT substr(document_id, 1, 1), site_schedule_id FROM document_revision ORDER BY 1"
    assert harvester.rows(owners) == [("a", 1), ("b", 2)]
    use(harvester, sections, "embedded")
    assert finds_all_there(harvester, server, "2026-11-24")


@pytest.mark.long
@pytest.mark.parametrize("target", ["files", "node", "metacat"])
def test_a_copy_into_each_that_is_killed_loses_nothing_and_doubles_nothing(
    harvester: Harvester, server: HttpServer, node: MemberNode, metacat: Metacat, tmp_path: Path, target: str
) -> None:
    docids = [f"a.{number}.{revision}" for number in range(3, 9) for revision in (1, 2)]
    publish(server, *docids, path="/alder.xml")
    harvester.run("2026-11-21")
    documents = DOCUMENTS | {docid: eml(docid) for docid in docids}
    arrived: Mapping[str, Callable[[], int]] = {
        "files": lambda: len(list((tmp_path / "documents").rglob("a*.xml"))),
        "node": node.number,
        "metacat": lambda: len(metacat.written),
    }
    for number in (3, 7):
        with harvester.start("target", "copy", "embedded", target) as process:
            while process.poll() is None and arrived[target]() < number:
                time.sleep(0.005)
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
    time.sleep(0.3)  # servers end what they had begun
    assert copied(harvester, "embedded", target).total() == len(documents)
    if target == "node":
        assert node.held() == documents
    elif target == "metacat":
        assert metacat.held == documents
        assert max(Counter(docid for _, docid in metacat.written).values()) == 1
    else:
        held = {file.stem: file.read_bytes() for file in (tmp_path / "documents").rglob("[ab].*.xml")}
        assert held == documents
