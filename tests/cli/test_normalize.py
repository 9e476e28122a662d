"""`metaharvest normalize test FILE RECORD`: a record before and after."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.harvester import said

DC = "http://purl.org/dc/elements/1.1/"
FILE = f"""<normalize><selectionNamespaces>xmlns:dc='{DC}'</selectionNamespaces>
<mapping xpath="//dc:type"><newElement name="dc:type" regexp="photo" ignoreCase="true">
<newValue>StillImage</newValue></newElement></mapping></normalize>"""
RECORD = (
    '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><GetRecord><record><header><identifier>oai:r:1</identifier>'
    f'</header><metadata><dc xmlns="urn:x" xmlns:dc="{DC}"><dc:type>Photo</dc:type></dc></metadata></record>'
    '<record><header status="deleted"><identifier>oai:r:2</identifier></header></record></GetRecord></OAI-PMH>'
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("normalize.xml").write_text(FILE)
    Path("record.xml").write_text(RECORD)
    Path("other.xml").write_text(f'<dc xmlns:dc="{DC}"><dc:type>Map</dc:type></dc>')
    Path("broken.xml").write_text("<dc>")


def test_it_shows_a_record_before_and_after() -> None:
    answer = said("normalize", "test", "normalize.xml", "record.xml", "other.xml")
    assert answer.code == 0
    before, _, after = answer.out.partition("After:")
    assert "record.xml, oai:r:1: 1 element is added." in before
    assert "<dc:type>Photo</dc:type></dc>" in before
    assert "<dc:type>Photo</dc:type><dc:type>StillImage</dc:type>" in after
    assert "record.xml, oai:r:2: A record that is deleted is not normalised." in after
    assert "other.xml: nothing is added; the bytes stay." in after


def test_a_record_that_cannot_be_read_is_reported() -> None:
    answer = said("normalize", "test", "normalize.xml", "broken.xml", "--json")
    [record] = json.loads(answer.out)["records"]
    assert (answer.code, record["before_text"], record["elements_added"]) == (1, None, 0)
    assert record["reason"]


def test_a_file_of_the_other_kind_names_the_command_for_it() -> None:
    answer = said("filter", "test", "normalize.xml", "record.xml")
    assert answer.code == 2
    assert "`metaharvest normalize test FILE RECORD`" in answer.err
    Path("filters.xml").write_text('<filters match="any"><filter xpath="//dc"/></filters>')
    answer = said("normalize", "test", "filters.xml", "record.xml")
    assert answer.code == 2
    assert "`metaharvest filter test FILE RECORD`" in answer.err
