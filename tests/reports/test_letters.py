"""Letters about a rule: the link for the mail program."""

from __future__ import annotations

import pytest

from metaharvest.reports.letters import Letter

MANY = tuple(f"a.data.manager.of.site.{number}@example.org" for number in range(60))


@pytest.mark.parametrize(
    ("recipients", "body", "ends"),
    [
        (("data@example.org",), "Dear colleagues,\n", "Dear%20colleagues%2C%0D%0A"),
        (("data@example.org",), "Dear colleagues,\n" * 300, "please%20copy%20it%20from%20the%20page.%29"),
        (MANY, "Dear colleagues,\n", ""),
    ],
)
def test_a_link_keeps_to_the_length_that_mail_programs_take(recipients: tuple[str, ...], body: str, ends: str) -> None:
    link = Letter(recipients, "alder: not found (1)", body).link
    assert len(link) <= 1900
    assert link.startswith("mailto:data@example.org?subject=") if ends else link == ""
    assert link.endswith(ends)
