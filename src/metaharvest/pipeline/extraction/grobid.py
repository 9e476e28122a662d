"""GROBID: the references of a PDF, by the service whose URL is in the settings.

The API: https://grobid.readthedocs.io/en/latest/Grobid-service/#apiprocessreferences.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaharvest.pipeline.extraction.citation import Reference, marked
from metaharvest.pipeline.extraction.jats import references, root_of
from metaharvest.pipeline.extraction.services import ServiceAway, ServiceClient, ServiceRefused


def references_of(client: ServiceClient, base: str, content: bytes) -> Sequence[Reference] | None:
    """The references that GROBID finds in a PDF; None if it cannot read the PDF. Raises ServiceAway."""
    url = f"{base.rstrip('/')}/api/processReferences"
    try:
        answer = client.post(url, ("input", content, "application/pdf"), {"includeRawCitations": "1"})
    except ServiceRefused:
        return None
    if not answer.strip():
        return ()
    root = root_of(answer.encode())
    if root is None or not str(root.tag).endswith("TEI"):
        raise ServiceAway(f"The answer of {client.at(url)} is no TEI.")
    return [marked(each) for each in references(root)]
