"""A made web of repositories: records, landing pages and files, each with the address of its file or without one.

Each kind of page is written after the pages of a software, with invented names and titles. Kinds in `UNSEEN` belong to
software that the tables of the program do not name. The pages of a kind differ: elements of the head are left out, the
language changes, other files stand beside the right one.
"""

# ruff: noqa: E501

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape

from metaharvest.model.outputs import Identifier, Output, Text

_SUBJECTS = (
    "Alder",
    "Willow",
    "Moss",
    "River",
    "Lichen",
    "Heron",
    "Peat",
    "Fen",
    "Beetle",
    "Spruce",
    "Trout",
    "Fungus",
)
_PLACES = ("the Upper Valley", "northern lakes", "coastal dunes", "old orchards", "wet meadows", "the Grey Hills")
_DOWNLOAD = {
    "en": "Download", "de": "Herunterladen", "fr": "Télécharger", "es": "Descargar", "pt": "Baixar", "it": "Scarica",
    "pl": "Pobierz", "ru": "Скачать", "ja": "ダウンロード", "zh": "下载", "tr": "İndir", "sv": "Ladda ner",
}  # fmt: skip
_FULL_TEXT = {
    "en": "Full text", "de": "Volltext", "fr": "Texte intégral", "es": "Texto completo", "pt": "Texto completo",
    "it": "Testo completo", "pl": "Pełny tekst", "ru": "Полный текст", "ja": "本文", "zh": "全文", "tr": "Tam metin",
    "sv": "Fulltext",
}  # fmt: skip

HTML, PDF = "text/html; charset=utf-8", "application/pdf"


@dataclass(frozen=True, slots=True)
class Body:
    """An answer; `link` is its header Link."""

    content: bytes
    media_type: str = HTML
    link: str = ""


@dataclass
class Made:
    """A record with its part of the web. `right` is the address of its file; None: it has none."""

    kind: str
    number: int
    rng: random.Random
    title: str = ""
    language: str = "en"
    output: Output = field(default_factory=lambda: Output("oai_dc"))
    web: dict[str, Body] = field(default_factory=dict)
    right: str | None = None

    @property
    def host(self) -> str:
        return f"https://{self.kind.split()[0].lower()}{self.number % 5}.example.org"

    @property
    def key(self) -> int:
        return 1000 + 37 * self.number

    def often(self, share: float = 0.5) -> bool:
        return self.rng.random() < share

    def file(self, url: str) -> str:
        """The right file."""
        self.right = url
        self.web[url] = Body(b"%PDF-1.5\n" + self.title.encode(), PDF)
        return url

    def other(self, url: str) -> str:
        """Another file, which is wrong."""
        self.web[url] = Body(b"%PDF-1.5\nanother thing", PDF)
        return url

    def page(self, url: str, body: str, head: str = "", link: str = "") -> None:
        """A page with the furniture of a site around its body."""
        furniture = (
            f'<nav class="navbar"><a href="/">Home</a><a href="/browse">Browse</a><a href="/help.pdf">Help</a>'
            f'<a href="/login">{"Login" if self.language == "en" else "Anmelden"}</a></nav>'
        )
        foot = '<footer><a href="/terms.pdf">Terms of use</a> <a href="/privacy">Privacy</a></footer>'
        self.other(f"{self.host}/help.pdf")
        self.other(f"{self.host}/terms.pdf")
        text = (
            f"<html><head><title>{escape(self.title)}</title>{head}</head><body>{furniture}{body}{foot}</body></html>"
        )
        self.web[url] = Body(text.encode(), HTML, link)

    def record(self, *urls: str) -> None:
        self.output = Output(
            "oai_dc",
            titles=(Text(self.title, "dc:title"),),
            identifiers=tuple(Identifier("url", each, "dc:identifier") for each in urls),
        )

    @property
    def download(self) -> str:
        return _DOWNLOAD[self.language]

    @property
    def full_text(self) -> str:
        return _FULL_TEXT[self.language]

    def meta(self, url: str, share: float = 0.6) -> str:
        """citation_* elements; those with the file are missing in some pages."""
        file = f'<meta name="citation_pdf_url" content="{escape(url)}">' if self.often(share) else ""
        return f'<meta name="citation_title" content="{escape(self.title)}"><meta name="DC.type" content="Text">{file}'

    def related(self, path: str) -> str:
        """Files of other outputs, in a box beside."""
        links = ""
        for n in range(3):
            url = self.other(self.host + path.format(self.key + 11 + n))
            links += f'<li><a href="{escape(url)}">Other paper {n} (PDF)</a></li>'
        return f'<div class="related-items"><h3>Related</h3><ul>{links}</ul></div>'


