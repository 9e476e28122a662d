"""The limits of an XML text before its tree exists: its numbers, its encoding, its DOCTYPE."""

from __future__ import annotations

import pytest
from lxml import etree

from metaharvest.fetch.xml_bounds import SHORT_ANSWER, XmlLimits, XmlRefused, namespaces_in, nodes_in, tree_of

TEXT = '<?xml version="1.0" encoding="{}"?><r xmlns:a="u" b="1"><!-- c --><?p i?><a:x y="2">é</a:x><![CDATA[d]]></r>'
READ = ("UTF-8", "utf-16", "ISO-8859-1", "windows-1252")
OTHERS = ("UTF-7", "IBM037", "EBCDIC-CP-US", "C99", "JAVA", "UTF-EBCDIC", "x-mac-what", "unicode_escape")


def why(content: bytes, limits: XmlLimits = SHORT_ANSWER) -> str:
    with pytest.raises(XmlRefused) as refused:
        tree_of(content, limits)
    return str(refused.value)


@pytest.mark.parametrize("encoding", READ)
def test_the_numbers_are_upper_bounds_in_every_encoding_that_is_read(encoding: str) -> None:
    content = TEXT.format(encoding).encode(encoding)
    tree = tree_of(content)
    nodes = sum(1 + len(each.attrib if isinstance(each.tag, str) else ()) for each in tree.iter())
    assert nodes == 6
    assert nodes <= nodes_in(content)
    assert namespaces_in(content) == 1


@pytest.mark.parametrize("encoding", OTHERS)
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"\n"])
def test_other_encodings_are_refused(encoding: str, before: bytes) -> None:
    """In UTF-7, `+ADw-` is a `<` that nobody counts."""
    content = before + TEXT.format(encoding).encode("ascii", "ignore")
    assert "encoding" in why(content)


def test_what_is_not_ascii_at_all_is_refused() -> None:
    assert why(TEXT.format("IBM037").encode("cp037")) == "does not begin with <"
    assert "declaration" in why(b"<?xml version='1.0' " + b" " * 2_000 + b"encoding='UTF-7'?><r/>")
    assert "declaration" in why(b"<?xml version='1.0' encoding='" + b"x" * 50 + b"'?><r/>")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"<r>" + b"<a/>" * 100_001 + b"</r>", "has more than 100,000 elements and attributes"),
        (b"<r " + b" ".join(b"a%d=''" % n for n in range(100_001)) + b"/>", "elements and attributes"),
        (b"<r>" + b"<!---->" * 100_001 + b"</r>", "elements and attributes"),
        (b"<r " + b" ".join(b"xmlns:a%d=''" % n for n in range(10_001)) + b"/>", "10,000 namespace declarations"),
        (b"<r>" + b"x" * 5_000_000 + b"</r>", "has more than 4,194,304 bytes"),
        (b'<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>', "DOCTYPE"),
        ('<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>'.encode("utf-16"), "DOCTYPE"),
        (b"<!-- " + b"x" * 70_000 + b"--><!DOCTYPE r [<!ENTITY a 'b'>]><r>&a;</r>", "no root element in its first"),
        (b"<r>" * 300 + b"</r>" * 300, "not well-formed XML: Excessive depth"),
        (b"<r><a></r>", "not well-formed XML"),
        (b"<r><dc:title/></r>", "prefix dc"),
        (b"<!-- -->", "is no XML"),
        (b"", "does not begin with <"),
        (b"Sorry", "does not begin with <"),
    ],
)
def test_what_exceeds_a_limit_is_refused_in_plain_words(content: bytes, reason: str) -> None:
    assert reason in why(content)


def test_declarations_between_two_pieces_are_counted() -> None:
    for encoding in ("utf-8", "utf-16"):
        tag = "<x" + "".join(f" xmlns:a{n}='{'u' * 20}'" for n in range(5_000)) + "/>"
        for shift in range(12):
            content = ("<r>" + "y" * shift + tag + "</r>").encode(encoding)
            assert "4,999 namespace" in why(content, XmlLimits(namespaces=4_999))
            tree_of(content, XmlLimits(namespaces=5_010, nodes=10_000))


def test_a_text_within_the_limits_is_read() -> None:
    assert tree_of(b"<r/>").tag == "r"
    assert tree_of(b"\xef\xbb\xbf<r a='&#65;'/>").get("a") == "A"
    deep = b"<r>" * 300 + b"</r>" * 300
    assert sum(1 for _ in tree_of(deep, XmlLimits(huge=True)).iter(etree.Element)) == 300
