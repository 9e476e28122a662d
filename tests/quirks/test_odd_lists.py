"""Lists and tokens as repositories were seen to send them. The answers are made for the tests."""

from __future__ import annotations

import pytest

from metaharvest.errors import FetchError
from metaharvest.model import Level, ListMethod
from support.oai_harvest import HTTP, harvest
from support.oai_quirks import ALL, END, START, error, in_page, page, repository
from support.oai_server import HTML, Asked, OaiServer, Odd


def numbers(first: int) -> range:
    """The records of the page that begins with this one."""
    return range(first, first + 10)


# Each page has the token that led to it: https://github.com/afuetterer/oaipmh-scythe/issues/411
# Each token leads to the same records: https://github.com/coneda/kor/issues/55
def test_a_token_that_leads_to_the_same_page_ends_the_list() -> None:
    same = page(numbers(1), b'<resumptionToken completeListSize="30">again!!!!0!0</resumptionToken>')
    with repository(lambda asked: same if asked.verb == "ListRecords" else None) as server:
        found = harvest(server.base_url)
        assert found.good == ALL[:10]
        assert "after 10 of 30 records: The repository gives the same resumption token again" in str(found.broken)
        server.tamper = None
        again = harvest(server.base_url, found.checkpoint)
        assert (sorted(again.good), again.broken) == (sorted(ALL), None)


# A token without metadataPrefix is refused: https://github.com/geopython/pycsw/issues/317
# The token of the last page is 0, and leads to the first page: https://github.com/geopython/pycsw/pull/966
def test_a_token_is_sent_with_the_prefix_if_it_is_refused_alone_and_0_ends_the_list() -> None:
    def pycsw(asked: Asked) -> bytes | None:
        if asked.verb != "ListRecords":
            return None
        if "metadataPrefix" not in asked.arguments:
            return error("badArgument", "Missing metadataPrefix parameter")
        if "from" in asked.arguments:
            return page((), b'<resumptionToken completeListSize="0" cursor="-1">0</resumptionToken>')
        first = int(asked.arguments.get("resumptionToken", "1"))
        token = f'<resumptionToken completeListSize="30">{first + 10 if first < 21 else 0}</resumptionToken>'
        return page(numbers(first), token.encode())

    with repository(pycsw) as server:
        found = harvest(server.base_url)
        assert (found.good, found.broken, found.listing.is_complete) == (ALL, None, True)
        assert [(each.rule, each.level) for each in found.findings] == [("oai.token", Level.WARNING)]
        assert "refuses a resumption token without metadataPrefix" in found.findings[0].message
        again = harvest(server.base_url, found.checkpoint)
        assert (again.good, again.broken) == ([], None)
        sent = [asked.arguments.get("resumptionToken") for asked in server.answered if asked.verb == "ListRecords"]
        assert sent[:4] == [None, "11", "11", "21"]


# A token has no conditions of its list, and the last one is 0: https://github.com/geopython/pycsw/pull/966
def test_0_ends_a_list_of_changes_after_which_all_records_came() -> None:
    def pycsw(asked: Asked) -> bytes | None:
        if asked.verb != "ListRecords":
            return None
        first = int(asked.arguments.get("resumptionToken", "1"))
        behind = min(first + 10, 31)
        is_first_of_changes = "from" in asked.arguments
        size, after = (15, 11) if is_first_of_changes else (30, behind if behind < 31 else 0)
        records = range(16, 26) if is_first_of_changes else range(max(first, 1), behind)
        return page(records, f'<resumptionToken completeListSize="{size}">{after}</resumptionToken>'.encode())

    with repository(lambda asked: None) as server:
        first = harvest(server.base_url)
        server.tamper = lambda body, asked: pycsw(asked) or body
        again = harvest(server.base_url, first.checkpoint)
        assert (sorted(again.good), again.broken) == (sorted(ALL), None)
        assert {each.rule for each in again.findings} == {"oai.duplicates"}


