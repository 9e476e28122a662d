"""`python -m benchmarks.oai_pages PORT RECORDS PAGE RATE DAMAGED`: a repository whose pages are made once, before.

RATE: the records that it sends in a second, since real repositories are slow; 0: as many as it can. DAMAGED: 1 if each
page has bytes in its middle that are not text, else 0.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

_START = (
    '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><responseDate>2026-11-20T03:00:00Z</responseDate>'
    "<request>http://127.0.0.1/oai</request>"
)
_DC = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ '
    'http://www.openarchives.org/OAI/2.0/oai_dc.xsd">'
)
ELEMENTS = (
    "title",
    "creator",
    "subject",
    "description",
    "publisher",
    "date",
    "type",
    "format",
    "identifier",
    "rights",
)
_IDENTIFY = (
    "<Identify><repositoryName>Pages</repositoryName><baseURL>http://127.0.0.1/oai</baseURL>"
    "<protocolVersion>2.0</protocolVersion><adminEmail>keeper@example.org</adminEmail>"
    "<earliestDatestamp>2020-01-01T00:00:00Z</earliestDatestamp><deletedRecord>persistent</deletedRecord>"
    "<granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"
)
_FORMATS = (
    "<ListMetadataFormats><metadataFormat><metadataPrefix>oai_dc</metadataPrefix>"
    "<schema>http://www.openarchives.org/OAI/2.0/oai_dc.xsd</schema>"
    "<metadataNamespace>http://www.openarchives.org/OAI/2.0/oai_dc/</metadataNamespace></metadataFormat>"
    "</ListMetadataFormats>"
)


def pages(records: int, page: int) -> Iterator[bytes]:
    """The answers to ListRecords; a record has about 1,500 bytes."""
    for first in range(0, records, page):
        last = min(records, first + page)
        token = str(last // page) if last < records else ""
        inner = "".join(map(_record, range(first, last)))
        size = f'<resumptionToken completeListSize="{records}">{token}</resumptionToken>'
        yield f"{_START}<ListRecords>{inner}{size}</ListRecords></OAI-PMH>".encode()


def _record(number: int) -> str:
    texts = "".join(f"<dc:{name}>The {name} of the record {number}, {'told ' * 14}</dc:{name}>" for name in ELEMENTS)
    return (
        f"<record><header><identifier>oai:pages.example.org:{number}</identifier>"
        "<datestamp>2026-01-01T00:00:00Z</datestamp><setSpec>all</setSpec></header>"
        f"<metadata>{_DC}{texts}</oai_dc:dc></metadata></record>\n"
    )


def _damaged(page: bytes) -> bytes:
    """The page, with bytes that are no text in a record in its middle."""
    at = page.index(b"told told", len(page) // 2)
    return page[:at] + b"\xff\xfe" + page[at + 2 :]


def serve(port: int, records: int, page: int, rate: int, damaged: int) -> None:
    """Answer until the process is ended."""
    made = [_damaged(each) if damaged else each for each in pages(records, page)]

    class Pages(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or each short answer waits 40 ms for an acknowledgement

        def do_GET(self) -> None:
            asked = dict(parse_qsl(urlsplit(self.path).query))
            if asked.get("verb") == "ListRecords":
                body = made[int(asked.get("resumptionToken", "0"))]
                time.sleep(page / rate if rate else 0)
            else:
                inner = _IDENTIFY if asked.get("verb") == "Identify" else _FORMATS
                body = f"{_START}{inner}</OAI-PMH>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    ThreadingHTTPServer(("127.0.0.1", port), Pages).serve_forever()


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:6]))
