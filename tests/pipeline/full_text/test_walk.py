"""The way from a record to its file, over a web that is a table."""

from __future__ import annotations

from hashlib import sha256

import pytest

from metaharvest.pipeline.full_text.candidates import Candidate, Expects
from metaharvest.pipeline.full_text.walk import MOST_REQUESTS, Answer, Reason, Refusal, Walk

HOST = "https://repo.example.org"
PDF = b"%PDF-1.4 alders"
MISSING = Refusal(Reason.MISSING, "It is not there.")
BLOCKED = Refusal(Reason.BLOCKED, "It is not allowed.")


def page(*links: str) -> bytes:
    return "".join(f'<a href="{each}">Download PDF</a>' for each in links).encode()


def walked(
    web: dict[str, bytes | str | Refusal], *starts: str, expects: Expects = Expects.PAGE
) -> tuple[Walk, list[str]]:
    """Walk through `web`: bodies by path; a text redirects to its path."""
    walk = Walk([Candidate(HOST + each, "identifier", expects, start=HOST + each) for each in starts])
    asked: list[str] = []
    while candidate := walk.following():
        path = candidate.url.removeprefix(HOST)
        asked.append(path)
        body = web.get(path, MISSING)
        if isinstance(body, str):
            path, body = body, web[body]
        if isinstance(body, bytes):
            kind = "application/pdf" if body.startswith(b"%PDF") else "text/html"
            walk.take(candidate, Answer(HOST + path, body, sha256(body).hexdigest(), kind))
        elif isinstance(body, Refusal):
            walk.take(candidate, body)
    return walk, asked


def test_a_page_leads_to_its_file() -> None:
    walk, asked = walked({"/12345": page("/get/12345"), "/get/12345": PDF}, "/12345", "/other")
    assert walk.found is not None
    assert asked == ["/12345", "/get/12345"]
    assert walk.found.candidate.start == HOST + "/12345"
    assert walk.found.candidate.found_by == "identifier > link"
    assert walk.found.media_type == "application/pdf"


def test_a_dead_address_does_not_end_the_walk() -> None:
    walk, asked = walked({"/a.pdf": PDF}, "/gone", "/a.pdf")
    assert walk.found is not None
    assert asked == ["/gone", "/a.pdf"]


REASONS = [
    ("no address", {}, (), Reason.NO_LINK),
    ("a page without a link", {"/1": b"<p>Nothing here</p>"}, ("/1",), Reason.NO_LINK),
    ("gone", {}, ("/1",), Reason.MISSING),
    ("two pages that lead to each other", {"/1": page("/2?pdf"), "/2?pdf": page("/1")}, ("/1",), Reason.LOOP),
    ("the same page under many names", {"/1": page("/1/a?pdf"), "/1/a?pdf": page("/1/a?pdf")}, ("/1",), Reason.LOOP),
    ("data instead of a text", {"/1": page("/a.pdf"), "/a.pdf": b"\x89PNG"}, ("/1",), Reason.WRONG_TYPE),
    ("a page instead of a file", {"/1": page("/a.pdf"), "/a.pdf": b"<html>Sorry"}, ("/1",), Reason.WRONG_TYPE),
    (
        "a login instead of a file",
        {"/1": page("/a.pdf"), "/a.pdf": "/login", "/login": b"<html><input type=password>"},
        ("/1",),
        Reason.LOGIN,
    ),
    (
        "too many pages",
        {f"/{n}.pdf": page(f"/{n + 1}.pdf") + b"x" * n for n in range(9)},
        ("/0.pdf",),
        Reason.TOO_MANY_HOPS,
    ),
    ("the reason that says most", {"/1": b"<p>No", "/2": BLOCKED}, ("/1", "/2", "/3"), Reason.BLOCKED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("web", "starts", "reason"), [case[1:] for case in REASONS], ids=[str(case[0]) for case in REASONS]
)
def test_the_reason_without_a_file(
    web: dict[str, bytes | str | Refusal], starts: tuple[str, ...], reason: Reason
) -> None:
    walk, _ = walked(web, *starts)
    assert walk.found is None
    assert walk.refusal.reason is reason
    assert walk.refusal.message.endswith(".")


def test_a_viewer_between_page_and_file_is_passed() -> None:
    web: dict[str, bytes | str | Refusal] = {
        "/1": page("/a.pdf"),
        "/a.pdf": page("/raw/a.pdf?get=1"),
        "/raw/a.pdf?get=1": PDF,
    }
    walk, asked = walked(web, "/1")
    assert walk.found is not None
    assert asked == ["/1", "/a.pdf", "/raw/a.pdf?get=1"]


def test_no_walk_is_long() -> None:
    web: dict[str, bytes | str | Refusal] = {f"/{n}": page(*(f"/{n}/{m}.pdf" for m in range(5))) for n in range(5)}
    walk, asked = walked(web, *(f"/{n}" for n in range(5)))
    assert walk.found is None
    assert len(asked) == MOST_REQUESTS


def test_a_page_that_is_said_to_be_the_text_is_taken_if_there_is_no_file() -> None:
    text = b"<html><body>" + b"<p>Alders grow by rivers.</p>" * 500
    walk, _ = walked({"/t": text, "/1": page("/x.pdf")}, "/t", "/1", expects=Expects.HTML_TEXT)
    assert walk.found is not None
    assert walk.found.media_type == "text/html"
    short, _ = walked({"/t": b"<html><p>An abstract."}, "/t", expects=Expects.HTML_TEXT)
    assert short.found is None
    assert short.refusal.reason is Reason.NO_LINK


def test_a_pdf_wins_over_a_page_that_is_the_text() -> None:
    text = b"<html><body><a href='/a.pdf'>PDF</a>" + b"<p>Alders grow by rivers.</p>" * 500
    walk, _ = walked({"/t": text, "/a.pdf": PDF}, "/t", expects=Expects.HTML_TEXT)
    assert walk.found is not None
    assert walk.found.media_type == "application/pdf"


@pytest.mark.parametrize(("expects", "is_found"), [(Expects.FILE, True), (Expects.PAGE, False)])
def test_plain_text_counts_where_a_file_is_expected(expects: Expects, is_found: bool) -> None:
    walk = Walk([Candidate(HOST + "/a", "identifier", expects)])
    candidate = walk.following()
    assert candidate is not None
    walk.take(candidate, Answer(HOST + "/a", b"Alders grow.", "0", "text/plain"))
    assert walk.following() is None
    assert (walk.found is not None) is is_found
