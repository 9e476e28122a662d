"""The schedule, without the command line: what a console registers, changes and confirms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from unittest.mock import Mock

import pytest

from metaharvest.errors import RequestError, ScheduleError
from metaharvest.model import Deletions, Level, Site, Unit, ValidationLevel
from metaharvest.services import schedule_files, sites
from metaharvest.services.harvester import Harvester as Opened
from metaharvest.services.sites import NOT_GIVEN, ChangedValue, RepositoryAnswer, SiteValues
from metaharvest.sites import same_source
from support.harvester import Harvester
from support.oai_server import OaiServer

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

TODAY = date(2026, 11, 20)
URL = "https://alder.example.org/list.xml"
ALDER = SiteValues(name="alder", list_url=URL, contacts=("a@example.org",))
FROGS = SiteValues(name="frogs", base_url="https://frogs.example.org/oai", contacts=("f@example.org",))


@pytest.fixture
def opened(harvester: Harvester) -> Iterator[Opened]:
    with harvester.opened(clock=lambda: datetime(2026, 11, 20, 12, tzinfo=UTC)) as made:
        yield made


@pytest.fixture
def repository() -> Iterator[OaiServer]:
    with OaiServer(records=2) as made:
        yield made


def registered(opened: Opened, name: str) -> Site:
    site = sites.find(opened, name)
    assert isinstance(site, Site)
    return site


def test_a_registered_site_is_due_today_and_has_the_defaults(opened: Opened) -> None:
    done = sites.register(opened, ALDER)
    assert done == sites.Registered((registered(opened, "alder"),), ())
    [site] = done.sites
    assert (site.next_harvest, site.frequency, site.unit, site.contacts) == (TODAY, 1, Unit.DAYS, ("a@example.org",))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (SiteValues(name="alder", contacts=("a@example.org",)), "Give --list-url"),
        (SiteValues(name="alder", list_url=URL), "Give --contact"),
        (SiteValues(name="alder", list_url=URL, base_url=URL, contacts=("a@example.org",)), "use one of the two"),
        (SiteValues(name="alder", list_url=URL, contacts=("a@example.org",), set_spec="x"), "--set is for OAI-PMH"),
        (SiteValues(name="alder", list_url=f"{URL}?verb=Identify", contacts=("a@example.org",)), "--oai https://alder"),
        (
            SiteValues(name="alder", list_url=URL, contacts=("a@example.org",), next_harvest=date(2026, 11, 19)),
            "2026-11-19 is past",
        ),
    ],
)
def test_values_that_do_not_fit_together_are_refused(opened: Opened, values: SiteValues, said: str) -> None:
    with pytest.raises(RequestError, match=re.escape(said)):
        sites.register(opened, values, unasked=True)
    assert schedule_files.export_file(opened).sites == 0


@pytest.mark.parametrize("nothing", ["none", ""])
def test_one_of_several_sites_may_ask_for_all_records(opened: Opened, nothing: str) -> None:
    done = sites.register(opened, FROGS, ("tree", nothing), unasked=True)
    sets = [site.options.oai.set_spec for site in done.sites if site.options.oai]
    assert sets == ["tree", None]
    assert done.sites[0].name == "frogs-tree"
    with pytest.raises(ScheduleError, match="for the same format and set already"):
        sites.register(opened, replace(FROGS, name="again"), ("none",), unasked=True)


def test_several_sets_become_a_site_each_or_none(opened: Opened) -> None:
    with pytest.raises(ScheduleError, match="setSpec"):
        sites.register(opened, FROGS, ("pond", "two words"), unasked=True)
    assert schedule_files.export_file(opened).sites == 0
    done = sites.register(opened, FROGS, ("pond", "brook", "pond"), unasked=True)
    asked = [(site.name, site.options.oai and site.options.oai.set_spec) for site in done.sites]
    assert asked == [("frogs-pond", "pond"), ("frogs-brook", "brook")]
    assert done.same_records == ()
    more = sites.register(opened, replace(FROGS, name="more", set_spec="reed"), unasked=True)
    assert more.same_records == ("frogs-brook", "frogs-pond")


def test_a_repository_is_asked_and_its_addresses_become_the_contacts(opened: Opened, repository: OaiServer) -> None:
    answers: list[RepositoryAnswer] = []
    values = SiteValues(name="frogs", base_url=repository.base_url)
    [site] = sites.register(opened, values, report=answers.append).sites
    [answer] = answers
    assert answer.identity is not None
    assert answer.problems == ()
    assert site.contacts == answer.contacts[: sites.MOST_CONTACTS] != ()


def test_a_repository_without_the_format_is_not_registered(opened: Opened, repository: OaiServer) -> None:
    values = SiteValues(name="frogs", base_url=repository.base_url, prefix="none_such")
    answers: list[RepositoryAnswer] = []
    with pytest.raises(ScheduleError, match="Nothing was registered"):
        sites.register(opened, values, report=answers.append)
    assert answers == []
    with pytest.raises(ScheduleError):
        sites.find(opened, "frogs")


def test_an_edit_says_what_has_changed_and_none_removes_a_value(opened: Opened) -> None:
    sites.register(opened, ALDER)
    own = SiteValues(every=2, validation=ValidationLevel.STRICT, package_id_mismatch=Level.ERROR, ldap_name="uid=a")
    [edited] = sites.edit(opened, ["alder"], own)
    assert edited.changes == (
        ChangedValue("every", "1", "2"),
        ChangedValue("package_id_mismatch", "none", "error"),
        ChangedValue("validation", "none", "strict"),
        ChangedValue("ldapdn", "none", "uid=a"),
    )
    sites.edit(opened, ["alder"], SiteValues(validation=None, package_id_mismatch=None, ldap_name=None))
    site = registered(opened, "alder")
    assert (site.frequency, site.options.validation, site.options.package_id_mismatch) == (2, None, None)
    assert site.ldap_name is None
    with pytest.raises(RequestError, match="Nothing to change"):
        sites.edit(opened, ["alder"], SiteValues())


def test_an_edit_of_a_broken_site_keeps_its_other_options(harvester: Harvester, opened: Opened) -> None:
    sites.register(opened, replace(ALDER, max_loss=7, add_groups=("ponds",), package_id_mismatch=Level.ERROR))
    harvester.rows("UPDATE harvest_site_schedule SET contact_email = 'nobody'")
    sites.edit(opened, ["alder"], SiteValues(contacts=("a@example.org",), package_id_mismatch=None))
    options = registered(opened, "alder").options
    assert (options.max_loss, options.groups, options.package_id_mismatch) == (7, ("ponds",), None)
    harvester.rows("UPDATE harvest_site_schedule SET contact_email = 'nobody'")
    schedule_files.import_file(opened, b"name,contacts,max_loss\nalder,a@example.org,9\n")
    options = registered(opened, "alder").options
    assert (options.max_loss, options.groups) == (9, ("ponds",))


@pytest.mark.parametrize(
    "damage", ["contact_email = 'nobody'", "options = '{}'", "options = 'nonsense'", "source_kind = 'harvest-list'"]
)
def test_the_options_of_a_broken_repository_are_edited(harvester: Harvester, opened: Opened, damage: str) -> None:
    sites.register(opened, FROGS, unasked=True)
    harvester.rows(f"UPDATE harvest_site_schedule SET {damage}")
    contacts = ("f@example.org",)
    base_url = FROGS.base_url if "source_kind" in damage else NOT_GIVEN
    sites.edit(opened, ["frogs"], SiteValues(contacts=contacts, set_spec="pond", base_url=base_url))
    oai = registered(opened, "frogs").options.oai
    assert oai is not None
    assert (oai.set_spec, bool(oai.origin)) == ("pond", True)
    harvester.rows("UPDATE harvest_site_schedule SET contact_email = 'nobody'")
    sites.edit(opened, ["frogs"], SiteValues(contacts=contacts, base_url="https://new.example.org/oai"))
    assert registered(opened, "frogs").list_url == "https://new.example.org/oai"


def test_several_sites_are_changed_together_or_none(opened: Opened) -> None:
    sites.register(opened, replace(ALDER, add_groups=("north",)))
    sites.register(opened, replace(ALDER, name="birch", list_url=f"{URL}?birch", add_groups=("north",)))
    sites.edit(opened, ["birch"], SiteValues(add_contacts=("c@example.org",)))
    with pytest.raises(RequestError, match="is no contact of alder"):
        sites.edit(opened, ["birch", "alder"], SiteValues(every=5, remove_contacts=("c@example.org",)))
    assert registered(opened, "birch").frequency == 1
    edits = sites.edit(opened, [], SiteValues(every=5, add_contacts=("b@example.org",)), group="north")
    assert [each.site.name for each in edits] == ["alder", "birch"]
    assert registered(opened, "alder").contacts == ("a@example.org", "b@example.org")
    with pytest.raises(RequestError, match="No site belongs"):
        sites.edit(opened, [], SiteValues(every=1), group="south")


def test_an_edited_repository_is_asked_only_if_other_things_are_asked_of_it(
    opened: Opened, repository: OaiServer
) -> None:
    sites.register(opened, replace(FROGS, base_url=repository.base_url))
    [slower] = sites.edit(opened, ["frogs"], SiteValues(every=3))
    assert sites.ask_again(opened, slower) is None
    [other] = sites.edit(opened, ["frogs"], SiteValues(prefix="none_such"))
    answer = sites.ask_again(opened, other)
    assert answer is not None
    assert answer.identity is None
    assert [finding.is_error for finding in answer.problems] == [True]


def test_a_prefix_that_is_removed_is_oai_dc_again(opened: Opened) -> None:
    sites.register(opened, replace(FROGS, prefix="eml"), unasked=True)
    sites.edit(opened, ["frogs"], SiteValues(prefix=None, full_every=30))
    oai = registered(opened, "frogs").options.oai
    assert oai is not None
    assert (oai.prefix, oai.full_every, oai.origin) == ("oai_dc", 30, "frogs.example.org-oai")


def test_a_site_is_switched_off_confirmed_and_removed(opened: Opened) -> None:
    sites.register(opened, ALDER)
    sites.switch(opened, "alder", False)
    assert not registered(opened, "alder").enabled
    assert sites.confirm(opened, "alder") == 0
    sites.edit(opened, ["alder"], SiteValues(deletions=Deletions.KEEP))
    assert sites.confirm(opened, "alder") is None
    sites.remove(opened, "alder")
    with pytest.raises(ScheduleError, match="no site named 'alder'"):
        sites.find(opened, "alder")


def test_an_export_without_logins_that_is_imported_again_keeps_them(opened: Opened) -> None:
    url = "https://me:secret@Alder.example.org/list.xml"
    sites.register(opened, replace(ALDER, list_url=url))
    for as_csv in (False, True):
        [unchanged] = schedule_files.import_file(
            opened, schedule_files.export_file(opened, as_csv=as_csv).content
        ).changes
        assert unchanged.verdict == "unchanged"
    assert registered(opened, "alder").list_url == url
    new = b"name,list_url\nalder,https://alder.example.org/new.xml\n"
    [changed] = schedule_files.import_file(opened, new).changes
    assert changed.lost_login


def test_an_import_compares_a_new_site_with_the_sites_of_its_source_only(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = Mock(wraps=same_source.source_key)
    monkeypatch.setattr(same_source, "source_key", compared)
    rows = "".join(f"s{n},https://s{n}.example.org/l.xml,a@example.org\n" for n in range(30))
    schedule_files.import_file(opened, f"name,list_url,contacts\n{rows}".encode())
    assert compared.call_count <= 60


def test_an_export_is_imported_into_another_installation(opened: Opened, tmp_path: Path) -> None:
    sites.register(opened, replace(ALDER, list_url="https://me:secret@alder.example.org/list.xml"))
    exported = schedule_files.export_file(opened, as_csv=True)
    assert (exported.sites, exported.without_login, exported.broken) == (1, ("alder",), ())
    assert b"secret" not in exported.content
    with_logins = schedule_files.export_file(opened, with_logins=True)
    [unchanged] = schedule_files.import_file(opened, with_logins.content).changes
    assert (unchanged.verdict, unchanged.changes) == ("unchanged", {})
    sites.remove(opened, "alder")
    rehearsed = schedule_files.import_file(opened, with_logins.content, dry_run=True)
    assert [each.verdict for each in rehearsed.changes] == ["added"]
    with pytest.raises(ScheduleError):
        sites.find(opened, "alder")
    imported = schedule_files.import_file(opened, with_logins.content)
    assert [site.name for site in imported.with_new_date] == ["alder"]
    assert registered(opened, "alder").list_url == "https://me:secret@alder.example.org/list.xml"
