"""Documents of JSON that the command line prints and the API answers, where they are more than one read model."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from metaharvest.model import Unit
from metaharvest.model.kinds import AS_SETTINGS
from metaharvest.model.mappings import picked
from metaharvest.queries.json_keys import as_mapping
from metaharvest.queries.runs import RunRecord, RunSummary, with_trends
from metaharvest.queries.sites import RegisteredSite
from metaharvest.reports.phrasing import duration, frequency

if TYPE_CHECKING:
    from metaharvest.sites.registrations.store import Registration


def site_in_form(site: RegisteredSite) -> RegisteredSite:
    """A site for output: its frequency in words, and the values that come from the settings."""
    words = site.frequency if site.is_broken else frequency(site.every, Unit(site.unit or ""))
    return replace(site, frequency=words, package_id_mismatch=site.package_id_mismatch or AS_SETTINGS)


def site_document(site: RegisteredSite) -> dict[str, object]:
    """A site; only a broken row has its options."""
    shown = site_in_form(site)
    return {key: value for key, value in as_mapping(shown).items() if key != "options" or site.is_broken}


def run_row(record: RunRecord | RunSummary) -> dict[str, object]:
    """A run in a list, with its totals."""
    dates = {name: getattr(record, name) for name in ("run_id", "harvest_date", "started_at", "ended_at")}
    seconds = record.took_seconds
    took = {"took": "" if seconds is None else duration(seconds), "took_seconds": seconds}
    return {**dates, **took, "status": record.status, "rehearsal": record.is_rehearsal, **asdict(record.totals)}


def run_document(session: Session, record: RunRecord) -> dict[str, object]:
    """A run with its sites, their trends, and its totals."""
    whole = with_trends(session, record)
    sites = [{**as_mapping(site), "trend": site.trend} for site in whole.sites]
    return {**as_mapping(whole), "sites": sites, "totals": whole.totals}


def registration_document(found: Registration) -> dict[str, object]:
    """A registration, without the secrets of its proofs."""
    keys = (
        "registration_id kind=kind.value state=state.value site_id site=name source_kind url prefix set_spec address "
        "every unit=unit.value asked_at rehearsed=summary address_proved_at source_contacts source_mailed_to "
        "source_proved_at source_proof mail_problem decided_at decided_by reason"
    )
    return picked(found, keys) | {
        "prefix": found.prefix or "",
        "set_spec": found.set_spec or "",
        "source_contacts": list(found.source_contacts),
        "source_proof": found.source_proof.value if found.source_proof else None,
    }
