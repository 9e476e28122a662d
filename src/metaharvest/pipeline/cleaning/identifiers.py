"""Identifiers: DOIs in any spelling and in free text, other schemes, and check digits. Pure.

DOIs follow https://www.doi.org/the-identifier/resources/handbook/2_numbering: any printable character may occur. In
free text, a DOI ends where its sentence goes on: at white space, at an unbalanced bracket, before punctuation.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from urllib.parse import unquote

LONGEST_DOI = 255
"""Characters of a DOI: the width of the column `doi`."""

_MOST_DOIS = 10_000
"""DOIs that are read in one text."""

_DASHES = dict.fromkeys((*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63, 0xFF0D), "-")
_INVISIBLE = dict.fromkeys((0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x202A, 0x202C, 0x2060, 0xFEFF))
_PLAIN = str.maketrans({**_DASHES, **_INVISIBLE, 0xA0: " ", 0x2044: "/", 0xFF0F: "/", 0x2215: "/"})
_SOFT_HYPHEN = re.compile(r"\u00ad\s{0,3}")

_DOI = re.compile(
    r"(?<![\d.\-])10\.[ ]?\d{4,9}(?:\.\d{1,9}){0,4}\s{0,2}(?:/|%2[Ff])[ \n]?"
    r"(?:[!#$%&'()*+\-.:=?@\[\]_~A-Za-z0-9]|/(?![Dd][Oo][Ii]:)|[,;](?!\s{0,2}(?:[Dd][Oo][Ii]:|https?:|10\.\d{4}))|<(?=[\w.:/-]{1,40}>\d)|(?<=[\w.:-])>(?=\d)|\\_)+"
)
"""The beginning of a DOI, and what may belong to it. `<...>` belongs to it in a SICI alone, where a digit follows."""

_BREAK = re.compile(r"[ \t]{0,3}\r?\n[ \t]{0,8}((?:[A-Za-z0-9]|\((?=[\w-]{1,20}\)))[\w.()/:;\-]{0,80})")
"""A line break with the first word of the next line."""

_NUMBER_IN_LIST = re.compile(r"\(?\d{1,3}[.)\]]?|(?:19|20)\d\d[a-z]?[.)]?")
_AFTER = re.compile(
    r"[?#](?=\w)|&(?=\w{1,30}=)|;jsessionid=|\.?(?:pmid|pmcid|arxiv|issn|isbn):|https?://|[.,;]?doi:", re.IGNORECASE
)
"""What begins behind a DOI without a blank: parameters of a URL, another identifier."""

_GLUED = ("PubMed", "CrossRef", "Crossref", "CAS", "Google", "Medline", "Scopus", "ISI", "View", "Article")
"""The words of links that a page shows behind a DOI."""

_PAGES = tuple(
    str.split("""
    /full /fulltext /full.pdf /full/html /html /pdf /pdfft /epdf /abstract /abs /meta /summary /references /citations
    /download /asset /tables /figures /epub /xml .full.pdf .full .abstract .pdf .html .xml .epub
""")
)
"""The ends of addresses of pages about a DOI."""

_MORE_AFTER = (
    re.compile(r"^(10\.(?:1101|64898)/[\d.]{6,30})v\d{1,2}$"),
    re.compile(r"^(10\.1093/[a-z]{2,20}/[a-z]{3}[a-z0-9]{2,9})/\d{5,9}$"),
)
"""DOIs with what the addresses of a publisher have behind them: versions of preprints, numbers of articles."""

_OPENED = {")": "(", "]": "[", ">": "<"}
_TRAILING = ".,;:!?'*\\-~_&+=/"

_SHORT = re.compile(
    r"[\s<(\[\"']{0,4}(?:doi\b\s{0,2}[:=]?|info:doi/|urn:doi:|\(doi:?\))?[\s<(\[]{0,4}(?=10\.)", re.IGNORECASE
)
_RESOLVER = re.compile(
    r"\s{0,3}(?:doi\s{0,2}[:=]?\s{0,2})?<?"
    r"(?:(?:https?:/{1,3})?(?:(?:dx\.|www\.)?doi\.org(?::\d{2,4})?|doi\.acm\.org|hdl\.handle\.net)/{1,3}){1,2}"
    r"(?:doi:|urn:doi:)?\s?(?=10\.)",
    re.IGNORECASE,
)
"""The address of a DOI, also behind a label, or with the resolver twice.

