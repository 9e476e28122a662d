"""Documents that are not XML, or not such XML as may be read: what is said, where, and at what cost."""

from __future__ import annotations

import codecs
import gzip
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from metaharvest.model import MAX_FINDINGS, Verdict
from metaharvest.validation.validator import Validator
from support.eml_documents import VALIDATOR, eml, listed

GOOD = eml("2.2.0")
ONE_LINE = GOOD.replace(b"\n", b" ")


def check(content: bytes) -> Verdict:
    return VALIDATOR.check(content, listed("2.2.0"))


def with_title(title: bytes) -> bytes:
    return GOOD.replace(b"Water temperature", title)


@pytest.mark.parametrize(
    ("content", "rule", "line", "said"),
    [
        (b"", "xml.empty", None, "empty"),
        (b" \n\t ", "xml.empty", None, "empty"),
        (b"ID,value\n1,2\n", "xml.not-xml", 1, "does not begin"),
        (with_title(b"Salt & water"), "xml.ampersand", 4, "&"),
        (with_title(b"http://x.org/?a=1&b=2"), "xml.ampersand", 4, "&"),
        (with_title(b"depth < 3 m"), "xml.less-than", 4, "<"),
        (with_title(b"a<x>b</title>"), "xml.mismatched-tag", 4, "<x>, opened in line 4"),
        (with_title(b"a<i>b</title>"), "eml.html", 4, "<i>"),
        (GOOD[: GOOD.index(b"<contact>")], "xml.unclosed", 6, "<dataset>, opened in line 3"),
        (with_title(b"<![CDATA[ a ]]"), "xml.unclosed", None, "never closed"),
        (with_title(b"a&nbsp;b"), "xml.undefined-entity", 4, "&nbsp;"),
        (with_title(b"a\x00b"), "xml.bad-character", 4, "0x0"),
        (with_title(b"a\x0bb"), "xml.bad-character", 4, "11"),
        (with_title(b"a&#176 b"), "xml.ampersand", 4, "&#"),
        (b"\x01\x02\x03", "xml.not-xml", 1, "does not begin"),
        (with_title(b"a&#0;b"), "xml.bad-character", 4, "number 0"),
        (with_title(b"<x a='1' a='2'/>"), "xml.duplicate-attribute", 4, "attribute a"),
        (with_title(b"<x a=1/>"), "xml.bad-tag", 4, "straight quotation marks"),
        (with_title("<x a=“1”/>".encode()), "xml.bad-tag", 4, "straight quotation marks"),
        (GOOD.replace(b'"1.0"', "“1.0”".encode()), "xml.bad-declaration", 1, "straight quotation marks"),
        (GOOD[: GOOD.index(b"</title>") + 4], "xml.unclosed", 4, "breaks off here, inside a tag"),
        (GOOD[: GOOD.index(b"packageId=") + 12] + b"\n\n", "xml.unclosed", None, "breaks off here, inside a tag"),
        (GOOD[: GOOD.index(b"<title>") + 1], "xml.unclosed", 4, "breaks off here, inside a tag"),
        (with_title(b"<s:x/>"), "xml.undeclared-prefix", 4, "'s:'"),
        (with_title(b"<!-- a -- b -->"), "xml.comment", 4, "hyphens"),
        (GOOD + b"<eml/>", "xml.content-after-root", 9, "after the end"),
        (b"\n" + GOOD, "xml.declaration-not-first", 2, "very first"),
        (b"<!-- <eml> -->\n" + GOOD, "xml.declaration-not-first", 2, "very first"),
        (GOOD + GOOD, "xml.content-after-root", 9, "another one begins here"),
        (ONE_LINE + ONE_LINE, "xml.content-after-root", 1, "another one begins here"),
        (GOOD.replace(b"\n", b"\r") * 2, "xml.content-after-root", None, "another one begins here"),
        (b"<br />\n" + GOOD, "xml.declaration-not-first", 2, "very first"),
        (b"<br />\n<b>Warning</b>: mysqli_connect()<br />\n" + GOOD, "xml.not-xml", 2, "such as an error of PHP"),
        (GOOD.replace(b"<?xml", b"<?XML"), "xml.bad-declaration", 1, "capital letters"),
        (with_title(b'<?xml version="1.0"?>'), "xml.declaration-not-first", 4, "in the middle"),
        (gzip.compress(GOOD), "xml.not-xml", None, "compressed file (gzip)"),
        (b"PK\x03\x04\x14\0" + GOOD, "xml.not-xml", None, "compressed file (zip)"),
        (b"PK\x03\x04" + bytes(26) + b"[Content_Types].xml", "xml.not-xml", None, "Excel or Word"),
        (b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument", "xml.not-xml", None, "Excel or"),
        (b"%PDF-1.7", "xml.not-xml", None, "a PDF file"),
        (b"\xff\xd8\xff\xe0", "xml.not-xml", None, "an image"),
        (codecs.BOM_UTF8 * 2 + GOOD, "xml.not-xml", 1, "two byte order marks"),
        (GOOD.replace(b'version="1.0"', b""), "xml.bad-declaration", 1, "first line"),
        (GOOD.replace(b"UTF-8", b"UTF-16"), "xml.bad-declaration", 1, "encoding"),
        (GOOD.replace(b"UTF-8", b"unicode_escape").replace(b"Water", b"\\ "), "xml.encoding", 1, "unicode_escape"),
        (GOOD.replace(b"UTF-8", b"klingon"), "xml.encoding", 1, "klingon"),
        (GOOD.replace(b"UTF-8", b"US-ASCII").replace(b"Water", "Wässer".encode()), "xml.encoding", 4, "0xC3"),
        (with_title(b"temp\xe9rature"), "xml.encoding", 4, "0xE9"),
        (GOOD.decode().encode("cp037"), "xml.encoding", 1, "bytes are not UTF-8"),
        (with_title(b"<x>" * 10_000 + b"</x>" * 10_000), "xml.too-deep", 4, "256 levels"),
        (with_title(b"x" * 10_000_001), "xml.too-large-text", 4, "10 MB"),
    ],
)
def test_each_kind_of_mistake_is_told_in_plain_words_with_its_place(
    content: bytes, rule: str, line: int | None, said: str
) -> None:
    verdict = check(content)

    assert not verdict.acceptable
    finding = verdict.findings[0]
    assert finding.rule == rule
    assert said in finding.message
    assert finding.message.endswith(".")
    assert finding.remedy
    if line is not None:
        assert finding.line == line
        assert finding.column
        assert finding.excerpt or rule == "xml.unclosed"


def test_the_excerpt_is_the_line_with_the_mistake_and_the_column_points_into_it() -> None:
    finding = check(with_title(b"Salt & water")).findings[0]

    assert finding.excerpt == "<title>Salt & water</title>"
    assert finding.column == len("    <title>Salt & ")


def test_several_mistakes_are_all_told() -> None:
    document = with_title(b"Salt & water").replace(b"Alder Creek", b"Alder & Sons")
    assert [(f.rule, f.line) for f in check(document).findings] == [("xml.ampersand", line) for line in (4, 5, 6)]


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        (with_title(b"temp\xe9rature"), "windows-1252"),
        (GOOD.replace(b"UTF-8", b"US-ASCII").replace(b"Water", "Wässer".encode()), "seems to be UTF-8"),
    ],
)
def test_the_encoding_that_a_document_really_has_is_suggested(content: bytes, remedy: str) -> None:
    assert remedy in check(content).findings[0].remedy


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "ISO-8859-1", "windows-1252", "UTF-32"])
def test_documents_are_read_in_the_encoding_that_they_declare(encoding: str) -> None:
    text = with_title("Wässer".encode()).decode().replace("UTF-8", encoding)
    assert check(text.encode(encoding)).findings == ()


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert check(b"\xef\xbb\xbf" + GOOD).findings == ()


