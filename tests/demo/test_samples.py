"""The sample network: is it served as it lies in the folder, and is every document what it is meant to be?"""

from __future__ import annotations

import http.client
import re
import socket
from collections import Counter
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from lxml import etree

from metaharvest.config.paths import data_folder
from metaharvest.demo.samples import LIBRARY, REPOSITORY, SAMPLE_SITES, SampleNetwork
from metaharvest.errors import ListError
from metaharvest.model import Level, ListedDocument
from metaharvest.sources.harvest_list.source import read_list
from metaharvest.validation.validator import Validator

FOLDER = data_folder("sample_sites")

EXPECTED = {
    "unescaped-ampersand.xml": "xml.ampersand",
    "lying-encoding.xml": "xml.encoding",
    "unknown-version.xml": "eml.not-eml",
    "not-eml.xml": "eml.not-eml",
    "missing-element.xml": "schema.missing-element",
    "unexpected-element.xml": "schema.unexpected-element",
    "wrong-order.xml": "schema.wrong-order",
    "bad-date.xml": "schema.bad-date",
    "bad-number.xml": "schema.bad-number",
    "bad-value.xml": "schema.not-in-list",
    "empty-text.xml": "schema.empty-text",
    "duplicate-id.xml": "eml.id-duplicate",
    "unresolved-reference.xml": "eml.reference-unresolved",
    "id-and-references.xml": "eml.id-with-references",
    "annotation-without-id.xml": "eml.annotation-without-id",
    "unresolved-describes.xml": "eml.reference-unresolved",
    "undefined-unit.xml": "eml.custom-unit-undefined",
    "doctype-entities.xml": "xml.dtd",
    "id-is-package-id.xml": "eml.id-duplicate",
}
"""The rule that each refused document of basalt-flats breaks, on the first night."""

EXPECTED_WARNINGS = {
    "package-id-mismatch.xml": "eml.package-id-mismatch",
    "type-mismatch.xml": "eml.document-type",
    "system-mismatch.xml": "eml.system-differs",
}
"""The rule of the warning that each doubtful document of basalt-flats gets, on the first night."""

REPAIRED = {
    "missing-on-server.xml",
    "unescaped-ampersand.xml",
    "lying-encoding.xml",
    "missing-element.xml",
    "bad-number.xml",
    "unresolved-reference.xml",
    "annotation-without-id.xml",
    "undefined-unit.xml",
    "package-id-mismatch.xml",
}
"""The documents of basalt-flats that are good on the third night."""

NOT_XML = {"html-page.html", "empty-file.xml"}
"""What fetching finds out already, before anything is checked."""


@pytest.fixture(scope="module")
def validator() -> Validator:
    return Validator()


def get(url: str) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    try:
        connection.request("GET", parts.path)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def listed(network: SampleNetwork, site: str) -> list[ListedDocument]:
    """The entries of a valid list, read without the help of our own list source."""
    root = etree.fromstring(network.file(f"{site}/harvest-list.xml"))
    return [
        ListedDocument(
            f"{entry.findtext('docid/scope', '').strip()}.{entry.findtext('docid/identifier', '').strip()}",
            int(entry.findtext("docid/revision", "")),
            entry.findtext("documentType", "").strip(),
            entry.findtext("documentURL", "").strip(),
        )
        for entry in root.iter("document")
    ]


def name_of(document: ListedDocument) -> str:
    return document.url.rpartition("/")[2]


def findings(validator: Validator, network: SampleNetwork, document: ListedDocument) -> list[tuple[str, Level]]:
    content = network.file(urlsplit(document.url).path)
    verdict = validator.check(content, document)
    return [(finding.rule, finding.level) for finding in verdict.findings]


def test_what_is_served_is_what_lies_in_the_folder_byte_for_byte() -> None:
    with SampleNetwork() as network:
        for name in ("litter-breakdown.xml", "river-birds.xml", "rain.xml", "invertebrates.xml"):
            status, headers, body = get(f"{network.base_url}/alder-creek/{name}")
            assert status == 200
            assert body == (FOLDER / "alder-creek" / name).read_bytes() == network.file(f"alder-creek/{name}")
            assert headers["Content-Type"] == "application/xml"
            assert headers["Content-Length"] == str(len(body))


def test_harvest_lists_name_the_server_that_serves_them() -> None:
    with SampleNetwork() as network:
        status, _, body = get(network.list_url("alder-creek"))
        assert status == 200
        assert b"localhost:8000" not in body
        assert body.count(network.base_url.encode()) == 7
        for document in listed(network, "alder-creek"):
            assert get(document.url)[0] == 200


