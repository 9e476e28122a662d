"""Documents, and whole scopes, that are to belong to another site from now on: which are meant, whose they were."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import Engine

from metaharvest.database.engine import database_errors, readers, writers
from metaharvest.errors import MetaharvestError
from metaharvest.queries.sites import site_names
from metaharvest.sites.registry import find_site
from metaharvest.sources.harvest_list.source import scope_and_identifier
from metaharvest.targets import owners
from metaharvest.targets.base import Target
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.handover import give, to_be_taken
from metaharvest.targets.lookup import Targets
from metaharvest.targets.naming import find_documents, possible_ids
from metaharvest.targets.transfers import Receiving
from metaharvest.text import clean, one_line

_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class TransferRequest:
    """Documents by docid or document id, and whole scopes, for a site; `by` is the person who says so, for the log.

    With `rehearse` nothing is changed.
    """

    names: tuple[str, ...]
    site: str
    by: str = ""
    scopes: tuple[str, ...] = ()
    rehearse: bool = False


@dataclass(frozen=True, slots=True)
class Transfer:
    """A document that was to be given to a site, and the revision that was named, if one was.

    `former` is the name of the registered site that it belonged to. `done` is false if that is the same site.
    """

    document_id: str
    revision: int | None
    former: str | None
    done: bool


def transfer(engine: Engine, targets: Targets, wanted: TransferRequest, today: date, now: datetime) -> list[Transfer]:
    """Let all of these documents belong to that site, or none. What belongs to it already stays as it is.

    They are documents that its target holds, or that belong to a site in whatever other target outside of the database.

    Raises MetaharvestError with the documents that are not there, ScheduleError if there is no such site, TargetError,
    DatabaseUnavailable.
    """
    target = targets.of(wanted.site)
    found = find_documents(target, wanted.names, _owned(engine, target, wanted.names)) if wanted.names else {}
    for scope in wanted.scopes:
        found |= {each: None for each in _documents_of(engine, target, scope) if each not in found}
    opened = readers(engine)() if wanted.rehearse else writers(engine).begin()
    with database_errors(engine), opened as session:
        site = find_site(session, wanted.site)
        moved = to_be_taken(session, target, list(found), site.site_id, site_names(session))
        if not wanted.rehearse:
            give(session, target, moved, Receiving(site.site_id, site.name, clean(wanted.by), today, now))
    taken = {each.document_id: each for each in moved}
    return [
        Transfer(each, revision, taken[each].site if each in taken else site.name, each in taken)
        for each, revision in found.items()
    ]


def _owned(engine: Engine, target: Target, names: Sequence[str]) -> Collection[str]:
    """The documents that `names` may mean and that belong to a site, in a target like this one."""
    if isinstance(target, EmbeddedTarget):
        return ()
    owned, asked = set[str](), possible_ids(names)
    with database_errors(engine), readers(engine)() as session:
        for start in range(0, len(asked), _AT_ONCE):
            owned |= set(owners.owners_of(session, asked[start : start + _AT_ONCE]))
    return owned


def _documents_of(engine: Engine, target: Target, scope: str) -> list[str]:
    """The documents of a scope that may be transferred, by document id. Raises MetaharvestError, TargetError."""
    within = (f"{scope}.", f"{scope}/")
    if isinstance(target, EmbeddedTarget):
        held = target.documents_between(*within)
    else:
        with database_errors(engine), readers(engine)() as session:
            owned = owners.owned_between(session, *within)
        held = sorted({*owned, *(each.document_id for each in target.held())})
    found = [document_id for document_id in held if scope_and_identifier(document_id)[0] == scope]
    if not found:
        raise MetaharvestError(f"The target has no document of the scope '{one_line(scope)}'. Nothing was changed.")
    return found
