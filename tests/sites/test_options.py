"""What a site has of its own: the names that are made for it."""

from __future__ import annotations

import pytest

from metaharvest.sites.options import read_options
from metaharvest.sites.same_source import origin_of


def test_base_urls_that_differ_in_their_query_have_origins_of_their_own_in_which_no_key_can_be_read() -> None:
    assert origin_of("https://user:pw@Repository.example.org/oai/Request") == "repository.example.org-oai-request"
    origins = {origin_of(f"https://repository.example.org/oai{query}") for query in ("", "?key=Se-cret", "?key=other")}
    assert len(origins) == 3
    assert all(origin.startswith("repository.example.org-oai") for origin in origins)
    assert not any("cret" in origin or "other" in origin for origin in origins)
    assert len(origin_of(f"https://repository.example.org/{'x' * 500}?key=a")) <= 200


def test_an_origin_is_made_of_what_is_sent() -> None:
    assert origin_of("https://архив.example.org/oai") == "xn-80aer5aza.example.org-oai"
    assert origin_of("https://example.org/архив") == "example.org-d0-b0-d1-80-d1-85-d0-b8-d0-b2"


@pytest.mark.parametrize(
    "text", ['{"groups": "forest"}', '{"allow_networks": "::1"}', '{"oai": {"origin": "o", "post": "no"}}']
)
def test_a_list_and_a_flag_have_their_types(text: str) -> None:
    with pytest.raises(ValueError, match="must be"):
        read_options(text)
