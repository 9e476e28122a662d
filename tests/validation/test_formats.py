"""Documents of other formats than EML at the three levels: valid, broken, of a format without a schema."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree

from metaharvest.model import Finding, Level, ListedDocument, RecordOrigin, ValidationLevel, Verdict
from metaharvest.validation.formats import FORMATS
from metaharvest.validation.lenient import is_accepted_date
from metaharvest.validation.processing_policy import ProcessingPolicy
from support import format_documents
from support.eml_documents import VALIDATOR, eml
from support.format_documents import VALID

ORIGIN = RecordOrigin("https://r.example.org/oai", "oai:r:1", "oai_dc", "2026-11-20", "2026-11-20T00:00:00Z")
RECORD = ListedDocument("oai:r:1", 1, "", "https://r.example.org/oai", origin=ORIGIN)


def verdict(content: str | bytes, level: ValidationLevel = ValidationLevel.VERY_STRICT) -> Verdict:
    encoded = content.encode() if isinstance(content, str) else content
    return VALIDATOR.check(encoded, RECORD, ProcessingPolicy(level=level))


def errors(content: str) -> list[Finding]:
    return list(verdict(content).findings)


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("level", list(ValidationLevel))
def test_a_valid_document_is_valid_at_every_level_however_often(name: str, level: ValidationLevel) -> None:
    for _ in range(2):
        assert verdict(VALID[name], level) == Verdict()
    assert verdict(VALID[name] + "<!-- large -->" * 10_000, level) == Verdict()


BROKEN = {
    "oai_dc": ("<dc:date>2026</dc:date>", "<dc:datum>2026</dc:datum>", 5, "datum is not known inside dc"),
    "dspace-qdc": ("2026-11-20", "20 Nov", 4, "issued is '20 Nov', which is not a"),
    "worldcat-qdc": ("dcterms:alternative", "dcterms:alternate", 3, "alternate is not expected at this place."),
    "onedcx": ("dcterms:title", "dcterms:titel", 3, "titel"),
    "datacite": ("<publisher>Alder Creek</publisher>\n", "", 1, "resource is not complete: publisher is missing."),
    "iso": ("gmd:language", "gmd:lingua", 26, "lingua is not expected at this place."),
    "iso-old-gml": ("gml:endPosition", "gml:ended", 31, "ended is not expected at this place."),
    "iso-anchor": ("gmx:Anchor", "gmx:Ankor", 16, "Ankor"),
    "iso-service": ("<gco:LocalName>view</gco:LocalName>", "<gco:Local/>", 26, "Local is not expected"),
    "iso-2": ("2026-11-20</gco:Date></gmd:dateStamp>", "never</gco:Date></gmd:dateStamp>", 11, "Date is 'never'"),
    "fgdc": ("<caldate>2026</caldate>", "<caldat>2026</caldat>", 5, "caldat is not expected at this place."),
    "fgdc-biological": ("<taxonrv>Animalia</taxonrv>", "", 10, "taxoncl is not complete"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_told_with_its_place(name: str) -> None:
    old, new, line, said = BROKEN[name]
    assert old in VALID[name]
    found = errors(VALID[name].replace(old, new))
    assert found
    assert any(finding.is_error for finding in found)
    first = found[0]
    assert said in first.message
    assert first.line == line
    assert first.xpath
    assert first.remedy


@pytest.mark.parametrize("name", VALID)
def test_a_loose_site_is_warned_of_what_a_very_strict_one_refuses(name: str) -> None:
    old, new, _, _ = BROKEN[name]
    content = VALID[name].replace(old, new)
    refused, taken = verdict(content), verdict(content, ValidationLevel.LOOSE)
    assert not refused.acceptable
    assert taken.acceptable
    assert {each.level for each in taken.findings} == {Level.WARNING}
    assert [each.message for each in taken.findings] == [each.message for each in refused.findings]
    assert verdict(content, ValidationLevel.STRICT) == Verdict()


@pytest.mark.parametrize("level", list(ValidationLevel))
@pytest.mark.parametrize("content", ["", "<a>", "<a>\x01</a>", "no XML", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'])
def test_what_is_not_well_formed_is_refused_at_every_level(level: ValidationLevel, content: str) -> None:
    assert not verdict(content, level).acceptable


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("<book xmlns='urn:books'/>", "book in the namespace urn:books"),
        ("<html/>", "html in no namespace"),
        (
            '<resource xmlns="http://datacite.org/schema/kernel-4"/>',
            "resource in the namespace http://datacite.org/schema/",
        ),
        (format_documents.iso(format_documents.OLD_GML, "gmi:MI_Metadata"), "MI_Metadata in the namespace"),
    ],
)
def test_a_format_without_a_schema_is_taken_with_a_warning(content: str, what: str) -> None:
    [finding] = verdict(content).findings
    assert (finding.rule, finding.level) == ("validation.no-schema", Level.WARNING)
    assert what in finding.message
    assert verdict(content, ValidationLevel.LOOSE) == verdict(content, ValidationLevel.STRICT) == Verdict()


def test_eml_of_a_repository_obeys_the_rules_of_eml_but_needs_no_docid() -> None:
    assert verdict(eml("2.2.0", package_id="doi:10.1234/x")) == Verdict()
    [finding] = verdict(eml("2.2.0", "<contact><references>x</references></contact>")).findings
    assert finding.rule == "eml.reference-unresolved"
    # Once more from a first look, when the schema is there already.
    assert verdict(eml("2.1.1")) == verdict(eml("2.1.1")) == Verdict()


@pytest.mark.parametrize("wrong", ["<titles><title/></titles>", '<title xmlns="urn:other">x</title>'])
def test_an_element_in_another_namespace_is_told_as_such(wrong: str) -> None:
    found = errors(format_documents.DATACITE.replace("<publisher>", f"{wrong}<publisher>"))
    assert found
    assert not any("should be in none" in finding.message for finding in found)


OAI_1_1 = "http://www.openarchives.org/OAI/1.1/OAI_ListRecords"


@pytest.mark.parametrize("protocol", ["http://www.openarchives.org/OAI/2.0/", OAI_1_1])
@pytest.mark.parametrize("length", [0, 1_100_000], ids=["explained", "large"])
def test_eml_that_does_not_undeclare_the_namespace_of_the_answer_is_told_to(protocol: str, length: int) -> None:
    content = eml("2.2.0").decode().replace("<eml:eml ", f'<eml:eml xmlns="{protocol}" ') + f"<!--{' ' * length}-->"
    [finding] = errors(content)
    assert finding.rule == "schema.unexpected-element"
    assert "dataset is taken for an element of OAI-PMH" in finding.message
    assert 'Add xmlns="" to <eml:eml>, the root of the metadata' in finding.remedy
    assert verdict(content.replace(f'xmlns="{protocol}"', 'xmlns=""')) == Verdict()


@pytest.mark.parametrize("root", ["metadata", "resource", "eml"])
def test_a_format_without_an_xmlns_of_its_own_is_told_to_the_keeper(root: str) -> None:
    [finding] = errors(f'<{root} xmlns="http://www.openarchives.org/OAI/2.0/"><idinfo/></{root}>')
    assert (finding.rule, finding.level) == ("validation.no-schema", Level.WARNING)
    assert f"<{root}>, the root of the metadata, has no xmlns of its own" in finding.message
    assert 'xmlns="" where the format has no namespace, such as FGDC' in finding.remedy
    assert "do nothing" not in finding.remedy


AFFILIATION_FIRST = (
    '<affiliation>Alder Creek</affiliation><nameIdentifier nameIdentifierScheme="ORCID">0</nameIdentifier>'
)
URL_FIRST = "<onlineUrl>https://alder.example.org/</onlineUrl><phone>1</phone>"
TWO_TITLES = "<titles><title>Another</title></titles>"


@pytest.mark.parametrize(
    ("content", "rule", "remedy"),
    [
        (
            format_documents.OAI_DC.replace("dc:creator", "dc:author"),
            "schema.unexpected-element",
            "dc takes, in any order: ",
        ),
        (
            format_documents.DATACITE.replace("<publicationYear>", f"{TWO_TITLES}<publicationYear>"),
            "schema.too-many-elements",
            "resource takes, in any order: ",
        ),
        (
            format_documents.DATACITE.replace("</creatorName>", f"</creatorName>{AFFILIATION_FIRST}"),
            "schema.wrong-order",
            "Move nameIdentifier before affiliation. creator takes, in this order: creatorName,",
        ),
        (
            eml("2.2.0", f"<contact><positionName>Manager</positionName>{URL_FIRST}</contact>"),
            "schema.wrong-order",
            "Move phone before onlineUrl. contact takes, mostly in this order: individualName,",
        ),
        (
            eml("2.2.0", "<coverage><temporalCoverage><date>2026</date></temporalCoverage></coverage>"),
            "schema.unexpected-element",
            "temporalCoverage takes one of these: singleDateTime, rangeOfDates, references.",
        ),
    ],
    ids=["oai_dc", "datacite", "creator", "contact", "temporalCoverage"],
)
def test_an_order_is_asked_for_only_where_the_schema_has_one(content: str, rule: str, remedy: str) -> None:
    [found] = [each for each in errors(content) if each.rule == rule]
    assert remedy in found.remedy


def test_no_schema_is_fetched_that_a_document_names() -> None:
    location = 'xsi:schemaLocation="http://www.openarchives.org/OAI/2.0/oai_dc/ http://127.0.0.1:1/nothing.xsd"'
    start, _, rest = format_documents.OAI_DC.partition("xsi:schemaLocation")
    content = f"{start}{location}{rest[rest.index('>') :]}"
    assert verdict(content) == Verdict()
    assert errors(content.replace("dc:title", "dc:titel"))[0].rule == "schema.unexpected-element"


PROGRAM = """
import resource, sys
from metaharvest.model import ValidationLevel
from metaharvest.validation.processing_policy import ProcessingPolicy
from metaharvest.validation.validator import Validator
from support.format_documents import VALID
from validation.test_formats import RECORD
validator = Validator(at_once=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for content in VALID.values():
    assert validator.check(content.encode(), RECORD, ProcessingPolicy(level=ValidationLevel.VERY_STRICT)).acceptable
assert "xmlschema" not in sys.modules
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_all_schemas_together_take_little_memory_and_no_xmlschema() -> None:
    folder = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 80_000


def test_the_formats_are_those_of_the_documents_here() -> None:
    assert {each.name for each in FORMATS.values()} == {
        "Dublin Core (oai_dc)",
        "qualified Dublin Core",
        "qualified Dublin Core (DataONE)",
        "DataCite 3",
        "ISO 19139",
        "ISO 19139-2",
    }


DATE_TIME = "<gmd:dateStamp><gco:DateTime>{}2026-11-20T03:00:00Z{}</gco:DateTime>"
DURATION = "<gml:endPosition>2021</gml:endPosition><gml:duration>{}P1Y{}</gml:duration>"
SPACE = "\n        "


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<gmd:dateStamp><gco:Date>2026-11-20</gco:Date>", DATE_TIME),
        ("<gml:endPosition>2021</gml:endPosition>", DURATION),
    ],
)
def test_white_space_around_dates_of_iso_19139_is_no_mistake(old: str, new: str) -> None:
    assert old in VALID["iso"]
    assert verdict(VALID["iso"].replace(old, new.format(SPACE, SPACE))) == Verdict()
    assert not verdict(VALID["iso"].replace(old, new.format(SPACE + "x", SPACE))).acceptable


