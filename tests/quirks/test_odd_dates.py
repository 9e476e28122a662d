"""Datestamps, windows and clocks as repositories were seen to have them. The answers are made for the tests."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from metaharvest.errors import ListError
from metaharvest.model import Level
from support.oai_harvest import Harvested, harvest
from support.oai_quirks import ALL, error, repository
from support.oai_server import Asked, OaiServer, Odd, Record

Limits = Callable[[str, str], tuple[str, str]]


class OddWindows(OaiServer):
    """A repository that has its own idea of `from` and `until`."""

    limits: Limits = staticmethod(lambda begin, until: (begin, until))

    def _matching(self, wanted: Any) -> list[Record]:
        begin, until = self.limits(wanted.begin, wanted.until)
        return super()._matching(replace(wanted, begin=begin, until=until))


def two_nights(server: OaiServer, new: str = "oai:test:31") -> tuple[Harvested, Harvested]:
    """The first harvest, and another one after a record has come."""
    first = harvest(server.base_url)
    server.now += timedelta(days=1)
    server.put(new, server.now - timedelta(hours=1))
    return first, harvest(server.base_url, first.checkpoint)


def later(stamp: str, by: timedelta) -> str:
    return stamp and f"{datetime.strptime(stamp, '%Y-%m-%dT%H:%M:%SZ').replace(tzinfo=UTC) + by:%Y-%m-%dT%H:%M:%SZ}"


# `from` is ignored: https://github.com/inveniosoftware/invenio-app-rdm/issues/2153
# `from` is compared with local time, ten hours ahead: https://github.com/artefactual/atom/issues/893
@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (lambda begin, until: ("", until), "it ignores `from`"),
        (lambda begin, until: (later(begin, timedelta(hours=10)), until), "Lists of changes leave records out"),
    ],
    ids=["ignored", "later"],
)
def test_a_from_that_is_wrong_makes_every_harvest_a_full_one(limits: Limits, words: str) -> None:
    with OddWindows(30) as server:
        server.limits = limits
        first, second = two_nights(server)
        assert words in first.words("oai.from")
        assert set(second.good) == set(server.records)
        assert second.listing.is_complete


# `from` and `until` leave out their own day: https://github.com/ilri/DSpace/issues/63
def test_a_from_that_leaves_out_its_own_moment_is_covered_by_the_overlap() -> None:
    second = timedelta(seconds=1)
    with OddWindows(30) as server:
        server.limits = lambda begin, until: (later(begin, second), later(until, -second))
        first, again = two_nights(server)
        assert "it lists the record with a slightly earlier `from`" in first.words("oai.from")
        assert again.good == ["oai:test:31"]


# A page fails where windows are ignored: https://github.com/inveniosoftware/invenio-app-rdm/issues/2153
def test_where_windows_are_ignored_the_records_of_a_page_that_fails_are_asked_for_individually() -> None:
    with OddWindows(30) as server:
        server.limits = lambda begin, until: ("", "")
        server.poison.add("oai:test:17")
        found = harvest(server.base_url)
        assert sorted(found.good) == sorted(set(ALL) - {"oai:test:17"})
        assert [each.docid for each in found.findings if each.is_error] == ["oai:test:17"]


# `from` is refused: https://github.com/DSpace/xoai/pull/34
@pytest.mark.parametrize("seconds", [True, False])
def test_where_changes_since_a_date_are_refused_everything_is_listed(seconds: bool) -> None:
    refusal = b'<error code="badArgument">from: not supported</error>'
    with OaiServer(30, seconds=seconds) as repository:
        first = harvest(repository.base_url)
        repository.tamper = lambda body, asked: (
            re.sub(rb"<ListRecords>.*</ListRecords>", refusal, body, flags=re.DOTALL)
            if "from" in asked.arguments
            else body
        )
        for _ in range(2):
            repository.now += timedelta(days=1)
            repository.put("oai:test:31")
            again = harvest(repository.base_url, first.checkpoint)
            assert (again.broken, set(again.good)) == (None, set(repository.records))
            assert "all records were requested: The repository refuses ListRecords: badArgument" in again.words(
                "oai.error"
            )
            assert not any(finding.is_error for finding in again.findings)
            assert not again.listing.is_complete
            assert again.checkpoint
            assert again.checkpoint["watermark"] == f"{repository.now:%Y-%m-%dT%H:%M:%SZ}"
            first = again


# Another error than noRecordsMatch: https://github.com/LearningRegistry/LearningRegistry/issues/49
@pytest.mark.parametrize("code", ["cannotDisseminateFormat", "idDoesNotExist", "norecordsmatch", ""])
def test_where_no_changes_are_another_error_everything_is_listed(code: str) -> None:
    with repository(lambda asked: error(code, "Nothing") if "from" in asked.arguments else None) as server:
        again = harvest(server.base_url, harvest(server.base_url).checkpoint)
        assert (again.broken, sorted(again.good)) == (None, sorted(ALL))
        assert [(each.rule, each.level) for each in again.findings] == [("oai.error", Level.WARNING)]
        assert not again.listing.is_complete


def test_a_list_that_is_refused_with_and_without_a_date_is_broken_off() -> None:
    with repository(lambda asked: None) as server:
        first = harvest(server.base_url)
        server.tamper = lambda body, asked: error("idDoesNotExist") if asked.verb == "ListRecords" else body
        with pytest.raises(ListError, match="The repository refuses ListRecords: idDoesNotExist"):
            harvest(server.base_url, first.checkpoint)


# Seconds are advertised, and not understood: https://github.com/wimmuskee/shell-oaiharvester/issues/7
def test_seconds_that_are_refused_are_asked_for_as_days() -> None:
    with OaiServer(30) as repository:
        first = harvest(repository.base_url)
        repository.odd.add(Odd.NO_SECONDS)
        second = harvest(repository.base_url, first.checkpoint)
        assert "oai.granularity" in second.rules
        assert second.broken is None
        repository.forget()
        third = harvest(repository.base_url, second.checkpoint)
        assert third.rules == []
        assert [asked.arguments["from"] for asked in repository.asked("ListRecords")] == ["2026-11-19"]


# Local time is written with a Z: https://github.com/DSpace/DSpace/pull/825
@pytest.mark.parametrize(
    ("hours", "seconds", "words"),
    [
        (
            2,
            True,
            "shows 2026-11-20T05:00:00Z (responseDate), which is 2 hours ahead of that of its web server (Fri, 20 Nov",
        ),
        (
            -5,
            True,
            "shows 2026-11-19T22:00:00Z (responseDate), which is 5 hours behind that of its web server (Fri, 20 Nov",
        ),
        (14, False, "which is 14 hours ahead of that of its web server"),
        (0.25, True, "which is 15 minutes ahead of that of its web server"),
    ],
)
def test_what_changes_within_the_difference_of_two_clocks_is_not_lost(hours: float, seconds: bool, words: str) -> None:
    """Datestamps go by the clock of the web server; the difference is what it was at the last harvest."""
    with OaiServer(30, seconds=seconds) as repository:
        repository.ahead = timedelta(hours=hours)
        first = harvest(repository.base_url)
        assert words in first.words("oai.clock")
        repository.put("oai:test:31", repository.now + timedelta(seconds=1))
        repository.ahead = timedelta(0)
        repository.now += timedelta(days=20)
        repository.put("oai:test:32")
        second = harvest(repository.base_url, first.checkpoint)
        assert second.good[-2:] == ["oai:test:31", "oai:test:32"]
        assert len(second.good) < 32
        assert second.rules == []


# ... and corrected one day: https://github.com/DSpace/DSpace/pull/825
@pytest.mark.parametrize("seconds", [True, False])
def test_after_a_date_in_the_future_everything_is_listed_again_once(seconds: bool) -> None:
    with OaiServer(30, seconds=seconds) as repository:
        today, repository.now = repository.now, repository.now.replace(year=2036)
        first = harvest(repository.base_url, full_every=7)
        repository.now = today + timedelta(days=1)
        repository.put("oai:test:31")
        second = harvest(repository.base_url, first.checkpoint, full_every=7)
        assert second.listing.is_complete
        assert second.good == [*first.good, "oai:test:31"]
        assert [(finding.rule, finding.level) for finding in second.findings] == [("oai.clock", Level.WARNING)]
        assert second.checkpoint is not None
        assert (second.checkpoint["watermark"], second.checkpoint["full_at"]) == ("2026-11-21T03:00:00Z",) * 2
        third = harvest(repository.base_url, second.checkpoint, full_every=7)
        assert (third.good, third.rules) == (["oai:test:31"], [])


# A date without a zone: https://github.com/OpenWIS/openwis/issues/294
@pytest.mark.parametrize("date", ["2026-11-20T13:00:00", "2026-11-20"])
def test_a_response_date_without_a_zone_is_reported_and_covered_by_a_day(date: str) -> None:
    with OaiServer(30) as repository:
        utc, local = b"<responseDate>2026-11-20T03:00:00Z<", f"<responseDate>{date}<".encode()
        repository.tamper = lambda body, asked: body.replace(utc, local)
        first = harvest(repository.base_url)
        assert f"The repository's clock shows {date}, without a zone" in first.words("oai.protocol")
        assert len(first.good) == 30
        repository.put("oai:test:31", repository.now + timedelta(hours=2))
        second = harvest(repository.base_url, first.checkpoint)
        assert second.good == ["oai:test:31"]


# A date that is none: https://github.com/IISH/oai4solr/issues/11
def test_a_date_that_is_none_makes_every_harvest_a_full_one() -> None:
    with OaiServer(30) as server:
        server.tamper = lambda body, _: re.sub(rb"<responseDate>[^<]*", b"<responseDate>2026-01-0Z", body)
        first, second = two_nights(server)
        assert "2026-01-0Z" in first.words("oai.protocol")
        assert set(second.good) == set(server.records)


# Datestamps of before the last harvest: https://github.com/wellcomecollection/platform/issues/6426
def test_what_is_changed_with_a_datestamp_of_before_comes_with_the_next_full_list() -> None:
    with OaiServer(30) as server:
        first = harvest(server.base_url, full_every=30)
        server.put("oai:test:3", server.now - timedelta(days=200), title="Toads")
        server.now += timedelta(days=30)
        second = harvest(server.base_url, first.checkpoint, full_every=30)
        assert (sorted(second.good), second.listing.is_complete) == (sorted(ALL), True)


# A `from` before the first record is refused: https://github.com/IQSS/dataverse/issues/9309
def test_changes_are_not_asked_for_from_before_the_first_record() -> None:
    with OaiServer(page=100) as repository:
        repository.put("oai:test:1", repository.now - timedelta(minutes=2))
        earliest = b"<earliestDatestamp>2026-11-20T02:58:00Z</earliestDatestamp>"
        refused = b'<error code="badArgument">from is before the earliest datestamp</error>'

        def tamper(body: bytes, asked: Asked) -> bytes:
            body = re.sub(rb"<earliestDatestamp>.*</earliestDatestamp>", earliest, body)
            if asked.arguments.get("from", "9") < "2026-11-20T02:58:00Z":
                return re.sub(rb"<ListRecords>.*</ListRecords>", refused, body, flags=re.DOTALL)
            return body

        repository.tamper = tamper
        first = harvest(repository.base_url)
        repository.now += timedelta(days=1)
        repository.put("oai:test:2")
        second = harvest(repository.base_url, first.checkpoint)
        assert (second.broken, second.good) == (None, ["oai:test:1", "oai:test:2"])


# From days to seconds: https://github.com/DOAJ/doaj/issues/507
def test_a_change_of_the_day_before_datestamps_had_seconds_is_not_lost() -> None:
    with OaiServer(30, seconds=False) as server:
        first = harvest(server.base_url)
        server.put("oai:test:31", server.now.replace(hour=0))
        server.now += timedelta(days=1)
        server.seconds = True
        second = harvest(server.base_url, first.checkpoint)
        assert second.good == ["oai:test:31"]
        server.now += timedelta(days=1)
        assert harvest(server.base_url, second.checkpoint).good == []


# Identifiers get another beginning, and keep their datestamps: https://github.com/EUDAT-B2SHARE/b2share/issues/628
def test_after_all_identifiers_have_changed_everything_is_listed_once() -> None:
    def described(name: str) -> bytes:
        scheme = '<oai-identifier xmlns="http://www.openarchives.org/OAI/2.0/oai-identifier"><scheme>oai</scheme>'
        identifier = f"{scheme}<repositoryIdentifier>{name}</repositoryIdentifier></oai-identifier>"
        return f"<description>{identifier if name else ''}</description></Identify>".encode()

    checkpoint, found, shown = None, [], [""]
    with OaiServer(30) as server:
        server.tamper = lambda body, _asked: body.replace(b"</Identify>", described(shown[0]))
        for name in ("old.example.org", "new.example.org", "new.example.org", "", "new.example.org"):
            shown[0] = name
            server.now += timedelta(days=1)
            found.append(harvest(server.base_url, checkpoint))
            checkpoint = found[-1].checkpoint
    assert [len(each.good) for each in found] == [30, 30, 0, 0, 0]
    assert [each.rules for each in found] == [[], ["oai.repository-changed"], [], [], []]
    assert "it was 'old.example.org', now it is 'new.example.org'" in found[1].words("oai.repository-changed")
