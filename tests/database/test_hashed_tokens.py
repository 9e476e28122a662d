"""Tokens of links, sessions, keys and lists."""

from __future__ import annotations

import re

from metaharvest.database.hashed_tokens import new_comment_token


def test_a_token_for_a_comment_never_ends_the_comment() -> None:
    tokens = {new_comment_token() for _ in range(100)}
    assert len(tokens) == 100
    assert all(re.fullmatch("[0-9a-f]{40}", each) for each in tokens)