@pytest.fixture
def trap(tmp_path: Path) -> str:
    """A path that blocks whoever opens it, until the time-out of the tests."""
    path = tmp_path / "trap"
    os.mkfifo(path)
    return str(path)


def with_doctype(doctype: str, title: str = "T") -> bytes:
    declaration, rest = with_title(title.encode()).decode().split("\n", 1)
    return f"{declaration}\n<!-- a comment -->\n{doctype}\n{rest}".encode()


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE eml [<!ENTITY e "text">]>',
        '<!DOCTYPE eml [<!ENTITY e SYSTEM "{trap}">]>',
        '<!DOCTYPE eml [<!ENTITY % e SYSTEM "{trap}"> %e;]>',
        '<!DOCTYPE eml SYSTEM "{trap}" [<!ATTLIST title x CDATA "added">]>',
        "<!DOCTYPE eml []>",
    ],
)
@pytest.mark.timeout(20)
def test_a_doctype_with_declarations_is_refused_and_nothing_is_read(doctype: str, trap: str) -> None:
    [finding] = check(with_doctype(doctype.format(trap=trap), "<x a='&e;'/>")).findings

    assert (finding.rule, finding.line) == ("xml.dtd", 3)
    assert finding.excerpt.startswith("<!DOCTYPE eml")


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
def test_a_doctype_is_found_in_any_encoding(encoding: str) -> None:
    document = with_doctype('<!DOCTYPE eml [<!ENTITY e "text">]>').decode().replace("UTF-8", encoding).encode(encoding)
    assert [finding.rule for finding in check(document).findings] == ["xml.dtd"]


