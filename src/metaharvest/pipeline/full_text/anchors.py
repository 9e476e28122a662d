"""Which links of a page lead to its file: each gets points for its words, its address and its place in the page."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import unquote, urlsplit

from metaharvest.model.values import frozen
from metaharvest.pipeline.full_text.candidates import Candidate, Expects, host_of, is_same_place, web_address
from metaharvest.pipeline.full_text.kinds import bare_type
from metaharvest.pipeline.full_text.patterns import file_of, has_pdf_name
from metaharvest.pipeline.full_text.words import DOWNLOAD, FULL_TEXT, OTHER, words_of

_NOT_ALLOWED = "isallowed=n"
"""DSpace 6 writes it behind the address of a file that the visitor may not read: XMLUI's item-view.xsl."""

ENOUGH = 3
"""The points from which a link is followed."""

_MOST_LINKS = 3_000
_MOST_ALIKE = 4
_LONGEST_TEXT = 300
_NUMBER = re.compile(r"\d{3,}|[0-9a-f]{8}-[0-9a-f]{4}")
_ASIDE_TAGS = frozenset(("nav", "footer", "aside"))
_ASIDE = re.compile(
    r"sidebar|footer|breadcrumb|menu|navbar|navigation|announcement|banner|ad-|advert|social|share|site-header",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"related|recommend|similar|references|bibliograph|cited|citing|most-?read|popular|latest|see-also|more-from",
    re.IGNORECASE,
)
_CLASSES = ("pdf", "download", "fulltext")
"""Words in the class of a link that count as its text."""

_SUPPLEMENT = "galley_link_supplementary"
"""In the class of a link of OJS to a supplement: templates/frontend/objects/galley_link.tpl of github.com/pkp/ojs."""

_REQUESTS = re.compile(r"/(?:request-a-copy|request-item|request_doc|requestcopy)\b", re.IGNORECASE)
"""A form in place of a file that is not open: https://github.com/DSpace/dspace-angular, EPrints' cgi/request_doc."""

_NO_FILES = (".zip", ".gz", ".tar", ".csv", ".xls", ".xlsx", ".jpg", ".jpeg", ".png", ".gif", ".tif", ".tiff", ".mp3",
             ".mp4", ".avi", ".mov", ".svg", ".bib", ".ris", ".enw", ".css", ".js", ".rss", ".ppt", ".pptx", ".exe",
             ".apk", ".json", ".rdf")  # fmt: skip


@frozen
class Link:
    """A link of a page: address, words, type. `is_aside`: it is in a menu, or the like.

    `is_elsewhere`: it is among links to other outputs. `is_download`: it has the attribute `download`.
    `is_supplement`: its software says so.
    """

    address: str
    text: str
    media_type: str = ""
    is_aside: bool = False
    is_elsewhere: bool = False
    is_download: bool = False
    is_supplement: bool = False


def links_of(anchors: Sequence[Any], base: str) -> Sequence[Link]:
    """The links that these elements of the page at `base` are, each address once."""
    links: dict[str, Link] = {}
    for each in anchors[:_MOST_LINKS]:
        link = _link(each, base)
        if link is not None:
            before = links.get(link.address)
            links[link.address] = link if before is None else _joined(before, link)
    return list(links.values())


def is_other(link: Link, title: str = "") -> bool:
    """True if the words of a link say that it leads to a supplement, a cover or the like."""
    has_words = OTHER.are_in(words_of(link.text), link.text.lower())
    return link.is_supplement or (has_words and not _has_title(link, title))


def has_other_name(address: str, known: Collection[str] = ()) -> bool:
    """True if the name of the file says that it is a supplement, a cover or the like; `known` words say nothing."""
    name = name_of(address)
    return OTHER.are_in([each for each in words_of(name) if each not in known], name)


def name_of(address: str) -> str:
    """The name of the file at an address, in lower case."""
    return unquote(urlsplit(address).path.rstrip("/").rpartition("/")[2]).lower()


def best_anchors(links: Sequence[Link], base: str, title: str = "") -> list[Candidate]:
    """The links that lead to the file of the page at `base`, the best first."""
    scored = [(points(each, base, title), each) for each in links if each.address != base]
    scored = sorted((each for each in scored if each[0] >= ENOUGH), key=lambda each: -each[0])
    found: list[Candidate] = []
    for _, group in groupby(scored, key=lambda each: each[0]):
        alike = [link for _, link in group]
        if not _is_clear(alike, base):
            break
        found += map(_candidate, alike)
    return found


