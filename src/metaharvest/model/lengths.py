"""The greatest lengths of values that a repository sends and that are stored.

In characters; `ABOUTS` is in bytes. The code that reads such a value bounds it, the code that writes it checks again.
"""

from __future__ import annotations

from metaharvest.model import RecordOrigin

TOKEN = 65_536
SET_SPEC = 1_024
"""A setSpec, or a metadataPrefix."""

NAMESPACE = 2_048
ABOUTS = 1_000_000
"""All `about` elements of a record together."""

CHECKPOINT = 1_000_000
"""The state of a list that was begun: its tokens, and what is left to request."""


def too_long(origin: RecordOrigin) -> str:
    """The value of a record that is too long, as part of a sentence; empty if none is."""
    if origin.about and sum(map(len, origin.about)) > ABOUTS:
        return f"its about elements have more than {ABOUTS:,} bytes"
    if origin.sets and max(map(len, origin.sets)) > SET_SPEC:
        return f"a setSpec has more than {SET_SPEC:,} characters"
    if len(origin.namespace) > NAMESPACE:
        return f"its namespace has more than {NAMESPACE:,} characters"
    return ""
