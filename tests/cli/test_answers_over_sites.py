"""Questions of stewards about all sites: filters and groups of `sites list`, figures, one workbook with everything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from zipfile import ZipFile

import pytest

from support.harvester import Harvester


@pytest.fixture
def harvester(tmp_path: Path) -> Iterator[Harvester]:
    made = Harvester(tmp_path)
    today = made.opened().today()
    url = "https://example.org/list.xml"
    made.add_site("alder", url, datelastharvest=today - timedelta(days=3), options='{"groups": ["rivers", "north"]}')
    made.add_site("moss", url, datelastharvest=today - timedelta(days=40))
    made.add_site("off", url, enabled=False)
    made.add_site("repo", url, source_kind="oai-pmh", options='{"oai": {"origin": "repo"}}', contact_email="=1+1@e.org")
    yield made
    made.close()


def names(harvester: Harvester, *arguments: str) -> list[str]:
    said = harvester("sites", "list", "--json", *arguments)
    return [site["name"] for site in json.loads(said.out)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["alder", "moss", "off", "repo"]),
        (["--not-harvested-for", "30"], ["moss", "repo"]),
        (["--not-harvested-for", "3"], ["alder", "moss", "repo"]),
        (["--state", "off"], ["off"]),
        (["--kind", "oai-pmh"], ["repo"]),
        (["--kind", "harvest-list", "--state", "due"], ["alder", "moss"]),
        (["--group", "rivers"], ["alder"]),
        (["--group", "nobody"], []),
        (["--failing"], []),
        (["--overdue"], []),
    ],
)
def test_filters_choose_the_listed_sites(harvester: Harvester, arguments: list[str], expected: list[str]) -> None:
    assert names(harvester, *arguments) == expected


def test_a_site_joins_groups_and_leaves_them(harvester: Harvester) -> None:
    assert harvester("sites", "edit", "moss", "--add-to-group", "north", "--add-to-group", "bogs").code == 0
    assert names(harvester, "--group", "north") == ["alder", "moss"]
    assert harvester("sites", "edit", "moss", "--remove-from-group", "north").code == 0
    assert names(harvester, "--group", "north") == ["alder"]
    assert names(harvester, "--group", "bogs") == ["moss"]
    assert "bogs" in harvester("sites", "show", "moss").out
    refused = harvester("sites", "edit", "moss", "--add-to-group", "two words")
    assert (refused.code, "is no name of a group" in refused.err) == (2, True)


def test_an_empty_choice_of_sites_is_reported(harvester: Harvester) -> None:
    assert harvester("sites", "list", "--group", "nobody").out == "There is no such site.\n"
    assert harvester("sites", "list", "--overdue", "--state", "off").code == 2


def test_a_workbook_has_everything_and_no_formula(harvester: Harvester, tmp_path: Path) -> None:
    said = harvester("export", "workbook", str(tmp_path / "harvest.xlsx"))
    assert (said.code, "Rows: 4 sites, 0 documents failing" in said.out) == (0, True)
    with ZipFile(tmp_path / "harvest.xlsx") as book:
        sheets = re.findall(r'<sheet name="([^"]+)"', book.read("xl/workbook.xml").decode())
        cells = [book.read(name).decode() for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
    assert sheets == ["sites", "documents failing", "problems", "runs", "deliveries"]
    assert "=1+1@e.org" in "".join(cells)
    assert not any("<f>" in sheet or "<hyperlink" in sheet for sheet in cells)
    assert list(tmp_path.glob(".harvest*")) == []


def test_a_workbook_that_cannot_be_written_is_reported(harvester: Harvester, tmp_path: Path) -> None:
    said = harvester("export", "workbook", str(tmp_path / "nowhere" / "x.xlsx"))
    assert (said.code, "No such file or directory" in said.err) == (1, True)


def test_a_period_that_ends_before_it_begins_is_a_mistake(harvester: Harvester) -> None:
    assert harvester("figures", "--from", "2026-02-01", "--to", "2026-01-01").code == 2
    assert "documents new" in harvester("figures").out
    assert "No site was harvested" in harvester("figures", "--per", "month").out


def test_several_sites_are_changed_together_and_each_says_what_it_was(harvester: Harvester) -> None:
    assert harvester("sites", "edit", "moss", "repo", "--add-to-group", "rivers").code == 0
    said = harvester("sites", "edit", "--group", "rivers", "--every", "2", "--unit", "weeks")
    assert said.code == 0
    assert [line for line in said.out.splitlines() if line.startswith("Changed")] == [
        f"Changed {name}: next harvest as soon as possible, then every 2 weeks." for name in ("alder", "moss", "repo")
    ]
    assert said.out.count("  every: 1 -> 2") == 3
    rows = harvester.rows("SELECT name, updatefrequency, unit FROM harvest_site_schedule ORDER BY name")
    assert rows == [("alder", 2, "weeks"), ("moss", 2, "weeks"), ("off", 1, "days"), ("repo", 2, "weeks")]


def test_where_one_site_cannot_be_changed_none_is(harvester: Harvester) -> None:
    refused = harvester("sites", "edit", "alder", "nobody", "--every", "9")
    assert (refused.code, "There is no site named 'nobody'" in refused.err) == (2, True)
    assert harvester.rows("SELECT updatefrequency FROM harvest_site_schedule WHERE name = 'alder'") == [(1,)]
    assert harvester("sites", "edit", "alder", "moss", "--name", "x").code == 2
    assert harvester("sites", "edit", "--group", "nobody", "--every", "2").code == 2
    assert harvester("sites", "edit", "--every", "2").code == 2


@pytest.mark.parametrize("form", ["--csv", "--json"])
def test_groups_come_along_when_sites_are_exported_and_imported(
    harvester: Harvester, tmp_path: Path, form: str
) -> None:
    exported = harvester("sites", "export", form).out
    (tmp_path / f"sites.{form[2:]}").write_text(exported, encoding="utf-8")
    for name in ("alder", "moss", "off", "repo"):
        harvester("sites", "remove", name, "--yes")
    harvester("sites", "import", str(tmp_path / f"sites.{form[2:]}"), "--allow-duplicate")
    assert names(harvester, "--group", "north") == ["alder"]