def dspace5(made: Made) -> None:
    page, folder = f"{made.host}/handle/10200/{made.key}", f"/bitstream/handle/10200/{made.key}"
    file = made.file(f"{made.host}{folder}/thesis_{made.key}.pdf?sequence=1&isAllowed=y")
    rows = [
        f'<div class="file-link"><a href="{escape(file)}">{made.rng.choice(("View/", "Visualizar/"))}Open</a></div>'
    ]
    if made.often():
        other = made.other(f"{made.host}{folder}/license.pdf?sequence=2&isAllowed=y")
        rows.insert(0, f'<div class="file-link"><a href="{escape(other)}">license.pdf (4Kb)</a></div>')
    if made.often():
        rows.append(f'<a href="{folder}/thumb.jpg"><img src="{folder}/thumb.jpg" alt="Thumbnail"></a>')
    made.page(page, "".join(rows), made.meta(file) + '<meta name="Generator" content="DSpace 5.6">')
    made.record(page)


def dspace6_jsp(made: Made) -> None:
    page = f"{made.host}/jspui/handle/1/{made.key}"
    file = made.file(f"{made.host}/jspui/bitstream/1/{made.key}/1/{made.title.split()[0]}{made.key}.pdf")
    cells = f'<td><a target="_blank" href="{file}">{made.title.split()[0]}{made.key}.pdf</a></td><td>2 MB</td><td>Adobe PDF</td>'
    made.page(
        page,
        f'<table>{cells}<td><a href="{file}">{made.rng.choice(("View/Open", "Ver/Abrir"))}</a></td></table>',
        made.meta(file, 0.3),
    )
    made.record(page)


def dspace7(made: Made) -> None:
    key = f"{made.key:08x}-90d6-405c-a524-f4a254c0bf10"
    page = f"{made.host}/items/{key}"
    file = made.file(f"{made.host}/bitstreams/{made.key + 5:08x}-1111-405c-a524-{made.key:012x}/download")
    bad = file.replace(made.host, "http://localhost:4000") if made.often(0.3) else file
    body = f'<ds-file-download-link><a href="{file}"><span>paper.pdf</span> <span>(1.2 MB)</span></a></ds-file-download-link>'
    link = f'<{file}>; rel="item"; type="application/pdf"' if made.often(0.3) else ""
    made.page(page, body, made.meta(bad, 0.5) + '<meta name="Generator" content="DSpace 7.6">', link)
    made.record(page)


def eprints(made: Made) -> None:
    page = f"{made.host}/id/eprint/{made.key}/"
    file = made.file(f"{made.host}/{'id/eprint/' if made.often() else ''}{made.key}/1/Paper%20{made.key}.pdf")
    named = f'<meta name="eprints.document_url" content="{file}">' if made.often() else ""
    body = (
        f'<a class="ep_document_link" href="{file}"><img alt="[thumbnail of Paper.pdf]" src="/style/pdf.png"></a>'
        f'<span>PDF</span><br><a href="{file}" class="ep_document_link">{made.download} (742kB)</a> | '
        f'<a href="/{made.key}/1.haslightboxThumbnailVersion/x.jpg">Preview</a>'
    )
    if made.often(0.4):
        cover = made.other(f"{made.host}/{made.key}/2/cover.pdf")
        body = f'<a href="{cover}" class="ep_document_link">Cover letter</a>' + body
    made.page(page, body, f'<meta name="eprints.title" content="x">{named}')
    made.record(page)


