"""The schemas of the five EML versions: finds the files, corrects them, and compiles them for libxml2 and xmlschema.

The files come with two packages, EMLvp (2.1.0 to 2.2.0) and dataone.scimeta (2.0.0 and 2.0.1); none of their code runs.
Nothing is ever fetched: the only remote import, xml.xsd of the W3C, is mapped to the copy that comes with EML 2.2.0.

EML 2.0.0 and 2.0.1 define the content of `additionalMetadata` as any number of `describes` and then one element of any
name. That is ambiguous, since `describes` is also an element of any name, and conforming processors refuse it. Here it
becomes one or more elements of any name; `eml.additional_metadata_findings` checks that the `describes` come first and
that one element follows. The file stmml.xsd, which differs between releases, is not imported by any of the schemas, so
it does not matter for validity.
"""

from __future__ import annotations

import importlib.util
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lxml import etree

from metaharvest.validation import parse_lock

if TYPE_CHECKING:
    import xmlschema

_XSD = "{http://www.w3.org/2001/XMLSchema}"
_XML_XSD = "http://www.w3.org/2009/01/xml.xsd"


@dataclass(frozen=True, slots=True)
class EmlVersion:
    """One published version of EML: its number, its root namespace, and the package and path of its schema."""

    number: str
    namespace: str
    package: str
    path: str

    @property
    def is_ambiguous(self) -> bool:
        """True if the published content model of additionalMetadata is ambiguous and is replaced."""
        return self.path.endswith("ORIGINAL.xsd")


VERSIONS: dict[str, EmlVersion] = {
    version.namespace: version
    for version in (
        EmlVersion("2.0.0", "eml://ecoinformatics.org/eml-2.0.0", "d1_scimeta", "schema/eml-2.0.0/eml.ORIGINAL.xsd"),
        EmlVersion("2.0.1", "eml://ecoinformatics.org/eml-2.0.1", "d1_scimeta", "schema/eml-2.0.1/eml.ORIGINAL.xsd"),
        EmlVersion("2.1.0", "eml://ecoinformatics.org/eml-2.1.0", "emlvp", "schemas/EML2.1.0/eml.xsd"),
        EmlVersion("2.1.1", "eml://ecoinformatics.org/eml-2.1.1", "emlvp", "schemas/EML2.1.1/eml.xsd"),
        EmlVersion("2.2.0", "https://eml.ecoinformatics.org/eml-2.2.0", "emlvp", "schemas/EML2.2.0/xsd/eml.xsd"),
    )
}
"""Every known EML version, by the namespace of its root element; the newest is the last."""


def compile_schema(version: EmlVersion) -> etree.XMLSchema:
    """libxml2's compiled schema of `version`, which takes about 5 MB and 20 ms. It is for one thread at a time.

    Waits until no other thread parses or compiles: see `parse_lock`.
    """
    parser = etree.XMLParser(no_network=True, resolve_entities=False)
    parser.resolvers.add(_LocalOnly())
    file = _file(version.package, version.path)
    with parse_lock.compiling():
        root = etree.fromstring(_schema_source(version), parser, base_url=file.as_uri())
        return etree.XMLSchema(root.getroottree())


class ExplainingSchemas:
    """The schemas as xmlschema needs them, which explains errors; each is built (0.2 s) when it is first needed.

    xmlschema does not promise to be safe for threads: hold `lock` while building and using them.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._schemas: dict[str, xmlschema.XMLSchema10] = {}

    def schema(self, version: EmlVersion) -> xmlschema.XMLSchema10:
        """The schema of `version`. Hold `lock` while calling this and while using the result."""
        if version.namespace not in self._schemas:
            self._schemas[version.namespace] = _build(version)
        return self._schemas[version.namespace]


def _build(version: EmlVersion) -> xmlschema.XMLSchema10:
    import xmlschema

    return xmlschema.XMLSchema10(
        _schema_source(version).decode("utf-8"),
        base_url=_file(version.package, version.path).parent.as_uri(),
        allow="local",
        defuse="always",
        use_fallback=False,
        uri_mapper=_mapped,
        validation="skip",  # of the schema itself: libxml2 has already compiled it, and it takes three times as long
    )


def _mapped(uri: str) -> str:
    return _xml_xsd().as_uri() if uri == _XML_XSD else uri


class _LocalOnly(etree.Resolver):
    """Allows the files next to the schemas, maps the one remote import, and refuses every other address."""

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]
        if system_url == _XML_XSD:
            return self.resolve_filename(str(_xml_xsd()), context)  # type: ignore[attr-defined]
        if "://" in system_url and not system_url.startswith("file:"):
            raise OSError(f"The schemas name {system_url}, which is not among them; nothing is fetched for them.")
        return None


@cache
def _schema_source(version: EmlVersion) -> bytes:
    """The schema's top file; an ambiguous content model in it is replaced."""
    content = _file(version.package, version.path).read_bytes()
    if not version.is_ambiguous:
        return content
    root = etree.fromstring(content, etree.XMLParser(no_network=True, resolve_entities=False))
    sequence = root.find(f".//{_XSD}element[@name='additionalMetadata']/{_XSD}complexType/{_XSD}sequence")
    if sequence is None or [child.tag for child in sequence] != [f"{_XSD}element", f"{_XSD}any"]:
        raise ValueError(f"The schema of EML {version.number} in the package {version.package} is not the known one.")
    sequence.remove(sequence[0])
    sequence[0].set("maxOccurs", "unbounded")
    return etree.tostring(root, encoding="UTF-8")


def _xml_xsd() -> Path:
    return _file("emlvp", "schemas/EML2.2.0/xsd/xml.xsd")


@cache
def _file(package: str, path: str) -> Path:
    """A file of an installed package, found without running any of the package's code."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"The package {package} is not installed; install metaharvest again.")
    return Path(spec.submodule_search_locations[0]) / path
