"""The Dublin Core of each format, on small documents, and the bounds of it."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from metaharvest.config.paths import data_folder
from metaharvest.transform.crosswalks import dublin_core
from metaharvest.transform.crosswalks.eml import NAMESPACES as EML
from metaharvest.transform.crosswalks.rows import ELEMENTS, LONGEST, MOST, plain, resolvable
from support.format_documents import DC, DCTERMS, VALID, fgdc

EML_BODY = """
<dataset>
  <alternateIdentifier>doi:10.1234/frogs</alternateIdentifier>
  <title>Frogs of<value xml:lang="de">Frösche im</value> Alder Creek</title>
  <creator id="p1"><individualName><givenName>Ann</givenName><givenName>B.</givenName><surName>Alder</surName>
    </individualName><organizationName>Alder Station</organizationName></creator>
  <creator><organizationName>Alder Station</organizationName></creator>
  <creator><positionName>Data manager</positionName></creator>
  <associatedParty><references>p1</references><role>editor</role></associatedParty>
  <pubDate>2026-11-20</pubDate>
  <language>English</language>
  <abstract><section><title>Aim</title><para>Count <emphasis>frogs</emphasis>, H<subscript>2</subscript>O.</para>
    <para>Each<!-- no --> night.</para></section></abstract>
  <keywordSet><keyword>frogs</keyword><keyword>frogs</keyword></keywordSet>
  <intellectualRights><para>Free to use.</para></intellectualRights>
  <licensed><licenseName>CC BY 4.0</licenseName><url>https://creativecommons.org/licenses/by/4.0/</url></licensed>
  <distribution><online><url>https://alder.example.org/frogs</url></online></distribution>
  <distribution><online><url>frogs.csv</url></online></distribution>
  <coverage>
    <geographicCoverage><geographicDescription>Alder Creek</geographicDescription><boundingCoordinates>
      <westBoundingCoordinate>-123</westBoundingCoordinate><eastBoundingCoordinate>-122</eastBoundingCoordinate>
      <northBoundingCoordinate>45</northBoundingCoordinate><southBoundingCoordinate>44</southBoundingCoordinate>
    </boundingCoordinates></geographicCoverage>
    <temporalCoverage><rangeOfDates><beginDate><calendarDate>2020</calendarDate></beginDate>
      <endDate><calendarDate>2021</calendarDate></endDate></rangeOfDates>
      <singleDateTime><calendarDate>2023-05-01</calendarDate></singleDateTime></temporalCoverage>
    <taxonomicCoverage><generalTaxonomicCoverage>All frogs</generalTaxonomicCoverage><taxonomicClassification>
      <taxonRankName>genus</taxonRankName><taxonRankValue>Rana</taxonRankValue>
      <taxonomicClassification><taxonRankName>species</taxonRankName><taxonRankValue>aurora</taxonRankValue>
        <commonName>red-legged frog</commonName></taxonomicClassification>
    </taxonomicClassification></taxonomicCoverage>
  </coverage>
  <publisher><organizationName>Alder Press</organizationName></publisher>
