"""Base URLs of one repository have one key and one name."""

import pytest

from metaharvest.sites.origins import origin_of, repository_key


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
