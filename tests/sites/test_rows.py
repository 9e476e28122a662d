"""Values of sites in rows: the addresses that a repository names."""

from __future__ import annotations

from metaharvest.sites.rows import named_contacts


def test_addresses_are_read_as_repositories_write_them() -> None:
    emails = ("The Keeper <k@example.org>", "mailto:a@example.org, b@example.org", "nobody")
    assert named_contacts(emails) == ("k@example.org", "a@example.org", "b@example.org")