</dataset>"""

EML_VALUES = [
    ("title", "Frogs of Alder Creek"),
    ("title", "Frösche im"),
    ("creator", "Alder, Ann B."),
    ("creator", "Alder Station"),
    ("creator", "Data manager"),
    ("subject", "frogs"),
    ("description", "Aim Count frogs, H2O. Each night."),
    ("publisher", "Alder Press"),
    ("contributor", "Alder, Ann B."),
    ("date", "2026-11-20"),
    ("type", "Dataset"),
    ("identifier", "https://doi.org/10.1234/frogs"),
    ("identifier", "https://alder.example.org/frogs"),
    ("identifier", "alder.1.1"),
    ("language", "English"),
    ("coverage", "Alder Creek"),
    ("coverage", "The area lies between longitudes -123 and -122 and latitudes 44 and 45."),
    ("coverage", "From 2020 to 2021."),
    ("coverage", "2023-05-01."),
    ("coverage", "All frogs"),
    ("coverage", "Species Rana aurora (red-legged frog)."),
    ("rights", "https://creativecommons.org/licenses/by/4.0/"),
    ("rights", "CC BY 4.0"),
    ("rights", "Free to use."),
]

KERNEL = "http://datacite.org/schema/kernel-"
DATACITE_4 = f"""\
<d:resource xmlns:d="{KERNEL}4">
  <d:identifier identifierType="DOI">10.1234/frogs</d:identifier>
  <d:creators><d:creator><d:creatorName>Alder, A.</d:creatorName><d:givenName>Ann</d:givenName>
    <d:familyName>Alder</d:familyName></d:creator><d:creator><d:creatorName>Alder Station</d:creatorName></d:creator>
  </d:creators>
  <d:titles><d:title>Frogs</d:title></d:titles>
  <d:publisher>Alder Press</d:publisher>
  <d:publicationYear>2026</d:publicationYear>
  <d:dates><d:date dateType="Collected">2020/2021</d:date></d:dates>
  <d:contributors><d:contributor contributorType="Editor"><d:contributorName>Basalt, B.</d:contributorName>
  </d:contributor></d:contributors>
  <d:resourceType resourceTypeGeneral="Dataset">Counts</d:resourceType>
  <d:relatedIdentifiers><d:relatedIdentifier relatedIdentifierType="DOI">10.1234/toads</d:relatedIdentifier>
  </d:relatedIdentifiers>
  <d:rightsList><d:rights rightsURI="https://creativecommons.org/licenses/by/4.0/">CC BY</d:rights></d:rightsList>
  <d:descriptions><d:description>One<d:br/>Two</d:description></d:descriptions>
  <d:geoLocations><d:geoLocation><d:geoLocationPoint><d:pointLongitude>-123</d:pointLongitude>
    <d:pointLatitude>44</d:pointLatitude></d:geoLocationPoint><d:geoLocationBox>
    <d:westBoundLongitude>1</d:westBoundLongitude><d:eastBoundLongitude>2</d:eastBoundLongitude>
    <d:southBoundLatitude>3</d:southBoundLatitude><d:northBoundLatitude>4</d:northBoundLatitude>
  </d:geoLocationBox></d:geoLocation></d:geoLocations>
</d:resource>"""

DATACITE_VALUES = [
    ("title", "Frogs"),
    ("creator", "Alder, Ann"),
    ("creator", "Alder Station"),
    ("description", "One Two"),
    ("publisher", "Alder Press"),
    ("contributor", "Basalt, B."),
    ("date", "2026"),
    ("date", "2020/2021"),
    ("type", "Dataset"),
    ("type", "Counts"),
    ("identifier", "https://doi.org/10.1234/frogs"),
    ("relation", "https://doi.org/10.1234/toads"),
    ("coverage", "The area lies between longitudes 1 and 2 and latitudes 3 and 4."),
    ("coverage", "The place lies at longitude -123 and latitude 44."),
    ("rights", "https://creativecommons.org/licenses/by/4.0/"),
    ("rights", "CC BY"),
]

DATACITE_3 = f"""\
<resource xmlns="{KERNEL}3"><geoLocations><geoLocation><geoLocationPlace>Alder Creek</geoLocationPlace>
<geoLocationPoint>44 -123</geoLocationPoint><geoLocationBox>3 1 4 2</geoLocationBox></geoLocation></geoLocations>
</resource>"""

MODS = """\
<mods xmlns="http://www.loc.gov/mods/v3" xmlns:xlink="http://www.w3.org/1999/xlink">
  <titleInfo><nonSort>The</nonSort><title>frogs</title><subTitle>a survey</subTitle></titleInfo>
  <name type="personal"><namePart type="given">Ann</namePart><namePart type="family">Alder</namePart>
    <role><roleTerm type="code">aut</roleTerm></role></name>
  <name><namePart>Alder Station</namePart></name>
  <name><namePart>Basalt, Bo</namePart><namePart type="date">1960-</namePart><role><roleTerm>Editor</roleTerm></role>
  </name>
  <originInfo><publisher>Alder Press</publisher><dateIssued>2026</dateIssued><dateOther>2025</dateOther></originInfo>
  <typeOfResource>text</typeOfResource>
  <identifier type="doi">10.1234/frogs</identifier>
  <location><url>https://alder.example.org/frogs</url></location>
  <language><languageTerm>eng</languageTerm></language>
  <subject><topic>frogs</topic><geographic>Oregon</geographic></subject>
  <relatedItem type="host"><titleInfo><title>Journal of Frogs</title></titleInfo></relatedItem>
  <accessCondition xlink:href="https://creativecommons.org/licenses/by/4.0/">CC BY</accessCondition>
