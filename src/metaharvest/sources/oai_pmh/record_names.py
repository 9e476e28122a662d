"""The names of a record: its document id and its URL. Pure."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote, urlsplit

from metaharvest.fetch.url import without_login
from metaharvest.model import Finding, ListedDocument, OaiOptions, RecordOrigin
from metaharvest.sources.oai_pmh.bounds import IDENTIFIER
from metaharvest.text import one_line

_LONGEST_ID = 800
"""Characters of a document id."""

_PLAIN = re.compile(r"[A-Za-z0-9._~:/-]*")
_PRINTABLE = "".join(map(chr, range(33, 127)))


class RecordNames:
    """Names the records of one source repository in one format."""

    def __init__(self, base_url: str, options: OaiOptions) -> None:
        self.base_url = without_login(base_url)
        self.prefix = options.prefix
        self._before_identifier = f"{options.origin}/{options.prefix}/"
        self._start = quote(self._before_identifier, safe=_PRINTABLE)
        joint = "&" if urlsplit(self.base_url).query else "?"
        prefix = quote(options.prefix, safe="")
        self._url = f"{self.base_url}{joint}verb=GetRecord&metadataPrefix={prefix}&identifier="

    def document(self, origin: RecordOrigin) -> ListedDocument:
        """The record with this origin as a listed document."""
        identifier = origin.identifier
        return ListedDocument(self.document_id(identifier), 0, origin.namespace, self.url(identifier), origin=origin)

    def document_of(self, identifier: str, response_date: str = "") -> ListedDocument:
        """A record as a listed document, if only its identifier is known."""
        return self.document(RecordOrigin(self.base_url, shortened(identifier), self.prefix, "", response_date))

    def document_id(self, identifier: str) -> str:
        """The document id: origin, prefix and identifier. `%` and all but printable ASCII is percent-encoded.

        Two identifiers never have the same document id.
        """
        if not _PLAIN.fullmatch(identifier):
            identifier = quote(identifier.replace("%", "%25"), safe=_PRINTABLE)
        return shortened(self._start + identifier, _LONGEST_ID)

    def url(self, identifier: str) -> str:
        """The URL of the record."""
        if _PLAIN.fullmatch(identifier):  # almost all identifiers; quote() takes longer
            return self._url + identifier.replace(":", "%3A").replace("/", "%2F")
        return self._url + quote(identifier, safe="")

    def arguments(self, identifier: str) -> dict[str, str]:
        """The arguments of GetRecord."""
        return {"identifier": identifier, "metadataPrefix": self.prefix}

    def too_long(self, identifier: str) -> Finding | None:
        """The error about an identifier that is too long for a document id; None if it is not."""
        if len(self._before_identifier) + len(identifier) <= _LONGEST_ID:
            return None
        message = f"The identifier has more characters than can be kept: {one_line(identifier, 100)}."
        remedy = f"The repository's keeper gives it a shorter one: a document id has {_LONGEST_ID} at most."
        return Finding("oai.identifier", message, remedy)


def shortened(name: str, longest: int = IDENTIFIER) -> str:
    """The name; or its beginning and a hash of all of it, if it is too long."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - 65]}~{hashlib.sha256(name.encode()).hexdigest()}"
