"""A file that a person pastes, uploads or names by a URL: the report, and the corrected text."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from metaharvest.errors import RequestError
from metaharvest.services import list_making, trials
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.services.list_making import Row
from support.databases import on_one_database
from support.harvester import EML, Harvester, eml, harvest_list, publish
from support.http_server import HttpServer

pytestmark = on_one_database


@pytest.fixture
def opened(harvester: Harvester) -> Iterator[Opened]:
    with harvester.opened() as made:
        yield made


def test_an_error_has_its_line_and_its_remedy(opened: Opened) -> None:
    content = eml("a.1.1").replace(b"<contact>", b"<contat>").replace(b"</contact>", b"</contat>")
    found = trials.check_file(opened, content, "<script>.xml")
    assert found.name == "<script>.xml"
    assert found.corrected is None
    [error] = found.report.findings
    assert (error.line, error.column, error.place, error.is_error) == (6, 5, "<script>.xml", True)
    assert error.text.strip().startswith("<contat>")
    assert error.before == 4
    assert error.remedy


def test_a_good_document_has_no_finding(opened: Opened) -> None:
    found = trials.check_file(opened, eml("a.1.1"))
    assert (found.report.findings, found.report.has_errors, found.corrected) == ((), False, None)


def test_faults_behind_each_other_are_corrected_together(opened: Opened) -> None:
    text = EML.format(docid="a.01.1", title="Fluß").replace("eml://eco", "http://eco")
    found = trials.check_file(opened, text.encode("windows-1252"))
    assert [each.rule for each in found.report.findings] == ["xml.encoding"]
    assert [each.rule for each in found.corrections] == ["xml.encoding", "eml.not-eml", "eml.package-id"]
    assert found.corrected == EML.format(docid="a.1.1", title="Fluß").encode()
    assert found.left == ()


def test_a_list_is_checked_without_the_files_that_it_names(harvester: Harvester, opened: Opened) -> None:
    secret = harvester.config.as_uri()
    found = trials.check_file(opened, harvest_list([("a.1.1", secret), ("a.2.1", "eml/a.xml")]), "list.xml")
    assert {each.rule for each in found.report.findings} == {"list.url"}
    assert not found.report.is_readable
    assert "network" not in str([each.text for each in found.report.findings])
    good = trials.check_file(opened, harvest_list([("a.1.1", "https://a.example.org/a.xml")]), "list.xml")
    assert good.report.story == "list.xml names 1 document."
    assert good.report.is_readable


def test_a_document_that_a_correction_makes_a_list_of_names_no_files(harvester: Harvester, opened: Opened) -> None:
    harvester.config.with_name("secret.txt").write_text("the key of the harvester")
    secret = harvester.config.with_name("secret.txt").as_uri()
    text = harvest_list([("a.1.1", secret)]).decode().replace("h:", "é:").replace("xmlns:h=", "xmlns:é=")
    content = text.replace("?>", "?><!-- é -->", 1).encode("windows-1252")
    found = trials.check_file(opened, content)
    assert "xml.encoding" in [each.rule for each in found.corrections]
    said = str([found.report, found.left])
    assert "key of the harvester" not in said
    assert {each.rule for each in found.left} == {"list.url"}


@pytest.mark.parametrize(
    "content",
    [
        b"\x00" * 1000,
        b"\xff\xfe<",
        b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><a>&b;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<a>" * 20_000,
        b"<html><body>No</body></html>",
        b"{}",
        b"PK\x03\x04" + b"x" * 100,
    ],
)
def test_hostile_files_get_a_finding(opened: Opened, content: bytes) -> None:
    found = trials.check_file(opened, content)
    assert found.report.has_errors
    assert found.corrected is None
    assert all("/tmp" not in each.message + each.remedy for each in found.report.findings)


def test_an_empty_or_a_large_file_is_refused(opened: Opened) -> None:
    with pytest.raises(RequestError, match="nothing to check"):
        trials.check_file(opened, b" \n")
    with pytest.raises(RequestError, match="larger than 10 MiB"):
        trials.check_file(opened, b"x" * (trials.MOST_BYTES + 1))


def test_a_document_and_a_list_on_the_web_are_checked(opened: Opened, server: HttpServer) -> None:
    server.serve("/one.xml", eml("a.01.1"))
    found = trials.check_url(opened, server.url("/one.xml"))
    assert found.corrected == eml("a.1.1")
    assert found.report.is_document
    listed = trials.check_url(opened, publish(server, "a.1.1", "a.2.1"))
    assert listed.report.story == "2 documents: 2 would be added"
    assert listed.corrected is None
    with pytest.raises(RequestError, match="Only http and https"):
        trials.check_url(opened, "file:///etc/passwd")


def test_a_redirect_into_a_private_network_looks_like_no_answer(opened: Opened, server: HttpServer) -> None:
    server.redirect("/there", "http://10.0.0.1/")
    server.redirect("/file", "file:///etc/passwd")
    found = trials.check_url(opened, server.url("/there"))
    assert [each.message for each in found.report.findings] == [trials.UNREACHED.message]
    assert not trials.check_url(opened, server.url("/file")).report.is_readable


def test_several_people_check_at_once(opened: Opened) -> None:
    done: list[int] = []

    def check(number: int) -> None:
        found = trials.check_file(opened, eml(f"a.{number}.1"))
        done.append(len(found.report.findings))

    threads = [threading.Thread(target=check, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [0, 0, 0, 0]


def test_a_list_in_a_form_is_bounded(opened: Opened) -> None:
    row = Row("a", "1", "1", "x", "https://a.example.org/a.xml")
    with pytest.raises(RequestError, match="would have 501 rows"):
        list_making.problems_in([row] * (list_making.MOST_ROWS + 1))
    with pytest.raises(RequestError, match="These are 501 files"):
        list_making.with_documents([], [("a.xml", b"")] * (list_making.MOST_FILES + 1), "https://a.example.org")
    with pytest.raises(RequestError, match="Give its https:// address"):
        list_making.with_documents([], [("a.xml", b"")], " ")
    with pytest.raises(RequestError, match=r"Row 2: a\.1\.1 is in row 1"):
        list_making.list_of([row, row])
    with pytest.raises(RequestError, match="Row 1 has a value of more than"):
        list_making.problems_in([Row("a" * 5000, "1", "1", "x", "y")])
