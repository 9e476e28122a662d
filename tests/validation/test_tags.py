"""One mistake in the tags of a document is one finding, which names the cause; HTML in a text is one finding, too."""

from __future__ import annotations

import re

import pytest

from metaharvest.model import Finding
from metaharvest.validation.html_text import NAMES, character_for
from metaharvest.validation.tags import tag_faults
from support.eml_documents import VALIDATOR, listed

DOCUMENT = """<?xml version="1.0" encoding="UTF-8"?>
<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.2.0" packageId="alder.1.1" system="alder">
  <dataset>
    <title>Water level</title>
    <creator id="ann">
      <individualName>
        <givenName>Ann</givenName>
        <surName>Alder</surName>
      </individualName>
      <electronicMailAddress>ann@alder.example.org</electronicMailAddress>
    </creator>
    <pubDate>2020-01-01</pubDate>
    <abstract>
      <section>
        <title>Methods</title>
        <para>Read at <emphasis>noon</emphasis>, each day.</para>
      </section>
      <para>More.</para>
    </abstract>
    <keywordSet>
      <keyword keywordType="theme">water</keyword>
      <keyword>level</keyword>
    </keywordSet>
    <contact><references>ann</references></contact>
  </dataset>
</eml:eml>
"""
START_TAGS = [match.span() for match in re.finditer(r"<[a-zA-Z:]+[^>/?]*>", DOCUMENT)]
END_TAGS = [match.span() for match in re.finditer(r"</[^>]+>", DOCUMENT)]


def findings_of(text: str | bytes) -> tuple[Finding, ...]:
    content = text if isinstance(text, bytes) else text.encode()
    return VALIDATOR.check(content, listed("2.2.0", "alder.1.1")).findings


def changed(span: tuple[int, int], to: str) -> str:
    return DOCUMENT[: span[0]] + to + DOCUMENT[span[1] :]


def name_in(span: tuple[int, int]) -> str:
    return re.split(r"[\s>]", DOCUMENT[slice(*span)].strip("</>"))[0]


def line_of(place: int) -> int:
    return DOCUMENT.count("\n", 0, place) + 1


def test_a_text_that_ends_within_a_tag_is_a_finding() -> None:
    assert [found.rule for found in findings_of(b'<a><b c="1>2"\n')] == ["xml.less-than", "xml.unclosed"]


def test_the_document_itself_is_well() -> None:
    assert findings_of(DOCUMENT) == ()
    assert tag_faults(DOCUMENT) == []


@pytest.mark.parametrize("span", END_TAGS, ids=name_in)
def test_an_end_tag_that_is_missing_is_one_finding_about_its_element(span: tuple[int, int]) -> None:
    [finding] = findings_of(changed(span, ""))
    assert finding.rule in ("xml.mismatched-tag", "xml.unclosed")
    assert f"<{name_in(span)}>, opened in line" in finding.message
    assert f"</{name_in(span)}>" in finding.remedy


@pytest.mark.parametrize("span", START_TAGS[1:], ids=name_in)
def test_a_start_tag_that_is_missing_is_one_finding_about_its_end_tag(span: tuple[int, int]) -> None:
    [finding] = findings_of(changed(span, ""))
    assert finding.message == f"</{name_in(span)}> closes nothing: no <{name_in(span)}> is open here."


@pytest.mark.parametrize("span", END_TAGS[:-1], ids=name_in)
@pytest.mark.parametrize("misspelt", [str.upper, lambda name: name + "x", lambda name: name[1] + name[0] + name[2:]])
def test_an_end_tag_that_is_misspelt_names_the_name_that_eml_has(span: tuple[int, int], misspelt: object) -> None:
    assert callable(misspelt)
    name, wrong = name_in(span), misspelt(name_in(span))
    [finding] = findings_of(changed(span, f"</{wrong}>"))
    assert (finding.rule, finding.line) == ("xml.mismatched-tag", line_of(span[0]))
    assert f"is closed as </{wrong}>: the two names differ." in finding.message
    assert f"Write <{name}>…</{name}>: EML has no {wrong}." in finding.remedy