def test_a_repository_that_needs_the_prefix_gets_it_after_a_refused_token_too() -> None:
    refused: list[str] = []

    def pycsw(asked: Asked) -> bytes | None:
        token = asked.arguments.get("resumptionToken")
        if token and "metadataPrefix" not in asked.arguments:
            return error("badArgument", "Missing metadataPrefix parameter")
        if asked.verb != "ListRecords" or "from" in asked.arguments:
            return None
        if token == "21" and not refused:
            refused.append(token)
            return error("badResumptionToken", "The token has expired")
        first = int(token or "1")
        end = f"<resumptionToken>{first + 10}</resumptionToken>" if first < 21 else "<resumptionToken/>"
        return page(numbers(first), end.encode())

    with repository(pycsw) as server:
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        with_token = [asked.arguments for asked in server.answered if "resumptionToken" in asked.arguments]
        assert refused
        assert sum("metadataPrefix" not in each for each in with_token) == 1


@pytest.mark.parametrize("code", ["badArgument", "badResumptionToken"])
def test_a_repository_that_refuses_a_token_once_gets_no_prefix_with_the_others(code: str) -> None:
    refused: list[str] = []

    def strict(asked: Asked) -> bytes | None:
        token = asked.arguments.get("resumptionToken")
        if token and "metadataPrefix" in asked.arguments:
            return error("badArgument", "resumptionToken is an exclusive argument, without metadataPrefix")
        if token and not refused:
            refused.append(token)
            return error(code, "Invalid resumptionToken: metadataPrefix=oai_dc")
        return None

    with repository(strict) as server:
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        assert "oai.token" not in [each.rule for each in found.findings]


# Pages without records, each with a token: https://github.com/infrae/pyoai/pull/8
def test_pages_without_records_end_the_list() -> None:
    with OaiServer(30) as server:
        server.odd.add(Odd.EMPTY_PAGES)
        found = harvest(server.base_url)
        assert found.good == ALL[:10]
        assert "after 10 of 30 records: 10 pages in a row had no new records" in str(found.broken)


# A repository that chooses the records of its pages by set: https://github.com/libris/librisxl/pull/1812
@pytest.mark.parametrize(("before", "size"), [(0, 30), (15, 0)])
def test_empty_pages_of_a_filtered_list_do_not_end_it(before: int, size: int) -> None:
    def answer(asked: Asked) -> bytes | None:
        if asked.verb != "ListRecords":
            return None
        number = int(asked.arguments.get("resumptionToken", "0"))
        token = f'<resumptionToken completeListSize="{size}">{number + 1}</resumptionToken>'.encode()
        if number == 0 and before:
            return page(range(1, before + 1), token)
        return page([], token) if number < 35 else page(range(before + 1, 31), b"<resumptionToken/>")

    with repository(answer) as server:
        found = harvest(server.base_url)
        assert (found.good, found.broken) == (ALL, None)


# A list whose last page has a token all the same, with nothing behind it: https://github.com/infrae/pyoai/pull/8
# The token of the last page is the token that led to it: https://github.com/DOAJ/doaj/issues/1396
@pytest.mark.parametrize(("last", "size", "is_certain"), [(3, 30, True), (2, 30, True), (3, 0, False)])
def test_a_last_page_that_leads_to_itself_ends_the_list(last: int, size: int, is_certain: bool) -> None:
    def answer(asked: Asked) -> bytes | None:
        if asked.verb != "ListRecords":
            return None
        number = int(asked.arguments.get("resumptionToken", "0"))
        token = f'<resumptionToken completeListSize="{size}">{min(number + 1, last)}</resumptionToken>'
        return page(range(10 * number + 1, min(10 * number + 11, 31)), token.encode())

    with repository(answer) as server:
        found = harvest(server.base_url)
        assert (set(found.good), found.broken) == (set(ALL), None)
        [warning] = [each for each in found.findings if each.rule == "oai.token"]
        assert warning.level is Level.WARNING
        assert ("no record counts as missing" in warning.message) != is_certain


