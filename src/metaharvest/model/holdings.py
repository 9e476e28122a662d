"""Uploads and deletions for a target, and the revisions that it holds. Frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from metaharvest.model import FetchedDocument, ListedDocument


@dataclass(frozen=True, slots=True)
class Upload:
    """A checked document for the target, from the site with this number (0: not from a site).

    Documents of the other sites of `same_origin` belong to this site, too. `title`: see Verdict. `is_embeddable`: an
    answer of the provider can have it; only a copy, which nobody has checked, may not be.
    """

    fetched: FetchedDocument
    site_id: int
    at: datetime
    same_origin: frozenset[int] = frozenset()
    title: str = ""
    is_embeddable: bool = True


@dataclass(frozen=True, slots=True)
class Deletion:
    """A document that the site's source repository has deleted; for a target in the harvester's own database.

    `same_origin`: see Upload.
    """

    document: ListedDocument
    site_id: int
    at: datetime
    same_origin: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class HeldRevision:
    """One revision of a document as a target describes it. Unknown values are None, or empty.

    `size` is in bytes; `source_url` is its source, or its place in the target; `site_id` is its first site. `title` is
    the title of the document.
    """

    document_id: str
    revision: int
    document_type: str = ""
    size: int | None = None
    sha256: str | None = None
    inserted_at: datetime | None = None
    source_url: str = ""
    site_id: int | None = None
    title: str = ""

    @property
    def docid(self) -> str:
        """Document id and revision: `knb-lter-gce.109.6`."""
        return f"{self.document_id}.{self.revision}"
