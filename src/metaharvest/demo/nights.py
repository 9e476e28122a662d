"""The demo's installation: a folder with settings, a database and mail, and the sample sites in its schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from email import message_from_bytes, policy
from pathlib import Path

from metaharvest.config.paths import data_folder
from metaharvest.config.settings import FILE_NAME, load
from metaharvest.demo.samples import LIBRARY, REPOSITORY, SAMPLE_SITES, SampleNetwork, SampleSite
from metaharvest.model.kinds import FullText
from metaharvest.model.requests import Actor
from metaharvest.queries.outbox import rendered_reports
from metaharvest.services.harvester import Harvester
from metaharvest.services.installation import prepare_database
from metaharvest.services.sites import SiteValues, register

_SETTINGS = """\
# The settings of the demo. The sample sites are served only while it runs: see `demo --serve`.
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
door_networks = ["127.0.0.0/8"]

[web]
token_key = "of the demo, no secret"
"""
_WITH_PIPELINE = "\n[pipeline]\nenabled = true\n"


def new_installation(folder: Path, url: str = "", broker: str = "") -> Harvester:
    """Write settings into an empty folder and create the database they name; its harvester, to be closed.

    `url`: the address of the console, for the links in mails. `broker`: the address of the broker of workers; without
    workers, the pipeline is enabled.
    """
    file = folder / FILE_NAME
    more = f'url = "{url}"\n' if url else ""
    more += f'\n[workers]\nbroker = "{broker}"\n' if broker else _WITH_PIPELINE
    file.write_text(_SETTINGS + more, encoding="utf-8")
    settings = load(file, {})
    prepare_database(settings)
    return Harvester(settings, actor=Actor("metaharvest demo"))


def register_samples(harvester: Harvester, network: SampleNetwork, first_night: date) -> None:
    """Register the sample sites of this network, early enough before the first night that one is overdue."""
    registered_at = datetime.combine(first_night, time(12), harvester.settings.harvester.zone) - timedelta(days=60)
    with Harvester(harvester.settings, lambda: registered_at, actor=harvester.actor) as then:
        for site in SAMPLE_SITES:
            offset = site.next_offset_days
            values = SiteValues(
                name=site.name,
                list_url=network.list_url(site.name),
                contacts=(site.contact,),
                every=site.frequency,
                unit=site.unit,
                next_harvest=None if offset is None else first_night + timedelta(days=offset),
            )
            register(then, values)
        files = data_folder("sample_sites") / REPOSITORY.name
        values = replace(
            _repository(REPOSITORY, network, first_night),
            filters=files / "filters.xml",
            normalize=files / "normalize.xml",
            full_text=FullText.NONE,  # the links of its records lead to example.org
        )
        register(then, values, unasked=True)


def register_library(harvester: Harvester, network: SampleNetwork) -> None:
    """Register the sample library, whose papers have full texts."""
    register(harvester, _repository(LIBRARY, network, harvester.today()), unasked=True)


def _repository(site: SampleSite, network: SampleNetwork, next_harvest: date) -> SiteValues:
    return SiteValues(
        name=site.name,
        base_url=network.oai_url(site.name),
        contacts=(site.contact,),
        next_harvest=next_harvest,
        origin=site.name,
    )


def write_pages(harvester: Harvester, folder: Path) -> Iterator[Path]:
    """Write the HTML of every report into a file for a browser, in the order in which they were sent."""
    folder.mkdir()
    with harvester.reading() as session:
        for report in rendered_reports(session):
            body = message_from_bytes(report.content, policy=policy.default).get_body(("html",))
            page = folder / f"{report.harvest_date}-{report.site or 'administrator'}.html"
            page.write_text(body.get_content().replace("\r\n", "\n") if body else "", encoding="utf-8")
            yield page
