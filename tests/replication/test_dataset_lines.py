"""A document as a line of a dataset file: its bytes come back, whatever they are."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from lxml import etree

from metaharvest.catalogue.change_feed import ChangedDocument
from metaharvest.database.batches import batches_by_size as batches
from metaharvest.replication.dataset.formats import NAMESPACE, Line, as_element, as_json, embeddable, utf8_text
from support import schemas

DOCUMENT = ChangedDocument(
    7, datetime(2026, 11, 20, 3, tzinfo=UTC), False, "r/dc/oai:r:1", 2, "oai:r:1", "r", "urn:dc", "Moss & <stones>",
    "elm", ("a", "b:c"), "2026-11-19", "https://r.example.org/oai", "https://r.example.org/oai?verb=GetRecord",
    "0" * 64, 4, 1,
)  # fmt: skip
GONE = replace(DOCUMENT, is_deleted=True, title=None, sets=(), url=None, sha256=None, size=None, revision_id=None)

WHOLE = [
    b"<a/>",
    b'<?xml version="1.0"?>\n<!-- first --><?go on?><a>\r\n<![CDATA[<x>]]>&#13;</a>\n<!-- last -->\n',
    '\ufeff<?xml version="1.0" encoding="utf-8"?><a>å\u2028𝛼</a>'.encode(),
    b"<?xml version='1.0' encoding = 'UTF-8' standalone='yes'?><a xmlns='urn:a' xmlns:d='urn:d'><d:b d:c='1'/></a>",
    b'<a><b xmlns="urn:b"><c xmlns=""/></b></a>',
]
AS_BASE64 = [
    '<?xml version="1.0" encoding="ISO-8859-1"?><a>å</a>'.encode("latin-1"),
    '<?xml version="1.0" encoding="ISO-8859-1"?><a>å</a>'.encode(),
    '<?xml version="1.0" encoding="UTF-16"?><a>å</a>'.encode("utf-16"),
    "<a/>".encode("utf-16-le"),
    b"<a>\xff</a>",
]
NOT_IN_XML = [
    b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    b"<!DOCTYPE a><a/>",
    b'<?xml version="1.1"?><a/>',
    b'<a><b xml:id="x"/></a>',
    b"<a></d:content></a>",
    b"</d:content><a/>",
    b"<d:a/>",
    b"",
]


def canonical(element: etree._Element) -> bytes:
    return etree.tostring(element, method="c14n", exclusive=True)


@pytest.mark.parametrize("content", WHOLE + NOT_IN_XML)
def test_a_document_in_utf_8_is_text_in_a_line_of_json(content: bytes) -> None:
    line = as_json(Line(DOCUMENT, content))
    assert line.count(b"\n") == 1
    value = json.loads(line)
    assert schemas.problems("dataset-line", value) == []
    assert (value["content_encoding"], value["content"].encode()) == ("utf-8", content)


@pytest.mark.parametrize("content", AS_BASE64)
def test_any_other_document_is_base64(content: bytes) -> None:
    assert utf8_text(content) is None
    value = json.loads(as_json(Line(DOCUMENT, content)))
    assert schemas.problems("dataset-line", value) == []
    assert (value["content_encoding"], base64.b64decode(value["content"])) == ("base64", content)


@pytest.mark.parametrize("document", [GONE, DOCUMENT])
def test_a_document_may_have_no_content(document: ChangedDocument) -> None:
    value = json.loads(as_json(Line(document, None)))
    assert schemas.problems("dataset-line", value) == []
    assert (value["content_encoding"], value["content"], value["is_deleted"]) == (None, None, document.is_deleted)


def element(content: bytes | None, document: ChangedDocument = DOCUMENT) -> etree._Element:
    line = as_element(Line(document, content))
    return etree.fromstring(f'<d:dataset xmlns:d="{NAMESPACE}">'.encode() + line + b"</d:dataset>")[0]


@pytest.mark.parametrize("content", WHOLE)
def test_an_embedded_document_is_unchanged(content: bytes) -> None:
    inner = embeddable(content)
    assert inner is not None
    assert content.endswith(inner)
    [wrapper] = element(content).iterfind(f"{{{NAMESPACE}}}content")
    [root] = wrapper.iterchildren("*")
    assert canonical(root) == canonical(etree.fromstring(content))


@pytest.mark.parametrize("content", AS_BASE64 + NOT_IN_XML)
def test_a_document_that_cannot_be_embedded_is_base64(content: bytes) -> None:
    assert embeddable(content) is None
    [wrapper] = element(content).iterfind(f"{{{NAMESPACE}}}content")
    assert wrapper.get("encoding") == "base64"
    assert base64.b64decode(wrapper.text or "") == content


def test_the_values_of_an_element() -> None:
    found = element(b"<a/>", replace(DOCUMENT, site="el\x07m", title='"Moss"\n& <stones>'))
    assert {str(name): value for name, value in found.attrib.items()} == {
        "change_seq": "7",
        "changed_at": "2026-11-20T03:00:00+00:00",
        "is_deleted": "false",
        "document_id": "r/dc/oai:r:1",
        "revision": "2",
        "item_identifier": "oai:r:1",
        "origin": "r",
        "document_type": "urn:dc",
        "title": '"Moss"\n& <stones>',
        "site": "el\ufffdm",
        "datestamp": "2026-11-19",
        "base_url": "https://r.example.org/oai",
        "url": "https://r.example.org/oai?verb=GetRecord",
        "sha256": "0" * 64,
        "bytes": "4",
    }
    assert [each.text for each in found.iterfind(f"{{{NAMESPACE}}}set")] == ["a", "b:c"]
    gone = element(None, GONE)
    assert (gone.get("is_deleted"), gone.get("title"), len(gone)) == ("true", None, 0)


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ([], []),
        ([1, 2, 3], [[1, 2, 3]]),
        ([4, 6, 1], [[4, 6], [1]]),
        ([99, 1, 99], [[99], [1], [99]]),
        ([None, 10, None], [[None, 10, None]]),
    ],
)
def test_batches_have_ten_bytes_or_one_document(sizes: list[int | None], found: list[list[int | None]]) -> None:
    page = [replace(DOCUMENT, size=size) for size in sizes]
    assert [[each.size for each in batch] for batch in batches(page, 10, lambda each: each.size or 0)] == found


def test_a_document_with_a_long_declaration_is_unchanged() -> None:
    content = b'<?xml version="1.0"' + b" " * 400 + b"?><a/>"
    assert embeddable(content) is None
