"""As whom the node knows us: what a bearer token says of itself. It is read here, and only the node can verify it."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from metaharvest.text import one_line


@dataclass(frozen=True, slots=True)
class TokenIdentity:
    """A subject, empty if it is not known, and until when the token holds, if it says so."""

    subject: str = ""
    expires: datetime | None = None


def of_token(token: str) -> TokenIdentity:
    """What the claims of a JSON web token say; nothing, if it is none."""
    claims = _claims(token)
    subject = next((claims[name] for name in ("userId", "sub") if isinstance(claims.get(name), str)), "")
    expires = claims.get("exp")
    moment = None
    if isinstance(expires, int | float):
        try:
            moment = datetime.fromtimestamp(expires, UTC)
        except (ValueError, OverflowError, OSError):
            moment = None
    return TokenIdentity(one_line(subject, 800), moment)


def _claims(token: str) -> dict[str, Any]:
    """The middle one of the three parts (RFC 7519), decoded."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
