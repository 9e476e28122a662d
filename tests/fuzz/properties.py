"""What must hold for whatever a server sends: only our own outcomes come out, soon, and safe to keep and to show.

Used by the property tests and by the longer targets alike. Each `check_…` raises AssertionError, or whatever stray
exception came out, where the property does not hold.
"""

# ruff: noqa: PT017 - what an exception carries is part of the property

from __future__ import annotations

import csv
import io
import time
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from html.parser import HTMLParser
from ipaddress import ip_network

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, ListError, NotAsked
from metaharvest.fetch.html_page import html_title
from metaharvest.fetch.robots import rules_for
from metaharvest.journal.log_rows import NO_SITE, LogRow, outcome_rows
from metaharvest.model import MAX_EXCERPT, MAX_FINDINGS, Finding, ListedDocument, OaiOptions, Outcome, OutcomeKind
from metaharvest.rules import RULES
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.harvest_list.source import read_list
from metaharvest.sources.oai_pmh.bounds import ERRORS
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, Response, items, short_response
from metaharvest.targets.dataone import refusals, system_metadata
from metaharvest.targets.http import HttpAnswer
from metaharvest.targets.metacat import replies
from metaharvest.transform.filters import Filter, Filters
from metaharvest.transform.normalize import Mapping, NewElement, Normalization
from metaharvest.validation.processing_policy import ProcessingPolicy
from metaharvest.validation.schemas import VERSIONS
from metaharvest.validation.validator import Validator
from support.fetching import WaitingFetcher as Fetcher
from support.http_server import HttpServer, Raw

SECONDS = 3.0
"""Processor time that one list, document or answer may take: a second or so, on a slow machine."""

LONGEST = 5_000
"""Characters that one message or remedy may have."""

_KEPT = "\u00ad\u200c\u200d"
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")


@contextmanager
def soon() -> Iterator[None]:
    began = time.process_time()
    yield
    took = time.process_time() - began
    assert took < SECONDS, f"took {took:.1f} s"


def assert_plain(text: str, *, lines: bool = False) -> None:
    """No character that a terminal, a mail program or a browser would obey, and nothing that UTF-8 has not."""
    kept = _KEPT + ("\n\t" if lines else "")
    bad = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in kept}
    assert not bad, f"{sorted(bad)!a} in {text[:500]!a}"


def assert_findings(findings: Iterable[Finding], document: ListedDocument | None = None) -> None:
    """Known rules, bounded numbers and lengths, and rows that can be stored and shown."""
    found = list(findings)
    assert len(found) <= MAX_FINDINGS + 1
    for finding in found:
        assert finding.rule in RULES, finding.rule
        assert finding.message, finding
        assert len(finding.message) <= LONGEST, finding.rule
        assert len(finding.remedy) <= LONGEST, finding.rule
        assert len(finding.xpath) <= 100_000
        assert len(finding.excerpt) <= MAX_EXCERPT
        assert finding.line is None or 1 <= finding.line < 2**31
        assert finding.column is None or 1 <= finding.column < 2**31
    for detail in LogRow("ValidateDocError", "x", tuple(found), document).details(1, NO_SITE):
        _assert_row(detail.values())


def assert_listed(document: ListedDocument) -> None:
    """An entry that may go into the ledger, a mail, a table."""
    assert 0 < len(document.document_id) <= 800
    assert document.document_id.isascii()
    assert document.document_id.isprintable()
    assert " " not in document.document_id
    assert 0 <= document.revision < 2**63
    assert document.url.startswith(("http://", "https://")) or document.url.lower().startswith("http")
    assert_plain(document.url)
    document.document_type.encode("utf-8")
    assert "\0" not in document.document_type
    assert len(document.document_type) <= 8_000
    for row in outcome_rows(Outcome(document, OutcomeKind.INVALID)):
        _assert_row(row.columns().values())


def _assert_row(values: Iterable[object]) -> None:
    for value in values:
        if isinstance(value, str):
            assert_plain(value, lines=True)
        elif isinstance(value, int):
            assert value < 2**63


def check_list(content: bytes) -> None:
    """A harvest list is read, or refused with findings."""
    with soon():
        try:
            listed = list(read_list(io.BytesIO(content)))
        except ListError as error:
            assert error.findings
            assert_findings(error.findings)
            return
    assert listed
    for document in listed:
        assert_listed(document)


_LISTED = ListedDocument("alder.1", 1, list(VERSIONS)[-1], "http://example.org/1")
_validator = Validator(["other"])


_NORMALIZED = ProcessingPolicy(
    filters=Filters("filters.xml", False, (), (Filter(1, None, "//title", "x", ignore_case=True, invert=True),)),
    normalization=Normalization(
        "normalize.xml", (), (Mapping("//*[not(*)]", (NewElement("keyword", "", "water", True, ("hydrology",)),)),)
    ),
)
"""Filters and normalising of a site."""


def check_document(content: bytes) -> None:
    """A document is accepted, or refused with findings; so is the normalised document."""
    with soon():
        title = html_title(content)
        verdict = _validator.check(content, _LISTED)
    with soon():
        assert_findings(_validator.check(content, _LISTED, _NORMALIZED).findings, _LISTED)
    if title is not None:
        assert_plain(title)
    assert_findings(verdict.findings, _LISTED)


def check_robots(content: bytes) -> None:
    """A robots.txt allows an address or refuses it, without an error."""
    with soon():
        rules = rules_for("metaharvest", content)
        for path in ("/", "/" + "a" * 2_000, "/a%41?b=*$#c"):
            assert rules.allow(f"https://example.org{path}") in (True, False)
    assert rules.left_out >= 0


