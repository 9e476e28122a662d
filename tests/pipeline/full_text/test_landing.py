"""The links of landing pages."""

from __future__ import annotations

import time

import pytest

from metaharvest.pipeline.full_text.candidates import Expects
from metaharvest.pipeline.full_text.landing import PAGE_BYTES, link_values, read_page

HERE = "https://repo.example.org/item/1234"


def found(body: str, *, head: str = "", url: str = HERE, link: str = "", title: str = "") -> list[str]:
    page = f"<html><head>{head}</head><body>{body}</body></html>"
    return [each.url for each in read_page(page.encode(), url, link=link, charset="utf-8", title=title).candidates]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ('<meta name="citation_pdf_url" content="/a.pdf">', "https://repo.example.org/a.pdf"),
        ('<META NAME="Citation_PDF_URL" CONTENT=" https://x.example/a ">', "https://x.example/a"),
        ('<meta property="citation_pdf_url" content="/get/5">', "https://repo.example.org/get/5"),
        ('<meta name="bepress_citation_pdf_url" content="/cgi/viewcontent.cgi?article=1&context=x">',
         "https://repo.example.org/cgi/viewcontent.cgi?article=1&context=x"),
        ('<meta name="eprints.document_url" content="/1234/1/a.pdf">', "https://repo.example.org/1234/1/a.pdf"),
        ('<meta name="wkhealth_pdf_url" content="/a.pdf">', "https://repo.example.org/a.pdf"),
        ('<meta name="DC.identifier" content="https://repo.example.org/a.pdf">', "https://repo.example.org/a.pdf"),
        ('<base href="/deep/"><meta name="citation_pdf_url" content="a.pdf">', "https://repo.example.org/deep/a.pdf"),
        ('<link rel="alternate" type="application/pdf" href="/a">', "https://repo.example.org/a"),
        ('<link rel="item" type="application/pdf" href="/a">', "https://repo.example.org/a"),
        ('<script type="application/ld+json">{"@type": "Article", "encoding": [{"contentUrl": "/a",'
         '"encodingFormat": "application/pdf"}]}</script>', "https://repo.example.org/a"),
        ('<script type="application/ld+json">{"@graph": [{"associatedMedia": {"contentUrl": "/a.pdf"}}]}</script>',
         "https://repo.example.org/a.pdf"),
        ('<meta http-equiv="refresh" content="0; URL=\'/item/1234/full\'">', "https://repo.example.org/item/1234/full"),
        ('<meta name="citation_xml_url" content="/a.xml">', "https://repo.example.org/a.xml"),
        ('<meta name="citation_pdf_url" content="http://localhost:8080/bitstream/1/2/a.pdf">',
         "https://repo.example.org/bitstream/1/2/a.pdf"),
        ('<meta name="citation_pdf_url" content="/license.pdf"><meta name="citation_pdf_url" content="/a.pdf">',
         "https://repo.example.org/a.pdf"),
    ],
)  # fmt: skip
def test_the_head_of_a_page_names_the_file(head: str, expected: str) -> None:
    assert found("", head=head)[0] == expected


@pytest.mark.parametrize(
    "body",
    [
        '<a href="/bitstream/handle/1/1234/thesis.pdf?sequence=1">thesis.pdf (2Mb)</a>',
        '<a href="/item/1234/view"><img src="p.png" alt="PDF"></a>',
        '<a href="/get/1234">Télécharger</a>',
        '<a href="/get/1234" title="Volltext"></a>',
        '<a href="/get/1234">Texto completo</a>',
        '<a href="/get/1234">下载全文</a>',
        '<a href="/get/1234">Скачать PDF</a>',
        '<a href="/get/1234">ダウンロード</a>',
        '<a class="btn download" href="/get/1234"><span>Get it</span></a>',
        '<a href="/files/paper" type="application/pdf" download>Paper</a>',
        '<button data-href="/get/1234">Download</button>',
        '<iframe src="/pdfjs/web/viewer.html?file=%2Fget%2F1234"></iframe>',
        '<object data="/a.pdf" type="application/pdf"></object>',
        '<a href="/ndownloader/files/99">Download (1.2 MB)</a>',
        '<a href="/article/view/1234/77" class="obj_galley_link pdf">PDF</a>',
        '<a href="https://cdn.example.net/files/paper.pdf">View PDF</a>',
    ],
)
def test_links_to_the_file_are_found(body: str) -> None:
    assert len(found(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        '<a href="/about/author-guidelines.pdf">Author guidelines (PDF)</a>',
        '<a href="/item/1234/cover.pdf">Cover image</a>',
        '<a href="/bitstream/1/1234/license.txt">license.txt</a>',
        '<a href="/item/1234/supp.pdf">Supplementary material</a>',
        '<a href="/item/1234/thumbnail.jpg">Download thumbnail</a>',
        '<footer><a href="/terms.pdf">Terms of use</a></footer>',
        '<nav><a href="/help/full-text">Full text search</a></nav>',
        '<a href="/export/1234.bib">Download</a>',
        '<a href="/item/1234/data.zip">Download data</a>',
        '<a href="/cite/1234">Download citation</a>',
        '<a href="#pdf">PDF</a><a href="javascript:open()">Download PDF</a><a href="mailto:a@b.c">PDF</a>',
        '<div class="related-items"><a href="/item/9/a.pdf">Another paper</a></div>',
        '<a href="https://get.adobe.com/reader">Download a reader</a>',
        '<a href="/item/1234/policy.pdf">Richtlinien (PDF)</a>',
        '<a class="obj_galley_link_supplementary pdf" href="/article/view/1234/78">Questionnaire</a>',
        '<a href="/items/1234/request-a-copy?bitstream=9">thesis.pdf (2 MB)</a>',
        "<p>There is a PDF in the library.</p>",
    ],
)
def test_other_links_are_not_followed(body: str) -> None:
    assert found(body) == []


