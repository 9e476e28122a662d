"""The links of a landing page to its file, the best first. Pure.

The order: what the server says in the header `Link` (Signposting, https://signposting.org/FAIR/), the elements `meta`
that Google Scholar reads, `link` elements, JSON-LD of schema.org, frames that show a PDF, links in the form of a known
software, and links whose words or addresses say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lxml import etree

from metaharvest.model.values import frozen
from metaharvest.pipeline.full_text.anchors import best_anchors, has_other_name, is_other, links_of
from metaharvest.pipeline.full_text.candidates import Candidate, Expects, web_address
from metaharvest.pipeline.full_text.kinds import bare_type
from metaharvest.pipeline.full_text.links import MOST
from metaharvest.pipeline.full_text.patterns import file_of, guesses, has_pdf_name

PAGE_BYTES = 2_000_000
"""The bytes of a page that are read."""

_MOST_ELEMENTS = 50_000
_MOST_JSON = 200_000
_MOST_LINKS = 500
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_PDF_META = (
    "citation_pdf_url",
    "bepress_citation_pdf_url",
    "eprints.document_url",
    "wkhealth_pdf_url",
    "dcterms.hasformat",
    "dc.relation.hasformat",
    "fulltext_pdf",
    "pdf_url",
)
"""The elements `meta` with the address of a file; the later ones are rare."""

_OTHER_META = {"citation_xml_url": Expects.FILE, "citation_fulltext_html_url": Expects.HTML_TEXT}
_IDENTIFIER_META = ("dc.identifier", "dcterms.identifier", "dc.identifier.uri", "dc.identifier.fulltext")
_JSON_KEYS = str.split("encoding associatedMedia distribution workExample encodings hasPart mainEntity @graph")
_LINK_VALUE = re.compile(r"<([^<>]*)>([^<]*)")
_PARAMETER = re.compile(r";\s*([a-z*]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)
_LOGIN_PATH = re.compile(
    r"[/.](?:log-?in|sign-?in|logon|signon|password-login|shibboleth(?:-login)?|shib|saml2?|sso|cas|idp|wayf|"
    r"restricted-resource|authenticate|auth|users/sign_in|openathens|anmelden|connexion)(?:[/?.;#]|$)",
    re.IGNORECASE,
)
_LOGIN_TITLE = re.compile(
    r"\b(?:log ?in|sign ?in|log ?on|anmelden|anmeldung|connexion|iniciar sesi[oó]n|entrar|accedi|authentication|"
    r"access denied|restricted access|login required|inloggen|logga in|logowanie)\b|登录|ログイン|로그인",
    re.IGNORECASE,
)
_MARKS = {
    "DSpace": ("dspace",),
    "EPrints": ("eprints",),
    "OJS": ("open journal systems",),
    "Islandora": ("islandora",),
    "PHAIDRA": ("phaidra",),
}
"""Words in `meta[name=generator]`, or marks in the names of other elements, of software with guesses that need them."""


@frozen
class Page:
    """The links of a page. `software` is known by marks in it, `asks_login`: it asks for a password instead.

    `letters` is the number of letters of its text, for pages that are the text themselves.
    """

    candidates: tuple[Candidate, ...]
    software: str | None = None
    licence: str | None = None
    asks_login: bool = False
    letters: int = 0


def read_page(content: bytes, url: str, *, link: str = "", charset: str | None = None, title: str = "") -> Page:
    """The links of the page at `url` whose header `Link` is `link`; `title` is the title of the output, if known."""
    root = _parsed(content, charset)
    linked = list(link_values(link))
    if root is None:
        return Page(_few(list(_signposted(linked, url)), url), licence=_licence(linked))
    elements = _Elements(root, url)
    linked += elements.links
    software = _software(elements)
    links = links_of(elements.anchors, elements.base)
    others = {known[1] if (known := file_of(each.address)) else each.address for each in links if is_other(each, title)}
    metas = sorted(_metas(elements), key=lambda each: each.url in others)
    files = sorted([*_alternates(linked, elements.base), *_json_ld(elements)], key=lambda each: each.url in others)
    found = [
        *_signposted(linked, elements.base, others, [each.url for each in metas]),
        *metas,
        *files,
        *_frames(elements),
        *best_anchors(links, elements.base, title),
        *_guessed(url, software),
        *_refresh(elements),
        *_framed_pages(elements),
    ]
    candidates = _few(found, url)
    return Page(candidates, software, _licence(linked), _asks_login(elements, url, candidates), elements.letters)


def _licence(linked: Sequence[tuple[str, Mapping[str, str]]]) -> str | None:
    return next((target for target, values in linked if "license" in values.get("rel", "").split()), None)


def link_values(header: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The targets and parameters of a header `Link` (RFC 8288); names of parameters in lower case."""
    for found in islice(_LINK_VALUE.finditer(header), _MOST_LINKS):
        values: dict[str, str] = {}
        for name, quoted, bare in _PARAMETER.findall(f";{found[2].lstrip(' ;')}"):
            values.setdefault(name.lower(), quoted or bare)
        yield found[1].strip(), {**values, "rel": values.get("rel", "").lower()}


