"""The formats of dataset files: a document as a line of JSON, as an element of an XML file, or as a row of a table."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from metaharvest.replication.dataset.lines import NAMESPACE, TEXT_NAMES, Line, as_element, as_json, row_of, text_row_of

_COMPRESSION = 4
"""The level of gzip: level 6 takes three times as long, and the files are 6 percent smaller."""

Write = Callable[[Sequence[Line]], None]


@dataclass(frozen=True, slots=True)
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
    names: tuple[str, ...] = (
        "change_seq", "changed_at", "is_deleted", "document_id", "revision", "item_identifier", "origin",
        "document_type", "title", "site", "sets", "datestamp", "base_url", "url", "sha256", "bytes", "content",
    )  # fmt: skip
    names += TEXT_NAMES if with_texts else ()
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
