"""Base URLs of one repository have one key and one name."""

import pytest

from metaharvest.fetch.url import repository_key
from metaharvest.model import OaiOptions, SameOrigin, Site, SiteOptions
from metaharvest.sites.rows import BrokenSite
from metaharvest.sites.same_source import origin_of, sites_of_one_origin


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org./oai",
        "http://EXAMPLE.org/oai/",
        "https://example.org.:443/oai",
        "https://somebody:secret@example.org./oai",
    ],
)
def test_one_repository_is_known_however_its_host_is_written(url: str) -> None:
    assert repository_key(url) == repository_key("https://example.org/oai") == "example.org/oai"
    assert origin_of(url) == "example.org-oai"


def test_other_ports_and_paths_are_other_repositories() -> None:
    urls = (
        "http://example.org/oai",
        "http://example.org.:8080/oai",
        "http://example.org/oai2",
        "http://a.example.org/oai",
    )
    assert len(set(map(repository_key, urls))) == len(urls)
    assert repository_key("http://example.org.:8080/oai") == "example.org:8080/oai"


def site(number: int, origin: str = "o", prefix: str = "oai_dc") -> Site:
    return Site(number, f"s{number}", "u", (), options=SiteOptions(oai=OaiOptions(origin, prefix)))


def test_sites_with_one_origin_format_and_target_are_of_one_origin() -> None:
    sites = [site(1), site(2), site(3), site(4, "other"), site(5, prefix="eml"), site(6), site(7)]
    lists: list[Site | BrokenSite] = [Site(8, "list", "u", ()), BrokenSite(9, "broken", "u", True, (), ())]
    targets = {"s6": "folder", "s7": "folder"}
    assert sites_of_one_origin([*sites, *lists], lambda name: targets.get(name, "embedded")) == {
        **dict.fromkeys((1, 2, 3), frozenset({1, 2, 3})),
        **dict.fromkeys((6, 7), frozenset({6, 7})),
    }


def test_in_a_run_without_a_target_the_other_sites_have_the_ids_of_their_rehearsals() -> None:
    rehearsed = SameOrigin(frozenset({2, 3}), frozenset({2})).for_rehearsal()
    assert rehearsed == SameOrigin(frozenset({-2, -3}), frozenset({-2}))