@pytest.mark.parametrize("span", END_TAGS[:-1], ids=name_in)
def test_an_end_tag_of_another_name_is_one_finding_and_its_remedy_is_right(span: tuple[int, int]) -> None:
    name = name_in(span)
    for wrong in ("urx", "storageType"):
        [finding] = findings_of(changed(span, f"</{wrong}>"))
        assert finding.line == line_of(span[0])
        assert f"is closed as </{wrong}>: the two names differ." in finding.message
        assert f"<{name}>…</{name}>" in finding.remedy


def test_two_end_tags_that_are_exchanged_are_one_finding_each() -> None:
    found = findings_of(
        DOCUMENT.replace("Water level</title>", "Water level</pubDate>").replace("01</pubDate>", "01</title>")
    )
    assert [finding.message.partition(":")[2] for finding in found] == [" the two names differ."] * 2
    assert all("<title>…</title>" in finding.remedy and "<pubDate>…</pubDate>" in finding.remedy for finding in found)


def test_a_misspelt_start_tag_inside_of_an_element_of_the_right_name_is_one_finding() -> None:
    inner = "<para>A<itemizedlist><listitem><qpara>B</para></listitem></itemizedlist></para>"
    text = f"<eml><dataset><abstract>{inner}</abstract></dataset></eml>"
    [fault] = tag_faults(text)
    assert "<qpara>, opened in line 1, is closed as </para>" in fault.message


@pytest.mark.parametrize("span", [*START_TAGS[1:], *END_TAGS[:-1]], ids=name_in)
def test_a_tag_without_its_last_sign_is_one_finding_in_its_line(span: tuple[int, int]) -> None:
    tag = DOCUMENT[slice(*span)]
    found = findings_of(changed(span, tag[:-1]))
    assert len(found) == 1, found
    assert found[0].line == line_of(span[0])


@pytest.mark.parametrize("span", END_TAGS[:-1], ids=name_in)
def test_a_tag_with_a_blank_or_a_backslash_is_one_finding(span: tuple[int, int]) -> None:
    name = name_in(span)
    for wrong in (f"< /{name}>", f"<\\{name}>"):
        [finding] = findings_of(changed(span, wrong))
        assert (finding.rule, finding.line, finding.remedy) == ("xml.bad-tag", line_of(span[0]), f"Write </{name}>.")


@pytest.mark.parametrize(
    ("wrong", "right", "line", "said"),
    [
        ("<pubDate>2020-01-01<pubDate>", "</pubDate>", 12, "seems to be meant: the / is missing"),
        ("<surName>Alder</individualName></surName>", "", 8, "</surName> comes too late"),
        ('packageId="alder.1.1 system', "", 2, "The value of packageId has no quotation mark at its end."),
        ('packageId="alder.1.1" system="alder>', "", 2, "quotation mark"),
        ("<title>depth<3 m</title>", "", 4, "A < stands where no tag begins"),
        ("<title>a<b and c</title>", "", 4, "A < stands where no tag begins"),
        ("<title>x < y and z > y</title>", "", 4, "A < stands where no tag begins"),
        ("<!-- draft <pubDate>2020-01-01</pubDate>", "", 12, "A comment, which begins with <!-- in line 12"),
    ],
)
def test_other_mistakes_are_one_finding_at_their_place(wrong: str, right: str, line: int, said: str) -> None:
    whole = {
        2: 'packageId="alder.1.1" system' if "system=" not in wrong else 'packageId="alder.1.1" system="alder">',
        4: "<title>Water level</title>",
        8: "<surName>Alder</surName>\n      </individualName>",
        12: "<pubDate>2020-01-01</pubDate>",
    }[line]
    assert whole in DOCUMENT
    [finding] = findings_of(DOCUMENT.replace(whole, wrong, 1))
    assert (finding.line, said in finding.message) == (line, True), finding
    assert right in finding.remedy


@pytest.mark.parametrize("attribute", ['id="ann"', 'keywordType="theme"', 'system="alder"'])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda attribute: attribute[:-1],
        lambda attribute: attribute.replace('="', "="),
        lambda attribute: attribute.replace('"', ""),
        lambda attribute: attribute.replace('"', "”"),
        lambda attribute: attribute.partition("=")[0],
        lambda attribute: attribute.replace("=", " "),
    ],
)
def test_an_attribute_without_its_quotation_marks_is_one_finding(attribute: str, spoil: object) -> None:
    assert callable(spoil)
    [finding] = findings_of(DOCUMENT.replace(attribute, spoil(attribute), 1))
    assert (finding.rule, finding.line) == ("xml.bad-tag", line_of(DOCUMENT.index(attribute)))
    assert 'Write attributes as name="value"' in finding.remedy
    assert ("word processors" in finding.remedy) == ("”" in spoil(attribute))


