"""Harvest lists: every spelling that is right, every mistake with its line and remedy, at any length."""

from __future__ import annotations

import asyncio
import gzip
import io
import re
import subprocess
import sys
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, ListError
from metaharvest.fetch.client import Fetcher
from metaharvest.model import MAX_EXCERPT, MAX_FINDINGS, FetchedDocument, Finding, ListedDocument, Site, SiteOptions
from metaharvest.rehearsal.input.arguments import GivenList, LocalFile
from metaharvest.rehearsal.input.source import Copies, GivenSource
from metaharvest.rules import RULES
from metaharvest.sources.base import Source
from metaharvest.sources.harvest_list.source import HarvestListSource, read_list, scope_and_identifier
from metaharvest.sources.roots import Root
from support.http_server import HttpServer

NS = "eml://ecoinformatics.org/harvestList"
EML = "https://eml.ecoinformatics.org/eml-2.2.0"


def entry(
    scope: str = "alder",
    identifier: str = "12",
    revision: str = "2",
    document_type: str = EML,
    url: str = "https://www.example.org/12.xml",
) -> str:
    return (
        "  <document>\n"
        "    <docid>\n"
        f"      <scope>{scope}</scope>\n"
        f"      <identifier>{identifier}</identifier>\n"
        f"      <revision>{revision}</revision>\n"
        "    </docid>\n"
        f"    <documentType>{document_type}</documentType>\n"
        f"    <documentURL>{url}</documentURL>\n"
        "  </document>\n"
    )


def harvest_list(*entries: str, head: str = '<?xml version="1.0"?>\n') -> str:
    return f'{head}<hrv:harvestList xmlns:hrv="{NS}">\n{"".join(entries)}</hrv:harvestList>\n'


def read(content: str | bytes) -> list[ListedDocument]:
    return list(read_list(io.BytesIO(content.encode() if isinstance(content, str) else content)))


def problems(content: str | bytes) -> tuple[Finding, ...]:
    with pytest.raises(ListError) as caught:
        read(content)
    for finding in caught.value.findings:
        assert finding.rule in RULES
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")
        assert finding.is_error
        assert len(finding.excerpt) <= MAX_EXCERPT
    return caught.value.findings


def problem(content: str | bytes) -> Finding:
    found = problems(content)
    assert len(found) == 1, found
    return found[0]


def line_of(content: str, text: str) -> int:
    return content[: content.index(text)].count("\n") + 1


# -- what is right


def test_a_list_gives_its_documents_in_order_with_their_lines() -> None:
    assert read(harvest_list(entry(), entry(scope="knb-lter.gce", identifier="0109", revision="007"))) == [
        ListedDocument("alder.12", 2, EML, "https://www.example.org/12.xml", 3),
        ListedDocument("knb-lter.gce.109", 7, EML, "https://www.example.org/12.xml", 12),
    ]


@pytest.mark.parametrize(
    "root",
    [
        '<hrv:harvestList xmlns:hrv="{ns}">{entries}</hrv:harvestList>',
        '<x.y-z:harvestList xmlns:x.y-z="{ns}">{entries}</x.y-z:harvestList>',
        '<h:harvestList xmlns:h="{ns}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="1"'
        ' xsi:schemaLocation="{ns} http://127.0.0.1:1/harvestList.xsd">{entries}</h:harvestList>',
        '<!-- before --><?php-like pi?><hrv:harvestList xmlns:hrv="{ns}"><!-- in -->{entries}<?x?></hrv:harvestList>'
        "<!-- after -->",
        '<!DOCTYPE hrv:harvestList SYSTEM "http://127.0.0.1:1/no.dtd"><hrv:harvestList xmlns:hrv="{ns}">{entries}'
        "</hrv:harvestList>",
    ],
)
def test_any_prefix_comments_and_attributes_of_the_root_are_accepted(root: str) -> None:
    [document] = read(root.format(ns=NS, entries=entry()))
    assert document.docid == "alder.12.2"


def test_a_default_namespace_is_accepted_where_each_document_leaves_it() -> None:
    entries = entry().replace("<document>", '<document xmlns="">')
    assert read(f'<harvestList xmlns="{NS}">{entries}</harvestList>')[0].docid == "alder.12.2"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "windows-1252"]
)
def test_every_common_encoding_is_read(encoding: str) -> None:
    declared = {"utf-8-sig": "utf-8", "utf-16-le": "utf-16", "utf-16-be": "utf-16"}.get(encoding, encoding)
    text = harvest_list(
        entry(document_type="Données"), head=f'<?xml version="1.0" encoding="{declared}"?>\n<!-- é -->\n'
    )
    assert read(text.encode(encoding))[0].document_type == "Données"


