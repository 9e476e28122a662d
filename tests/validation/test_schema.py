"""Documents that are not valid by their schema: rule, words and place, in all five versions."""

from __future__ import annotations

import pytest

from metaharvest.model import MAX_FINDINGS, Level, Verdict
from metaharvest.validation.schemas import VERSIONS, EmlVersion, compile_schema
from support.eml_documents import NAMESPACES, NUMBERS, VALIDATOR, additional, eml, listed

every_version = pytest.mark.parametrize("number", NUMBERS)


def check(number: str, content: bytes) -> Verdict:
    return VALIDATOR.check(content, listed(number))


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
        (
            "<contact><positionName>x</positionName><references>creator-1</references></contact>",
            "schema.too-many-elements",
            "contact[1]/references",
            "contact does not take it beside positionName",
        ),
        (KEYWORD.format("Theme"), "schema.not-in-list", "keywordSet/keyword", "'Theme'"),
        ("<contact/>", "schema.missing-element", "contact[1]", "individualName"),
        ("<contact>x<references>creator-1</references></contact>", "schema.unexpected-text", "contact[1]", "'x'"),
        ('<pubDate x="1">2005</pubDate>', "schema.unexpected-attribute", "pubDate", "attribute x"),
        ("<distribution><online/></distribution>", "schema.missing-element", "distribution/online", "missing"),
        ("<pubDate>2005<b/></pubDate>", "schema.unexpected-element", "pubDate", "nothing but text"),
    ],
)
def test_each_kind_of_mistake_is_told_in_plain_words_with_its_place(
    number: str, first: str, rule: str, path: str, said: str
) -> None:
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
def test_a_required_text_that_is_empty_or_blank_is_told_once(number: str, series: str) -> None:
    [finding] = check(number, eml(number, series)).findings
    assert finding.rule == "schema.empty-text"


@every_version
@pytest.mark.parametrize("value", ["12,5", "0.1 m", "fine"])
def test_a_number_that_is_none_is_told(number: str, value: str) -> None:
    assert check(number, eml(number, last=TABLE.format("0.1"))).findings == ()

    [finding] = check(number, eml(number, last=TABLE.format(value))).findings
    assert finding.rule == "schema.bad-number"
    assert finding.message == f"precision is '{value}', which is not a number."


def test_a_number_out_of_range_is_told_with_the_limit() -> None:
    [finding] = check("2.2.0", eml("2.2.0", COVERAGE.format("-190.5"))).findings

    assert finding.rule == "schema.out-of-range"
    assert finding.message == "westBoundingCoordinate is -190.5; it must be at least -180.0."


@every_version
def test_the_allowed_values_are_listed(number: str) -> None:
    [finding] = check(number, eml(number, KEYWORD.format("Theme"))).findings

    assert finding.message == "The attribute keywordType of keyword is 'Theme', which is not one of the allowed values."
    assert finding.remedy == "Did you mean theme? Allowed are: place, stratum, temporal, theme, taxonomic."


@every_version
def test_a_missing_element_is_named_with_where_it_belongs(number: str) -> None:
    [finding] = check(number, eml(number).replace(b"    <title>Water temperature</title>\n", b"")).findings

    assert finding.rule == "schema.missing-element"
    assert finding.xpath == "/eml:eml/dataset/creator"
    assert "title" in finding.message


@every_version
def test_a_missing_package_id_is_a_missing_attribute(number: str) -> None:
    [finding] = check(number, eml(number).replace(b'packageId="alder.1.1" ', b"")).findings

    assert finding.rule == "schema.missing-attribute"
    assert finding.message == "eml lacks the attribute packageId."


def test_a_default_namespace_in_place_of_a_prefix_is_explained() -> None:
    document = eml("2.2.0").replace(b"eml:eml", b"eml").replace(b"xmlns:eml", b"xmlns")
    [finding] = check("2.2.0", document).findings

    assert finding.xpath == "/eml/dataset"
    assert "should be in none" in finding.message
    assert "xmlns:eml" in finding.remedy


def test_a_default_namespace_is_explained_in_a_large_document_too() -> None:
    document = eml("2.2.0", after=f"<!-- {'x' * 1_000_000} -->").replace(b"eml:eml", b"eml")
    [finding] = check("2.2.0", document.replace(b"xmlns:eml", b"xmlns")).findings

    assert finding.xpath == "/eml/dataset"
    assert "should be in none" in finding.message


