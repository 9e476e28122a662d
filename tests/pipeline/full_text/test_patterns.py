"""One case or more for each row of the tables of repository software."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.full_text.patterns import FILES, GUESSES, file_of, guesses, has_pdf_name

SURE = [
    ("arXiv", "http://arxiv.org/abs/2101.00001v2", "https://arxiv.org/pdf/2101.00001v2"),
    ("arXiv", "https://export.arxiv.org/abs/math/0301001", "https://arxiv.org/pdf/math/0301001"),
    ("HAL", "https://hal.example.fr/hal-01234567v1", "https://hal.example.fr/hal-01234567v1/document"),
    ("HAL", "https://theses.example.fr/tel-00012345/en/", "https://theses.example.fr/tel-00012345/document"),
    (
        "PMC",
        "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC123456/",
        "https://pmc.ncbi.nlm.nih.gov/articles/PMC123456/pdf/",
    ),
    ("Europe PMC", "http://europepmc.org/articles/PMC77", "https://europepmc.org/articles/PMC77?pdf=render"),
    ("OSF", "https://osf.io/preprints/alder/ab3cd_v2", "https://osf.io/ab3cd_v2/download"),
    ("OSF", "https://osf.io/ab3cd/", "https://osf.io/ab3cd/download"),
    (
        "OJS",
        "https://j.example.org/index.php/alder/article/view/12/34",
        "https://j.example.org/index.php/alder/article/download/12/34",
    ),
    (
        "OJS",
        "https://j.example.org/index.php?journal=a&page=article&op=view&path[]=1&path[]=2",
        "https://j.example.org/index.php?journal=a&page=article&op=download&path[]=1&path[]=2",
    ),
    (
        "DiVA",
        "http://uni.example.se/smash/record.jsf?dswid=1&pid=diva2%3A99",
        "http://uni.example.se/smash/get/diva2%3A99/FULLTEXT01.pdf",
    ),
    (
        "bioRxiv",
        "https://www.biorxiv.org/content/10.1101/2020.01.01.000001v1",
        "https://www.biorxiv.org/content/10.1101/2020.01.01.000001v1.full.pdf",
    ),
    (
        "SciELO",
        "http://scielo.example.br/scielo.php?script=sci_arttext&pid=S0001-1&lng=en",
        "http://scielo.example.br/scielo.php?script=sci_pdf&pid=S0001-1",
    ),
    (
        "J-STAGE",
        "https://www.jstage.jst.go.jp/article/alder/3/1/3_1/_article/-char/ja/",
        "https://www.jstage.jst.go.jp/article/alder/3/1/3_1/_pdf",
    ),
]
UNSURE = [
    ("EPrints", "https://e.example.org/id/eprint/123/", "https://e.example.org/123/1/"),
    ("EPrints", "http://e.example.org/123", "http://e.example.org/123/1/"),
    (
        "Islandora",
        "https://i.example.org/islandora/object/alder:7",
        "https://i.example.org/islandora/object/alder:7/datastream/OBJ/download",
    ),
    (
        "Islandora",
        "https://i.example.org/islandora/object/alder:7",
        "https://i.example.org/islandora/object/alder:7/datastream/PDF/view",
    ),
    ("PHAIDRA", "https://p.example.at/view/o:55", "https://p.example.at/api/object/o:55/download"),
]
ADDRESSES = [
    ("DSpace", "https://d.example.org/bitstream/handle/1/2/thesis.pdf?sequence=1&isAllowed=y", None),
    ("DSpace", "https://d.example.org/xmlui/bitstream/1/2/1/thesis.pdf", None),
    ("DSpace", "https://d.example.org/bitstreams/6260ead5-90d6-405c-a524-f4a254c0bf10/download", None),
    ("DSpace", "https://d.example.org/server/api/core/bitstreams/6260ead5-90d6-405c-a524-f4a254c0bf10/content", None),
    ("DSpace", "https://d.example.org/retrieve/e2b5-11/thesis.pdf", None),
    ("EPrints", "https://e.example.org/id/eprint/123/1/paper.pdf", None),
    ("OJS", "https://j.example.org/index.php/a/article/download/12/34", None),
    ("OJS", "https://p.example.org/index.php/p/preprint/download/2653/4639", None),
    ("OJS", "https://p.example.org/preprint/view/2653/4639", "https://p.example.org/preprint/download/2653/4639"),
    ("OJS", "https://j.example.org/article/view/5/version/7/9", "https://j.example.org/article/download/5/version/7/9"),
    ("OJS", "https://j.example.org/a/article/view/12/34", "https://j.example.org/a/article/download/12/34"),
    ("HAL", "https://hal.example.fr/hal-01234567/file/paper.pdf", None),
    ("Invenio", "https://z.example.org/records/77/files/paper.pdf?download=1", None),
    ("Invenio", "https://z.example.org/api/records/77/files/paper.pdf/content", None),
    ("OSF", "https://osf.io/ab3cd/download", None),
    ("figshare", "https://ndownloader.figshare.com/files/1234", None),
    ("figshare", "https://uni.example.org/ndownloader/files/1234", None),
    ("Dataverse", "https://v.example.org/api/access/datafile/55", None),
    ("Dataverse", "https://v.example.org/api/access/datafile/:persistentId?persistentId=doi:10.5072/X", None),
    ("Islandora", "https://i.example.org/islandora/object/a:7/datastream/PDF/view", None),
    ("Digital Commons", "https://c.example.org/cgi/viewcontent.cgi?article=1001&context=etd", None),
    ("OPUS", "https://o.example.de/frontdoor/deliver/index/docId/9/file/a.pdf", None),
    ("OPUS", "https://o.example.de/files/9/a.pdf", None),
    ("Hyrax", "https://h.example.edu/downloads/7d278t10k?locale=en", None),
    ("DiVA", "https://uni.example.se/smash/get/diva2:99/FULLTEXT01.pdf", None),
    ("PMC", "https://pmc.ncbi.nlm.nih.gov/articles/PMC1/pdf/a.pdf", None),
    ("arXiv", "https://arxiv.org/pdf/2101.00001", None),
    ("PHAIDRA", "https://p.example.at/o:55/bdef:Content/get", None),
]


@pytest.mark.parametrize(("software", "page", "file"), SURE)
def test_the_file_of_a_page_is_known_before_it_is_read(software: str, page: str, file: str) -> None:
    assert (software, file) in guesses(page, is_sure=True)


@pytest.mark.parametrize(("software", "page", "file"), UNSURE)
def test_the_file_of_a_page_is_tried_if_the_page_names_none(software: str, page: str, file: str) -> None:
    assert (software, file) in guesses(page, is_sure=False)
    assert (software, file) not in guesses(page, is_sure=True)


@pytest.mark.parametrize(("software", "address", "file"), ADDRESSES)
def test_the_address_of_a_file_is_known_by_its_form(software: str, address: str, file: str | None) -> None:
    assert file_of(address) == (software, file or address)


def test_each_row_has_a_case() -> None:
    assert {each.software for each in GUESSES} == {software for software, *_ in (*SURE, *UNSURE)}
    assert {each.software for each in FILES} == {software for software, *_ in ADDRESSES}
    for row in GUESSES:
        assert any(row.page.fullmatch(page) for _, page, _ in (*SURE, *UNSURE)), row
    for form in FILES:
        assert any(form.form.fullmatch(address) for _, address, _ in ADDRESSES), form


@pytest.mark.parametrize(
    "page",
    [
        "https://example.org/",
        "https://arxiv.org/list/math/new",
        "https://example.org/news-2024",
        "https://osf.io/preprints/",
        "https://example.org/article/view/12",
        "https://example.org/hal-5",
    ],
)
def test_other_pages_have_no_sure_guess(page: str) -> None:
    assert guesses(page, is_sure=True) == []


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://example.org/a.pdf", True),
        ("https://example.org/a.PDF?x=1", True),
        ("https://example.org/a.pdf/view", True),
        ("https://example.org/get?id=5&format=pdf", True),
        ("https://example.org/get?type=application/pdf", True),
        ("https://example.org/pdfs", False),
        ("https://example.org/a.pdfx", False),
        ("https://example.org/format=pdfa4", False),
    ],
)
def test_an_address_names_a_pdf(address: str, expected: bool) -> None:
    assert has_pdf_name(address) is expected
