"""The sample repository: three nights of an OAI-PMH repository with filters and normalising, as the demo plays them."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

from lxml import etree

from metaharvest.demo.nights import new_installation, register_samples
from metaharvest.demo.samples import SampleNetwork
from metaharvest.harvest.run import RunRequest
from support.harvester import rows_of

NIGHT = date(2026, 11, 20)
DC = "{http://purl.org/dc/elements/1.1/}"


def test_three_nights_of_the_sample_repository(tmp_path: Path) -> None:
    with new_installation(tmp_path) as harvester, SampleNetwork() as network:
        register_samples(harvester, network, NIGHT)
        for night in (1, 2, 3):
            network.night = night
            harvester.run(RunRequest(NIGHT + timedelta(days=night - 1), ("gravel-bar",)))
        totals = rows_of(
            harvester.engine,
            "SELECT status, listed, inserted, updated, deleted, filtered FROM harvest_site_run ORDER BY site_run_id",
        )
        assert totals == [
            ("succeeded", 12, 8, 0, 0, 4),
            ("succeeded", 0, 0, 0, 0, 0),
            ("succeeded", 3, 1, 1, 1, 0),
        ]
        target = harvester.targets.default
        content = target.content("gravel-bar/oai_dc/oai:gravel-bar.example.org:mayfly-counts", 1)
        assert content is not None
        subjects = [each.text for each in etree.fromstring(content).iter(f"{DC}subject")]
        assert subjects == ["Insects", "Animals", "Mayflies"]
        [(altered, received)] = rows_of(
            harvester.engine,
            "SELECT altered, received FROM document_origin WHERE identifier LIKE ?",
            "%mayfly-counts",
        )
        assert altered
        assert b"Animals" not in received


def test_the_repository_answers_what_the_protocol_asks() -> None:
    with SampleNetwork() as network:

        def asked(query: str) -> str:
            return network.records("gravel-bar", query).decode()

        assert "<repositoryName>Gravel Bar Archive" in asked("verb=Identify")
        assert "oai_dc" in asked("verb=ListMetadataFormats")
        assert 'code="noSetHierarchy"' in asked("verb=ListSets")
        first = asked("verb=ListIdentifiers&metadataPrefix=oai_dc")
        assert (first.count("<identifier>"), first.count("<metadata>")) == (5, 0)
        assert 'completeListSize="12"' in first
        assert asked("verb=ListRecords&resumptionToken=oai_dc,,,10").count("<metadata>") == 2
        assert 'code="noRecordsMatch"' in asked("verb=ListRecords&metadataPrefix=oai_dc&from=2013-01-01")
        assert 'code="cannotDisseminateFormat"' in asked("verb=ListRecords&metadataPrefix=eml")
        assert 'code="badResumptionToken"' in asked("verb=ListRecords&resumptionToken=x")
        assert 'code="badVerb"' in asked("verb=Say")
        assert "Counts of mayflies" in asked(
            "verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:gravel-bar.example.org:mayfly-counts"
        )
        assert 'code="idDoesNotExist"' in asked("verb=GetRecord&metadataPrefix=oai_dc&identifier=x")