@pytest.mark.parametrize(
    ("kind", "value", "wrong"),
    [
        ("date", "2026-02-28", "2026-02-30"),
        ("time", "10:00:00", "10"),
        ("dateTime", "2026-02-28T10:00:00Z", "2026-02-28 10:00"),
        ("gYear", "2026", "26"),
        ("gYearMonth", "2026-02", "2026-13"),
        ("gMonthDay", "--02-28", "02-28"),
        ("gDay", "---03", "3"),
        ("gMonth", "--04", "4"),
        ("duration", "P1Y", "1Y"),
    ],
)
def test_white_space_is_no_mistake_around_any_date_or_duration(kind: str, value: str, wrong: str) -> None:
    schema = etree.XMLSchema(
        etree.XML(
            f'<s:schema xmlns:s="http://www.w3.org/2001/XMLSchema"><s:element name="a" type="s:{kind}"/></s:schema>'
        )
    )
    for text, is_accepted in ((f" {value}\n", True), (f" {wrong}\n", False), (wrong, False)):
        assert not schema.validate(etree.XML(f"<a>{text}</a>"))
        message = str(schema.error_log.last_error.message)  # type: ignore[attr-defined]
        assert is_accepted_date(message) is is_accepted


DETAIL = (
    "<gmd:spatialResolution><gmd:MD_Resolution><gmd:levelOfDetail><gco:CharacterString>fine</gco:CharacterString>"
    "</gmd:levelOfDetail></gmd:MD_Resolution></gmd:spatialResolution><gmd:language>"
)