def test_the_night_can_be_changed_while_serving() -> None:
    with SampleNetwork() as network:
        first = get(f"{network.base_url}/alder-creek/discharge.xml")[2]
        network.night = 2
        assert get(f"{network.base_url}/alder-creek/discharge.xml")[2] == first
        network.night = 3
        third = get(f"{network.base_url}/alder-creek/discharge.xml")[2]
        assert third == (FOLDER / "night-3" / "alder-creek" / "discharge.xml").read_bytes()
        assert third != first


def test_what_is_not_there_gets_a_404() -> None:
    with SampleNetwork() as network:
        assert get(network.list_url("dune-lake"))[0] == 404
        assert get(f"{network.base_url}/basalt-flats/missing-on-server.xml")[0] == 404
        assert get(f"{network.base_url}/alder-creek/")[0] == 404
        with pytest.raises(FileNotFoundError, match="night 1"):
            network.file("basalt-flats/missing-on-server.xml")


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/%2e%2e/pyproject.toml", "/alder-creek/%00", "/" + "x" * 5000])
def test_nothing_outside_the_sample_network_is_served(path: str) -> None:
    with SampleNetwork() as network:
        assert get(network.base_url + path)[0] == 404


def test_a_page_in_place_of_a_document_comes_as_html_with_status_200() -> None:
    with SampleNetwork() as network:
        status, headers, body = get(f"{network.base_url}/basalt-flats/html-page.html")
    assert (status, headers["Content-Type"]) == (200, "text/html")
    assert b"<title>Basalt Flats - We have moved our data catalogue</title>" in body


def test_a_client_that_hangs_up_disturbs_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    with SampleNetwork() as network:
        parts = urlsplit(network.base_url)
        with socket.create_connection((parts.hostname, parts.port or 0)) as client:
            client.sendall(b"GET /alder-creek/rain.xml HT")
        assert get(network.list_url("alder-creek"))[0] == 200
    assert capfd.readouterr() == ("", "")


def test_no_server_is_left_behind() -> None:
    with SampleNetwork() as network:
        address = (urlsplit(network.base_url).hostname, urlsplit(network.base_url).port or 0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5).close()


def test_every_site_has_a_folder_but_the_one_whose_list_is_missing() -> None:
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()} - {"night-3"}
    assert folders == {site.name for site in (*SAMPLE_SITES, REPOSITORY, LIBRARY)} - {"dune-lake"}


def test_the_second_night_is_the_first_again_and_the_third_changes_four_sites() -> None:
    assert not (FOLDER / "night-2").exists()
    changed = {"alder-creek", "basalt-flats", "cedar-marsh", "gravel-bar"}
    assert {path.name for path in (FOLDER / "night-3").iterdir()} == changed


def test_every_file_is_listed_by_its_site() -> None:
    with SampleNetwork(night=3) as network:
        for site in SAMPLE_SITES:
            if site.name == "dune-lake":
                continue
            files = {path.name for path in FOLDER.glob(f"**/{site.name}/*")} - {"harvest-list.xml"}
            assert files == {name_of(document) for document in listed(network, site.name)}


def test_five_versions_of_eml_and_several_encodings_are_among_the_documents() -> None:
    with SampleNetwork(night=3) as network:
        documents = [d for site in SAMPLE_SITES if site.name != "dune-lake" for d in listed(network, site.name)]
        versions = {document.document_type.rpartition("-")[2] for document in documents}
        assert versions >= {"2.0.0", "2.0.1", "2.1.0", "2.1.1", "2.2.0"}
        litter = network.file("alder-creek/litter-breakdown.xml")
        assert "Große Aue".encode("latin-1") in litter
        assert b'encoding="ISO-8859-1"' in litter
        birds = network.file("alder-creek/river-birds.xml")
        assert birds.count(b"\r\n") == birds.count(b"\n") > 100
        assert network.file("alder-creek/rain.xml").startswith(b"\xef\xbb\xbf<?xml")
        assert not network.file("alder-creek/eels.xml").startswith(b"<?xml")


@pytest.mark.parametrize("night", [1, 3])
@pytest.mark.parametrize("site", ["alder-creek", "elm-ridge", "fern-gorge"])
def test_the_documents_of_good_sites_are_accepted_without_a_finding(
    validator: Validator, site: str, night: int
) -> None:
    with SampleNetwork(night) as network:
        assert {d.docid: findings(validator, network, d) for d in listed(network, site)} == {
            d.docid: [] for d in listed(network, site)
        }


def test_the_invalid_list_has_one_mistake_in_each_entry() -> None:
    with SampleNetwork() as network, pytest.raises(ListError) as caught:
        list(read_list(BytesIO(network.file("cedar-marsh/harvest-list.xml"))))
    assert [(finding.rule, finding.line) for finding in caught.value.findings] == [
        ("list.revision", 7),
        ("list.missing", 12),
        ("list.scope", 18),
        ("list.identifier", 28),
        ("list.missing", 34),
    ]


