"""From the tree of a document to its output, by the format of its root element. A pure function."""

from __future__ import annotations

from collections.abc import Callable

from lxml import etree

from metaharvest.model.outputs import Output
from metaharvest.pipeline.cleaning import datacite, dublin_core, eml, iso19139, marcxml, mods, ore
from metaharvest.pipeline.cleaning.draft import Draft

_FORMATS: dict[str, Callable[[etree._Element, Draft], None]] = {
    **dict.fromkeys(eml.NAMESPACES, eml.read),
    **dict.fromkeys(datacite.NAMESPACES, datacite.read),
    **dict.fromkeys(iso19139.NAMESPACES, iso19139.read),
    mods.NAMESPACE: mods.read,
    mods.METS: mods.read_mets,
    marcxml.NAMESPACE: marcxml.read,
    ore.ATOM: ore.read_atom,
    ore.RDF: ore.read_rdf,
}


def clean(root: etree._Element, document_type: str) -> Output:
    """The output of the document with this root element. `document_type` is the format by the catalogue.

    The namespace of the root element decides how it is read; if it is unknown, `document_type` does. Any other
    document is read as Dublin Core: it has values if there is Dublin Core one or two levels below its root.
    """
    draft = Draft(document_type)
    namespace = etree.QName(root).namespace or ""
    read = _FORMATS.get(namespace) or _FORMATS.get(document_type) or dublin_core.read
    read(root, draft)
    return draft.output()