def eprints_mark(made: Made) -> None:
    """A page without a link that can be recognised, but with the mark of its software."""
    page = f"{made.host}/{made.key}/"
    made.file(f"{made.host}/{made.key}/1/")
    made.page(page, "<p>Documents are listed by a script.</p>", '<meta name="eprints.title" content="x">')
    made.record(page)


def ojs3(made: Made) -> None:
    base = f"{made.host}/index.php/alder/article"
    page, galley = f"{base}/view/{made.key}", made.key + 900
    file = made.file(f"{base}/download/{made.key}/{galley}")
    made.web[f"{base}/view/{made.key}/{galley}"] = Body(f'<iframe src="{file}"></iframe>'.encode())
    supplement = f"{base}/view/{made.key}/{galley + 1}"
    made.other(f"{base}/download/{made.key}/{galley + 1}")
    body = f'<a class="obj_galley_link pdf" href="{base}/view/{made.key}/{galley}">PDF ({made.language})</a>'
    if made.often(0.4):
        body += f'<a class="obj_galley_link_supplementary" href="{supplement}">Supplementary file</a>'
    body += f'<a href="{base}/../about/submissions">Author guidelines (PDF)</a>' + made.related(
        "/index.php/alder/article/download/{}/1"
    )
    made.page(page, body, made.meta(file, 0.5) + '<meta name="generator" content="Open Journal Systems 3.3">')
    made.record(page)


def ojs_galley(made: Made) -> None:
    base = f"{made.host}/index.php/alder/article"
    made.file(f"{base}/download/{made.key}/{made.key + 1}")
    made.page(f"{base}/view/{made.key}/{made.key + 1}", "<p>A viewer</p>")
    made.record(f"{base}/view/{made.key}/{made.key + 1}")


def hal(made: Made) -> None:
    page = f"{made.host}/{made.rng.choice(('hal', 'tel', 'inria', 'halshs'))}-0{1000000 + made.key}"
    made.file(f"{page}/document")
    made.page(page, f'<a href="{page}/document">{made.full_text}</a>')
    made.record(page)


def invenio_rdm(made: Made) -> None:
    page = f"{made.host}/records/{made.key}"
    file = made.file(f"{page}/files/paper%20{made.key}.pdf?download=1")
    preview = f"{page}/preview/paper.pdf?include_deleted=0"
    made.web[preview] = Body(
        f'<iframe src="/static/pdfjs/web/viewer.html?file={page}/files/paper%2520{made.key}.pdf"></iframe>'.encode()
    )
    body = f'<table><tr><td><a href="{file}">paper {made.key}.pdf</a></td><td><a role="button" href="{file}">{made.download}</a></td></tr></table>'
    if made.often(0.4):
        body += f'<a href="{page}/files/data.csv?download=1">data.csv</a>'
    link = f'<{file}> ; rel="item" ; type="application/pdf"' if made.often() else ""
    made.page(page, body, made.meta(file, 0.4), link)
    made.record(page)


def figshare(made: Made) -> None:
    page = f"{made.host}/articles/journal_contribution/A_paper/{made.key}"
    file = made.file(f"{made.host}/ndownloader/files/{made.key + 70000}")
    made.page(
        page,
        f'<a href="{file}" class="normal-link">{made.download} (1.4 MB)</a><a href="/articles/x/{made.key}/export.bib">Cite</a>',
    )
    made.record(page)


def dataverse(made: Made) -> None:
    page = f"{made.host}/dataset.xhtml?persistentId=doi:10.5072/ALDER/{made.key}"
    file = made.file(f"{made.host}/api/access/datafile/{made.key}")
    script = f'<script type="application/ld+json">{{"@type": "Dataset", "distribution": [{{"@type": "DataDownload", "encodingFormat": "application/pdf", "contentUrl": "{file}"}}]}}</script>'
    body = f'<a href="/file.xhtml?fileId={made.key}">report.pdf</a> <a href="{file}">{made.download}</a>'
    made.page(page, body, script if made.often(0.7) else "")
    made.record(page)


