"""Reads the facts for a list from a document's bytes: that it is EML, its version, its docid.

Another packageId can be written into the bytes: every other byte stays.

It does not check if the document is valid: `metaharvest check` does that.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lxml import etree

from metaharvest.config.files import read_file
from metaharvest.errors import PublishingError
from metaharvest.model import MAX_EXCERPT, Finding, Level
from metaharvest.model.values import frozen
from metaharvest.publishing.naming import NamePattern
from metaharvest.sources.harvest_list.values import MAX_LONG, XML_SPACE, BadValue, check_number, document_id_of
from metaharvest.text import one_line, whole_number
from metaharvest.validation import identity, places, wellformed

_DOCID = re.compile(r"(.+)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)", re.DOTALL)
_OTHER_KINDS = (
    (re.compile(r"(doi:|https?://(dx\.)?doi\.org/)?10\.[0-9]{4,}.*", re.IGNORECASE | re.DOTALL), "a DOI"),
    (re.compile(r"(urn:uuid:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE), "a UUID"),
    (re.compile(r"(https?|ftp)://.*", re.IGNORECASE | re.DOTALL), "a URL"),
    (re.compile(r"urn:.*", re.IGNORECASE | re.DOTALL), "a URN"),
)
_STAYS = (
    "To keep the packageIds, use `list build --from-names`, which takes the docids from the names of the files, or "
    "`list add --docid`."
)


class NotReplaceable(Exception):
    """The packageId cannot be replaced without a change of other bytes."""


class NotListable(Exception):
    """A document cannot be listed; `findings` say why."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__(findings[0].message)
        self.findings = findings


class HarvestListInstead(Exception):
    """The file is a harvest list, and no document."""


@frozen
class EmlDocument:
    """An EML document as it was read. `package_id` is trimmed, `sha256` is the digest of its bytes."""

    content: bytes
    root: etree._Element
    document_type: str
    package_id: str
    sha256: str

    @property
    def encoding(self) -> str:
        """The encoding that its parser found."""
        return self.root.getroottree().docinfo.encoding or "UTF-8"

    def finding(self, rule: str, message: str, remedy: str, level: Level = Level.ERROR) -> Finding:
        """A finding about the packageId, at its place; if there is none, at the place of the root element."""
        at_root = places.ElementFinding(rule, message, remedy, self.root, level)
        [finding] = places.with_places([at_root], self.content, self.root)
        there = _place_of_package_id(self.content, self.encoding)
        if there is None:
            return finding
        line, column, excerpt = there
        return replace(finding, line=line, column=column, excerpt=excerpt)

    def with_package_id(self, package_id: str) -> bytes:
        """The bytes of the document with another packageId. Raises NotReplaceable."""
        return with_package_id(self.content, self.encoding, package_id)


def read_document(content: bytes) -> EmlDocument:
    """The EML document in `content`. Raises NotListable for anything else, HarvestListInstead for a harvest list."""
    try:
        root = wellformed.root_of(content)
    except wellformed.NotReadable as error:
        raise NotListable(*error.findings) from None
    name = etree.QName(root)
    if name.localname == "harvestList":
        raise HarvestListInstead
    version = identity.version_of(root)
    if version is None:
        found = identity.not_eml_finding(root, "")
        raise NotListable(*places.with_places([found], content, root))
    package_id = (root.get("packageId") or "").strip()
    return EmlDocument(content, root, version.namespace, package_id, hashlib.sha256(content).hexdigest())


def docid_in(document: EmlDocument) -> tuple[str, int]:
    """The document id and the revision in the packageId. Raises NotListable if it is no docid."""
    package_id = document.package_id
    if not package_id:
        raise NotListable(document.finding("build.no-docid", "The document has no packageId.", _remedy("")))
    try:
        return parse_docid(package_id)
    except ValueError as error:
        message = f"The packageId '{one_line(package_id, 100)}' is {error}"
        raise NotListable(document.finding("build.no-docid", message, _remedy(package_id))) from None


def _remedy(package_id: str) -> str:
    if meant := identity.nearest_docid(package_id):
        return f'Write packageId="{meant}": scope, number and revision.'
    how = "Write a docid there: the scope of your site, a number and a revision, as in your-site.12.1."
    return f"{how} {_STAYS}"


def parse_docid(text: str) -> tuple[str, int]:
    """A docid as document id and revision. Raises ValueError, with the end of a sentence that begins with "it is"."""
    parts = _DOCID.fullmatch(text)
    kind = next((kind for pattern, kind in _OTHER_KINDS if pattern.fullmatch(text)), "")
    if parts is None or kind:
        raise ValueError(f"{f'{kind}, and ' if kind else ''}no docid (scope.identifier.revision).")
    try:
        return document_id_of(parts[1], parts[2]), check_number("revision", parts[3])
    except BadValue as bad:
        raise ValueError(f"no docid: {_lower_first(bad.mistake.message)}") from None


def docid_in_name(file: str, pattern: NamePattern) -> tuple[str, int | None]:
    """The document id in a file name, and the revision, None if it has none. Raises NotListable."""
    example = f"Name it as in '{one_line(pattern.text, 100)}', or leave it out with --exclude."
    try:
        found = pattern.docid_of(file)
    except BadValue as bad:
        message = f"The name of the file spells no docid: {_lower_first(bad.mistake.message)}"
        raise NotListable(Finding("build.name", message, example)) from None
    if found is None:
        raise NotListable(Finding("build.name", "The name of the file does not fit --from-names.", example))
    return found


def is_docid_of(package_id: str, document_id: str) -> bool:
    """True if a packageId is a docid of this document, with any revision."""
    parts = _DOCID.fullmatch(package_id)
    return parts is not None and f"{parts[1]}.{parts[2]}" == document_id


