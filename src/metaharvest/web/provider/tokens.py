"""Resumption tokens: all that the next page needs, signed. Pure.

A token is base64url of JSON and of its HMAC-SHA256. No state is stored: the same token has the same answer after a
restart, and on another machine with the same key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import astuple
from datetime import UTC, datetime, timedelta

from metaharvest.model.values import frozen

LIFETIME = timedelta(hours=48)
_VERSION = 1
_SIGNATURE = 16
"""Bytes of the HMAC that are kept."""


@frozen
class Token:
    """The place in a list. Times are seconds since 1970; 0 for `since`: from the beginning.

    `until` is the end of the list as the first page fixed it; `is_bounded`: the request named an end. `last_at` and
    `last_number` are the position of the last record; `last` is the last set of ListSets. `cursor` is the number of
    records before the next page, `size` the number of all.
    """

    verb: str
    prefix: str = ""
    set_spec: str = ""
    since: int = 0
    until: int = 0
    is_bounded: bool = False
    last_at: int = 0
    last_number: int = 0
    last: str = ""
    cursor: int = 0
    size: int = 0
    issued: int = 0

    @property
    def expires(self) -> datetime:
        """The time after which it is refused."""
        return moment(self.issued) + LIFETIME


def moment(seconds: int) -> datetime:
    """The time that is this number of seconds after 1970."""
    return datetime.fromtimestamp(seconds, UTC)


def written(token: Token, key: bytes) -> str:
    """The token as text; a URL needs no escapes for it."""
    values = json.dumps([_VERSION, *astuple(token)], separators=(",", ":")).encode()
    return _encoded(_signature(values, key) + values)


def read_token(text: str, key: bytes, verb: str, now: datetime) -> Token | str:
    """The token for this verb; or why it is refused, as a sentence."""
    try:
        data = base64.b64decode(text.encode() + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return "The resumptionToken is damaged."
    signature, values = data[:_SIGNATURE], data[_SIGNATURE:]
    if not hmac.compare_digest(signature, _signature(values, key)) or _encoded(data) != text:
        return "The resumptionToken is not one of this repository, or is damaged."
    version, *rest = json.loads(values)
    if version != _VERSION:
        return "The resumptionToken is of another version of this repository: begin the list again."
    token = Token(*rest)
    if token.verb != verb:
        return f"The resumptionToken belongs to {token.verb}."
    if now > token.expires:
        return "The resumptionToken has expired: begin the list again."
    return token


def _encoded(data: bytes) -> str:
    """These bytes as base64url, in the only form that is accepted: base64 has several for the same bytes."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _signature(values: bytes, key: bytes) -> bytes:
    return hmac.digest(key, values, hashlib.sha256)[:_SIGNATURE]