def test_iso_19139_2_that_is_valid_by_the_schema_of_noaa_is_valid() -> None:
    content = VALID["iso-2"].replace("<gmd:language>", DETAIL, 1)
    assert content != VALID["iso-2"]
    assert verdict(content) == Verdict()
    assert verdict(content + "<!-- large -->" * 30_000) == Verdict()
    found = errors(content.replace("levelOfDetail", "levelOfSomething"))
    assert "levelOfSomething is not expected at this place." in found[0].message
    assert not verdict(VALID["iso"].replace("<gmd:language>", DETAIL, 1)).acceptable


def test_a_type_that_the_schema_does_not_have_is_reported_once() -> None:
    subjects = "".join(f'<dc:subject xsi:type="dcterms:LCSH">{number}</dc:subject>\n' for number in range(44))
    content = VALID["oai_dc"].replace("<dc:date>", f"{subjects}<dc:date>")
    content = content.replace("<oai_dc:dc ", '<oai_dc:dc xmlns:dcterms="http://purl.org/dc/terms/" ')
    [finding] = errors(content)
    assert finding.rule == "schema.no-type"
    assert finding.message == (
        "xsi:type names the type LCSH, which the schema of this format does not have. "
        "The same is so at 43 more places of the record."
    )
    assert finding.line
    others = content.replace('<dc:subject xsi:type="dcterms:LCSH">', "<dcterms:subject>")
    [finding] = errors(others.replace("</dc:subject>", "</dcterms:subject>"))
    assert "purl.org/dc/terms/; it should be in" in finding.message
    assert "The same is so at 43 more places" in finding.message
