"""The about containers of a record: its provenance, in which that of its source is nested, and its rights. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from metaharvest.catalogue.provenance import Provenance
from metaharvest.web.provider.arguments import DAY, SECOND
from metaharvest.web.provider.embedding import NotEmbeddable, embedded, root_of

PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"
RIGHTS = "http://www.openarchives.org/OAI/2.0/rights/"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"


def about_containers(provenance: Provenance | None, *, altered: bool) -> bytes:
    """The about elements of a record; none for a document of a harvest list. `altered`: the metadata is made here."""
    if provenance is None or not provenance.origin.prefix:
        return b""
    roots = list(_roots(provenance.origin.about))
    own = _provenance(provenance, roots, altered=altered or provenance.altered)
    rights = (embedded(root) for root in roots if root.tag == f"{{{RIGHTS}}}rights")
    return b"".join(b"<about>" + each + b"</about>" for each in (own, *rights) if each)


def _roots(containers: Sequence[bytes]) -> Iterator[etree._Element]:
    for each in containers:
        with suppress(NotEmbeddable):
            yield root_of(each)


def _provenance(provenance: Provenance, roots: Sequence[etree._Element], *, altered: bool) -> bytes:
    """The provenance container; empty if the dates of the source do not have the form of the protocol."""
    origin = provenance.origin
    datestamp = origin.datestamp if SECOND.fullmatch(origin.datestamp) else origin.datestamp[:10]
    if not DAY.fullmatch(datestamp[:10]) or not SECOND.fullmatch(origin.response_date):
        return b""
    start = (
        f'<provenance xmlns="{PROVENANCE}" xmlns:xsi="{_XSI}" xsi:schemaLocation="{PROVENANCE} {PROVENANCE}.xsd">'
        f'<originDescription harvestDate={quoteattr(origin.response_date)} altered="{str(altered).lower()}">'
        f"<baseURL>{escape(origin.base_url)}</baseURL><identifier>{escape(origin.identifier)}</identifier>"
        f"<datestamp>{datestamp}</datestamp><metadataNamespace>{escape(origin.namespace)}</metadataNamespace>"
    )
    nested = b"".join(
        etree.tostring(each, encoding="UTF-8", xml_declaration=False, with_tail=False)
        for root in roots
        if root.tag == f"{{{PROVENANCE}}}provenance"
        for each in root.iterchildren(f"{{{PROVENANCE}}}originDescription")
    )
    return start.encode() + nested + b"</originDescription></provenance>"
