"""Dublin Core in any root element: oai_dc, dcterms, and profiles that add to them, such as RIOXX and OpenAIRE."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lxml import etree

from metaharvest.transform.crosswalks import datacite
from metaharvest.transform.crosswalks.rows import ELEMENTS, MOST, pairs_by, plain

_DC, _DCTERMS = "http://purl.org/dc/elements/1.1/", "http://purl.org/dc/terms/"
_OPENAIRE = "http://namespace.openaire.eu/schema/oaire/"
_RIOXX = tuple(
    f"http://{host}.rioxx.net/schema/v{version}/rioxxterms/" for host in ("docs", "www") for version in ("2.0", "3.0")
)
_LICENCE_REFERENCES = ("http://www.niso.org/schemas/ali/1.0/", "http://ali.niso.org/2014/ali/1.0")
_RESOURCE = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}resource"

_REFINED = {
    "title": "alternative",
    "description": "abstract tableOfContents",
    "date": "available created dateAccepted dateCopyrighted dateSubmitted issued modified valid",
    "format": "extent medium",
    "identifier": "bibliographicCitation",
    "relation": (
        "conformsTo hasFormat hasPart hasVersion isFormatOf isPartOf isReferencedBy isReplacedBy isRequiredBy "
        "isVersionOf references replaces requires"
    ),
    "coverage": "spatial temporal",
    "rights": "accessRights license rightsHolder",
}
"""The terms of DCMI that refine each element of simple Dublin Core."""

_ELEMENTS = {
    **{f"{{{namespace}}}{name}": name for namespace in (_DC, _DCTERMS) for name in ELEMENTS},
    **{f"{{{_DCTERMS}}}{term}": name for name, terms in _REFINED.items() for term in terms.split()},
    **{f"{{{each}}}{name}": name for each in _RIOXX for name in ("creator", "contributor", "type")},
    **{f"{{{each}}}author": "creator" for each in _RIOXX},
    **{f"{{{each}}}publication_date": "date" for each in _RIOXX},
    **{f"{{{each}}}version_of_record": "identifier" for each in _RIOXX},
    **{f"{{{each}}}license_ref": "rights" for each in _LICENCE_REFERENCES},
    f"{{{_OPENAIRE}}}resourceType": "type",
    f"{{{_OPENAIRE}}}licenseCondition": "rights",
}


def pairs(root: etree._Element) -> Iterator[tuple[str, str]]:
    """The values of the document with this root element: first its own Dublin Core, then DataCite beside it."""
    for child in root.iterchildren("*"):
        inside = (child,) if child.tag in _ELEMENTS else islice(child.iterchildren("*"), MOST)
        for element in inside:
            if (name := _ELEMENTS.get(str(element.tag))) is not None:
                yield name, element.get(_RESOURCE) or element.get("uri") or ""
                named = element.find("{*}name")
                yield name, plain(element if named is None else named)
    yield from pairs_by(datacite.ROWS, root, {"m": datacite.KERNEL_4})
