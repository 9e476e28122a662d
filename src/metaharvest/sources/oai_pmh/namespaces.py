"""The start tags around the records of an answer, with the namespace declarations that each record needs.

Records that are cut out of an answer are read within the start tags around them. Tags of a usual size go with each
record as they are. From a larger tag, a record gets the declarations whose prefixes occur in its bytes. So the bytes
that came for a record limit what is read and stored of it.
"""

from __future__ import annotations

import re

from metaharvest.fetch.xml_bounds import XmlRefused
from metaharvest.sources.oai_pmh.bounds import URI

_USUAL = 4_096
"""The most bytes of a start tag that goes with each record as it is."""

_MOST = 100
"""The most declarations of a larger start tag that one record gets."""

_NAME = re.compile(rb"<([^\s<>/]{1,300})")
_DECLARATION = re.compile(rb"""\sxmlns(?::([^\s<>=:"']{1,300}))?\s{0,40}=\s{0,40}("[^"<]*"|'[^'<]*')""")
_PREFIX = re.compile(rb"""(?<![^\s<>/="'(,;])([^\s<>/="':(,;]++):""")


class Declarations:
    """The start tag of an element, as it goes with each record."""

    def __init__(self, tag: bytes) -> None:
        self._tag = tag
        self._declared: dict[bytes, bytes] = {}
        name = _NAME.match(tag)
        self._name = name[1] if name else b""
        self._is_usual = not name or (len(tag) <= _USUAL and tag.count(b"xmlns") <= _MOST // 2)
        if not self._is_usual:
            self._declared = {found[1] or b"": found[0] for found in _DECLARATION.finditer(tag)}

    def tag_for(self, record: bytes) -> bytes:
        """The tag to put around this record. Raises XmlRefused if the record needs too many declarations."""
        if self._is_usual:
            return self._tag
        used = {b"", self._name.rpartition(b":")[0]} | {found[1] for found in _PREFIX.finditer(record)}
        declarations = [declared for prefix, declared in self._declared.items() if prefix in used]
        if len(declarations) > _MOST:
            raise XmlRefused(f"uses more than {_MOST} namespaces that are declared around it")
        if (longest := max(map(len, declarations), default=0)) > URI:
            raise XmlRefused(f"uses a namespace of some {longest:,} characters; {URI:,} are taken")
        return b"<" + self._name + b"".join(declarations) + b">"