def test_a_list_without_a_declaration_is_utf_8_or_shows_utf_16_by_its_byte_order_mark() -> None:
    text = harvest_list(entry(document_type="Données"), head="")
    assert read(text)[0].document_type == read(text.encode("utf-16"))[0].document_type == "Données"


def test_white_space_comments_cdata_and_references_in_values_do_not_matter() -> None:
    text = entry(
        scope="\n al<!-- x -->der\t",
        identifier="\r\n 1&#50; ",
        revision="<![CDATA[ 2 ]]>",
        document_type="\n&lt;a&gt;\n",
        url="\n  https://example.org/a?x=1&amp;y=2&#38;z=<?pi?>3\n ",
    )
    assert read(harvest_list(text)) == [ListedDocument("alder.12", 2, "<a>", "https://example.org/a?x=1&y=2&z=3", 3)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("0", 0), ("007", 7), ("+3", 3), ("-0", 0), ("9223372036854775807", 2**63 - 1), ("0" * 5000 + "1", 1)],
)
def test_numbers_are_whole_numbers_of_64_bits_as_xml_schema_writes_them(written: str, meant: int) -> None:
    [document] = read(harvest_list(entry(identifier=written, revision=written)))
    assert (document.document_id, document.revision) == (f"alder.{meant}", meant)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "https://example.org:8443/a/b.xml?x=%20;y#z",
        "HTTP://EXAMPLE.ORG/a",
        "https://example.org/données.xml",
        "http://[2001:db8::1]/a.xml",
        "https://name:secret@example.org/a.xml",
    ],
)
def test_absolute_http_and_https_urls_are_kept_as_they_are(url: str) -> None:
    assert read(harvest_list(entry(url=url)))[0].url == url


def test_duplicates_and_several_revisions_are_left_to_others() -> None:
    docids = [document.docid for document in read(harvest_list(entry(revision="3"), entry(), entry()))]
    assert docids == ["alder.12.3", "alder.12.2", "alder.12.2"]


# -- values


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("two", "revision 'two' is not a whole number"),
        ("1.5", "revision '1.5' is not a whole number"),
        ("1_000", "revision '1_000' is not a whole number"),
        ("١٢", "revision '١٢' is not a whole number"),
        ("1 2", "revision '1 2' is not a whole number"),
        ("+", "revision '+' is not a whole number"),
        ("1\u00a0", "revision '1' contains the character U+00A0 (NO-BREAK SPACE)"),
        ("", "revision is empty"),
        (" \n ", "revision is empty"),
        ("-3", "revision '-3' is negative"),
        ("9223372036854775808", "the largest possible is 9223372036854775807"),
        ("9" * 6000, "is too large"),
    ],
)
def test_a_revision_that_is_no_number_is_named_with_its_line_and_docid(written: str, said: str) -> None:
    text = harvest_list(entry(), entry(revision=written))
    found = problem(text)
    assert found.rule == "list.revision"
    assert said in found.message
    assert found.line == line_of(text, f"<revision>{written}</revision>")
    assert found.docid.startswith(f"alder.12{'.' + written.strip()[:100] if written.strip() else ''}")
    assert found.excerpt.startswith(f"<revision>{written.strip()[:100]}")


def test_a_bad_identifier_is_named_in_the_same_way() -> None:
    text = harvest_list(entry(identifier="x2"))
    found = problem(text)
    assert (found.rule, found.line, found.docid) == ("list.identifier", 6, "alder.x2.2")
    assert found.message == "The identifier 'x2' is not a whole number."


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ("", "scope is empty"),
        ("al der", "contains a space"),
        ("al\nder", "contains a line break"),
        ("al/der", "contains a slash (/)"),
        ("aldér", "contains 'é', the character U+00E9 (LATIN SMALL LETTER E WITH ACUTE)"),
        ("alder\u00a0", "the character U+00A0 (NO-BREAK SPACE)"),
        ("al\x7fder", "the character U+007F (a control character)"),
        ("a" * 798, "together have 801 characters; 800 are possible"),
    ],
)
def test_a_scope_that_no_document_id_can_have_is_refused_with_the_reason(scope: str, said: str) -> None:
    found = problem(harvest_list(entry(scope=scope)))
    assert (found.rule, found.line) == ("list.scope", 5)
    assert said in found.message