</mods>"""

MODS_VALUES = [
    ("title", "The frogs: a survey"),
    ("creator", "Alder, Ann"),
    ("creator", "Alder Station"),
    ("subject", "frogs"),
    ("publisher", "Alder Press"),
    ("contributor", "Basalt, Bo"),
    ("date", "2026"),
    ("type", "text"),
    ("identifier", "https://doi.org/10.1234/frogs"),
    ("identifier", "https://alder.example.org/frogs"),
    ("language", "eng"),
    ("relation", "Journal of Frogs"),
    ("coverage", "Oregon"),
    ("rights", "https://creativecommons.org/licenses/by/4.0/"),
    ("rights", "CC BY"),
]


def _marc(tag: str, **subfields: str) -> str:
    inside = "".join(f'<m:subfield code="{code[-1]}">{text}</m:subfield>' for code, text in subfields.items())
    return f'<m:datafield tag="{tag}" ind1=" " ind2=" ">{inside}</m:datafield>'


MARC = f"""\
<m:collection xmlns:m="http://www.loc.gov/MARC21/slim"><m:record>
  <m:leader>00000nam a2200000 a 4500</m:leader>
  <m:controlfield tag="008">261120s2025    xx            000 0 eng d</m:controlfield>
  {_marc("024", a="10.1234/frogs", _2="doi")}
  {_marc("100", a="Alder, Ann,", d="1970-")}
  {_marc("245", a="Frogs :", b="a survey /", c="Ann Alder")}
  {_marc("260", a="Alder :", b="Alder Press,", c="2026.")}
  {_marc("650", a="Frogs", z="Oregon")}
  {_marc("700", a="Cedar, C.", _4="aut")}
  {_marc("700", a="Basalt, Bo", e="editor.")}
  {_marc("540", a="CC BY", u="https://creativecommons.org/licenses/by/4.0/")}
  {_marc("856", u="https://alder.example.org/frogs", q="text/html")}
</m:record></m:collection>"""

MARC_VALUES = [
    ("title", "Frogs : a survey"),
    ("creator", "Alder, Ann, 1970-"),
    ("creator", "Cedar, C."),
    ("subject", "Frogs -- Oregon"),
    ("publisher", "Alder Press"),
    ("contributor", "Basalt, Bo"),
    ("date", "2026."),
    ("type", "Text"),
    ("format", "text/html"),
    ("identifier", "https://doi.org/10.1234/frogs"),
    ("identifier", "https://alder.example.org/frogs"),
    ("language", "eng"),
    ("rights", "https://creativecommons.org/licenses/by/4.0/"),
    ("rights", "CC BY"),
]

RIOXX = f"""\
<x:record xmlns:x="urn:any" xmlns:dc="{DC}" xmlns:t="{DCTERMS}" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xmlns:r="http://docs.rioxx.net/schema/v3.0/rioxxterms/" xmlns:ali="http://www.niso.org/schemas/ali/1.0/">
  <dc:title>Frogs</dc:title>
  <r:creator><r:name>Alder, Ann</r:name><r:id>https://orcid.example.org/1</r:id></r:creator>
  <t:dateAccepted>2026-01-02</t:dateAccepted>
  <r:version_of_record>https://doi.org/10.1234/frogs</r:version_of_record>
  <ali:license_ref start_date="2026-01-01">https://creativecommons.org/licenses/by/4.0/</ali:license_ref>
  <t:isPartOf rdf:resource="https://alder.example.org/all"/>
