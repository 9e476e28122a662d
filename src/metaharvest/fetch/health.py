"""The state of servers during a run: pauses that they asked for, servers that cannot be reached, servers that fail.

`HostHealth` is about hosts that ask for a pause or are not even reached, for all sites of a run. `ServerHealth` is
about the answers of servers to one site.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from urllib.parse import urlsplit

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked
from metaharvest.fetch.backoff import back_off
from metaharvest.fetch.url import WebAddress, host_without_dot
from metaharvest.model import Finding, Level, ServerTrouble
from metaharvest.text import counted

_SERVER = re.compile(r"https?://([A-Za-z0-9.-]+(?::[0-9]+)?)(?:[/?#]|\Z)")
"""A usual URL: to split every URL completely takes some percent of a night."""


FAILURES_IN_A_ROW = 5

_PROBE_SECONDS = 0.25
"""The interval at which callers check the result of a probe."""


class CircuitBreaker:
    """Counts the failures of one server in a row; after `threshold` of them it is open: no more requests are sent.

    Between the failures the server gets the pauses of a retry, so that one that was away for a moment is not given up
    for the night.
    """

    def __init__(self, threshold: int, http: HttpSettings) -> None:
        self._threshold = threshold
        self._http = http
        self._pause_until = 0.0
        self.is_probed = False
        """True while a probe is under way, a request that tests the server: the others wait for its result."""

        self.failures = 0
        self.counted = 0.0
        """The time (time.monotonic) of the last counted failure."""

    @property
    def is_open(self) -> bool:
        """True if the server gets no more requests."""
        return self.failures >= self._threshold

    @property
    def pause(self) -> float:
        """Seconds of pause that the server still has; 0: none."""
        probing = min(_PROBE_SECONDS, self._http.retry_wait_limit) if self.is_probed else 0.0
        return max(probing, self._pause_until - time.monotonic(), 0.0)

    def failed(self) -> None:
        """Count a failure; once open, it stays so."""
        if not self.is_open:
            self.failures += 1
            self.counted = time.monotonic()

    def succeeded(self) -> None:
        """The server is well; once given up, it stays so for this run."""
        if not self.is_open:
            self.failures, self._pause_until = 0, 0.0

    def require_closed(self, server: str, trouble: str) -> None:
        """Raises NotAsked if the server has a pause or is given up; `trouble` begins the sentence about it."""
        if not (self.is_open or (pause := self.pause)):
            return
        message = f"{trouble} in a row and was not asked again."
        remedy = "Check whether the server is up; the documents are tried again by themselves."
        finding = Finding("http.server-stopped", message, remedy, Level.WARNING)
        raise NotAsked(finding, server, seconds=0.0, retry_after=None if self.is_open else pause)

    def resume(self, failures: int, failed_before: float, pause: float) -> None:
        """Continue after this number of failures in a row; `failed_before` and `pause` are in seconds."""
        now = time.monotonic()
        self.failures, self.counted, self._pause_until = failures, now - failed_before, now + pause

    def give_pause(self, number: int) -> None:
        """Give the server the pause of the retry number `number` (from 1); shorter pauses are extended."""
        if self._http.retries:
            self._pause_until = max(self._pause_until, time.monotonic() + back_off(number, self._http))


class HostHealth:
    """The pauses of hosts (RFC 9110, 10.2.3), and the hosts that cannot be reached. One per run.

    After each pause one request tests the host.
    """

    def __init__(self, http: HttpSettings) -> None:
        self._http = http
        self._resting: dict[str, float] = {}
        self._unreached: dict[str, CircuitBreaker] = {}
        self.on_change: Callable[[str], None] = lambda host: None
        """Called with the name of a host whose trouble has changed."""

    def trouble_of(self, host: str) -> list[ServerTrouble]:
        """The trouble of the servers on this host, each by its port."""
        now = time.monotonic()
        found = []
        for server in self._servers_of(host):
            rest = max(self._resting.get(server, 0.0) - now, 0.0)
            breaker = self._unreached.get(server)
            if breaker and breaker.failures:
                found.append(ServerTrouble(server, rest, breaker.failures, now - breaker.counted, breaker.pause))
            elif rest:
                found.append(ServerTrouble(server, rest))
        return found

    def replace_trouble(self, host: str, troubles: Sequence[ServerTrouble]) -> None:
        """Go on from the trouble that another process had with this host; the pauses known here hold as well."""
        for server in self._servers_of(host):
            self._unreached.pop(server, None)
        now = time.monotonic()
        for trouble in troubles:
            if trouble.rest:
                self._resting[trouble.server] = max(self._resting.get(trouble.server, 0.0), now + trouble.rest)
            if trouble.failures:
                breaker = self._unreached[trouble.server] = CircuitBreaker(FAILURES_IN_A_ROW, self._http)
                breaker.resume(trouble.failures, trouble.failed_before, trouble.pause)

    def _servers_of(self, host: str) -> list[str]:
        servers = {*self._resting, *self._unreached}
        return sorted(each for each in servers if each == host or each.startswith(f"{host}:"))

    def require_awake(self, address: WebAddress, spent: float) -> None:
        """Raises NotAsked if the host of `address` still has a pause; `spent`: see FetchError.seconds."""
        if not self._resting:
            return
        host = address.server
        left = self._resting.get(host, 0.0) - time.monotonic()
        if left > 0:
            until = datetime.now(UTC) + timedelta(seconds=left)
            message = f"The server {host} asked to be left alone until {until:%Y-%m-%d %H:%M:%S} UTC (Retry-After)."
            remedy = "No action is needed: the harvester tries again by itself."
            finding = Finding("http.retry-after", message, remedy, Level.WARNING)
            raise NotAsked(finding, host, seconds=spent, retry_after=left)

    def require_reachable(self, address: WebAddress) -> None:
        """Raises NotAsked if the host of `address` could not be reached, and has a pause or is given up."""
        if self._unreached and (breaker := self._unreached.get(host := address.server)):
            times = counted(breaker.failures, "time")
            breaker.require_closed(host, f"The server {host} could not be reached {times}")

    def asked(self, address: WebAddress) -> float:
        """The moment (time.monotonic) at which a request begins; the following ones wait for its result."""
        if self._unreached and (breaker := self._unreached.get(address.server)):
            breaker.is_probed = True
        return time.monotonic()

    def ended(self, address: WebAddress) -> None:
        """The request has ended, in any way; reached() or not_reached() says more."""
        if self._unreached and (breaker := self._unreached.get(address.server)):
            breaker.is_probed = False

    def reached(self, address: WebAddress) -> None:
        """The host accepted a request."""
        if self._unreached and (server := address.server) in self._unreached:
            del self._unreached[server]
            self.on_change(address.host.rstrip("."))

    def not_reached(self, address: WebAddress, began: float) -> None:
        """The host got no request: no address, no connection.

        Requests that failed together count once: one counts only if it `began` after the last counted one.
        """
        breaker = self._unreached.setdefault(address.server, CircuitBreaker(FAILURES_IN_A_ROW, self._http))
        if began >= breaker.counted and not breaker.is_open:
            breaker.failed()
            breaker.give_pause(breaker.failures)
            self.on_change(address.host.rstrip("."))

    def rest(self, address: WebAddress, seconds: float) -> None:
        """Give the host a pause of this length."""
        host = address.server
        self._resting[host] = max(self._resting.get(host, 0.0), time.monotonic() + seconds)
        self.on_change(address.host.rstrip("."))


class ServerHealth:
    """The state of the web servers of one site run, each by its host and port, and the number of deferred documents."""

    def __init__(self, http: HttpSettings) -> None:
        self._http = http
        # Always more than can fail in the same moment: as many requests as are under way at a time, and the one that
        # began in the place of the first that failed.
        self._threshold = max(FAILURES_IN_A_ROW, http.connections_per_host + 2)
        self._breakers: dict[str, CircuitBreaker] = {}
        self._deferred: dict[tuple[str, str], tuple[Finding, int]] = {}

    def failed_with(self, url: str, error: FetchError) -> None:
        """A request for `url` failed: count it, unless it is lasting, or is counted for all sites already.

        The first failure may be a document's own: no pause follows it.
        """
        if isinstance(error, NotAsked) or error.counted:
            return
        breaker = self._breaker(url)
        if not error.transient:
            breaker.succeeded()
            return
        breaker.failed()
        if breaker.failures > 1 and not breaker.is_open:
            breaker.give_pause(breaker.failures - 1)

    def answered(self, url: str) -> None:
        """The server of `url` gave out a document."""
        self._breaker(url).succeeded()

    def require_well(self, url: str) -> None:
        """Raises NotAsked if the server of `url` has a pause or is given up."""
        breaker, host = self._breaker(url), server_of(url)
        server = f"The server {host}" if host else "The disk with the site's files"
        breaker.require_closed(host, f"{server} failed {breaker.failures} times")

    def defer(self, why: Finding, server: str) -> None:
        """Count a document that is deferred because of `server`, or, if that is empty, for another reason."""
        first, number = self._deferred.get((why.rule, server), (why, 0))
        self._deferred[why.rule, server] = first, number + 1

    def reasons_to_defer(self) -> Iterator[Finding]:
        """The reasons why documents were deferred, each with their number."""
        for finding, number in self._deferred.values():
            documents = counted(number, "document was", "documents were")
            message = f"{finding.message} {documents} put off to a later run."
            yield replace(finding, message=message, level=Level.WARNING)

    def _breaker(self, url: str) -> CircuitBreaker:
        server = server_of(url)
        if (breaker := self._breakers.get(server)) is None:
            breaker = self._breakers[server] = CircuitBreaker(self._threshold, self._http)
        return breaker


@lru_cache(maxsize=500)  # a document under way asks for it several times
def server_of(url: str) -> str:
    """The server that `url` names: host and port; empty for a file: URL. A final dot of the host is left out."""
    usual = _SERVER.match(url)
    server = (usual[1] if usual else urlsplit(url).netloc.rpartition("@")[2]).lower()
    return host_without_dot(server)