def test_a_document_id_may_have_800_characters() -> None:
    assert len(read(harvest_list(entry(scope="a" * 797)))[0].document_id) == 800


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "is empty"),
        ("12.xml", "'12.xml' is not absolute"),
        ("/eml/12.xml", "is not absolute"),
        ("//example.org/12.xml", "is not absolute"),
        ("file:///etc/passwd", "is a file on some computer"),
        ("C:\\eml\\rain.xml", "is a file on some computer"),
        ("d:/eml/rain.xml", "is a file on some computer"),
        ("ftp://example.org/12.xml", "begins with 'ftp:'"),
        ("https:///12.xml", "names no server"),
        ("http://example.org:99999/", "is not a URL"),
        ("http://example.org:0/12.xml", "names the port 0"),
        ("http://[::1/a", "is not a URL"),
        ("https://example.org/my data.xml", "contains a space"),
        ("https://example.org/my\ndata.xml", "contains a line break"),
    ],
)
def test_a_url_that_cannot_be_fetched_is_refused_with_the_reason(url: str, said: str) -> None:
    found = problem(harvest_list(entry(url=url)))
    assert (found.rule, found.line, found.docid) == ("list.url", 10, "alder.12.2")
    assert said in found.message
    assert "http" in found.message + found.remedy or "%20" in found.remedy


def test_an_invisible_character_in_a_url_is_to_be_deleted() -> None:
    found = problem(harvest_list(entry(url="https://example.org/12.xml\u200b")))
    assert "contains the character U+200B (ZERO WIDTH SPACE)" in found.message
    assert found.remedy.startswith("Delete this character")


def test_credentials_in_a_url_are_not_shown() -> None:
    found = problem(harvest_list(entry(url="https://me:secret@example.org/my data.xml")))
    assert "secret" not in found.message + found.excerpt
    found = problem(harvest_list(entry(url="https://me:secret@example.org/?a=1&b=2")))
    assert "secret" not in found.message + found.excerpt


def test_an_empty_document_type_is_refused() -> None:
    found = problem(harvest_list(entry(document_type=" \n")))
    assert (found.rule, found.line) == ("list.document-type", 9)


def test_every_problem_of_every_entry_is_given() -> None:
    found = problems(harvest_list(entry(revision="two", url="x"), entry(), entry(scope="a/b", identifier="")))
    assert [(f.rule, f.docid) for f in found] == [
        ("list.revision", "alder.12.two"),
        ("list.url", "alder.12.two"),
        ("list.scope", "a/b.?.2"),
        ("list.identifier", "a/b.?.2"),
    ]


def test_after_a_hundred_problems_comes_their_number() -> None:
    found = problems(harvest_list(*[entry(revision="two")] * 250))
    assert len(found) == MAX_FINDINGS + 1
    assert found[-1].message == "150 more findings of this list are not shown."
    assert (
        problems(harvest_list(*[entry(revision="two")] * 101))[-1].message
        == "1 more finding of this list is not shown."
    )


def test_the_reason_why_reading_ended_is_shown_however_many_problems_came_before() -> None:
    found = problems(harvest_list(*[entry(revision="two")] * 250)[:-30])
    assert [f.rule for f in found[-3:]] == ["list.revision", "list.truncated", "findings.more"]


@pytest.mark.slow
def test_a_list_with_far_too_many_problems_is_not_read_to_its_end() -> None:
    text = f'<h:harvestList xmlns:h="{NS}">' + "<x/>" * 150_000
    assert "list.too-many-problems" in [f.rule for f in problems(text)]


# -- structure


def test_a_missing_element_is_named_with_the_line_of_its_entry() -> None:
    found = problem(harvest_list(entry(), re.sub(" *<documentURL>.*\n", "", entry())))
    assert (found.rule, found.line, found.docid) == ("list.missing", 12, "alder.12.2")
    assert found.message == "The entry has no `documentURL`."
    assert found.excerpt.startswith("<document> <docid> <scope>alder</scope>")


def test_an_entry_without_a_docid_lacks_that_alone() -> None:
    found = problem(
        harvest_list("<document><documentType>x</documentType><documentURL>http://a/</documentURL></document>")
    )
    assert found.message == "The entry has no `docid`."


def test_an_element_that_is_there_twice_is_named() -> None:
    text = harvest_list(entry().replace("    </docid>\n", "      <revision>3</revision>\n    </docid>\n"))
    found = problem(text)
    assert (found.rule, found.line) == ("list.doubled", line_of(text, "<revision>3"))
    assert "<revision>3</revision>" in found.excerpt


def test_elements_in_the_wrong_order_are_named() -> None:
    text = entry().replace("    </docid>\n", "").replace("</documentType>", "</documentType>\n    </docid>", 0)
    text = re.sub(r"( *<docid>.*)( *<documentType>.*?\n)", r"\2\1    </docid>\n", text, flags=re.DOTALL)
    found = problem(harvest_list(text))
    assert (found.rule, found.line, found.docid) == ("list.order", 3, "alder.12.2")


