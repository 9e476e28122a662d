"""`metaharvest check` as the contact of a site uses it: in a folder of their own, with no settings and no database."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from metaharvest.cli import main
from support.harvester import Said, eml, harvest_list

LOOPBACK = ("--allow-network", "127.0.0.0/8")


def broken(docid: str) -> bytes:
    """A document with one error, in line 6, column 5."""
    return eml(docid).replace(b"<contact>", b"<contat>").replace(b"</contact>", b"</contat>")


def check(*arguments: str) -> Said:
    """Run the command in this process, in the working directory."""
    out, err, code = io.BytesIO(), io.BytesIO(), 0
    with (
        io.TextIOWrapper(out, "utf-8", write_through=True) as stdout,
        io.TextIOWrapper(err, "utf-8", write_through=True) as stderr,
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            main(["check", *arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Said(code, out.getvalue().decode(), err.getvalue().decode())


def put(folder: Path, files: dict[str, bytes]) -> None:
    """Write these files, and the folders that they are in."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def local_list(*docids: str) -> bytes:
    """A list that names `eml/DOCID.xml` beside itself for each docid."""
    return harvest_list([(docid, f"eml/{docid}.xml") for docid in docids])
