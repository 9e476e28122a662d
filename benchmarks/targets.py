"""The benchmark of targets outside of the harvester's own database: what a run adds to the target's own time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import make_url

from benchmarks import databases
from benchmarks.corpus import Body, SiteFolder
from benchmarks.installation import NIGHT, Cost, Installation
from benchmarks.nights import NotHarvested, scaled, served
from benchmarks.table import Line
from metaharvest.database.engine import open_url

if TYPE_CHECKING:
    from support.gmn import MemberNode

SITES, DOCUMENTS = 4, 100
AT_ONCE = (1, 4)

TARGET = """\
[target]
kind = "dataone"
url = "{url}"
rights_holder = "CN=benchmark"
uploads_at_once = {at_once}
"""


def targets(scratch: Path, scale: float) -> Iterator[Line]:
    """400 new documents into a DataONE member node (GMN), and the night after, beside the same creations alone."""
    with member_node(scratch) as node, served(scratch, SITES, scaled(DOCUMENTS, scale)) as sites:
        number = sum(site.documents for site in sites)
        for at_once in AT_ONCE:
            how = f"{at_once} at a time"
            alone = _created(node, sites, at_once) / number * 1000
            yield Line(f"creations alone, {how}", alone, "ms", note="each")
            first, second, idle = _nights(scratch, node, sites, at_once)
            each = (first.wall - idle.wall) / number * 1000
            yield Line(f"a first night, {how}", each, "ms", "alone", alone, note="each")
            processor = (first.processor - idle.processor) / number * 1000
            yield Line(f"a first night, {how}, our processor time", processor, "ms", "alone", alone, note="each")
            each = (second.wall - idle.wall) / number * 1000
            yield Line(f"the night after, {how}", each, "ms", "alone", alone, note="each")


@contextmanager
def member_node(scratch: Path) -> Iterator[MemberNode]:
    """The node of the tests, without objects. Raises NoServer if PostgreSQL or GMN is not there."""
    sys.path.append(str(Path(__file__).parent.parent / "tests"))
    from support.gmn import MemberNode, is_installed

    if not is_installed():
        raise databases.NoServer("GMN is not installed: `cd tests && ../.venv/bin/python -m support.gmn` does it")
    folder = scratch / "node"
    folder.mkdir()
    with databases.server_database("PostgreSQL") as url:
        engine = open_url(make_url(url))
        node = MemberNode(folder, engine)
        try:
            yield node
        finally:
            node.kill()
            engine.dispose()


def _created(node: MemberNode, sites: Sequence[SiteFolder], at_once: int) -> float:
    """The seconds that the node takes for these documents, sent by the plainest of clients."""
    node.empty()

    def create(entry: tuple[str, Body, str]) -> None:
        document_id, body, _ = entry
        docid = f"{document_id}.1"
        node.put(docid, body.named(docid), series_id=document_id, format_id=body.document_type)

    began = time.perf_counter()
    with ThreadPoolExecutor(at_once) as threads:
        list(threads.map(create, chain.from_iterable(site.entries() for site in sites)))
    return time.perf_counter() - began


def _nights(scratch: Path, node: MemberNode, sites: Sequence[SiteFolder], at_once: int) -> tuple[Cost, Cost, Cost]:
    """A first night, the one after it, and a run in which nothing is due."""
    node.empty()
    target = TARGET.format(url=node.open_url, at_once=at_once)
    with closing(Installation(scratch / f"installation-{at_once}", more=target)) as installation:
        installation.register(sites)
        first = installation.run(NIGHT)
        number = sum(site.documents for site in sites)
        if node.number() != number:
            raise NotHarvested(f"the node has {node.number():,} objects instead of {number:,}")
        second = installation.run(NIGHT + timedelta(days=1))
        return first, second, installation.run(NIGHT + timedelta(days=1))
