"""Lists whose elements are in another namespace than OAI-PMH has, or are none that it has: nothing is lost unsaid."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from lxml import etree

from metaharvest.errors import ListError
from metaharvest.model import Level, ListMethod
from support.oai_harvest import Harvested, harvest
from support.oai_server import OaiServer

ALL = [f"oai:test:{number}" for number in range(1, 31)]
ONE = "<record><header><identifier>oai:test:17<"


def harvested(change: Callable[[str], str], version: str = "2.0", **options: Any) -> Harvested:
    """30 records in three pages; lists are changed on their way."""
    with OaiServer(30, version=version) as repository:
        repository.tamper = lambda body, asked: (
            change(body.decode()).encode() if asked.verb in ("ListRecords", "ListIdentifiers") else body
        )
        return harvest(repository.base_url, **options)


@pytest.mark.parametrize("version", ["2.0", "1.1"])
@pytest.mark.parametrize(("namespace", "shown"), [("", "none"), ("urn:other", "urn:other")])
def test_records_in_another_namespace_are_taken_and_reported(version: str, namespace: str, shown: str) -> None:
    found = harvested(lambda body: body.replace("<record>", f'<record xmlns="{namespace}">'), version)
    assert sorted(found.good) == sorted(ALL)
    assert [(finding.rule, finding.level) for finding in found.findings] == [("oai.protocol", Level.WARNING)]
    assert f"30 of the list's records are not in the namespace of their answer (but in: {shown})" in found.words(
        "oai.protocol"
    )


# Parts of the answers are in a wrong namespace: https://github.com/LearningRegistry/LearningRegistry/issues/57
@pytest.mark.parametrize(
    ("tag", "namespace", "number"), [("header", "", 1), ("metadata", "urn:x", 1), ("datestamp", "", 0)]
)
def test_parts_of_records_in_another_namespace_are_read(tag: str, namespace: str, number: int) -> None:
    found = harvested(lambda body: body.replace(f"<{tag}>", f'<{tag} xmlns="{namespace}">'))
    assert sorted(found.good) == sorted(ALL)
    assert len(found.findings) == number
    shown = f"30 of the list's records are not in the namespace of their answer (but in: {namespace or 'none'})"
    assert found.words("oai.protocol").startswith(shown if number else "")


# Pages behind the first one declare no xsi: https://github.com/OPUS4/application/issues/427
@pytest.mark.parametrize("tag", ["OAI-PMH", "metadata", "dc"])
def test_records_with_an_undeclared_xsi_are_taken(tag: str) -> None:
    def change(body: str) -> str:
        return re.sub(rf"<((?:\w+:)?{tag})(?=[\s>])", r'<\1 xsi:schemaLocation="urn:a a.xsd"', body)

    found = harvested(change)
    assert sorted(found.good) == sorted(ALL)
    assert [(finding.rule, finding.level) for finding in found.findings] == [("oai.ill-formed", Level.WARNING)]
    for content in [record.content for record in found.records if tag == "dc"]:
        assert content is not None
        assert "urn:a a.xsd" in etree.fromstring(content).attrib.values()


@pytest.mark.parametrize("damage", ["", "?a=1&b=2"])
def test_one_record_in_another_namespace_is_taken(damage: str) -> None:
    foreign = ONE.replace("<record>", '<record xmlns="">')
    found = harvested(lambda body: body.replace(ONE, foreign).replace("<request>", f"<request>{damage}"))
    assert sorted(found.good) == sorted(ALL)
    assert "1 of the list's records are not in the namespace" in found.words("oai.protocol")


@pytest.mark.parametrize("version", ["2.0", "1.1"])
def test_headers_in_another_namespace_are_asked_for(version: str) -> None:
    tag = "header" if version == "2.0" else "identifier"
    method = ListMethod.LIST_IDENTIFIERS
    found = harvested(lambda body: body.replace(f"<{tag}>", f'<{tag} xmlns="urn:x">'), version, method=method)
    assert sorted(found.good) == sorted(ALL)


@pytest.mark.parametrize("tag", ["resumptionToken", "ListRecords", "responseDate"])
def test_other_elements_in_another_namespace_are_read(tag: str) -> None:
    found = harvested(
        lambda body: (
            body.replace("</ListRecords>", "</x:ListRecords>")
            .replace("<ListR", "<x:ListR")
            .replace("<x:ListRecords", '<x:ListRecords xmlns:x="urn:x"')
            if tag == "ListRecords"
            else body.replace(f"<{tag}", f'<{tag} xmlns=""')
        )
    )
    assert sorted(found.good) == sorted(ALL)
    assert found.findings == []
    assert found.checkpoint is not None
    assert found.checkpoint["watermark"] == "2026-11-20T03:00:00Z"


def test_an_error_in_another_namespace_is_read() -> None:
    error = '<error xmlns="" code="badArgument">no</error></OAI-PMH>'
    with pytest.raises(ListError) as caught:
        harvested(lambda body: body.partition("<ListRecords>")[0] + error)
    assert "refuses ListRecords: badArgument (no)" in str(caught.value)


@pytest.mark.parametrize("number", [1, 3, 30])
def test_elements_that_are_no_records_are_counted_and_reported(number: int) -> None:
    names = [f"<record><header><identifier>{each}<" for each in ALL[-number:]]

    def change(body: str) -> str:
        before, *records = body.split("<record>")
        changed = [
            f"<item>{each.replace('</record>', '</item>')}" if f"<record>{each}".startswith(tuple(names)) else each
            for each in records
        ]
        return "<record>".join([before, *changed]).replace("<record><item>", "<item>")

    found = harvested(change)
    assert sorted(found.good) == sorted(ALL[: 30 - number])
    assert ("oai.protocol", True) in [(finding.rule, finding.is_error) for finding in found.findings]
    assert f"The list has {number} elements that are neither records nor a resumption token" in found.words(
        "oai.protocol"
    )
    assert "such as <item>" in found.words("oai.protocol")


def test_what_is_no_element_is_nothing_to_tell() -> None:
    between = "<!-- here --><?php 1?>\n&#32;<record>"
    found = harvested(lambda body: body.replace("<record>", between).replace("<resumption", "<!-- x --><resumption"))
    assert sorted(found.good) == sorted(ALL)
    assert found.findings == []


def test_a_long_page_is_counted_rightly() -> None:
    with OaiServer(3_000, page=3_000) as repository:
        repository.tamper = lambda body, asked: (
            body.replace(b"</record>", b"</record><!-- x --><set/>") if asked.verb == "ListRecords" else body
        )
        found = harvest(repository.base_url)
    assert len(found.good) == 3_000
    assert "3,000 elements that are neither" in found.words("oai.protocol")
