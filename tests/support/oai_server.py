"""An OAI-PMH repository on loopback, in version 2.0, 1.1 or 1.0, with its records in memory; a test lets it misbehave.

    with OaiServer(records=30, page=10) as repository:
        repository.delete("oai:test:3")
        repository.odd.add(Odd.SAME_TOKEN)
        ... repository.base_url ... repository.asked("ListRecords") ...

What is wrong with a record is in its XML: see `Record.xml`, which is sent as it is. The clock `now` stands still.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum, auto
from types import TracebackType
from typing import Self
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape, quoteattr

from support.http_server import Asking, HttpServer

DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
HTML = b"<!DOCTYPE html><html><head><title>Our repository</title></head><body>Welcome</body></html>"
DAMAGED = gzip.compress(b"<OAI-PMH/>")[:-8] + b"12345678"
GZIP = {"Content-Encoding": "gzip"}
INTERNAL_ERROR = b"<html><title>Internal error</title></html>"
_LISTS = ("ListRecords", "ListIdentifiers")
_CUT = b"(cut off here)"
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


class Odd(Enum):
    """What the repository does wrong."""

    BUSY_SECONDS = auto()  # every second request: 503, Retry-After in seconds
    BUSY_DATE = auto()  # ... as a date
    TOO_MANY = auto()  # ... 429
    SAME_TOKEN = auto()  # every page has the token of the first
    CIRCLE = auto()  # the list begins again behind its last page, with new tokens
    BLANK_TOKEN = auto()  # the first page's token is white space
    EMPTY_PAGE = auto()  # a page without records comes after the first
    EMPTY_PAGES = auto()  # all pages after the first are empty, for ever
    SIZE_TOO_HIGH = auto()  # completeListSize is twice what comes
    SIZE_NEARLY = auto()  # completeListSize is one more than comes
    CUT_OFF = auto()  # every page of more than one record breaks off in the middle
    CUT_OFF_ONCE = auto()  # the second page, once
    HTML_PAGE = auto()  # a page for people, with the status 200
    OTHER_VERB = auto()  # lists are answered with Identify
    TOKENS_EXPIRE = auto()  # every token is refused
    TOKEN_EXPIRES_ONCE = auto()  # the first token is refused, once
    NO_SECONDS = auto()  # seconds are advertised, and refused
    TWICE = auto()  # every page begins with the last record of the page before
    STATUS_OF_ERRORS = auto()  # errors of the protocol have the status 404
    REDIRECTED = auto()  # 302 to another path, without the query
    DTD = auto()  # answers begin with a DTD
    NO_EARLIEST = auto()  # no earliestDatestamp
    OTHER_BASE_URL = auto()  # Identify and requests name another base URL
    UNESCAPED_REQUEST = auto()  # the request element has a bare &
    JUNK_AT_THE_END = auto()  # something follows the root element
    EMPTY_ANSWERS = auto()  # lists are answered with nothing
    DAMAGED_ONCE = auto()  # the second page has another check sum than its gzip stream says, once


@dataclass
class Record:
    """One record. `xml`: its whole element <record>, sent as it is, in place of one made from the other fields.

    A list of one of the sets that it has `left` reports it as deleted.
    """

    identifier: str
    datestamp: datetime
    title: str = "Frogs"
    sets: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    deleted: bool = False
    metadata: str | None = None
    about: str = ""
    xml: bytes | None = None


@dataclass(frozen=True)
class Asked:
    """One request, as it was understood."""

    verb: str
    arguments: dict[str, str]
    method: str


@dataclass
class _List:
    """What a list request, or its token, asks for."""

    prefix: str
    set_spec: str = ""
    begin: str = ""
    until: str = ""
    cursor: int = 0
    empty: int = 0

    @property
    def token(self) -> str:
        return "!".join((self.prefix, self.set_spec, self.begin, self.until, str(self.cursor), str(self.empty)))


class _Refused(Exception):
    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class _Page:
    """A page of a list as it is to be sent."""

    records: list[Record]
    token: str | None = None
    size: int | None = None
    cursor: int = 0


class OaiServer:
    """A repository with `records` records, one a day from 2026-01-01 on, `page` of them in a page.

    It answers at `path` of a web server of its own, or of `http`, which others use as well.
    """

    def __init__(
        self,
        records: int = 0,
        *,
        version: str = "2.0",
        page: int = 10,
        seconds: bool = True,
        deleted: str = "persistent",
        http: HttpServer | None = None,
        path: str = "/oai",
    ) -> None:
        self.version = version
        self.page = page
        self.seconds = seconds and version == "2.0"
        self.deleted = deleted
        self.name = "Test repository"
        self.now = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
        self.ahead = timedelta(0)
        """By so much what responseDate shows is ahead of `now`, which datestamps and the web server go by."""
        self.expires = ""
        self.sets: dict[str, str] = {}
        self.formats = {"oai_dc": DC}
        self.friends: list[str] = []
        self.records: dict[str, Record] = {}
        self.odd: set[Odd] = set()
        self.poison: set[str] = set()
        """Identifiers of records that make every answer they are in `poisoned`."""
        self.content_type = "text/xml;charset=UTF-8"
        self.poisoned: tuple[bytes, int, dict[str, str]] = (INTERNAL_ERROR, 500, {"Content-Type": "text/html"})
        self.refuses: Callable[[Asked], bool] = lambda asked: False
        """Which requests are answered with `poisoned`."""
        self.unreadable: set[str] = set()
        """Identifiers of records that only GetRecord cannot give."""
        self.unknown: set[str] = set()
        """Identifiers of records that GetRecord says do not exist."""
        self.refuse_tokens: tuple[bytes, int] | None = None
        """What requests with a token are answered with instead, and the status."""
        self.tamper: Callable[[bytes, Asked], bytes] | None = None
        self.answered: list[Asked] = []
        self._lock = threading.Lock()
        self._count = 0
        self._once: set[str] = set()
        for number in range(1, records + 1):
            self.put(f"oai:test:{number}", _FIRST + timedelta(days=number - 1))
        self.http = http or HttpServer()
        if http is None:
            self.http.clock = lambda: self.now
            self.http.route("/moved", self._answer)
        self.base_url = self.http.route(path, self._answer)

    def put(self, identifier: str, datestamp: datetime | None = None, **fields: object) -> Record:
        """Add a record, or replace it; stamped now, if nothing else is said."""
        record = Record(identifier, datestamp or self.now, **fields)  # type: ignore[arg-type]
        self.records[identifier] = record
        return record

    def delete(self, identifier: str) -> None:
        """The record is deleted now."""
        self.records[identifier].deleted = True
        self.records[identifier].datestamp = self.now

    def asked(self, verb: str) -> list[Asked]:
        """The requests with this verb, in their order."""
        return [each for each in self.answered if each.verb == verb]

    def forget(self) -> None:
        """Forget what was asked so far."""
        self.answered.clear()

    def close(self) -> None:
        self.http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- over HTTP

    def _answer(self, asking: Asking) -> None:
        client = asking.client_address[:2]
        request = next(each for each in reversed(self.http.requests) if each.client == client)
        query = request.body.decode() if request.method == "POST" else urlsplit(asking.path).query
        arguments = dict(parse_qsl(query))
        asked = Asked(arguments.pop("verb", ""), arguments, request.method)
        with self._lock:
            self._count += 1
            is_second = self._count % 2 == 0
            if Odd.REDIRECTED in self.odd and asking.path.startswith("/oai"):
                return asking.answer(b"", 302, {"Location": "/moved"})
            self.answered.append(asked)
        if is_second and (busy := self._busy()):
            return asking.answer(b"", *busy)
        if Odd.HTML_PAGE in self.odd and asked.verb.startswith("List"):
            return asking.answer(HTML, 200, {"Content-Type": "text/html"})
        if Odd.EMPTY_ANSWERS in self.odd and asked.verb in _LISTS:
            return asking.answer(b"\n", 200)
        if self.refuses(asked):
            return asking.answer(*self.poisoned)
        if "resumptionToken" in arguments and self._first_time(Odd.DAMAGED_ONCE):
            return asking.answer(DAMAGED, 200, GZIP)
        if self.refuse_tokens and "resumptionToken" in arguments:
            return asking.answer(*self.refuse_tokens)
        try:
            body, status = self._body(asked)
        except ZeroDivisionError:
            return asking.answer(*self.poisoned)
        if self.tamper:
            body = self.tamper(body, asked)
        asking.answer(body, status, {"Content-Type": self.content_type})
        return None

    def _busy(self) -> tuple[int, dict[str, str]] | None:
        if Odd.BUSY_SECONDS in self.odd:
            return 503, {"Retry-After": "0"}
        if Odd.BUSY_DATE in self.odd:
            return 503, {"Retry-After": format_datetime(self.now, usegmt=True)}
        return (429, {"Retry-After": "0"}) if Odd.TOO_MANY in self.odd else None

    def _body(self, asked: Asked) -> tuple[bytes, int]:
        try:
            inner = self._verb(asked)
            status = 200
        except _Refused as error:
            if self.version != "2.0":
                if error.code == "noRecordsMatch":
                    return self._framed(asked, b""), 200
                return error.code.encode(), 400
            inner = f'<error code="{error.code}">Refused: {error.code}</error>'.encode()
            status = 404 if Odd.STATUS_OF_ERRORS in self.odd else 200
        return self._framed(asked, inner), status

    def _framed(self, asked: Asked, inner: bytes) -> bytes:
        verb = "Identify" if Odd.OTHER_VERB in self.odd and asked.verb in _LISTS else asked.verb
        if verb != asked.verb:
            inner = self._identify()
        url = "http://other.example.org/oai" if Odd.OTHER_BASE_URL in self.odd else self.base_url
        ampersand = "?a=1&b=2" if Odd.UNESCAPED_REQUEST in self.odd else ""
        start = b'<?xml version="1.0" encoding="UTF-8"?>\n'
        if Odd.DTD in self.odd:
            start += b'<!DOCTYPE OAI-PMH [<!ENTITY frogs "toads">]>\n'
        shown = self.now + self.ahead
        if self.version == "2.0":
            is_error = inner.startswith(b"<error")
            inner = inner if is_error else f"<{verb}>".encode() + inner + f"</{verb}>".encode()
            head = f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>{self._stamp(shown, True)}'
            head += f"</responseDate><request>{url}{ampersand}</request>"
            body = start + head.encode() + inner + b"</OAI-PMH>"
        else:
            where = f"{self.version}/" if self.version == "1.1" else ""
            head = f'<{verb} xmlns="http://www.openarchives.org/OAI/{where}OAI_{verb}"><responseDate>'
            head += f"{shown:%Y-%m-%dT%H:%M:%S}+00:00</responseDate><requestURL>{url}</requestURL>"
            body = start + head.encode() + inner + f"</{verb}>".encode()
        body = body.partition(_CUT)[0]
        return body + (b"\n<b>Warning</b>: memory" if Odd.JUNK_AT_THE_END in self.odd else b"")

    # -- the verbs

    def _verb(self, asked: Asked) -> bytes:
        if asked.verb == "Identify":
            return self._identify()
        if asked.verb == "ListMetadataFormats":
            return b"".join(
                f"<metadataFormat><metadataPrefix>{prefix}</metadataPrefix><schema>{namespace}{prefix}.xsd</schema>"
                f"<metadataNamespace>{namespace}</metadataNamespace></metadataFormat>".encode()
                for prefix, namespace in self.formats.items()
            )
        if asked.verb == "ListSets":
            if not self.sets and self.version == "2.0":
                raise _Refused("noSetHierarchy")
            return b"".join(
                f"<set><setSpec>{spec}</setSpec><setName>{escape(name)}</setName></set>".encode()
                for spec, name in self.sets.items()
            )
        if asked.verb == "GetRecord":
            return self._record(asked.arguments)
        if asked.verb in _LISTS:
            return self._list(asked)
        raise _Refused("badVerb")

    def _identify(self) -> bytes:
        base_url = "http://other.example.org/oai" if Odd.OTHER_BASE_URL in self.odd else self.base_url
        text = f"<repositoryName>{escape(self.name)}</repositoryName><baseURL>{base_url}</baseURL>"
        text += f"<protocolVersion>{self.version}</protocolVersion><adminEmail>keeper@example.org</adminEmail>"
        if self.version == "2.0":
            if Odd.NO_EARLIEST not in self.odd:
                text += f"<earliestDatestamp>{self._stamp(_FIRST, self.seconds)}</earliestDatestamp>"
            granularity = "YYYY-MM-DDThh:mm:ssZ" if self.seconds else "YYYY-MM-DD"
            text += f"<deletedRecord>{self.deleted}</deletedRecord><granularity>{granularity}</granularity>"
            text += "<compression>gzip</compression>"
        if self.friends:
            urls = "".join(f"<baseURL>{escape(url)}</baseURL>" for url in self.friends)
            text += f'<description><friends xmlns="http://www.openarchives.org/OAI/2.0/friends/">{urls}</friends>'
            text += "</description>"
        return text.encode()

    def _record(self, arguments: dict[str, str]) -> bytes:
        identifier = arguments.get("identifier", "")
        record = self.records.get(identifier)
        if identifier in self.poison | self.unreadable:
            raise ZeroDivisionError
        if record is None or identifier in self.unknown:
            if self.version != "2.0":
                return b""
            raise _Refused("idDoesNotExist")
        if arguments.get("metadataPrefix") not in self.formats:
            raise _Refused("cannotDisseminateFormat")
        return self._written(record)

    def _list(self, asked: Asked) -> bytes:
        wanted = self._wanted(asked)
        found = sorted(self._matching(wanted), key=lambda record: (record.datestamp, record.identifier))
        if not found:
            raise _Refused("noRecordsMatch")
        page = self._page(found, wanted)
        if asked.verb == "ListRecords" and self.poison & {record.identifier for record in page.records}:
            raise ZeroDivisionError
        write = self._written if asked.verb == "ListRecords" else self._header_alone
        parts = [write(record) for record in page.records]
        if self._is_cut_off(wanted, len(parts)):
            return b"".join(parts[:-1]) + parts[-1][: len(parts[-1]) // 2] + _CUT
        return b"".join(parts) + self._token(page)

    def _wanted(self, asked: Asked) -> _List:
        arguments = asked.arguments
        if token := arguments.get("resumptionToken"):
            if len(arguments) > 1:
                raise _Refused("badArgument")
            parts = token.split("!")
            if len(parts) != 6 or Odd.TOKENS_EXPIRE in self.odd or self._first_time(Odd.TOKEN_EXPIRES_ONCE):
                raise _Refused("badResumptionToken")
            return _List(parts[0], parts[1], parts[2], parts[3], int(parts[4]), int(parts[5]))
        prefix, set_spec = arguments.get("metadataPrefix", ""), arguments.get("set", "")
        wanted = _List(prefix, set_spec, arguments.get("from", ""), arguments.get("until", ""))
        stamps = [stamp for stamp in (wanted.begin, wanted.until) if stamp]
        has_seconds = {"T" in stamp for stamp in stamps}
        refuses_seconds = not self.seconds or Odd.NO_SECONDS in self.odd
        if len(has_seconds) > 1 or (has_seconds == {True} and refuses_seconds):
            raise _Refused("badArgument")
        if len(stamps) == 2 and wanted.begin > wanted.until:
            raise _Refused("badArgument")
        if not wanted.prefix and self.version == "2.0":
            raise _Refused("badArgument")
        if wanted.prefix not in self.formats and not (self.version != "2.0" and asked.verb == "ListIdentifiers"):
            raise _Refused("cannotDisseminateFormat")
        return wanted

    def _matching(self, wanted: _List) -> list[Record]:
        def matches(record: Record) -> bool:
            if wanted.set_spec and not any(
                each == wanted.set_spec or each.startswith(f"{wanted.set_spec}:")
                for each in (*record.sets, *record.left)
            ):
                return False
            stamps = wanted.begin or wanted.until
            stamp = self._stamp(record.datestamp, "T" in stamps)
            return (not wanted.begin or stamp >= wanted.begin) and (not wanted.until or stamp <= wanted.until)

        found = [record for record in self.records.values() if matches(record)]
        return [replace(each, deleted=True) if wanted.set_spec in each.left else each for each in found]

    def _page(self, found: list[Record], wanted: _List) -> _Page:
        size: int | None = len(found)
        if Odd.SIZE_TOO_HIGH in self.odd:
            size = 2 * len(found)
        elif Odd.SIZE_NEARLY in self.odd:
            size = len(found) + 1
        if self.version != "2.0" or Odd.BLANK_TOKEN in self.odd or len(found) <= self.page:
            size = size if Odd.SIZE_TOO_HIGH in self.odd else None
        cursor = wanted.cursor
        if cursor and Odd.EMPTY_PAGES in self.odd:
            wanted.empty += 1
            return _Page([], wanted.token, size, cursor)
        if cursor and not wanted.empty and Odd.EMPTY_PAGE in self.odd:
            wanted.empty = 1
            return _Page([], wanted.token, size, cursor)
        place = cursor % (len(found) + -len(found) % self.page) if Odd.CIRCLE in self.odd else cursor
        records = found[place : place + self.page]
        wanted.cursor = cursor + self.page
        has_more = wanted.cursor < len(found) or Odd.CIRCLE in self.odd
        token: str | None = wanted.token if has_more else "" if cursor else None
        if Odd.TWICE in self.odd and cursor:
            records = [found[cursor - 1], *records]
        if Odd.SAME_TOKEN in self.odd:
            wanted.cursor = self.page
            token = wanted.token
        if Odd.BLANK_TOKEN in self.odd and token:
            token = "\n  "
        return _Page(records, token, size, cursor)

    def _token(self, page: _Page) -> bytes:
        if page.token is None and page.size is None:
            return b""
        attributes = ""
        if self.version == "2.0":
            attributes += f" completeListSize={quoteattr(str(page.size))}" if page.size is not None else ""
            attributes += f' cursor="{page.cursor}"'
            attributes += f" expirationDate={quoteattr(self.expires)}" if self.expires else ""
        return f"<resumptionToken{attributes}>{escape(page.token or '')}</resumptionToken>".encode()

    def _is_cut_off(self, wanted: _List, number: int) -> bool:
        if Odd.CUT_OFF in self.odd:
            return number > 1
        return wanted.cursor > self.page and self._first_time(Odd.CUT_OFF_ONCE)

    def _first_time(self, odd: Odd) -> bool:
        with self._lock:
            if odd not in self.odd or odd.name in self._once:
                return False
            self._once.add(odd.name)
            return True

    # -- records

    def _written(self, record: Record) -> bytes:
        if record.xml is not None:
            return record.xml
        old = self.version != "2.0"
        status = ' status="deleted"' if record.deleted else ""
        header = self._header(record, "" if old else status)
        metadata = about = ""
        if not record.deleted:
            content = dublin_core(record.title) if record.metadata is None else record.metadata
            metadata = f"<metadata>{content}</metadata>" if content is not None else ""
            about = f"<about>{record.about}</about>" if record.about else ""
        return f"<record{status if old else ''}>{header}{metadata}{about}</record>\n".encode()

    def _header(self, record: Record, status: str = "") -> str:
        sets = "".join(f"<setSpec>{each}</setSpec>" for each in record.sets) if self.version == "2.0" else ""
        stamp = self._stamp(record.datestamp, self.seconds)
        return (
            f"<header{status}><identifier>{escape(record.identifier)}</identifier>"
            f"<datestamp>{stamp}</datestamp>{sets}</header>"
        )

    def _header_alone(self, record: Record) -> bytes:
        status = ' status="deleted"' if record.deleted else ""
        if self.version != "2.0":
            return f"<identifier{status}>{escape(record.identifier)}</identifier>".encode()
        return self._header(record, status).encode()

    @staticmethod
    def _stamp(when: datetime, seconds: bool) -> str:
        return f"{when:%Y-%m-%dT%H:%M:%SZ}" if seconds else f"{when:%Y-%m-%d}"


def dublin_core(title: str) -> str:
    """The metadata of a record, as oai_dc."""
    return (
        f'<oai_dc:dc xmlns:oai_dc="{DC}" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escape(title)}</dc:title></oai_dc:dc>"
    )
