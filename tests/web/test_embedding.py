"""A stored document keeps its meaning inside of an answer: exclusive canonical XML is the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from metaharvest.catalogue.provenance import Provenance
from metaharvest.model import RecordOrigin
from metaharvest.transform.embedding import (
    NotEmbeddable,
    embedded,
    embedded_document,
    root_of,
    why_not_embeddable,
)
from metaharvest.web.provider.about import PROVENANCE, RIGHTS, about_containers
from metaharvest.web.provider.dublin_core import described_root, dublin_core_of

ENVELOPE = b'<r xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:xsi="urn:other"><metadata>%s</metadata></r>'
ODD = [
    b"<a/>",
    b"<a><b/><b xmlns='urn:b'><c/><c xmlns=''/></b></a>",
    b"<p:a xmlns:p='urn:a'><b/></p:a>",
    b"<a xmlns='urn:a'><b xmlns=''><c/></b></a>",
    b"<a xmlns='http://www.openarchives.org/OAI/2.0/'><b/></a>",
    b"<p:a xmlns:p='urn:1'><p:a xmlns:p='urn:2'><p:a/></p:a></p:a>",
    b"<a xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:nil='true' xml:lang='en' xml:space='preserve'> </a>",
    b"<?xml version='1.0'?><!-- before --><a><?php echo ?><!-- in - side --><![CDATA[<&]]>]]&gt;</a><!-- after -->",
    "<?xml version='1.0' encoding='ISO-8859-1'?><a b='ü'>ü&#13;&#10;</a>".encode("latin-1"),
    "<?xml version='1.0' encoding='UTF-16'?><a>€\U0001f438</a>".encode("utf-16"),
    b"<a b='&#9;&#10;&quot;&lt;' c=\"'\">&amp;lt;&gt;</a>",
    b"<a" + b" " * 5000 + b"><b  c = 'd' /></a >",
    b"<a.b-c_d/>",
    b"<a b=' xmlns=\"urn:b\" > '><c/></a>",
    b"<a b='>' xmlns = 'urn:a'><c/></a>",
    b"<?xml version='1.0' encoding='UTF-8'?><a b='>'/>",
    b"<a/><?pi?>",
    b"<!DOCTYPE a SYSTEM 'a.dtd'><a><b xmlns='urn:b'/></a>",
    b"<?xml version='1.0' encoding='UTF-8'?>\r\n<a b='1\r\n2' xmlns='urn:a'>\r\n</a>\r\n",
    b"<?xml version='1.0' encoding='utf-8' standalone='yes'?><a/> ",
    "\ufeff<a>\u00fc</a>".encode(),
    "<a>\u00fc</a>".encode("utf-16"),
    b"<?xml version='1.0' encoding='UTF-7'?><a>+APw-</a>",
    "<\u00fc b='\u00fc'>\u00fc</\u00fc>".encode(),
]


def canonical(root: etree._Element) -> bytes:
    return etree.tostring(root, method="c14n", exclusive=True, with_comments=True)


def assert_same(content: bytes) -> None:
    for part in (embedded_document(content), embedded(root_of(content))):
        answer = etree.fromstring(ENVELOPE % part)
        [metadata] = answer[0]
        metadata.tail = None
        assert canonical(metadata) == canonical(etree.fromstring(content))


@pytest.mark.parametrize("content", ODD)
def test_odd_documents_keep_their_meaning(content: bytes) -> None:
    assert_same(content)


NAMES = st.sampled_from(["a", "p:a", "q:b", "b"])
URIS = st.sampled_from(["", "urn:1", "urn:2", "http://www.openarchives.org/OAI/2.0/"])


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    name = draw(NAMES)
    default, p, q = draw(URIS), draw(URIS) or "urn:p", draw(URIS) or "urn:q"
    declared = f' xmlns:p="{p}" xmlns:q="{q}"' + (f' xmlns="{default}"' if draw(st.booleans()) else "")
    inner = draw(st.sampled_from(["", "text", "<!-- c -->", "<?pi x?>", "<![CDATA[<]]>", "&#13;", " \n"]))
    children = "".join(draw(st.lists(elements(depth=depth - 1), max_size=2))) if depth else ""
    return f"<{name}{declared} p:x='1' x='\t2'>{inner}{children}</{name}>"


@given(elements())
def test_made_up_documents_keep_their_meaning(text: str) -> None:
    assert_same(text.encode())


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>",
        b"<!DOCTYPE a [<!ENTITY e SYSTEM '/etc/passwd'>]><a>&e;</a>",
        b"<!DOCTYPE a [<!ATTLIST a b CDATA 'c'>]><a/>",
        b"<!DOCTYPE a SYSTEM 'a.dtd'><a>&e;</a>",
        "<?xml version='1.0' encoding='UTF-16'?><!DOCTYPE a SYSTEM 'a.dtd'><a/>".encode("utf-16"),
        b"<a>",
        b"",
    ],
)
def test_documents_with_declarations_or_that_are_damaged_cannot_be_embedded(content: bytes) -> None:
    assert why_not_embeddable(content)
    with pytest.raises(NotEmbeddable):
        root_of(content)


@pytest.mark.parametrize(
    "content",
    [
        b"<!DOCTYPE a><a b='1'>x</a>",
        b"<?xml version='1.0'?>\n<!DOCTYPE a SYSTEM 'a.dtd'>\n<a b='1'>x</a>",
        b'<!DOCTYPE a PUBLIC "-//A" "http://e.org/a.dtd"><a b="1">x</a>',
    ],
)
def test_a_doctype_that_only_names_a_dtd_is_left_out(content: bytes) -> None:
    assert why_not_embeddable(content) == ""
    assert etree.tostring(etree.fromstring(embedded_document(content))) == b'<a xmlns="" b="1">x</a>'


PAGE = "https://catalogue.example.org/documents/x"


@pytest.mark.parametrize(
    ("content", "is_read"),
    [
        (b"<x>" + b"<y/>" * 499_998 + b"</x>", True),
        (b"<x>" + b"<y/>" * 500_000 + b"</x>", False),
        (b"<x>" + b" " * 10_000_000 + b"</x>", False),
        (b"<!DOCTYPE x [<!ENTITY e 'x'>]><x/>", False),
    ],
    ids=["large", "too many tags", "too many bytes", "DTD"],
)
def test_a_document_is_described_within_bounds(content: bytes, is_read: bool) -> None:
    assert (described_root(content) is not None) == is_read


def test_dublin_core_is_made_by_a_crosswalk_or_of_title_and_identifier() -> None:
    eml = "eml://ecoinformatics.org/eml-2.1.1"
    content = f"<e:eml xmlns:e='{eml}'><dataset><title>Frogs &amp; toads</title></dataset></e:eml>".encode()
    made = dublin_core_of(root_of(content), eml, "", "x", PAGE)
    assert b"<dc:title>Frogs &amp; toads</dc:title>" in made
    assert b"<dc:identifier>x</dc:identifier>" not in made
    made = dublin_core_of(None, "", "A < B", "x", PAGE)
    assert b"<dc:title>A &lt; B</dc:title><dc:identifier>x</dc:identifier>" in made
    assert b"title" not in dublin_core_of(root_of(b"<unknown/>"), "", "", "x", PAGE)


def test_dublin_core_has_the_landing_page_if_no_identifier_is_a_url() -> None:
    assert PAGE.encode() in dublin_core_of(None, "", "A", "doi:10.1/x", PAGE)
    assert PAGE.encode() not in dublin_core_of(None, "", "A", "https://doi.org/10.1/x", PAGE)


def origin(**values: object) -> RecordOrigin:
    usual = {
        "base_url": "https://e.org/oai?a&b",
        "identifier": "oai:e.org:1",
        "prefix": "oai_dc",
        "datestamp": "2026-01-01",
        "response_date": "2026-01-02T00:00:00Z",
        "namespace": "urn:x",
    }
    return RecordOrigin(**{**usual, **values})  # type: ignore[arg-type]


NESTED = (
    f'<p:provenance xmlns:p="{PROVENANCE}"><p:originDescription harvestDate="2025-01-01T00:00:00Z" altered="false">'
    "<p:baseURL>https://first.org/oai</p:baseURL><p:identifier>oai:first.org:1</p:identifier>"
    "<p:datestamp>2024-12-31</p:datestamp><p:metadataNamespace>urn:x</p:metadataNamespace>"
    "</p:originDescription></p:provenance>"
).encode()


def test_provenance_has_that_of_the_source_inside() -> None:
    rights = f'<rights xmlns="{RIGHTS}">r</rights>'.encode()
    about = (NESTED, rights, b"<other/>", b"<damaged")
    made = about_containers(Provenance(origin(about=about), False), altered=False)
    root = etree.fromstring(b"<x>" + made + b"</x>")
    assert len(root) == 2
    descriptions = list(root.iter(f"{{{PROVENANCE}}}originDescription"))
    assert [each.get("altered") for each in descriptions] == ["false", "false"]
    assert [each[0].text for each in descriptions] == ["https://e.org/oai?a&b", "https://first.org/oai"]
    assert root[1][0].tag == f"{{{RIGHTS}}}rights"


@pytest.mark.parametrize(("stored", "made"), [(True, False), (False, True)])
def test_what_was_normalised_or_made_is_altered(stored: bool, made: bool) -> None:
    assert b'altered="true"' in about_containers(Provenance(origin(), stored), altered=made)


def test_a_document_of_a_list_and_impossible_dates_have_no_provenance() -> None:
    assert about_containers(None, altered=False) == b""
    assert about_containers(Provenance(origin(prefix=""), True), altered=False) == b""
    assert about_containers(Provenance(origin(datestamp="yesterday"), False), altered=False) == b""
    assert about_containers(Provenance(origin(response_date=""), False), altered=False) == b""
    cut = about_containers(Provenance(origin(datestamp="2026-01-01T10:00:00.5Z"), False), altered=False)
    assert b"<datestamp>2026-01-01</datestamp>" in cut
