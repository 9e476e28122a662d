"""The elements and attributes of a harvest list, and the mistakes about others.

Pure functions of names; parser.py reads the list, and knows the place of a mistake.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import NamedTuple

from metaharvest.model.namespaces import XSI
from metaharvest.text import one_line

LIST_NAMESPACE = "eml://ecoinformatics.org/harvestList"

DOCID_PARTS = ("scope", "identifier", "revision")
"""The elements of a docid, in their order."""

ENTRY_ELEMENTS = ("docid", *DOCID_PARTS, "documentType", "documentURL")
"""The elements of an entry, in the order of their start tags."""

VALUES = frozenset(ENTRY_ELEMENTS) - {"docid"}
"""The elements that contain text, and no other elements."""

SKIPPED = ""
"""Stands for an element that is not known, and whose content is ignored."""

CHILDREN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((SKIPPED, *ENTRY_ELEMENTS), ()),
    "harvestList": ("document",),
    "document": ("docid", "documentType", "documentURL"),
    "docid": DOCID_PARTS,
}
"""The elements that each element may contain."""

HARMLESS_ATTRIBUTES = frozenset(
    [f"{XSI} {name}" for name in ("schemaLocation", "type", "nil")]
    + [f"http://www.w3.org/XML/1998/namespace {name}" for name in ("lang", "space", "base", "id")]
)
"""Attributes of XML itself and of XML Schema instances, with their namespaces; any element may have them."""

_SPELLING = {name.lower(): name for name in ("document", *ENTRY_ELEMENTS)}
_OTHER_ROOTS = {
    "eml": "an EML document",
    "urlset": "a sitemap",
    "sitemapindex": "a sitemap index",
    "oai-pmh": "an answer of an OAI-PMH repository",
    "rss": "a news feed",
    "feed": "a news feed",
    "html": "an HTML page",
    "br": "a message of a program, such as an error of PHP",
}


class Mistake(NamedTuple):
    """A mistake without its place: the rule, a sentence, and a remedy."""

    rule: str
    message: str
    remedy: str


_ROOT_REMEDY = (
    "Check the list URL that is registered for your site, and what your server answers at it. A harvest list begins "
    f'with <hrv:harvestList xmlns:hrv="{LIST_NAMESPACE}">.'
)
_REPOSITORY_REMEDY = (
    "To have your records harvested from this repository, ask the harvester's administrator to register it as an "
    f"OAI-PMH repository, by its base URL. {_ROOT_REMEDY}"
)
HTML_DOCTYPE = Mistake("list.html-page", "This is an HTML page, not a harvest list.", _ROOT_REMEDY)
INNER_NAMESPACE = Mistake(
    "list.namespace",
    "The elements inside `harvestList` are in the list's namespace; they must be in none.",
    f'Write <hrv:harvestList xmlns:hrv="{LIST_NAMESPACE}"> with the prefix on `harvestList` alone, or write '
    '<document xmlns=""> for every entry.',
)


def other_root(local: str) -> Mistake | None:
    """The kind of a document with the root element `local` that is no harvest list; None for any spelling of one."""
    if local.lower() == "harvestlist":
        return None
    what = _OTHER_ROOTS.get(local.lower())
    rule = "list.html-page" if local.lower() == "html" else "list.root"
    message = f"This is {what}, not a harvest list." if what else "This is not a harvest list."
    root = f"Its root element is `{one_line(local, 60)}`; it should be `harvestList`."
    return Mistake(rule, f"{message} {root}", _REPOSITORY_REMEDY if local.lower() == "oai-pmh" else _ROOT_REMEDY)


def root_mistakes(uri: str, local: str) -> Iterator[Mistake]:
    """The mistakes in the spelling `local` and the namespace `uri` of a harvest list's root element."""
    if local != "harvestList":
        message = f"The root element is spelled `{local}`; it must be `harvestList`."
        yield Mistake("list.root", message, "Upper and lower case matter in XML: write `harvestList`.")
    if uri != LIST_NAMESPACE:
        is_in = f"in the namespace '{one_line(uri, 100)}'" if uri else "in no namespace"
        message = f"The root element is {is_in}; it must be in '{LIST_NAMESPACE}'."
        yield Mistake("list.namespace", message, f'Begin the list with <hrv:harvestList xmlns:hrv="{LIST_NAMESPACE}">.')


def meant_child(uri: str, local: str, parent: str, root_uri: str | None) -> str | None:
    """The child of `parent` that the name must mean in another spelling or namespace; None if there is none."""
    is_ours = not uri or uri in (LIST_NAMESPACE, root_uri)
    meant = _SPELLING.get(local.lower()) if is_ours else None
    return meant if meant in CHILDREN[parent] else None


def misspelled(local: str, meant: str) -> Mistake:
    """An element name with wrong upper or lower case."""
    message = f"The element `{one_line(local, 60)}` must be spelled `{meant}`."
    return Mistake("list.element", message, f"Upper and lower case matter in XML: write `{meant}`.")


def unexpected_child(local: str, parent: str) -> Mistake:
    """An element that cannot be in `parent`; suggests a similar name."""
    name, children = one_line(local, 60), CHILDREN[parent]
    if not children:
        message = f"`{parent}` contains an element `{name}`; it may contain text only."
        return Mistake("list.element", message, "Take it out.")
    near = [] if name in CHILDREN else difflib.get_close_matches(name, children, 1)
    expected = ", ".join(f"`{child}`" for child in children)
    message = f"The element `{name}` cannot stand in `{parent}`; what belongs there is {expected}."
    remedy = "Take it out, or put it at its right place; check whether an end tag is missing before it."
    return Mistake("list.element", message, f"If `{near[0]}` is meant, write so." if near else remedy)


def unexpected_attribute(element: str, attribute: str) -> Mistake:
    """An attribute that is not harmless; both names with their namespaces, separated by a blank."""
    local, name = (one_line(each.rpartition(" ")[2], 60) for each in (element, attribute))
    message = f"The element `{local}` has an attribute `{name}`."
    return Mistake("list.attribute", message, "Take it out: the elements of a list have no attributes.")
