"""Tokens of links, sessions and keys: random, shown once, stored as hashes."""

from __future__ import annotations

import hashlib
import secrets


def new_token() -> str:
    """A token of 256 bits that can be part of a URL."""
    return secrets.token_urlsafe(32)


def new_comment_token() -> str:
    """A token of 160 bits that can be in a comment of XML, which has no two hyphens in a row."""
    return secrets.token_hex(20)


def hash_of(token: str) -> str:
    """The hash that is stored. The token has 256 bits: no salt and no slow hash is needed."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