def islandora7(made: Made) -> None:
    page = f"{made.host}/islandora/object/alder:{made.key}"
    file = made.file(f"{page}/datastream/OBJ/download")
    body = (
        f'<a href="/islandora/object/alder%3A{made.key}/datastream/OBJ/download">{made.download} pdf</a>'
        if made.often(0.6)
        else ""
    )
    made.web[f"{made.host}/islandora/object/alder%3A{made.key}/datastream/OBJ/download"] = made.web[file]
    made.page(page, body, '<meta name="Generator" content="Drupal 7 with Islandora">')
    made.record(page)


def digital_commons(made: Made) -> None:
    page = f"{made.host}/etd/{made.key}"
    file = made.file(f"{made.host}/cgi/viewcontent.cgi?article={made.key + 1}&context=etd")
    cover = made.other(f"{made.host}/context/etd/article/{made.key}/type/native/0/viewcontent")
    head = f'<meta name="bepress_citation_pdf_url" content="{escape(file)}">' if made.often() else ""
    body = f'<a class="btn" href="{escape(file)}" title="PDF (2 MB) opens in new window">{made.download}</a>'
    made.page(page, f'{body}<a href="{cover}">Additional Files: release form</a>', head)
    made.record(page)


def opus(made: Made) -> None:
    page = f"{made.host}/frontdoor/index/index/docId/{made.key}"
    folder = f"files/{made.key}" if made.often() else f"frontdoor/deliver/index/docId/{made.key}/file"
    file = made.file(f"{made.host}/{folder}/diss_{made.key}.pdf")
    body = f'<ul><li><a href="{file}" class="application_pdf">diss_{made.key}.pdf (deu) (2MB)</a></li></ul>'
    made.page(page, body + '<a href="/help/lizenz.pdf">Deutsche Lizenz</a>', made.meta(file, 0.4))
    made.other(f"{made.host}/help/lizenz.pdf")
    made.record(page)


def hyrax(made: Made) -> None:
    page = f"{made.host}/concern/theses/x{made.key}abcd"
    file = made.file(f"{made.host}/downloads/y{made.key}abcd?locale=en")
    body = f'<a id="file_download" data-label="y" href="{file}">{made.download}</a><a href="{page}.ttl">ttl</a>'
    made.page(page, body, made.meta(file, 0.6))
    made.record(page)


def diva(made: Made) -> None:
    page = f"{made.host}/smash/record.jsf?pid=diva2:{made.key}"
    made.file(f"{made.host}/smash/get/diva2:{made.key}/FULLTEXT01.pdf")
    made.page(page, f'<a href="/smash/get/diva2:{made.key}/FULLTEXT01.pdf">fulltext</a>')
    made.record(page)


def phaidra(made: Made) -> None:
    page = f"{made.host}/view/o:{made.key}"
    file = made.file(f"{made.host}/api/object/o:{made.key}/download")
    made.page(
        page,
        f'<a href="{file}">{made.download}</a>' if made.often() else "",
        '<meta name="generator" content="PHAIDRA">',
    )
    made.record(page)


# -- software that the tables do not name


def pure(made: Made) -> None:
    page = f"{made.host}/en/publications/{'-'.join(made.title.lower().split()[:5])}"
    file = made.file(f"{made.host}/files/{made.key}/{made.title.split()[0]}_2024.pdf")
    body = f'<div class="documents"><a class="link document-link" href="{file}">{made.title.split()[0]}_2024.pdf</a> Final published version, 1.5 MB</div>'
    made.page(page, body + made.related("/files/{}/other.pdf"), made.meta(file, 0.5))
    made.record(page)


def janeway(made: Made) -> None:
    page = f"{made.host}/article/id/{made.key}/"
    file = made.file(f"{made.host}/article/{made.key}/galley/{made.key + 3}/download/")
    body = f'<a href="{file}"><i class="fa fa-file-pdf-o"></i> {made.download} PDF</a><a href="/article/{made.key}/galley/9/view/">View XML</a>'
    made.page(page, body, made.meta(file, 0.4))
    made.record(page)


