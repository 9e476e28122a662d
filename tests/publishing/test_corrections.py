"""Corrections that a program makes alone: the corrected document passes the rule, and every other byte stays."""

from __future__ import annotations

import pytest

from metaharvest.publishing.corrections import corrected
from metaharvest.publishing.documents import read_document
from support.harvester import EML

LATIN = EML.format(docid="a.1.1", title="Fluß")
OLD = "eml://ecoinformatics.org/eml-2.1.1"


@pytest.mark.parametrize(
    ("content", "before"),
    [
        (LATIN.encode("windows-1252"), 'encoding="UTF-8", written in windows-1252'),
        (LATIN.replace("UTF-8", "us-ascii").encode(), 'encoding="us-ascii"'),
        (LATIN.replace(' encoding="UTF-8"', "").encode("windows-1252"), "no encoding, written in windows-1252"),
    ],
)
def test_another_encoding_becomes_the_declared_one(content: bytes, before: str) -> None:
    done = corrected(content, ["xml.encoding"])
    assert [(each.rule, each.before) for each in done.corrections] == [("xml.encoding", before)]
    document = read_document(done.content)
    assert document.root.findtext("dataset/title") == "Fluß"
    assert corrected(done.content, ["xml.encoding"]).corrections == ()


def test_line_ends_and_all_other_bytes_stay() -> None:
    content = LATIN.replace("\n", "\r\n").encode("windows-1252")
    assert corrected(content, ["xml.encoding"]).content == LATIN.replace("\n", "\r\n").encode()


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("http://ecoinformatics.org/eml-2.1.1", OLD),
        ("eml://ecoinformatics.org/eml-2.2.0", "https://eml.ecoinformatics.org/eml-2.2.0"),
        ("eml://ecoinformatics.org/eml-2.1", OLD),
    ],
)
def test_a_wrong_namespace_becomes_that_of_its_version(wrong: str, right: str) -> None:
    text = LATIN.replace(
        f'xmlns:eml="{OLD}"', f'xmlns:eml="{wrong}"\n xmlns:xsi="x" xsi:schemaLocation="{wrong} eml.xsd"'
    )
    text = text.replace("<eml:eml", f"<!-- <eml:eml xmlns='{wrong}'> -->\n<eml:eml", 1)
    done = corrected(text.encode(), ["eml.not-eml"])
    assert [(each.before, each.after, each.line) for each in done.corrections] == [(wrong, right, 3)]
    assert read_document(done.content).document_type == right
    assert f'xsi:schemaLocation="{right} eml.xsd"'.encode() in done.content
    assert f"<!-- <eml:eml xmlns='{wrong}'> -->".encode() in done.content


def test_a_package_id_that_is_nearly_a_docid_becomes_one() -> None:
    content = EML.format(docid="a.010.1", title="A title").encode()
    done = corrected(content, ["eml.package-id"])
    assert [(each.before, each.after, each.line) for each in done.corrections] == [
        ('packageId="a.010.1"', 'packageId="a.10.1"', 2)
    ]
    assert done.content == EML.format(docid="a.10.1", title="A title").encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff\xfe",
        b"<eml",
        b"<a/>",
        b"<?xml version='1.0' encoding='UTF-8'",
        b"<!DOCTYPE a [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><a>&b;</a>",
        b"<eml:eml xmlns:eml='nothing like it'/>",
        b"<eml/>",
        EML.format(docid="doi:10.1234/abc", title="A").encode(),
    ],
)
def test_what_is_unclear_stays(content: bytes) -> None:
    done = corrected(content, ["xml.encoding", "eml.not-eml", "eml.package-id", "eml.package-id-mismatch"])
    assert (done.content, done.corrections) == (content, ())


def test_rules_that_no_program_corrects_change_nothing() -> None:
    assert corrected(LATIN.encode("windows-1252"), ["eml.id-duplicate"]).corrections == ()