# Tokens and records without an end, more than announced: https://github.com/OpenSKOS/OpenSKOS/issues/8
def test_a_list_without_an_end_is_broken_off_at_the_limit() -> None:
    def endless(asked: Asked) -> bytes | None:
        if asked.verb != "ListRecords":
            return None
        first = int(asked.arguments.get("resumptionToken", "1").removeprefix("page-"))
        token = f'<resumptionToken completeListSize="20">page-{first + 10}</resumptionToken>'
        return page(numbers(first), token.encode())

    with repository(endless) as server:
        found = harvest(server.base_url, http=HTTP.model_copy(update={"max_list_records": 45}))
        assert "More than 45 records came: the list may have no end" in str(found.broken)
        assert len(set(found.identifiers)) == 50


# completeListSize of a set counts all records: https://github.com/MI-DPLA/combine/issues/240
# The token behind the first page is empty, though more is announced: https://github.com/pkp/pkp-lib/issues/7214
# The token is in an attribute: https://github.com/kitodo/kitodo-presentation/pull/300
@pytest.mark.parametrize(
    "token",
    [
        b'<resumptionToken completeListSize="225176" cursor="0"/>',
        b'<resumptionToken completeListSize="225176" cursor="0"></resumptionToken>',
        b'<resumptionToken completeListSize="225176" cursor="0" resumptionToken="page-2"/>',
    ],
)
def test_a_number_that_does_not_come_is_an_error_and_then_the_way_to_count(token: bytes) -> None:
    with repository(lambda asked: page(range(1, 8), token) if asked.verb == "ListRecords" else None) as server:
        first = harvest(server.base_url)
        assert "announced a list of 225,176 records (completeListSize) and sent 7" in str(first.broken)
        second = harvest(server.base_url, first.checkpoint)
        assert (second.broken, second.listing.is_complete) == (None, True)
        assert [(each.rule, each.level) for each in second.findings] == [("oai.list-size", Level.WARNING)]


# The last page has no token: https://github.com/coneda/kor/issues/110
def test_a_number_that_does_not_come_before_a_page_without_token_is_an_error_each_time() -> None:
    with repository(lambda asked: page(numbers(11)) if in_page(2, asked) else None) as server:
        first = harvest(server.base_url)
        second = harvest(server.base_url, first.checkpoint)
        for found in (first, second):
            assert "sent 20. Its last page has no resumptionToken" in str(found.broken)


# The order of the list is not stable: https://github.com/artefactual/atom/issues/1581
# One record is on two pages: https://github.com/DOAJ/doaj/issues/712
def test_a_record_on_two_pages_is_taken_once_and_the_one_that_is_left_out_is_not_missing() -> None:
    def unstable(asked: Asked) -> bytes | None:
        token = b"<resumptionToken>oai_dc!!!!20!0</resumptionToken>"
        return page(range(10, 20), token) if in_page(2, asked) else None

    with repository(unstable) as server:
        found = harvest(server.base_url)
        assert sorted(found.identifiers) == sorted(set(ALL) - {"oai:test:20"})
        assert "1 of the list's records came twice" in found.words("oai.duplicates")
        assert found.pages[-1].left_out == 1


# A token behind the last page leads to an error: https://github.com/inveniosoftware/invenio-app-rdm/issues/2715
# Without completeListSize: https://www.openarchives.org/pipermail/oai-implementers/2002-July/000586.html
@pytest.mark.parametrize(("size", "level"), [(b' completeListSize="30"', Level.WARNING), (b"", Level.ERROR)])
def test_an_error_behind_the_last_page_is_the_end_if_the_announced_number_came(size: bytes, level: Level) -> None:
    def ends(asked: Asked) -> bytes | None:
        for number in (1, 2, 3):
            if in_page(number, asked):
                token = b"<resumptionToken" + size + f">oai_dc!!!!{number}0!0</resumptionToken>".encode()
                return page(numbers(10 * number - 9), token)
        return error("noRecordsMatch") if in_page(4, asked) else None

    with repository(ends) as server:
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        assert [(each.rule, each.level) for each in found.findings] == [("oai.token", level)]
        assert (found.pages[-1].left_out == 0) is (level is Level.WARNING)


