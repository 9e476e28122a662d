"""Corrects the faults of a document that a program can correct alone: encoding, namespace of EML, packageId.

A pure function of bytes. Each correction is kept only if the corrected document passes the rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from lxml import etree

from metaharvest.model.values import frozen
from metaharvest.publishing.documents import MISC, HarvestListInstead, NotListable, NotReplaceable, read_document
from metaharvest.text import one_line
from metaharvest.validation import identity, wellformed

_DECLARATION = re.compile(r"\ufeff?\s*<\?xml\s[^<>]{0,300}\?>")
_ENCODING = re.compile(r"(\sencoding\s*=\s*)(\"[^\"]*\"|'[^']*')")
_ROOT = re.compile(
    rf"\ufeff?{MISC}(?P<tag><[A-Za-z_][\w.:-]*(?:\s+[\w.:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*')|(?!))*+\s*/?>)"
)
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_MOST_BYTES = 20_971_520


@frozen
class Correction:
    """One change of a document: the rule that it satisfies, the line of the change, the text before and after."""

    rule: str
    line: int
    before: str
    after: str


@frozen
class Corrected:
    """A document after its corrections; the same bytes if there are none."""

    content: bytes
    corrections: tuple[Correction, ...]


def corrected(content: bytes, rules: Collection[str]) -> Corrected:
    """The document after the possible corrections for these rules."""
    done: list[Correction] = []
    for rule, correct in _CORRECTIONS.items():
        if rule in rules and len(content) <= _MOST_BYTES and (made := correct(content)) is not None:
            content, correction = made
            done.append(correction)
    return Corrected(content, tuple(done))


_Made = tuple[bytes, Correction] | None


def _encoding(content: bytes) -> _Made:
    """The document in UTF-8, with a declaration of UTF-8. Bytes that are not UTF-8 are read as windows-1252."""
    text, codec = _decoded(content)
    if text is None or "xml.encoding" not in _rules(content):
        return None
    declaration = _DECLARATION.match(text)
    found = _ENCODING.search(declaration[0]) if declaration else None
    before = (found[0].strip() if found else "no encoding") + _written_in(codec, codec)
    if found and declaration:
        start = declaration.start() + found.start()
        text = f'{text[:start]}{found[1]}"UTF-8"{text[start + len(found[0]) :]}'
    new = text.removeprefix("\ufeff").encode()
    if "xml.encoding" in _rules(new) or new == content:
        return None
    return new, Correction("xml.encoding", 1, one_line(before, 100), 'encoding="UTF-8"' + _written_in(codec, "UTF-8"))


def _written_in(codec: str, name: str) -> str:
    """The words about the bytes, where the correction changes them."""
    return "" if codec == "utf-8" else f", written in {name}"


def _decoded(content: bytes) -> tuple[str | None, str]:
    """The text of the document, and the name of its real encoding; None if it is unclear."""
    marked = [codec for mark, codec in _UTF_16.items() if content.startswith(mark)]
    for codec in (*marked, "utf-8", "windows-1252"):
        try:
            return content.decode(codec), codec
        except UnicodeDecodeError:
            continue
    return None, ""


def _rules(content: bytes) -> set[str]:
    """The rules of the first checks that the document does not pass: of its encoding and its root element."""
    try:
        root = wellformed.root_of(content)
    except wellformed.NotReadable as error:
        return {finding.rule for finding in error.findings}
    return set() if identity.version_of(root) else {"eml.not-eml"}


def _namespace(content: bytes) -> _Made:
    """The document with the namespace of its version of EML in the start tag of its root element."""
    try:
        root = wellformed.root_of(content)
        codec = root.getroottree().docinfo.encoding or "UTF-8"
        text = content.decode(codec)
    except (wellformed.NotReadable, LookupError, UnicodeError):
        return None
    old, meant, tag = etree.QName(root).namespace, identity.meant_namespace(root), _ROOT.match(text)
    if not old or not meant or tag is None:
        return None
    # Also in its schemaLocation.
    new_tag = re.sub(rf"(?<=[\"'\s]){re.escape(old)}(?=[\"'\s])", lambda _: meant, tag["tag"])
    new = f"{text[: tag.start('tag')]}{new_tag}{text[tag.end() :]}".encode(codec)
    if "eml.not-eml" in _rules(new):
        return None
    line = text.count("\n", 0, tag.start("tag")) + 1
    return new, Correction("eml.not-eml", line, one_line(old, 200), meant)


def _package_id(content: bytes) -> _Made:
    """The document whose packageId is corrected to the docid that it resembles."""
    try:
        document = read_document(content)
        meant = identity.nearest_docid(document.package_id)
        if not meant:
            return None
        new = document.with_package_id(meant)
    except (NotListable, HarvestListInstead, NotReplaceable, UnicodeError):
        return None
    at = document.finding("eml.package-id", "", "")
    old = f'packageId="{one_line(document.package_id, 200)}"'
    return new, Correction("eml.package-id", at.line or 1, old, f'packageId="{meant}"')


_CORRECTIONS: dict[str, Callable[[bytes], _Made]] = {
    "xml.encoding": _encoding,
    "eml.not-eml": _namespace,
    "eml.package-id": _package_id,
}
"""The corrections by rule, in the order in which a document is checked."""