@pytest.mark.parametrize(
    "doctype", ["<!DOCTYPE eml>", '<!DOCTYPE eml SYSTEM "{trap}">', "<!DOCTYPE eml PUBLIC '-//x//' '{trap}'>"]
)
@pytest.mark.timeout(20)
def test_a_doctype_that_only_names_a_dtd_is_passed_over_and_the_dtd_not_read(doctype: str, trap: str) -> None:
    assert check(with_doctype(doctype.format(trap=trap))).findings == ()

    [finding] = check(with_doctype(doctype.format(trap=trap), "a&nbsp;b")).findings
    assert (finding.rule, finding.line) == ("xml.undefined-entity", 6)


@pytest.mark.timeout(20)
def test_schema_locations_and_inclusions_in_a_document_are_not_followed(trap: str) -> None:
    locations = (
        f'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="{trap}" '
        f'xsi:schemaLocation="https://eml.ecoinformatics.org/eml-2.2.0 {trap} urn:other {trap}" system='
    )
    located = GOOD.replace(b"system=", locations.encode())
    include = f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{trap}"/>'.encode()

    assert check(located).findings == ()
    assert [f.rule for f in check(located.replace(b"</title>", b"</title><foo/>")).findings] == [
        "schema.unexpected-element"
    ]
    assert [f.rule for f in check(GOOD.replace(b"</title>", b"</title>" + include)).findings] == [
        "schema.unexpected-element"
    ]


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "ha"}">' for n in range(12))


@pytest.mark.slow
@pytest.mark.parametrize(
    "made",
    [
        lambda: with_doctype(f"<!DOCTYPE eml [{BOMB}]>", "&e11;"),
        lambda: (
            with_doctype(f"<!DOCTYPE eml [{BOMB}]>", "<x a='&e11;'/>")
            .decode()
            .replace("UTF-8", "UTF-16")
            .encode("utf-16")
        ),
        lambda: GOOD.replace(b"<contact>", b"<foo/>" * 100_000 + b"<contact>"),
        lambda: GOOD.replace(b"system=", b" ".join(b'a%d="1"' % n for n in range(100_000)) + b" system="),
        lambda: eml("2.2.0", "<keywordSet>" + '<keyword keywordType="nope">k</keyword>' * 100_000 + "</keywordSet>"),
        lambda: eml("2.2.0", "<contact><references>nothing</references></contact>" * 100_000),
        lambda: eml("2.2.0", "<keywordSet>" + "<keyword a='' b='' c=''/>" * 400_000 + "</keywordSet>"),
        lambda: eml("2.2.0", "<pubDate " + " ".join(f"a{n}=''" for n in range(300_000)) + ">2005</pubDate>"),
        lambda: eml("2.0.1", after=f"<additionalMetadata>{'<x/>' * 1_000_000}</additionalMetadata>"),
        lambda: eml("2.2.0", "<distribution><online><url>http://h:/[</url></online></distribution>" * 50_000),
        lambda: eml("2.2.0", '<contact id="creator-1"><organizationName>o</organizationName></contact>' * 50_000),
        lambda: b"<!--" * 300_000 + b"<!DOCTYPE",
        lambda: b"<?a?>" * 300_000 + b"<!DOCTYPE",
    ],
)
def test_hostile_documents_are_refused_in_bounded_time_with_a_bounded_number_of_findings(
    made: Callable[[], bytes],
) -> None:
    """Each document is made by its test: to make all of them takes half a second in each process."""
    content = made()
    start = time.monotonic()
    verdict = check(content)

    assert not verdict.acceptable
    assert 1 <= len(verdict.findings) <= MAX_FINDINGS + 1
    assert time.monotonic() - start < 10


@pytest.mark.slow
def test_the_errors_of_a_hostile_document_take_little_memory() -> None:
    """Measured in a process of its own, beyond what its tree takes."""
    code = """
import resource
from lxml import etree
from metaharvest.model import Level
from support.eml_documents import VALIDATOR as validator, eml, listed
content = eml("2.2.0", "<keywordSet>" + "<keyword a='' b='' c=''/>" * 400_000 + "</keywordSet>")
validator.check(eml("2.2.0", "<foo/>"), listed("2.2.0"))
tree = etree.fromstring(content)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
del tree
assert not validator.check(content, listed("2.2.0")).acceptable
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, check=True)
    assert int(done.stdout) < 150


@pytest.mark.parametrize("title", ["Water temperature", "&a;"])
def test_declarations_that_only_their_encoding_hides_are_refused(title: str) -> None:
    declaration = '<!DOCTYPE eml:eml [<!ENTITY a "x">]>'.replace("<!", "+ADw-!")
    start, _, rest = with_title(title.encode()).replace(b"UTF-8", b"UTF-7").partition(b"\n")
    content = b"\n".join((start, declaration.encode(), rest))
    validator = Validator(at_once=1)
    # The schema is there from the second document on, and only then is there a quick look first.
    for each, expected in ((GOOD, []), (content, ["xml.dtd"])):
        verdict = validator.check(each, listed("2.2.0"))
        assert [finding.rule for finding in verdict.findings] == expected