def points(link: Link, base: str, title: str = "") -> int:
    """How much says that this link of the page at `base` leads to its file."""
    address = link.address
    if link.is_supplement or urlsplit(address).path.lower().endswith(_NO_FILES):
        return -10
    total = 4 if file_of(address) or has_pdf_name(address) else 0
    total += 2 if link.media_type == "application/pdf" else 0
    total += 1 if link.is_download else 0
    words, text = words_of(link.text), link.text.lower()
    total += 3 if FULL_TEXT.are_in(words, text) else 2 if DOWNLOAD.are_in(words, text) else 0
    total += 2 if is_of_page(address, base) else 0
    if _has_title(link, title):
        total += 3 if total else 0
    else:
        total -= 4 if OTHER.are_in(words, text) else 0
        total -= 4 if has_other_name(address) else 0
    total -= 4 if _NOT_ALLOWED in urlsplit(address).query.lower() else 0
    total -= 3 if link.is_aside or link.is_elsewhere else 0
    total -= 4 if link.is_elsewhere and not is_of_page(address, base) else 0
    total -= 0 if is_same_place(host_of(address), host_of(base)) else 1
    return total


def is_of_page(address: str, base: str) -> bool:
    """True if the two addresses have an identifier in common: a handle, a number, the path itself."""
    here, there = urlsplit(base), urlsplit(address)
    if len(here.path.rstrip("/")) > 1 and there.path.startswith(here.path.rstrip("/") + "/"):
        return True
    last = here.path.lower().rstrip("/").rpartition("/")[2]
    if any(map(str.isdigit, last)):
        # What is before it is of no use: all handles of a repository begin with the same number.
        if last in frozenset(there.path.lower().split("/")):
            return True
        ours = _NUMBER.findall(last)
    else:
        ours = _NUMBER.findall(here.path.lower())[-1:] or _NUMBER.findall(here.query.lower())
    return not set(ours).isdisjoint(_NUMBER.findall(f"{there.path}?{there.query}".lower()))


def _is_clear(alike: Sequence[Link], base: str) -> bool:
    """False if many links are alike: the page is a list of outputs, and which one is meant is not known."""
    return len(alike) <= _MOST_ALIKE or any(is_of_page(each.address, base) for each in alike)


def _has_title(link: Link, title: str) -> bool:
    """True if the text of the link, or the name of its file, has most words of the title."""
    wanted = {word for word in words_of(title) if len(word) > 3}
    if len(wanted) < 3:
        return False
    there = {*words_of(link.text), *words_of(name_of(link.address))}
    return len(wanted & there) >= 0.6 * len(wanted)


def _candidate(link: Link) -> Candidate:
    known = file_of(link.address)
    if known:
        return Candidate(known[1], f"link of {known[0]}", Expects.FILE, media_type=link.media_type or None)
    expects = Expects.FILE if has_pdf_name(link.address) or link.media_type == "application/pdf" else Expects.PAGE
    return Candidate(link.address, "link", expects, media_type=link.media_type or None)


def _link(element: Any, base: str) -> Link | None:
    target = element.get("href") or element.get("data-href") or element.get("data-url") or ""
    target = target.strip()
    if not target or target.startswith(("#", "mailto:", "javascript:", "data:")):
        return None
    address = web_address(target, base)
    if address is None or _REQUESTS.search(urlsplit(address).path):
        return None
    attributes = [element.get(name) or "" for name in ("title", "aria-label")]
    attributes += [word for word in words_of(element.get("class") or "") if word in _CLASSES]
    images = [each.get("alt") or "" for each in element.iter("img")]
    text = " ".join(" ".join((*element.itertext(), *attributes, *images)).split())[:_LONGEST_TEXT]
    kind = bare_type(element.get("type") or "")
    is_aside, is_elsewhere = _surroundings(element)
    is_supplement = _SUPPLEMENT in (element.get("class") or "")
    return Link(address, text, kind, is_aside, is_elsewhere, element.get("download") is not None, is_supplement)


def _joined(one: Link, other: Link) -> Link:
    """Two links to one address: an icon and a text, for example."""
    return Link(
        one.address,
        f"{one.text} {other.text}"[:_LONGEST_TEXT],
        one.media_type or other.media_type,
        one.is_aside and other.is_aside,
        one.is_elsewhere and other.is_elsewhere,
        one.is_download or other.is_download,
        one.is_supplement or other.is_supplement,
    )


def _surroundings(element: Any) -> tuple[bool, bool]:
    """True if the element is in a menu or the like; and if it is among links to other outputs."""
    is_aside = is_elsewhere = False
    for each in element.iterancestors():
        if each.tag in ("body", "html"):
            break
        named = f"{each.get('class') or ''} {each.get('id') or ''}"[:300]
        is_aside = is_aside or each.tag in _ASIDE_TAGS or _ASIDE.search(named) is not None
        is_elsewhere = is_elsewhere or _ELSEWHERE.search(named) is not None
    return is_aside, is_elsewhere
