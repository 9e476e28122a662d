"""Repositories whose answers are small on the wire and costly to read: they cost themselves, and no other site."""

from collections.abc import Iterator

import pytest

from support.harvester import Harvester
from support.hostile_oai import HostileRepository
from support.hostile_run import Cost, GoodSite, measured_run

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

PEAK_MB, GAP = 400, 5


@pytest.fixture
def good() -> Iterator[GoodSite]:
    with GoodSite() as site:
        yield site


def harvested(harvester: Harvester, good: GoodSite, hostile: HostileRepository) -> Cost:
    """A run with both sites, in which the good one loses nothing."""
    harvester.add_site("good", good.list_url)
    with HostileRepository() as proper:
        said = harvester("sites", "add", "hostile", "--oai", proper.base_url, "--origin", "hostile")
        assert said.code == 0, said.err
    harvester.rows("UPDATE harvest_site_schedule SET documentlisturl = ? WHERE name = 'hostile'", hostile.base_url)
    cost = measured_run(harvester, good)
    assert good.is_harvested(harvester), cost
    assert cost.gap < GAP, cost
    assert cost.peak_mb < PEAK_MB, cost
    return cost


def test_a_proper_repository_is_harvested_beside_the_other_site(harvester: Harvester, good: GoodSite) -> None:
    with HostileRepository() as proper:
        cost = harvested(harvester, good, proper)
    assert cost.code == 0
    assert sorted(harvester.held())[-2:] == ["hostile/oai_dc/oai:hostile:1.1", "hostile/oai_dc/oai:hostile:2.1"]
