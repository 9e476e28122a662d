"""The title of a document, as reports and commands show it."""

from __future__ import annotations

import pytest
from lxml import etree

from metaharvest.validation.titles import LONGEST, title_of
from support.harvester import EML

DC = (
    '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<dc:creator>Moss, A.</dc:creator><dc:title> Bog\n  temperatures </dc:title><dc:title>Second</dc:title></oai_dc:dc>"
)
ISO = (
    '<m:MD_Metadata xmlns:m="http://www.isotc211.org/2005/gmd" xmlns:g="http://www.isotc211.org/2005/gco">'
    "<m:title>\n <g:CharacterString>Soil map</g:CharacterString></m:title></m:MD_Metadata>"
)

ISO_BEHIND_OTHERS = (
    '<m:MI_Metadata xmlns:m="http://www.isotc211.org/2005/gmd" xmlns:g="http://www.isotc211.org/2005/gco">'
    "<m:referenceSystemInfo><m:title><g:CharacterString>EPSG</g:CharacterString></m:title></m:referenceSystemInfo>"
    "<m:identificationInfo><m:title><g:CharacterString>Soil map</g:CharacterString></m:title></m:identificationInfo>"
    "</m:MI_Metadata>"
)
DATACITE = (
    '<resource xmlns="http://datacite.org/schema/kernel-{}"><identifier identifierType="DOI">10.1/x</identifier>'
    "<creators><creator><creatorName>Moss, A.</creatorName></creator></creators>"
    '<titles><title xml:lang="en">Bog\n cores</title><title titleType="Subtitle">2026</title></titles></resource>'
)


@pytest.mark.parametrize(
    ("document", "title"),
    [
        (EML.format(docid="alder.1.1", title="Stream chemistry"), "Stream chemistry"),
        (EML.format(docid="alder.1.1", title='<!-- x -->Bach<value xml:lang="de">chemie</value>'), "Bach"),
        (DC, "Bog temperatures"),
        (DC.replace("Bog", "\u200fعنوان\u200b Bog&#13;\u2028"), "عنوان Bog temperatures"),
        (DC.replace("Bog", "\u202eBog"), "\ufffdBog temperatures"),
        (ISO, "Soil map"),
        (ISO_BEHIND_OTHERS, "Soil map"),
        (DATACITE.format(3), "Bog cores"),
        (DATACITE.format(4), "Bog cores"),
        ("<a><b/></a>", ""),
        ("<a><title/></a>", ""),
        (f"<title>{'x' * 5000}</title>", "x" * (LONGEST - 1) + "…"),
    ],
)
def test_the_title_of_a_document_is_the_text_of_its_first_title(document: str, title: str) -> None:
    assert title_of(etree.fromstring(document.encode())) == title