def wordpress(made: Made) -> None:
    page = f"{made.host}/{'-'.join(made.title.lower().split())}/"
    file = made.file(f"{made.host}/wp-content/uploads/2024/05/{made.title.split()[0]}-{made.key}.pdf")
    guide = made.other(f"{made.host}/wp-content/uploads/2020/01/author-guidelines.pdf")
    body = f'<article><p>{made.title}</p><a href="{file}">{made.full_text} (PDF)</a></article><aside><a href="{guide}">Author guidelines</a></aside>'
    made.page(page, body)
    made.record(page)


def drupal(made: Made) -> None:
    page = f"{made.host}/publications/{made.key}"
    file = made.file(f"{made.host}/sites/default/files/2024-05/report_{made.key}.pdf")
    body = (
        f'<span class="file file--mime-application-pdf"><a href="{file}" type="application/pdf">{made.title}</a></span>'
    )
    body += '<div class="view-latest"><a href="/sites/default/files/annual-report.pdf">Annual report</a></div>'
    made.other(f"{made.host}/sites/default/files/annual-report.pdf")
    made.page(page, body)
    made.record(page)


def mycore(made: Made) -> None:
    page = f"{made.host}/receive/alder_mods_{made.key:08d}"
    file = made.file(f"{made.host}/servlets/MCRFileNodeServlet/alder_derivate_{made.key + 4:08d}/dissertation.pdf")
    made.page(
        page,
        f'<div class="file_box"><a class="btn btn-primary" href="{file}">dissertation.pdf</a></div>',
        made.meta(file, 0.3),
    )
    made.record(page)


def weko(made: Made) -> None:
    page = f"{made.host}/?page_id=13&block_id=8&item_id={made.key}&active_action=repository_view_main_item_detail"
    file = made.file(f"{made.host}/?action=repository_uri&item_id={made.key}&file_id=22&file_no=1")
    made.page(page, f'<a href="{escape(file)}">{made.title.split()[0]}.pdf (1.1 MB)</a>', made.meta(file, 0.5))
    made.record(page)


def static_page(made: Made) -> None:
    page = f"{made.host}/papers/{made.key}.html"
    file = made.file(f"{made.host}/papers/{made.key}.pdf")
    made.page(
        page,
        f'<h1>{made.title}</h1><p><a href="{made.key}.pdf">[PDF]</a> <a href="{made.key}.bib">BibTeX</a> <a href="slides/{made.key}.pdf">Slides</a></p>',
    )
    made.other(f"{made.host}/papers/slides/{made.key}.pdf")
    assert file
    made.record(page)


def viewer(made: Made) -> None:
    page = f"{made.host}/item/{made.key}"
    file = made.file(f"{made.host}/storage/{made.key}/content.pdf")
    between = f"{made.host}/item/{made.key}/reader"
    made.page(between, f'<iframe src="/lib/pdfjs/web/viewer.html?file=%2Fstorage%2F{made.key}%2Fcontent.pdf"></iframe>')
    made.page(page, f'<a href="{between}">{made.full_text}</a>')
    assert file
    made.record(page)


def worktribe(made: Made) -> None:
    page = f"{made.host}/output/{made.key}"
    file = made.file(f"{made.host}/output/{made.key}/1/{made.title.split()[0]}")
    made.page(
        page,
        f'<div class="files"><a href="{file}" target="_blank"><img alt="pdf" src="/i/pdf.png">Article (732 Kb) PDF</a></div><a href="/output/{made.key}/cite">Cite</a>',
    )
    made.record(page)


def omeka(made: Made) -> None:
    page = f"{made.host}/items/show/{made.key}"
    file = made.file(f"{made.host}/files/original/{made.key:032x}.pdf")
    body = f'<div id="itemfiles"><a class="download-file" href="{file}">{made.title.split()[0]}.pdf</a></div>'
    made.page(page, body)
    made.record(page)


def json_ld(made: Made) -> None:
    page = f"{made.host}/documents/{'-'.join(made.title.lower().split()[:3])}"
    file = made.file(f"{made.host}/dl/{made.key:x}")
    made.page(
        page,
        "<p>A page made by a script</p>",
        f'<script type="application/ld+json">{{"@context": "https://schema.org", "@graph": [{{"@type": "ScholarlyArticle", "name": "x", "encoding": {{"@type": "MediaObject", "contentUrl": "/dl/{made.key:x}", "encodingFormat": "application/pdf"}}}}]}}</script>',
    )
    assert file
    made.record(page)


