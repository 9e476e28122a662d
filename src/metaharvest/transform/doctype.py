"""The DOCTYPE of a document. One that only names a DTD is left out; one with declarations is refused. Pure.

Declarations can change the content of a document: libxml2 expands entities in attribute values, whatever its options.
"""

from __future__ import annotations

import re

_DOCTYPE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->|(?!))*+(<!DOCTYPE)", re.DOTALL)
_EXTERNAL_ONLY = re.compile(
    rb"<!DOCTYPE\s+[^\s\[>\"']+(?:\s+(?:SYSTEM|PUBLIC\s+(?:\"[^\"]*\"|'[^']*'))\s+(?:\"[^\"]*\"|'[^']*'))?\s*>"
)


class HasDeclarations(Exception):
    """The document has a DOCTYPE with declarations, which begins at this place of its bytes."""

    def __init__(self, start: int) -> None:
        super().__init__("its DOCTYPE has declarations")
        self.start = start


def without_doctype(content: bytes) -> bytes:
    """The document with blanks in place of a DOCTYPE that declares nothing; line breaks stay.

    Raises HasDeclarations for any other DOCTYPE. Only encodings that include ASCII are read.
    """
    if b"<!DOCTYPE" not in content or (found := _DOCTYPE.match(content)) is None:
        return content
    start = found.start(1)
    harmless = _EXTERNAL_ONLY.match(content, start)
    if harmless is None:
        raise HasDeclarations(start)
    return content[:start] + re.sub(rb"[^\r\n]", b" ", harmless[0]) + content[harmless.end() :]
