"""The paths of pages and records below the address of the application. Pure."""

from __future__ import annotations

from urllib.parse import quote

RESERVED = "%/:@!$&'()*+,;=~-._?#[]"
"""The characters of a whole URI that are not escaped."""

_SAFE = "/:@!$&'()*+,;=~-._"


def page_path(document_id: str) -> str:
    """The path of a landing page."""
    return f"documents/{quote(document_id, safe=_SAFE)}"


def xml_path(document_id: str, revision: int | None = None) -> str:
    """The path of a document as XML: of this revision, or of the current one."""
    return f"xml/{quote(document_id, safe=_SAFE)}" + (f"?revision={revision}" if revision is not None else "")


def up_from(raw_path: bytes) -> str:
    """The relative address of the application from a page at this path.

    A relative address is right also if a web server in front adds a folder.
    """
    return "../" * (raw_path.count(b"/") - 1) or "./"
