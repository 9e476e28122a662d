"""The rules of EML beyond the schema, in all five versions."""

from __future__ import annotations

import pytest

from metaharvest.model import Finding, Level
from metaharvest.validation.processing_policy import ProcessingPolicy
from support.eml_documents import NUMBERS, VALIDATOR, additional, eml, listed

every_version = pytest.mark.parametrize("number", NUMBERS)

UNIT_LIST = '<unitList><unit id="{}" name="x"/></unitList>'
STMML = '<stmml:unitList xmlns:stmml="http://www.xml-cml.org/schema/stmml-1.1"><stmml:unit id="{}"/></stmml:unitList>'


def rules(number: str, content: bytes, level: Level = Level.WARNING) -> list[tuple[str, str]]:
    verdict = VALIDATOR.check(content, listed(number), ProcessingPolicy(level))
    return [(finding.level.value, finding.rule) for finding in verdict.findings]


def only_finding(number: str, content: bytes) -> Finding:
    [finding] = VALIDATOR.check(content, listed(number)).findings
    return finding


def data_table(number: str, unit: str) -> str:
    precision = "<precision>1</precision>" if number == "2.0.0" else ""
    return f"""<dataTable><entityName>t</entityName><attributeList><attribute><attributeName>a</attributeName>
      <attributeDefinition>d</attributeDefinition><measurementScale><ratio><unit>{unit}</unit>{precision}
      <numericDomain><numberType>real</numberType></numericDomain></ratio></measurementScale></attribute>
      </attributeList></dataTable>"""


@every_version
def test_a_minimal_document_is_accepted_without_a_finding(number: str) -> None:
    assert rules(number, eml(number)) == []


@every_version
def test_two_elements_may_not_have_the_same_id(number: str) -> None:
    party = '<associatedParty id="creator-1"><organizationName>o</organizationName><role>r</role></associatedParty>'
    finding = only_finding(number, eml(number, party))

    assert finding.rule == "eml.id-duplicate"
    assert finding.xpath == "/eml:eml/dataset/associatedParty"
    assert "/eml:eml/dataset/creator" in finding.message


def test_empty_ids_are_to_be_removed() -> None:
    party = '<associatedParty id=""><organizationName>o</organizationName><role>r</role></associatedParty>'
    finding = only_finding("2.2.0", eml("2.2.0", party * 2))
    assert finding.rule == "eml.id-duplicate"
    assert finding.remedy == "Remove empty ids, or give each element an id of its own."


def test_a_custom_unit_with_a_name_and_no_id_is_to_get_the_id() -> None:
    table = data_table("2.2.0", "<customUnit>perTree</customUnit>")
    units = additional("2.2.0", '<unitList><unit name="perTree"/><unit id="perTrees"/></unitList>')
    finding = only_finding("2.2.0", eml("2.2.0", last=table, after=units))
    assert finding.rule == "eml.custom-unit-undefined"
    assert finding.remedy == 'Its definition has no id: write <unit id="perTree" name="perTree" …>.'


@every_version
def test_no_element_may_have_the_package_id_as_its_id(number: str) -> None:
    assert rules(number, eml(number, attributes=' id="alder.1.1"')) == [("error", "eml.id-duplicate")]


@every_version
def test_the_ids_of_units_count_as_ids(number: str) -> None:
    document = eml(number, after=additional(number, UNIT_LIST.format("creator-1")))
    assert rules(number, document) == [("error", "eml.id-duplicate")]


@every_version
def test_a_reference_that_leads_nowhere_is_an_error_with_its_place_and_a_suggestion(number: str) -> None:
    finding = only_finding(number, eml(number, "<contact><references>creator-l</references></contact>"))

    assert (finding.level, finding.rule) == (Level.ERROR, "eml.reference-unresolved")
    assert finding.remedy == "Did you mean the id 'creator-1'?"
    assert finding.xpath == "/eml:eml/dataset/contact[1]/references"
    assert (finding.line, finding.column) == (6, 14)
    assert finding.excerpt == "<references>creator-l</references>"


@every_version
@pytest.mark.parametrize("named", ["creator-1", "\n  creator-1 ", "alder.1.1"])
def test_references_may_name_an_id_or_the_package_id_with_blanks_around(number: str, named: str) -> None:
    document = eml(number, f"<contact><references>{named}</references></contact>")
    assert [rule for level, rule in rules(number, document) if level == "error"] == []


@every_version
def test_a_comment_within_an_id_is_not_part_of_it(number: str) -> None:
    named = "<!-- the owner -->creator<!-- one -->-1"
    table = data_table(number, "<customUnit><!-- u -->perTree</customUnit>")
    described = additional(number, UNIT_LIST.format("perTree"), f"<describes>{named}</describes>")
    document = eml(number, f"<contact><references>{named}</references></contact>", table, after=described)

    assert rules(number, document) == []


@every_version
def test_errors_are_shown_before_warnings_where_not_all_can_be_shown(number: str) -> None:
    warnings = "".join(f"<references>nothing-{index}</references>" for index in range(150))
    described = additional(number, "<x/>", "<describes>nowhere</describes>")
    found = rules(number, eml(number, after=additional(number, f"<bib>{warnings}</bib>") + described))

    assert found[0] == ("error", "eml.reference-unresolved")
    assert found[-1] == ("warning", "findings.more")


@every_version
def test_an_element_with_references_may_have_no_id_of_its_own(number: str) -> None:
    document = eml(number, '<contact id="c"><references>creator-1</references></contact>')
    assert rules(number, document) == [("error", "eml.id-with-references")]


