"""The benchmark of the folder target: what it, and a run, add to the copying of the same files."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

from sqlalchemy import make_url

from benchmarks.corpus import SiteFolder
from benchmarks.installation import NIGHT, Cost, Installation
from benchmarks.nights import NotHarvested, scaled, served
from benchmarks.table import Line
from metaharvest.database.engine import create_tables, open_url
from metaharvest.model import FetchedDocument, ListedDocument
from metaharvest.targets.base import Upload
from metaharvest.targets.folder.target import FolderTarget

SITES, DOCUMENTS = 10, 200
TARGET = '[target]\nkind = "folder"\nfolder = "documents"\n'


def folder(scratch: Path, scale: float) -> Iterator[Line]:
    """2,000 new documents into a folder: the target alone, a first night and the one after, beside `cp` and `sync`."""
    with served(scratch, SITES, scaled(DOCUMENTS, scale)) as sites:
        uploads = list(_uploads(sites))
        number = len(uploads)
        put = {threads: _put(scratch, uploads, threads) / number * 1000 for threads in (1, 8)}
        copied = min(_copied(scratch) for _ in range(3)) / number * 1000
        yield Line("cp and sync of the same files", copied, "ms", note="each")
        for threads, each in put.items():
            yield Line(f"the folder target alone, {threads} at a time", each, "ms", "cp and sync", copied, note="each")
        embedded, _, idle = _nights(scratch / "embedded", sites, "")
        inside = (embedded.wall - idle.wall) / number * 1000
        yield Line("a first night, embedded", inside, "ms", note="each")
        first, second, idle = _nights(scratch / "installation", sites, TARGET)
        each = (first.wall - idle.wall) / number * 1000
        yield Line("a first night into a folder", each, "ms", "embedded", inside, note="each")
        each = (second.wall - idle.wall) / number * 1000
        yield Line("the night after", each, "ms", "embedded", inside, note="each")


def _uploads(sites: Sequence[SiteFolder]) -> Iterator[Upload]:
    for document_id, body, url in chain.from_iterable(site.entries() for site in sites):
        content = body.named(f"{document_id}.1")
        document = ListedDocument(document_id, 1, body.document_type, url)
        yield Upload(FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.0), 1, datetime.now(UTC))


def _put(scratch: Path, uploads: Sequence[Upload], threads: int) -> float:
    """The seconds that the target takes for these documents, this number at a time; they stay in the folder `put`."""
    shutil.rmtree(scratch / "put", ignore_errors=True)
    database = scratch / f"put-{threads}.db"
    engine = open_url(make_url(f"sqlite:///{database}"))
    create_tables(engine)
    target = FolderTarget(scratch / "put", "tree", 5000, engine)
    began = time.perf_counter()
    with target.session(None) as session, ThreadPoolExecutor(threads) as pool:
        list(pool.map(session.upload, uploads))
    taken = time.perf_counter() - began
    engine.dispose()
    return taken


def _copied(scratch: Path) -> float:
    """The seconds that `cp` takes for the files in the folder `put`, and `sync` until they are on the disk."""
    copy = scratch / "copy"
    subprocess.run(["sync", "--file-system", str(scratch)], check=True)
    began = time.perf_counter()
    subprocess.run(["cp", "--recursive", str(scratch / "put"), str(copy)], check=True)
    subprocess.run(["sync", "--file-system", str(copy)], check=True)
    taken = time.perf_counter() - began
    shutil.rmtree(copy)
    return taken


def _nights(folder: Path, sites: Sequence[SiteFolder], target: str) -> tuple[Cost, Cost, Cost]:
    """A first night, the one after it, and a run in which nothing is due."""
    with closing(Installation(folder, more=target)) as installation:
        installation.register(sites)
        first = installation.run(NIGHT)
        number = sum(site.documents for site in sites)
        there = len(list(folder.glob("documents/*/*/*.xml"))) if target else number
        if there != number:
            raise NotHarvested(f"the folder has {there:,} documents instead of {number:,}")
        second = installation.run(NIGHT + timedelta(days=1))
        return first, second, installation.run(NIGHT + timedelta(days=1))