def test_an_unknown_element_is_named_and_what_is_in_it_ignored() -> None:
    text = harvest_list(entry().replace("  </document>", "<title>Birds <i>of</i> Alder</title>\n  </document>"))
    found = problem(text)
    assert (found.rule, found.line) == ("list.element", line_of(text, "<title>"))
    assert "`title` cannot stand in `document`" in found.message


def test_a_misspelled_element_is_told_its_right_spelling() -> None:
    found = problem(harvest_list(entry().replace("documentURL", "documentUrl")))
    assert found.message == "The element `documentUrl` must be spelled `documentURL`."
    near = problems(harvest_list(entry().replace("revision>", "revison>")))
    assert near[0].remedy == "If `revision` is meant, write so."


def test_an_element_inside_a_value_is_named() -> None:
    found = problems(harvest_list(entry(scope="al<b>d</b>er")))
    assert found[0].message == "`scope` contains an element `b`; it may contain text only."


def test_text_between_the_elements_is_named() -> None:
    found = problem(harvest_list(entry().replace("</docid>", "</docid> oops")))
    assert (found.rule, found.docid) == ("list.text", "alder.12.2")
    assert "'oops'" in found.message
    assert problem(harvest_list(entry(), "oops")).rule == "list.text"


def test_an_invisible_character_between_the_elements_is_named() -> None:
    found = problem(harvest_list(entry().replace("    <docid>", "\u00a0\u00a0<docid>")))
    assert found.message == "There is the character U+00A0 (NO-BREAK SPACE) between the elements of this entry."
    assert (found.rule, found.line, found.docid) == ("list.text", 3, "alder.12.2")


def test_a_docid_in_one_piece_is_to_be_divided() -> None:
    docid = re.compile("<docid>.*</docid>", re.DOTALL)
    stray, *missing = problems(harvest_list(docid.sub("<docid>alder.creek.12.2</docid>", entry())))
    values = "<scope>alder.creek</scope><identifier>12</identifier><revision>2</revision>"
    assert stray.remedy == f"Write {values} in its place, inside of `docid`."
    assert [finding.rule for finding in missing] == ["list.missing"] * 3


def test_text_in_an_entry_is_named_with_the_entry() -> None:
    text = harvest_list(entry(), entry(identifier="13").replace("</docid>", "</docid>\nNotice: Undefined index"))
    found = problem(text)
    assert found.message == "The text 'Notice: Undefined index' stands between the elements of this entry."
    assert (found.line, found.column, found.docid) == (12, None, "alder.13.2")
    assert found.excerpt.startswith("<document>")


def test_an_attribute_is_named_unless_it_is_harmless() -> None:
    found = problem(harvest_list(entry().replace("<docid>", '<docid id="x">')))
    assert (found.rule, found.line) == ("list.attribute", 4)
    assert read(harvest_list(entry().replace("<docid>", '<docid xml:lang="en">')))


def test_a_namespace_that_every_entry_declares_anew_is_harmless() -> None:
    again = '<document xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="x">'
    assert len(read(harvest_list(*[entry().replace("<document>", again)] * 50))) == 50


def test_a_list_without_documents_is_refused() -> None:
    assert problem(harvest_list()).rule == "list.empty"
    assert problem(b"").message == "The list is empty: it contains no text at all."
    assert problem(b" \n\n").rule == "list.empty"


# -- root and namespaces


def test_a_wrong_or_missing_namespace_of_the_root_is_one_finding_that_names_the_right_one() -> None:
    for wrong in ('xmlns:hrv="eml://ecoinformatics.org/harvestlist"', ""):
        prefix = "hrv:" if wrong else ""
        found = problem(f"<{prefix}harvestList {wrong}>{entry()}</{prefix}harvestList>")
        assert (found.rule, found.line) == ("list.namespace", 1)
        assert f"it must be in '{NS}'" in found.message


def test_inner_elements_in_the_lists_namespace_are_one_finding_that_says_how_to_write_it() -> None:
    found = problem(f'<harvestList xmlns="{NS}">\n{entry()}{entry()}</harvestList>')
    assert (found.rule, found.line) == ("list.namespace", 2)
    assert '<document xmlns="">' in found.remedy
    assert f'<hrv:harvestList xmlns:hrv="{NS}">' in found.remedy


def test_a_prefix_that_nothing_declares_is_named() -> None:
    found = problem(f"<hrv:harvestList>{entry()}</hrv:harvestList>")
    assert found.rule == "list.namespace"
    assert "`hrv`" in found.message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.2.0" packageId="a.1.1"/>', "an EML document"),
        ('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>', "a sitemap"),
        ("<catalog/>", "Its root element is `catalog`"),
        ("<br />\n<b>Warning</b>: mysqli_connect(): Access denied", "a message of a program, such as an error of PHP"),
    ],
)
def test_another_kind_of_document_is_recognised(content: str, said: str) -> None:
    found = problem(content)
    assert (found.rule, found.line) == ("list.root", 1)
    assert said in found.message


