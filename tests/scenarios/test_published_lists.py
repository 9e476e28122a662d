"""A site that makes its list with `metaharvest list build`, and is harvested: night after night, without hand-work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.harvester import Harvester, eml
from support.http_server import HttpServer
from support.lists import SiteFolder

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""What is tested here does not depend on the database."""

NAMES = ["rain.xml", "Größe & Co.xml", "sub folder/100%#1?.xml", "<'\">+=;.xml"]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[SiteFolder]:
    """A folder that a web server serves, below a path of its own."""
    root = tmp_path / "www"
    (root / "eml").mkdir(parents=True)
    with HttpServer(root) as server:
        site = SiteFolder(root / "eml", server.url("/eml"))
        for number, name in enumerate(NAMES, start=1):
            site.put(name, f"alder.{number}.1", f"Title {number}")
        yield site


def list_url(site: SiteFolder) -> str:
    return f"{site.base}/harvest-list.xml"


def test_what_is_built_is_harvested_and_what_is_changed_is_updated(harvester: Harvester, site: SiteFolder) -> None:
    assert site.build("--write").code == 0
    harvester.add_site("alder", list_url(site))
    first = harvester.run("2026-11-20")
    assert harvester.outcomes(first["run_id"]) == {f"alder.{n}.1": "inserted" for n in range(1, 5)}
    assert harvester.held() == {f"alder.{n}.1": (site.path / NAMES[n - 1]).read_bytes() for n in range(1, 5)}

    # Nothing has changed: the list is not touched, and its server says so.
    site.build("--write")
    second = harvester.run("2026-11-21")
    assert harvester.outcomes(second["run_id"]) == {}
    assert second["sites"][0]["unchanged"] == 4
    assert "HarvestListUnchanged" in harvester.operations(second["run_id"])

    site.put(NAMES[1], "alder.2.1", "Another title")
    site.put(NAMES[2], "alder.3.7", "A revision raised by hand")
    (site.path / NAMES[3]).unlink()
    site.put("new.xml", "alder.5.1")
    assert site.build("--write").code == 0
    third = harvester.run("2026-11-22")
    assert harvester.outcomes(third["run_id"]) == {
        "alder.2.2": "updated",
        "alder.3.7": "updated",
        "alder.5.1": "inserted",
    }
    # The packageIds are those of the list: there is nothing to say but that a document has gone.
    assert harvester.findings(third["run_id"]) == [("alder.4.1", "warning", "list.vanished")]
    assert harvester.held()["alder.2.2"] == eml("alder.2.2", "Another title")
    assert "alder.4.1" in harvester.held()


def test_a_document_that_is_broken_for_a_night_costs_nothing(harvester: Harvester, site: SiteFolder) -> None:
    site.build("--write")
    harvester.add_site("alder", list_url(site))
    harvester.run("2026-11-20")
    content = (site.path / "rain.xml").read_bytes()
    (site.path / "rain.xml").write_bytes(content[:-30])
    assert site.build("--write").code == 1
    run = harvester.run("2026-11-21")
    assert (run["sites"][0]["status"], run["sites"][0]["unchanged"]) == ("succeeded", 4)
    (site.path / "rain.xml").write_bytes(content.replace(b"Title 1", b"Title 1, mended"))
    assert site.build("--write").code == 0
    assert harvester.outcomes(harvester.run("2026-11-22")["run_id"]) == {"alder.1.2": "updated"}


def test_documents_that_go_and_come_back_are_never_stale(harvester: Harvester, site: SiteFolder) -> None:
    site.build()
    harvester.add_site("alder", list_url(site))
    site.put("rain.xml", "alder.1.1", "Changed")
    site.build()
    harvester.run("2026-11-20")
    (site.path / "rain.xml").unlink()
    site.build()
    harvester.run("2026-11-21")
    site.put("rain.xml", "alder.1.1", "Changed again")
    site.build()
    assert harvester.outcomes(harvester.run("2026-11-22")["run_id"]) == {"alder.1.3": "updated"}


def test_documents_with_other_identifiers_are_harvested_under_the_names_of_their_files(
    harvester: Harvester, site: SiteFolder
) -> None:
    for name in NAMES:
        (site.path / name).unlink()
    site.put("alder.1.xml", "doi:10.5072/FK2.1")
    options = ("--from-names", "{scope}.{identifier}.xml", "--write")
    assert site.build(*options).code == 0
    harvester.add_site("alder", list_url(site))
    first = harvester.run("2026-11-20")
    assert harvester.outcomes(first["run_id"]) == {"alder.1.1": "inserted"}
    assert harvester.findings(first["run_id"]) == [("alder.1", "warning", "eml.package-id-mismatch")]
    site.put("alder.1.xml", "doi:10.5072/FK2.1", "Changed")
    site.build(*options)
    assert harvester.outcomes(harvester.run("2026-11-21")["run_id"]) == {"alder.1.2": "updated"}
    assert harvester.held()["alder.1.2"] == eml("doi:10.5072/FK2.1", "Changed")
