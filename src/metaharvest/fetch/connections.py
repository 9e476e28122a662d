"""The connections of a run to web servers: so many to a host at once; those not in use stay open for a while.

Once a run has more than a few documents, those that follow are fetched by helpers, processes which check them as well
(helpers.py). Lists, which may be long, and are written to disk as they come, would hold a helper up.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from metaharvest.config.settings import HttpSettings
from metaharvest.config.trust_store import BadAuthorities, configured_authorities, read_authorities, system_trust
from metaharvest.errors import NoConnectionFree, NotAsked
from metaharvest.fetch.curl import IDLE_CONNECTIONS, Exchange, Handle, Policy
from metaharvest.fetch.slots import Line, Slots
from metaharvest.fetch.url import WebAddress
from metaharvest.model import Finding
from metaharvest.text import shown_url

if TYPE_CHECKING:
    from metaharvest.fetch.helpers import Helpers

log = logging.getLogger(__name__)

FEW = 100
"""So many documents are fetched before there are helpers: they are done before a process would be up."""

MOST_HELPERS = 4
"""The one process that writes is slower than more of them would be."""


_Lane = tuple[str, Path | None]
"""A host, and the file of authorities by which its certificate was judged: a connection serves no other."""


class Connections:
    """Lends connections, from any thread. `other_document_types`: see ValidationSettings; without them, no helpers.

    Raises SettingsError where http.ca_file cannot be used.
    """

    def __init__(self, http: HttpSettings, policy: Policy, other_document_types: Sequence[str] | None) -> None:
        self._http = http
        self._policy = policy
        self._trust = _Trust(http.ca_file)
        self._help = _Help(policy, other_document_types, self._close_idle)
        self._slots = Slots(http.connections_per_host)
        self._lock = threading.Lock()
        self._idle: list[tuple[_Lane, Handle]] = []
        self._closed = False

    @contextmanager
    def lent(
        self, address: WebAddress, ca_file: Path | None, spent: float, patience: float | None, *, is_list: bool
    ) -> Iterator[Callable[[Exchange], None]]:
        """What runs an exchange with `address`, once. Raises NoConnectionFree where the host has all that it may have.

        Where `patience` is given, in seconds, only once that has passed.
        """
        host = address.host.rstrip(".")
        if not (self._slots.take(host) if patience is None else self._slots.wait_and_take(host, patience)):
            waited = self._http.list_deadline if patience is None else patience
            raise NoConnectionFree(self._busy(address, waited), Line(self._slots, host), seconds=spent)
        try:
            if not is_list and (helpers := self._help.helpers()):
                yield partial(helpers.run, ca_file=ca_file, trust=self._trust.of(ca_file))
            else:
                yield from self._lend((host, ca_file))
        finally:
            self._slots.release(host)

    def close(self) -> None:
        """Close the idle connections now, and those in use when they come back."""
        self._closed = True
        self._help.close()
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, handle in idle:
            handle.close()

    def _lend(self, lane: _Lane) -> Iterator[Callable[[Exchange], None]]:
        """A handle that comes back if it is still good: any exception means that it may not be."""
        handle = self._take(lane)
        try:
            yield handle.run
        except BaseException:
            handle.close()
            raise
        if surplus := self._put_back(lane, handle):
            surplus.close()

    def _take(self, lane: _Lane) -> Handle:
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index][0] == lane:
                    return self._idle.pop(index)[1]
        return Handle(self._policy, self._trust.of(lane[1]))

    def _put_back(self, lane: _Lane, handle: Handle) -> Handle | None:
        with self._lock:
            if self._closed or self._help.is_there:
                return handle
            self._idle.append((lane, handle))
            return self._idle.pop(0)[1] if len(self._idle) > IDLE_CONNECTIONS else None

    def _busy(self, address: WebAddress, waited: float) -> Finding:
        number = self._http.connections_per_host
        return Finding(
            "http.busy",
            f"{shown_url(address.url)} was not fetched: all {number} connections that the harvester allows "
            f"itself to {address.host} were in use for {waited:g} seconds.",
            "The server answers very slowly. The harvester tries again by itself.",
        )


class _Help:
    """Starts helpers once there are more than a few documents; the thread that comes with one of them waits for that.

    `take_over` is called when they are there, before they are given anything to do.
    """

    def __init__(
        self, policy: Policy, other_document_types: Sequence[str] | None, take_over: Callable[[], None]
    ) -> None:
        self._policy = policy
        self._types = other_document_types
        self._take_over = take_over
        self._number = min(MOST_HELPERS, _cores() - 1) if os.name == "posix" and other_document_types is not None else 0
        self._documents = count(1)
        self._helpers: Helpers | None = None
        self.is_there = False

    def helpers(self) -> Helpers | None:
        """The helpers, if they are there; to be called once for each document."""
        if self._helpers is None and self._number and next(self._documents) == FEW:
            self._start()
        return None if self._helpers is None or self._helpers.are_gone else self._helpers

    def close(self) -> None:
        """End the helpers; they have nothing to do any more."""
        if self._helpers:
            self._helpers.close()

    def _start(self) -> None:
        from metaharvest.fetch.helper import Setup
        from metaharvest.fetch.helpers import Helpers, NoHelper

        try:
            helpers = Helpers(Setup(self._policy, tuple(self._types or ())), self._number)
        except NoHelper as error:
            log.warning("The run's own process fetches and checks all, as no other could be started: %s", error)
        else:
            self.is_there = True
            self._take_over()
            self._helpers = helpers


def _cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Trust:
    """The authorities that are trusted: the system's, those in the settings' file, and for one site those in its own.

    Raises SettingsError where the settings' file cannot be used.
    """

    def __init__(self, ca_file: Path | None) -> None:
        self._trusted: dict[Path | None, Path | bytes] = {None: system_trust()}
        if ca_file is not None:
            self._trusted[None] = system_trust().read_bytes() + b"\n" + configured_authorities(ca_file)

    def of(self, ca_file: Path | None) -> Path | bytes:
        """For a site with this file. Raises NotAsked where it cannot be used: that is no failure of the server."""
        if ca_file not in self._trusted:
            all_sites = self._trusted[None]
            try:
                own = read_authorities(ca_file) if ca_file else b""
            except BadAuthorities as error:
                message = f"The certificate authorities that are set for this site cannot be used: {error}."
                remedy = "The harvester's administrator has to see to it: `metaharvest doctor` names the file."
                raise NotAsked(Finding("site.ca-file", message, remedy), "", seconds=0.0) from error
            known = all_sites.read_bytes() if isinstance(all_sites, Path) else all_sites
            self._trusted[ca_file] = known + b"\n" + own
        return self._trusted[ca_file]
