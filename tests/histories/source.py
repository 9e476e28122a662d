"""A source repository for histories: its answers have faults for a night, and it knows when it was asked for lists."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf

from support.oai_server import HTML, INTERNAL_ERROR, Asked, OaiServer, Record

LISTS = ("ListRecords", "ListIdentifiers")
_TITLE = re.compile(rb"<dc:title>")
_TOKEN = re.compile(rb"([^>]+)</resumptionToken>")
_SIZE = re.compile(rb' completeListSize="\d+"')
_HEADER = re.compile(rb"<identifier>[^<]*</identifier>")


@dataclass
class Fault:
    """What is wrong with some answers; the kinds are in `ANSWER_FAULTS` and `RECORD_FAULTS`.

    A fault of answers has `times` list requests from number `first` (0: the first) of a night on; of those with a
    token, if the kind says so. A fault of a record has all answers with the record.
    """

    kind: str
    first: int = 0
    times: float = inf
    identifier: str = ""
    seen: int = 0

    def __str__(self) -> str:
        if self.identifier:
            return f"{self.kind} {self.identifier}"
        return f"{self.kind} at list request {self.first}, {self.times:g} times"

    def comes(self) -> bool:
        """True if it is time for the fault; counts the request."""
        self.seen += 1
        return self.first < self.seen <= self.first + self.times


class Source(OaiServer):
    """A source repository. `intervals`: begin and end of each list request. `announces`: it sends completeListSize."""

    def __init__(self, *, announces: bool, pause: float, page: int, seconds: bool, deleted: str) -> None:
        self.announces = announces
        self.pause = pause
        self.faults: list[Fault] = []
        self.lasting: list[Fault] = []
        self.breaks_off = False
        """Every answer to ListRecords with several records breaks off."""
        self.ignores_dates = False
        """Lists have all records, whatever `from` and `until` say."""
        self.events: dict[int, Callable[[], None]] = {}
        """What happens at the list request of this number in a night."""
        self.at_request: dict[int, Callable[[], None]] = {}
        """What happens at the request of this number in a night."""
        self.intervals: list[tuple[float, float]] = []
        self._requests = 0
        self._lists = 0
        self._generation = 0
        self._guard = threading.RLock()
        super().__init__(page=page, seconds=seconds, deleted=deleted)

    def begin(self, faults: Collection[Fault] = ()) -> None:
        """A night begins, or another run in it."""
        self.faults = list(faults)
        self.events, self.at_request = {}, {}
        self._requests = self._lists = 0

    def expire_tokens(self) -> None:
        """Refuse from now on every token that was given out so far."""
        self._generation += 1

    def overlaps(self) -> int:
        """The number of list requests that began before an earlier one had ended."""
        found, last_end = 0, 0.0
        for begin, end in sorted(self.intervals):
            found += begin < last_end
            last_end = max(last_end, end)
        return found

    def live(self, set_spec: str | None) -> list[Record]:
        """The records that are live in the set."""
        return [record for record in self.records.values() if not record.deleted and is_in(record.sets, set_spec)]

    def _body(self, asked: Asked) -> tuple[bytes, int]:
        is_list = asked.verb in LISTS
        began = time.monotonic()
        with self._guard:
            self._requests += 1
            self._lists += is_list
            happens = [self.at_request.pop(self._requests, None)]
            if is_list:
                happens.append(self.events.pop(self._lists, None))
            for event in filter(None, happens):
                event()
        try:
            if is_list:
                time.sleep(self.pause)
            with self._guard:
                return self._answered(asked)
        finally:
            if is_list:
                self.intervals.append((began, time.monotonic()))

    def _answered(self, asked: Asked) -> tuple[bytes, int]:
        token, _, generation = asked.arguments.get("resumptionToken", "").partition("~")
        for fault in [each for each in self.faults if each.kind in ANSWER_FAULTS and asked.verb in LISTS]:
            if (token or fault.kind not in OF_TOKENS) and fault.comes():
                return self._faulty(fault.kind, asked)
        if token:
            if int(generation or 0) < self._generation:
                return self._error(asked, "badResumptionToken"), 200
            asked = Asked(asked.verb, {**asked.arguments, "resumptionToken": token}, asked.method)
        if self.ignores_dates:
            arguments = {name: value for name, value in asked.arguments.items() if name not in ("from", "until")}
            asked = Asked(asked.verb, arguments, asked.method)
        faults = [each for each in (*self.faults, *self.lasting) if each.kind in RECORD_FAULTS]
        left_out = {each.identifier for each in faults if each.kind == "left out"} if asked.verb in LISTS else set()
        everything = self.records
        self.records = {name: record for name, record in everything.items() if name not in left_out}
        self.poison = {each.identifier for each in faults if each.kind == "error for record"}
        try:
            body, status = super()._body(asked)
        finally:
            self.records = everything
        for fault in faults:
            body = RECORD_FAULTS[fault.kind](body, fault.identifier)
        if self.breaks_off and asked.verb == "ListRecords" and body.count(b"<record>") > 1:
            body = _half(body)
        if not self.announces:
            body = _SIZE.sub(b"", body)
        return _TOKEN.sub(rb"\1~%d</resumptionToken>" % self._generation, body), status

    def _faulty(self, kind: str, asked: Asked) -> tuple[bytes, int]:
        made = ANSWER_FAULTS[kind]
        if isinstance(made, tuple):
            return made
        if isinstance(made, str):
            return self._error(asked, made), 200
        return made(super()._body(without_generation(asked))[0]), 200

    def _error(self, asked: Asked, code: str) -> bytes:
        return self._framed(asked, f'<error code="{code}">Refused: {code}</error>'.encode())


def without_generation(asked: Asked) -> Asked:
    """The request with its token as the server made it."""
    token = asked.arguments.get("resumptionToken", "").partition("~")[0]
    return Asked(asked.verb, {**asked.arguments, **({"resumptionToken": token} if token else {})}, asked.method)


def is_in(sets: Collection[str], set_spec: str | None) -> bool:
    """True if one of the sets is the set, or below it."""
    return set_spec is None or any(f"{each}:".startswith(f"{set_spec}:") for each in sets)


def _half(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _without_token(body: bytes) -> bytes:
    return _TOKEN.sub(b"</resumptionToken>", body)


ANSWER_FAULTS: dict[str, str | tuple[bytes, int] | Callable[[bytes], bytes]] = {
    "error": (INTERNAL_ERROR, 500),
    "busy": (b"", 503),
    "page for people": (HTML, 200),
    "nothing": (b"", 200),
    "broken off": _half,
    "refused token": "badResumptionToken",
    "no records for a token": "noRecordsMatch",
    "bad argument for a token": "badArgument",
}
LIES = ("no records for a token", "left out", "bad bytes in record", "no identifier for record")
"""Faults after which a list may look whole, though a record is missing or changed."""
OF_TOKENS = ("refused token", "no records for a token", "bad argument for a token")


def _in_record(body: bytes, identifier: str, change: Callable[[bytes], bytes]) -> bytes:
    """The answer with the record changed, if it is there with content."""
    at = body.find(f"<identifier>{identifier}</identifier>".encode())
    begin, end = body.rfind(b"<record>", 0, at), body.find(b"</record>", at)
    if at < 0 or begin < 0 or end < 0:
        return body
    return body[:begin] + change(body[begin:end]) + body[end:]


RECORD_FAULTS: dict[str, Callable[[bytes, str], bytes]] = {
    "error for record": lambda body, identifier: body,
    "left out": lambda body, identifier: body,
    "cut record": lambda body, name: _in_record(body, name, lambda record: record.replace(b"</dc:title></oai", b"<")),
    "bad bytes in record": lambda body, name: _in_record(
        body, name, lambda record: _TITLE.sub(b"<dc:title>\xff\xfe", record)
    ),
    "no identifier for record": lambda body, name: _in_record(body, name, lambda record: _HEADER.sub(b"", record)),
}
"""What each does with an answer that has the record."""
