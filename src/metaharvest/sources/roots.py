"""The kind of a file, by its root element: a harvest list, an EML document, or another. It is not checked here."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import BinaryIO
from xml.parsers import expat

from metaharvest.model import ListedDocument
from metaharvest.model.values import frozen
from metaharvest.sources.harvest_list.values import MAX_DOCUMENT_ID
from metaharvest.text import one_line

_FIRST = 4096
_HEAD = 262_144
"""Bytes that hold the start tag of the root element, with all that people write before it."""

_DOCID = re.compile(r"([!-.0-~]+\.\d{1,18})\.(\d{1,18})", re.ASCII)
_EML = re.compile(r"eml-\d")
_LIST = re.compile(rb"<(?:[\w.-]+:)?harvestlist\b", re.IGNORECASE)


@frozen
class Root:
    """The root element of a file; `name` is empty if none was found, as in a file that is not XML."""

    name: str = ""
    namespace: str = ""
    package_id: str = ""
    has_list_tag: bool = False

    @property
    def is_list(self) -> bool:
        """True if the file is a harvest list, or is meant to be one."""
        return self.name.casefold() == "harvestlist" if self.name else self.has_list_tag

    @property
    def is_eml(self) -> bool:
        """True if the file is an EML document, or is meant to be one."""
        return self.name == "eml" or (bool(self.name) and _EML.search(self.namespace) is not None)

    @property
    def is_other(self) -> bool:
        """True if the file is XML of another kind, such as a schema or a style sheet. HTML does not count."""
        named = self.name.casefold()
        return bool(named) and named not in ("harvestlist", "eml", "html") and not _EML.search(self.namespace)


def read_root(file: BinaryIO) -> Root:
    """The root element of `file`, which is read from its position, and no further than needed."""
    head = file.read(_FIRST)
    root = root_of(head)
    if not root.name and len(head) == _FIRST:
        head += file.read(_HEAD - _FIRST)
        root = root_of(head)
    return root


def root_of(head: bytes) -> Root:
    """The root element of the XML that begins with `head`."""
    found: list[Root] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if not found:
            namespace, _, local = name.rpartition(" ")
            package_id = " ".join(attributes.get("packageId", "").split())
            found.append(Root(local, namespace, package_id))
            parser.StartElementHandler = None

    # A list that Notepad has saved as UTF-16 is a list, although its first line still says UTF-8.
    is_utf_16 = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    parser = expat.ParserCreate("utf-16" if is_utf_16 else None, " ")
    parser.StartElementHandler = start
    if hasattr(parser, "SetReparseDeferralEnabled"):
        parser.SetReparseDeferralEnabled(False)
    with suppress(expat.ExpatError, LookupError, ValueError):
        parser.Parse(head, False)
    return found[0] if found else Root(has_list_tag=_LIST.search(head) is not None)


def as_listed(root: Root, url: str, name: str) -> ListedDocument:
    """The document at `url` as if a list named it: by its packageId, or by `name` if the packageId is not a docid."""
    docid = _DOCID.fullmatch(root.package_id)
    if docid and len(docid[1]) <= MAX_DOCUMENT_ID:
        return ListedDocument(docid[1], int(docid[2]), root.namespace, url)
    return ListedDocument(one_line(root.package_id or name, MAX_DOCUMENT_ID) or url, 0, root.namespace, url)
