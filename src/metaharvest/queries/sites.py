"""The schedule in the form for people: every row, broken ones too; no secret and no credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.config.secret_references import NOT_SHOWN, is_reference
from metaharvest.database.models import HarvestSiteRun
from metaharvest.ledger.retries import numbers_failing
from metaharvest.ledger.sweeps import FullLists, full_lists
from metaharvest.model import Site, SiteOptions
from metaharvest.queries.failed_sites import FAILED, FailedSite, failed_sites
from metaharvest.queries.records import Record
from metaharvest.queries.trends import HARVESTS, harvests, last_real_harvest
from metaharvest.sites.due import is_due
from metaharvest.sites.options import options_shown
from metaharvest.sites.overdue import overdue_sites
from metaharvest.sites.registry import find_site, raw_rows, read_sites
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import one_line, shown_url

_HARVESTS_OF_ONE = 10

_NOT_REGISTERED = (
    "site", "site_id", "last_status", "last_run_id", "last_site_run_id", "failing", "failing_since", "failed_since",
    "failed_nights", "failure_reason", "took_seconds",
    "trend", "problems",
)  # fmt: skip
"""What of a site is not a value of its registration."""


def site_names(session: Session) -> dict[int, str]:
    """The registered sites' names by number."""
    return {site.site_id: site.name for site in read_sites(session)}


def last_names(session: Session) -> dict[int, str]:
    """The names of all sites by number; of a removed site the last one."""
    newest = select(func.max(HarvestSiteRun.site_run_id)).group_by(HarvestSiteRun.site_schedule_id)
    harvested = select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.site_name)
    rows = session.execute(harvested.where(HarvestSiteRun.site_run_id.in_(newest)))
    return {row[0]: row[1] for row in rows} | site_names(session)


def known_names(session: Session) -> dict[int, str]:
    """As `last_names`, with a word about removed sites."""
    registered = site_names(session)
    return {
        number: name if number in registered else f"{name} (registered no longer)"
        for number, name in last_names(session).items()
    }


def registered_sites(session: Session, today: date) -> list[Record]:
    """All rows of the schedule, in the order of the names; a broken row as it is in the table.

    Each with the result of its last harvest, the number of failing documents and since when, and its `trend`: see
    trends.py. `state` is off, due, waiting, overdue since a day, or broken; `package_id_mismatch` is None if the site
    has no own value; only a broken row has its `options`; `problems` are its mistakes.
    """
    overdue, failing, full = _overdue_since(session, today), numbers_failing(session), full_lists(session)
    sites = read_sites(session)
    failed = failed_sites(session, today, [site.site_id for site in sites])
    return [
        {
            **_registered(session, site, overdue, today),
            **_harvested(session, site.site_id, failing, failed, HARVESTS),
            "last_full_list": _last_full_list(full, site.site_id),
        }
        for site in sites
    ]


@dataclass(frozen=True, slots=True)
class SiteFilter:
    """Which sites of the schedule are wanted; None or False: any.

    `state` is off, due, waiting, overdue or broken. `not_harvested_for`: switched on, and without a
    successful harvest for at least this number of days, or ever.
    """

    state: str | None = None
    kind: str | None = None
    group: str | None = None
    failing: bool = False
    not_harvested_for: int | None = None

    def takes(self, site: Record, today: date) -> bool:
        """True if this row, one of `registered_sites`, is wanted."""
        last, state = site["last_harvest"], re.split("[ ,]", str(site["state"]))
        days = self.not_harvested_for
        is_late = site["enabled"] and (not isinstance(last, date) or (today - last).days >= (days or 0))
        return (
            (self.state is None or self.state in state)
            and self.kind in (None, site["source_kind"])
            and (self.group is None or self.group in site["groups"])
            and (not self.failing or site["failing"] > 0 or site["last_status"] in FAILED)
            and (days is None or is_late)
        )


def registered_site(session: Session, name: str, today: date) -> Record:
    """The site of this name, as one of `registered_sites`. Raises ScheduleError if there is none."""
    site = find_site(session, name)
    known = _registered(session, site, _overdue_since(session, today), today)
    failing = numbers_failing(session, [site.site_id])
    last_full = _last_full_list(full_lists(session, [site.site_id]), site.site_id)
    failed = failed_sites(session, today, [site.site_id])
    harvested = _harvested(session, site.site_id, failing, failed, _HARVESTS_OF_ONE)
    return {**known, **harvested, "last_full_list": last_full}


