"""Answers in gzip, for clients that accept it. Pure."""

from __future__ import annotations

import re

_REFUSED = re.compile(r"0(\.0{0,3})?")


def accepts_gzip(accept_encoding: str) -> bool:
    """True if the header of a request accepts gzip: RFC 9110, section 12.5.3."""
    weights: dict[str, str] = {}
    for each in accept_encoding.lower().split(","):
        coding, _, weight = each.partition(";")
        weights[coding.strip()] = weight.strip().removeprefix("q=").strip()
    weight = weights.get("gzip", weights.get("*", "0"))
    return _REFUSED.fullmatch(weight) is None
