"""A document on its way into its file: decompressed, counted, hashed.

Decompressed here and not by libcurl, which takes a gzip stream that breaks off for a whole one.
"""

from __future__ import annotations

import hashlib
import zlib

from metaharvest.fetch.exchange import Exchange, StopReason

_PIECE = 262_144
_MOST_MEMBERS = 2_000
_MEMBER_BYTES = 1_000
"""The limit of members of a gzip stream, and one more for each of these bytes; programs give each 64 KB or more."""


class Body:
    """The body of one exchange."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._digest = hashlib.sha256()
        coding = exchange.headers.get("content-encoding", "").lower()
        self._known = coding in ("", "identity", "gzip", "x-gzip")
        self._inflate = zlib.decompressobj(wbits=31) if coding in ("gzip", "x-gzip") else None
        self._members = 1

    @property
    def sha256(self) -> str:
        """The digest of the bytes so far, in hexadecimal."""
        return self._digest.hexdigest()

    @property
    def is_whole(self) -> bool:
        """False if the compressed stream has not reached its end."""
        return self._inflate is None or self._inflate.eof

    def add(self, data: bytes) -> StopReason | None:
        """Take the next bytes; return the reason to stop, if there is one."""
        if not self._known:
            return StopReason.ENCODING
        if self._exchange.wire > self._exchange.limits.size:
            return StopReason.TOO_LARGE
        if self._inflate is None:
            return self._keep(data)
        try:
            return self._add_compressed(data)
        except zlib.error:
            return StopReason.ENCODING

    def _add_compressed(self, data: bytes) -> StopReason | None:
        """A file may have several gzip members in a row; bytes after the last that are no member are padding."""
        more = False
        while data or more:
            if self._inflate is None or self._inflate.eof:
                if not data.startswith(b"\x1f"):
                    return None
                self._members += 1
                if self._members > _MOST_MEMBERS + self._exchange.size // _MEMBER_BYTES:
                    return StopReason.ENCODING
                self._inflate = zlib.decompressobj(wbits=31)
            piece = self._inflate.decompress(data, _PIECE)
            if stop := self._keep(piece):
                return stop
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            more = len(piece) == _PIECE and not self._inflate.eof
        return None

    def _keep(self, piece: bytes) -> StopReason | None:
        exchange = self._exchange
        exchange.size += len(piece)
        if exchange.size > exchange.limits.size:
            return StopReason.TOO_LARGE
        self._digest.update(piece)
        exchange.file.write(piece)
        return None
