"""The documents and harvest lists that the benchmarks serve, made from the sample documents.

Each document is a sample document of EML 2.2.0 or 2.1.1, brought to 15-25 KB by leaving out tables or repeating table
attributes, with a packageId of its own. All are valid and give no warning, which `bodies` makes sure of.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from lxml import etree

from metaharvest.config.paths import data_folder
from metaharvest.model import Level, ListedDocument
from metaharvest.validation.processing_policy import ProcessingPolicy
from metaharvest.validation.validator import Validator

SAMPLES = ("discharge", "invertebrates", "rain", "water-chemistry", "litter-breakdown", "river-birds")
SIZES = (15_500, 17_500, 19_500, 21_500, 24_000)
"""The sizes, in bytes, that each sample is brought to, as nearly as whole attributes allow."""

PLACEHOLDER = "bench.99999999.1"


@dataclass(frozen=True, slots=True)
class Body:
    """A document before it is given its packageId, and the namespace that harvest lists call its type."""

    content: bytes
    document_type: str

    def named(self, docid: str) -> bytes:
        """The document as `docid`."""
        return self.content.replace(PLACEHOLDER.encode(), docid.encode())


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """A site as it is served: its name, its folder, the base URL of the folder, and how many documents it lists."""

    name: str
    folder: Path
    url: str
    documents: int

    @property
    def list_url(self) -> str:
        return f"{self.url}/harvest-list.xml"

    def entries(self) -> Iterator[tuple[str, Body, str]]:
        """Document id, body and URL of each document."""
        every = bodies()
        for number in range(1, self.documents + 1):
            yield f"{self.name}.{number}", every[number % len(every)], f"{self.url}/{number}.xml"


@cache
def bodies() -> Sequence[Body]:
    """Thirty different documents, each checked to be beyond complaint."""
    made = [_body(sample, size) for size in SIZES for sample in SAMPLES]
    validator = Validator()
    document_id, _, revision = PLACEHOLDER.rpartition(".")
    for body in made:
        listed = ListedDocument(document_id, int(revision), body.document_type, "http://localhost/")
        verdict = validator.check(body.content, listed, ProcessingPolicy(Level.ERROR))
        if verdict.findings:
            raise ValueError(f"the corpus is not valid: {verdict.findings[0]}")
    return made


def write_documents(site: SiteFolder) -> int:
    """Write the site's documents into its folder; their bytes altogether."""
    site.folder.mkdir(parents=True, exist_ok=True)
    total = 0
    for document_id, body, url in site.entries():
        total += (site.folder / url.rpartition("/")[2]).write_bytes(body.named(f"{document_id}.1"))
    return total


def write_list(site: SiteFolder, comment: str = "") -> None:
    """Write the site's harvest list; `comment` makes its bytes different from another's."""
    entries = "".join(
        f"<document><docid><scope>{site.name}</scope><identifier>{document_id.rpartition('.')[2]}</identifier>"
        f"<revision>1</revision></docid><documentType>{body.document_type}</documentType>"
        f"<documentURL>{url}</documentURL></document>\n"
        for document_id, body, url in site.entries()
    )
    site.folder.mkdir(parents=True, exist_ok=True)
    (site.folder / "harvest-list.xml").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- {comment} -->\n'
        f'<hrv:harvestList xmlns:hrv="eml://ecoinformatics.org/harvestList">\n{entries}</hrv:harvestList>\n',
        encoding="utf-8",
    )


def _body(sample: str, size: int) -> Body:
    tree = etree.parse(data_folder("sample_sites") / "alder-creek" / f"{sample}.xml")
    root = tree.getroot()
    root.set("packageId", PLACEHOLDER)
    dataset = _one(root, "dataset")
    for optional in ("dataTable[2]", "project", "literatureCited", "referencePublication"):
        if len(etree.tostring(tree, encoding="UTF-8")) > size and (element := dataset.find(optional)) is not None:
            dataset.remove(element)
    attributes = _one(dataset, "dataTable/attributeList")
    plain = [attribute for attribute in attributes if not attribute.xpath(".//@id | .//annotation")]
    number = 0
    while (missing := size - len(etree.tostring(tree, encoding="UTF-8"))) > 0:
        extra = copy.deepcopy(plain[number % len(plain)])
        if len(etree.tostring(extra)) > missing + 1000:
            break
        number += 1
        name = _one(extra, "attributeName")
        name.text = f"{name.text}_{number}"
        attributes.append(extra)
    content: bytes = etree.tostring(tree, encoding=str(tree.docinfo.encoding), xml_declaration=True)  # type: ignore[assignment]
    return Body(content, str(etree.QName(root).namespace))


def _one(element: etree._Element, path: str) -> etree._Element:
    found = element.find(path)
    if found is None:
        raise ValueError(f"the sample document has no {path}")
    return found