def test_two_mistakes_are_two_findings_in_their_order() -> None:
    text = DOCUMENT.replace("More.</para>", "More.").replace("water</keyword>", "water").replace("Ann<", "A & N<")
    assert [(found.rule, found.line) for found in findings_of(text)] == [
        ("xml.ampersand", 7),
        ("xml.mismatched-tag", 18),
        ("xml.mismatched-tag", 21),
    ]


def test_a_file_that_was_cut_short_is_one_finding_wherever_it_was_cut() -> None:
    for length in range(DOCUMENT.index("<dataset>"), len(DOCUMENT) - 12, 7):
        found = findings_of(DOCUMENT[:length])
        assert [finding.rule for finding in found] == ["xml.unclosed"], (length, found)


PASTED = {
    "<p>Some <b>bold</b> and <i>it</i><br>new&nbsp;line</p><ul><li>a<li>b</ul>": [
        "<para> for <p>", "<emphasis> for <b> and <i>", "<itemizedlist> for <ul>", "<listitem><para> for <li>",
        "Begin a new <para> at <br>", "&#160; for &nbsp;", "Markdown",
    ],
    "<p>Some <b>bold</b><br/></p><ol><li>a</li></ol>": ["<para> for <p>", "<orderedlist> for <ol>"],
    '<para>H<sub>2</sub>O, m<sup>2</sup>, <a href="https://x.example.org">x</a></para>': [
        "<subscript> for <sub>", "<superscript> for <sup>", '<ulink url="…"> for <a>',
    ],
    "<p class=MsoNormal><span lang=EN-GB style='font-size:12pt'>Some&nbsp;text<o:p></o:p></span></p>": [
        "<para> for <p>", "Remove <span> and <o:p>",
    ],
    "<P>One<P>Two<BR>Three": ["<para> for <p>", "Begin a new <para> at <br>"],
    "<para><b>Some <i>text</b></i>, &deg;C</para>": ["<emphasis> for <b> and <i>"],
    '<p xmlns="http://www.w3.org/1999/xhtml">Some <em>text</em></p>': ["<para> for <p>", "<emphasis> for <em>"],
}  # fmt: skip


@pytest.mark.parametrize("html", PASTED)
def test_html_in_an_abstract_is_one_finding_that_names_the_elements_of_eml(html: str) -> None:
    text = DOCUMENT.replace("<para>More.</para>", html)
    found = [finding for finding in findings_of(text) if finding.rule != "xml.undefined-entity"]
    assert [(finding.rule, finding.line) for finding in found] == [("eml.html", 18)]
    for words in PASTED[html]:
        assert words in found[0].remedy
    assert "</br>" not in found[0].remedy


def test_html_in_several_texts_is_a_finding_for_each_and_other_mistakes_stay() -> None:
    text = DOCUMENT.replace("<para>More.</para>", "<p>More<br>").replace("Water level", "Water <i>level</i>")
    text = text.replace("Alder</surName>", "Alder & Sons</surName>")
    found = findings_of(text)
    assert [(finding.rule, finding.line) for finding in found] == [
        ("eml.html", 4), ("xml.ampersand", 8), ("eml.html", 18),
    ]  # fmt: skip
    assert found[0].remedy == "Remove the tags, and keep the text: title takes text alone."


def test_older_versions_of_eml_have_no_markdown() -> None:
    text = DOCUMENT.replace("https://eml.ecoinformatics.org/eml-2.2.0", "eml://ecoinformatics.org/eml-2.1.1")
    for html in ("<p>a<br>b</p>", "<p>a</p>"):
        finding = findings_of(text.replace("<para>More.</para>", html))[-1]
        assert (finding.rule, "Markdown" in finding.remedy) == ("eml.html", False)