</x:record>"""

RIOXX_VALUES = [
    ("title", "Frogs"),
    ("creator", "Alder, Ann"),
    ("date", "2026-01-02"),
    ("identifier", "https://doi.org/10.1234/frogs"),
    ("relation", "https://alder.example.org/all"),
    ("rights", "https://creativecommons.org/licenses/by/4.0/"),
]

OPENAIRE = f"""\
<o:resource xmlns:o="http://namespace.openaire.eu/schema/oaire/" xmlns:d="{KERNEL}4" xmlns:dc="{DC}">
  <d:titles><d:title>Frogs</d:title></d:titles>
  <d:creators><d:creator><d:creatorName>Alder, Ann</d:creatorName></d:creator></d:creators>
  <dc:language>eng</dc:language>
  <d:dates><d:date dateType="Issued">2026</d:date></d:dates>
  <o:resourceType resourceTypeGeneral="dataset">dataset</o:resourceType>
  <d:identifier identifierType="DOI">10.1234/frogs</d:identifier>
  <o:licenseCondition uri="https://creativecommons.org/licenses/by/4.0/">CC BY</o:licenseCondition>
</o:resource>"""

OPENAIRE_VALUES = [
    ("title", "Frogs"),
    ("creator", "Alder, Ann"),
    ("date", "2026"),
    ("type", "dataset"),
    ("identifier", "https://doi.org/10.1234/frogs"),
    ("language", "eng"),
    ("rights", "https://creativecommons.org/licenses/by/4.0/"),
    ("rights", "CC BY"),
]

ISO_VALUES = [
    ("title", "Water temperature"),
    ("description", "Every hour"),
    ("date", "2026-11-20"),
    ("identifier", "alder-1"),
    ("language", "eng"),
    ("coverage", "From 2020 to 2021."),
]

GMD = 'xmlns:gmd="http://www.isotc211.org/2005/gmd" xmlns:gco="http://www.isotc211.org/2005/gco"'


def _party(role: str, name: str, kind: str = "individual") -> str:
    return (
        f"<gmd:pointOfContact><gmd:CI_ResponsibleParty><gmd:{kind}Name><gco:CharacterString>{name}"
        f"</gco:CharacterString></gmd:{kind}Name><gmd:role><gmd:CI_RoleCode codeListValue='{role}'/></gmd:role>"
        "</gmd:CI_ResponsibleParty></gmd:pointOfContact>"
    )


def _number(side: str, value: int) -> str:
    return f"<gmd:{side}><gco:Decimal>{value}</gco:Decimal></gmd:{side}>"


ISO_PARTIES = f"""\
<gmd:MD_Metadata {GMD} xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:gmx="http://www.isotc211.org/2005/gmx">
  <gmd:dateStamp><gco:DateTime>2026-11-20T10:00:00</gco:DateTime></gmd:dateStamp>
  <gmd:hierarchyLevel><gmd:MD_ScopeCode codeListValue="series"/></gmd:hierarchyLevel>
  <gmd:identificationInfo><gmd:MD_DataIdentification>
    <gmd:abstract><gco:CharacterString>Every hour</gco:CharacterString><gmd:PT_FreeText><gmd:textGroup>
      <gmd:LocalisedCharacterString locale="#de">Jede Stunde</gmd:LocalisedCharacterString></gmd:textGroup>
    </gmd:PT_FreeText></gmd:abstract>
    {_party("author", "Alder, Ann")}{_party("owner", "Alder Station", "organisation")}{_party("publisher", "Press")}
    <gmd:resourceConstraints><gmd:MD_LegalConstraints><gmd:otherConstraints>
      <gmx:Anchor xlink:href="https://creativecommons.org/licenses/by/4.0/">CC BY</gmx:Anchor>
    </gmd:otherConstraints></gmd:MD_LegalConstraints></gmd:resourceConstraints>
    <gmd:language><gmd:LanguageCode codeListValue="eng"/></gmd:language>
    <gmd:extent><gmd:EX_Extent><gmd:geographicElement><gmd:EX_GeographicBoundingBox>
      {_number("westBoundLongitude", 1)}{_number("eastBoundLongitude", 2)}
      {_number("southBoundLatitude", 3)}{_number("northBoundLatitude", 4)}
    </gmd:EX_GeographicBoundingBox></gmd:geographicElement></gmd:EX_Extent></gmd:extent>
  </gmd:MD_DataIdentification></gmd:identificationInfo>
