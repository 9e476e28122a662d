"""What a run learns of the hosts that it asks, over all its sites: which want to be left alone, which are not reached.

One per run, beside the connections; from any thread.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import NotAsked
from metaharvest.fetch.backoff import FAILURES_IN_A_ROW, pause
from metaharvest.fetch.url import DEFAULT_PORTS, WebAddress
from metaharvest.model import Finding, Level


@dataclass(slots=True)
class _Away:
    """How often in a row a host was not reached, when that last counted, until when it has a pause (time.monotonic)."""

    failures: int = 0
    counted: float = 0.0
    until: float = 0.0


class Hosts:
    """Until when hosts are to be left alone (RFC 9110, 10.2.3), and how often in a row they could not be reached.

    Between failures the host is given the pauses of a retry, by all sites, so that one that was away for a moment is
    not given up for the night; after each pause one request finds out how it is.
    """

    def __init__(self, http: HttpSettings) -> None:
        self._http = http
        self._mutex = threading.Lock()
        self._resting: dict[str, float] = {}
        self._away: dict[str, _Away] = {}

    def require_awake(self, address: WebAddress, spent: float) -> None:
        """Raises NotAsked where the host of `address` wants to be left alone still; `spent`: see FetchError.seconds."""
        if not self._resting:
            return
        host = _name(address)
        left = self._resting.get(host, 0.0) - time.monotonic()
        if left > 0:
            until = datetime.now(UTC) + timedelta(seconds=left)
            message = f"The server {host} asked to be left alone until {until:%Y-%m-%d %H:%M:%S} UTC (Retry-After)."
            remedy = "Nothing is to be done: the harvester tries again by itself."
            raise NotAsked(
                Finding("http.retry-after", message, remedy, Level.WARNING), host, seconds=spent, retry_after=left
            )

    def require_reachable(self, address: WebAddress) -> None:
        """Raises NotAsked where the host of `address` could not be reached, and is given a pause or is given up."""
        if not (away := self._away.get(host := _name(address))):
            return
        message = f"The server {host} could not be reached {away.failures} times in a row and was not asked again."
        remedy = "Look whether the server is up; the documents are tried again by themselves."
        finding = Finding("http.server-stopped", message, remedy, Level.WARNING)
        if away.failures >= FAILURES_IN_A_ROW:
            raise NotAsked(finding, host, seconds=0.0)
        if (left := away.until - time.monotonic()) > 0:
            raise NotAsked(finding, host, seconds=0.0, retry_after=left)

    def asked(self, address: WebAddress) -> float:
        """The moment (time.monotonic) at which a request begins; what follows it waits a little for how it ends."""
        now = time.monotonic()
        if self._away:
            with self._mutex:
                if away := self._away.get(_name(address)):
                    away.until = max(away.until, now + self._pause(1))
        return now

    def reached(self, address: WebAddress) -> None:
        """The host took a request."""
        if self._away:
            with self._mutex:
                self._away.pop(_name(address), None)

    def not_reached(self, address: WebAddress, began: float) -> None:
        """The host could not even be asked: no address, no connection.

        What failed together counts once: a request counts only if it `began` after the last that did.
        """
        host, now = _name(address), time.monotonic()
        with self._mutex:
            away = self._away.setdefault(host, _Away())
            if began >= away.counted and away.failures < FAILURES_IN_A_ROW:
                away.failures += 1
                away.counted = now
                away.until = max(away.until, now + self._pause(away.failures))

    def _pause(self, number: int) -> float:
        return pause(number, self._http) if self._http.retries else 0.0

    def rest(self, address: WebAddress, seconds: float) -> None:
        """Leave the host alone for so long."""
        host = _name(address)
        with self._mutex:
            self._resting[host] = max(self._resting.get(host, 0.0), time.monotonic() + seconds)


def _name(address: WebAddress) -> str:
    """The host, on its usual ports one and the same; with its port on any other."""
    host = address.host.rstrip(".")
    return host if address.port in DEFAULT_PORTS.values() else f"{host}:{address.port}"
