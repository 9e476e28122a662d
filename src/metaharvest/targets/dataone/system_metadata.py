"""DataONE's system metadata, version 2.0: a node's description of an object, also sent with each new object.

An object has an identifier for ever, the PID. Here that is the docid, and the series id, which names all revisions of a
document at once, is the document id. A revision that is superseded names its successor in obsoletedBy.
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from lxml import etree

from metaharvest.config.target_settings import TargetSettings
from metaharvest.fetch.xml_bounds import XmlLimits, XmlRefused, root_namespace, tree_of
from metaharvest.model import ListedDocument
from metaharvest.model.values import frozen
from metaharvest.targets.http import ANSWER_BYTES
from metaharvest.text import one_line, whole_number
from metaharvest.validation.schemas import VERSIONS

_NAMESPACE = "http://ns.dataone.org/service/types/v2.0"
PAGE_BYTES = 8_388_608
"""The most bytes of a page of a listing."""

LONGEST_IDENTIFIER = 800
"""The most characters of an identifier, which has no white space (NonEmptyNoWhitespaceString800 of DataONE's types)."""

_LONGEST = 300
"""The most characters of any other value."""

_SHORT = XmlLimits(size=ANSWER_BYTES, nodes=20_000, namespaces=1_000)
"""For system metadata, an error, or the description of a node. Each person with access to an object is an XML node."""

_PAGE = XmlLimits(size=PAGE_BYTES, nodes=100_000)
"""Each of a thousand objects of a page has seven XML nodes."""

_HASHES = {
    "MD5": "md5",
    **{f"SHA{dash}{bits}": f"sha{bits}" for dash in ("-", "") for bits in ("1", "224", "256", "384", "512")},
}
"""DataONE's names of checksum algorithms, and those that people write -> hashlib's."""


@frozen
class Checksum:
    """A digest, hexadecimal, and the name of its algorithm as the node writes it."""

    algorithm: str
    value: str

    def is_of(self, content: bytes) -> bool | None:
        """True if it is the digest of `content`; None if the algorithm is unknown here."""
        name = _HASHES.get(self.algorithm.upper())
        return None if name is None else hashlib.new(name, content).hexdigest() == self.value.lower()

    @property
    def sha256(self) -> str | None:
        """The SHA-256, if it is one."""
        return self.value.lower() if _HASHES.get(self.algorithm.upper()) == "sha256" else None


@frozen
class ObjectInfo:
    """An object as a listing describes it; `size` is in bytes."""

    pid: str
    format_id: str
    size: int
    checksum: Checksum

    def may_be(self, content: bytes) -> bool:
        """True if the object can have these bytes, by their length and by its checksum, if its algorithm is known."""
        return self.size == len(content) and self.checksum.is_of(content) is not False


@frozen
class SystemMetadata(ObjectInfo):
    """An object as its system metadata describe it. `archived`: it exists, and searches no longer offer it."""

    series_id: str | None
    obsoletes: str | None
    obsoleted_by: str | None
    archived: bool


def root_of(content: bytes, limits: XmlLimits = _SHORT) -> etree._Element:
    """The root element of a node's response. Raises ValueError if it is not XML, or exceeds the limits."""
    try:
        return tree_of(content, limits)
    except XmlRefused as error:
        raise ValueError(f"the answer {error}") from error


def _info_in(element: etree._Element) -> ObjectInfo:
    """An entry of a listing, or the beginning of system metadata. Raises ValueError for anything else."""
    checksum = element.find("checksum")
    pid, size = element.findtext("identifier"), element.findtext("size")
    if checksum is None or pid is None or size is None:
        raise ValueError("it has no identifier, size or checksum")
    digest = Checksum(checksum.get("algorithm", "")[:_LONGEST], (checksum.text or "").strip()[:_LONGEST])
    return ObjectInfo(_identifier(pid), element.findtext("formatId", "")[:_LONGEST], _number(size, "size"), digest)


def _identifier(text: str) -> str:
    if len(text) > LONGEST_IDENTIFIER:
        raise ValueError(f"it has an identifier of {len(text):,} characters; {LONGEST_IDENTIFIER} are the most")
    return text


def _number(text: str, name: str) -> int:
    number = whole_number(text.strip())
    if number is None:
        raise ValueError(f"its {name} is no number: {one_line(text, 60)}")
    return number


def parsed(content: bytes) -> SystemMetadata:
    """The system metadata in this XML. Raises ValueError for anything else."""
    root = _root(content, "systemMetadata")
    info = _info_in(root)
    return SystemMetadata(
        info.pid,
        info.format_id,
        info.size,
        info.checksum,
        _identifier(root.findtext("seriesId", "")) or None,
        _identifier(root.findtext("obsoletes", "")) or None,
        _identifier(root.findtext("obsoletedBy", "")) or None,
        root.findtext("archived", "").strip() in ("true", "1"),
    )


def listed(content: bytes) -> tuple[int, list[ObjectInfo]]:
    """The total number of objects, and the objects of this page of a listing. Raises ValueError if it is no listing."""
    root = _root(content, "objectList", _PAGE)
    return _number(root.get("total", ""), "total"), [_info_in(each) for each in root.iter("objectInfo")]


def confirms(content: bytes, pid: str) -> bool:
    """True if this is a node's response after it has accepted an object: its identifier."""
    try:
        return _root(content, "identifier").text == pid
    except ValueError:
        return False


@frozen
class Series:
    """A document on the node: the object that a new revision supersedes, and its highest revision.

    `series_id` is the one for a new revision. Without a `head`, a new chain of revisions begins.
    """

    head: SystemMetadata | None
    highest: int
    series_id: str | None


def written(
    document: ListedDocument, content: bytes, series: Series, settings: TargetSettings, rights_holder: str
) -> bytes:
    """The system metadata of a new object, as XML: the elements in the order of the schema, none of them qualified."""
    root = ET.Element(f"{{{_NAMESPACE}}}systemMetadata")
    algorithm = settings.checksum_algorithm
    _add(root, "identifier", document.docid)
    _add(root, "formatId", settings.format_id or _format_of(document, content))
    _add(root, "size", str(len(content)))
    _add(root, "checksum", hashlib.new(_HASHES[algorithm], content).hexdigest()).set("algorithm", algorithm)
    if settings.submitter:
        _add(root, "submitter", settings.submitter)
    _add(root, "rightsHolder", rights_holder)
    _add_access(root, settings)
    if series.head is not None:
        _add(root, "obsoletes", series.head.pid)
    if series.series_id is not None:
        _add(root, "seriesId", series.series_id)
    text: bytes = ET.tostring(root, encoding="UTF-8", xml_declaration=True)
    return text


def _format_of(document: ListedDocument, content: bytes) -> str:
    """The format id for the EML version of a document, or the type that its site gives it."""
    namespace = root_namespace(content)
    return namespace if namespace in VERSIONS else document.document_type


def _add(parent: ET.Element, name: str, text: str) -> ET.Element:
    child = ET.SubElement(parent, name)
    child.text = text
    return child


def _add_access(root: ET.Element, settings: TargetSettings) -> None:
    """Write the access policy: read, write and change rights; without a policy, only the rights holder has rights."""
    rules: Sequence[tuple[str, Sequence[str]]] = (
        ("read", settings.read),
        ("write", settings.write),
        ("changePermission", settings.change_permission),
    )
    if not any(subjects for _, subjects in rules):
        return
    policy = ET.SubElement(root, "accessPolicy")
    for permission, subjects in rules:
        if subjects:
            rule = ET.SubElement(policy, "allow")
            for subject in subjects:
                _add(rule, "subject", subject)
            _add(rule, "permission", permission)


def _root(content: bytes, name: str, limits: XmlLimits = _SHORT) -> etree._Element:
    """The root element, of this name in any namespace: v1 and v2 of the API have different ones."""
    root = root_of(content, limits)
    if root.tag.rpartition("}")[2] != name:
        raise ValueError(f"its root is {one_line(root.tag.rpartition('}')[2], 60)}, not {name}")
    return root