def test_a_list_of_outputs_names_none_unless_one_has_the_title_or_the_number() -> None:
    titles = [f"Alders by the river in valley {letter} and their fungi" for letter in "ABCDEFG"]
    links = "".join(f'<a href="/pdf/{n}9/x.pdf">{title}</a>' for n, title in enumerate(titles))
    page = links + '<a href="/pdf/77/y.pdf">Growth of willows under permanent shade</a>'
    assert found(page, url="https://repo.example.org/issue/4") == []
    wanted = "Growth of willows under permanent shade"
    assert found(page, url="https://repo.example.org/issue/4", title=wanted) == [
        "https://repo.example.org/pdf/77/y.pdf"
    ]


def test_the_words_of_the_page_tell_a_supplement_from_the_paper() -> None:
    one, two, three = (
        f"https://repo.example.org/bitstreams/6260ead5-90d6-405c-a524-f4a254c0bf1{n}/download" for n in "123"
    )
    link = ", ".join(f'<{each}>; rel="item"; type="application/pdf"' for each in (one, two, three))
    body = f'<a href="{one}">Supplementary tables.pdf (1 MB)</a><a href="{two}">a.pdf</a><a href="{three}">b.pdf</a>'
    assert found(body, link=link) == [two, three, one]
    assert found(body, link=link, head=f'<meta name="citation_pdf_url" content="{three}">') == [three, two, one]
    metas = "".join(f'<meta name="citation_pdf_url" content="{each}">' for each in (one, two))
    assert found(body, head=metas)[:2] == [two, one]
    pictures = "".join(f'<meta name="eprints.document_url" content="/1234/{n}/photo.jpg">' for n in range(6))
    document = '<meta name="eprints.document_url" content="/1234/7/thesis.pdf">'
    assert found("", head=pictures + document)[0] == "https://repo.example.org/1234/7/thesis.pdf"
    galleys = [f"https://repo.example.org/article/download/12/{n}" for n in (3, 4)]
    metas = "".join(f'<meta name="citation_pdf_url" content="{each}">' for each in galleys)
    body = '<a class="obj_galley_link_supplementary pdf" href="/article/view/12/3">Questionnaire</a>'
    assert found(body, head=metas) == [*reversed(galleys)]
    # The word "licence" may also be in the link to the paper: the file comes last, and is not left out.
    one, two = "https://repo.example.org/files/dl/12", "https://repo.example.org/files/dl/13"
    body = f'<a href="{one}">Full text (licence CC BY)</a>'
    json = f'{{"encoding": [{{"contentUrl": "{one}", "encodingFormat": "application/pdf"}}]}}'
    alternate = '<link rel=alternate type=application/pdf href="{}">'
    for head in (alternate.format(one), f"<script type=application/ld+json>{json}</script>"):
        assert found(body, head=head) == [one]
        assert found(body, head=head + alternate.format(two)) == [two, one]
    closed, free = (f"/bitstream/handle/1/1234/{name}.pdf?isAllowed={name[0]}" for name in ("n", "y"))
    links = found(f'<a href="{closed}">a.pdf</a><a href="{free}">b.pdf</a>')
    assert [each.rpartition("=")[2] for each in links] == ["y", "n"]


