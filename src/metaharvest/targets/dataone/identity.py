"""Our identity on a node, as a bearer token states it. Only the node can verify the token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import jwt

from metaharvest.text import one_line


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """A subject, empty if unknown, and the time at which the token expires, if it says so."""

    subject: str = ""
    expires: datetime | None = None


def of_token(token: str) -> TokenIdentity:
    """The claims of a JSON web token (RFC 7519); an empty identity for any other token."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        return TokenIdentity()
    subject = next((claims[name] for name in ("userId", "sub") if isinstance(claims.get(name), str)), "")
    expires = claims.get("exp")
    moment = None
    if isinstance(expires, int | float):
        try:
            moment = datetime.fromtimestamp(expires, UTC)
        except (ValueError, OverflowError, OSError):
            moment = None
    return TokenIdentity(one_line(subject, 800), moment)
