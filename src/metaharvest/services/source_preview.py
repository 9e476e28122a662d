"""Looks at a source before it is registered: what it is, what it offers, and proposals for its registration.

Nothing is stored. Times and sizes are bounded, as a person waits for the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from metaharvest.errors import FetchError, ListError, RequestError
from metaharvest.model import Finding, OaiOptions
from metaharvest.model.values import frozen
from metaharvest.rehearsal.trial import bounded
from metaharvest.services import trials
from metaharvest.services.harvester import Harvester
from metaharvest.services.source_repositories import NamedRepositories, SourceRepository, usable
from metaharvest.services.trials import TrialReport
from metaharvest.sites.registrations import policy
from metaharvest.sites.registry import read_sites
from metaharvest.sites.rows import HARVEST_LIST, OAI, named_contacts
from metaharvest.sites.same_source import url_key
from metaharvest.sources.oai_pmh.inspection import Inspection
from metaharvest.sources.oai_pmh.protocol import MetadataFormat, Set
from metaharvest.text import one_line

__all__ = ["OAI"]

KINDS = ("find out", OAI, HARVEST_LIST)
MOST_SETS = 2000
_NOT_OAI = "oai.not-oai"


@frozen
class SourcePreview:
    """A source that was asked. `kind` is oai-pmh or harvest-list; `title` is the name that it has for people.

    `problems` are the reasons for which it cannot be harvested, `notes` are oddities, as sentences. `name` and
    `contacts` are proposals. `report` is the check of a list. `registered` names the sites that have this address.
    """

    url: str
    kind: str
    title: str = ""
    name: str = ""
    contacts: tuple[str, ...] = ()
    formats: tuple[MetadataFormat, ...] = ()
    sets: tuple[Set, ...] = ()
    needs_full_lists: bool = False
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    report: TrialReport | None = None
    registered: tuple[str, ...] = ()


def look_at(harvester: Harvester, url: str, kind: str = KINDS[0]) -> SourcePreview:
    """Ask the source at this URL. Raises RequestError for a URL that cannot be used."""
    if kind not in KINDS:
        raise RequestError(f"Choose one of: {', '.join(KINDS)}.")
    address = policy.checked_url(url).url
    if kind != HARVEST_LIST:
        found = _repository(harvester, address)
        if OAI in (kind, found.kind):
            return _proposed(harvester, replace(found, kind=OAI))
    return _proposed(harvester, _list(harvester, address))


def friends_of(harvester: Harvester, url: str) -> NamedRepositories:
    """The source repositories that the one at this URL names. Raises RequestError, FetchError, ListError."""
    asked = SourceRepository(bounded(harvester.settings), policy.checked_url(url).url, OaiOptions(""))
    with trials.place():
        return usable(asked.friends())


def _repository(harvester: Harvester, url: str) -> SourcePreview:
    """The answer of a source repository; of the kind `harvest-list` if no repository answers there."""
    asked = SourceRepository(bounded(harvester.settings), url, OaiOptions(""))
    try:
        with trials.place():
            return _described(url, asked.describe())
    except (FetchError, ListError) as error:
        is_repository = any(each.rule.startswith("oai.") and each.rule != _NOT_OAI for each in error.findings)
        return SourcePreview(url, OAI if is_repository else HARVEST_LIST, problems=_sentences(error.findings))


def _described(url: str, found: Inspection) -> SourcePreview:
    identity = found.identity
    return SourcePreview(
        url,
        OAI,
        one_line(identity.name, 200),
        contacts=named_contacts(identity.emails)[:5],
        formats=found.formats,
        sets=found.sets[:MOST_SETS],
        needs_full_lists=identity.deleted_record in ("no", "transient"),
        problems=_sentences(found.problems) if not found.formats else (),
        notes=_sentences(each for each in found.findings if not each.is_error),
    )


def _list(harvester: Harvester, url: str) -> SourcePreview:
    report = trials.try_source(harvester, {"name": "asked", "documentlisturl": url}).report
    problems = () if report.is_readable else ("The list cannot be read.",)
    if report.is_document:
        problems = ("This is a document, not a harvest list. Give the address of the list that names it.",)
    return SourcePreview(url, HARVEST_LIST, contacts=report.contacts, problems=problems, report=report)


def _proposed(harvester: Harvester, source: SourcePreview) -> SourcePreview:
    """The source with a free name, and with the sites that have its address already."""
    sites = harvester.read(read_sites)
    is_repository = source.kind == OAI
    key = url_key(source.url, is_repository=is_repository)
    same = tuple(each.name for each in sites if url_key(each.list_url, is_repository=is_repository) == key)
    return replace(source, name=proposed_name(source, {each.name for each in sites}), registered=same)


def proposed_name(source: SourcePreview, taken: set[str]) -> str:
    """A name that no site has: of the words of its title, or of the host. Pure."""
    words = re.sub(r"[^a-z0-9]+", "-", source.title.lower()).strip("-")[:60].strip("-")
    host = (urlsplit(source.url).hostname or "site").removeprefix("www.")
    base = words or host
    return next(name for name in (base, *(f"{base}-{number}" for number in range(2, 10_000))) if name not in taken)


def _sentences(findings: Iterable[Finding]) -> tuple[str, ...]:
    return tuple(one_line(each.with_remedy, 1000) for each in findings)
