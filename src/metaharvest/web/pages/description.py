"""The description of a document for its landing page: the texts of its Dublin Core, its links, its citation. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lxml import etree

from metaharvest.model.values import frozen
from metaharvest.text import clean, without_marks
from metaharvest.transform.crosswalks import dublin_core
from metaharvest.transform.crosswalks.facts import AUTHOR, BOX, FILE, PERIOD, facts

_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
_PERSISTENT = ("https://doi.org/", "https://hdl.handle.net/")
_MOST_CITED = 10
"""Creators that a citation names."""


@frozen
class Description:
    """The texts of a document by the element of Dublin Core, cleaned, and the facts for programs: see `facts`."""

    title: str
    texts: Mapping[str, Sequence[str]]
    authors: Sequence[str] = ()
    files: Sequence[str] = ()
    boxes: Sequence[str] = ()
    periods: Sequence[str] = ()

    def of(self, element: str) -> Sequence[str]:
        """The texts of an element of Dublin Core."""
        return self.texts.get(element, ())

    @property
    def year(self) -> str:
        """The first year in its dates; "" for none."""
        years = (_YEAR.search(date) for date in self.of("date"))
        return next((year[0] for year in years if year), "")

    @property
    def persistent_url(self) -> str:
        """Its DOI or handle, as a URL; "" for none."""
        return next((each for each in self.of("identifier") if each.startswith(_PERSISTENT) and is_url(each)), "")

    @property
    def licence(self) -> str:
        """The URL of its licence; "" for none."""
        return next((each for each in self.of("rights") if is_url(each)), "")

    def citation(self, page_url: str) -> str:
        """Its citation, which ends with its persistent URL, or else with the URL of the page."""
        creators = self.of("creator")
        names = "; ".join(creators[:_MOST_CITED]) + (" et al." if len(creators) > _MOST_CITED else "")
        year = f"({self.year})" if self.year else ""
        head = " ".join(filter(None, (names, year)))
        parts = (head + ":" if head else "", _sentence(self.title), _sentence(next(iter(self.of("publisher")), "")))
        return " ".join(filter(None, (*parts, self.persistent_url or page_url)))


def describe(root: etree._Element | None, document_type: str, title: str) -> Description:
    """The description of a document from its tree; only its title without a tree, or without a crosswalk."""
    texts: dict[str, list[str]] = {}
    pairs = None if root is None else dublin_core(root, document_type)
    for element, text in pairs or ():
        texts.setdefault(element, []).append(clean(without_marks(text)))
    found = () if root is None else facts(root)
    of = {name: [fact for kind, fact in found if kind == name] for name in (AUTHOR, FILE, BOX, PERIOD)}
    title = texts["title"][0] if "title" in texts else clean(without_marks(title))
    return Description(title, texts, of[AUTHOR], of[FILE], of[BOX], of[PERIOD])


def is_url(text: str) -> bool:
    """True for a URL of the web, which a page may link to."""
    return text.startswith(("http://", "https://")) and len(text) <= 2000 and not any(each.isspace() for each in text)


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."