def is_login_address(url: str) -> bool:
    """True if the address is one of a login page."""
    return _LOGIN_PATH.search(urlsplit(url).path) is not None


def _parsed(content: bytes, charset: str | None) -> Any:
    """The root of an HTML page; None if there is none."""
    for encoding in (charset, None):
        try:
            parser = etree.HTMLParser(encoding=encoding, no_network=True, recover=True, huge_tree=False)
            return etree.fromstring(content[:PAGE_BYTES], parser)
        except LookupError:
            continue
        except (etree.LxmlError, ValueError):
            return None
    return None


class _Elements:
    """The elements of a page that are of use, each kind in its order."""

    def __init__(self, root: Any, url: str) -> None:
        every = [(each.tag, each) for each in islice(root.iter(etree.Element), _MOST_ELEMENTS)]
        self.base = url
        for tag, each in every:
            if tag == "base" and each.get("href"):
                self.base = web_address(each.get("href"), self.base) or self.base
        self.metas = [_meta(each) for tag, each in every if tag == "meta"]
        self.links = [_link(each) for tag, each in every if tag == "link"]
        self.anchors = [each for tag, each in every if tag in ("a", "area", "button")]
        self.pages = [each.get("src") or "" for tag, each in every if tag == "frame"]
        self.frames = [each.get(_FRAMES[tag]) or "" for tag, each in every if tag in _FRAMES]
        scripts = (each for tag, each in every if tag == "script" and "ld+json" in (each.get("type") or ""))
        self.scripts = [each.text or "" for each in scripts]
        titles = (" ".join((each.text or "").split())[:300] for tag, each in every if tag == "title")
        self.title = next(filter(None, titles), "")
        self.has_password = any(
            tag == "input" and (each.get("type") or "").lower() == "password" for tag, each in every
        )
        texts = (text for tag, each in every if tag not in ("script", "style") for text in (each.text, each.tail))
        self.letters = sum(len(text.strip()) for text in texts if text)


_FRAMES = {"iframe": "src", "frame": "src", "embed": "src", "object": "data"}
"""The elements that show another file, and the attributes with its address."""


def _meta(element: Any) -> tuple[str, str]:
    name = element.get("name") or element.get("property") or element.get("http-equiv") or ""
    return name.strip().lower(), (element.get("content") or "").strip()


def _link(element: Any) -> tuple[str, Mapping[str, str]]:
    values = {key: element.get(key) or "" for key in ("rel", "type", "title")}
    return (element.get("href") or "").strip(), {**values, "rel": values["rel"].lower()}


def _few(found: Sequence[Candidate], url: str) -> tuple[Candidate, ...]:
    """Each address once, with its best place; the page itself is no link. An anchor never wins over what is said."""
    kept: dict[str, Candidate] = {}
    for each in found:
        if each.url != url or each.expects is Expects.HTML_TEXT:
            kept.setdefault(each.url, each)
    return tuple(kept.values())[:MOST]


def _signposted(
    linked: Sequence[tuple[str, Mapping[str, str]]],
    base: str,
    others: Collection[str] = (),
    named: Collection[str] = (),
) -> Iterator[Candidate]:
    """Links with the relation `item`: PDF first, then text whose type is not said, then HTML.

    DSpace 7 gives all its files, supplements too, and their addresses have no names. The page says which ones are
    `others`, and `citation_pdf_url` is among the `named`: https://github.com/DSpace/dspace-angular/pull/1597.
    """
    items = [(target, values) for target, values in linked if "item" in values.get("rel", "").split()]
    order = ("application/pdf", "application/xml", "text/xml", "application/jats+xml", "", "text/plain", *_HTML_TYPES)
    known = [
        (address in others or has_other_name(address), order.index(kind), address not in named, address)
        for target, values in items
        if (kind := bare_type(values.get("type", ""))) in order and (address := web_address(target, base))
    ]
    for _, place, _, address in sorted(known, key=lambda each: each[:3]):
        kind = order[place]
        expects = Expects.HTML_TEXT if kind in _HTML_TYPES else Expects.FILE
        yield Candidate(address, "Link: rel=item", expects, media_type=kind or None)


def _alternates(linked: Sequence[tuple[str, Mapping[str, str]]], base: str) -> Iterator[Candidate]:
    for target, values in linked:
        if "alternate" in values.get("rel", "").split() and bare_type(values.get("type", "")) == "application/pdf":
            address = web_address(target, base)
            if address and not has_other_name(address):
                yield Candidate(address, "link rel=alternate", Expects.FILE, media_type="application/pdf")


