"""A folder of EML documents that a site publishes with `metaharvest list`, and the list in it."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metaharvest.cli import main
from metaharvest.model import ListedDocument
from metaharvest.sources.harvest_list.source import read_list
from support.harvester import Said, eml

BASE = "https://www.example.org/eml/"


def said(*arguments: str | Path) -> Said:
    """What `metaharvest` prints for these arguments, and its exit code; without settings."""
    out, err, code = io.BytesIO(), io.BytesIO(), 0
    with (
        io.TextIOWrapper(out, "utf-8", write_through=True) as stdout,
        io.TextIOWrapper(err, "utf-8", write_through=True) as stderr,
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Said(code, out.getvalue().decode(), err.getvalue().decode())


@dataclass(frozen=True)
class SiteFolder:
    """A folder of documents at `base` on the web."""

    path: Path
    base: str = BASE

    @property
    def list_file(self) -> Path:
        return self.path / "harvest-list.xml"

    def put(self, name: str, docid: str, title: str = "A title") -> Path:
        """A small valid document."""
        return self.put_bytes(name, eml(docid, title))

    def put_bytes(self, name: str, content: bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def build(self, *options: str | Path) -> Said:
        return said("list", "build", self.path, "--base-url", self.base, *options)

    def built(self, *options: str | Path, code: int = 0) -> dict[str, Any]:
        """What `build --json` says, whose exit code is `code`."""
        told = self.build("--json", *options)
        assert told.code == code, told
        return dict(json.loads(told.out))

    def listed(self) -> dict[str, str]:
        """docid -> URL, as the harvest reads the list; without the base of the URLs."""
        return {document.docid: document.url.removeprefix(self.base) for document in documents_of(self.list_file)}


def documents_of(path: Path) -> list[ListedDocument]:
    """The documents of a list, as the harvest reads it: it is valid."""
    with path.open("rb") as file:
        return list(read_list(file, files_allowed=True))


def changes(told: dict[str, Any]) -> dict[str, str]:
    """docid -> change, of all entries that `--json` tells of."""
    return {entry["docid"]: entry["kind"] for entry in told["entries"]}


def problems(told: dict[str, Any]) -> list[tuple[str, str]]:
    """(file, rule) of all findings that `--json` tells of."""
    return [(finding["file"], finding["rule"]) for finding in told["findings"]]
