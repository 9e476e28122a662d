"""Answers of an OAI-PMH repository that are small on the wire and large in memory, or take long to read.

with HostileRepository(ListRecords=page(header_of_many_namespaces...)) as repository:
    harvester("sites", "add", "hostile", "--oai", repository.base_url, "--origin", "hostile")
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit

from support.http_server import Asking, HttpServer
from support.oai_server import DC

OAI = "http://www.openarchives.org/OAI/2.0/"
ELEMENTS = "http://purl.org/dc/elements/1.1/"
GZIP = {"Content-Encoding": "gzip", "Content-Type": "text/xml"}

Body = bytes | Callable[[Mapping[str, str]], bytes]

IDENTIFY = (
    b"<repositoryName>Hostile</repositoryName><baseURL>http://hostile.example.org/oai</baseURL><protocolVersion>2.0"
    b"</protocolVersion><adminEmail>keeper@example.org</adminEmail><earliestDatestamp>2026-01-01T00:00:00Z"
    b"</earliestDatestamp><deletedRecord>no</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity>"
)
FORMAT = (
    f"<metadataFormat><metadataPrefix>oai_dc</metadataPrefix><schema>{DC}oai_dc.xsd</schema>"
    f"<metadataNamespace>{DC}</metadataNamespace></metadataFormat>"
).encode()


def answer(verb: str, inner: bytes, attributes: bytes = b"") -> bytes:
    """An answer with this content in its element for the verb, and `attributes` in the root element."""
    name = verb.encode()
    head = (
        b'<OAI-PMH xmlns="' + OAI.encode() + b'"' + attributes + b"><responseDate>2026-11-20T03:00:00Z</responseDate>"
    )
    return head + b"<request/><" + name + b">" + inner + b"</" + name + b"></OAI-PMH>"


def errors(inner: bytes) -> bytes:
    """An answer with this in the place of an element for the verb."""
    return answer("x", b"").replace(b"<x></x>", inner)


def record(number: int, *, metadata: bytes | None = None, header: bytes = b"", about: bytes = b"") -> bytes:
    """A record with `header` in its header, and `about` after its metadata."""
    if metadata is None:
        metadata = (
            f'<oai_dc:dc xmlns:oai_dc="{DC}" xmlns:dc="{ELEMENTS}"><dc:title>Frogs {number}</dc:title></oai_dc:dc>'
        ).encode()
    return (
        b"<record><header><identifier>oai:hostile:%d</identifier><datestamp>2026-01-01T00:00:00Z</datestamp>%b</header>"
        b"<metadata>%b</metadata>%b</record>"
    ) % (number, header, metadata, about)


def records(*some: bytes, token: bytes = b"", attributes: bytes = b"") -> bytes:
    """An answer to ListRecords with these records."""
    ending = b"<resumptionToken>%b</resumptionToken>" % token if token else b""
    return answer("ListRecords", b"".join(some) + ending, attributes)


def namespaces(number: int, uri: bytes = b"u") -> bytes:
    """This number of namespace declarations, as attributes."""
    return b"".join(b' xmlns:n%d="%b%d"' % (each, uri, each) for each in range(number))


class HostileRepository:
    """Answers each verb with a gzipped body: the given one, or else a proper one."""

    def __init__(self, host: str = "127.0.0.1", bodies: Mapping[str, Body] | None = None, **more: Body) -> None:
        self.bodies: dict[str, Body] = {
            "Identify": answer("Identify", IDENTIFY),
            "ListMetadataFormats": answer("ListMetadataFormats", FORMAT),
            "ListSets": errors(b'<error code="noSetHierarchy">none</error>'),
            "ListRecords": records(record(1), record(2)),
            "ListIdentifiers": errors(b'<error code="noRecordsMatch">none</error>'),
            "GetRecord": errors(b'<error code="idDoesNotExist">none</error>'),
            **(bodies or {}),
            **more,
        }
        self.asked: list[dict[str, str]] = []
        self.sent = 0
        self._zipped: dict[bytes, bytes] = {}
        self.http = HttpServer(host=host)
        self.base_url = self.http.route("/oai", self._answer)
        for body in self.bodies.values():
            if isinstance(body, bytes):
                self._zip(body)

    def _answer(self, asking: Asking) -> None:
        query = self.http.requests[-1].body.decode() if asking.command == "POST" else urlsplit(asking.path).query
        arguments = dict(parse_qsl(query))
        self.asked.append(arguments)
        body = self.bodies.get(arguments.get("verb", ""), b"")
        zipped = self._zip(body if isinstance(body, bytes) else body(arguments))
        self.sent += len(zipped)
        asking.answer(zipped, 200, GZIP)

    def _zip(self, body: bytes) -> bytes:
        if body not in self._zipped:
            self._zipped[body] = gzip.compress(body, 9, mtime=0)
        return self._zipped[body]

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
