"""The document ids of records, for people who know the OAI identifier."""

from __future__ import annotations

from sqlalchemy.orm import Session

from metaharvest.model import Site
from metaharvest.sites.registry import read_sites
from metaharvest.sources.oai_pmh.record_names import RecordNames


def record_ids(session: Session, identifier: str) -> list[str]:
    """The document ids that a record of this OAI identifier would have at each registered source repository."""
    sites = [site for site in read_sites(session) if isinstance(site, Site)]
    names = [RecordNames(site.list_url, site.options.oai) for site in sites if site.options.oai is not None]
    return list(dict.fromkeys(each.document_id(identifier) for each in names))
