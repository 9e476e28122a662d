"""Small answers of an OAI-PMH repository, written out for the tests of what repositories do wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from support.oai_server import Asked, OaiServer

ALL = [f"oai:test:{number}" for number in range(1, 31)]
"""The records of a repository of 30, of which a page has 10."""

START = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>'
    b"2026-11-20T03:00:00Z</responseDate><request>http://repository.example.org/oai</request>"
)
END = b"</OAI-PMH>"


def record(number: int, metadata: bytes = b"<metadata><t>Frogs</t></metadata>", datestamp: str | None = None) -> bytes:
    """One record, as the repository's own but for its metadata."""
    shown = f"2026-01-{number:02}T00:00:00Z" if datestamp is None else datestamp
    head = f"<record><header><identifier>oai:test:{number}</identifier><datestamp>{shown}</datestamp></header>"
    return head.encode() + metadata + b"</record>\n"


def page(records: Iterable[int | bytes], token: bytes = b"") -> bytes:
    """A page of a list with these records, and what it has behind them."""
    written = b"".join(each if isinstance(each, bytes) else record(each) for each in records)
    return START + b"<ListRecords>" + written + token + b"</ListRecords>" + END


def error(code: str, words: str = "") -> bytes:
    """An answer with an error of the protocol."""
    return START + f'<error code="{code}">{words}</error>'.encode() + END


def repository(answer: Callable[[Asked], bytes | None], records: int = 30) -> OaiServer:
    """A repository that gives these answers instead of its own, where there are any."""
    server = OaiServer(records)
    server.tamper = lambda body, asked: body if (other := answer(asked)) is None else other
    return server


def in_page(number: int, asked: Asked, verb: str = "ListRecords") -> bool:
    """True if this asks for the page with this number of the list of all records."""
    cursor = asked.arguments.get("resumptionToken", "!!!!0!").split("!")[-2]
    return asked.verb == verb and not {"from", "until"} & set(asked.arguments) and cursor == str(10 * number - 10)