def test_the_server_comes_first_and_each_address_once() -> None:
    link = (
        '</b.pdf>; rel="item"; type="application/pdf", </a.csv>; rel=item; type=text/csv, <https://cc/by>; rel=license'
    )
    head = '<meta name="citation_pdf_url" content="/a.pdf"><link rel=alternate type=application/pdf href="/b.pdf">'
    page = read_page(f"<head>{head}</head>".encode(), HERE, link=link)
    assert [(each.url[-6:], each.found_by) for each in page.candidates] == [
        ("/b.pdf", "Link: rel=item"),
        ("/a.pdf", "citation_pdf_url"),
    ]
    assert page.licence == "https://cc/by"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", []),
        ("<a>; rel=item", [("a", "item", None)]),
        ('<a>; REL="item cite-as" ; type="text/html", <b>;type=x;rel="author"',
         [("a", "item cite-as", "text/html"), ("b", "author", "x")]),
        ('<a?x=1,2>; rel="item"; title="a; b, c"', [("a?x=1,2", "item", None)]),
        ("nonsense", []),
        ("<a>", [("a", "", None)]),
    ],
)  # fmt: skip
def test_the_header_link_is_read(header: str, expected: list[tuple[str, str, str | None]]) -> None:
    assert [(target, each["rel"], each.get("type")) for target, each in link_values(header)] == expected


@pytest.mark.parametrize(
    ("page", "url", "expected"),
    [
        ("<title>Log in</title><input type=password>", HERE, True),
        ("<title>Alders</title><input type=password>", "https://repo.example.org/password-login", True),
        ("<title>Alders</title><input type=password><a href='/get/1234'>Download</a>", HERE, False),
        ("<title>Alders</title><a href='/x'>Log in</a>", HERE, False),
    ],
)
def test_a_page_may_ask_for_a_login(page: str, url: str, expected: bool) -> None:
    assert read_page(page.encode(), url).asks_login is expected


def test_a_guess_needs_the_mark_of_its_software() -> None:
    url = "https://e.example.org/id/eprint/55"
    assert found("", head='<meta name="eprints.title" content="x">', url=url) == ["https://e.example.org/55/1/"]
    assert found("", url=url) == []


def test_html_text_is_named_as_such() -> None:
    head = '<meta name="citation_fulltext_html_url" content="https://repo.example.org/item/1234">'
    [candidate] = read_page(f"<head>{head}</head>".encode(), HERE).candidates
    assert (candidate.url, candidate.expects) == (HERE, Expects.HTML_TEXT)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\xff\xfe",
        b"<a href='" + b"x" * 100_000,
        b"<div>" * 200_000 + b"<a href='/a.pdf'>PDF</a>",
        b"<a href='/get/1234'>pdf </a>" * 60_000,
        b"<script type='application/ld+json'>" + b"[" * 100_000,
        b"<meta name=refresh content='" + b"0;" * 100_000 + b"'>",
        "<a href='/x'>é".encode("latin-1") * 10_000,
    ],
)
def test_hostile_pages_cost_little(content: bytes) -> None:
    began = time.perf_counter()
    read_page(content[: 2 * PAGE_BYTES], HERE, link="<a>; rel=item; " * 10_000, charset="no-such-charset")
    assert time.perf_counter() - began < 5


def test_the_pages_of_a_frameset_are_read_after_its_files() -> None:
    page = b"<frameset><frame src='/menu'><frame src='/item/1234/text'><frame src='/a.pdf'></frameset>"
    found = [
        (each.url.removeprefix("https://repo.example.org"), each.expects) for each in read_page(page, HERE).candidates
    ]
    assert found == [("/a.pdf", Expects.FILE), ("/menu", Expects.PAGE), ("/item/1234/text", Expects.PAGE)]


def test_another_charset_is_read() -> None:
    page = "<a href='/get/1234'>Скачать</a>".encode("cp1251")
    assert len(read_page(page, HERE, charset="windows-1251").candidates) == 1


def test_the_number_of_a_repository_is_not_that_of_an_output() -> None:
    """All handles of a repository begin with its number: another output's file beside is not the one of this page."""
    beside = '<div class="related"><a href="/bitstream/10300/77/1/other.pdf">Another paper (PDF)</a></div>'
    assert found(beside, url="https://repo.example.org/handle/10300/55") == []
    own = '<div class="related"><a href="/bitstream/10300/55/1/paper.pdf">A paper (PDF)</a></div>'
    assert len(found(own, url="https://repo.example.org/handle/10300/55")) == 1
