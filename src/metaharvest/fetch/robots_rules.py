"""The rules of a robots.txt that count for the harvester (RFC 9309), at a cost that is linear in its bytes.

A robots.txt may give each of thousands of user agents thousands of rules. Only the groups that name the harvester
count; without one, the groups for all (`*`). Lines of other groups are left out before Protego reads the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from protego import Protego

MOST_BYTES = 524_288
"""Bytes of a robots.txt that are read; RFC 9309 (2.5) asks for at least 500 KiB."""

MOST_RULES = 2_000
"""The most rules that count; well-known servers have some hundred for all user agents."""

LONGEST_RULE = 2_048
MOST_WILDCARDS = 10
"""The most `*` in a rule that counts: for each URL, Protego searches each part between two of them."""

_AGENT = ("user-agent", "useragent", "user agent")
_RULES = ("allow", "disallow")
_MISSPELT = ("dissallow", "dissalow", "disalow", "diasllow", "disallaw")
_TOKEN = re.compile(r"[a-z_-]*")


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of a robots.txt for the harvester; `left_out`: rules beyond the limits."""

    parsed: Protego
    left_out: int = 0

    def allow(self, url: str) -> bool:
        """True if the harvester may ask for this URL."""
        return self.parsed.can_fetch(url, "*")


def rules_for(product: str, content: bytes) -> RobotsRules:
    """The rules for the user agent `product`, in lower case."""
    ours: dict[str, None] = {}
    for_all: dict[str, None] = {}
    names_us = False
    groups: list[dict[str, None]] = []
    was_agent = False
    for field, value in _lines(content[:MOST_BYTES].decode("utf-8-sig", "replace")):
        if field == "user-agent":
            groups = groups if was_agent else []
            whose = value.lower()
            if _TOKEN.match(whose)[0] == product:  # type: ignore[index]
                names_us = True
                groups = [*(each for each in groups if each is not ours), ours]
            elif whose.startswith("*"):
                groups = [*(each for each in groups if each is not for_all), for_all]
        elif value:
            for group in groups:
                group[f"{field}: {value}"] = None
        was_agent = field == "user-agent"
    wanted = [rule for rule in (ours if names_us else for_all) if _is_bounded(rule)]
    found = len(ours if names_us else for_all)
    kept = wanted[:MOST_RULES]
    return RobotsRules(Protego.parse("\n".join(("User-agent: *", *kept))), found - len(kept))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Field and value of each rule and each user agent; the colon between them may be missing."""
    for line in text.splitlines():
        bare = line.partition("#")[0].strip()
        field, colon, value = bare.partition(":")
        if not colon or len(field) > 20:
            field, _, value = bare.partition(" ")
        field = field.strip().lower()
        if field in _AGENT:
            yield "user-agent", value.strip()
        elif field in _RULES or field in _MISSPELT:
            yield "allow" if field == "allow" else "disallow", value.strip()
        elif field == "crawl-delay":
            # It belongs to a group, and so ends the lines that name the user agents of the group.
            yield field, ""


def _is_bounded(rule: str) -> bool:
    return len(rule) <= LONGEST_RULE and rule.count("*") <= MOST_WILDCARDS
