"""The formats of dataset files: a document as a line of JSON, as an element of an XML file, or as a row of a table."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from metaharvest.catalogue.change_feed import ChangedDocument
from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen
from metaharvest.replication.dataset.texts import SharedText
from metaharvest.text import only_xml

NAMESPACE = "urn:metaharvest:dataset:1"
"""The namespace of the elements around the documents of an XML file."""

TEXT_NAMES = ("text_licence", "text_url", "text_language", "text_sha256", "text")
"""The names of the values of a full text."""

_VALUES = (
    "change_seq changed_at is_deleted document_id revision item_identifier origin document_type title site sets "
    "datestamp base_url url sha256 bytes=size"
)
_LONGEST_DECLARATION = 400
_ENCODING = re.compile(rb"\sencoding\s*+=\s*+[\"']([A-Za-z0-9._:-]{1,40})[\"']")


class FullText(NamedTuple):
    """The text of an output, with what is known of it; all values are None if the dataset has none of this output."""

    text: str | None = None
    shared: SharedText | None = None


class Line(NamedTuple):
    """A document and its bytes; None: it is deleted, or the bytes are lost.

    `full_text` is None in a dataset without texts.
    """

    document: ChangedDocument
    content: bytes | None
    full_text: FullText | None = None


def row_of(document: ChangedDocument) -> Mapping[str, object]:
    """The values of a document, without its content, by name."""
    return picked(document, _VALUES) | {"sets": list(document.sets)}


def text_row_of(line: Line) -> Mapping[str, object]:
    """The values of the full text by name; empty in a dataset without texts."""
    if line.full_text is None:
        return {}
    text, shared = line.full_text
    if text is None or shared is None:
        return dict.fromkeys(TEXT_NAMES)
    return dict(zip(TEXT_NAMES, (shared.licence, shared.url, shared.language, shared.sha256, text), strict=True))


def as_json(line: Line) -> bytes:
    """A line of JSON."""
    encoding, content = None, None
    if line.content is not None:
        text = utf8_text(line.content)
        encoding, content = ("base64", _base64(line.content)) if text is None else ("utf-8", text)
    values = {**row_of(line.document), "changed_at": line.document.changed_at.isoformat()}
    values |= {"content_encoding": encoding, "content": content, **text_row_of(line)}
    return json.dumps(values, ensure_ascii=False).encode() + b"\n"


def as_element(line: Line) -> bytes:
    """An element `d:document` for an XML file in UTF-8, which declares the prefix `d`."""
    values = {
        **row_of(line.document),
        "changed_at": line.document.changed_at.isoformat(),
        "is_deleted": str(line.document.is_deleted).lower(),
        "sets": None,
    }
    attributes = "".join(
        f" {name}={quoteattr(only_xml(str(value)))}" for name, value in values.items() if value is not None
    )
    sets = "".join(f"<d:set>{escape(only_xml(each))}</d:set>" for each in line.document.sets)
    return f"<d:document{attributes}>{sets}".encode() + _content_element(line.content) + b"</d:document>\n"


def utf8_text(content: bytes) -> str | None:
    """The text of a document that declares UTF-8, or no encoding, and is UTF-8; None for any other.

    Encoded as UTF-8, the text gives the same bytes again.
    """
    declared = _ENCODING.search(_declaration(content))
    if b"\0" in content or (declared and declared[1].lower() != b"utf-8"):
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def embeddable(content: bytes) -> bytes | None:
    """The bytes of a document without its XML declaration, which can stand inside of an XML file in UTF-8.

    None if they cannot: the document has another encoding or a DTD, is not well-formed or is XML 1.1, or it has
    attributes xml:id, which must be unique in a file.
    """
    declaration = _declaration(content)
    if utf8_text(content) is None or b"xml:id" in content or b"1.1" in declaration:
        return None
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
    if root.getroottree().docinfo.internalDTD is not None:
        return None
    inner = content.removeprefix(BOM_UTF8)[len(declaration) :]
    return None if _begins_declaration(inner) else inner


def _content_element(content: bytes | None) -> bytes:
    if content is None:
        return b""
    inner = embeddable(content)
    if inner is None:
        return f'<d:content encoding="base64">{_base64(content)}</d:content>'.encode()
    return b"<d:content>" + inner + b"</d:content>"


def _begins_declaration(content: bytes) -> bool:
    return content[:5] == b"<?xml" and content[5:6].isspace()


def _declaration(content: bytes) -> bytes:
    """The XML declaration; empty if there is none, or if it has no end in its first bytes."""
    start = content.removeprefix(BOM_UTF8)[:_LONGEST_DECLARATION]
    if not _begins_declaration(start):
        return b""
    end = start.find(b"?>")
    return start[: end + 2] if end >= 0 else b""


def _base64(content: bytes) -> str:
    return b64encode(content).decode("ascii")


# -- files of lines

_COMPRESSION = 4
"""The level of gzip: level 6 takes three times as long, and the files are 6 percent smaller."""

Write = Callable[[Sequence[Line]], None]


@frozen
class DatasetFormat:
    """A format: the end of the names of its files, and its function, which gets True if the dataset has texts.

    The same lines give the same bytes. `has_texts`: the format has full texts.
    """

    suffix: str
    opened: Callable[[Path, bool], AbstractContextManager[Write]]
    has_texts: bool = True


@contextmanager
def _jsonl(path: Path, _with_texts: bool) -> Iterator[Write]:
    with _compressed(path) as file:
        yield lambda lines: file.writelines(map(as_json, lines))


@contextmanager
def _xml(path: Path, _with_texts: bool) -> Iterator[Write]:
    with _compressed(path) as file:
        file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<d:dataset xmlns:d="{NAMESPACE}">\n'.encode())
        yield lambda lines: file.writelines(map(as_element, lines))
        file.write(b"</d:dataset>\n")


@contextmanager
def _parquet(path: Path, with_texts: bool) -> Iterator[Write]:
    import pyarrow as pa
    from pyarrow import parquet

    text, number = pa.string(), pa.int64()
    types: dict[str, pa.DataType] = {
        "change_seq": number,
        "changed_at": pa.timestamp("ms", tz="UTC"),
        "is_deleted": pa.bool_(),
        "revision": number,
        "sets": pa.list_(text),
        "bytes": number,
        "content": pa.binary(),
    }
    names = (*(each.partition("=")[0] for each in _VALUES.split()), "content", *(TEXT_NAMES if with_texts else ()))
    schema = pa.schema([(name, types.get(name, text)) for name in names])
    with path.open("wb") as file, parquet.ParquetWriter(file, schema, compression="zstd") as writer:

        def write(lines: Sequence[Line]) -> None:
            rows = [{**row_of(each.document), "content": each.content, **text_row_of(each)} for each in lines]
            writer.write_table(pa.Table.from_pylist(rows, schema))

        yield write


@contextmanager
def _compressed(path: Path) -> Iterator[gzip.GzipFile]:
    """A gzip file without a name and a time inside, so that its bytes depend on its content alone."""
    with path.open("wb") as file, gzip.GzipFile("", "wb", _COMPRESSION, file, mtime=0) as compressed:
        yield compressed


FORMATS: Mapping[str, DatasetFormat] = {
    "jsonl": DatasetFormat(".jsonl.gz", _jsonl),
    "xml": DatasetFormat(".xml.gz", _xml, has_texts=False),
    "parquet": DatasetFormat(".parquet", _parquet),
}