def is_other_docid(package_id: str, document_id: str) -> bool:
    """True if a packageId is the docid of another document."""
    try:
        return parse_docid(package_id)[0] != document_id
    except ValueError:
        return False


def _lower_first(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


_LARGEST = 1_073_741_824


@frozen
class SiteDocument:
    """A document of a folder, in the file `file` (its path below the folder), as it was read.

    `revision` is the one in its packageId, or in the name of the file; None if neither has one. A fetched document has
    no file: then `path` is None, and `content` has its bytes.
    """

    file: str
    path: Path | None
    url: str
    document_id: str
    revision: int | None
    document_type: str
    package_id: str
    sha256: str
    content: bytes = b""

    @property
    def docid(self) -> str:
        """The docid in the document, or in the name of its file."""
        return self.document_id if self.revision is None else f"{self.document_id}.{self.revision}"


Identify = Callable[[EmlDocument], tuple[str, int | None]]
"""Identifies a document: its id, and its revision, None if it has none. Raises NotListable."""


def site_document(path: Path, file: str, url: str, identify: Identify) -> SiteDocument:
    """The document in the file at `path`, whose name is `file`. Raises NotListable, HarvestListInstead."""
    return _made(read_document(_content(path)), file, url, identify, path)


def fetched_document(content: bytes, url: str, identify: Identify) -> SiteDocument:
    """The document that was fetched from `url`. Raises NotListable, HarvestListInstead."""
    return replace(_made(read_document(content), url, url, identify, None), content=content)


def _made(eml: EmlDocument, file: str, url: str, identify: Identify, path: Path | None) -> SiteDocument:
    document_id, revision = identify(eml)
    if revision is None and is_docid_of(eml.package_id, document_id):
        revision = whole_number(eml.package_id.rpartition(".")[2], MAX_LONG)
    return SiteDocument(file, path, url, document_id, revision, eml.document_type, eml.package_id, eml.sha256)


def read_again(document: SiteDocument) -> EmlDocument:
    """The document with its bytes. Raises PublishingError if they have changed since the first reading."""
    if document.path is None:
        return read_document(document.content)
    try:
        content = _content(document.path)
    except NotListable:
        content = b""
    if hashlib.sha256(content).hexdigest() != document.sha256:
        raise PublishingError(f"{one_line(document.file, 300)} was changed while it was being read. Try again.")
    return read_document(content)


def _content(path: Path) -> bytes:
    try:
        return read_file(path, _LARGEST)
    except OSError as error:
        remedy = "Let the user who makes the list read it, or leave it out with --exclude."
        if isinstance(error, FileNotFoundError):
            remedy = "Check the name of the file, with its ending, and the folder."
        found = Finding("build.unreadable", f"The file cannot be read: {error.strerror}.", remedy)
        raise NotListable(found) from error


# -- the packageId in the bytes

MISC = r"(?:[ \t\r\n]++|<\?(?s:.*?)\?>|<!--(?s:.*?)-->|(?!))*+"
"""The white space, comments and instructions before a tag."""

_DOCTYPE = r"(?:<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*'|(?!))*+>|(?!))?+"
_ATTRIBUTE = r"[ \t\r\n]+(?!packageId[ \t\r\n]*=)[^ \t\r\n=/>]+[ \t\r\n]*=[ \t\r\n]*(?:\"[^\"]*\"|'[^']*')"
_ROOT = re.compile(
    rf"\ufeff?{MISC}{_DOCTYPE}{MISC}<[^!?/ \t\r\n>]+(?:{_ATTRIBUTE}|(?!))*+"
    r"[ \t\r\n]+(?P<attribute>packageId)[ \t\r\n]*=[ \t\r\n]*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)')"
)
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)


def _place_of_package_id(content: bytes, encoding: str) -> tuple[int, int, str] | None:
    """Line and column of the packageId, which count from 1, and the text from there on; None if it is unknown."""
    try:
        text = content.decode(_codec(content, encoding)).removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        return None
    if (found := _ROOT.match(text)) is None:
        return None
    start = found.start("attribute")
    before = text[:start].replace("\r\n", "\n")
    line_end = text.find("\n", start)
    excerpt = text[start : line_end if line_end >= 0 else len(text)]
    return before.count("\n") + 1, len(before) - before.rfind("\n"), one_line(excerpt, MAX_EXCERPT)


def with_package_id(content: bytes, encoding: str, package_id: str) -> bytes:
    """`content`, in the encoding that its parser found, with another packageId. Raises NotReplaceable.

    White space around the old packageId stays.
    """
    codec = _codec(content, encoding)
    try:
        text = content.decode(codec)
    except (LookupError, UnicodeError):
        raise NotReplaceable(f"its encoding, {encoding}, is not known here") from None
    found = _ROOT.match(text)
    if found is None:
        raise NotReplaceable("it was not found in the root element")
    group = "double" if found["double"] is not None else "single"
    old, quotes = found[group], '"' if group == "double" else "'"
    if quotes in package_id or set(package_id) & set("<&"):
        raise NotReplaceable("the new one has characters that would have to be escaped")
    start = found.start(group) + len(old) - len(old.lstrip(XML_SPACE))
    head = text[:start].encode(codec)
    value = old.strip(XML_SPACE).encode(codec)
    # Some encodings have more than one way to write a text.
    if not content.startswith(head + value):
        raise NotReplaceable(f"the text before it can be written in several ways in its encoding, {encoding}")
    return head + package_id.encode(codec) + content[len(head) + len(value) :]


def _codec(content: bytes, encoding: str) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), encoding)
