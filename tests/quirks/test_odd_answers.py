"""Bytes, characters and elements as repositories were seen to send them. The answers are made for the tests."""

from __future__ import annotations

import pytest

from metaharvest.errors import FetchError, ListError
from metaharvest.model import Level, ListMethod
from support.http_server import Asking
from support.oai_harvest import Harvested, harvest
from support.oai_quirks import ALL, in_page, page, record, repository
from support.oai_server import GZIP, HTML, OaiServer


def harvested(seventeenth: bytes) -> Harvested:
    """30 records in three pages; the 17th is sent like this."""
    with OaiServer(30) as server:
        server.records["oai:test:17"].xml = seventeenth
        return harvest(server.base_url)


# A control character in twelve records: https://github.com/TreeBASE/treebase/issues/193
# Control characters: https://www.openarchives.org/pipermail/oai-implementers/2003-February/000761.html
# U+FFFE: https://github.com/DSpace/DSpace/issues/10721
# A byte of another encoding: https://github.com/IQSS/dataverse/issues/9987
@pytest.mark.parametrize(
    "damage", [b"\x1a", b"\x01", b"&#x1F;", b"&#xfffe;", b"\xef\xbf\xbf", b"Ch\x92ng", b"Fr\xf6gs", b"\xc3\x28"]
)
def test_what_is_no_text_is_replaced_and_the_record_is_named(damage: bytes) -> None:
    found = harvested(record(17, b"<metadata><t>Frogs " + damage + b"</t></metadata>"))
    assert sorted(found.good) == sorted(ALL)
    [finding] = [each for each in found.findings if each.docid]
    assert (finding.rule, finding.docid, finding.level) == ("oai.damaged-text", "oai:test:17", Level.WARNING)
    [content] = [each.content for each in found.records if each.document.document_id.endswith(":17")]
    assert "\ufffd" in (content or b"").decode()


# The charset of the HTTP header: https://www.rfc-editor.org/rfc/rfc7303#section-3
@pytest.mark.parametrize(
    "before", ["", '<?xml version="1.0" standalone="yes"?>\n<?xml-stylesheet href="\xf6"?><!-- \xf6 -->']
)
@pytest.mark.parametrize("method", ListMethod)
def test_letters_are_read_in_the_charset_of_the_http_header(method: ListMethod, before: str) -> None:
    with OaiServer(30) as server:
        server.records["oai:test:17"].title = "Fr\xf6gs"
        server.content_type = "text/xml; charset=ISO-8859-1"
        server.tamper = lambda body, _: (before + body.decode().partition("?>")[2]).encode("latin-1")
        found = harvest(server.base_url, method=method)
        assert (sorted(found.good), found.broken, found.rules) == (sorted(ALL), None, [])
        assert any("Fr\xf6gs".encode() in (each.content or b"") for each in found.records)


@pytest.mark.parametrize("comment", ["", "<!-- \xf6 -->"])
def test_utf_8_that_is_declared_as_ascii_is_read_as_utf_8(comment: str) -> None:
    with OaiServer(30) as server:
        server.records["oai:test:17"].title = "Fr\xf6gs"
        declared = '<?xml version="1.0" encoding="US-ASCII"?>' + comment
        server.tamper = lambda body, _: declared.encode() + body.partition(b"?>")[2]
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken, set(found.rules)) == (sorted(ALL), None, {"oai.ill-formed"})
        assert any("Fr\xf6gs".encode() in (each.content or b"") for each in found.records)
        assert all("in UTF-8" in each.remedy for each in found.findings)


@pytest.mark.parametrize("declaration", [b"encoding=UTF-8", b'encoding="utf8mb4"'])
def test_a_page_whose_encoding_cannot_be_read_is_asked_for_in_smaller_windows(declaration: bytes) -> None:
    with OaiServer(30) as server:
        server.tamper = lambda body, asked: (
            body.replace(b'encoding="UTF-8"', declaration) if in_page(2, asked) else body
        )
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken, set(found.rules)) == (sorted(ALL), None, {"oai.page-failed"})
        assert declaration.decode().strip('"').rpartition('"')[2] in found.words("oai.page-failed")


