"""The defence against requests that other pages make a browser send, and the headers of each answer. Pure.

A form has a token that only this server could derive from the browser's cookie. Besides, the browser says in the header
Origin from which page a form was sent.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote, unquote, urlsplit

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    # With no-referrer, a browser would not say from which page a form was sent: its Origin would be null.
    # https://fetch.spec.whatwg.org/#append-a-request-origin-header
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

CSRF_FIELD = "csrf"
"""The field of each form that has the token."""

RESERVED = frozenset({".", "..", "add", "export", "import", "several"})
"""Names that need a mark before them in a path: browsers read dots as folders, and pages have the other words."""

_MARK = "~"
_DEFAULT_PORTS = {"http": 80, "https": 443}


def csrf_token(secret: str) -> str:
    """The token for the forms of the browser with this cookie."""
    return hmac.new(secret.encode("utf-8", "replace"), b"csrf", hashlib.sha256).hexdigest()


def is_token_right(secret: str, token: str) -> bool:
    """True if the token of a form belongs to the cookie of the browser that sent it."""
    return bool(secret) and hmac.compare_digest(csrf_token(secret).encode(), token.encode("utf-8", "replace"))


def is_own_origin(headers: Mapping[str, str], url: str) -> bool:
    """True unless the browser says that a form came from a page of another server.

    `url` is the public address of this server, or empty. Without Origin, the Referer says it. Old browsers, and
    programs, say nothing: the token decides.
    """
    if headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        return False
    origin = headers.get("origin", headers.get("referer"))
    if origin is None:
        return True
    if origin == "null":
        return headers.get("sec-fetch-site") == "same-origin"
    own = [_host_of(url)] if url else []
    try:
        host = urlsplit(origin)
        asked = urlsplit(f"{host.scheme}://{headers.get('host', '')}")
        return _host_of(origin) in (*own, (asked.hostname, asked.port or _DEFAULT_PORTS.get(host.scheme)))
    except ValueError:
        return False


def local_path(text: str) -> str:
    """The path in the console that `text` names; the start page if it names anything else, such as another server."""
    parts = [unquote(part) for part in text.partition("?")[0].split("/")]
    # Browsers read %2e as a dot: https://url.spec.whatwg.org/#double-dot-path-segment
    is_inside = parts[:2] == ["", "console"] and "" not in parts[2:-1] and not {".", ".."} & set(parts)
    is_plain = text.isascii() and text.isprintable() and "\\" not in text and "#" not in text
    return text if is_inside and is_plain else "/console/"


def path_of(path: str, *parts: object) -> str:
    """A path with further parts, each of which may have any characters: `part_of` reads them."""
    written = (quote(_MARK * _is_reserved(str(part)) + str(part), safe="") for part in parts)
    return "/".join((path.rstrip("/") if parts else path, *written))


def part_of(part: str) -> str:
    """The text that a part of a path stands for."""
    text = unquote(part)
    return text[1:] if text.startswith(_MARK) and _is_reserved(text[1:]) else text


def _is_reserved(text: str) -> bool:
    return text.lstrip(_MARK) in RESERVED


def _host_of(url: str) -> tuple[str | None, int | None]:
    parts = urlsplit(url)
    return parts.hostname, parts.port or _DEFAULT_PORTS.get(parts.scheme)