@every_version
@pytest.mark.parametrize(
    ("unit", "said"),
    [("Celsius", "Did you mean celsius? "), ("grams", "Did you mean gram? "), ("PSU", "Allowed are: ")],
)
def test_the_remedy_for_a_wrong_unit_knows_the_units_of_all_kinds(number: str, unit: str, said: str) -> None:
    table = TABLE.format("1").replace(">meter<", f">{unit}<")
    [finding] = check(number, eml(number, last=table)).findings
    assert finding.rule == "schema.not-in-list"
    assert finding.remedy.startswith(said)
    assert finding.remedy.endswith("more. Write any other unit as customUnit.")


@every_version
def test_all_schema_findings_are_given_in_the_order_of_the_document_and_no_eml_finding(number: str) -> None:
    content = f"<pubDate>x</pubDate>{KEYWORD.format('y')}<contact><references>nothing</references></contact><foo/>"
    findings = check(number, eml(number, content)).findings

    assert [finding.rule for finding in findings] == [
        "schema.bad-date",
        "schema.not-in-list",
        "schema.unexpected-element",
    ]


@every_version
def test_places_are_right_beyond_line_65535(number: str) -> None:
    gap = "\n" * 70_000
    findings = check(number, eml(number, f"{gap}<pubDate\n>x</pubDate>\n{KEYWORD.format('y')}<foo/>")).findings

    assert [(f.xpath.rpartition("/")[2], f.line) for f in findings] == [
        ("pubDate", 70_006),
        ("keyword", 70_008),
        ("foo", 70_008),
    ]


@every_version
def test_a_url_that_is_none_is_told_with_what_to_write(number: str) -> None:
    url = "<distribution><online><url>https://example.org/[a]</url></online></distribution>"
    [finding] = check(number, eml(number, url)).findings

    assert finding.rule == "schema.bad-url"
    assert finding.xpath == "/eml:eml/dataset/distribution/online/url"
    assert finding.message == "url is 'https://example.org/[a]', which is not a URL as the standard wants it."
    assert "%5B" in finding.remedy


def test_a_large_document_is_explained_in_plain_words_at_the_right_place() -> None:
    document = eml("2.2.0", f"<!--{'x' * 1_100_000}-->\n<pubDate>x</pubDate>\n<foo/>")
    findings = check("2.2.0", document).findings

    assert [(f.rule, f.line) for f in findings] == [("schema.bad-date", 7), ("schema.unexpected-element", 8)]
    assert findings[0].message == "pubDate is 'x', which is not written as YYYY-MM-DD or YYYY."
    assert findings[1].message == "foo is not expected at this place."
    assert "Expected here: language, series" in findings[1].remedy


def test_more_findings_than_are_shown_are_counted() -> None:
    findings = check("2.2.0", eml("2.2.0", KEYWORD.format("y") * (MAX_FINDINGS + 25))).findings

    assert len(findings) == MAX_FINDINGS + 1
    assert findings[-1].message.startswith("25 more")


@pytest.mark.parametrize("size", [0, 1_100_000])
@pytest.mark.parametrize(
    ("first", "rule", "message", "remedy"),
    [
        ("<contact/>", "schema.missing-element", "contact is not complete: ", "positionName"),
        (KEYWORD.format("y"), "schema.not-in-list", "The attribute keywordType of keyword is 'y', which", "stratum"),
        ('<pubDate x="1">2005</pubDate>', "schema.unexpected-attribute", "attribute x", "spelling"),
        ("<pubDate>2005<b/></pubDate>", "schema.unexpected-element", "pubDate may hold nothing but text", "tags"),
        ("<contact>x<references>creator-1</references></contact>", "schema.unexpected-text", "may hold only", "text"),
        (COVERAGE.format("-190.5"), "schema.out-of-range", "westBoundingCoordinate is -190.5", "number"),
        (COVERAGE.format("5 W"), "schema.bad-", "westBoundingCoordinate is '5 W', which is not a", ""),
        ("<series/>", "schema.empty-text", "series is empty, and must have a value.", "Fill it in"),
        ("<maintenance/>", "schema.missing-element", "maintenance is not complete: ", "description"),
        ("<access/>", "schema.", "access", ""),
    ],
)
def test_small_and_large_documents_get_whole_sentences(
    size: int, first: str, rule: str, message: str, remedy: str
) -> None:
    for finding in check("2.2.0", eml("2.2.0", f"<!--{'x' * size}-->{first}")).findings:
        assert finding.rule.startswith(rule)
        assert message in finding.message
        assert remedy in finding.remedy
        assert "Element '" not in finding.message
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")
        assert finding.line in (6, 7)


