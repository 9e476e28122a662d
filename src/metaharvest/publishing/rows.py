"""A harvest list as rows of texts, as a form holds them: made from a list and from documents, checked, written.

Pure functions of values: nothing is stored, and nothing is fetched.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from urllib.parse import quote

from metaharvest.errors import ListError
from metaharvest.model import Finding, ListedDocument
from metaharvest.model.values import frozen
from metaharvest.publishing.documents import HarvestListInstead, NotListable, SiteDocument, docid_in, fetched_document
from metaharvest.publishing.entries import NewEntries, last_memory
from metaharvest.publishing.folder import FileFinding
from metaharvest.publishing.list_file import Entry, ListFile, Memory, read_list_file, read_memory, written
from metaharvest.publishing.naming import base_url
from metaharvest.sources.harvest_list.source import read_list, scope_and_identifier
from metaharvest.sources.harvest_list.values import (
    BadValue,
    check_number,
    check_scope,
    check_type,
    check_url,
    document_id_of,
)
from metaharvest.text import one_line

COLUMNS = ("scope", "identifier", "revision", "document_type", "url")
_LONGEST_NAME = 200


@frozen
class Row:
    """One document of a list, each value as the person wrote it.

    `memory` is the instruction with which a list remembers the content of the document; empty if there is none.
    """

    scope: str
    identifier: str
    revision: str
    document_type: str
    url: str
    memory: str = ""

    @property
    def is_empty(self) -> bool:
        """True if the person left all of it empty."""
        return not any(getattr(self, column).strip() for column in COLUMNS)

    @property
    def is_former(self) -> bool:
        """True if it only remembers a document that has left the list; it is not shown."""
        return self.is_empty and bool(self.memory)


@frozen
class CellProblem:
    """A mistake in a row, counted from 1, and a column; `is_error`: it prevents the list."""

    row: int
    column: str
    message: str
    remedy: str
    is_error: bool = True


@frozen
class MadeRows:
    """The new rows, and findings about files that are not in them, or are doubtful."""

    rows: tuple[Row, ...]
    findings: tuple[FileFinding, ...]


def rows_of_list(content: bytes) -> tuple[Row, ...]:
    """The rows of a list in a file, and the rows of its former documents. Raises ListError with all mistakes."""
    list_file = read_list_file(content)
    for entry in list_file.entries:
        if entry.document.url.lower().startswith("file:"):
            remedy = "Write the https:// URL of each document."
            raise ListError(
                Finding("list.url", "The list names files of a computer.", remedy, line=entry.document.line)
            )
    return _rows(list_file)


def with_documents(rows: Sequence[Row], files: Iterable[tuple[str, bytes]], base: str) -> MadeRows:
    """The rows with these documents, as `list add` would list them; `base` is the web address of their folder.

    Each file is a name and its bytes. Rows that cannot be read stay as they are. Raises PublishingError for `base`.
    """
    folder = base_url(base)
    findings: list[FileFinding] = []
    documents: dict[str, SiteDocument] = {}
    names: dict[str, str] = {}
    for given, content in files:
        name = file_name(given)
        url = f"{folder.text}{quote(name)}"
        names[url] = name
        try:
            document = fetched_document(content, url, docid_in)
        except NotListable as error:
            findings += [FileFinding(name, finding) for finding in error.findings]
        except HarvestListInstead:
            remedy = "Give it as the old list."
            findings.append(FileFinding(name, Finding("build.list-instead", "This is a harvest list.", remedy)))
        else:
            twin = documents.setdefault(document.document_id, document)
            if twin is not document:
                message = f"{name} is the same document as {names[twin.file]}: {document.document_id}."
                findings.append(FileFinding(name, Finding("build.copy", message, "Give one of the two.")))
    entries, others = _entries(rows)
    new = NewEntries(ListFile(tuple(entries), _former(rows)), writes=False)
    for document in documents.values():
        new.add_newest(document)
    new.keep_others(lambda entry: True)
    findings += [FileFinding(names[each.file], each.finding) for each in new.findings]
    return MadeRows((*_rows(new.list_file(keep_order=False)), *others), tuple(findings))


def without(rows: Sequence[Row], index: int) -> tuple[Row, ...]:
    """The rows without the one at this index, and with the memory of its document."""
    row = rows[index]
    entries, _ = _entries([row])
    is_known = bool(entries and entries[0].memory)
    memory = _instruction(last_memory(entries[0])) if is_known else row.memory
    return (*rows[:index], *rows[index + 1 :], *([_former_row(memory)] if memory else []))


def file_name(given: str) -> str:
    """The name of an uploaded file without folders, which some browsers send, in printable characters."""
    name = given.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return one_line(name, _LONGEST_NAME) or "document.xml"


def problems_in(rows: Sequence[Row]) -> list[CellProblem]:
    """All mistakes in the rows; empty rows have none."""
    found: list[CellProblem] = []
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if row.is_empty:
            continue
        mistakes = [
            CellProblem(number, column, *mistake)
            for column in COLUMNS
            if (mistake := _mistake(_CHECKS[column], getattr(row, column)))
        ]
        if not mistakes and (too_long := _mistake(partial(document_id_of, row.scope), row.identifier)):
            mistakes = [CellProblem(number, "scope", *too_long)]
        found += mistakes
        if not mistakes:
            docid = _document(row).docid
            first = seen.setdefault(docid, number)
            if first != number:
                message = f"{docid} is in row {first:,}, too."
                found.append(CellProblem(number, "revision", message, "Delete one of the rows, or raise the revision."))
    if all(row.is_empty for row in rows):
        found.append(CellProblem(1, "scope", "The list has no document.", "Fill in one row at least."))
    return found


def list_of(rows: Sequence[Row]) -> bytes:
    """The canonical list of rows without mistakes, as `list build` writes it. Raises ListError."""
    entries, _ = _entries(rows)
    new = NewEntries(ListFile(tuple(entries), _former(rows)), writes=False)
    new.keep_others(lambda entry: True)
    content = written(new.list_file(keep_order=False))
    for _ in read_list(io.BytesIO(content)):
        pass
    return content


def _mistake(check: Callable[[str], object], text: str) -> tuple[str, str] | None:
    try:
        if "\ufffd" in text or not text.strip().isprintable():
            return "The value has characters that cannot be read.", "Write it again."
        check(text)
    except BadValue as bad:
        return bad.mistake.message, bad.mistake.remedy
    return None


_CHECKS: dict[str, Callable[[str], object]] = {
    "scope": check_scope,
    "identifier": partial(check_number, "identifier"),
    "revision": partial(check_number, "revision"),
    "document_type": check_type,
    "url": check_url,
}


def _entries(rows: Sequence[Row]) -> tuple[list[Entry], list[Row]]:
    """The entries of the rows without mistakes, and the other rows that are not empty."""
    wrong = {problem.row for problem in problems_in(rows)}
    filled = [(number, row) for number, row in enumerate(rows, start=1) if not row.is_empty]
    return (
        [Entry(_document(row), _memory(row)) for number, row in filled if number not in wrong],
        [row for number, row in filled if number in wrong],
    )


def _document(row: Row) -> ListedDocument:
    return ListedDocument(
        document_id_of(row.scope, row.identifier),
        check_number("revision", row.revision),
        check_type(row.document_type),
        check_url(row.url),
    )


def _memory(row: Row) -> Memory | None:
    """The memory of a row, unless the person has made it a row of another document."""
    memory = _read_memory(row)
    return memory if memory and memory.document_id == _document(row).document_id else None


def _read_memory(row: Row) -> Memory | None:
    return read_memory(row.memory) if row.memory and len(row.memory) < 4000 else None


def _former(rows: Sequence[Row]) -> dict[str, Memory]:
    """The memories of documents that have left the list, by document id; the highest revision of each."""
    memories = [memory for row in rows if row.is_former and (memory := _read_memory(row))]
    return {memory.document_id: memory for memory in sorted(memories, key=lambda each: each.revision)}


def _rows(list_file: ListFile) -> tuple[Row, ...]:
    former = (_former_row(_instruction(memory)) for memory in list_file.former.values())
    return (*map(_row, list_file.entries), *former)


def _former_row(memory: str) -> Row:
    return Row("", "", "", "", "", memory)


def _row(entry: Entry) -> Row:
    document = entry.document
    scope, identifier = scope_and_identifier(document.document_id)
    memory = _instruction(entry.memory) if entry.memory else ""
    return Row(scope or "", str(identifier), str(document.revision), document.document_type, document.url, memory)


def _instruction(memory: Memory) -> str:
    return memory.as_instruction.removeprefix("<?metaharvest ").removesuffix("?>")
