"""An output as JSON, and back."""

from __future__ import annotations

import pytest

from metaharvest.model.outputs import (
    Access,
    Agent,
    AgentKind,
    DateValue,
    FileLink,
    FileRole,
    Identifier,
    Licence,
    Output,
    Relation,
    ResourceType,
    Text,
)
from metaharvest.pipeline.stored_outputs import json_of, output_of

FULL = Output(
    format="oai_dc",
    titles=(Text('Fr"ö\\sche 蛙 \U0001f438', "dc:title[1]", "de"),),
    creators=(Agent("Alder, A.", "dc:creator[1]", AgentKind.PERSON, "Alder", "A.", "0000-0002-1825-0097"),),
    contributors=(Agent("Alder Creek", "dc:contributor[1]", AgentKind.ORGANISATION, ror="02twcfp32", role="funder"),),
    publishers=(Text("Alder Press", "dc:publisher[1]"),),
    abstracts=(Text("Text", "dc:description[1]"),),
    subjects=(Text("frogs", "dc:subject[1]"),),
    types=(ResourceType("Article", "dc:type[1]", "c_6501", "journal article"),),
    dates=(DateValue("2024-05-01", "Issued", "dc:date[1]"),),
    year=2024,
    languages=(Text("eng", "dc:language[1]", "en"),),
    language="en",
    identifiers=(Identifier("doi", "10.5063/f1", "dc:identifier[1]"),),
    relations=(Relation("References", "doi", "10.5063/f2", "dcterms:references[1]"),),
    licences=(Licence("CC BY", "dc:rights[1]", "CC-BY-4.0", "https://creativecommons.org/licenses/by/4.0/"),),
    access=Access.OPEN,
    embargo_until="2025-01-01",
    files=(FileLink("https://e.org/1.pdf", "dc:identifier[2]", FileRole.FULL_TEXT, "application/pdf", "CC0-1.0"),),
)


@pytest.mark.parametrize("output", [FULL, Output("eml")])
def test_an_output_comes_back_as_it_was(output: Output) -> None:
    assert output_of(json_of(output)) == output


def test_values_that_are_missing_are_left_out() -> None:
    assert json_of(Output("eml", year=2024)) == '{"format":"eml","year":2024}'


def test_other_json_is_refused() -> None:
    with pytest.raises(ValueError, match="format"):
        output_of("{}")