def check_metacat(content: bytes) -> None:
    """An answer of a Metacat is read or refused, and is safe to show."""
    answer = HttpAnswer("https://example.org/metacat", 200, "OK", {}, content)
    with soon():
        text = replies.text_of(answer)
        shown = [replies.error_of(text) or "", replies.login_of(text)[1], replies.username_of(text)]
        shown.append(replies.version_of(text))
        revision = replies.revision_of(text)
        docids = list(replies.docids_of(content))
        replies.is_error(content)
        replies.is_success(text)
        replies.is_gone(text)
        refusal = replies.refusal(answer, "a question")
    assert revision is None or 0 <= revision < 2**63
    assert all(len(docid) <= 1_000 for docid in docids)
    assert_findings(refusal.findings)
    for each in (*shown, *(finding.message for finding in refusal.findings)):
        assert_plain(each)
        assert "://user:secret@" not in each


def check_node(content: bytes) -> None:
    """An answer of a DataONE node is read, or refused with a sentence."""
    answer = HttpAnswer("https://example.org/v2/object", 404, "Not Found", {}, content)
    with soon():
        for read in (system_metadata.parsed, system_metadata.listed, lambda text: system_metadata.confirms(text, "a")):
            with suppress(ValueError):
                read(content)
        error = refusals.error_in(answer)
        refusal = refusals.refused_document(answer, "a.1.1")
    assert_findings(refusal.findings)
    assert_plain(refusal.findings[0].message)
    assert error is None or "://user:secret@" not in str(error)


_SHORT_VERBS = ("Identify", "ListMetadataFormats", "ListSets")
_LIST_VERBS = ("ListRecords", "ListIdentifiers", "GetRecord")
_TOKEN = 65_536


def check_repository(content: bytes) -> None:
    """An answer of an OAI-PMH repository is read as the answer to each verb, or refused with one finding."""
    for verb in _SHORT_VERBS:
        with soon():
            try:
                answer = short_response(content, verb)[1]
            except NotOaiResponse as error:
                _assert_refused(error)
                continue
        _assert_answer(answer)
    for verb in _LIST_VERBS:
        records, answer = Records("https://example.org/oai", OaiOptions("fuzz")), Response(verb)
        with soon():
            try:
                take = records.header if verb == "ListIdentifiers" else records.taken
                found = list(items(io.BytesIO(content), answer, take))
            except NotOaiResponse as error:
                _assert_refused(error)
                continue
        _assert_answer(answer)
        for record in found:
            if isinstance(record, ListedRecord):
                assert_findings(record.findings, record.document)
                assert len(record.content or b"") <= 10 * len(content) + 10_000, "a record is larger than its answer"


def _assert_refused(error: NotOaiResponse) -> None:
    assert_findings([error.finding])
    assert_plain(error.finding.message)


def _assert_answer(answer: Response) -> None:
    assert len(answer.errors) <= ERRORS
    for error in answer.errors:
        assert_plain(str(error))
    assert answer.token is None or len(answer.token.text) <= _TOKEN


class Answers:
    """A web server that answers each request with given bytes, and a client."""

    def __init__(self) -> None:
        self.server = HttpServer()
        self._http = HttpSettings(
            allow_networks=(ip_network("127.0.0.1/32"),),
            connect_timeout=2, read_timeout=2, document_deadline=3, list_deadline=3,
            max_document_bytes=100_000, max_list_bytes=100_000,
            max_redirects=0,  # what a redirect leads to is read; but nobody is asked for it, for it may be anywhere
        )  # fmt: skip

    def check(self, answer: bytes) -> None:
        """Something whole comes, or a finding."""
        # A client of its own each time: one that a server told to wait would not ask any more.
        with soon(), Fetcher(self._http, name="fuzz", administrator=None) as fetcher:
            try:
                response, content = fetcher.fetch(self.server.route("/x", Raw((answer,))))
            except FetchError as error:
                assert not isinstance(error, NotAsked)
                assert len(error.findings) == 1
                assert error.findings[0].rule.startswith("http.")
                assert_findings(error.findings)
                assert_plain(error.findings[0].message)
                assert "://user:secret@" not in error.findings[0].message
                assert error.retry_after is None or 0 <= error.retry_after <= 86_400
                return
        assert response.size == len(content) > 0
        assert len(content) <= 100_000
        for header in (response.etag, response.last_modified):
            assert header is None or "\n" not in header

    def close(self) -> None:
        self.server.close()


# -- what is rendered

_TAGS = frozenset(
    "html head meta title style body table tr td th thead tbody div span p h1 h2 h3 a b i br pre code ul li".split()  # noqa: SIM905
)


class _Page(HTMLParser):
    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in _TAGS, tag
        for name, value in attributes:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "action", "formaction"), (tag, name)
            if name == "href":
                assert (value or "").startswith(("http://", "https://", "mailto:")), value


def assert_html(page: str) -> None:
    """Nothing but what our own templates write: no script, no image, no other link."""
    _Page().feed(page)
    assert_plain(page.replace("\r\n", "\n"), lines=True)


def assert_csv(table: str) -> None:
    """RFC 4180, one row a line, no cell that a spreadsheet would take for a formula."""
    rows = list(csv.reader(io.StringIO(table.removeprefix("\ufeff"), newline="")))
    assert len(rows) == table.count("\r\n")
    for row in rows:
        assert len(row) == len(rows[0])
        for cell in row:
            assert_plain(cell)
            assert not cell.startswith(_FORMULAS) or cell.lstrip("-").isdigit(), cell
