"""Check a file: what a stranger without an account sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.console import Served, served_console
from support.databases import on_one_database
from support.harvester import EML, Harvester, eml, harvest_list, publish
from support.http_server import HttpServer

pytestmark = on_one_database


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as made:
        yield made


def test_a_finding_has_its_line_and_its_remedy(console: Served) -> None:
    content = eml("a.1.1").replace(b"<contact>", b"<contat>").replace(b"</contact>", b"</contat>")
    page = console.visitor().open("/console/check").submit("Check", files={"file": ("<b>rain.xml", content)})
    assert page.status == 200
    [finding] = page.root.find_class("finding")
    words = " ".join(finding.text_content().split())
    assert "<b>rain.xml, line 6" in words
    assert "6 | <contat>" in words
    assert "What to do:" in words
    assert "Download the corrected file" not in page.text


def test_a_mechanical_fault_is_corrected_and_downloaded_byte_by_byte(console: Served) -> None:
    text = EML.format(docid="a.01.1", title="Fluß\r\n").replace("eml://eco", "http://eco")
    page = console.visitor().open("/console/check")
    page = page.submit("Check", files={"file": ("a.xml", text.encode("windows-1252"))})
    assert "The corrected file has no findings." in page.text
    file = page.submit("Download the corrected file")
    assert file.content == EML.format(docid="a.1.1", title="Fluß\r\n").encode()
    assert file.headers["Content-Disposition"] == 'attachment; filename="corrected.xml"'
    assert file.headers["Content-Type"] == "application/octet-stream"


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-1", "UTF-16", "GBK"])
def test_a_pasted_text_is_read_in_its_own_encoding(console: Served, encoding: str) -> None:
    title = "河川の流れ" if encoding == "GBK" else "Fluß"
    text = EML.format(docid="a.1.1", title=title).replace("UTF-8", encoding)
    page = console.visitor().open("/console/check").submit("Check", {"text": f"\n{text}"})
    assert page.root.find_class("finding") == []
    assert "No faults were found: a harvest would accept this document." in page.text
    assert title in dict(page.form("Check").form_values())["text"]


def test_a_list_on_the_web_is_checked_with_its_documents(console: Served, server: HttpServer) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    page = console.visitor().open("/console/check").submit("Check", {"url": url})
    assert page.root.find_class("finding")
    assert "a.2.1" in page.text


def test_a_web_page_in_a_file_gets_a_remedy_without_a_url(console: Served) -> None:
    content = b"<!DOCTYPE html><html><head><title>Log in</title></head></html>"
    page = console.visitor().open("/console/check").submit("Check", files={"file": ("rain.xml", content)})
    [finding] = page.root.find_class("finding")
    assert "The file is an HTML page titled 'Log in'" in finding.text_content()
    assert "URL" not in finding.text_content()


def test_a_mistake_keeps_the_form(console: Served) -> None:
    page = console.visitor().open("/console/check").submit("Check", {"url": "file:///etc/passwd"})
    assert page.status == 422
    assert "Only http and https addresses are harvested." in page.root.get_element_by_id("field-url-note").text
    assert dict(page.form("Check").form_values())["url"] == "file:///etc/passwd"
    assert console.visitor().open("/console/check").submit("Check").status == 422


def test_a_file_counts_before_the_kept_address_and_text(console: Served) -> None:
    page = console.visitor().open("/console/check")
    kept = {"url": "https://www.example.org/rain.xml", "text": eml("a.1.1").decode()}
    report = page.submit("Check", kept, files={"file": ("snow.xml", eml("a.2.1"))})
    assert report.root.get_element_by_id("report").text_content() == "snow.xml"
    page = page.submit("Check", kept)
    assert page.root.get_element_by_id("field-url-note").text_content() == (
        "You gave an address and a text. Empty one of the two fields."
    )


def test_the_name_of_a_list_is_shown_as_it_is(console: Served) -> None:
    content = harvest_list([("a.1.1", "https://www.example.org/a.xml")])
    page = console.visitor().open("/console/check")
    assert "list.xml names 1 document." in page.submit("Check", files={"file": ("list.xml", content)}).text
    assert "The pasted text names 1 document." in page.submit("Check", {"text": content.decode()}).text


def test_what_a_file_says_is_text(console: Served) -> None:
    content = b"<eml><script>alert(1)</script>"
    page = console.visitor().open("/console/check").submit("Check", files={"file": ("<img src=x>.xml", content)})
    assert b"<script>alert" not in page.content
    assert b"<img src=x>" not in page.content


def test_an_uploaded_list_names_no_files_of_the_server(harvester: Harvester, console: Served) -> None:
    content = harvest_list([("a.1.1", harvester.config.as_uri())])
    page = console.visitor().open("/console/check").submit("Check", files={"file": ("list.xml", content)})
    assert "Test network" not in page.root.find_class("findings")[0].text_content()