# A value breaks off in an attribute: https://github.com/IQSS/dataverse/issues/12120
# A record is cut behind <metadata>: https://github.com/IQSS/dataverse/issues/8306
# An XML declaration in the metadata: https://github.com/IQSS/dataverse/issues/7431
@pytest.mark.parametrize(
    "metadata",
    [
        b'<metadata><rdf><a href="https://example.org/fro<b/></rdf></metadata>',
        b"<metadata>",
        b'<metadata><?xml version="1.0" encoding="UTF-8"?><resource/></metadata>',
        b"<metadata><x:dc>undeclared</x:dc></metadata>",
        b"<metadata><dc>Fish & chips</dc></metadata>",
        b"<metadata><dc>never closed</metadata>",
        b"<metadata><dc a='1' a='2'/></metadata>",
        b"<metadata><dc>&nbsp;</dc></metadata>",
    ],
)
def test_a_record_that_is_not_well_formed_is_lost_alone_and_named(metadata: bytes) -> None:
    found = harvested(record(17, metadata))
    assert sorted(found.good) == sorted(set(ALL) - {"oai:test:17"})
    assert [(each.rule, each.docid) for each in found.findings if each.is_error] == [
        ("oai.damaged-record", "oai:test:17")
    ]


# A page that breaks off, at another place each time: https://github.com/eScholarship/jschol/issues/898
def test_a_page_that_breaks_off_each_time_is_asked_for_in_smaller_windows() -> None:
    with repository(
        lambda asked: page(range(11, 18)).partition(b"</ListRecords>")[0] if in_page(2, asked) else None
    ) as server:
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        assert "breaks off before its end" in found.words("oai.page-failed")


# Blank lines before the XML declaration: https://github.com/omeka/Omeka/issues/541
# HTML behind the root element: https://github.com/findsorguk/findsorguk/issues/843
# A bare & in the repository's name: https://github.com/artefactual/atom/issues/803
@pytest.mark.parametrize(
    ("before", "behind", "name"),
    [
        (b"\n\n", b"", ""),
        (b"", b"<br />\n<b>Notice</b>: Undefined index: creator in <b>OaiDc.php</b> on line <b>68</b><br />\n", ""),
        (b"", b"", "Images & Documents"),
    ],
    ids=["blank-lines", "notice", "ampersand"],
)
def test_what_is_odd_outside_of_records_costs_none(before: bytes, behind: bytes, name: str) -> None:
    with OaiServer(30) as server:
        server.name = name or server.name
        server.tamper = lambda body, _: before + body.replace(b"Images &amp;", b"Images &") + behind
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        assert set(found.rules) == {"oai.ill-formed"}


# Warnings of PHP before the answer: https://github.com/pkp/pkp-lib/issues/318
@pytest.mark.parametrize("method", ListMethod)
@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1"])
def test_a_warning_before_the_answer_costs_nothing_and_is_shown(encoding: str, method: ListMethod) -> None:
    notice = b"<br />\n<b>Deprecated</b>: Creation of dynamic property in <b>Oai.php</b> on line <b>68</b><br />\n"
    with OaiServer(30) as server:
        server.records["oai:test:17"].title = "Fr\xf6gs"
        server.tamper = lambda body, _: notice + body.decode().replace("UTF-8", encoding).encode(encoding)
        found = harvest(server.base_url, method=method)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        assert set(found.rules) == {"oai.ill-formed"}
        assert any("Fr\xf6gs".encode() in (each.content or b"") for each in found.records)
        if encoding == "UTF-8":
            assert "'Deprecated : Creation of dynamic property in Oai.php on line 68'" in found.words("oai.ill-formed")


