"""GROBID: the references of a PDF, by the service whose URL is in the settings.

The API: https://grobid.readthedocs.io/en/latest/Grobid-service/#apiprocessreferences.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaharvest.pipeline.extraction.citation import Reference, marked
from metaharvest.pipeline.extraction.jats import references, root_of
from metaharvest.pipeline.extraction.services import ServiceAway, ServiceClient, ServiceRefused, ServiceSlow


class Grobid:
    """GROBID for the documents of a batch. `away` is why it was given up, after the first failure.

    One PDF may take GROBID too long. If the next one does, too, GROBID is away.
    """

    def __init__(self, client: ServiceClient, base: str) -> None:
        self.away = ""
        self._is_slow = False
        self._client = client
        self._url = f"{base.rstrip('/')}/api/processReferences"

    def references_of(self, content: bytes) -> Sequence[Reference] | None:
        """The references in a PDF; None if GROBID cannot read the PDF in time, or is away."""
        if self.away:
            return None
        try:
            answer = self._client.post(self._url, ("input", content, "application/pdf"), {"includeRawCitations": "1"})
        except ServiceRefused:
            self._is_slow = False
            return None
        except ServiceSlow as slow:
            if self._is_slow:
                self.away = str(slow)
            self._is_slow = True
            return None
        except ServiceAway as away:
            self.away = str(away)
            return None
        self._is_slow = False
        if not answer.strip():
            return ()
        root = root_of(answer.encode())
        if root is None or not str(root.tag).endswith("TEI"):
            self.away = f"The answer of {self._client.at(self._url)} is no TEI."
            return None
        return [marked(each) for each in references(root)]