def test_a_misspelled_root_is_told_its_right_spelling_and_the_list_checked_all_the_same() -> None:
    found = problems(
        harvest_list(entry(revision="two"))
        .replace("harvestList", "HarvestList")
        .replace("org/HarvestList", "org/harvestList")
    )
    assert [f.rule for f in found] == ["list.root", "list.revision"]


def test_an_html_page_is_recognised_and_its_title_quoted() -> None:
    found = problem("<!DOCTYPE html>\n<html><head><title>Log in &amp; go</title></head><body><p>x</body></html>")
    assert (found.rule, found.message) == (
        "list.html-page",
        "This is an HTML page titled 'Log in & go', not a harvest list.",
    )


# -- syntax


def test_a_bare_ampersand_in_a_url_is_told_with_its_line_and_how_to_write_it() -> None:
    text = harvest_list(entry(), entry(url="https://example.org/get?a=1&b=2"))
    found = problem(text)
    assert (found.rule, found.line) == ("list.ampersand", line_of(text, "&b=2"))
    assert found.message == "`&` in a URL must be written `&amp;`."
    assert found.column == text.splitlines()[line_of(text, "&b=2") - 1].index("&") + 1
    assert "get?a=1&b=2" in found.excerpt
    assert found.docid == "alder.12.2"


def test_an_html_entity_is_told() -> None:
    text = harvest_list(entry(document_type="a&nbsp;b"))
    found = problem(text)
    assert (found.rule, found.line) == ("list.entity", line_of(text, "&nbsp;"))
    assert found.message == "`&nbsp;` means nothing in XML."
    assert "&amp;copy;" in problem(harvest_list(entry(url="http://a/?x&copy;=1"))).remedy


def test_an_entity_of_an_unread_dtd_is_told_and_not_dropped() -> None:
    text = harvest_list(entry(scope="al&foo;der"), head='<!DOCTYPE x SYSTEM "x.dtd">\n')
    assert [(f.rule, f.line) for f in problems(text)] == [("list.entity", 5)]


def test_a_wrong_end_tag_is_told_with_both_names() -> None:
    found = problem(harvest_list(entry()).replace("</documentURL>", "</documentUrl>"))
    assert (found.rule, found.line) == ("list.not-well-formed", 10)
    assert found.message == "The end tag `</documentUrl>` does not belong to `documentURL`, which is still open."


def test_latin_1_without_a_declaration_is_told() -> None:
    text = harvest_list(entry(), entry(document_type="Données"), head="")
    found = problem(text.encode("iso-8859-1"))
    assert (found.rule, found.line) == ("list.encoding", line_of(text, "Données"))
    assert "0xE9" in found.message
    assert 'encoding="ISO-8859-1"' in found.remedy


def test_a_list_saved_as_utf_16_that_says_utf_8_is_told_both() -> None:
    text = harvest_list(entry(), head='<?xml version="1.0" encoding="UTF-8"?>\n')
    found = problem(text.encode("utf-16"))
    assert (found.rule, found.line) == ("list.encoding", 1)
    assert found.message == "The list is saved as UTF-16, and its first line says UTF-8."
    assert found.remedy.startswith("Save the list as UTF-8")


@pytest.mark.parametrize("name", ["GB2312", "nonsense", "hex", "undefined", "utf-7", "UTF-16"])
def test_an_encoding_that_cannot_be_read_is_told(name: str) -> None:
    found = problem(harvest_list(entry(), head=f'<?xml version="1.0" encoding="{name}"?>'))
    assert found.rule == "list.encoding"
    assert name in found.message


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("\n", "Something stands before `<?xml`"),
        ("Warning: mysql_connect()\n", "does not begin as XML"),
        ('{"error": "none"}', "does not begin as XML"),
        ("\x1f\x8b\x08", "does not begin as XML"),
        ("docid;type;url\nalder.12.2;EML;https://www.example.org/12.xml\n", "does not begin as XML"),
        ("\ufeff\ufeff", "two byte order marks"),
    ],
)
def test_what_stands_before_the_list_is_told(head: str, said: str) -> None:
    found = problem(head + harvest_list(entry()))
    assert found.rule == "list.not-well-formed"
    assert said in found.message


def test_a_declaration_in_capital_letters_is_told() -> None:
    found = problem(harvest_list(entry(), head='<?XML version="1.0"?>\n'))
    assert (found.message, found.line) == ("The line <?xml …?> has capital letters.", 1)


