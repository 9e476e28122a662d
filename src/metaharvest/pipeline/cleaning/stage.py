"""The stage `cleaning`: makes the outputs of stored documents, and writes the tables `output` and `output_title`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lxml import etree
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import contents_of
from metaharvest.database.batches import batches
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputRecord, OutputTitle
from metaharvest.database.rows import insert_rows
from metaharvest.database.statements import delete_with
from metaharvest.model.outputs import Output
from metaharvest.pipeline.cleaning import datacite, dublin_core, eml, iso19139, marcxml, mods, ore
from metaharvest.pipeline.cleaning.draft import Draft
from metaharvest.pipeline.stage import Context, Document, Failure, Result, Stage, StageName
from metaharvest.pipeline.stored_outputs import json_of
from metaharvest.pipeline.text_language import language_of_output
from metaharvest.pipeline.title_keys import keys_of_title
from metaharvest.transform.embedding import NotEmbeddable, root_of

VERSION = 2
"""Of the rules: a higher one has all documents cleaned again."""

_OUTPUTS = Base.metadata.tables[OutputRecord.__tablename__]
_TITLES = Base.metadata.tables[OutputTitle.__tablename__]
_AT_ONCE = 20
"""Documents whose bytes are in memory at a time: one may have megabytes."""

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
"""How a document is read, by the namespace of its root element."""


def perform(context: Context, documents: Sequence[Document]) -> Iterator[Result]:
    """The outputs of the documents. A document whose bytes are missing is left out."""
    for batch in batches(documents, _AT_ONCE):
        keys = [each.revision_id for each in batch if each.revision_id is not None]
        with context.reading() as session:
            contents = contents_of(session, keys)
        for document in batch:
            content = contents.get(document.revision_id or 0)
            if content is not None:
                yield cleaned(document, content)
            if context.stops():
                return


def cleaned(document: Document, content: bytes) -> Result:
    """The output of a document with these bytes, or the reason why it has none."""
    try:
        root = root_of(content)
    except NotEmbeddable as error:
        message = f"{document.document_id} cannot be read as XML: {error}."
        return Result(document, failure=Failure("cleaning.not-xml", message))
    output = clean(root, document.document_type)
    if not output.titles and not output.identifiers:
        message = f"{document.document_id} ({document.document_type}) has no title and no identifier."
        return Result(document, failure=Failure("cleaning.nothing-known", message))
    return Result(document, replace(output, likely_language=language_of_output(output)))


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


def store(session: Session, results: Sequence[Result], _now: datetime) -> None:
    """Replace the outputs of these documents; one that failed has no output."""
    remove(session, [each.document.number for each in results])
    outputs = {each.document: each.value for each in results if each.value is not None}
    if outputs:
        insert_rows(session.connection(), _OUTPUTS, [_row(document, output) for document, output in outputs.items()])
    if keys := [row for document, output in outputs.items() for row in _keys(document, output)]:
        insert_rows(session.connection(), _TITLES, sorted(keys, key=lambda each: str(each["title_key"])))


def _row(document: Document, output: Output) -> dict[str, object]:
    return {
        "catalogue_document_id": document.number,
        "revision": document.revision,
        "version": VERSION,
        "year": output.year,
        "doi": output.doi,
        "content": json_of(output),
    }


def _keys(document: Document, output: Output) -> list[dict[str, Any]]:
    """The rows of the keys by which references to the output are found."""
    keys = {key for title in output.titles for key in keys_of_title(title.text)}
    return [{"title_key": key, "catalogue_document_id": document.number} for key in keys]


def remove(session: Session, numbers: Collection[int]) -> None:
    """Delete the outputs of the documents with these numbers."""
    delete_with(session, _OUTPUTS.c.catalogue_document_id, numbers)
    delete_with(session, _TITLES.c.catalogue_document_id, numbers)


STAGE = Stage(
    name=StageName.CLEANING,
    version=VERSION,
    perform=perform,
    store=store,
    remove=remove,
    wakes=(StageName.FULL_TEXT, StageName.DUPLICATES, StageName.INDEX),
)
