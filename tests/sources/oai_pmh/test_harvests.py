"""Harvests of repositories that keep to the protocol, in all its versions, one after the other."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network

import pytest
from lxml import etree

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, ListError
from metaharvest.fetch.client import Fetcher
from metaharvest.model import Finding, Level, ListMethod
from metaharvest.sources.oai_pmh.source import OaiSource
from support.oai_harvest import HTTP, Patient, get, harvest, site_of
from support.oai_server import DC, Asked, OaiServer, Odd, dublin_core

ALL = [f"oai:test:{number}" for number in range(1, 31)]
DAY = timedelta(days=1)
VERSIONS = ["2.0", "1.1", "1.0"]


# -- what a record becomes


def test_a_record_comes_with_its_name_its_address_its_content_and_its_origin() -> None:
    with OaiServer() as repository:
        repository.sets = {"frogs": "Frogs", "frogs:tree": "Tree frogs"}
        about = '<provenance xmlns="http://www.openarchives.org/OAI/2.0/provenance"/>'
        stamp = datetime(2026, 3, 1, 12, tzinfo=UTC)
        repository.put("oai:test:a/b c?d", stamp, sets=("frogs:tree",), about=about, title="Tree frogs & others")
        record = harvest(repository.base_url, origin="here").records[0]
        document, origin = record.document, record.document.origin
        assert origin is not None
        assert document.document_id == "here/oai_dc/oai:test:a/b%20c?d"
        assert document.revision == 0
        assert document.document_type == DC
        assert document.url == (
            f"{repository.base_url}?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai%3Atest%3Aa%2Fb%20c%3Fd"
        )
        assert (origin.base_url, origin.identifier, origin.prefix) == (
            repository.base_url,
            "oai:test:a/b c?d",
            "oai_dc",
        )
        assert (origin.datestamp, origin.response_date) == ("2026-03-01T12:00:00Z", "2026-11-20T03:00:00Z")
        assert (origin.sets, origin.namespace) == (("frogs:tree",), DC)
        assert etree.fromstring(origin.about[0]).tag == "{http://www.openarchives.org/OAI/2.0/provenance}provenance"
        assert record.content is not None
        root = etree.fromstring(record.content)
        assert root.tag == f"{{{DC}}}dc"
        assert "Tree frogs & others" in "".join(str(text) for text in root.itertext())
        canonical = etree.tostring(etree.fromstring(dublin_core("Tree frogs & others")), method="c14n", exclusive=True)
        assert origin.digest == hashlib.sha256(canonical).hexdigest()


def test_prefixes_that_only_values_use_stay_declared() -> None:
    with OaiServer() as repository:
        metadata = '<r xmlns="urn:r" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="t:Kind"/>'
        repository.put("oai:test:1", metadata=metadata)
        repository.tamper = lambda body, asked: body.replace(b"<OAI-PMH ", b'<OAI-PMH xmlns:t="urn:t" ')
        content = harvest(repository.base_url).records[0].content
        assert content is not None
        assert etree.fromstring(content).nsmap["t"] == "urn:t"


def test_the_same_content_with_other_prefixes_around_it_has_the_same_digest() -> None:
    with OaiServer(1) as repository:
        first = harvest(repository.base_url).records[0].document.origin
        repository.tamper = lambda body, asked: body.replace(b"<OAI-PMH ", b'<OAI-PMH xmlns:t="urn:t" ')
        second = harvest(repository.base_url).records[0].document.origin
        assert first is not None
        assert second is not None
        assert first.digest == second.digest


def test_an_element_with_very_many_attributes_has_the_digest_of_its_bytes() -> None:
    with OaiServer(1) as repository:
        attributes = " ".join(f'a{number}="{number}"' for number in range(10_000))
        repository.put("oai:test:1", metadata=f'<r xmlns="urn:r" {attributes}/>')
        record = harvest(repository.base_url).records[0]
        assert record.content is not None
        assert record.document.origin is not None
        assert record.document.origin.digest == hashlib.sha256(record.content).hexdigest()


@pytest.mark.slow
def test_an_answer_with_a_thousand_long_records_is_read_as_many_short_ones_are() -> None:
    found = []
    for page in (10, 1000):
        with OaiServer(1000, page=page) as repository:
            for each in repository.records.values():
                each.title = "Frogs " * 300
            found.append(harvest(repository.base_url))
    short, long = found
    assert len(long.good) == 1000
    assert [each.content for each in long.records] == [each.content for each in short.records]
    assert long.identifiers == short.identifiers


def test_an_identifier_that_is_too_long_is_an_error_of_its_own() -> None:
    with OaiServer(3) as repository:
        repository.put("oai:test:" + "x" * 900, datetime(2026, 1, 2, tzinfo=UTC))
        found = harvest(repository.base_url)
        assert found.good == ALL[:3]
        assert found.rules == ["oai.identifier"]
        assert max(len(record.document.document_id) for record in found.records) <= 800


def test_names_that_are_not_ascii_are_percent_encoded() -> None:
    with OaiServer() as repository:
        repository.put("oai:test:größe%3F")
        document = harvest(repository.base_url).records[0].document
        assert document.document_id == "test/oai_dc/oai:test:gr%C3%B6%C3%9Fe%253F"
        assert get(repository.base_url, document).content


def test_user_name_and_password_of_the_base_url_stay_ours() -> None:
    with OaiServer(1) as repository:
        url = repository.base_url.replace("://", "://user:secret@")
        found = harvest(url)
        assert "secret" not in repr(found.records)
        assert "secret" not in repr(found.checkpoint)
        assert repository.http.requests[-1].headers["authorization"].startswith("Basic ")


# -- the versions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ListMethod)
def test_every_version_is_harvested_by_both_methods(version: str, method: ListMethod) -> None:
    with OaiServer(30, version=version) as repository:
        repository.delete("oai:test:4")
        found = harvest(repository.base_url, method=method)
        assert sorted(found.good) == sorted(set(ALL) - {"oai:test:4"})
        assert found.deleted == ["oai:test:4"]
        assert found.findings == []
        assert found.listing.is_complete
        if method is ListMethod.LIST_IDENTIFIERS:
            assert len(repository.asked("GetRecord")) == 29
            assert repository.asked("ListRecords") == []


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_header_alone_means_in_1_x_that_the_record_is_not_in_this_format(version: str) -> None:
    with OaiServer(3, version=version) as repository:
        repository.records["oai:test:2"].xml = b"<record><header><identifier>oai:test:2</identifier></header></record>"
        found = harvest(repository.base_url)
        assert found.good == ["oai:test:1", "oai:test:3"]
        assert found.deleted == []
        assert [(finding.rule, finding.level) for finding in found.findings] == [("oai.no-metadata", Level.WARNING)]


def test_many_pages_of_headers_alone_in_a_row_are_no_end_of_a_1_x_list() -> None:
    with OaiServer(160, version="1.1") as repository:
        for number in range(20, 146):
            identifier = f"oai:test:{number}"
            header = f"<header><identifier>{identifier}</identifier></header>"
            repository.records[identifier].xml = f"<record>{header}</record>".encode()
        found = harvest(repository.base_url)
        assert (len(found.good), found.broken) == (34, None)
        assert "126 of the list's records do not exist in this format" in found.words("oai.no-metadata")


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_an_identifier_of_which_1_x_has_no_record_is_counted_as_not_in_this_format(version: str) -> None:
    with OaiServer(6, version=version) as repository:
        repository.unknown.add("oai:test:3")
        header = b"<record><header><identifier>oai:test:5</identifier></header></record>"
        repository.records["oai:test:5"].xml = header
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert (len(found.good), found.broken) == (4, None)
        assert "2 of the list's records do not exist in this format, such as oai:test:" in found.words(
            "oai.no-metadata"
        )


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_1_x_is_asked_for_days_with_a_day_of_overlap(version: str) -> None:
    with OaiServer(30, version=version) as repository:
        first = harvest(repository.base_url)
        repository.now += DAY
        repository.put("oai:test:31")
        repository.forget()
        second = harvest(repository.base_url, first.checkpoint)
        assert second.good == ["oai:test:31"]
        assert [asked.arguments["from"] for asked in repository.asked("ListRecords")] == ["2026-11-19"]
        assert not second.listing.is_complete


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_token_that_a_1_x_repository_refuses_begins_the_list_again(version: str) -> None:
    with OaiServer(30, version=version) as repository:
        repository.odd.add(Odd.TOKEN_EXPIRES_ONCE)
        found = harvest(repository.base_url)
        assert sorted(found.good) == sorted(ALL)
        assert found.broken is None


# -- one harvest after the other


@pytest.mark.parametrize(("seconds", "since"), [(True, "2026-11-20T02:55:00Z"), (False, "2026-11-19")])
def test_the_next_harvest_asks_for_changes_with_an_overlap_by_the_repositorys_clock(seconds: bool, since: str) -> None:
    with OaiServer(30, seconds=seconds) as repository:
        first = harvest(repository.base_url)
        assert first.listing.is_complete
        repository.forget()
        repository.put("oai:test:5", title="Toads")
        repository.delete("oai:test:6")
        second = harvest(repository.base_url, first.checkpoint)
        assert (second.good, second.deleted) == (["oai:test:5"], ["oai:test:6"])
        assert not second.listing.is_complete
        assert [asked.arguments["from"] for asked in repository.asked("ListRecords")] == [since]


def test_nothing_new_is_an_empty_harvest_that_moves_on() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url)
        repository.now += DAY
        second = harvest(repository.base_url, first.checkpoint)
        assert (second.records, second.findings, second.broken) == ([], [], None)
        assert second.checkpoint is not None
        assert second.checkpoint["watermark"] == "2026-11-21T03:00:00Z"


def test_an_empty_repository_says_nothing_about_what_is_missing() -> None:
    with OaiServer() as repository:
        found = harvest(repository.base_url)
        assert found.records == []
        assert not found.listing.is_complete


def test_everything_is_listed_again_when_asked_for_and_every_so_many_days() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, full_every=7)
        assert harvest(repository.base_url, first.checkpoint, full=True).listing.is_complete
        repository.now += 6 * DAY
        second = harvest(repository.base_url, first.checkpoint, full_every=7)
        assert not second.listing.is_complete
        repository.now += DAY
        third = harvest(repository.base_url, second.checkpoint, full_every=7)
        assert third.listing.is_complete
        assert third.good == first.good
        repository.now += DAY
        assert not harvest(repository.base_url, third.checkpoint, full_every=7).listing.is_complete


def test_everything_is_listed_again_though_the_night_begins_a_few_seconds_sooner_than_the_last_one() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, full_every=7)
        repository.now += 7 * DAY - timedelta(seconds=2)
        assert harvest(repository.base_url, first.checkpoint, full_every=7).listing.is_complete


def test_changes_that_never_come_to_their_end_give_way_to_the_full_list_that_is_due() -> None:
    """The repository announces all of its records, whatever it is asked for."""
    with OaiServer(30, page=100) as repository:
        checkpoint = harvest(repository.base_url, full_every=2).checkpoint
        repository.now += DAY
        repository.put("oai:test:1", title="Toads")
        token = b'<resumptionToken completeListSize="30"/></List'
        repository.tamper = lambda body, asked: body.replace(b"</List", token) if "from" in asked.arguments else body
        found = harvest(repository.base_url, checkpoint, full_every=2)
        assert found.broken is not None
        repository.now += DAY
        again = harvest(repository.base_url, found.checkpoint, full_every=2)
        assert again.broken is None
        assert again.listing.is_complete


@pytest.mark.parametrize("status", [b"Deleted", b" DELETED "])
def test_a_deletion_may_be_written_in_capitals(status: bytes) -> None:
    with OaiServer(3) as repository:
        repository.delete("oai:test:1")
        repository.tamper = lambda body, asked: body.replace(b'status="deleted"', b'status="%b"' % status)
        assert harvest(repository.base_url).deleted == ["oai:test:1"]
        assert harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS).deleted == ["oai:test:1"]


def test_a_clock_that_goes_back_by_a_little_is_covered_by_the_overlap() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url)
        repository.now -= timedelta(minutes=4)
        second = harvest(repository.base_url, first.checkpoint)
        assert (second.good, second.rules) == ([], [])


def test_what_clocks_differ_by_is_kept_where_the_list_goes_on_another_night() -> None:
    with OaiServer(30) as repository:
        repository.ahead = timedelta(hours=2)
        first = harvest(repository.base_url, most_pages=1)
        repository.put("oai:test:31", repository.now + timedelta(seconds=1))
        repository.delete("oai:test:31")
        repository.ahead = timedelta(0)
        repository.now += DAY
        second = harvest(repository.base_url, first.checkpoint)
        assert second.good == ALL[10:]
        assert harvest(repository.base_url, second.checkpoint).deleted == ["oai:test:31"]


@pytest.mark.parametrize(
    "ahead", [timedelta(minutes=-5), timedelta(minutes=5), timedelta(hours=-2, minutes=-20), timedelta(days=-2)]
)
def test_a_clock_that_is_behind_is_reported_if_it_may_be_that_of_a_time_zone(ahead: timedelta) -> None:
    """Nothing is left out for it; the date may be that of an answer which a proxy has kept."""
    with OaiServer(30) as repository:
        repository.ahead = ahead
        assert harvest(repository.base_url).rules == []


def test_a_web_server_that_shows_no_clock_is_not_compared_with() -> None:
    with OaiServer(30) as repository:
        repository.now, repository.ahead = datetime.now(UTC), timedelta(hours=3)
        repository.http.clock = None
        assert harvest(repository.base_url).rules == []


@pytest.mark.parametrize("changed", [{"begin": "2026-01-02"}, {"set_spec": "a"}, {"prefix": "other"}])
def test_everything_is_listed_again_when_something_else_is_asked_for(changed: dict[str, object]) -> None:
    with OaiServer(30) as repository:
        repository.sets = {"a": "A"}
        repository.formats["other"] = "urn:other"
        repository.put("oai:test:1", sets=("a",))
        first = harvest(repository.base_url)
        second = harvest(repository.base_url, first.checkpoint, **changed)  # type: ignore[arg-type]
        assert second.listing.is_complete
        assert "oai:test:1" in second.good


def test_the_sites_own_window_is_kept() -> None:
    with OaiServer(30) as repository:
        window = {"begin": "2026-01-05", "until": "2026-01-10"}
        first = harvest(repository.base_url, **window)  # type: ignore[arg-type]
        assert first.good == ALL[4:10]
        assert not first.listing.is_complete  # a record that changes leaves the window
        repository.forget()
        second = harvest(repository.base_url, first.checkpoint, **window)  # type: ignore[arg-type]
        assert (second.records, second.broken) == ([], None)
        assert repository.asked("ListRecords") == []  # nothing can be new before a day that has passed


# -- sets and formats


def test_a_set_has_the_records_of_those_below_it() -> None:
    with OaiServer(6) as repository:
        repository.sets = {"a": "A", "a:b": "A, B", "c": "C"}
        for number, sets in enumerate([("a",), ("a:b",), ("c",), ("a:b", "c"), (), ("c",)], start=1):
            repository.records[f"oai:test:{number}"].sets = sets
        found = harvest(repository.base_url, set_spec="a")
        assert sorted(found.identifiers) == [f"oai:test:{number}" for number in (1, 2, 4)]
        assert found.findings == []
        assert [asked.arguments["set"] for asked in repository.asked("ListRecords")] == ["a"]


def test_sets_and_formats_that_are_not_there_are_reported_with_those_that_are() -> None:
    with OaiServer(3) as repository:
        repository.sets = {"frogs": "Frogs", "toads": "Toads"}
        with pytest.raises(ListError) as caught:
            harvest(repository.base_url, set_spec="thesis", prefix="eml")
        said = [finding.message for finding in caught.value.findings]
        assert said == [
            "The repository has no metadata format 'eml'; there are 'oai_dc'.",
            "The repository has no set 'thesis'; there are 'frogs', 'toads'.",
        ]
        assert repository.asked("ListRecords") == []


def test_a_repository_that_has_changed_is_a_warning_that_says_how() -> None:
    with OaiServer(3) as repository:
        repository.sets = {"frogs": "Frogs"}
        repository.records["oai:test:1"].sets = ("frogs",)
        first = harvest(repository.base_url, set_spec="frogs")
        repository.name, repository.deleted, repository.seconds = "Another", "no", False
        repository.formats["marc"] = "urn:marc"
        repository.sets = {"frogs": "Frogs", "toads": "Toads"}
        second = harvest(repository.base_url, first.checkpoint, set_spec="frogs")
        words = second.words("oai.repository-changed")
        assert "it was 'Test repository', now it is 'Another'" in words
        assert "it was 'persistent', now it is 'no'" in words
        assert "it was 'YYYY-MM-DDThh:mm:ssZ', now it is 'YYYY-MM-DD'" in words
        assert "new: marc/urn:marcmarc.xsd/urn:marc" in words
        assert "list of sets changed since its last harvest: new: toads" in words
        assert harvest(repository.base_url, second.checkpoint, set_spec="frogs").rules == []


def test_sets_that_changed_are_reported_also_where_the_site_names_none() -> None:
    with OaiServer(3) as repository:
        first = harvest(repository.base_url)
        repository.sets = {"frogs": "Frogs"}
        second = harvest(repository.base_url, first.checkpoint)
        assert "list of sets changed since its last harvest: new: frogs" in second.words("oai.repository-changed")
        # Where they cannot be fetched at once they are not compared: it would cost more than one request a night.
        repository.sets = {"toads": "Toads"}
        for answer in (b"<html/>", b""):
            repository.tamper = lambda body, asked, answer=answer: answer if asked.verb == "ListSets" else body
            third = harvest(repository.base_url, second.checkpoint)
            assert third.rules == []
        token = b"<resumptionToken>more</resumptionToken></ListSets>"
        repository.tamper = lambda body, asked: body.replace(b"</ListSets>", token)
        repository.forget()
        fourth = harvest(repository.base_url, third.checkpoint)
        assert (fourth.rules, len(repository.asked("ListSets"))) == ([], 1)
        repository.tamper = None
        words = harvest(repository.base_url, fourth.checkpoint).words("oai.repository-changed")
        assert "new: toads; gone: frogs" in words


# -- tokens, crashes, stops


@pytest.mark.parametrize("pages", [1, 2, 3])
def test_a_harvest_that_died_goes_on_from_its_token(pages: int) -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, most_pages=pages)
        repository.now += DAY
        second = harvest(repository.base_url, first.checkpoint)
        assert first.good + second.good == ALL
        assert second.listing.goes_on
        assert second.broken is None
        assert second.checkpoint is not None
        assert second.checkpoint["watermark"] == "2026-11-20T03:00:00Z"  # of the list's first answer


def test_a_full_list_that_is_asked_for_begins_at_the_beginning_unless_the_run_is_resumed() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, most_pages=2)
        again = harvest(repository.base_url, first.checkpoint, full=True)
        assert (again.good, again.listing.goes_on, again.listing.is_complete) == (ALL, False, True)
        resumed = harvest(repository.base_url, first.checkpoint, full=True, resumed=True)
        assert (resumed.good, resumed.listing.goes_on, resumed.listing.is_complete) == (ALL[20:], True, True)


def test_a_stored_token_that_is_refused_begins_the_window_again() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, most_pages=1)
        repository.odd.add(Odd.TOKEN_EXPIRES_ONCE)
        second = harvest(repository.base_url, first.checkpoint)
        assert second.good == ALL
        assert not second.listing.goes_on
        assert second.listing.is_complete


@pytest.mark.parametrize("size", [b' completeListSize="40"', b""])
def test_a_stored_token_that_finds_nothing_any_more_is_not_the_end_of_the_list(size: bytes) -> None:
    with OaiServer(40) as repository:
        repository.records["oai:test:3"].xml = b"<record><header/><metadata><a/></metadata></record>"
        repository.tamper = lambda body, asked: body.replace(b' completeListSize="40"', size)
        first = harvest(repository.base_url, most_pages=2)
        forgotten = '<error code="noRecordsMatch"/>'
        repository.tamper = lambda body, asked: (
            re.sub(rb"<ListRecords>.*</ListRecords>", forgotten.encode(), body, flags=re.DOTALL)
            if len(repository.asked("ListRecords")) == 3
            else body.replace(b' completeListSize="40"', size)
        )
        second = harvest(repository.base_url, first.checkpoint)
        assert (second.broken, len(second.good)) == (None, 39)
        assert [finding.message[:38] for finding in second.findings] == ["1 of the list's records have no identi"]


def test_a_stored_token_that_has_expired_is_not_sent() -> None:
    with OaiServer(30) as repository:
        repository.expires = "2026-11-20T04:00:00Z"
        repository.records["oai:test:3"].xml = b"<record><header/><metadata><a/></metadata></record>"
        first = harvest(repository.base_url, most_pages=1)
        repository.now += DAY
        repository.forget()
        second = harvest(repository.base_url, first.checkpoint)
        assert second.good == [each for each in ALL if each != "oai:test:3"]
        assert "1 of the list's records" in second.words("oai.identifier")
        assert "resumptionToken" not in repository.asked("ListRecords")[0].arguments


@pytest.mark.parametrize("pages", [1, 2])
def test_what_was_odd_before_a_harvest_died_is_reported_at_the_end_of_its_list(pages: int) -> None:
    """At the end of the list there is an error; both of its pages have a record that cannot be named."""
    refusal = b'<error code="noRecordsMatch"/>'
    with OaiServer(21) as repository:
        for number in (3, 13):
            repository.records[f"oai:test:{number}"].xml = b"<record><header/><metadata><a/></metadata></record>"
        repository.tamper = lambda body, asked: (
            re.sub(rb"<ListRecords>.*</ListRecords>", refusal, body, flags=re.DOTALL)
            if "!20!" in str(asked.arguments)
            else re.sub(rb' completeListSize="\d+"', b"", body)
        )
        first = harvest(repository.base_url, most_pages=pages)
        second = harvest(repository.base_url, first.checkpoint)
        assert second.broken is None
        assert len({*first.good, *second.good}) == 18
        assert "2 of the list's records have no identifier" in second.words("oai.identifier")
        assert "ended in an error: noRecordsMatch. 20 records had come" in second.words("oai.token")
        assert second.checkpoint is not None
        assert second.checkpoint["sweep"] is None


def test_a_signal_ends_the_list_between_two_pages_and_the_next_harvest_goes_on() -> None:
    stop = Finding("harvest.stopped", "The run was stopped before its end.", level=Level.WARNING)
    with OaiServer(30) as repository:
        first = harvest(repository.base_url, patience=Patient(stop, 2))
        assert first.good == ALL[:20]
        assert "after 20 of 30 records: The run was stopped" in str(first.broken)
        assert harvest(repository.base_url, first.checkpoint).good == ALL[20:]


def test_a_checkpoint_that_cannot_be_read_is_none() -> None:
    with OaiServer(3) as repository:
        found = harvest(repository.base_url)
        assert found.checkpoint is not None
        broken = {**found.checkpoint, "sweep": {"what": 1}}
        assert harvest(repository.base_url, broken).listing.is_complete


# -- large answers, forms, turns


def test_a_large_answer_comes_in_pages_of_200_of_which_the_last_has_the_checkpoint() -> None:
    with OaiServer(950, page=500) as repository:
        pages = harvest(repository.base_url).pages
        assert [len(page.records) for page in pages] == [200, 200, 100, 200, 200, 50, 0]
        assert [page.checkpoint is not None for page in pages] == [False, False, True, False, False, True, True]
        assert [page.announced for page in pages[2:6]] == [950] * 4


@pytest.mark.slow
def test_large_records_come_few_at_a_time() -> None:
    with OaiServer(20, page=20) as repository:
        for record in repository.records.values():
            record.metadata = "<a>" + "x" * 1_500_000 + "</a>"
        pages = harvest(repository.base_url).pages
        assert [len(page.records) for page in pages] == [6, 6, 6, 2, 0]
        assert [page.checkpoint is not None for page in pages] == [False, False, False, True, True]


def test_questions_are_sent_as_forms_where_options_say_so_and_after_a_redirect_too() -> None:
    with OaiServer(30) as repository:
        repository.odd.add(Odd.REDIRECTED)
        assert harvest(repository.base_url, post=True).good == ALL
        assert {asked.method for asked in repository.answered} == {"POST"}


def test_a_token_that_is_too_long_for_a_url_is_sent_as_a_form() -> None:
    with OaiServer(30) as repository:
        long = "é" * 1000  # of which each is six characters of a URL
        repository.sets = {long: "Long"}
        for record in repository.records.values():
            record.sets = (long,)
        assert harvest(repository.base_url, set_spec=long).good == ALL
        about = ["Identify", "ListMetadataFormats", "ListSets"]
        asked = [(each.verb, each.method) for each in repository.answered if each.verb != "ListIdentifiers"]
        assert asked == [*((verb, "GET") for verb in about), *[("ListRecords", "POST")] * 3]


def test_a_base_url_with_a_query_keeps_it() -> None:
    with OaiServer(30) as repository:
        found = harvest(f"{repository.base_url}?context=1")
        assert found.good == ALL
        assert all("context=1&verb=" in request.path for request in repository.http.requests if "verb" in request.path)
        assert "?context=1&verb=GetRecord&" in found.records[0].document.url


@pytest.mark.parametrize("path", ["/oai", "/oai/", "/moved"])
def test_two_sites_of_a_repository_ask_for_one_list_at_a_time(path: str) -> None:
    with OaiServer(30) as repository:
        repository.formats["other"] = "urn:other"
        at_once: list[int] = []
        under_way = 0
        other = repository.http.url(path)
        repository.odd |= {Odd.REDIRECTED} if path == "/moved" else set()
        repository.http.route("/oai/", repository._answer)

        def slowly(body: bytes, asked: Asked) -> bytes:
            nonlocal under_way
            if asked.verb == "Identify":  # until it has answered, nobody knows where it leads
                return body
            under_way += 1
            at_once.append(under_way)
            repository.http._closing.wait(0.02)
            under_way -= 1
            return body

        repository.tamper = slowly

        async def both() -> tuple[int, ...]:
            async with Fetcher(HTTP, name="Test", administrator=None) as fetcher:

                async def one(base_url: str, prefix: str) -> int:
                    source = OaiSource(site_of(base_url, prefix=prefix), fetcher)
                    listing = await source.list_records(None, Patient(), full=False)
                    return sum([len(page.records) async for page in listing.pages])

                return tuple(await asyncio.gather(one(repository.base_url, "oai_dc"), one(other, "other")))

        assert list(asyncio.run(both())) == [30, 30]
        assert max(at_once) == 1


# -- single records


def test_a_record_by_itself_comes_with_its_new_origin() -> None:
    with OaiServer(3) as repository:
        document = harvest(repository.base_url).records[0].document
        repository.put("oai:test:1", title="Toads")
        fetched = get(repository.base_url, replace(document, revision=4))
        assert b"Toads" in fetched.content
        assert fetched.sha256 == hashlib.sha256(fetched.content).hexdigest()
        assert (fetched.document.document_id, fetched.document.revision) == (document.document_id, 4)
        assert fetched.document.origin is not None
        assert fetched.document.origin.datestamp == "2026-11-20T03:00:00Z"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("status", [set(), {Odd.STATUS_OF_ERRORS}])
def test_a_record_that_is_gone_is_said_in_a_sentence(version: str, status: set[Odd]) -> None:
    with OaiServer(3, version=version) as repository:
        documents = [record.document for record in harvest(repository.base_url).records]
        repository.odd |= status
        repository.delete("oai:test:1")
        del repository.records["oai:test:2"]
        with pytest.raises(FetchError, match=r"record oai:test:1 is deleted"):
            get(repository.base_url, documents[0])
        with pytest.raises(FetchError, match="oai:test:2") as caught:
            get(repository.base_url, documents[1])
        assert not caught.value.transient


def test_a_record_that_only_get_record_cannot_give_is_an_error_of_its_own() -> None:
    with OaiServer(30) as repository:
        repository.unreadable.add("oai:test:9")
        found = harvest(repository.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert len(found.good) == 29
        assert [(finding.rule, finding.docid) for finding in found.findings] == [("oai.record-failed", "oai:test:9")]


# -- robots.txt


@pytest.mark.parametrize(("rules", "warned"), [("Disallow: /oai", 1), ("Disallow: /other", 0), ("", 0)])
def test_a_robots_txt_that_forbids_it_is_a_warning(rules: str, warned: int) -> None:
    with OaiServer(3) as repository:
        repository.http.serve("/robots.txt", f"User-agent: *\n{rules}\n".encode())
        found = harvest(repository.base_url)
        assert len(found.good) == 3
        assert [(finding.rule, finding.level) for finding in found.findings] == [
            ("http.robots", Level.WARNING)
        ] * warned


def test_a_robots_txt_binds_where_the_settings_say_so() -> None:
    http = HttpSettings(allow_networks=(ip_network("127.0.0.0/8"),), obey_robots=True)
    with OaiServer(3) as repository:
        repository.http.serve("/robots.txt", b"User-agent: metaharvest\nDisallow: /\n")
        with pytest.raises(FetchError, match=r"robots\.txt") as caught:
            harvest(repository.base_url, http=http)
        assert caught.value.findings[0].rule == "http.robots"
        assert repository.answered == []
        repository.http.serve("/robots.txt", b"User-agent: *\nDisallow: /\n\nUser-agent: metaharvest\nAllow: /\n")
        assert len(harvest(repository.base_url, http=http).good) == 3


@pytest.mark.parametrize("body", [b"<html>not found</html>", b"\xff\xfe\0", b""])
def test_a_robots_txt_that_is_none_forbids_nothing(body: bytes) -> None:
    with OaiServer(3) as repository:
        repository.http.serve("/robots.txt", body)
        assert harvest(repository.base_url).findings == []