def test_a_compressed_list_is_told_as_that() -> None:
    found = problem(gzip.compress(harvest_list(entry()).encode()))
    assert (found.rule, found.excerpt) == ("list.not-well-formed", "")
    assert "a compressed file (gzip), not XML" in found.message
    assert "unpacked" in found.remedy


@pytest.mark.parametrize("name", [b"[Content_Types].xml", b"docProps/app.xml"])
def test_a_workbook_in_place_of_a_list_is_named(name: bytes) -> None:
    found = problem(b"PK\x03\x04" + bytes(26) + name)
    assert found.message == "The list is a file of an office program, such as Excel or Word, not XML."


def test_a_second_declaration_within_the_list_is_told_as_that() -> None:
    found = problem(harvest_list(entry(), '<?xml version="1.0"?>', entry(identifier="2")))
    assert "in the middle of the list" in found.message
    assert found.line == 12


def test_what_follows_the_list_is_told() -> None:
    found = problem(harvest_list(entry()) + "<br/>")
    assert (found.rule, found.line) == ("list.not-well-formed", 13)
    assert "Something follows" in found.message


@pytest.mark.parametrize("comment", ["<!-- one -- two -->", "<!-- <document/> <!-- inner --> -->"])
def test_two_hyphens_in_a_comment_are_named(comment: str) -> None:
    found = problem(harvest_list(entry(), f"<!--\n-->\n{comment}\n"))
    assert (found.rule, found.line) == ("list.not-well-formed", 14)
    assert found.message == "A comment contains two hyphens in a row, or another comment."


def test_characters_that_xml_does_not_allow_are_told() -> None:
    found = problem(harvest_list(entry(document_type="a\0b")))
    assert (found.rule, found.line) == ("list.not-well-formed", 9)
    assert "U+0000" in found.message
    assert "`&lt;`" in problem(harvest_list(entry(document_type="a < b"))).message


def test_a_syntax_error_comes_after_what_was_found_before_it() -> None:
    found = problems(harvest_list(entry(revision="two"), entry(url="http://a/?b&c=1")))
    assert [f.rule for f in found] == ["list.revision", "list.ampersand"]


@pytest.mark.parametrize("cut", [20, 300, 500, -20, -8, -3])
def test_a_list_that_breaks_off_anywhere_is_refused(cut: int) -> None:
    text = harvest_list(entry(), entry())[:cut]
    assert "list.truncated" in [f.rule for f in problems(text)]


def test_a_list_that_breaks_off_in_utf_16_is_refused() -> None:
    assert problem(harvest_list(entry()).encode("utf-16")[:-21]).rule == "list.truncated"


# -- hostile lists


def test_declarations_in_the_list_are_refused_before_any_is_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("alder")
    for subset in (
        f'<!ENTITY x SYSTEM "{secret.as_uri()}">',
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;"><!ENTITY x "&b;&b;">',
        '<!ATTLIST document id CDATA "x">',
    ):
        found = problem(harvest_list(entry(scope="&x;"), head=f"<!DOCTYPE x [{subset}]>\n"))
        assert (found.rule, found.line) == ("list.dtd", 1)


def test_utf_32_is_told() -> None:
    assert "UTF-32" in problem(harvest_list(entry()).encode("utf-32")).message


def test_ten_thousand_nested_elements_are_one_more_finding() -> None:
    found = problems(harvest_list("<document>" * 10_000))
    assert found[-1].rule == "list.too-deep"
    assert len(found) <= 3


def test_a_value_without_end_is_one_finding() -> None:
    found = problem(harvest_list(entry(document_type="x" * 12_000_000)))
    assert (found.rule, found.docid) == ("list.too-long", "alder.12.2")


@pytest.mark.parametrize("opening", ["<!-- ", "<document a='", "<?pi "])
def test_a_tag_or_comment_without_end_is_one_finding(opening: str) -> None:
    found = problem(harvest_list(entry(), opening + "x" * 3_000_000))
    assert (found.rule, found.line) == ("list.too-large", 12)


HOSTILE = """
import resource, sys
from metaharvest.errors import ListError
from metaharvest.sources.harvest_list.source import read_list

def measure(path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    last, count = None, 0
    try:
        with open(path, "rb") as file:
            for last in read_list(file):
                count += 1
    except ListError as error:
        print(error.findings[-1].rule, error.findings[-1].line)
    print(count, last.line if last else None)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)

measure(sys.argv[1])
"""