@every_version
def test_describes_must_name_an_id(number: str) -> None:
    good = eml(number, after=additional(number, "<x/>", "<describes>creator-1</describes>"))
    bad = eml(number, after=additional(number, "<x/>", "<describes>creator-2</describes>"))

    assert rules(number, good) == []
    assert rules(number, bad) == [("error", "eml.reference-unresolved")]


@every_version
@pytest.mark.parametrize("unit_list", [UNIT_LIST, STMML])
def test_a_custom_unit_must_be_defined_in_a_unit_list_of_any_namespace(number: str, unit_list: str) -> None:
    table = data_table(number, "<customUnit>metersPerTree</customUnit>")

    def document(unit: str) -> bytes:
        return eml(number, last=table, after=additional(number, unit_list.format(unit)))

    assert rules(number, document("metersPerTree")) == []
    finding = only_finding(number, document("meterPerTree"))
    assert finding.rule == "eml.custom-unit-undefined"
    assert finding.remedy == "Did you mean the unit 'meterPerTree'?"


@every_version
def test_a_different_system_of_a_reference_is_a_warning(number: str) -> None:
    party = '<associatedParty id="p" system="s"><organizationName>o</organizationName><role>r</role></associatedParty>'
    document = eml(number, f"{party}<contact><references>p</references></contact>")

    assert rules(number, document) == [("warning", "eml.system-differs")]


@every_version
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('<b:references xmlns:b="urn:b">nothing</b:references>', []),
        ("<bib><references><item/></references></bib>", []),
        ("<bib><references>nothing</references></bib>", [("warning", "eml.reference-unresolved")]),
        ("<bib><customUnit>nothing</customUnit></bib>", [("warning", "eml.custom-unit-undefined")]),
        ("<bib><describes>nothing</describes></bib>", []),
    ],
)
def test_free_content_that_uses_names_of_eml_refuses_no_document(
    number: str, content: str, expected: list[tuple[str, str]]
) -> None:
    assert rules(number, eml(number, after=additional(number, content))) == expected


ANNOTATION = """<annotation{}><propertyURI label="p">https://example.org/p</propertyURI>
  <valueURI label="v">https://example.org/v</valueURI></annotation>"""


def test_an_annotated_element_must_have_an_id() -> None:
    bare = eml("2.2.0", ANNOTATION.format(""))
    with_id = eml("2.2.0", ANNOTATION.format(""), attributes=' id="dataset-1"')

    assert only_finding("2.2.0", bare).xpath == "/eml:eml/dataset"
    assert rules("2.2.0", bare) == [("error", "eml.annotation-without-id")]
    assert rules("2.2.0", with_id) == []


@pytest.mark.parametrize(("named", "expected"), [("creator-1", []), ("x", [("error", "eml.reference-unresolved")])])
def test_an_annotation_with_references_needs_no_id_around_it_but_a_target(
    named: str, expected: list[tuple[str, str]]
) -> None:
    reference = f' references="{named}"'
    annotations = f"<annotations>{ANNOTATION.format(reference)}</annotations>"
    assert rules("2.2.0", eml("2.2.0", after=annotations)) == expected


@every_version
def test_an_annotation_of_additional_metadata_needs_describes_in_place_of_an_id(number: str) -> None:
    annotation = ANNOTATION.format("")
    described = additional(number, annotation, "<describes>creator-1</describes>")

    assert rules(number, eml(number, after=described)) == []
    finding = only_finding(number, eml(number, after=additional(number, annotation)))
    assert (finding.level, finding.rule) == (Level.ERROR, "eml.annotation-without-id")
    assert "in a describes" in finding.remedy


def test_all_findings_of_the_level_are_given_in_the_order_of_the_document() -> None:
    document = eml("2.2.0", '<contact id="creator-1"><references>nothing</references></contact>')

    assert [rule for _, rule in rules("2.2.0", document)] == [
        "eml.id-duplicate",
        "eml.id-with-references",
        "eml.reference-unresolved",
    ]


@pytest.mark.parametrize("level", list(Level))
def test_a_package_id_that_is_not_the_docid_is_as_grave_as_asked(level: Level) -> None:
    document = eml("2.2.0", package_id="alder.1.2")
    verdict = VALIDATOR.check(document, listed("2.2.0"), ProcessingPolicy(level))

    [finding] = verdict.findings
    assert (finding.rule, finding.level) == ("eml.package-id-mismatch", level)
    assert "alder.1.2" in finding.message
    assert "Only the revision differs" in finding.message
    assert verdict.acceptable is (level is Level.WARNING)


@pytest.mark.parametrize("package_id", ["doi:10.5063/F1", "urn:uuid:1f2e", "alder.1", "other.1.1"])
def test_a_package_id_of_another_kind_is_a_mismatch_too(package_id: str) -> None:
    assert rules("2.2.0", eml("2.2.0", package_id=package_id)) == [("warning", "eml.package-id-mismatch")]


@pytest.mark.parametrize("number", ["2.0.0", "2.0.1"])
@pytest.mark.parametrize(
    ("content", "valid"),
    [
        ("<x/>", True),
        ("<describes>creator-1</describes><describes>alder.1.1</describes><x/>", True),
        ("<describes>creator-1</describes>", True),
        ("<x/><y/>", False),
        ("<x/><describes>creator-1</describes>", False),
        ("<describes><x/></describes><x/>", False),
        ("", False),
        ("text", False),
    ],
)
def test_additional_metadata_of_eml_2_0_takes_describes_and_then_one_element(
    number: str, content: str, valid: bool
) -> None:
    document = eml(number, after=f"<additionalMetadata>{content}</additionalMetadata>")
    verdict = VALIDATOR.check(document, listed(number))

    assert verdict.acceptable is valid
    assert all(finding.rule.startswith("schema.") for finding in verdict.findings)
