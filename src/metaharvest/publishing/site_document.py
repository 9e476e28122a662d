"""A document of a site, as the file of a folder: its docid, and its bytes for a second reading."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from metaharvest.config.files import read_file
from metaharvest.errors import PublishingError
from metaharvest.model import Finding
from metaharvest.publishing.documents import EmlDocument, NotListable, is_docid_of, read_document
from metaharvest.sources.harvest_list.values import MAX_LONG
from metaharvest.text import one_line, whole_number

_LARGEST = 1_073_741_824
"""The largest document that is read, in bytes."""


@dataclass(frozen=True, slots=True)
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

    @property
    def has_docid(self) -> bool:
        """True if its packageId is a docid of this document, with any revision."""
        return is_docid_of(self.package_id, self.document_id)


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
        found = Finding("build.unreadable", f"The file cannot be read: {error.strerror}.", remedy)
        raise NotListable(found) from error