def measured(path: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", HOSTILE, path], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_long_list_needs_no_memory_and_its_lines_are_right_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "list.xml"

    def write(entries: int, end: str) -> None:
        with path.open("w") as file:
            file.write(f'<hrv:harvestList xmlns:hrv="{NS}">\n')
            file.writelines(entry(identifier=str(number)) for number in range(entries))
            file.write(end)

    write(200_000, "</hrv:harvestList>\n")
    summary, memory = measured(path)
    assert summary == f"200000 {199_999 * 9 + 2}"
    assert int(memory) < 20
    write(20_000, entry()[:100])
    problem_at, summary, _ = measured(path)
    assert problem_at == f"list.truncated {20_000 * 9 + 1 + entry()[:100].count(chr(10)) + 1}"
    assert summary == f"20000 {19_999 * 9 + 2}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "<x{0}/>",
        "<document><x{0}/>",
        "<document xmlns:p{0}='u'/>",
        "y{0}<!-- -->",
        "<document><docid><scope>{0}</scope>",
    ],
)
def test_a_hostile_list_is_one_error_in_bounded_memory(tmp_path: Path, piece: str) -> None:
    path = tmp_path / "list.xml"
    with path.open("w") as file:
        file.write(f'<hrv:harvestList xmlns:hrv="{NS}">\n')
        file.writelines(piece.format(f"{number:0200}") for number in range(100_000))
    problem_at, _, memory = measured(path)
    assert problem_at
    assert int(memory) < 100


# -- the source


def client() -> Fetcher:
    """Made within the event loop in which it is used."""
    return Fetcher(HttpSettings(), name="Test", administrator=None)


def site_at(url: str) -> Site:
    options = SiteOptions(allow_networks=(ip_network("127.0.0.0/8"),))
    return Site(1, "alder-creek", url, ("a@example.org",), options=options)


async def listed(source: Source) -> list[ListedDocument]:
    listing = await source.list_documents(None)
    assert listing.documents is not None
    return list(listing.documents)


@pytest.mark.parametrize(
    ("path", "status", "remedy"),
    [
        ("/a\\b.xml", 404, "Write / in place of \\ in the URL."),
        ("/no#1.xml", 404, "A # ends the name of the file in a URL."),
        ("/100%.xml", 400, "If the name of the file has a %, write it as %25 in the URL."),
        ("/a%20b.xml", 404, "Put the document where the URL says"),
    ],
)
def test_the_remedy_for_a_url_that_leads_nowhere_names_its_odd_character(
    server: HttpServer, path: str, status: int, remedy: str
) -> None:
    for sent in ("/a%5Cb.xml", "/no", "/100%.xml", "/a%20b.xml"):
        server.serve(sent, b"", status=status)

    async def fetch() -> None:
        url = server.url(path)
        async with client() as fetcher:
            await HarvestListSource(site_at(url), fetcher).fetch(ListedDocument("alder.12", 2, EML, url))

    with pytest.raises(FetchError) as caught:
        asyncio.run(fetch())
    [finding] = caught.value.findings
    assert (finding.rule, finding.remedy.startswith(remedy)) == ("http.status", True)


def test_a_page_in_place_of_a_document_is_told_with_its_title(server: HttpServer) -> None:
    url = server.serve("/12.xml", b"<html><head><title>Please log in</title></head></html>")

    async def fetch() -> FetchedDocument:
        async with client() as fetcher:
            return await HarvestListSource(site_at(url), fetcher).fetch(ListedDocument("alder.12", 2, EML, url))

    with pytest.raises(FetchError) as caught:
        asyncio.run(fetch())
    [finding] = caught.value.findings
    assert finding.rule == "http.html-page"
    assert "titled 'Please log in'" in finding.message
    assert caught.value.seconds is not None


def test_a_page_behind_a_redirect_is_reported_with_its_address(server: HttpServer) -> None:
    page = server.serve("/login", b"<html><head><title>Please log in</title></head></html>")
    url = server.redirect("/12.xml", "/login")

    async def fetch() -> tuple[Finding, Finding]:
        async with client() as fetcher:
            source = HarvestListSource(site_at(url), fetcher)
            with pytest.raises(FetchError) as no_document:
                await source.fetch(ListedDocument("alder.12", 2, EML, url))
            with pytest.raises(ListError) as no_list:
                await listed(source)
            return no_document.value.findings[0], no_list.value.findings[0]

    document, harvest_list = asyncio.run(fetch())
    instead = f"an HTML page titled 'Please log in' (redirected to {page})"
    assert document.message == f"The server sent {instead} where the document was expected."
    assert harvest_list.message == f"This is {instead}, not a harvest list."