def _metas(elements: _Elements) -> Iterator[Candidate]:
    by_name: dict[str, list[str]] = {}
    for name, content in elements.metas:
        by_name.setdefault(name, []).append(content)
    for name in _PDF_META:
        addresses = [address for each in by_name.get(name, ()) if (address := web_address(each, elements.base))]
        # EPrints names all its documents there, pictures too: some pages have more than are tried.
        has_all = name == "eprints.document_url"
        for address in sorted(addresses, key=lambda each: (has_other_name(each), has_all and not has_pdf_name(each))):
            yield Candidate(_unwrapped(address), name, Expects.FILE)
    for name, expects in _OTHER_META.items():
        for each in by_name.get(name, ()):
            if address := web_address(each, elements.base):
                yield Candidate(address, name, expects)
    for name in _IDENTIFIER_META:
        for each in by_name.get(name, ()):
            if each.lower().endswith(".pdf") and (address := web_address(each, elements.base)):
                yield Candidate(address, name, Expects.FILE)


def _json_ld(elements: _Elements) -> Iterator[Candidate]:
    """The files that the JSON-LD of a page names for its main thing."""
    for script in elements.scripts:
        if len(script) > _MOST_JSON:
            continue
        try:
            things = json.loads(script)
        except (ValueError, RecursionError):
            continue
        yield from _files_of(things, elements.base, 0)


def _files_of(thing: Any, base: str, depth: int) -> Iterator[Candidate]:
    if depth > 6:
        return
    if isinstance(thing, list):
        for each in thing[:50]:
            yield from _files_of(each, base, depth + 1)
    if not isinstance(thing, dict):
        return
    kind = str(thing.get("encodingFormat") or thing.get("fileFormat") or "").lower()
    url = thing.get("contentUrl")
    is_text = any(each in kind for each in ("pdf", "xml", "text/plain")) or (not kind and ".pdf" in str(url).lower())
    if isinstance(url, str) and is_text and (address := web_address(url, base)) and not has_other_name(address):
        yield Candidate(address, "JSON-LD contentUrl", Expects.FILE, media_type=kind or None)
    for key in _JSON_KEYS:
        if key in thing:
            yield from _files_of(thing[key], base, depth + 1)


def _frames(elements: _Elements) -> Iterator[Candidate]:
    """Frames that show a PDF, by themselves or in a viewer."""
    for each in elements.frames:
        address = web_address(each, elements.base) if each else None
        if address is None:
            continue
        inside = _unwrapped(address)
        if inside != address or ".pdf" in urlsplit(address).path.lower():
            yield Candidate(inside, "frame", Expects.FILE)


def _unwrapped(address: str) -> str:
    """The file that a viewer in a page, such as pdf.js, shows."""
    parts = urlsplit(address)
    if "viewer" not in parts.path.lower() and "pdfjs" not in parts.path.lower():
        return address
    files = parse_qs(parts.query).get("file", [])
    return (web_address(files[0], address) if files else None) or address


def _refresh(elements: _Elements) -> Iterator[Candidate]:
    """The page that a browser goes on to by itself: `0; url=ADDRESS`."""
    for name, content in elements.metas:
        target = content.partition(";")[2].strip()
        target = target.partition("=")[2].strip() if target.lower().startswith("url") else target
        if name == "refresh" and target and (address := web_address(target.strip("'\""), elements.base)):
            yield Candidate(address, "meta refresh")


def _framed_pages(elements: _Elements) -> Iterator[Candidate]:
    """The pages of a frameset, which has no links of its own."""
    for each in elements.pages:
        if each and (address := web_address(each, elements.base)):
            yield Candidate(address, "frame")


def _guessed(url: str, software: str | None) -> Iterator[Candidate]:
    for name, guess in guesses(url, is_sure=False):
        if name == software:
            yield Candidate(guess, f"pattern of {name}", Expects.FILE)


def _software(elements: _Elements) -> str | None:
    """The software that made the page, by its generator or the names of its elements `meta`."""
    text = " ".join(content.lower() for name, content in elements.metas if name == "generator")
    if any(name.startswith("eprints.") for name, _ in elements.metas):
        text += " eprints"
    for software, marks in _MARKS.items():
        if any(mark in text for mark in marks):
            return software
    return None


def _asks_login(elements: _Elements, url: str, candidates: Sequence[Candidate]) -> bool:
    """True if the page is there to ask for a password. Many landing pages have a small login in their head."""
    if candidates and not is_login_address(url):
        return False
    return elements.has_password and (
        is_login_address(url) or _LOGIN_TITLE.search(elements.title) is not None or not candidates
    )
