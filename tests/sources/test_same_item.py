"""Whether two records are of the same item: the three rules of the guidelines for aggregators."""

from __future__ import annotations

import pytest

from metaharvest.model import RecordOrigin
from metaharvest.sources.oai_pmh.same_item import why_same

PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"


def described(*sources: tuple[str, str]) -> bytes:
    """A provenance container with these base URLs and identifiers, each inside of the one before."""
    inner = ""
    for base_url, identifier in reversed(sources):
        names = f"<baseURL>{base_url}</baseURL><identifier> {identifier}\n</identifier>"
        inner = f"<originDescription>{names}{inner}</originDescription>"
    return f'<provenance xmlns="{PROVENANCE}">{inner}</provenance>'.encode()


def record(base_url: str, identifier: str, *about: bytes) -> RecordOrigin:
    return RecordOrigin(base_url, identifier, "oai_dc", "2026-01-01", "", about=about)


A1 = record("https://a.org/oai", "1")


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (A1, A1, "Identifier and base URL are the same."),
        (A1, record("https://b.org/oai", "1"), None),
        (A1, record("https://a.org/oai", "2"), None),
        (record("https://a.org/oai", "doi:10.1/x"), record("https://b.org/oai", "doi:10.1/x"), "The identifier is"),
        (record("https://a.org/oai", "oai:frogs:1"), record("https://b.org/oai", "oai:frogs:1"), None),
        (A1, record("https://b.org/oai", "2", described(("https://a.org/oai", "1"))), "Both are the record 1"),
        (A1, record("https://b.org", "2", described(("https://c.org/oai", "9"), ("https://a.org/oai", "1"))), "Both"),
        (A1, record("https://b.org/oai", "2", described(("https://c.org/oai", "1"))), None),
        (
            record("https://b.org/oai", "2", b"<other/>", described(("https://c.org/oai", "1"))),
            record("https://d.org/oai", "3", described(("https://c.org/oai", "1"))),
            "Both are the record 1 of https://c.org/oai.",
        ),
        (A1, record("https://b.org/oai", "2", b"<provenance/>"), None),
    ],
)  # fmt: skip
def test_the_rules(one: RecordOrigin, other: RecordOrigin, reason: str | None) -> None:
    for found in (why_same(one, other), why_same(other, one)):
        assert (found or "").startswith(reason or "")
        assert (found is None) == (reason is None)