@pytest.mark.parametrize("name", ["", "none.xml"])
def test_a_file_that_cannot_be_read_is_a_fetch_error(tmp_path: Path, name: str) -> None:
    async def read_it() -> None:
        async with client() as fetcher:
            given = GivenList(LocalFile(tmp_path / name, name, Root(), ""))
            await listed(GivenSource(given, site_at("http://127.0.0.1/"), fetcher, Copies(tmp_path)))

    with pytest.raises(FetchError) as caught:
        asyncio.run(read_it())
    assert caught.value.findings[0].rule == "list.file"


def test_a_document_id_is_split_at_its_last_dot_for_the_originals_columns() -> None:
    assert scope_and_identifier("knb-lter-gce.109") == ("knb-lter-gce", 109)
    assert scope_and_identifier("knb.lter.0") == ("knb.lter", 0)
    for other in ("alder", ".1", "alder.", "alder.x", "alder.١"):
        assert scope_and_identifier(other) == (None, None)


# -- anything at all

GOOD = harvest_list(
    entry(), entry(url="http://example.org/?a=1&amp;b=2"), head='<?xml version="1.0" encoding="UTF-8"?>\n'
)
PIECES = [
    b"&",
    b"<",
    b">",
    b"\0",
    b"\xe9",
    b"\xff\xfe",
    b"</document>",
    b"<document>",
    b"]]>",
    b"<!--",
    b"<!DOCTYPE x [",
    b"<!DOCTYPE x SYSTEM 'y'>",
    b"&x;",
    b"&#0;",
    b"-1",
    b"encoding='hex'",
    b"utf-16",
    b"xmlns=''",
    b"<![CDATA[",
    b"<?",
]


def read_or_refused(content: bytes) -> Sequence[ListedDocument | Finding]:
    try:
        return read(content)
    except ListError as error:
        return error.findings


@pytest.mark.slow
@settings(max_examples=1000)
@given(
    st.lists(
        st.tuples(st.integers(0, len(GOOD)), st.integers(0, 40), st.sampled_from(PIECES) | st.binary(max_size=8)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]),
)
def test_whatever_a_list_contains_it_is_read_or_refused_with_findings(
    changes: list[tuple[int, int, bytes]], encoding: str
) -> None:
    content = GOOD.encode(encoding)
    for position, removed, added in changes:
        content = content[:position] + added + content[position + removed :]
    result = read_or_refused(content)
    assert result
    for item in result:
        if isinstance(item, Finding):
            assert item.rule in RULES
            assert item.message
            assert len(item.excerpt) <= MAX_EXCERPT
        else:
            assert 0 <= item.revision < 2**63
            assert item.document_id.isascii()


def test_one_missing_end_tag_of_an_entry_is_one_finding_that_says_where_the_entry_begins() -> None:
    entries = [entry(identifier=str(number)) for number in range(1, 9)]
    cut = entries[0].replace("  </document>\n", "")
    found = problem(harvest_list(cut, *entries[1:]))
    assert (found.rule, found.line, found.docid) == ("list.not-well-formed", 3, "alder.1.2")
    assert found.message == "The entry that begins in line 3 is not closed: the next one begins in line 11."
    last = problem(harvest_list(*entries[1:], cut))
    assert last.message == "The entry that begins in line 66 is not closed: the list ends in line 74."


def test_what_else_is_wrong_is_told_beside_entries_that_are_not_closed() -> None:
    cut = entry().replace("  </document>\n", "")
    found = problems(harvest_list(cut, entry(identifier="x"), cut, entry(revision="y")))
    assert [(each.line, each.rule) for each in found] == [
        (3, "list.not-well-formed"),
        (14, "list.identifier"),
        (20, "list.not-well-formed"),
        (32, "list.revision"),
    ]


@pytest.mark.parametrize(
    "inside", ["<document><document/></document>", "<document><docid><document/></docid><documentURL/></document>"]
)
def test_entries_within_entries_are_told_whatever_follows(inside: str) -> None:
    found = problems(harvest_list(inside, entry(identifier="x")))
    assert found[0].message == "The entry that begins in line 3 is not closed: the next one begins in line 3."
    assert found[-1].rule == "list.identifier"


@pytest.mark.parametrize("place", ['version="1.0"', f'"{NS}"'])
def test_curly_quotation_marks_have_a_sentence_of_their_own(place: str) -> None:
    curly = place.replace('"', "“", 1).replace('"', "”")
    found = problem(harvest_list(entry()).replace(place, curly))
    assert "straight quotation marks" in found.message
    assert '<?xml version="1.0" encoding="UTF-8"?>' in found.remedy


def test_a_first_line_that_is_not_as_xml_wants_it_is_told_how_to_be() -> None:
    found = problem(harvest_list(entry(), head="<?xml version=1.0?>\n"))
    assert "first line" in found.message
    assert '<?xml version="1.0" encoding="UTF-8"?>' in found.remedy
