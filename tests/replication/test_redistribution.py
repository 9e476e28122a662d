"""Licences under which texts may be given away."""

from __future__ import annotations

from datetime import date

import pytest

from metaharvest.model.outputs import Access, Licence, Output
from metaharvest.pipeline.cleaning.licences import spdx_of
from metaharvest.replication.dataset.texts import LICENCES, shared_under

TODAY = date(2026, 11, 28)


def shared(
    *texts: str, of_file: str | None = None, access: Access | None = None, until: str | None = None
) -> str | None:
    licences = tuple(Licence(each, "dc:rights[1]", spdx_of(each)) for each in texts)
    return shared_under(Output("oai_dc", licences=licences, access=access, embargo_until=until), of_file, TODAY)


@pytest.mark.parametrize("name", LICENCES)
def test_each_identifier_of_the_table_is_recognised(name: str) -> None:
    assert shared(of_file=name) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("https://creativecommons.org/licenses/by/4.0/", "CC-BY-4.0"),
        ("http://creativecommons.org/licenses/by-nc-sa/3.0/igo/", "CC-BY-NC-SA-3.0-IGO"),
        ("CC BY", "CC-BY"),
        ("cc-by-nc", "CC-BY-NC"),
        ("https://creativecommons.org/licenses/by-sa/", "CC-BY-SA"),
        ("Creative Commons Attribution License", "CC-BY"),
        ("http://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
    ],
)
def test_open_licences_are_recognised_in_files_and_in_records(text: str, name: str) -> None:
    assert shared(text) == name
    assert shared(of_file=text) == name
    assert shared("Copyright 2020, the authors", text) == name


@pytest.mark.parametrize(
    "text",
    [
        *("CC BY-ND 4.0", "CC BY-NC-ND", "https://creativecommons.org/licenses/by-nc-nd/4.0/"),
        *("All rights reserved", "In Copyright", "http://rightsstatements.org/vocab/InC/1.0/"),
        *("open access", "info:eu-repo/semantics/openAccess", "GPL-3.0-only", "Elsevier user license", "4.0", ""),
    ],
)
def test_nothing_else_is_given_away(text: str) -> None:
    assert shared(text) is None
    assert shared(of_file=text) is None


def test_without_a_licence_nothing_is_given_away() -> None:
    assert shared() is None


def test_one_licence_that_does_not_allow_it_is_enough() -> None:
    assert shared("CC BY-NC-ND 4.0", of_file="CC-BY-4.0") is None
    assert shared("CC BY 4.0", of_file="CC-BY-ND-4.0") is None
    assert shared("CC0", of_file="CC-BY-4.0") == "CC-BY-4.0"


def test_a_closed_file_is_not_given_away() -> None:
    assert shared("CC BY 4.0", access=Access.RESTRICTED) is None
    assert shared("CC BY 4.0", access=Access.EMBARGOED, until="2026-11-29") is None
    assert shared("CC BY 4.0", access=Access.EMBARGOED, until="2026-11-28") == "CC-BY-4.0"
