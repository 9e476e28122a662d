"""The provider behind a real server: methods, headers, the page for browsers, errors."""

from __future__ import annotations

import gzip
import http.client
import logging
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest
from lxml import etree
from starlette.requests import Request

from metaharvest.database.engine import writers
from metaharvest.web import application
from metaharvest.web.turns import Turns
from support.databases import on_one_database
from support.harvester import Harvester, eml
from support.provider import Served, checked, codes, document, served, store, texts

LIST = "?verb=ListRecords&metadataPrefix=oai_dc"

pytestmark = on_one_database


@pytest.fixture
def server(harvester: Harvester) -> Iterator[Served]:
    store(harvester, *(document(f"a.{number}", eml(f"a.{number}.1")) for number in range(30)))
    harvester.rows("UPDATE catalogue_document SET changed_at = '2026-01-01 00:00:00.000000'")
    with served(harvester) as made:
        yield made


def test_an_answer_is_xml_and_gzipped_for_clients_that_accept_gzip(server: Served) -> None:
    status, headers, body = server.get(LIST)
    assert (status, headers["content-type"]) == (200, "text/xml; charset=utf-8")
    assert "content-encoding" not in headers
    status, headers, packed = server.get(LIST, Accept_Encoding="gzip, deflate")
    assert headers["content-encoding"] == "gzip"
    assert texts(checked(gzip.decompress(packed)), "identifier") == texts(checked(body), "identifier")
    assert "script" not in headers["content-security-policy"]


def test_get_and_post_say_the_same(server: Served) -> None:
    question = urllib.request.Request(server.base_url, data=b"verb=ListIdentifiers&metadataPrefix=oai_dc")
    _, _, posted = server.request(question)
    _, _, got = server.get("?verb=ListIdentifiers&metadataPrefix=oai_dc")
    assert texts(checked(posted), "identifier") == texts(checked(got), "identifier")
    as_json = urllib.request.Request(server.base_url, data=b"{}", headers={"Content-Type": "application/json"})
    assert codes(checked(server.request(as_json)[2])) == ["badVerb"]
    large = urllib.request.Request(server.base_url, data=b"verb=" + b"x" * 70_000)
    assert server.request(large)[0] == 413


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "badVerb"),
        ("?", "badVerb"),
        ("?verb=Identify&verb=Identify", "badVerb"),
        ("?verb", "badVerb"),
        ("?verb=GetRecord&metadataPrefix=oai_dc&identifier=%FF", "badArgument"),
        ("?verb=GetRecord&metadataPrefix=oai_dc&identifier=%00", "badArgument"),
        ("?verb=GetRecord&metadataPrefix=oai_dc&identifier=" + "%26%3C" * 20, "badArgument"),
        ("?verb=ListRecords&resumptionToken=%E2%82%AC", "badResumptionToken"),
    ],
)
def test_errors_of_the_protocol_have_the_status_200(server: Served, query: str, code: str) -> None:
    status, _, body = server.get(query)
    assert status == 200
    assert code in codes(checked(body))


def test_identify_is_not_sent_again_to_a_client_that_has_it(server: Served) -> None:
    _, headers, _ = server.get("?verb=Identify")
    status, again, body = server.get("?verb=Identify", If_None_Match=headers["etag"])
    assert (status, body, again["etag"]) == (304, b"", headers["etag"])


