"""The sets of the provider: by site, by origin with the sets of source repositories, and by format. Pure.

A setSpec has few characters. Others are written as `~` and two hexadecimal digits for each byte of UTF-8, one-to-one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

SITE, ORIGIN, FORMAT = "site", "origin", "format"
NAMES = {
    SITE: "Records by the site that they were harvested from",
    ORIGIN: "Records by source repository",
    FORMAT: "Records by metadata format",
}
"""The sets at the top, and their names for people."""

_LEGAL = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.!*'()")
_ESCAPE = re.compile(r"~([0-9A-F]{2})")
_EMPTY = "~"


@lru_cache(maxsize=4096)
def escaped(text: str) -> str:
    """A name as one part of a setSpec."""
    return "".join(chr(byte) if byte in _LEGAL else f"~{byte:02X}" for byte in text.encode()) or _EMPTY


def unescaped(part: str) -> str | None:
    """The name of this part of a setSpec; None if it is not written as escaped() does it."""
    if part == _EMPTY:
        return ""
    data = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), part).encode("latin-1", "replace")
    text = data.decode(errors="replace")
    return text if escaped(text) == part else None


def site_set(name: str) -> str:
    """The set of a site."""
    return f"{SITE}:{escaped(name)}"


def origin_set(origin: str, source_set: str | None = None) -> str:
    """The set of an origin, or of a set of its source repository."""
    below = "" if source_set is None else "".join(f":{escaped(part)}" for part in source_set.split(":"))
    return f"{ORIGIN}:{escaped(origin)}{below}"


def parts_of(set_spec: str) -> Sequence[str] | None:
    """The names in a setSpec of this provider, from the top; None for any other text."""
    top, *rest = set_spec.split(":")
    names = [name for part in rest if (name := unescaped(part)) is not None]
    # PostgreSQL refuses a text with the character 0.
    is_ours = top in NAMES and len(names) == len(rest) and "\0" not in "".join(names)
    return [top, *names] if is_ours else None


def lowest(set_specs: Iterable[str]) -> Sequence[str]:
    """These sets without each set that includes another one of them."""
    specs = list(dict.fromkeys(set_specs))
    upper = set()
    for each in specs:
        above = each.rpartition(":")[0]
        # The sets above a known one are known, too: the work grows with the characters.
        while above and above not in upper:
            upper.add(above)
            above = above.rpartition(":")[0]
    return [each for each in specs if each not in upper]
