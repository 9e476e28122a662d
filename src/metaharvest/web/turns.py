"""The turns of requests that read lists or documents: a bounded number at a time, and of one address at most half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address
from threading import Condition

from starlette.requests import Request

_HOST_BITS = 64
"""The bits of an IPv6 address that a host chooses by itself: RFC 4291, section 2.5.4."""


class Busy(Exception):
    """The maximum of lists and documents is being read: the client should try again later."""


class Turns:
    """The turns of all requests of a process, for several threads."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._of_one = max(1, at_once // 2)
        self._under_way = Counter[str]()
        self._changed = Condition()

    @contextmanager
    def turn(self, address: str, seconds: float) -> Iterator[None]:
        """The turn of a request from this address; empty: of any. Raises Busy after this time."""
        client = client_of(address)
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(client), seconds):
                raise Busy
            self._under_way[client] += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way[client] -= 1
                if not self._under_way[client]:
                    del self._under_way[client]
                self._changed.notify_all()

    def _has_room(self, client: str) -> bool:
        has_own = not client or self._under_way[client] < self._of_one
        return has_own and self._under_way.total() < self._at_once


def address_of(request: Request) -> str:
    """The address of the client; behind a proxy that the settings name, the one that the proxy reports."""
    return request.client.host if request.client else ""


def client_of(address: str) -> str:
    """The client with this address: IPv6 addresses of one network of 64 bits belong to one."""
    try:
        read = ip_address(address)
    except ValueError:
        return address
    if isinstance(read, IPv6Address):
        return str(read.ipv4_mapped or f"{int(read) >> _HOST_BITS:x}::")
    return str(read)