def test_a_browser_gets_a_page_with_forms(server: Served) -> None:
    status, headers, body = server.get("", Accept="text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    forms = etree.HTML(body).findall(".//form")
    assert [each.findtext("h2") for each in forms][:2] == ["Identify", "ListMetadataFormats"]
    assert b"<script" not in body
    # A form has its empty fields, too.
    question = "/try?verb=ListIdentifiers&metadataPrefix=oai_dc&from=&until=+&set=site"
    assert texts(checked(server.get(question)[2]), "identifier") == []
    assert len(texts(checked(server.get(question.replace("=site", "="))[2]), "identifier")) == 30
    assert server.get("?verb=Identify", Accept="text/html")[1]["content-type"].startswith("text/xml")
    of_java = server.get("", Accept="text/html, image/gif, image/jpeg, */*; q=0.2")
    assert codes(checked(of_java[2])) == ["badVerb"]


def test_harvesters_wait_for_their_turns(harvester: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    store(harvester, *(document(f"a.{number}", eml(f"a.{number}.1")) for number in range(12)))

    def harvested(server: Served) -> int:
        query, number = LIST, 0
        while True:
            status, headers, body = server.get(query)
            assert status == 200, (headers, body)
            root = checked(body)
            number += len(texts(root, "identifier"))
            [token] = texts(root, "resumptionToken")
            if not token:
                return number
            query = f"?verb=ListRecords&resumptionToken={token}"

    with served(harvester, page_records=3, lists_at_once=1) as server, ThreadPoolExecutor(6) as harvesters:
        assert list(harvesters.map(harvested, [server] * 6)) == [12] * 6
        monkeypatch.setattr(Turns, "_has_room", Mock(return_value=False))
        monkeypatch.setattr(application, "_WAIT_SECONDS", 0)
        record = "?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:127.0.0.1:a.1"
        for query in (LIST, record, "?verb=ListSets", "?verb=ListIdentifiers&resumptionToken=x&y=Identify"):
            status, headers, body = server.get(query)
            assert (status, headers["retry-after"]) == (503, "5")
            assert body.startswith(b"Many records are being read")
        assert server.get("?verb=Identify")[0] == server.get("?verb=ListMetadataFormats")[0] == 200


def test_an_internal_error_is_no_empty_list(harvester: Harvester, caplog: pytest.LogCaptureFixture) -> None:
    with served(harvester) as server:
        with writers(harvester.engine).begin() as session:
            session.connection().exec_driver_sql("ALTER TABLE catalogue_document RENAME TO away")
        status, headers, body = server.get(LIST)
        assert (status, headers["content-type"]) == (503, "text/plain; charset=utf-8")
        assert body.startswith(b"The records cannot be read at this moment.")
        assert int(headers["retry-after"]) > 0
        assert [each.levelno for each in caplog.records if each.name == "metaharvest.web.application"] == [
            logging.ERROR
        ]


def test_a_name_with_markup_is_shown_as_it_is(harvester: Harvester) -> None:
    harvester.config.write_text(harvester.config.read_text().replace('"Test network"', '"A <b> & \\"C\\""'))
    with served(harvester) as server:
        assert texts(checked(server.get("?verb=Identify")[2]), "repositoryName") == ['A <b> & "C"']
        assert b"<h1>A &lt;b&gt; &amp; &quot;C&quot;</h1>" in server.get("", Accept="text/html")[2]


@pytest.mark.parametrize(
    ("accepted", "is_packed"), [("gzip;q=0", False), ("gzip; q=0.5", True), ("*", True), ("*, gzip;q=0.0", False)]
)
def test_gzip_is_for_clients_that_accept_it(server: Served, accepted: str, is_packed: bool) -> None:
    assert ("content-encoding" in server.get(LIST, Accept_Encoding=accepted)[1]) == is_packed


def test_every_answer_has_the_headers_of_security(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Request, "query_params", property(lambda _: 1 / 0))
    root = server.base_url.removesuffix("/oai")
    deleted = urllib.request.Request(server.base_url, method="DELETE")
    for request, code in ((f"{root}/none", 404), (deleted, 405), (f"{root}/oai/try?verb=Identify", 500)):
        asked = urllib.request.Request(request) if isinstance(request, str) else request
        status, headers, _ = server.request(asked)
        assert status == code
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
    assert server.request(deleted)[1]["allow"]


def test_a_slash_at_the_end_leads_to_no_other_host(server: Served) -> None:
    status, _, body = server.get("/?verb=Identify", Host="evil.example")
    assert (status, texts(checked(body), "baseURL")) == (200, [server.base_url])
    page = urllib.request.Request(f"{server.base_url}/", headers={"Accept": "text/html"})
    assert b"<form" in server.request(page)[2]


def test_the_target_of_a_request_may_be_a_whole_url(server: Served) -> None:
    host = server.base_url.split("/")[2]
    connection = http.client.HTTPConnection(host, timeout=30)
    for target, start in ((f"{server.base_url}?verb=Identify", b"<?xml"), (f"http://{host}/robots.txt", b"User-agent")):
        connection.request("GET", target)
        assert connection.getresponse().read().startswith(start)
    connection.close()
