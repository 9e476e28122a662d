"""Source repositories that a person names: their base URLs, and their registration."""

from __future__ import annotations

from pathlib import Path

import pytest

from metaharvest.errors import CannotBeChecked, RequestError
from metaharvest.model import OaiOptions
from metaharvest.services.source_repositories import SourceRepository, base_urls_in_file, register_repositories, usable
from support.databases import on_one_database
from support.harvester import Harvester

ONE, OTHER = "https://one.example.org/oai", "https://other.example.org/oai"


def test_each_base_url_is_named_once_and_others_are_left_out_with_the_reason() -> None:
    named = usable([ONE, OTHER, ONE, "nonsense", f"{ONE}?verb=Identify"])
    assert named.base_urls == (ONE, OTHER)
    first, second = named.left_out
    assert first == "'nonsense' is left out: it is no web address."
    assert second.startswith(f"'{ONE}?verb=Identify' is left out: ")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "urls.txt"
    with path.open("wb") as file:
        file.truncate(64 * 2**20 + 1)
    with pytest.raises(CannotBeChecked, match="larger than 64 MiB"):
        base_urls_in_file(path)


@on_one_database
def test_repositories_are_registered_once_and_switched_off(harvester: Harvester) -> None:
    with harvester.opened() as opened:
        first = register_repositories(opened, [ONE], "a@example.org", "oai_dc")
        second = register_repositories(opened, [ONE, OTHER], "a@example.org", "oai_dc")
        assert (list(first), list(second)) == ([ONE], [OTHER])
        with pytest.raises(RequestError, match="is not a web address"):
            SourceRepository(opened.settings, "nonsense", OaiOptions("oai")).identify()
    assert harvester.rows("SELECT documentlisturl, enabled FROM harvest_site_schedule ORDER BY 1") == [
        (ONE, 0),
        (OTHER, 0),
    ]
