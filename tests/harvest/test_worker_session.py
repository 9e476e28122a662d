"""What is left to do for a job, and the work in its row."""

from metaharvest.database.engine import readers
from metaharvest.harvest.worker_session import KnownSites, SiteWork, SliceEnd, left_to_do
from metaharvest.model import SiteRunKind, SiteRunStatus
from support.databases import on_one_database
from support.harvester import Harvester

SCHEDULED, NAMED, RETRY = SiteRunKind.SCHEDULED, SiteRunKind.NAMED, SiteRunKind.RETRY


def test_sites_that_have_ended_or_were_stopped_are_not_harvested_again() -> None:
    sites = {1: SCHEDULED, 2: NAMED, 3: SCHEDULED}
    ended = {1: (SiteRunStatus.SUCCEEDED, SCHEDULED)}
    assert left_to_do(sites, ended, to_retry=(), stopped={3}) == {2: NAMED}


def test_a_site_whose_list_failed_still_has_documents_to_retry_once() -> None:
    sites = {1: SCHEDULED}
    assert left_to_do(sites, {1: (SiteRunStatus.LIST_FAILED, SCHEDULED)}, to_retry={1}) == {1: RETRY}
    assert left_to_do(sites, {1: (SiteRunStatus.WITH_ERRORS, RETRY)}, to_retry={1}) == {}


def test_more_work_leaves_the_other_sites_of_the_origin_in_the_job() -> None:
    due = SiteWork({1: SCHEDULED, 2: SCHEDULED}, ended=frozenset({7}))
    both = SiteWork.read(due.text()).with_more(SiteWork({1: NAMED}, everything=frozenset({1})))
    assert SiteWork.read(both.text()) == SiteWork({1: NAMED, 2: SCHEDULED}, frozenset({1}), frozenset({7}))


def test_each_site_of_a_job_has_used_a_time_of_its_own() -> None:
    work = SiteWork({1: SCHEDULED, 2: SCHEDULED}, seconds={1: 20.5})
    assert SiteWork.read(work.text()).seconds == {1: 20.5}
    assert work.with_more(SiteWork({2: NAMED})).seconds == {1: 20.5}
    of_version_before = '{"sites": [[1, "scheduled"]], "everything": [], "ended": []}'
    assert SiteWork.read(of_version_before).seconds == {}


def test_a_request_for_failing_documents_leaves_the_harvest_of_the_list_in_the_job() -> None:
    asked = SiteWork({1: RETRY, 2: RETRY})
    assert SiteWork({1: SCHEDULED}).with_more(asked).sites == {1: SCHEDULED, 2: RETRY}
    assert asked.with_more(SiteWork({1: SCHEDULED})).sites == {1: SCHEDULED, 2: RETRY}


def test_the_end_of_a_slice_reaches_all_its_sites_and_the_stop_of_one_reaches_no_other() -> None:
    slice_end = SliceEnd(600)
    one, other = slice_end.signal(), slice_end.signal()
    one.set()
    assert (other.is_set(), slice_end.is_over) == (False, False)
    slice_end.end()
    assert other.is_set()
    assert slice_end.signal().is_set()


@on_one_database
def test_a_job_reads_its_own_sites_alone_again(harvester: Harvester) -> None:
    own, _ = (harvester.add_site(name, f"https://{name}.example.org/list.xml") for name in ("alder", "birch"))
    known = KnownSites()

    def names() -> list[str]:
        with readers(harvester.engine)() as session:
            return [site.name for _, site in sorted(known.read(session, [own]).items())]

    assert names() == ["alder", "birch"]
    harvester.rows("UPDATE harvest_site_schedule SET name = 'new ' || name")
    assert names() == ["new alder", "birch"]
    harvester.rows("DELETE FROM harvest_site_schedule WHERE site_schedule_id = ?", own)
    assert names() == ["birch"]
    known._until = 0.0  # ten seconds later
    assert names() == ["new birch"]
