"""The network of the soak tests: seven sites with some 250 documents, another state of it every night.

Good documents and bad ones, several revisions, duplicates, lists that fail, servers that fail transiently: everything
that leaves rows of its own. What is served depends on the night alone, so that two worlds can harvest the same.
"""

from __future__ import annotations

import hashlib
from datetime import date, timedelta

from support.harvester import eml, harvest_list
from support.http_server import Asking, HttpServer, reset_after

FIRST_NIGHT = date(2026, 11, 20)

# Name -> columns of the schedule.
SITES: dict[str, dict[str, object]] = {
    "alder": {"contact_email": "alder@example.org, second@example.org"},
    "birch": {"contact_email": "birch@example.org"},
    "cedar": {"contact_email": "cedar@example.org", "notify": "on-error"},
    "dune": {"contact_email": "dune@example.org", "notify": "on-change"},
    "elm": {"contact_email": "elm@example.org", "updatefrequency": 1, "unit": "weeks"},
    "fir": {"contact_email": "fir@example.org"},
    "gorse": {"contact_email": "gorse@example.org"},
}
ON_CHANGE = "dune"
BROKEN = "gorse"
"""The site whose row of the schedule is spoilt with SQL after it was registered."""


def day(night: int) -> str:
    """The date of the night; nights count from 1."""
    return (FIRST_NIGHT + timedelta(days=night - 1)).isoformat()


class Network:
    """Serves the sites. `night()` sets the state of a night; documents never change under one docid.

    Where the target does not know which site owns a document, no site lists another's. `many`: 1 for some 250
    documents, 0.5 for half as many.
    """

    def __init__(self, server: HttpServer, sites_own_documents: bool = True, many: float = 1) -> None:
        self._server = server
        self._sites_own_documents = sites_own_documents
        self._many = many

    def list_url(self, site: str) -> str:
        return self._server.url(f"/{site}/list.xml")

    def night(self, number: int) -> None:
        """Serve what the sites have on this night."""
        self._alder(number)
        self._birch(number)
        self._cedar(number)
        self._dune(number)
        self._elm(number)
        self._fir(number)

    def _alder(self, night: int) -> None:
        """Well-behaved: a third of its documents has a new revision every night."""
        self._publish("alder", ["alder.0.1", *(f"alder.{n}.{_raised(n, night)}" for n in self._numbers(85))])

    def _birch(self, night: int) -> None:
        """Names the last two revisions of each document."""
        raised = {n: _raised(n, night) for n in self._numbers(28)}
        self._publish("birch", [f"birch.{n}.{r}" for n, highest in raised.items() for r in (highest, highest + 1)])

    def _cedar(self, night: int) -> None:
        """Everything that can be wrong with a document."""
        revisions = dict.fromkeys(range(1, 31), 1)
        revisions.update({n: _raised(n, night) for n in range(10, 31, 10)})
        # One of these two fails transiently on the night on which it is new: never so many that the server is given up.
        revisions.update({4: (night + 1) // 2, 24: 1 + night // 2})
        entries = self._entries("cedar", [f"cedar.{n}.{revision}" for n, revision in revisions.items()])
        if night % 2:
            self._server.serve(f"/cedar/cedar.4.{revisions[4]}.xml", b"busy", status=503)
        else:
            self._server.route(f"/cedar/cedar.24.{revisions[24]}.xml", reset_after(b"HTTP/1.1 200 OK\r\n"))
        for n in revisions:
            path = f"/cedar/cedar.{n}.1.xml"
            if n % 10 == 1:
                self._server.serve(path, b"not here", status=404)
            elif n % 10 == 2 and night == 1:
                self._server.serve(path, eml(f"cedar.{n}.1").replace(b"title>", b"titel>"))
            elif n % 10 == 7:
                self._server.serve(path, eml(f"cedar.{n}.1").replace(b"</title>", b""))
            elif n % 10 == 3:
                self._server.serve(path, eml(f"another.{n}.1"))
            elif n % 10 == 5:
                entries.append((f"cedar.{n}.1", self._server.url(path)))
        # Behind what it had on the first night; and a document of another site.
        entries.append((f"cedar.100.{5 if night == 1 else 3}", self._document("cedar", "cedar.100.5")))
        if night > 1 and self._sites_own_documents:
            entries.append(("alder.0.2", self._document("cedar", "alder.0.2")))
        self._server.serve("/cedar/list.xml", harvest_list(entries))

    def _dune(self, night: int) -> None:
        """Quiet: its list changes every third night, and answers conditional requests."""
        body = harvest_list(self._entries("dune", [f"dune.{n}.{1 + night // 3}" for n in self._numbers(30)]))
        etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'

        def answer(asking: Asking) -> None:
            if asking.headers.get("If-None-Match") == etag:
                asking.answer(b"", 304, {"ETag": etag})
            else:
                asking.answer(body, headers={"ETag": etag})

        self._server.route("/dune/list.xml", answer)

    def _elm(self, night: int) -> None:
        """Harvested every week; what fails transiently is tried again every night, and succeeds on the third."""
        revision = 1 + (night - 1) // 7
        self._publish("elm", [f"elm.{n}.{revision}" for n in self._numbers(15)])
        if night % 7 in (1, 2):
            self._server.serve(f"/elm/elm.3.{revision}.xml", b"busy", status=503)

    def _fir(self, night: int) -> None:
        """Its list fails every other night; documents that failed transiently the night before are there then."""
        revision = (night + 1) // 2
        self._publish("fir", [f"fir.{n}.{revision}" for n in self._numbers(15)])
        if night % 2:
            self._server.serve(f"/fir/fir.7.{revision}.xml", b"busy", status=503)
        elif night % 4:
            self._server.serve("/fir/list.xml", b"<harvestList")
        else:
            self._server.serve("/fir/list.xml", b"gone", status=404)

    def _numbers(self, most: int) -> range:
        return range(1, 1 + round(most * self._many))

    def _publish(self, site: str, docids: list[str]) -> None:
        self._server.serve(f"/{site}/list.xml", harvest_list(self._entries(site, docids)))

    def _entries(self, site: str, docids: list[str]) -> list[tuple[str, str]]:
        return [(docid, self._document(site, docid)) for docid in docids]

    def _document(self, site: str, docid: str) -> str:
        return self._server.serve(f"/{site}/{docid}.xml", eml(docid, f"Document {docid}"))


def _raised(number: int, night: int) -> int:
    """The revision of a document on this night: raised every third night, another third of them each night."""
    return 1 + (night + number) // 3