def registered_values(site: Record) -> Record:
    """What is registered of one of `registered_sites`: each option of its source repository is a value of its own."""
    values = {name: value for name, value in site.items() if name not in _NOT_REGISTERED and name != "oai"}
    oai: Record = site["oai"] or {}
    asked = {"set" if name == "sets" else name: value for name, value in oai.items()}
    if oai:
        asked["set"] = next(iter(oai["sets"]), None)
    return values | {f"oai_{name}": value for name, value in asked.items()}


def _last_full_list(full: Mapping[int, FullLists], site_id: int) -> str | None:
    """The last full list of the site's source repository, by its own clock."""
    found = full.get(site_id)
    return one_line(found.last, 40) if found and found.last else None


def _harvested(
    session: Session,
    site_id: int,
    failing: Mapping[int, tuple[int, date]],
    failed: Mapping[int, FailedSite],
    number: int,
) -> Record:
    """The result of the site's last harvest, the state of its documents, and a failure's first day and reason."""
    trend, whole = harvests(session, site_id, number), failed.get(site_id)
    last: Record = trend[-1] if trend else {}
    if last and last["rehearsal"]:
        last = last_real_harvest(session, site_id) or {}
    number_failing, since = failing.get(site_id, (0, None))
    return {
        "last_status": last.get("status"),
        "last_run_id": last.get("run_id"),
        "last_site_run_id": last.get("site_run_id"),
        "failing": number_failing,
        "failing_since": since,
        "failed_since": whole.since if whole else None,
        "failed_nights": whole.nights if whole else 0,
        "failure_reason": whole.reason if whole else None,
        "took_seconds": last.get("took_seconds"),
        "trend": trend,
    }


def _overdue_since(session: Session, today: date) -> dict[str, date]:
    """The first day of each site that the reports and the doctor call overdue, by name."""
    return {site.name: site.since for site in overdue_sites(session, today)}


def _registered(session: Session, site: Site | BrokenSite, overdue: Mapping[str, date], today: date) -> Record:
    if isinstance(site, BrokenSite):
        return _broken(session, site)
    return {
        "name": site.name,
        "site": site.name,
        "site_id": site.site_id,
        "state": _state(site, overdue, today),
        "source_kind": site.source_kind,
        "list_url": shown_url(site.list_url),
        "contacts": site.contacts,
        "frequency": f"{site.frequency} {site.unit}",
        "every": site.frequency,
        "unit": site.unit.value,
        "next_harvest": site.next_harvest,
        "last_harvest": site.last_harvest,
        "notify": site.notify.value,
        "enabled": site.enabled,
        "package_id_mismatch": site.options.package_id_mismatch,
        "allow_networks": tuple(map(str, site.options.allow_networks)),
        "ca_file": str(site.options.ca_file) if site.options.ca_file else None,
        **_own(site.options),
        "ldapdn": site.ldap_name,
        "ldappwd": site.ldap_password,
        "problems": (),
    }


def _own(options: SiteOptions) -> Record:
    """Other values of a site's own; request options of a repository, None for a harvest list."""
    oai = options.oai
    return {
        "validation": options.validation,
        "filters": str(options.filters) if options.filters else None,
        "normalize": str(options.normalize) if options.normalize else None,
        "deletions": options.deletions,
        "max_loss": options.max_loss,
        "groups": options.groups,
        "oai": options_shown(oai) if oai else None,
    }


def _state(site: Site, overdue: Mapping[str, date], today: date) -> str:
    if not site.enabled:
        return "off"
    if site.name in overdue:
        return f"overdue since {overdue[site.name]}"
    return "due" if is_due(site, today) else "waiting"


def _broken(session: Session, site: BrokenSite) -> Record:
    """A row that cannot be used, as it is in the table."""
    [row] = raw_rows(session, "WHERE site_schedule_id = :id", {"id": site.site_id})
    return {
        "name": site.name,
        "site": site.name,
        "site_id": site.site_id,
        "state": "broken" if site.enabled else "broken, off",
        "source_kind": row["source_kind"],
        "list_url": shown_url(site.list_url),
        "contacts": (row["contact_email"],) if row["contact_email"] else (),
        "frequency": f"{row['updatefrequency']} {row['unit']}",
        "every": row["updatefrequency"],
        "unit": row["unit"],
        "next_harvest": row["datenextharvest"],
        "last_harvest": row["datelastharvest"],
        "notify": row["notify"],
        "enabled": site.enabled,
        "package_id_mismatch": None,
        "allow_networks": (),
        "ca_file": None,
        **_own(SiteOptions()),
        "ldapdn": row["ldapdn"],
        "ldappwd": row["ldappwd"] if is_reference(row["ldappwd"]) else NOT_SHOWN,
        "options": row["options"],
        "problems": tuple(finding.message for finding in site.findings),
    }