# A list of 10,000 ends with its first page: https://github.com/next-l/enju_leaf/issues/1538
def test_a_list_that_ends_with_a_full_page_proves_nothing_missing() -> None:
    token = b"<resumptionToken>oai_dc!!!!10!0</resumptionToken>"
    with repository(
        lambda asked: page(numbers(1), token) if in_page(1, asked) else page(numbers(11)) if in_page(2, asked) else None
    ) as server:
        found = harvest(server.base_url)
        assert "20 records had come, and no completeListSize says whether these are all" in found.words("oai.token")
        assert found.pages[-1].left_out == float("inf")


# A token of an earlier day: https://github.com/mattbierbaum/arxiv-public-datasets/issues/26
@pytest.mark.parametrize(
    "answer", [error("badResumptionToken", "noDataForResultSet - may have expired"), error("noRecordsMatch"), HTML]
)
def test_a_token_of_an_earlier_night_may_be_refused(answer: bytes) -> None:
    with OaiServer(30) as server:
        first = harvest(server.base_url, most_pages=1)
        server.tamper = lambda body, asked: (
            answer if asked.arguments.get("resumptionToken") == "oai_dc!!!!10!0" else body
        )
        second = harvest(server.base_url, first.checkpoint)
        assert ({*first.good, *second.good}, second.broken) == (set(ALL), None)


# Every token is refused: https://github.com/MarkVSullivan/SobekCM-Web-Application/issues/6
def test_a_repository_that_refuses_all_tokens_is_asked_for_smaller_windows() -> None:
    refused = error("badResumptionToken", "no resumeAfter in resumptionToken:0000000002")
    with repository(lambda asked: refused if "resumptionToken" in asked.arguments else None) as server:
        found = harvest(server.base_url)
        assert (sorted(found.good), found.broken) == (sorted(ALL), None)
        assert found.rules == ["oai.page-failed"]


# The token loses the set: https://github.com/MarkVSullivan/SobekCM-Web-Application/issues/6
# A set with 25 records brings hundreds of others: https://github.com/tulibraries/dplah/issues/238
def test_records_of_other_sets_are_taken_and_counted() -> None:
    with OaiServer(30) as server:
        server.sets = {"fao1": "Agriculture", "other": "Others"}
        for number, each in enumerate(server.records.values(), 1):
            each.sets = ("fao1",) if number <= 20 else ("other",)
        server.tamper = lambda body, asked: body.replace(b">oai_dc!fao1!", b">oai_dc!!")
        found = harvest(server.base_url, set_spec="fao1")
        assert sorted(found.good) == sorted(ALL)
        assert "10 of the list's records" in found.words("oai.protocol")


# One bad character makes page 200 a 500 for ever: https://github.com/DSpace/DSpace/issues/10721
# Errors 502 and 504 in the middle of a long list: https://github.com/zenodo/zenodo-rdm/issues/1149
@pytest.mark.parametrize("status", [500, 502, 504])
def test_a_page_that_always_fails_costs_the_record_that_fails(status: int) -> None:
    with OaiServer(30) as server:
        server.poison.add("oai:test:17")
        server.poisoned = (b"<html><title>Error</title></html>", status, {"Content-Type": "text/html"})
        found = harvest(server.base_url, http=HTTP.model_copy(update={"retries": 0}))
        assert sorted(found.good) == sorted(set(ALL) - {"oai:test:17"})
        assert [(each.rule, each.docid) for each in found.findings if each.is_error] == [
            ("oai.record-failed", "oai:test:17")
        ]


