"""Splits: an upgrade divides a site with several sets into one site for each set.

The first one keeps the former site's id, its log and its rows in the ledger, whose list has the number BEFORE_SPLIT.
Records that its first full list names stay with it. The other rows wait until all of the sites have had a full list
without holes, and no site's row is broken. Then they belong to other sites, or are missing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date

from sqlalchemy.orm import Session

from metaharvest.journal import oai_notes
from metaharvest.journal.log_rows import LogRow
from metaharvest.ledger import records
from metaharvest.ledger.records import Unnamed
from metaharvest.ledger.rows import delete_entries
from metaharvest.ledger.sweeps import full_lists
from metaharvest.model import Finding, Level, Site
from metaharvest.model.values import frozen
from metaharvest.problems.attention import SPLIT
from metaharvest.sites.registry import has_broken_split, read_sites
from metaharvest.text import one_line

_NAMED = 10


def begun(session: Session, site: Site) -> list[LogRow]:
    """The row with the first list of a site: it names the sites that the former site became."""
    sites = _sites(session, site)
    first = site.options.split_from or site.name
    named = [f"'{each.name}' (set {one_line(_set_of(each), 60)})" for each in sites[:_NAMED]]
    more = f" and {len(sites) - _NAMED:,} more" if len(sites) > _NAMED else ""
    message = (
        f"The site '{first}' had several sets, and a site has one set now. It became {len(sites):,} sites: "
        f"{', '.join(named)}{more}. Each of them lists all of its records once."
    )
    remedy = (
        f"No action is needed: the dates, contacts, options and settings of '{first}' hold for all of them. No "
        "document changes, and none is missing before all of these sites have listed all of their records."
    )
    return oai_notes.doubtful((Finding(SPLIT, message, remedy, Level.WARNING),))


def sort(session: Session, site: Site, sweep_id: int, today: date) -> list[LogRow]:
    """Sort the rows from before the split, if `site` has them, and all of the sites have had a full list.

    Returns the row about missing records, if there are any. `sweep_id`: the number of the site's sweep.
    """
    rows = records.before_split(session, site.site_id) if site.options.split_from == site.name else []
    if not rows:
        return []
    ids = [each.site_id for each in _sites(session, site) if each.enabled or each.site_id == site.site_id]
    full = full_lists(session, ids)
    are_read = all(each in full and full[each].last and not full[each].has_holes for each in ids)
    if has_broken_split(session) or not are_read:
        return []
    others = records.known_at(
        session, [each for each in ids if each != site.site_id], [each.document_id for each in rows]
    )
    sorting = sorted_rows(rows, others)
    delete_entries(session, sorting.forgotten)
    if site.options.oai is not None and site.options.oai.until is not None:
        # A record that changes leaves a list that ends at a date: it is not missing.
        records.end_split(session, site.site_id, None)
        return []
    records.end_split(session, site.site_id, max(sweep_id - 1, 1))
    if not sorting.missing:
        return []
    marked = records.mark_missing(session, site.site_id, sorting.missing, today)
    return [oai_notes.missing([each.document_id for each in sorting.missing], marked)]


@frozen
class Sorting:
    """The ids of the rows that are `forgotten`, and the rows whose records are `missing`."""

    forgotten: Sequence[int]
    missing: Sequence[Unnamed]


def sorted_rows(rows: Sequence[Unnamed], known: Collection[str]) -> Sorting:
    """Sort the rows that the first site's full list did not name. `known`: documents of the other sites. Pure."""
    missing = [each for each in rows if each.has_copy and each.document_id not in known]
    kept = {each.entry_id for each in missing}
    return Sorting([each.entry_id for each in rows if each.entry_id not in kept], missing)


def _sites(session: Session, site: Site) -> list[Site]:
    """The sites that were made of one, the first of them first."""
    of_split = site.options.split_from
    found = [each for each in read_sites(session) if isinstance(each, Site) and each.options.split_from == of_split]
    return sorted(found, key=lambda each: (each.name != of_split, each.site_id))


def _set_of(site: Site) -> str:
    return (site.options.oai.set_spec if site.options.oai else None) or "none"