@pytest.mark.slow
@every_version
@pytest.mark.parametrize("size", [0, 300_000, 1_100_000])
@pytest.mark.parametrize("kind", ["x:nothing", "y:undeclared", "nothing", "", "x:"])
def test_an_xsi_type_that_does_not_exist_is_an_error_of_the_document_alone(number: str, size: int, kind: str) -> None:
    contact = (
        f'<contact xmlns:x="urn:x" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="{kind}">'
        "<references>creator-1</references></contact>"
    )
    findings = check(number, eml(number, f"<!--{'x' * size}-->{contact}")).findings

    assert findings[0].is_error
    assert findings[0].line == 6
    assert findings[0].xpath.startswith("/eml:eml/dataset/contact")


def test_an_element_whose_name_is_misspelt_gets_the_right_name() -> None:
    [finding] = check("2.2.0", eml("2.2.0", "<PubDate>2005</PubDate>")).findings
    assert finding.remedy.startswith("Did you mean pubDate? ")


def test_an_attribute_whose_name_is_misspelt_gets_the_right_name() -> None:
    missing, misspelt = check("2.2.0", eml("2.2.0").replace(b"packageId", b"packageID")).findings
    assert missing.message == "eml lacks the attribute packageId."
    assert misspelt.message == "eml may not have the attribute packageID."
    assert misspelt.remedy == "Did you mean packageId?"


def test_a_required_element_that_comes_too_late_is_to_be_moved() -> None:
    # The order of methods: https://github.com/NCEAS/metacatui/issues/658
    methods = (
        "<methods><sampling><studyExtent><description>x</description></studyExtent><samplingDescription>x"
        "</samplingDescription></sampling><methodStep><description>x</description></methodStep></methods>"
    )
    [finding] = check("2.2.0", eml("2.2.0", last=methods)).findings
    assert (finding.rule, finding.xpath) == ("schema.wrong-order", "/eml:eml/dataset/methods/methodStep")
    assert finding.message == "methodStep stands after sampling, and must come before it."
    assert finding.remedy == "Move methodStep before sampling."


@pytest.mark.parametrize("number", ["2.1.0", "2.1.1", "2.2.0"])
def test_additional_metadata_of_an_older_version_lacks_an_element_around_it(number: str) -> None:
    # https://github.com/NCEAS/eml/issues/199
    units = "<additionalMetadata><unitList/></additionalMetadata>"
    [finding] = check(number, eml(number, after=units)).findings
    assert finding.message == "unitList is not known inside additionalMetadata at this place."
    assert finding.remedy.startswith("Put it into <metadata>…</metadata>, whose tags seem to be missing.")


def test_a_prefix_too_many_is_to_be_removed() -> None:
    [finding] = check("2.2.0", eml("2.2.0", "<eml:pubDate>2005</eml:pubDate>")).findings

    assert "should be in none" in finding.message
    assert finding.remedy == "Remove the prefix, in the end tag too: <pubDate> in place of <eml:pubDate>."


URL = "<distribution><online><url>{}</url></online></distribution>"


@every_version
@pytest.mark.parametrize("size", [0, 300_000])
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("srb://seek:/home/x", "no port number"),
        ("http://host:/x", "no port number"),
        ("http://http://example.org/x", "begins twice"),
        ("http://host:port/x", "unusual"),
        ("http://host/x?a[0]=1", "unusual"),
        ("http://a@b@c/", "unusual"),
        ("urn:x[1]", "unusual"),
        ("\n  http://host:/x\n", "no port number"),
    ],
)
def test_a_url_that_the_standard_accepts_is_no_error_and_what_is_doubtful_is_a_warning(
    number: str, size: int, url: str, said: str
) -> None:
    verdict = check(number, eml(number, f"<!--{'x' * size}-->{URL.format(url)}"))

    assert verdict.acceptable
    [finding] = verdict.findings
    assert (finding.rule, finding.level) == ("schema.bad-url", Level.WARNING)
    assert said in finding.message
    assert (finding.line, finding.xpath) == (6, "/eml:eml/dataset/distribution/online/url")


