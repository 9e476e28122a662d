"""The demo's installation: a folder with settings, a database and mail, and the sample sites in its schedule."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from email import message_from_bytes, policy
from pathlib import Path

from metaharvest.app import Harvester
from metaharvest.config.paths import data_folder
from metaharvest.config.settings import FILE_NAME, load
from metaharvest.database.engine import open_database, upgrade
from metaharvest.demo.samples import REPOSITORY, SAMPLE_SITES, SampleNetwork
from metaharvest.model import OaiOptions, SiteOptions
from metaharvest.queries.outbox import rendered_reports
from metaharvest.sites.options import options_text
from metaharvest.sites.registry import add_site
from metaharvest.sites.rows import OAI

_SETTINGS = """\
# The settings of `metaharvest demo`. The sample sites are served only while it runs: see `demo --serve`.
[harvester]
name = "Riverine Ecology Network"
administrators = ["steward@example.org"]

[mail]
backend = "maildir"
folder = "mail"
sender = "harvester@example.org"

[http]
contact_url = "https://example.org/harvester"
allow_networks = ["127.0.0.0/8"]
"""


def new_installation(folder: Path) -> Harvester:
    """Write settings into an empty folder and create the database they name; its harvester, to be closed."""
    file = folder / FILE_NAME
    file.write_text(_SETTINGS, encoding="utf-8")
    settings = load(file, {})
    engine = open_database(settings)
    upgrade(engine)
    engine.dispose()
    return Harvester(settings)


def register_samples(harvester: Harvester, network: SampleNetwork, first_night: date) -> None:
    """Register the sample sites as this network serves them."""
    with harvester.writing() as session:
        for site in SAMPLE_SITES:
            offset = site.next_offset_days
            add_site(
                session,
                {
                    "name": site.name,
                    "documentlisturl": network.list_url(site.name),
                    "contact_email": site.contact,
                    "updatefrequency": site.frequency,
                    "unit": site.unit.value,
                    "datenextharvest": None if offset is None else first_night + timedelta(days=offset),
                },
            )
        add_site(session, _repository(network, first_night))


def _repository(network: SampleNetwork, first_night: date) -> dict[str, object]:
    """The columns of the site that is an OAI-PMH repository."""
    url, files = network.oai_url(REPOSITORY.name), data_folder("sample_sites") / REPOSITORY.name
    options = SiteOptions(
        filters=files / "filters.xml", normalize=files / "normalize.xml", oai=OaiOptions(origin=REPOSITORY.name)
    )
    return {
        "name": REPOSITORY.name,
        "source_kind": OAI,
        "documentlisturl": url,
        "contact_email": REPOSITORY.contact,
        "datenextharvest": first_night,
        "options": options_text(options),
    }


def write_pages(harvester: Harvester, folder: Path) -> Iterator[Path]:
    """Write the HTML of every report into a file for a browser, in the order in which they were sent."""
    folder.mkdir()
    with harvester.reading() as session:
        for harvest_date, site_name, content in rendered_reports(session):
            body = message_from_bytes(content, policy=policy.default).get_body(("html",))
            page = folder / f"{harvest_date}-{site_name or 'administrator'}.html"
            page.write_text(body.get_content().replace("\r\n", "\n") if body else "", encoding="utf-8")
            yield page
