"""The holdings of targets, checks of targets, and the index of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from operator import attrgetter

from metaharvest.database.batches import batches
from metaharvest.database.engine import readers
from metaharvest.errors import MetaharvestError, ScheduleError, SettingsError, UnknownDocument
from metaharvest.ledger import records, sweeps
from metaharvest.ledger.rows import titles_of
from metaharvest.model import Site
from metaharvest.model.values import frozen
from metaharvest.monitoring import Check
from metaharvest.monitoring.target_checks import check_target, check_targets
from metaharvest.queries.departures import departure
from metaharvest.queries.document_search import did_you_mean
from metaharvest.queries.sites import known_names
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registry import find_site, read_sites
from metaharvest.sites.rows import BrokenSite
from metaharvest.targets.base import HeldRevision, Target
from metaharvest.targets.folder.rebuild import Rebuilt
from metaharvest.targets.folder.target import FolderTarget
from metaharvest.targets.naming import find_document, possible_ids
from metaharvest.targets.owners import with_owners

_AT_ONCE = 500


@frozen
class Held:
    """A revision in a target, and the name of its site; empty if it belongs to none."""

    revision: HeldRevision
    site: str


@frozen
class FoundDocument:
    """A document of a target; `revision` is the named one, if there is one."""

    harvester: Harvester
    target: Target
    document_id: str
    revision: int | None

    def revisions(self) -> list[Held]:
        """Its revisions, the highest first. Raises TargetError."""
        return list(_with_sites(self.harvester, self.target.revisions(self.document_id)))

    def highest(self) -> int:
        """The number of its highest revision. Raises TargetError."""
        return self.target.revisions(self.document_id)[0].revision

    def content(self, revision: int) -> bytes | None:
        """The bytes of a revision; None if the target has none. Raises TargetError."""
        return self.target.content(self.document_id, revision)

    def departure(self) -> str:
        """When and why it was deleted, if the target keeps its revisions; empty if it is held."""
        gone = self.harvester.read(departure, self.document_id)
        if not gone:
            return ""
        with self.target.session(None) as opened:
            return gone if opened.writes_in_journal and not opened.holdings([self.document_id]) else ""


def held_documents(harvester: Harvester, target_name: str) -> Iterator[Held]:
    """The documents of a target, each with its highest revision. Raises SettingsError, TargetError."""
    held = harvester.targets.named(target_name).held()
    return _with_sites(harvester, (list(each)[-1] for _, each in groupby(held, key=attrgetter("document_id"))))


def find(harvester: Harvester, target_name: str, name: str) -> FoundDocument:
    """The document of a target that `name`, a document id or a docid, means.

    Raises SettingsError, TargetError, and MetaharvestError, which says when and why a document was deleted, or suggests
    other documents.
    """
    target = harvester.targets.named(target_name)
    try:
        return FoundDocument(harvester, target, *find_document(target, name))
    except UnknownDocument as error:
        with harvester.reading() as session:
            gone = next(filter(None, (departure(session, each) for each in possible_ids([name]))), "")
            meant = "" if gone else did_you_mean(session, name)
        raise (MetaharvestError(gone) if gone else UnknownDocument(f"{error}{meant}")) from None


def check(harvester: Harvester, target_name: str | None = None, site_name: str | None = None) -> Iterator[Check]:
    """Check that a target answers, our identity there, and our rights: returns each check as it is made.

    Without names: the targets that the harvest uses, and the logins that sites have of their own. Raises SettingsError,
    ScheduleError.
    """
    targets = harvester.targets
    if target_name is None and site_name is None:
        sites = harvester.read(read_sites)
        return check_targets(targets, sites)
    registered = None if site_name is None else harvester.read(find_site, site_name)
    if isinstance(registered, BrokenSite):
        raise ScheduleError(" ".join(finding.message for finding in registered.findings))
    what = "target" if target_name in (None, "target") else f"target {target_name}"
    find = partial(targets.of, site_name or "") if target_name is None else partial(targets.named, target_name)
    if registered is not None:
        what = f"{what} as {registered.name}"
    find()  # a name that means no target is a mistake of the caller
    return check_target(what, find, registered)


def rebuild_index(
    harvester: Harvester, target_name: str = "target", site_name: str | None = None
) -> tuple[Rebuilt, dict[str, int]]:
    """Rebuild the index of a folder from its files: the folder of this target, or of the target of this site.

    Returns also the sites of source repositories whose documents are missing in it, each with their number: their next
    harvest asks for all records, as a list of changes does not name these documents.

    Raises SettingsError if there is no such target, ScheduleError if there is no such site, MetaharvestError if it
    is no folder, TargetError.
    """
    if site_name is not None:
        harvester.read(find_site, site_name)
    target = harvester.targets.named(target_name) if site_name is None else harvester.targets.of(site_name)
    if not isinstance(target, FolderTarget):
        raise MetaharvestError(f"The target is {target.describe()}: only a folder has an index.")
    done = target.rebuild()
    missing = {site.name: _note_missing(harvester, target, site) for site in _paged_sites(harvester, target)}
    return done, {name: number for name, number in missing.items() if number}


def _paged_sites(harvester: Harvester, target: Target) -> Iterator[Site]:
    """The sites of source repositories whose documents go into this target."""
    for site in harvester.read(read_sites):
        with suppress(SettingsError):
            if isinstance(site, Site) and site.options.oai and harvester.targets.of(site.name) is target:
                yield site


def _note_missing(harvester: Harvester, target: Target, site: Site) -> int:
    """The number of the site's documents that the target lacks; if there are any, its next harvest is a full list."""
    with harvester.reading() as session, target.session(site) as opened:
        held = (dict(some) for some in batches(records.held_by(session, site.site_id), _AT_ONCE))
        number = sum(len(records.lacking(some, opened.holdings(list(some)))) for some in held)
    if number:
        with harvester.writing() as session:
            sweeps.note_full_wanted(session, site.site_id, resumed=False)
    return number


def _with_sites(harvester: Harvester, revisions: Iterator[HeldRevision] | list[HeldRevision]) -> Iterator[Held]:
    names = harvester.read(known_names)
    for each in _with_titles(harvester, with_owners(revisions, readers(harvester.engine))):
        number = each.site_id
        yield Held(each, "" if number is None else names.get(number, f"site {number}, registered no longer"))


def _with_titles(harvester: Harvester, revisions: Iterator[HeldRevision]) -> Iterator[HeldRevision]:
    """The revisions with the titles that the ledger has, if the target itself has none."""
    while some := list(islice(revisions, _AT_ONCE)):
        without = [each for each in some if not each.title and each.site_id is not None]
        titles: dict[tuple[str, int], str] = {}
        with harvester.reading() as session:
            for site_id in {each.site_id for each in without if each.site_id is not None}:
                of_site = [each.document_id for each in without if each.site_id == site_id]
                titles |= titles_of(session, site_id, of_site)
        for each in some:
            title = each.title or titles.get((each.document_id, each.revision), "")
            yield each if title == each.title else replace(each, title=title)