# -- pages without a file


def metadata_only(made: Made) -> None:
    page = f"{made.host}/handle/10300/{made.key}"
    body = '<p>There is no full text.</p><a href="/export/x.bib">BibTeX</a><a href="https://doi.org/10.5072/x">Publisher</a>'
    made.page(page, body + made.related("/bitstream/10300/{}/1/other.pdf"), made.meta("", 0))
    made.record(page)


def request_a_copy(made: Made) -> None:
    page = f"{made.host}/handle/10400/{made.key}"
    file = f"{made.host}/bitstream/handle/10400/{made.key}/paper.pdf?sequence=1&isAllowed=n"
    made.web[file] = Body(
        b"<html><title>Sign in</title><form action=/password-login><input type=password></form></html>"
    )
    made.page(page, f'<a href="{escape(file)}">View/Open</a> (embargo)', made.meta(file, 0.5))
    made.record(page)


def journal_issue(made: Made) -> None:
    page = f"{made.host}/index.php/alder/issue/view/{made.key}"
    links = "".join(
        f'<li>Another paper about trees {n} <a href="{made.other(f"{made.host}/index.php/alder/article/download/{9000 + n}/{n}")}">PDF</a></li>'
        for n in range(9)
    )
    made.page(page, f"<ul>{links}</ul>")
    made.record(page)


def paywall(made: Made) -> None:
    page = f"{made.host}/doi/10.5072/{made.key}"
    file = f"{made.host}/doi/pdf/10.5072/{made.key}"
    made.web[file] = Body(
        f"<html><title>{made.title}</title><p>Get access</p><a href=/subscribe>Subscribe</a></html>".encode()
    )
    sample = made.other(f"{made.host}/pb-assets/media-kit.pdf")
    made.page(page, f'<a href="{file}">PDF</a><footer><a href="{sample}">Media kit</a></footer>')
    made.record(page)


def data_only(made: Made) -> None:
    page = f"{made.host}/dataset/{made.key}"
    archive = f"{made.host}/dataset/{made.key}/all.zip"
    made.web[archive] = Body(b"PK\x03\x04....", "application/zip")
    manual = made.other(f"{made.host}/docs/user-guide.pdf")
    made.page(page, f'<a href="{archive}">{made.download} all</a><a href="{manual}">User guide (PDF)</a>')
    made.record(page)


def home_page(made: Made) -> None:
    page = f"{made.host}/"
    poster = made.other(f"{made.host}/flyer.pdf")
    made.page(page, f'<p>Welcome to our repository</p><a href="{poster}">Flyer</a><a href="/policy">Policy (PDF)</a>')
    made.record(page)


SEEN: tuple[Callable[[Made], None], ...] = (
    dspace5, dspace6_jsp, dspace7, eprints, eprints_mark, ojs3, ojs_galley, hal, invenio_rdm, figshare, dataverse,
    islandora7, digital_commons, opus, hyrax, diva, phaidra,
)  # fmt: skip
UNSEEN: tuple[Callable[[Made], None], ...] = (
    pure, janeway, wordpress, drupal, mycore, weko, static_page, viewer, worktribe, omeka, json_ld,
)  # fmt: skip
WITHOUT: tuple[Callable[[Made], None], ...] = (
    metadata_only, request_a_copy, journal_issue, paywall, data_only, home_page,
)  # fmt: skip


def made_records(each: int = 10) -> Iterator[Made]:
    """`each` records of every kind, always the same."""
    for kind in (*SEEN, *UNSEEN, *WITHOUT):
        for number in range(each):
            rng = random.Random(f"{kind.__name__} {number}")
            made = Made(kind.__name__, number, rng, language=rng.choice(tuple(_DOWNLOAD)))
            made.title = (
                f"{rng.choice(_SUBJECTS)} growth and {rng.choice(_SUBJECTS).lower()} decline in {rng.choice(_PLACES)}"
            )
            kind(made)
            yield made
