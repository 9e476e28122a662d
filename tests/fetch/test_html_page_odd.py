"""Web pages with an unusual beginning."""

from __future__ import annotations

import pytest

from metaharvest.fetch.html_page import title_of_odd_page

PAGE = b"<!DOCTYPE html><html><head><title>Home</title></head></html>"


@pytest.mark.parametrize(
    ("head", "tag", "title"),
    [
        (b"<!--" + b"x" * 9000 + b"-->" + PAGE, "html", "Home"),
        (b" " * 9000 + PAGE, "{http://www.w3.org/1999/xhtml}html", "Home"),
        (b"Warning: no memory\n" + PAGE, None, "Home"),
        (b"<DIV>hello</DIV>", "DIV", ""),
        (b"<OAI-PMH/>", "OAI-PMH", None),
        (b"<!DOCTYPE a><a/>", "a", None),
        (b"plain text", None, None),
    ],
)
def test_a_web_page_is_recognised_by_its_elements(head: bytes, tag: str | None, title: str | None) -> None:
    assert title_of_odd_page(head, tag) == title
