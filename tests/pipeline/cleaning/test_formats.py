"""The output of a record in each format, and what no record may do."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from metaharvest.config.paths import data_folder
from metaharvest.model.outputs import Access, Output
from metaharvest.pipeline.cleaning.draft import LONGEST, MOST
from metaharvest.pipeline.cleaning.stage import clean
from metaharvest.pipeline.stored_outputs import json_of, output_of
from support import cleaning_records as records

NAMESPACES = (
    "http://www.openarchives.org/OAI/2.0/oai_dc/",
    "https://eml.ecoinformatics.org/eml-2.2.0",
    "http://datacite.org/schema/kernel-4",
    "http://www.isotc211.org/2005/gmd",
    "http://www.loc.gov/mods/v3",
    "http://www.loc.gov/METS/",
    "http://www.loc.gov/MARC21/slim",
    "http://www.w3.org/2005/Atom",
    "urn:x",
)


def read(document: str) -> Output:
    output = clean(etree.fromstring(document), "")
    assert output_of(json_of(output)) == output
    return output


def creators(output: Output) -> list[tuple[str | None, ...]]:
    return [(each.kind, each.family, each.given, each.orcid or each.ror) for each in output.creators]


def identifiers(output: Output) -> list[tuple[str, str]]:
    return [(each.scheme, each.value) for each in output.identifiers]


def relations(output: Output) -> list[tuple[str, str, str]]:
    return [(each.kind, each.scheme, each.value) for each in output.relations]


def dates(output: Output) -> list[tuple[str, str]]:
    return [(each.kind, each.edtf) for each in output.dates]


def files(output: Output) -> list[tuple[str, str, str | None]]:
    return [(each.role, each.url, each.media_type) for each in output.files]


ANN = ("person", "Alder", "Ann", "0000-0002-1825-0097")


@pytest.mark.parametrize(
    "record",
    [
        *(records.RIOXX_2, records.RIOXX_3, records.OPENAIRE, records.DATACITE, records.ISO),
        *(records.ATOM, records.RDF, records.DSPACE, records.EML, records.MODS, records.MARC),
    ],
)
def test_every_format_has_the_title_and_the_first_creator(record: str) -> None:
    output = read(record)
    assert output.title.lower().replace(":", "").removeprefix("the ") == "frogs of alder creek"
    assert (output.creators[0].family, output.creators[0].kind) == ("Alder", "person")


def test_the_dublin_core_of_dspace() -> None:
    output = read(records.DSPACE)
    assert output.titles[0].language == "en"
    assert creators(output)[1] == ("person", "van der Birch", "Bo", "0000-0002-1825-0097")
    assert output.creators[1].name == "van der Birch, Bo"
    assert output.creators[1].source == "dc:creator[2]"
    assert [each.text for each in output.subjects] == ["frogs", "streams"]
    # The times of the archive's own work are not the date of publication.
    assert dates(output) == [("Issued", "2020-12"), ("Available", "2021-03-04")]
    assert (output.year, output.language) == (2020, "en")
    assert [each.label for each in output.types] == ["doctoral thesis", "thesis"]
    assert identifiers(output)[:2] == [("handle", "10023/1234"), ("doi", "10.5063/f1")]
    assert ("doi", "10.5063/f2") in identifiers(output)
    assert relations(output) == []
    assert (output.access, output.embargo_until) == (Access.EMBARGOED, "2022-01-31")
    assert {each.spdx for each in output.licences} == {"CC-BY-4.0"}
    assert files(output) == [
        ("full text", "https://repository.example.org/bitstream/10023/1234/1/frogs.pdf", "application/pdf")
    ]


def test_rioxx_2() -> None:
    output = read(records.RIOXX_2)
    assert creators(output) == [ANN]
    assert files(output) == [("full text", "https://eprints.example.org/12/1/frogs", "application/pdf")]
    assert (output.access, output.embargo_until, output.year) == (Access.EMBARGOED, "2022-05-01", 2021)
    assert relations(output) == [("relation", "issn", "0378-5955"), ("IsVersionOf", "doi", "10.5063/f1")]
    assert output.types[0].label == "journal article"
    assert output.licences[0].spdx == "CC-BY-NC-4.0"


def test_rioxx_3() -> None:
    output = read(records.RIOXX_3)
    assert creators(output) == [ANN]
    assert files(output) == [
        ("full text", "https://eprints.example.org/12/1/frogs", "application/pdf"),
        ("data", "https://eprints.example.org/12/2/frogs.csv", "text/csv"),
    ]
    assert output.files[0].licence == "CC-BY-4.0"
    assert identifiers(output) == [("url", "https://eprints.example.org/12/"), ("handle", "10023/1234")]
    assert relations(output) == [("IsVersionOf", "doi", "10.5063/f1")]
    assert output.access is Access.OPEN


def test_openaire_4() -> None:
    output = read(records.OPENAIRE)
    assert creators(output) == [ANN]
    assert files(output) == [("full text", "https://eprints.example.org/12/1/frogs", "application/pdf")]
    assert (output.access, output.embargo_until, output.year) == (Access.EMBARGOED, "2023-01-01", 2021)
    assert [(each.text, each.label) for each in output.types] == [("journal article", "journal article")]
    assert identifiers(output) == [("handle", "10023/1234")]
    assert [(each.spdx, each.text) for each in output.licences] == [("CC-BY-4.0", "CC BY 4.0")]


def test_datacite_in_its_envelope() -> None:
    output = read(records.DATACITE)
    assert creators(output) == [ANN, ("organisation", None, None, "02twcfp32")]
    assert [(each.name, each.role) for each in output.contributors] == [("Birch, Bo", "DataManager")]
    assert dates(output) == [("Issued", "2021"), ("Updated", "2022-01"), ("Collected", "2019-01-01/2020-12-31")]
    assert [each.text for each in output.abstracts] == ["We counted frogs."]
    assert [each.label for each in output.types] == ["dataset", None]
    assert identifiers(output) == [("doi", "10.5063/f1"), ("url", "https://alder.example.org/frogs")]
    assert relations(output) == [("IsSupplementTo", "doi", "10.5063/f2")]
    assert output.doi == "10.5063/f1"
    assert output.licences[0].spdx == "CC0-1.0"


def test_mods_and_mets() -> None:
    output = read(records.MODS)
    assert creators(output) == [ANN, ("organisation", None, None, None)]
    assert [(each.name, each.role) for each in output.contributors] == [("Birch, Bo", "Thesis advisor")]
    assert dates(output) == [("Issued", "2021"), ("Created", "2019/2020")]
    assert [each.label for each in output.types] == ["doctoral thesis", "text"]
    assert identifiers(output) == [("doi", "10.5063/f1")]
    assert relations(output) == [("IsPartOf", "issn", "0378-5955")]
    assert output.language == "de"
    raw = ("full text", "https://alder.example.org/1.pdf", "application/pdf")
    assert files(output) == [raw]
    in_mets = read(records.METS)
    assert in_mets.titles == output.titles
    assert files(in_mets) == [raw, ("full text", "https://alder.example.org/bitstream/2", "application/pdf")]


def test_marc() -> None:
    output = read(records.MARC)
    assert output.title == "Frogs: of Alder Creek"
    assert creators(output) == [
        ("person", "Alder", "Ann B.", "0000-0002-1825-0097"),
        ("organisation", None, None, None),
    ]
    assert [(each.name, each.role) for each in output.contributors] == [("Birch, Bo", "editor")]
    assert (output.year, output.language) == (2021, "de")
    assert [each.label for each in output.types] == ["doctoral thesis", "book"]
    assert identifiers(output)[:2] == [("doi", "10.5063/f1"), ("isbn", "9783161484100")]
    assert ("IsPartOf", "issn", "0378-5955") in relations(output)
    assert files(output) == [("full text", "https://alder.example.org/1", "application/pdf")]


def test_iso_19139() -> None:
    output = read(records.ISO)
    assert creators(output) == [("person", "Alder", "Ann", None)]
    assert [(each.name, each.role) for each in output.contributors] == [("Alder Creek", "custodian")]
    assert [each.text for each in output.publishers] == ["Alder Press"]
    assert dates(output) == [("Issued", "2021-05-01"), ("Collected", "2019-01-01/2020-12-31")]
    assert identifiers(output) == [("doi", "10.5063/f1"), ("other", "alder-1")]
    assert relations(output) == [("IsPartOf", "other", "alder-0")]
    assert (output.access, output.language) == (Access.OPEN, "en")
    assert output.licences[0].spdx == "CC-BY-4.0"
    assert files(output) == [
        ("data", "https://alder.example.org/frogs.zip", "application/zip"),
        ("landing page", "https://alder.example.org/frogs", None),
    ]


def test_eml() -> None:
    output = read(records.EML)
    assert [(each.text, each.language) for each in output.titles] == [
        ("Frogs of Alder Creek", None),
        ("Frösche am", "de"),
    ]
    assert creators(output) == [
        ("person", "Alder", "Ann B.", "0000-0002-1825-0097"),
        ("organisation", None, None, "02twcfp32"),
        ("unknown", None, None, None),
    ]
    assert [(each.name, each.role) for each in output.contributors] == [("Alder, Ann B.", "editor")]
    assert identifiers(output) == [("doi", "10.5063/f1"), ("other", "alder.1.2")]
    assert relations(output) == [("References", "doi", "10.5063/f2")]
    assert [each.spdx for each in output.licences] == ["CC0-1.0", "CC-BY-4.0"]
    assert files(output) == [
        ("landing page", "https://alder.example.org/frogs", None),
        ("data", "https://alder.example.org/frogs.csv", "text/csv"),
        ("data", "https://alder.example.org/notes.pdf", "application/pdf"),
    ]


def test_resource_maps_have_files() -> None:
    assert files(read(records.ATOM)) == [("full text", "https://repository.example.org/1", "application/pdf")]
    assert files(read(records.RDF)) == [("full text", "https://alder.example.org/1.pdf", "application/pdf")]


def dublin_core(content: str) -> Output:
    return read(f"<oai_dc:dc {records.OAI_DC} {records.DC} {records.DCTERMS}>{content}</oai_dc:dc>")


def test_several_dates_of_dublin_core() -> None:
    both = dublin_core("<dc:date>2021</dc:date><dc:date>2019-05</dc:date>")
    assert (both.year, dates(both)[0]) == (2019, ("Issued", "2019-05"))
    assert dublin_core("<dc:date>2021-03-04T10:20:30Z</dc:date>").year == 2021
    assert dublin_core("<dc:date>in press</dc:date>").dates == ()


def test_a_record_of_arxiv_has_letters_in_place_of_tex() -> None:
    texts = r"<dc:title>The Schr\"odinger equation</dc:title><dc:description>By L\'evy</dc:description>"
    output = dublin_core(f"{texts}<dc:identifier>http://arxiv.org/abs/0704.0001</dc:identifier>")
    assert (output.title, output.abstracts[0].text) == ("The Schrödinger equation", "By Lévy")
    # Elsewhere a backslash may stand before each apostrophe.
    assert dublin_core(r"<dc:title>L\'eau</dc:title>").title == r"L\'eau"


def test_several_names_in_one_element() -> None:
    output = dublin_core("<dc:creator>Alder A, Birch B</dc:creator><dc:creator>Cedar, C. and Elm, E.</dc:creator>")
    assert [each.family for each in output.creators] == ["Alder", "Birch", "Cedar", "Elm"]
    output = dublin_core("<dc:creator>Alder, Ann; Birch, Bo</dc:creator><dc:creator>Alder; Birch</dc:creator>")
    assert [each.name for each in output.creators] == ["Alder, Ann", "Birch, Bo", "Alder; Birch"]


def test_a_title_that_says_nothing_is_not_the_main_title() -> None:
    output = dublin_core("<dc:title>n/a</dc:title><dc:title>Untitled forests</dc:title>")
    assert [each.text for each in output.titles] == ["Untitled forests", "n/a"]
    assert dublin_core("<dc:title>[Untitled]</dc:title>").title == "[Untitled]"


def test_each_address_of_a_list_is_a_file() -> None:
    urls = ["https://repository.example.org/1.pdf", "https://repository.example.org/2.pdf"]
    for between in (";", ", ", " "):
        value = f"Available at: {between.join(urls)}"
        output = read(f"<dc {records.DC}><dc:identifier>{value}</dc:identifier></dc>")
        assert files(output) == [("full text", each, "application/pdf") for each in urls]
        assert identifiers(output) == [("url", each) for each in urls]


@pytest.mark.parametrize("between", [";  ", "  ", ",\n    "])
def test_more_white_space_in_a_list_of_addresses_does_not_matter(between: str) -> None:
    urls = ["https://repository.example.org/1.pdf", "https://repository.example.org/2.pdf"]
    output = dublin_core(f"<dc:identifier>{between.join(urls)}</dc:identifier>")
    assert [url for _, url, _ in files(output)] == urls


def test_a_relation_to_a_pdf_is_a_file() -> None:
    output = dublin_core("<dc:relation>https://alder.example.org/1.pdf</dc:relation>")
    assert files(output) == [("full text", "https://alder.example.org/1.pdf", "application/pdf")]


def test_relations_of_openaire_3_are_identifiers_references_and_files() -> None:
    entity = "<dc:relation>info:eu-repo/semantics/{}</dc:relation>"
    output = dublin_core(
        entity.format("altIdentifier/url/https://alder.example.org/1.pdf")
        + entity.format("reference/doi/10.5063/f3")
        + entity.format("altIdentifier/issn/0378-5955")
    )
    assert identifiers(output) == [("url", "https://alder.example.org/1.pdf"), ("issn", "0378-5955")]
    assert relations(output) == [("References", "doi", "10.5063/f3")]
    assert files(output) == [("full text", "https://alder.example.org/1.pdf", "application/pdf")]


def test_the_first_day_in_an_attribute_of_its_namespace() -> None:
    output = dublin_core('<a:free_to_read xmlns:a="http://www.niso.org/schemas/ali/1.0/" a:start_date="2030-01-31"/>')
    assert (output.access, output.embargo_until) == (Access.EMBARGOED, "2030-01-31")


def test_the_time_of_the_data_is_no_year_of_publication() -> None:
    output = read(records.EML.replace("<pubDate>2021</pubDate>", ""))
    assert output.year is None


def test_rights_of_access_are_no_licence() -> None:
    output = dublin_core("<dc:rights>Open Access</dc:rights><dc:rights>All rights reserved</dc:rights>")
    assert output.access is Access.OPEN
    assert [(each.text, each.spdx) for each in output.licences] == [("All rights reserved", None)]


def test_the_end_of_an_embargo_in_words() -> None:
    output = dublin_core("<dc:rights>Embargo until 2030-01-31</dc:rights>")
    assert (output.access, output.embargo_until) == (Access.EMBARGOED, "2030-01-31")


def test_markup_in_a_text_is_left_out_and_signs_stay() -> None:
    output = dublin_core(
        "<dc:description>&lt;p&gt;H&lt;sub&gt;2&lt;/sub&gt;O at p &lt; 0.05&lt;/p&gt;&amp;amp; more</dc:description>"
    )
    assert output.abstracts[0].text == "H2O at p < 0.05 & more"


def test_several_languages_in_one_element() -> None:
    assert [each.language for each in dublin_core("<dc:language>eng; ger</dc:language>").languages] == ["en", "de"]
    assert [each.text for each in dublin_core("<dc:language>eng; frogs</dc:language>").languages] == ["eng; frogs"]


def test_the_slash_of_library_catalogues_is_no_part_of_a_title() -> None:
    assert dublin_core("<dc:title>Frogs of Alder Creek /</dc:title>").title == "Frogs of Alder Creek"


def test_a_document_without_anything() -> None:
    assert read("<a/>") == Output("")
    assert read("<a xmlns='http://www.isotc211.org/2005/gmd'><b/></a>").titles == ()


def test_lists_and_texts_are_bounded() -> None:
    names = "".join(f"<dc:creator>Alder, A{'b' * (number % 50)}c</dc:creator>" for number in range(2 * MOST))
    output = dublin_core(f"<dc:title>{'frog ' * LONGEST}</dc:title>{names}")
    assert len(output.creators) == MOST
    assert len(output.title) == LONGEST
    many = "".join(f"<dc:description>{number} {'frog ' * 1999}</dc:description>" for number in range(100))
    assert sum(len(each.text) for each in dublin_core(many).abstracts) < 220_000


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_deep_document_and_a_wide_one_take_little_time(namespace: str) -> None:
    names = ("creator", "titles", "name", "datafield", "link", "identificationInfo")
    dataset = f"<dataset><creator/><abstract/>{''.join(f'<{name}/>' * 5_000 for name in names)}</dataset>"
    others = "".join(f"<e:{name}/>" * 5_000 for name in names)
    root = etree.fromstring(f"<e:eml xmlns:e='{namespace}'>{dataset}{others}</e:eml>")
    node = root[0][1]
    for _ in range(3_000):
        node = etree.SubElement(node, "para")
    node.text = "deep"
    began = process_time()
    clean(root, "")
    assert process_time() - began < 5


_TEXT = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")
)
_PIECES = st.sampled_from(
    [
        "Alder, A.",
        "10.5063/f1",
        "2020-01",
        "https://e.org/1.pdf",
        "CC BY 4.0",
        ";",
        ",",
        "(",
        " ",
        "0000-0002-1825-0097",
    ]
)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 500), st.one_of(_TEXT, st.lists(_PIECES, max_size=4).map("".join))), max_size=6)
)
@pytest.mark.parametrize(
    "record", [records.DSPACE, records.OPENAIRE, records.MARC, records.ISO, records.EML, records.METS]
)
def test_any_text_in_any_place_gives_an_output(record: str, changes: list[tuple[int, str]]) -> None:
    root = etree.fromstring(record)
    elements = list(root.iter("*"))
    for place, text in changes:
        elements[place % len(elements)].text = text
    output = clean(root, "")
    assert output_of(json_of(output)) == output
    for each in (*output.titles, *output.abstracts, *output.subjects):
        assert each.text
        assert each.text == " ".join(each.text.split())


def test_every_sample_has_a_title_a_creator_and_a_type() -> None:
    for file in data_folder("sample_sites").glob("alder-creek/*.xml"):
        root = etree.parse(file).getroot()
        if "ecoinformatics.org/eml-" in root.tag:
            output = clean(root, "")
            assert output.title, file
            assert output.creators, file
            assert output.types[0].coar, file


@pytest.mark.parametrize(
    "document",
    [
        "<resource xmlns='http://datacite.org/schema/kernel-4'><titles><title titleType='Subtitle'>Of the creek</title>"
        "<title>Frogs</title></titles><descriptions><description descriptionType='Methods'>By eye</description>"
        "<description descriptionType='Abstract'>Counts</description></descriptions></resource>",
        "<mods xmlns='http://www.loc.gov/mods/v3'><titleInfo type='alternative'><title>Of the creek</title></titleInfo>"
        "<titleInfo><title>Frogs</title></titleInfo><abstract>Counts</abstract><abstract>By eye</abstract></mods>",
    ],
)
def test_the_main_title_and_the_abstract_are_first_wherever_they_stand(document: str) -> None:
    output = read(document)
    assert [each.text for each in output.titles] == ["Frogs", "Of the creek"]
    assert [each.text for each in output.abstracts] == ["Counts", "By eye"]
