"""Reads the XML file of a site's filters, or of its normalising: every mistake in it is reported with its line."""

from __future__ import annotations

import errno
import re
from collections.abc import Collection
from pathlib import Path
from typing import cast

from lxml import etree

from metaharvest.config.files import read_file
from metaharvest.errors import TransformError
from metaharvest.model import Finding, limited
from metaharvest.model.actions import Remedy, todo
from metaharvest.text import one_line
from metaharvest.transform.expressions import BadPath, BadPattern, Namespaces, require_path, require_pattern

_MAX_BYTES = 1_000_000
_DECLARATION = re.compile(r"\s*xmlns:([^\W\d][\w.-]*)\s*=\s*(?:'([^'<]+)'|\"([^\"<]+)\")(?=\s|\Z)")
_OTHER_FILES = {
    "normalize": Remedy(
        "This is a file for normalising: try it with {}, and give it to a site with {}.",
        todo("normalizing.try"),
        todo("sites.set_normalizing"),
    ),
    "filters": Remedy(
        "This is a file of filters: try it with {}, and give it to a site with {}.",
        todo("filters.try"),
        todo("sites.set_filters"),
    ),
}
"""The remedy for a file of the other kind, by its root element."""

_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


class RuleFile:
    """A file that is being read; `findings` are its mistakes so far. Raises TransformError as it is opened."""

    def __init__(self, path: Path, root: str) -> None:
        self.name = path.name
        self.findings: list[Finding] = []
        self._path = path
        self.root = self._parsed(root)
        self.namespaces = self._namespaces()

    def _parsed(self, name: str) -> etree._Element:
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
        )
        try:
            content = read_file(self._path, _MAX_BYTES)
        except OSError as error:
            if error.errno == errno.EFBIG:
                remedy = f"Name a file that begins with <{name}>."
                raise self._failed(f"has more than {_MAX_BYTES:,} bytes", remedy) from None
            raise self._failed(
                f"cannot be read: {error.strerror}", "Name a file that is there, and may be read."
            ) from None
        try:
            root = etree.fromstring(content, parser)
        except (etree.XMLSyntaxError, LookupError, ValueError) as error:
            line = getattr(error, "lineno", None)
            why = one_line(str(getattr(error, "msg", None) or error)).rstrip(".")
            raise self._failed(f"is not well-formed XML: {why}", "Correct it in an XML editor.", line) from None
        if root.getroottree().docinfo.internalDTD is not None:
            raise self._failed("has a DOCTYPE", "Remove the DOCTYPE; nothing in the file needs one.")
        if _local(root) != name:
            remedy = _OTHER_FILES.get(_local(root), f"Let its root element be {name}.")
            raise self._failed(f"begins with <{_local(root)}>, not with <{name}>", remedy)
        return root

    def _namespaces(self) -> dict[str, str]:
        """The prefixes of `selectionNamespaces`, and those that the file itself declares on its root element."""
        found = {prefix: uri for prefix, uri in self.root.nsmap.items() if prefix}
        for element in self.elements(self.root, "selectionNamespaces"):
            self.attributes(element)
            text = element.text or ""
            place = 0
            while match := _DECLARATION.match(text, place):
                found[match[1]] = match[2] or match[3]
                place = match.end()
            if rest := text[place:].strip():
                self.wrong(
                    element,
                    f"selectionNamespaces has '{one_line(rest, 80)}', which declares no prefix",
                    "Write each as xmlns:dc='http://purl.org/dc/elements/1.1/', with white space between them.",
                )
        return found

    def frozen_namespaces(self) -> Namespaces:
        """The prefixes as a value."""
        return tuple(sorted(self.namespaces.items()))

    def elements(self, parent: etree._Element, name: str) -> list[etree._Element]:
        """The children of this name."""
        return [child for child in parent if isinstance(child.tag, str) and _local(child) == name]

    def only(self, parent: etree._Element, *names: str) -> None:
        """Children of other names are wrong, and so is text between them."""
        takes = ", ".join(names) if names else "no elements"
        for child in parent:
            if isinstance(child.tag, str) and _local(child) not in names:
                self.wrong(child, f"<{_local(child)}> is not known in <{_local(parent)}>", f"It takes {takes}.")
        if names and (text := "".join([parent.text or "", *(child.tail or "" for child in parent)]).strip()):
            self.wrong(parent, f"<{_local(parent)}> has the text '{one_line(text, 80)}'", f"It takes {takes}.")

    def attributes(self, element: etree._Element, *names: str) -> None:
        """Attributes of other names are wrong."""
        takes = f"It takes {', '.join(names)}." if names else "It takes none."
        for name in map(str, element.attrib):
            if name not in names and not name.startswith("{"):
                self.wrong(element, f"<{_local(element)}> has the unknown attribute {name}", takes)

    def path(self, element: etree._Element) -> str:
        """The attribute xpath, which is required."""
        path = (element.get("xpath") or "").strip()
        if not path:
            self.wrong(element, f"<{_local(element)}> has no XPath", 'Write xpath="…", such as xpath="//dc:type".')
            return ""
        try:
            require_path(path, self.namespaces)
        except BadPath as why:
            self.wrong(element, f"the XPath {one_line(path, 100)} cannot be used: {why}", "Correct it.")
        return path

    def pattern(self, element: etree._Element) -> str | None:
        """The attribute regexp, if there is one."""
        pattern = element.get("regexp")
        if not pattern:
            return None
        try:
            require_pattern(pattern)
        except BadPattern as why:
            shown = one_line(pattern, 100)
            self.wrong(element, f"{shown} is no regular expression that can be used: {why}", "Correct it.")
        return pattern

    def truth(self, element: etree._Element, name: str) -> bool:
        """An attribute that is true or false; false if it is missing."""
        value = element.get(name, "false").strip()
        if value.lower() not in _TRUTHS:
            self.wrong(element, f"{name} is '{one_line(value, 80)}'", "Write true or false.")
        return _TRUTHS.get(value.lower(), False)

    def one_of(self, element: etree._Element, name: str, values: Collection[str]) -> str | None:
        """A required attribute with one of these values; None if it is wrong."""
        value = element.get(name, "").strip().lower()
        if value in values:
            return value
        what = f"{name} is '{one_line(value, 80)}'" if value else f"<{_local(element)}> has no {name}"
        self.wrong(element, what, " or ".join(f'{name}="{value}"' for value in values) + " is meant.")
        return None

    def wrong(self, element: etree._Element, what: str, remedy: str) -> None:
        """Note a mistake in this element."""
        self.findings.append(self._finding(f": {what}", remedy, line_of(element)))

    def require_right(self) -> None:
        """Raises TransformError if there is a mistake."""
        if self.findings:
            raise TransformError(*limited(self.findings))

    def _failed(self, what: str, remedy: str, line: int | None = None) -> TransformError:
        return TransformError(self._finding(f" {what}", remedy, line))

    def _finding(self, what: str, remedy: str, line: int | None) -> Finding:
        where = f"{self._path}, line {line}" if line else str(self._path)
        return Finding("filter.bad-file", one_line(f"{where}{what}.", 1000), remedy, line=line)


def line_of(element: etree._Element) -> int | None:
    """The line of an element in its file."""
    return cast(int | None, element.sourceline)


def _local(element: etree._Element) -> str:
    return one_line(str(etree.QName(element).localname), 100)
