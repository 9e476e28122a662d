from __future__ import annotations

import pytest

from metaharvest.pipeline.full_text.kinds import Kind, charset_of, kind_of, stored_type


@pytest.mark.parametrize(
    ("content", "media_type", "expected"),
    [
        (b"%PDF-1.4\n", "text/html", Kind.PDF),
        (b"\r\njunk before\n%PDF-1.7", "", Kind.PDF),
        (b"x" * 1100 + b"%PDF-1.7", "", Kind.TEXT),
        (b"<html><body>%PDF-1.4</body>", "application/pdf", Kind.HTML),
        (b"\xef\xbb\xbf<!DOCTYPE html><p>", "application/pdf", Kind.HTML),
        (b"<?xml version='1.0'?><!DOCTYPE html><html xmlns='x'>", "", Kind.HTML),
        (b"<div class='x'>", "text/html; charset=utf-8", Kind.HTML),
        (b"<?xml version='1.0'?>\n<!-- a > b --><!DOCTYPE article PUBLIC 'x'>\n<article>", "", Kind.JATS),
        (b"<TEI xmlns='x'><teiHeader/><text><head>A</head>", "", Kind.JATS),
        (b"<?xml version='1.0'?><jats:article xmlns:jats='x'>", "", Kind.JATS),
        (b"<?xml version='1.0'?><oai_dc:dc>", "text/xml", Kind.XML),
        (b"<rdf:RDF>", "application/rdf+xml", Kind.XML),
        (b"<br />\n<b>Warning</b>: x\n%PDF-1.4\n...\n%%EOF\n", "application/pdf", Kind.PDF),
        (b"<html><body>A PDF begins with %PDF-1.4</body></html>", "text/html", Kind.HTML),
        (b"Alders grow by rivers.", "text/plain", Kind.TEXT),
        (b"a,b\n1,2", "text/csv", Kind.OTHER),
        (b'{"a": 1}', "application/json", Kind.OTHER),
        (b"\0\1\2\3", "", Kind.OTHER),
        (b"  \n", "application/pdf", Kind.EMPTY),
        (b"PK\x03\x04....word/document.xml", "", Kind.WORD),
        (b"PK\x03\x04....data.csv", "", Kind.ARCHIVE),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "", Kind.WORD),
        (b"\xff\xd8\xff\xe0", "", Kind.IMAGE),
        (b"%!PS-Adobe", "", Kind.POSTSCRIPT),
    ],
)
def test_the_kind_of_a_body(content: bytes, media_type: str, expected: Kind) -> None:
    assert kind_of(content, media_type) is expected


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [("text/html", None), ("text/html; charset=ISO-8859-1", "ISO-8859-1"), ('text/html;Charset="utf-8"', "utf-8")],
)
def test_the_charset_of_an_answer(media_type: str, expected: str | None) -> None:
    assert charset_of(media_type) == expected


@pytest.mark.parametrize(
    ("kind", "media_type", "expected"),
    [
        (Kind.TEXT, "text/plain; charset=Windows-1251", "text/plain; charset=cp1251"),
        (Kind.TEXT, "text/plain; charset=no-such-charset", "text/plain"),
        (Kind.TEXT, "application/octet-stream", "text/plain"),
        (Kind.PDF, "application/pdf; charset=utf-8", "application/pdf"),
    ],
)
def test_plain_text_is_stored_with_its_charset(kind: Kind, media_type: str, expected: str) -> None:
    assert stored_type(kind, media_type) == expected
