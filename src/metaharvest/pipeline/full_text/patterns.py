"""Patterns of repository software: rows of a table.

`GUESSES` make the address of a file from the address of a page. `FILES` recognise the address of a file among the
links of a page. The order of rows is of no importance: no address matches two.
"""

from __future__ import annotations

import re

from metaharvest.model.values import frozen

_HAL_ID = r"[a-z][a-z-]{1,20}-0\d{7}(?:v\d{1,2})?"


@frozen
class Guess:
    """The page of a software, and where its file is. `is_sure`: the page need not be read first."""

    software: str
    page: re.Pattern[str]
    file: str
    is_sure: bool = True


@frozen
class FileAddress:
    """The form of the address of a file of a software. `file`: its address, if the link leads to a viewer."""

    software: str
    form: re.Pattern[str]
    file: str = ""


def _guess(software: str, page: str, file: str, *, is_sure: bool = True) -> Guess:
    return Guess(software, re.compile(page, re.IGNORECASE), file, is_sure)


def _file(software: str, form: str, file: str = "") -> FileAddress:
    return FileAddress(software, re.compile(form, re.IGNORECASE), file)


GUESSES = (
    _guess("arXiv", r"https?://(?:[a-z]{2,8}\.)?arxiv\.org/(?:abs|html)/([^?#]+)", r"https://arxiv.org/pdf/\1"),
    _guess("HAL", rf"(https?://[^/?#]+)/({_HAL_ID})/?(?:\?[^#]*)?", r"\1/\2/document"),
    _guess("HAL", rf"(https?://[^/?#]+)/({_HAL_ID})/en/?", r"\1/\2/document"),
    _guess(
        "PMC",
        r"https?://(?:www\.ncbi\.nlm\.nih\.gov/pmc|pmc\.ncbi\.nlm\.nih\.gov)/articles/(PMC\d+)/?",
        r"https://pmc.ncbi.nlm.nih.gov/articles/\1/pdf/",
    ),
    _guess(
        "Europe PMC",
        r"https?://(?:www\.)?europepmc\.org/(?:article/PMC|articles)/((?:PMC)?\d+)/?",
        r"https://europepmc.org/articles/\1?pdf=render",
    ),
    _guess(
        "OSF", r"https?://osf\.io/(?:preprints/(?:[a-z]+/)?)?([a-z0-9]{5}(?:_v\d+)?)/?", r"https://osf.io/\1/download"
    ),
    # Preprints of OPS: https://github.com/pkp/pkp-lib/issues/7234
    _guess(
        "OJS",
        r"(https?://[^?#]+)/(article|preprint)/view(?:file)?/([^/?#]+(?:/version/\d+)?)/([^/?#]+)/?",
        r"\1/\2/download/\3/\4",
    ),
    _guess(
        "OJS",
        r"(https?://[^?#]+)\?(journal=[^&#]+&page=article&op=)view(&path\[\]=[^&#]+&path\[\]=[^&#]+)",
        r"\1?\2download\3",
    ),
    _guess(
        "DiVA",
        r"(https?://[^/?#]+)/smash/record\.jsf\?(?:[^#]*&)?pid=(diva2(?::|%3a)\d+)(?:&[^#]*)?",
        r"\1/smash/get/\2/FULLTEXT01.pdf",
    ),
    _guess(
        "bioRxiv",
        r"https?://(?:www\.)?((?:bio|med)rxiv\.org/content/10\.\d+/[0-9.]+v\d+)(?:\.abstract|\.full)?",
        r"https://www.\1.full.pdf",
    ),
    _guess(
        "SciELO", r"(https?://[^/?#]+/scielo\.php)\?(?:script=sci_arttext&)?(pid=[^&#]+)[^#]*", r"\1?script=sci_pdf&\2"
    ),
    _guess(
        "J-STAGE",
        r"(https?://(?:www\.)?jstage\.jst\.go\.jp/article/[^?#]+)/_article(?:/-char/[a-z]+)?/?",
        r"\1/_pdf",
    ),
    _guess("EPrints", r"(https?://[^/?#]+(?:/[^/?#\d]+)?)/id/eprint/(\d+)/?", r"\1/\2/1/", is_sure=False),
    _guess("EPrints", r"(https?://[^/?#]+)/(\d+)/?", r"\1/\2/1/", is_sure=False),
    _guess("Islandora", r"(https?://[^?#]+/islandora/object/[^/?#]+)/?", r"\1/datastream/OBJ/download", is_sure=False),
    # Papers and theses: https://github.com/Islandora/islandora_scholar/tree/7.x/modules/islandora_google_scholar
    _guess("Islandora", r"(https?://[^?#]+/islandora/object/[^/?#]+)/?", r"\1/datastream/PDF/view", is_sure=False),
    _guess("PHAIDRA", r"(https?://[^/?#]+)/(?:view/)?(o:\d+)/?", r"\1/api/object/\2/download", is_sure=False),
)