Seen at https://github.com/bireme/db-processing/issues/347 and https://github.com/datadryad/dryad-repo/pull/1424.
"""
_PUBLISHER_PAGE = re.compile(
    r"https?://[^\s/]{1,200}/[^\s?#]{0,200}?"  # bounded: an address has a short path
    r"(?:doi(?:/[a-z]{2,12}){0,2}|articles?|chapter|book|content(?:/[a-z]{2,12})?|protocol)/(?=10\.\d{4})",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"https?://[^\s?]{1,500}\?[^\s#]{0,300}?(?:doi|id|uri)=(?:doi:)?(?=10\.\d{4})", re.IGNORECASE)


def find_dois(text: str) -> Sequence[str]:
    """The DOIs in a text, each once, bare and in lower case, in the order of the text.

    A DOI that goes on in the next line is put together.
    """
    if "10." not in text and "10 ." not in text:
        return ()
    prepared = _prepared(text)
    found = (_trimmed(_with_next_line(each, prepared)) for each in islice(_DOI.finditer(prepared), _MOST_DOIS))
    return list(dict.fromkeys(each for each in found if each))


def as_doi(value: str) -> str | None:
    """The DOI, bare and in lower case, if the value is one: bare, behind `doi:`, or in the address of its page."""
    if "10." not in value or len(value) > 2_000:
        return None
    prepared = _prepared(value).strip()
    for prefix in (_RESOLVER, _SHORT, _PUBLISHER_PAGE, _PARAMETER):
        if (start := prefix.match(prepared)) and (found := _DOI.match(prepared, start.end())):
            rest = prepared[found.end() :].strip(" .,;:)>]\"'")
            if not rest or prefix in (_PUBLISHER_PAGE, _PARAMETER):
                return _trimmed(found[0])
            joined = _with_next_line(found, prepared)
            return _trimmed(joined) if len(joined) > len(found[0]) else None
    return None


def _prepared(text: str) -> str:
    """The text with plain dashes and slashes, without what is not visible, with references of HTML resolved."""
    if not text.isascii():
        text = _SOFT_HYPHEN.sub("", text).translate(_PLAIN)
    if "&" in text and ";" in text:
        text = html.unescape(text) if "&#" not in text else text.replace("&lt;", "<").replace("&gt;", ">")
        text = text.replace("\xa0", " ").replace("&amp;", "&")
    return text


def _with_next_line(found: re.Match[str], text: str) -> str:
    """The DOI with the word of the next line that belongs to it.

    A DOI goes on if the line ends with a sign that no DOI ends with, and the next word is not the number of a
    reference or a year.
    """
    doi = found[0]
    if doi[-1:] not in "./-_(" or (following := _BREAK.match(text, found.end())) is None:
        return doi
    word = following[1]
    if doi[-1] in ".(" and (not any(map(str.isdigit, word)) or _NUMBER_IN_LIST.fullmatch(word)):
        return doi
    return doi + word


def _trimmed(raw: str) -> str | None:
    """A DOI without what does not belong to it; None if nothing is left behind the slash."""
    doi = re.sub(r"\s", "", raw).replace("\\_", "_")
    if "%" in doi:
        doi = unquote(doi)
    prefix, _, suffix = doi.partition("/")
    suffix = suffix.lstrip("/")
    if cut := _AFTER.search(suffix):
        suffix = suffix[: cut.start()]
    suffix = _balanced(suffix)
    for word in _GLUED:
        if suffix.endswith(word) and suffix[-len(word) - 1 : -len(word)].isdigit():
            suffix = _balanced(suffix.removesuffix(word))
    doi = f"{prefix}/{_without_page(suffix.lower())}"
    for pattern in _MORE_AFTER:
        doi = pattern.sub(r"\1", doi)
    return doi if len(doi) <= LONGEST_DOI and any(map(str.isalnum, doi.partition("/")[2])) else None


def _without_page(suffix: str) -> str:
    """The suffix of a DOI without the ends of addresses."""
    while end := next((page for page in _PAGES if suffix.endswith(page) and len(suffix) > len(page)), ""):
        suffix = _balanced(suffix.removesuffix(end))
    return suffix


def _balanced(text: str) -> str:
    """The text without punctuation at its end, and without a bracket there that it does not open or close."""
    open_brackets = {opening: text.count(opening) for opening in _OPENED.values()}
    closed = {closing: text.count(closing) for closing in _OPENED}
    end = len(text)
    while end:
        last = text[end - 1]
        if last in _OPENED and closed[last] > open_brackets[_OPENED[last]]:
            closed[last] -= 1
        elif last in open_brackets:
            open_brackets[last] -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    # A bracket that is closed where it was not opened ends the sentence around the DOI.
    depth = dict.fromkeys(open_brackets, 0)
    for place in range(end):
        if text[place] in depth:
            depth[text[place]] += 1
        elif text[place] in _OPENED:
            depth[_OPENED[text[place]]] -= 1
            if depth[_OPENED[text[place]]] < 0:
                return text[:place].rstrip(_TRAILING)
    return text[:end]


# -- people and organisations

_ORCID = re.compile(r"(?<![\dA-Za-z])(\d{4})[- ]?(\d{4})[- ]?(\d{4})[- ]?(\d{3}[\dXx])(?![\dA-Za-z])")
_ROR = re.compile(r"(?:ror\.org/|ror:\s?|^)(0[a-hj-km-np-tv-z0-9]{6}\d{2})(?![\w])", re.IGNORECASE)
_BASE32 = "0123456789abcdefghjkmnpqrstvwxyz"


def orcid_in(text: str) -> str | None:
    """The first ORCID iD in a text, with hyphens and the right check digit (ISO 7064, MOD 11-2)."""
    if not any(map(str.isdigit, text)):
        return None
    if not text.isascii():
        text = text.translate(_PLAIN)
    for found in islice(_ORCID.finditer(text), 20):
        orcid = "-".join(found.groups()).upper()
        if _is_orcid(orcid):
            return orcid
    return None


def _is_orcid(orcid: str) -> bool:
    total = 0
    digits = orcid.replace("-", "")
    for digit in digits[:-1]:
        total = (total + int(digit)) * 2
    check = (12 - total % 11) % 11
    # ORCID has a block of the numbers of ISNI: 0000-0001-5000-0007 to 0000-0003-5000-0001, and 0009-...
    return digits.startswith("000") and digits[-1] == ("X" if check == 10 else str(check))


def ror_in(text: str) -> str | None:
    """The first ROR identifier in a text, such as `02twcfp32`, with the right check digits (ISO 7064, MOD 97-10)."""
    for found in islice(_ROR.finditer(text.strip()), 20):
        ror = found[1].lower()
        number = 0
        for character in ror[:7]:
            number = number * 32 + _BASE32.index(character)
        if 98 - number * 100 % 97 == int(ror[7:]):
            return ror
    return None


# -- other schemes

_HANDLE = re.compile(
    r"(?:(?:https?://)?(?:[\w.-]{0,60}\.)?hdl\.handle\.net/|hdl:\s?|info:hdl[:/]|handle:\s?|https?://[^\s/]{1,200}/"
    r"(?:[\w-]{1,30}/){0,3}handle/)(?P<handle>[\w.]{2,40}/[^\s?#]{1,200})",
    re.IGNORECASE,
)
_BARE_HANDLE = re.compile(r"\d{3,6}(?:\.\d{1,6}){0,3}/[\w.-]{1,60}|20\.500\.\d{3,6}/[\w./-]{1,60}")
_ARXIV = re.compile(
    r"(?:arxiv:\s?|https?://(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/|oai:arxiv\.org:|info:arxiv/)"
    r"(\d{4}\.\d{4,5}|[a-z-]{2,12}(?:\.[a-z]{2})?/\d{7})(?:v\d{1,2})?(?:\.pdf)?(?:\s\[[\w.-]{2,20}\])?|"
    r"((?:astro-ph|cond-mat|gr-qc|hep-(?:ex|lat|ph|th)|math-ph|math|nlin|nucl-(?:ex|th)|physics|quant-ph|q-bio|cs|q-alg|"
    r"alg-geom)(?:\.[a-z]{2})?/\d{7})(?:v\d{1,2})?",
    re.IGNORECASE,
)
"""A number of arXiv; those up to 2007 have the name of an archive, and need no label."""

_PMID = re.compile(
    r"(?:pmid:?\s?|info:pmid/|pubmed:\s?|https?://(?:www\.)?ncbi\.nlm\.nih\.gov/pubmed/|"
    r"https?://pubmed\.ncbi\.nlm\.nih\.gov/|https?://(?:www\.)?europepmc\.org/(?:abstract|articles?)/med/)(\d{1,8})/?",
    re.IGNORECASE,
)
_PMCID = re.compile(
    r"(?:pmcid:?\s?|https?://(?:www\.)?ncbi\.nlm\.nih\.gov/pmc/articles/|https?://pmc\.ncbi\.nlm\.nih\.gov/articles/|"
    r"https?://(?:www\.)?europepmc\.org/(?:abstract/pmc/|articles?/(?:pmc/)?))?(PMC\d{3,9})/?",
    re.IGNORECASE,
)
_ISSN = re.compile(r"(?:(?:e-?|p-?)?issn(?:-l)?\b[:\s]{0,3}|urn:issn:)?(\d{4})[-\s]?(\d{3}[\dXx])", re.IGNORECASE)
_ISBN = re.compile(r"(?:isbn(?:-1[03])?\b[:\s]{0,3}|urn:isbn:)?((?:97[89][-\s]?)?\d[\d\s-]{7,14}[\dXx])", re.IGNORECASE)
_OF_BOOK = re.compile(
    r"\s{0,3}\((?:pbk|hbk|hardback|paperback|print|online|ebook|pdf|electronic|e-?book|html)[^)]{0,30}\)", re.I
)
_URN = re.compile(r"urn:[a-z0-9][a-z0-9-]{1,31}:\S{1,500}", re.IGNORECASE)
_OAI = re.compile(r"oai:[\w.-]{1,200}:\S{1,500}", re.IGNORECASE)
_URL = re.compile(r"(?:https?|ftp)://[^\s<>\"]{3,4000}", re.IGNORECASE)
_BARE_URL = re.compile(r"www\.[\w-]{1,63}\.[^\s<>\"]{2,2000}", re.IGNORECASE)


def identified(value: str, scheme: str = "") -> tuple[str, str]:
    """The scheme and the identifier in its plain form. `scheme` is what the document says of it, in any spelling.

    A value whose check digits are wrong, or that has another form than its scheme, is an identifier of its own: other.
    """
    value = value.strip()
    said = scheme.lower().replace("-", "").replace(" ", "").removeprefix("dcterms:")
    if doi := as_doi(value):
        return "doi", doi
    for name, pattern in (("arxiv", _ARXIV), ("pmid", _PMID), ("pmcid", _PMCID)):
        if found := pattern.fullmatch(value):
            plain = next(filter(None, found.groups()))
            return name, plain.upper() if name == "pmcid" else plain
    if found := _HANDLE.fullmatch(value):
        return "handle", found["handle"].rstrip("/")
    if said in ("handle", "hdl") and _BARE_HANDLE.fullmatch(value):
        return "handle", value
    if said in ("arxiv", "pmid", "pmcid") and (found := _BARE[said].fullmatch(value)):
        return said, found[1] if said != "pmcid" else f"PMC{found[1]}"
    if known := _book_or_journal(value, said):
        return known
    if _URN.fullmatch(value):
        return "urn", value
    if _OAI.fullmatch(value):
        return "oai", value
    if _URL.fullmatch(value):
        return "url", value
    if _BARE_URL.fullmatch(value):
        return "url", f"http://{value}"
    return "other", value


_BARE = {
    "arxiv": re.compile(r"(\d{4}\.\d{4,5}|[a-z-]{2,12}(?:\.[a-z]{2})?/\d{7})(?:v\d{1,2})?", re.IGNORECASE),
    "pmid": re.compile(r"(\d{1,8})"),
    "pmcid": re.compile(r"(?:PMC)?(\d{3,9})", re.IGNORECASE),
}


def _book_or_journal(value: str, said: str) -> tuple[str, str] | None:
    lower = value[:12].lower()
    plain = _OF_BOOK.sub("", value)
    if "issn" in lower or said in ("issn", "eissn", "pissn", "lissn", "issnl") or _PLAIN_ISSN.fullmatch(value):
        found = _ISSN.fullmatch(plain)
        if found and is_issn(issn := f"{found[1]}-{found[2].upper()}"):
            return "issn", issn
    is_book = (
        "isbn" in lower or said.startswith("isbn") or plain.startswith(("978", "979")) or _ISBN_10.fullmatch(value)
    )
    if is_book and (found := _ISBN.fullmatch(plain.translate(_PLAIN))):
        isbn = re.sub(r"[\s-]", "", found[1]).upper()
        if is_isbn(isbn):
            return "isbn", isbn if len(isbn) == 13 else isbn_13(isbn)
    return None


_ISBN_10 = re.compile(r"(?=.{13}$)\d{1,5}-\d{1,7}-\d{1,7}-[\dXx]")
"""An ISBN of ten characters with its three hyphens. A number without hyphens may be of another kind."""

_PLAIN_ISSN = re.compile(r"\d{4}-\d{3}[\dXx]")


def is_issn(issn: str) -> bool:
    """True for an ISSN such as `1234-5679` with the right check digit (ISO 3297)."""
    digits = issn.replace("-", "")
    total = sum(_digit(each) * weight for each, weight in zip(digits, range(8, 0, -1), strict=True))
    return total % 11 == 0


def is_isbn(isbn: str) -> bool:
    """True for an ISBN of 10 or 13 characters, without hyphens, with the right check digit (ISO 2108)."""
    if len(isbn) == 10:
        return sum(_digit(each) * weight for each, weight in zip(isbn, range(10, 0, -1), strict=True)) % 11 == 0
    if len(isbn) != 13 or not isbn.isdigit():
        return False
    return sum(int(each) * (3 if place % 2 else 1) for place, each in enumerate(isbn)) % 10 == 0


def isbn_13(isbn: str) -> str:
    """The ISBN of 13 digits of one of 10."""
    digits = f"978{isbn[:9]}"
    return digits + str(-sum(int(each) * (3 if place % 2 else 1) for place, each in enumerate(digits)) % 10)


def _digit(character: str) -> int:
    return 10 if character in "Xx" else int(character)


_LABEL = re.compile(
    r"(?:(?:also\s)?available\s(?:online\s)?(?:at|from)|disponible en|verfügbar unter|url|uri|link|full\s?text)\s?:?\s?"
    r"(?=https?://)",
    re.IGNORECASE,
)
"""Words before the address of the output."""

_NEXT_ADDRESS = re.compile(r"(?:\s?[;|,]\s?|\s)(?=https?://)")


def addresses_in(value: str) -> Sequence[str]:
    """The parts of a value: one, unless it is a list of addresses. A label in front of an address is left out.

    `Available at: https://example.org/1.`, `https://example.org/1.pdf;https://example.org/2.pdf`.
    """
    if label := _LABEL.match(value):
        value = value[label.end() :].rstrip(" .")
    return _NEXT_ADDRESS.split(value) if value.startswith("http") else (value,)


def identifiers_in(value: str, scheme: str = "") -> Iterator[tuple[str, str]]:
    """The identifiers in a value: its parts, and the DOI in the address of a page, or in a citation that has one."""
    for each in addresses_in(value):
        yield from _identifiers_of(each, scheme)


def _identifiers_of(value: str, scheme: str) -> Iterator[tuple[str, str]]:
    name, plain = identified(value, scheme)
    yield name, plain
    is_page = (_PUBLISHER_PAGE.match(value) or _PARAMETER.match(value)) and not _RESOLVER.match(value)
    is_landing_page = (name == "doi" and is_page) or (name == "handle" and "hdl.handle.net" not in value.lower())
    if is_landing_page and _URL.fullmatch(value.strip()):
        yield "url", value.strip()
    elif name == "other" and len(value) > 40 and len(dois := find_dois(value)) == 1:
        yield "doi", dois[0]
