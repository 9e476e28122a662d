"""Whether the servers that one site run deals with still answer: the web servers, host by host, and the target.

Hosts that are not even reached are the affair of hosts.py, over all sites; here it is what they answer.
One that fails several times in a row is asked no more; what was put off for it is told in one finding, with a number.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from metaharvest.config.settings import HttpSettings
from metaharvest.fetch.backoff import FAILURES_IN_A_ROW, failures_in_a_row, pause
from metaharvest.model import Finding, Level


class Servers:
    """Counts failures in a row, from any thread, and what was put off for them.

    Between the second failure in a row and the last the host is given the pauses of a retry, so that one that was away
    for a moment is not given up for the night.
    """

    def __init__(self, http: HttpSettings) -> None:
        self._http = http
        self._enough = failures_in_a_row(http)
        self._mutex = threading.Lock()
        self._failures: dict[str, int] = {}
        self._pauses: dict[str, float] = {}
        self._deferred: dict[tuple[str, str], tuple[Finding, int]] = {}
        self._target_failures = 0
        self.target_failed: tuple[Finding, ...] = ()

    def target_did_not_answer(self, findings: tuple[Finding, ...]) -> None:
        """Count it; after a few times in a row the target is asked no more."""
        with self._mutex:
            self._target_failures += 1
            if self._target_failures >= FAILURES_IN_A_ROW:
                self.target_failed = findings

    def target_answered(self) -> None:
        """The target took a document, refused one, or said whether it has one."""
        if self._target_failures:
            with self._mutex:
                self._target_failures = 0

    def answers(self, url: str) -> bool:
        """Whether the host of `url` may still be asked."""
        with self._mutex:
            return self._failures.get(self.host(url), 0) < self._enough

    def pause(self, url: str) -> float:
        """Seconds for which the host of `url` is to be given a pause; 0: none."""
        with self._mutex:
            return max(0.0, self._pauses.get(self.host(url), 0.0) - time.monotonic())

    def failed(self, url: str, transient: bool) -> None:
        """Count a transient failure; anything else says that the server is there."""
        host = self.host(url)
        with self._mutex:
            number = self._failures.get(host, 0)
            if number >= self._enough:
                return
            self._failures[host] = number + 1 if transient else 0
            if not transient:
                self._pauses.pop(host, None)
            elif number and self._http.retries:
                until = time.monotonic() + pause(number, self._http)
                self._pauses[host] = max(until, self._pauses.get(host, 0.0))

    def stopped(self, url: str) -> Finding:
        """What to say of documents whose server is asked no more."""
        server = f"The server {host}" if (host := self.host(url)) else "The disk with the site's files"
        message = f"{server} failed {self._enough} times in a row and was not asked again."
        remedy = "Look whether the server is up; the documents are tried again by themselves."
        return Finding("http.server-stopped", message, remedy, Level.WARNING)

    def defer(self, why: Finding, host: str) -> None:
        """Count a document that is put off, for what is wrong with `host`, or for something else."""
        with self._mutex:
            first, number = self._deferred.get((why.rule, host), (why, 0))
            self._deferred[why.rule, host] = first, number + 1

    def put_off(self) -> Iterator[Finding]:
        """What put documents off, each with how many."""
        for finding, number in self._deferred.values():
            documents = "1 document was" if number == 1 else f"{number:,} documents were"
            message = f"{finding.message} {documents} put off to a later run."
            yield replace(finding, message=message, level=Level.WARNING)

    @staticmethod
    def host(url: str) -> str:
        """The server that `url` names."""
        return urlsplit(url).netloc.rpartition("@")[2].lower()