FILES = (
    _file("DSpace", r"https?://[^?#]+/bitstream/[^?#]+(?:\?[^#]*)?"),
    _file("DSpace", r"https?://[^?#]+/bitstreams/[0-9a-f-]{36}/(?:download|content)(?:\?[^#]*)?"),
    _file("DSpace", r"https?://[^?#]+/retrieve/[0-9a-f-]+(?:/[^/?#]+)?"),
    _file("EPrints", r"https?://[^?#]+/\d+/\d+/[^/?#]+\.(?:pdf|xml|html?|txt)"),
    _file("OJS", r"https?://[^?#]+/(?:article|preprint)/download/[^/?#]+(?:/version/\d+)?/[^/?#]+(?:/[^/?#]+)?"),
    _file(
        "OJS",
        r"(https?://[^?#]+)/(article|preprint)/view(?:file)?/([^/?#]+(?:/version/\d+)?)/(\d+)",
        r"\1/\2/download/\3/\4",
    ),
    _file("HAL", rf"https?://[^/?#]+/{_HAL_ID}/(?:document|file/[^/?#]+)"),
    _file("Invenio", r"https?://[^?#]+/records?/[^/?#]+/files/[^?#]+(?:\?[^#]*)?"),
    _file("Invenio", r"https?://[^?#]+/api/records/[^/?#]+/files/[^/?#]+/content"),
    _file("OSF", r"https?://osf\.io/(?:download/)?[a-z0-9]{5}(?:/download)?/?"),
    _file("figshare", r"https?://(?:[^/?#]+\.)?figshare\.com/(?:ndownloader/)?files/\d+(?:\?[^#]*)?"),
    _file("figshare", r"https?://[^/?#]+/ndownloader/files/\d+(?:\?[^#]*)?"),
    _file("Dataverse", r"https?://[^?#]+/api/access/datafile/(?::persistentid\?[^#]+|\d+)"),
    _file(
        "Islandora", r"https?://[^?#]+/datastream/(?:obj|pdf|full_?text)[^/?#]*(?:/(?:view|download|citation\.pdf))?"
    ),
    _file("Digital Commons", r"https?://[^?#]+/viewcontent\.cgi\?[^#]+"),
    _file("OPUS", r"https?://[^?#]+/(?:deliver/index/docid/\d+/file|files/\d+)/[^/?#]+(?:\?[^#]*)?"),
    _file("Hyrax", r"https?://[^?#]+/downloads/[0-9a-z-]{5,40}(?:\?[^#]*)?"),
    _file("DiVA", r"https?://[^?#]+/smash/get/[^/?#]+/fulltext\d+(?:\.pdf)?"),
    _file("PMC", r"https?://[^?#]+/articles/pmc\d+/pdf(?:/[^/?#]*)?"),
    _file("arXiv", r"https?://(?:[a-z]{2,8}\.)?arxiv\.org/pdf/[^?#]+"),
    _file("PHAIDRA", r"https?://[^/?#]+/(?:api/object/)?o:\d+/(?:download|bdef:content/(?:get|download))"),
)

# bounded: an address has at most 2,000 characters
_PDF_NAME = re.compile(
    r"\.pdf(?:$|[/?#&;])|[?&/=](?:type|format|mime(?:type)?)=(?:application(?:/|%2f))?pdf\b", re.IGNORECASE
)


def guesses(url: str, *, is_sure: bool) -> list[tuple[str, str]]:
    """Software and address of the files that the page at `url` should have. `is_sure`: only sure ones, or only
    the others."""
    return [
        (each.software, found.expand(each.file))
        for each in GUESSES
        if each.is_sure is is_sure and (found := each.page.fullmatch(url))
    ]


def file_of(url: str) -> tuple[str, str] | None:
    """The software whose file `url` is by its form, and the address of the file; None: by its form it is none."""
    for each in FILES:
        if found := each.form.fullmatch(url):
            return each.software, found.expand(each.file) if each.file else url
    return None


def has_pdf_name(url: str) -> bool:
    """True if the address names a PDF."""
    return _PDF_NAME.search(url) is not None
