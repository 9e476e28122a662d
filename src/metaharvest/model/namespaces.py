"""URIs that several rooms know: namespaces of XML, and the schemes of identifiers that mean the same everywhere."""

from __future__ import annotations

import re

OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
"""Dublin Core as OAI-PMH has it."""

XSI = "http://www.w3.org/2001/XMLSchema-instance"

OAI_DOMAIN = r"[A-Za-z][A-Za-z0-9-]*(\.[A-Za-z][A-Za-z0-9-]*)+"
"""The domain of an oai-identifier 2.0, as a regular expression."""

_CHARACTERS = r"(?:[A-Za-z0-9\-_.!~*'();/?:@&=+$,]++|%[0-9A-Fa-f]{2}|(?!))++"
_KNOWN = re.compile(rf"(oai:{OAI_DOMAIN}:|doi:10\.|hdl:|urn:[A-Za-z0-9-]+:|info:|ark:|https?://){_CHARACTERS}")


def is_of_known_scheme(identifier: str) -> bool:
    """True if an identifier is a URI of a known scheme: it means the same everywhere."""
    return _KNOWN.fullmatch(identifier) is not None
