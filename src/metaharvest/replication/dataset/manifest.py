"""The manifest of a dataset: its files and its changes. A value, and its JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime

from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen

FORMAT_VERSION = 1
"""The version of the files and of the manifest; programs that read them may rely on it."""
_NUMBERS = "format documents_per_file with_texts since first_change_seq last_change_seq documents deleted texts"


@frozen
class DatasetFile:
    """A complete file: its name, numbers of documents and tombstones, first and last change, length and digest.

    `texts` is the number of full texts.
    """

    file: str
    documents: int
    deleted: int
    first_change_seq: int
    last_change_seq: int
    bytes: int
    sha256: str
    texts: int = 0


@frozen
class Manifest:
    """The complete files of a dataset in `format`, which has the changes after the number `since`.

    `documents_per_file` is the most lines of a file. `created_at` is None until the dataset is complete.
    `with_texts`: full texts are in it.
    """

    format: str
    since: int
    documents_per_file: int
    files: tuple[DatasetFile, ...] = ()
    created_at: datetime | None = None
    with_texts: bool = False

    @property
    def first_change_seq(self) -> int | None:
        """The number of the first change; None if there is none."""
        return self.files[0].first_change_seq if self.files else None

    @property
    def last_change_seq(self) -> int:
        """The number of the last change, after which the next dataset begins."""
        return self.files[-1].last_change_seq if self.files else self.since

    @property
    def documents(self) -> int:
        """The number of documents."""
        return sum(each.documents for each in self.files)

    @property
    def deleted(self) -> int:
        """The number of tombstones."""
        return sum(each.deleted for each in self.files)

    @property
    def texts(self) -> int:
        """The number of full texts."""
        return sum(each.texts for each in self.files)

    def with_file(self, file: DatasetFile) -> Manifest:
        """The manifest with one more complete file."""
        return replace(self, files=(*self.files, file))

    def is_begun_like(self, other: Manifest) -> bool:
        """True if both are of the same command."""
        return replace(self, files=(), created_at=None) == replace(other, files=(), created_at=None)


def as_json(manifest: Manifest) -> bytes:
    """The manifest as a JSON document."""
    value = {
        "format_version": FORMAT_VERSION,
        **picked(manifest, _NUMBERS),
        "created_at": manifest.created_at and manifest.created_at.isoformat(),
        "files": [asdict(each) for each in manifest.files],
    }
    return json.dumps(value, indent=2).encode() + b"\n"


def from_json(content: bytes) -> Manifest:
    """The manifest of a JSON document that `as_json` made. Raises ValueError for any other."""
    try:
        value = json.loads(content)
        if value["format_version"] != FORMAT_VERSION:
            raise ValueError(f"the version is {value['format_version']}")
        files = tuple(DatasetFile(**each) for each in value["files"])
        with_texts = value.get("with_texts", False)
        return Manifest(value["format"], value["since"], value["documents_per_file"], files, with_texts=with_texts)
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from error
