"""Documents that are not valid by their schema: rule, words and place, in all five versions."""

from __future__ import annotations

import pytest

from metaharvest.records import MAX_FINDINGS, Level
from metaharvest.settings import ValidationSettings
from metaharvest.validation import Validator
from metaharvest.validation.catalogue import VERSIONS, compile_schema
from support.eml_documents import NAMESPACES, NUMBERS, additional, eml, listed

VALIDATOR = Validator(ValidationSettings())
every_version = pytest.mark.parametrize("number", NUMBERS)


def check(number: str, content: bytes):
    return VALIDATOR.check(content, listed(number), Level.WARNING)


COVERAGE = """<coverage><geographicCoverage><geographicDescription>d</geographicDescription><boundingCoordinates>
  <westBoundingCoordinate>{}</westBoundingCoordinate><eastBoundingCoordinate>1</eastBoundingCoordinate>
  <northBoundingCoordinate>1</northBoundingCoordinate><southBoundingCoordinate>1</southBoundingCoordinate>
  </boundingCoordinates></geographicCoverage></coverage>"""
TABLE = """<dataTable><entityName>t</entityName><attributeList><attribute><attributeName>a</attributeName>
  <attributeDefinition>d</attributeDefinition><measurementScale><ratio><unit><standardUnit>meter</standardUnit></unit>
  <precision>{}</precision><numericDomain><numberType>real</numberType></numericDomain></ratio></measurementScale>
  </attribute></attributeList></dataTable>"""
KEYWORD = '<keywordSet><keyword keywordType="{}">k</keyword></keywordSet>'


@every_version
@pytest.mark.parametrize(
    ("first", "rule", "path", "said"),
    [
        ("<foo/>", "schema.unexpected-element", "foo", "foo is not known inside dataset"),
        ("<title>late</title>", "schema.wrong-order", "title[2]", "title stands after creator"),
        ("<pubDate>20O5</pubDate>", "schema.bad-date", "pubDate", "'20O5'"),
        ("<pubDate>2005-02-30</pubDate>", "schema.bad-date", "pubDate", "'2005-02-30'"),
        ("<pubDate/>", "schema.empty-text", "pubDate", "pubDate is empty"),
        ("<pubDate>2005</pubDate><pubDate>2006</pubDate>", "schema.too-many-elements", "pubDate[2]", "one too many"),
        (KEYWORD.format("Theme"), "schema.not-in-list", "keywordSet/keyword", "'Theme'"),
        ("<contact/>", "schema.missing-element", "contact[1]", "individualName"),
        ("<contact>x<references>creator-1</references></contact>", "schema.unexpected-text", "contact[1]", "'x'"),
        ('<pubDate x="1">2005</pubDate>', "schema.unexpected-attribute", "pubDate", "attribute x"),
        ("<distribution><online/></distribution>", "schema.missing-element", "distribution/online", "missing"),
        ("<pubDate>2005<b/></pubDate>", "schema.unexpected-element", "pubDate", "nothing but text"),
    ],
)
def test_each_kind_of_mistake_is_told_in_plain_words_with_its_place(number, first, rule, path, said):
    findings = check(number, eml(number, first)).findings

    assert [finding.rule for finding in findings] == [rule]
    finding = findings[0]
    assert finding.xpath == f"/eml:eml/dataset/{path}"
    assert said in finding.message
    assert finding.line is not None
    assert finding.line >= 6
    assert finding.column
    assert finding.excerpt.startswith(f"<{path.split('/')[-1].split('[')[0]}")
    assert finding.remedy


@pytest.mark.parametrize("number", ["2.1.0", "2.1.1", "2.2.0"])
@pytest.mark.parametrize("series", ["<series> \n </series>", "<series/>"])
def test_a_required_text_that_is_empty_or_blank_is_told_once(number, series):
    [finding] = check(number, eml(number, series)).findings
    assert finding.rule == "schema.empty-text"


@every_version
@pytest.mark.parametrize("value", ["12,5", "0.1 m", "fine"])
def test_a_number_that_is_none_is_told(number, value):
    assert check(number, eml(number, last=TABLE.format("0.1"))).findings == ()

    [finding] = check(number, eml(number, last=TABLE.format(value))).findings
    assert finding.rule == "schema.bad-number"
    assert finding.message == f"precision is '{value}', which is not a number."


