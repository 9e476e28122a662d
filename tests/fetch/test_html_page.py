"""Web pages that come instead of documents are told apart from documents."""

from __future__ import annotations

import codecs

import pytest

from metaharvest.fetch.html_page import html_title

PAGE = "<html><head><title>Not here</title></head></html>"
EML = '<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.2.0" packageId="a.1.1"><dataset><title>T</title>'


@pytest.mark.parametrize(
    "page",
    [
        PAGE,
        PAGE.upper().replace("NOT HERE", "Not here"),
        "\n\t " + PAGE,
        "\ufeff" + PAGE,
        "<!DOCTYPE html>\n" + PAGE,
        '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">' + PAGE,
        "<!-- <eml:eml> --> <!-- two --><!doctype html>" + PAGE,
        '<?xml version="1.0"?>\n<!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><title>Not here</title>',
        '<?xml version="1.0"?><h:html xmlns:h="http://www.w3.org/1999/xhtml"><title>Not here</title></h:html>',
        "<html lang='en'><title\nclass='x'> Not\n  here </title>",
        "<head><title>Not here</title></head>",
        "<html><title>Not here",
    ],
)
def test_an_html_page_is_known_with_its_title(page: str) -> None:
    assert html_title(page.encode()) == "Not here"


@pytest.mark.parametrize(
    "document",
    [
        EML,
        '<?xml version="1.0" encoding="UTF-8"?>\n' + EML,
        "<!-- <html><title>no</title></html> -->\n" + EML,
        '<?xml version="1.0"?><?xml-stylesheet href="eml.xsl"?><!-- x -->' + EML,
        "<!DOCTYPE eml>" + EML,
        "<hrv:harvestList xmlns:hrv='eml://ecoinformatics.org/harvestList'>",
        "<htmlish/>",
        "<html-list/>",
        "html",
        "",
        "   ",
        "<",
        "<!-- never closed <html>",
        '{"title": "<html>"}',
        "Just text <html><title>no</title></html>",
    ],
)
def test_what_is_no_html_page_is_none(document: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
        assert html_title(document.encode(encoding)) is None


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_page_is_known_in_any_encoding(encoding: str) -> None:
    assert html_title(PAGE.replace("Not here", "Fläche").encode(encoding)) == "Fläche"


def test_a_declared_charset_is_used_and_latin_1_where_there_is_none() -> None:
    declared = '<html><meta charset="windows-1251"><title>Привет</title>'
    assert html_title(declared.encode("windows-1251")) == "Привет"
    assert html_title("<html><title>Fläche</title>".encode("latin-1")) == "Fläche"


@pytest.mark.parametrize("charset", ["no-such-charset", "rot13", "hex", "idna", "base64"])
def test_a_strange_charset_does_no_harm(charset: str) -> None:
    page = f'<html><meta charset="{charset}"><title>Fläche</title>'.encode("latin-1")
    assert isinstance(html_title(page), str)


def test_a_page_without_a_title_has_an_empty_one() -> None:
    assert html_title(b"<html><body>Sorry</body></html>") == ""


def test_the_title_is_unescaped_and_safe_to_show() -> None:
    assert (
        html_title(b"<html><title>A &amp; B\x1b[31m &lt;x&gt; \r\n\xe2\x80\xaeC</title>")
        == "A & B\ufffd[31m <x> \ufffdC"
    )
    shown = html_title(b"<html><title>" + b"x" * 5000)
    assert shown is not None
    assert len(shown) <= 300


@pytest.mark.parametrize("cut", range(1, 60))
def test_any_beginning_of_a_page_is_survived(cut: int) -> None:
    for data in (codecs.BOM_UTF8 + PAGE.encode(), PAGE.encode("utf-16"), b"<!--" * cut, b"<?" * cut, b"\xff" * cut):
        title = html_title(data[:cut])
        assert title is None or "Not here".startswith(title[:8].rstrip("<\ufffd"))


def test_a_page_beyond_the_first_kilobytes_is_not_looked_at() -> None:
    assert html_title(b" " * 10_000 + PAGE.encode()) is None