# Notices of PHP in the XML: https://github.com/omeka/Omeka/issues/610
def test_a_notice_between_records_is_no_lost_record() -> None:
    with OaiServer(30) as server:
        server.tamper = lambda body, _: body.replace(b"</record>", b"</record><br />\n<b>Notice</b>: x in <b>a.php</b>")
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        assert [(each.rule, each.level) for each in found.findings] == [("oai.protocol", Level.WARNING)]
        assert "90 elements of HTML between its records, such as <br>" in found.words("oai.protocol")


# A page for people that shows an answer is a page. The entities of a DTD count.
@pytest.mark.parametrize(
    ("before", "words"),
    [(b"<html><body>", "is an HTML page"), (b'Warning: <!DOCTYPE OAI-PMH [<!ENTITY a "b">]>', "is no XML")],
)
def test_a_text_before_the_answer_hides_no_page_and_no_dtd(before: bytes, words: str) -> None:
    with repository(lambda _: before + page([])) as server, pytest.raises(ListError, match=words):
        harvest(server.base_url)


# The namespace of OAI-PMH with https: https://github.com/DSpace/xoai/issues/71
@pytest.mark.parametrize("namespace", [b"https://www.openarchives.org/OAI/2.0/", b""])
def test_a_repository_in_another_namespace_is_harvested(namespace: bytes) -> None:
    with OaiServer(30) as server:
        server.tamper = lambda body, _: body.replace(
            b'http://www.openarchives.org/OAI/2.0/"><resp', namespace + b'"><resp'
        )
        found = harvest(server.base_url)
        assert (sorted(found.good), found.findings) == (sorted(ALL), [])


# An element of a browser plug-in beside the list: https://github.com/mloesch/sickle/pull/4
def test_an_element_beside_the_list_is_passed_over() -> None:
    with OaiServer(30) as server:
        server.tamper = lambda body, _: body.replace(b"<responseDate>", b"<SCRIPT/><responseDate>")
        found = harvest(server.base_url)
        assert (sorted(found.good), found.findings) == (sorted(ALL), [])


# Empty datestamps: https://github.com/TreeBASE/treebase/issues/194
# No datestamps: https://github.com/mloesch/sickle/pull/16
# Milliseconds: https://github.com/infrae/pyoai/pull/30
@pytest.mark.parametrize(
    "datestamp", [b"<datestamp></datestamp>", b"", b"<datestamp>2026-01-17T00:00:00.485Z</datestamp>"]
)
def test_records_without_proper_datestamps_are_taken_and_counted(datestamp: bytes) -> None:
    found = harvested(record(17).replace(b"<datestamp>2026-01-17T00:00:00Z</datestamp>", datestamp))
    assert sorted(found.good) == sorted(ALL)
    assert found.rules == ["oai.datestamp"]


# A page for people in place of an answer: https://github.com/Gluejar/regluit/issues/1154
@pytest.mark.parametrize(("body", "words"), [(HTML, "is an HTML page titled 'Our repository'"), (b"", "is empty")])
def test_an_answer_that_is_none_is_named(body: bytes, words: str) -> None:
    with (
        repository(lambda asked: body if asked.verb == "ListRecords" else None) as server,
        pytest.raises((FetchError, ListError), match=words),
    ):
        harvest(server.base_url)


# An answer that is no gzip, though it says so: https://github.com/mikf/gallery-dl/issues/2267
@pytest.mark.parametrize("body", [b"<OAI-PMH/>", b""])
def test_an_answer_whose_compression_is_damaged_is_asked_for_without_it(body: bytes) -> None:
    refused = 0
    with OaiServer(30) as server:

        def answer(asking: Asking) -> None:
            nonlocal refused
            if "gzip" in asking.headers["Accept-Encoding"]:
                refused += 1
                return asking.answer(body, 200, GZIP)
            return server._answer(asking)

        server.http.route("/oai", answer)
        found = harvest(server.base_url)
        assert (sorted(found.good), found.findings) == (sorted(ALL), [])
        assert refused == 1