@pytest.mark.parametrize("night", [1, 3])
def test_all_other_lists_are_valid_in_whatever_spelling(night: int) -> None:
    lengths = {}
    with SampleNetwork(night) as network:
        for site in ("alder-creek", "basalt-flats", "elm-ridge", "fern-gorge"):
            read = list(read_list(BytesIO(network.file(f"{site}/harvest-list.xml"))))
            assert [(d.docid, d.url) for d in read] == [(d.docid, d.url) for d in listed(network, site)]
            lengths[site] = len(read)
    assert lengths == {"alder-creek": 7 if night == 1 else 8, "basalt-flats": 29, "elm-ridge": 2, "fern-gorge": 4}


def test_the_list_that_site_contacts_are_shown_as_an_example_is_valid() -> None:
    text = (Path(__file__).parents[2] / "docs" / "site-contacts.md").read_text(encoding="utf-8")
    example = re.search(r"```xml\n(<\?xml .*?)```", text, re.DOTALL)
    assert example is not None
    documents = list(read_list(BytesIO(example[1].encode())))
    assert [document.docid for document in documents] == ["ren-alder.1.2", "ren-alder.5.1"]
    assert documents[1].url == "https://www.example.org/eml/show?id=5&format=xml"


def test_the_repaired_list_names_good_documents(validator: Validator) -> None:
    with SampleNetwork(night=3) as network:
        documents = listed(network, "cedar-marsh")
        assert len(documents) == 5
        assert [findings(validator, network, document) for document in documents] == [[]] * 5


def test_each_bad_document_is_wrong_in_exactly_one_way(validator: Validator) -> None:
    with SampleNetwork() as network:
        documents = listed(network, "basalt-flats")
        unfetchable = {"missing-on-server.xml", *NOT_XML}
        found = {name_of(d): findings(validator, network, d) for d in documents if name_of(d) not in unfetchable}
    errors = {name: [(rule, Level.ERROR)] for name, rule in EXPECTED.items()}
    warnings = {name: [(rule, Level.WARNING)] for name, rule in EXPECTED_WARNINGS.items()}
    good: dict[str, list[tuple[str, Level]]] = {"pool-levels.xml": [], "fairy-shrimps.xml": [], "listed-twice.xml": []}
    assert found == {**errors, **warnings, **good}


def test_on_the_third_night_the_repaired_documents_are_good_and_the_others_as_bad_as_before(
    validator: Validator,
) -> None:
    with SampleNetwork(night=3) as network:
        checked = [d for d in listed(network, "basalt-flats") if name_of(d) not in NOT_XML]
        found = {name_of(d): [rule for rule, _ in findings(validator, network, d)] for d in checked}
    expected = {name: [rule] for name, rule in {**EXPECTED, **EXPECTED_WARNINGS}.items() if name not in REPAIRED}
    # The list of the third night names revision 1 of fairy-shrimps.xml, which still says that it is revision 2.
    expected["fairy-shrimps.xml"] = ["eml.package-id-mismatch"]
    assert found == {**{name: [] for name in found}, **expected}


def test_only_the_docid_that_is_meant_to_be_is_listed_twice() -> None:
    with SampleNetwork() as network:
        for site in ("alder-creek", "basalt-flats", "elm-ridge", "fern-gorge"):
            counts = Counter(document.docid for document in listed(network, site))
            twice = {docid for docid, number in counts.items() if number > 1}
            assert twice == ({"ren-basalt.27.1"} if site == "basalt-flats" else set())


def test_a_repaired_document_keeps_its_docid_only_where_that_never_got_in() -> None:
    """A docid never changes its content: what was inserted on the first night needs a higher revision to change."""
    with SampleNetwork() as network:
        inserted = {d.docid: network.file(urlsplit(d.url).path) for d in acceptable(network)}
        network.night = 3
        later = {d.docid: network.file(urlsplit(d.url).path) for d in acceptable(network)}
    for docid in inserted.keys() & later.keys():
        assert inserted[docid] == later[docid]


def acceptable(network: SampleNetwork) -> list[ListedDocument]:
    refused = {*EXPECTED, *NOT_XML, "missing-on-server.xml"}
    documents = [d for site in ("alder-creek", "basalt-flats", "fern-gorge") for d in listed(network, site)]
    return [document for document in documents if name_of(document) not in refused]


def test_the_network_can_be_served_again_and_again() -> None:
    for _ in range(3):
        with SampleNetwork() as network, urlopen(network.list_url("fern-gorge"), timeout=10) as response:
            assert response.status == 200
