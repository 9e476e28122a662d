"""Small EML documents to break in tests: a minimal valid one for each version."""

from __future__ import annotations

from metaharvest.model import ListedDocument
from metaharvest.validation.schemas import VERSIONS
from metaharvest.validation.validator import Validator

NAMESPACES = {version.number: version.namespace for version in VERSIONS.values()}
NUMBERS = list(NAMESPACES)

VALIDATOR = Validator(other_document_types=["FGDC-STD-001-1998"])
"""For all tests of a process: compiling the schemas takes longer than most checks."""

PARTY = "<organizationName>Alder Creek</organizationName>"
DATASET = """
  <dataset{attributes}>
    <title>Water temperature</title>
    <creator id="creator-1">{party}</creator>
    {first}<contact>{party}</contact>{last}
  </dataset>"""


def eml(
    number: str,
    first: str = "",
    last: str = "",
    *,
    after: str = "",
    attributes: str = "",
    package_id: str = "alder.1.1",
    body: str | None = None,
) -> bytes:
    """A document of EML `number`. `first` goes before contact, `last` after it, `after` after the dataset (`body`)."""
    dataset = DATASET.format(attributes=attributes, party=PARTY, first=first, last=last) if body is None else body
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<eml:eml xmlns:eml="{NAMESPACES[number]}" packageId="{package_id}" system="test">'
        f"{dataset}\n{after}</eml:eml>\n"
    ).encode()


def additional(number: str, content: str, describes: str = "") -> str:
    """An additionalMetadata of EML `number`: from 2.1.0 on its content stands in `metadata`."""
    wrapped = content if number.startswith("2.0") else f"<metadata>{content}</metadata>"
    return f"<additionalMetadata>{describes}{wrapped}</additionalMetadata>"


def listed(number: str, docid: str = "alder.1.1", document_type: str | None = None) -> ListedDocument:
    """The entry of a harvest list for such a document."""
    document_id, _, revision = docid.rpartition(".")
    kind = NAMESPACES[number] if document_type is None else document_type
    return ListedDocument(document_id, int(revision), kind, "https://alder.example.org/1.xml")
