"""The formats of metadata beside EML that have a schema here: recognising a document's format, and its schema.

All schemas are from the package dataone.scimeta. A format may need several of them together: they are imported by a
small schema that is made here. The files are read from the package, and nothing is fetched for them.

ISO 19139 exists with two versions of GML, which documents use by its namespace. FGDC has no namespace; its Biological
Data Profile is recognised by the document's own statement. DataCite 3.0 and 3.1 have one namespace, and the schema of
3.1 accepts both.
"""

from __future__ import annotations

import re

from lxml import etree

from metaharvest.model import Level
from metaharvest.model.namespaces import OAI_DC
from metaharvest.model.values import frozen
from metaharvest.text import one_line
from metaharvest.validation.places import ElementFinding

_DCTERMS = ("http://purl.org/dc/terms/", "dc/dcterms.xsd")
_CONTAINER = '<xs:element name="qualifieddc" type="dcterms:elementOrRefinementContainer"/>'


@frozen
class Format:
    """A format: the namespaces of root elements, and the schemas, as namespace and path, that a document has to obey.

    `namespace` is also the namespace of the schema that imports them, where `declares` has elements of its own.
    `explains`: xmlschema can be made to explain errors in little time.
    """

    name: str
    namespace: str
    imports: tuple[tuple[str, str], ...]
    declares: str = ""
    explains: bool = False

    package = "d1_scimeta"
    folder = "schema/"

    @property
    def source(self) -> bytes:
        """The schema that imports the others; its paths are relative to `folder`."""
        target = f' targetNamespace="{self.namespace}"' if self.declares else ""
        imports = "".join(
            f'<xs:import namespace="{namespace}" schemaLocation="{path}"/>'
            if namespace
            else f'<xs:include schemaLocation="{path}"/>'
            for namespace, path in self.imports
        )
        return (
            f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:dcterms="{_DCTERMS[0]}"{target}>'
            f"{imports}{self.declares}</xs:schema>"
        ).encode()


_GMD, _GMI = "http://www.isotc211.org/2005/gmd", "http://www.isotc211.org/2005/gmi"
_OLD_GML = "http://www.opengis.net/gml"
_ISO, _OF_NOAA = (
    tuple(
        (f"http://www.isotc211.org/2005/{name}", f"{folder}/{name}/{name}.xsd") for name in ("gmd", "gmx", "gmi", "srv")
    )
    for folder in ("isotc211", "isotc211-noaa")
)
_NOAA = Format("ISO 19139-2 (NOAA)", _GMI, _OF_NOAA)
"""The schema of NOAA, which has some elements more than the schema of ISO."""

_ISO_WITH_OLD_GML = Format("ISO 19139", _GMD, ((_GMD, "isotc211-pangaea/gmd.xsd"),))
_NOT_WITH_OLD_GML = {_GMI, "http://www.isotc211.org/2005/gmx", "http://www.isotc211.org/2005/srv"}
"""Parts of ISO 19139 that have a schema here with the newer GML only."""

_FGDC_BIOLOGICAL = Format("FGDC, Biological Data Profile", "", (("", "fgdc-bdp/fgdc-std-001.1-1999.xsd"),))
_FGDC = Format("FGDC", "", (("", "fgdc-std-001-1998/fgdc-std-001-1998.xsd"),))
_DATACITE = "http://datacite.org/schema/kernel-3"
_ONEDCX = "http://ns.dataone.org/metadata/schema/onedcx/v1.0"

FORMATS: dict[str, Format] = {
    each.namespace: each
    for each in (
        Format("Dublin Core (oai_dc)", OAI_DC, ((OAI_DC, "oai_dc/oai_dc.xsd"),), explains=True),
        Format("qualified Dublin Core", "http://dspace.org/qualifieddc/", (_DCTERMS,), _CONTAINER),
        Format("qualified Dublin Core", "http://worldcat.org/xmlschemas/qdc-1.0/", (_DCTERMS,), _CONTAINER),
        Format("qualified Dublin Core (DataONE)", _ONEDCX, ((_ONEDCX, "onedcx/onedcx.xsd"),)),
        Format("DataCite 3", _DATACITE, ((_DATACITE, "datacite-3.1/metadata.xsd"),), explains=True),
        Format("ISO 19139", _GMD, _ISO),
        Format("ISO 19139-2", _GMI, _ISO),
    )
}
"""Every format with a namespace of its own, by the namespace of the root element."""


def format_of(root: etree._Element) -> Format | None:
    """The format of a document; None if its schema is not at hand."""
    name = etree.QName(root)
    if not name.namespace and name.localname == "metadata":
        stated = " ".join(root.findtext(f"metainfo/{each}") or "" for each in ("metstdn", "metstdv"))
        return _FGDC_BIOLOGICAL if "biological" in stated.lower() or "001.1-1999" in stated else _FGDC
    if name.namespace in (_GMD, _GMI) and (used := _namespaces(root)) & {_OLD_GML}:
        return _ISO_WITH_OLD_GML if used.isdisjoint(_NOT_WITH_OLD_GML) else None
    return FORMATS.get(name.namespace or "")


def other_format_of(root: etree._Element) -> Format | None:
    """Another schema of the same format that also counts; None if there is none."""
    is_new = etree.QName(root).namespace == _GMI and _OLD_GML not in _namespaces(root)
    return _NOAA if is_new else None


def _namespaces(root: etree._Element) -> set[str | None]:
    return {etree.QName(element).namespace for element in root.iter("*")}


_PROTOCOL = re.compile(r"http://www\.openarchives\.org/OAI/(2\.0/|(1\.[01]/)?OAI_\w+)")
"""The namespaces of OAI-PMH 2.0, 1.1 and 1.0 themselves, not of formats with a similar beginning."""


def is_taken_for_protocol(element: etree._Element) -> bool:
    """True if an element of a record is in the namespace of the answer around it, because it lacks its own xmlns."""
    return not element.prefix and _PROTOCOL.fullmatch(etree.QName(element).namespace or "") is not None


def no_schema_finding(root: etree._Element) -> ElementFinding:
    """The finding that documents of this format are accepted unchecked."""
    name = etree.QName(root)
    if is_taken_for_protocol(root):
        message = (
            f"<{one_line(name.localname, 100)}>, the root of the metadata, has no xmlns of its own: it is taken for an "
            "element of OAI-PMH, and cannot be checked."
        )
        remedy = 'Add the xmlns of its format to it, or xmlns="" where the format has no namespace, such as FGDC.'
        return ElementFinding("validation.no-schema", message, remedy, None, Level.WARNING)
    what = f"the namespace {one_line(name.namespace, 200)}" if name.namespace else "no namespace"
    message = (
        f"There is no schema here for documents whose root element is {one_line(name.localname, 100)} in {what}: "
        "they are accepted if they are well-formed."
    )
    remedy = "No action is needed. With the validation level strict, it is not reported."
    return ElementFinding("validation.no-schema", message, remedy, None, Level.WARNING)
