"""How long a value may be that a repository sends and that is stored: a database refuses, or keeps, what it should not.

Characters, but bytes for `ABOUTS`. Whatever reads such a value bounds it; what writes it does so once more.
"""

from __future__ import annotations

from metaharvest.model import RecordOrigin

TOKEN = 65_536
SET_SPEC = 1_024
"""Of a metadataPrefix, too."""

NAMESPACE = 2_048
ABOUTS = 1_000_000
"""Of all `about` elements of a record together."""

CHECKPOINT = 1_000_000
"""Of how far a list has come: a token, or several, and what is left to ask for."""


def too_long(origin: RecordOrigin) -> str:
    """Which value of a record is too long, for a sentence; empty if none is."""
    if sum(map(len, origin.about)) > ABOUTS:
        return f"its about elements have more than {ABOUTS:,} bytes"
    if any(len(each) > SET_SPEC for each in origin.sets):
        return f"a setSpec has more than {SET_SPEC:,} characters"
    if len(origin.namespace) > NAMESPACE:
        return f"its namespace has more than {NAMESPACE:,} characters"
    return ""