@every_version
@pytest.mark.parametrize("url", ["", "data/x.csv", "http://host/å b|c", "C:\\data\\x.csv", "doi:10.5063/F1", "#a"])
def test_a_url_that_is_right_or_relative_has_no_finding(number: str, url: str) -> None:
    assert check(number, eml(number, URL.format(url))).findings == ()


@every_version
@pytest.mark.parametrize("url", ["http://host/[a]", "http://host/a%zz", "http://host/a#b#c", ":x", "1a:b", "a b:c"])
def test_a_url_that_the_standard_refuses_is_an_error(number: str, url: str) -> None:
    [finding] = check(number, eml(number, URL.format(url))).findings
    assert (finding.rule, finding.level) == ("schema.bad-url", Level.ERROR)


@every_version
def test_a_no_break_space_before_a_url_is_an_error(number: str) -> None:
    [finding] = check(number, eml(number, URL.format("\u00a0http://host/a"))).findings
    assert (finding.rule, finding.level) == ("schema.bad-url", Level.ERROR)


@pytest.mark.slow
def test_doubtful_urls_refuse_no_document_however_many_and_wide_it_is() -> None:
    keywords = f"<keywordSet>{'<keyword>k</keyword>' * 250_000}</keywordSet>"
    verdict = check("2.2.0", eml("2.2.0", keywords + URL.format("http://host:/x") * 1_100))

    assert verdict.acceptable
    assert verdict.findings[0].message.startswith("The URL 'http://host:/x' has a colon after the host name")


def test_a_doubtful_url_beside_an_error_stays_a_warning() -> None:
    findings = check("2.2.0", eml("2.2.0", "<pubDate>x</pubDate>" + URL.format("http://host:/"))).findings

    assert [(f.rule, f.level) for f in findings] == [
        ("schema.bad-date", Level.ERROR),
        ("schema.bad-url", Level.WARNING),
    ]


@every_version
@pytest.mark.parametrize("space", ["", " ", "\n\t  "])
def test_white_space_around_dates_and_times_is_no_mistake(number: str, space: str) -> None:
    def document(date: str, time: str) -> bytes:
        return eml(
            number,
            "<coverage><temporalCoverage><singleDateTime>"
            f"<calendarDate>{space}{date}{space}</calendarDate><time>{space}{time}{space}</time>"
            "</singleDateTime></temporalCoverage></coverage>",
        )

    assert check(number, document("2005-01-02", "12:30:00")).findings == ()
    assert [f.rule for f in check(number, document("2005-02-30", "12:30:00")).findings] == ["schema.bad-date"]
    assert [f.rule for f in check(number, document("2005-01-02", "25:30:00")).findings] == ["schema.bad-date"]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16", "UTF-32", "ISO-8859-1"])
def test_documents_that_are_not_small_have_the_same_verdict_in_every_encoding(encoding: str) -> None:
    def document(content: str) -> bytes:
        text = eml("2.2.0", f"<!--{'x' * 300_000}-->{content}").decode()
        return text.replace("UTF-8", encoding).encode(encoding)

    assert check("2.2.0", document("")).findings == ()
    assert [f.rule for f in check("2.2.0", document("<pubDate>x</pubDate>")).findings] == ["schema.bad-date"]


@every_version
def test_additional_metadata_may_hold_anything(number: str) -> None:
    content = '<x:a xmlns:x="urn:x"><b c="d"><references/></b>text</x:a>'
    assert check(number, eml(number, after=additional(number, content))).findings == ()


@pytest.mark.parametrize("version", VERSIONS.values(), ids=lambda version: version.number)
def test_every_schema_compiles_from_local_files_alone(version: EmlVersion) -> None:
    assert compile_schema(version).validate is not None
    assert NAMESPACES[version.number] == version.namespace


@pytest.mark.parametrize("markup", ["<!-- every -->", "<?every day?>", "<![CDATA[]]>"])
def test_white_space_beside_other_markup_belongs_to_a_value(markup: str) -> None:
    def check(frequency: str) -> list[str]:
        first = (
            "<maintenance><description><para>p</para></description>"
            f"<maintenanceUpdateFrequency>{frequency}</maintenanceUpdateFrequency></maintenance>"
        )
        verdict = VALIDATOR.check(eml("2.2.0", first), listed("2.2.0"))
        return [finding.rule for finding in verdict.findings]

    assert check("daily") == check(f"{markup}daily") == []
    assert "schema.not-in-list" in check(f" {markup}daily")