def test_a_number_out_of_range_is_told_with_the_limit():
    [finding] = check("2.2.0", eml("2.2.0", COVERAGE.format("-190.5"))).findings

    assert finding.rule == "schema.out-of-range"
    assert finding.message == "westBoundingCoordinate is -190.5; it must be at least -180.0."


@every_version
def test_the_allowed_values_are_listed(number):
    [finding] = check(number, eml(number, KEYWORD.format("Theme"))).findings

    assert finding.message == "The attribute keywordType of keyword is 'Theme', which is not one of the allowed values."
    assert finding.remedy == "Allowed are: place, stratum, temporal, theme, taxonomic."


@every_version
def test_a_missing_element_is_named_with_where_it_belongs(number):
    [finding] = check(number, eml(number).replace(b"    <title>Water temperature</title>\n", b"")).findings

    assert finding.rule == "schema.missing-element"
    assert finding.xpath == "/eml:eml/dataset/creator"
    assert "title" in finding.message


@every_version
def test_a_missing_package_id_is_a_missing_attribute(number):
    [finding] = check(number, eml(number).replace(b'packageId="alder.1.1" ', b"")).findings

    assert finding.rule == "schema.missing-attribute"
    assert finding.message == "eml lacks the attribute packageId."


def test_a_default_namespace_in_place_of_a_prefix_is_explained():
    document = eml("2.2.0").replace(b"eml:eml", b"eml").replace(b"xmlns:eml", b"xmlns")
    [finding] = check("2.2.0", document).findings

    assert finding.xpath == "/eml/dataset"
    assert "should be in none" in finding.message
    assert "xmlns:eml" in finding.remedy


@every_version
def test_all_schema_findings_are_given_in_the_order_of_the_document_and_no_eml_finding(number):
    content = f"<pubDate>x</pubDate>{KEYWORD.format('y')}<contact><references>nothing</references></contact><foo/>"
    findings = check(number, eml(number, content)).findings

    assert [finding.rule for finding in findings] == [
        "schema.bad-date",
        "schema.not-in-list",
        "schema.unexpected-element",
    ]


@every_version
def test_places_are_right_beyond_line_65535(number):
    gap = "\n" * 70_000
    findings = check(number, eml(number, f"{gap}<pubDate\n>x</pubDate>\n{KEYWORD.format('y')}<foo/>")).findings

    assert [(f.xpath.rpartition("/")[2], f.line) for f in findings] == [
        ("pubDate", 70_006),
        ("keyword", 70_008),
        ("foo", 70_008),
    ]


@every_version
def test_a_url_that_only_libxml2_objects_to_is_told_in_its_words_with_our_remedy(number):
    url = "<distribution><online><url>https://example.org/[a]</url></online></distribution>"
    [finding] = check(number, eml(number, url)).findings

    assert finding.rule == "schema.bad-url"
    assert finding.xpath == "/eml:eml/dataset/distribution/online/url"
    assert "'https://example.org/[a]' is not a valid value" in finding.message
    assert "%5B" in finding.remedy


def test_a_large_document_is_explained_in_the_words_of_libxml2_at_the_right_place():
    document = eml("2.2.0", f"<!--{'x' * 1_100_000}-->\n<pubDate>x</pubDate>\n<foo/>")
    findings = check("2.2.0", document).findings

    assert [(f.rule, f.line) for f in findings] == [("schema.bad-date", 7), ("schema.unexpected-element", 8)]
    assert "{" not in findings[0].message


def test_more_findings_than_are_shown_are_counted():
    findings = check("2.2.0", eml("2.2.0", KEYWORD.format("y") * (MAX_FINDINGS + 25))).findings

    assert len(findings) == MAX_FINDINGS + 1
    assert findings[-1].message.startswith("25 more")


@every_version
def test_additional_metadata_may_hold_anything(number):
    content = '<x:a xmlns:x="urn:x"><b c="d"><references/></b>text</x:a>'
    assert check(number, eml(number, after=additional(number, content))).findings == ()


@pytest.mark.parametrize("version", VERSIONS.values(), ids=lambda version: version.number)
def test_every_schema_compiles_from_local_files_alone(version):
    assert compile_schema(version).validate is not None
    assert NAMESPACES[version.number] == version.namespace
