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
import re
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lxml import etree

from metaharvest.model.values import frozen
from metaharvest.validation import parse_lock
from metaharvest.validation.formats import Format

if TYPE_CHECKING:
    import xmlschema

_XSD = "{http://www.w3.org/2001/XMLSchema}"
_XML_XSD = "emlvp", "schemas/EML2.2.0/xsd/xml.xsd"
_ELEMENT_NAME = re.compile(r'<(?:xs|xsd):element name="([A-Za-z]+)"')


@frozen
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


Described = EmlVersion | Format
"""A version of EML, or a format, that has a schema here."""


def compile_schema(described: Described) -> etree.XMLSchema:
    """libxml2's compiled schema. It is for one thread at a time.

    It takes up to 6 MB and, for EML, about 20 ms, for ISO 19139 150 ms, for the others less.

    Waits until no other thread parses or compiles: see `parse_lock`. Raises MemoryError.
    """
    parser = etree.XMLParser(no_network=True, resolve_entities=False)
    parser.resolvers.add(_LocalOnly())
    with parse_lock.compiling():
        try:
            root = etree.fromstring(_schema_source(described), parser, base_url=_place(described).as_uri())
            return etree.XMLSchema(root.getroottree())
        except (etree.XMLSyntaxError, etree.XMLSchemaParseError) as error:
            log: Any = error.error_log
            if any(entry.type == etree.ErrorTypes.ERR_NO_MEMORY for entry in log):
                raise MemoryError from None
            raise


explaining = threading.Lock()
"""To be held while a schema of xmlschema is built and used: xmlschema does not promise to be safe for threads."""


@cache
def explaining_schema(described: Described) -> xmlschema.XMLSchema10:
    """The schema as xmlschema needs it, which explains errors; it is built (0.1 s) when it is first needed.

    Hold `explaining` while calling this and while using the result, which is the same in all of the process.
    """
    import xmlschema

    return xmlschema.XMLSchema10(
        _schema_source(described).decode("utf-8"),
        base_url=_place(described).parent.as_uri(),
        allow="local",
        defuse="remote",  # the files come from packages, and reading each twice takes most of the time
        use_fallback=False,
        uri_mapper=lambda uri: _file(*_XML_XSD).as_uri() if _is_xml_xsd(uri) else uri,
        validation="skip",  # of the schema itself: libxml2 has already compiled it, and it takes three times as long
    )


@cache
def eml_names() -> frozenset[str]:
    """The names of all elements of EML 2.2.0."""
    folder = _file("emlvp", "schemas/EML2.2.0/xsd")
    contents = (path.read_text("utf-8") for path in folder.glob("*.xsd"))
    return frozenset(name for content in contents for name in _ELEMENT_NAME.findall(content))


def _is_xml_xsd(uri: str) -> bool:
    """True for each copy of the schema of xml:lang. One stands for all: some of them name a DTD."""
    return uri.endswith(("/xml.xsd", "__xml.xsd"))


class _LocalOnly(etree.Resolver):
    """Allows the files next to the schemas, maps the one remote import, and refuses every other address."""

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]
        if _is_xml_xsd(system_url):
            return self.resolve_filename(str(_file(*_XML_XSD)), context)  # type: ignore[attr-defined]
        if "://" in system_url and not system_url.startswith("file:"):
            raise OSError(f"The schemas name {system_url}, which is not among them; nothing is fetched for them.")
        return None


@cache
def _schema_source(described: Described) -> bytes:
    """The schema's top file; an ambiguous content model in it is replaced."""
    if isinstance(described, Format):
        return described.source
    version = described
    content = _place(version).read_bytes()
    if not version.is_ambiguous:
        return content
    root = etree.fromstring(content, etree.XMLParser(no_network=True, resolve_entities=False))
    sequence = root.find(f".//{_XSD}element[@name='additionalMetadata']/{_XSD}complexType/{_XSD}sequence")
    if sequence is None or [child.tag for child in sequence] != [f"{_XSD}element", f"{_XSD}any"]:
        raise ValueError(f"The schema of EML {version.number} in the package {version.package} is not the known one.")
    sequence.remove(sequence[0])
    sequence[0].set("maxOccurs", "unbounded")
    return etree.tostring(root, encoding="UTF-8")


def _place(described: Described) -> Path:
    """The place of the top file. A format has none: its place is made up, beside the folders that it names."""
    if isinstance(described, Format):
        return _file(described.package, described.folder) / f"{described.name}.xsd"
    return _file(described.package, described.path)


@cache
def _file(package: str, path: str) -> Path:
    """A file of an installed package, found without running any of the package's code."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"The package {package} is not installed; install metaharvest again.")
    return Path(spec.submodule_search_locations[0]) / path
