"""`python -m benchmarks.oaipmh_provider PORT DATABASE PAGE`: a provider made with the package oaipmh.

DATABASE is a SQLite file that benchmarks.provider_catalogue has filled: its records are read page by page, as the
package asks for them, and go through its own reader and writer of Dublin Core. `memory:NUMBER`: this number of such
records is in memory, as the package wants them, before the first request.
"""

from __future__ import annotations

import importlib
import sqlite3
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from lxml import etree

from benchmarks.provider_catalogue import BLOCK, texts

_FIRST = datetime(2024, 1, 1)  # noqa: DTZ001 - the package knows no time zones
_PAGE = """\
SELECT d.item_identifier, d.changed_at, s.set_spec, r.content FROM catalogue_document d
JOIN document_revision r ON r.document_id = d.document_id AND r.revision = d.revision
JOIN catalogue_set s ON s.catalogue_document_id = d.catalogue_document_id
ORDER BY d.changed_at, d.catalogue_document_id LIMIT ? OFFSET ?"""
Read = Callable[[int, int], Sequence[tuple[Any, Any, None]]]


def serve(port: int, database: str, page: int) -> None:
    """Answer until the process is ended."""
    common, metadata, server = (importlib.import_module(f"oaipmh.{name}") for name in ("common", "metadata", "server"))
    place, _, number = database.partition(":")
    read = _in_memory(common, int(number)) if place == "memory" else _in_database(common, metadata, database)

    class Repository(common.OAIPMH):  # type: ignore[misc,name-defined]
        def identify(self) -> Any:
            base_url = f"http://127.0.0.1:{port}/oai"
            form = "YYYY-MM-DDThh:mm:ssZ"
            return common.Identify(
                "Records", base_url, "2.0", ["s@example.org"], _FIRST, "persistent", form, ["identity"]
            )

        def listRecords(self, cursor: int = 0, batch_size: int = 10, **_arguments: object) -> Any:  # noqa: N802
            return read(cursor, batch_size)

    writers = metadata.MetadataRegistry()
    writers.registerWriter("oai_dc", server.oai_dc_writer)
    provider = server.BatchingServer(Repository(), metadata_registry=writers, resumption_batch_size=page)

    class Pages(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = provider.handleRequest(dict(parse_qsl(urlsplit(self.path).query)))
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    ThreadingHTTPServer(("127.0.0.1", port), Pages).serve_forever()


def _in_memory(common: Any, number: int) -> Read:
    contents = [
        common.Metadata(None, {name: [text] for name, text in texts(block)}) for block in range(number // BLOCK)
    ]

    def record(number: int) -> tuple[Any, Any, None]:
        block = number // BLOCK
        stamp = _FIRST + timedelta(minutes=block)
        return (
            common.Header(None, f"oai:pages.example.org:{number + 1}", stamp, [f"s:{block % 10}"], False),
            contents[block],
            None,
        )

    every = [record(each) for each in range(number)]
    return lambda cursor, size: every[cursor : cursor + size]


def _in_database(common: Any, metadata: Any, file: str) -> Read:
    connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True, check_same_thread=False)

    def read(cursor: int, size: int) -> Sequence[tuple[Any, Any, None]]:
        return [
            (
                common.Header(None, identifier, datetime.fromisoformat(stamp), [set_spec], False),
                metadata.oai_dc_reader(_in_metadata(content)),
                None,
            )
            for identifier, stamp, set_spec, content in connection.execute(_PAGE, (size, cursor))
        ]

    return read


def _in_metadata(content: bytes) -> etree._Element:
    """The element that the package's reader looks into."""
    outer = etree.Element("metadata")
    outer.append(etree.fromstring(content))
    return outer


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