</gmd:MD_Metadata>"""

ISO_PARTIES_VALUES = [
    ("creator", "Alder, Ann"),
    ("description", "Every hour"),
    ("description", "Jede Stunde"),
    ("publisher", "Press"),
    ("contributor", "Alder Station"),
    ("date", "2026-11-20T10:00:00"),
    ("type", "Collection"),
    ("language", "eng"),
    ("coverage", "The area lies between longitudes 1 and 2 and latitudes 3 and 4."),
    ("rights", "https://creativecommons.org/licenses/by/4.0/"),
    ("rights", "CC BY"),
]


def read(document: str, document_type: str = "") -> Sequence[tuple[str, str]] | None:
    return dublin_core(etree.fromstring(document.encode()), document_type)


@pytest.mark.parametrize("namespace", EML)
def test_each_version_of_eml(namespace: str) -> None:
    assert read(f'<e:eml xmlns:e="{namespace}" packageId="alder.1.1">{EML_BODY}</e:eml>') == EML_VALUES


@pytest.mark.parametrize(
    ("document", "values"),
    [
        (DATACITE_4, DATACITE_VALUES),
        (MODS, MODS_VALUES),
        (MARC, MARC_VALUES),
        (VALID["iso"], ISO_VALUES),
        (VALID["iso-2"], ISO_VALUES),
        (VALID["iso-old-gml"], ISO_VALUES),
        (ISO_PARTIES, ISO_PARTIES_VALUES),
        (RIOXX, RIOXX_VALUES),
        (OPENAIRE, OPENAIRE_VALUES),
        (VALID["oai_dc"], [("title", "Water temperature"), ("date", "2026")]),
        (VALID["onedcx"], [("title", "Water temperature"), ("date", "2026-11-20")]),
    ],
)
def test_other_formats(document: str, values: list[tuple[str, str]]) -> None:
    assert read(document) == values


def test_a_service_and_a_title_with_a_link() -> None:
    assert read(VALID["iso-service"]) == [each for each in ISO_VALUES if each[0] not in ("language", "coverage")]
    assert read(VALID["iso-anchor"]) == ISO_VALUES


def test_the_numbers_of_datacite_3() -> None:
    assert read(DATACITE_3) == [
        ("coverage", "Alder Creek"),
        ("coverage", "The area lies between longitudes 1 and 2 and latitudes 3 and 4."),
        ("coverage", "The place lies at longitude -123 and latitude 44."),
    ]


def test_datacite_in_the_envelope_of_its_provider() -> None:
    envelope = (
        "<o:oai_datacite xmlns:o='http://schema.datacite.org/oai/oai-1.1/'><o:payload>{}</o:payload></o:oai_datacite>"
    )
    assert read(envelope.format(DATACITE_4)) == DATACITE_VALUES


def test_the_document_type_says_the_format_of_a_root_without_a_namespace() -> None:
    bare = "<resource><titles><title>Frogs</title></titles></resource>"
    assert read(bare) is None
    assert read(bare, f"{KERNEL}4") == [("title", "Frogs")]


def test_a_format_without_a_crosswalk() -> None:
    assert read(fgdc()) is None
    assert read("<dc xmlns='urn:x'><title>Frogs</title></dc>") is None


def test_a_document_of_a_known_format_without_values() -> None:
    assert read(f"<e:eml xmlns:e='{EML[-1]}'/>") == []


def test_every_sample_has_title_creator_and_type() -> None:
    for file in data_folder("sample_sites").glob("alder-creek/*.xml"):
        root = etree.parse(file).getroot()
        if etree.QName(root).namespace in EML:
            assert {"title", "creator", "type"} <= {element for element, _ in dublin_core(root, "") or ()}, file


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("10.1234/a", "https://doi.org/10.1234/a"),
        ("doi: 10.1234/a(b)<c>", "https://doi.org/10.1234/a(b)<c>"),
        ("http://dx.doi.org/10.1234/a", "https://doi.org/10.1234/a"),
        ("10.1234", "10.1234"),
        ("10.1234/a b", "10.1234/a b"),
        ("hdl:10.1234/a", "hdl:10.1234/a"),
    ],
)
def test_a_doi_becomes_a_url(value: str, url: str) -> None:
    assert resolvable(value) == url


def test_plain_text_keeps_words_together_and_paragraphs_apart() -> None:
    element = etree.fromstring("<a>H<sub>2</sub>O<p>one</p><p>two<!-- x -->!<?y?></p><i/>end</a>")
    assert " ".join(plain(element).split()) == "H2O one two! end"


def test_plain_text_is_bounded_in_elements_without_text() -> None:
    assert plain(etree.fromstring(f"<a>first{'<ulink/>' * 100}last</a>")) == "firstlast"
    assert plain(etree.fromstring(f"<a>first{'<ulink/>' * 2 * LONGEST}last</a>")) == "first"


def test_values_are_bounded_in_number_and_length() -> None:
    title = f"<dc:title>{'long ' * LONGEST}</dc:title>"
    many = "".join(f"<dc:subject>{number}</dc:subject>" for number in range(2 * MOST))
    found = read(f"<x:dc xmlns:x='http://www.openarchives.org/OAI/2.0/oai_dc/' xmlns:dc='{DC}'>{many}{title}</x:dc>")
    assert found is not None
    assert [element for element, _ in found] == ["title"] + ["subject"] * MOST
    assert len(found[0][1]) == LONGEST
    assert found[0][1].endswith("…")


@pytest.mark.parametrize("namespace", [*EML, f"{KERNEL}3", f"{KERNEL}4", "http://www.isotc211.org/2005/gmd", "urn:x"])
def test_a_deep_document_and_a_wide_one_take_little_time(namespace: str) -> None:
    first = "<creator><references>a</references></creator><abstract/>"
    dataset = f"<dataset>{first}{'<creator/>' * 100_000}</dataset>"
    root = etree.fromstring(f"<e:eml xmlns:e='{namespace}'>{dataset}{'<e:titles/>' * 100_000}</e:eml>")
    node = root[0][1]
    for _ in range(3_000):
        node = etree.SubElement(node, "para")
    node.text = "deep"
    began = process_time()
    dublin_core(root, "")
    assert process_time() - began < 5


@given(
    st.recursive(
        st.text(
            alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")
        ),
        lambda inside: st.lists(
            st.tuples(st.sampled_from(["dataset", "title", "creator", "coverage"]), inside), max_size=4
        ),
        max_leaves=20,
    )
)
def test_any_content_gives_known_elements_and_texts_on_one_line(content: object) -> None:
    root = etree.Element(f"{{{EML[-1]}}}eml")
    waiting = [(root, content)]
    while waiting:
        element, inside = waiting.pop()
        if isinstance(inside, str):
            element.text = inside
        elif isinstance(inside, list):
            waiting += [(etree.SubElement(element, name), below) for name, below in inside]
    for name, text in dublin_core(root, "") or ():
        assert name in ELEMENTS
        assert text == " ".join(text.split())
        assert text


def test_a_name_without_rules_in_marc_is_an_author_if_its_role_says_so() -> None:
    fields = _marc("720", a="Alder, Ann", e="author") + _marc("720", a="Basalt, Bo")
    root = etree.fromstring(f'<m:record xmlns:m="http://www.loc.gov/MARC21/slim">{fields}</m:record>')
    assert dublin_core(root, "") == [("creator", "Alder, Ann"), ("contributor", "Basalt, Bo")]


def test_a_marc_record_with_very_many_fields_is_read_in_one_pass() -> None:
    field = _marc("650", a="Frogs")
    content = f'<m:record xmlns:m="http://www.loc.gov/MARC21/slim">{field * 100_000}{_marc("245", a="Last")}</m:record>'
    root = etree.fromstring(content.encode(), etree.XMLParser(huge_tree=True))
    began = process_time()
    assert dublin_core(root, "") == [("title", "Last"), ("subject", "Frogs")]
    # A search for each row of the table took five seconds.
    assert process_time() - began < 2