# Records that are listed and cannot be fetched: https://github.com/IQSS/dataverse/issues/8005
# 474 records that cannot be fetched: https://github.com/wellcomecollection/platform/issues/6426
def test_records_that_are_listed_and_not_given_out_are_named() -> None:
    phantoms = {f"oai:test:{number}" for number in range(5, 10)}
    unknown = error("idDoesNotExist")
    with repository(lambda asked: unknown if asked.arguments.get("identifier") in phantoms else None) as server:
        found = harvest(server.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert (set(found.good), found.broken) == (set(ALL) - phantoms, None)
        assert {each.docid for each in found.findings if each.rule == "oai.record-failed"} == phantoms


# A wall against robots, from one day on: https://github.com/Gluejar/regluit/issues/1154
# ... with a status of success, and nothing else: https://github.com/DSpace/dspace-angular/issues/5478
@pytest.mark.parametrize(
    "wall",
    [
        (b"<html><title>Just a moment...</title></html>", 403, {"cf-mitigated": "challenge"}),
        (b"", 202, {"x-amzn-waf-action": "challenge"}),
    ],
)
def test_a_wall_before_a_repository_ends_the_list_and_the_next_harvest_goes_on(
    wall: tuple[bytes, int, dict[str, str]],
) -> None:
    with OaiServer(30) as server:
        server.poisoned = wall
        server.refuses = lambda asked: len(server.asked("ListRecords")) > 1
        found = harvest(server.base_url)
        assert "The list broke off after 10 of 30 records" in str(found.broken)
        assert len(server.answered) < 20
        server.refuses = lambda asked: False
        again = harvest(server.base_url, found.checkpoint)
        assert ({*found.good, *again.good}, again.broken) == (set(ALL), None)


# An answer to ListSets that breaks off: https://github.com/libris/librisxl/issues/138
def test_nothing_is_concluded_from_a_list_of_sets_that_breaks_off() -> None:
    sets = START + b"<ListSets><set><setSpec>bib:S</setSpec><setName>S</setName></set><set><setSpec>bi"
    with repository(lambda asked: sets if asked.verb == "ListSets" else None) as server:
        with pytest.raises(FetchError, match="breaks off before its end"):
            harvest(server.base_url, set_spec="frogs")
        assert server.asked("ListRecords") == []


# Without a set, nothing comes: https://github.com/OpenWIS/openwis/issues/293
# Without from and until, nothing comes: https://github.com/LearningRegistry/LearningRegistry/issues/60
def test_after_a_list_of_nothing_all_records_are_asked_for_again() -> None:
    with repository(lambda asked: error("noRecordsMatch") if asked.verb == "ListRecords" else None) as server:
        first = harvest(server.base_url)
        assert (first.good, first.listing.is_empty, first.listing.is_complete) == ([], True, False)
        server.tamper = None
        second = harvest(server.base_url, first.checkpoint)
        assert sorted(second.good) == sorted(ALL)


# 760,000 of 2,680,000 records come: https://github.com/DOAJ/doaj/issues/1432
# Records that are not indexed for a night count as deleted: https://github.com/IQSS/dataverse/pull/10222
def test_the_number_of_all_records_is_compared_with_that_of_the_last_full_list() -> None:
    with OaiServer(30) as server:
        first = harvest(server.base_url)
        for number in range(11, 31):
            del server.records[f"oai:test:{number}"]
        second = harvest(server.base_url, first.checkpoint)
        assert (second.pages[-1].in_all, second.pages[-1].in_all_before) == (10, 30)


# ListIdentifiers has records in place of headers: https://github.com/geopython/pycsw/issues/899
def test_what_is_listed_and_is_no_header_is_counted() -> None:
    item = b"<record><header><identifier>urn:uuid:%d</identifier><dateStamp/><setSpec/></header></record>"
    inner = b"".join(item % number for number in range(30))
    listed = START + b"<ListIdentifiers>" + inner + b"</ListIdentifiers>" + END
    with repository(lambda asked: listed if asked.verb == "ListIdentifiers" else None) as server:
        found = harvest(server.base_url, method=ListMethod.LIST_IDENTIFIERS)
        assert found.good == []
        assert "The list has 30 elements that are neither records nor a resumption token" in found.words("oai.protocol")


# A window without records is answered with 422: https://github.com/miku/metha/issues/39
def test_errors_of_the_protocol_may_have_a_status() -> None:
    with OaiServer(30) as server:
        server.poisoned = (error("noRecordsMatch"), 422, {"Content-Type": "text/xml"})
        first = harvest(server.base_url)
        server.refuses = lambda asked: "from" in asked.arguments
        second = harvest(server.base_url, first.checkpoint)
        assert (second.good, second.findings, second.broken) == ([], [], None)