def test_html_is_free_where_eml_lets_anything_stand() -> None:
    free = "<additionalMetadata><metadata><p>Some <b>text</b></p></metadata></additionalMetadata></eml:eml>"
    assert findings_of(DOCUMENT.replace("</eml:eml>", free)) == ()
    [finding] = findings_of(DOCUMENT.replace("</eml:eml>", free.replace("</b>", "")))
    assert finding.message.startswith("<b>, opened in line 26, is never closed")


def test_an_unknown_element_beside_parts_of_a_document_is_no_html() -> None:
    for wrong in ("<a/>", "<b>x</b>"):
        [finding] = findings_of(DOCUMENT.replace("<pubDate>", f"{wrong}<pubDate>"))
        assert finding.rule == "schema.unexpected-element"
    [finding] = findings_of(DOCUMENT.replace("<pubDate>", "<b><pubDate>"))
    assert finding.message.startswith("<b>, opened in line 12, is never closed")


def test_eml_has_no_element_that_is_taken_for_html() -> None:
    from metaharvest.validation.schemas import eml_names

    assert len(eml_names()) > 300
    assert not NAMES & eml_names()


@pytest.mark.parametrize(
    ("code", "character"),
    [("&nbsp;", "&#160;"), ("&deg;", "° or &#176;"), ("&eacute;", "é or &#233;"), ("&unknown;", ""), ("&x", "")],
)
def test_a_code_of_html_has_the_character_that_it_stands_for(code: str, character: str) -> None:
    assert character_for(code) == character


def test_each_code_has_its_own_remedy() -> None:
    found = findings_of(DOCUMENT.replace("Water level", "5 &deg;C &plusmn; 1"))
    assert [finding.remedy for finding in found] == [
        "Write ° or &#176; in place of &deg;.",
        "Write ± or &#177; in place of &plusmn;.",
    ]


@pytest.mark.slow
def test_what_costs_is_limited() -> None:
    assert len(tag_faults("<a>" + "</b>" * 100_000)) < 200
    assert len(tag_faults("<eml>" + "<!--" * 100_000)) == 1
    assert tag_faults("<a " + "b" * 1_000_000) == []
    assert len(tag_faults("<a>" * 200_000)) == 1


NESTED = """<?xml version="1.0" encoding="UTF-8"?>
<eml:eml xmlns:eml="https://eml.ecoinformatics.org/eml-2.2.0" packageId="alder.1.1" system="alder">
  <dataset>
    <title>Water level</title>
    <creator><organizationName>Alder</organizationName></creator>
    <abstract>
      <para>
        <itemizedlist>
          <listitem>
            <para>One
              <itemizedlist>
                <listitem><para>Two</para></listitem>
                <listitem><para>Three</para></listitem>
              </itemizedlist>
            </para>
          </listitem>
          <listitem><para>Four</para></listitem>
        </itemizedlist>
      </para>
    </abstract>
    <contact><organizationName>Alder</organizationName></contact>
  </dataset>
</eml:eml>
"""


@pytest.mark.parametrize("tag", re.findall(r"</?(?:para|listitem|itemizedlist)>", NESTED)[:6], ids=str)
def test_a_tag_that_is_missing_among_elements_of_its_name_is_one_finding(tag: str) -> None:
    for match in re.finditer(re.escape(tag), NESTED):
        found = findings_of(NESTED[: match.start()] + NESTED[match.end() :])
        assert len(found) == 1, (match.start(), found)
        assert tag.strip("</>") in found[0].message


@pytest.mark.parametrize(
    ("removed", "message", "remedy"),
    [
        (
            r"</?individualName>",
            "givenName and surName are not known inside creator",
            "<individualName>…</individualName>",
        ),
        (r"</?dataset>", "contact are not known inside eml", "Put them into <dataset>…</dataset>"),
        (r"</?keywordSet>", "keyword is not known inside dataset", "Put them into <keywordSet>…</keywordSet>"),
    ],
)
def test_elements_whose_element_around_them_is_missing_are_one_finding(removed: str, message: str, remedy: str) -> None:
    [finding] = findings_of(re.sub(removed, "", DOCUMENT))
    assert finding.rule == "schema.unexpected-element"
    assert message in finding.message
    assert remedy in finding.remedy
    assert "Remove" not in finding.remedy
