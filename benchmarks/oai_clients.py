"""`python -m benchmarks.oai_clients NAME URL`: lists a repository with one client; prints what that took, as JSON.

Each has its metadata in hand at the end: ours as documents, the others as the dictionaries that they make. A harvest
has digests of the documents made, too.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from ipaddress import ip_network
from math import inf


def metaharvest(url: str, *, digests: bool = False) -> int:
    """The client of the harvester alone, as `metaharvest oai validate` uses it; with `digests`, as a run does."""
    from metaharvest.config.settings import HttpSettings
    from metaharvest.fetch.client import Fetcher
    from metaharvest.model import Finding, OaiOptions, Site, SiteOptions
    from metaharvest.sources.oai_pmh.source import OaiSource

    class NoHurry:
        def left(self) -> float:
            return inf

        async def sleep(self, seconds: float) -> None:
            await asyncio.sleep(seconds)

        def stop_reason(self) -> Finding | None:
            return None

    async def listed() -> int:
        http = HttpSettings(allow_networks=(ip_network("127.0.0.0/8"),))
        site = Site(1, "pages", url, (), options=SiteOptions(oai=OaiOptions(origin="pages")))
        async with Fetcher(http, name="Benchmark", administrator=None) as fetcher:
            listing = await OaiSource(site, fetcher, is_harvest=digests).list_records(None, NoHurry(), full=True)
            return sum([len(page.records) async for page in listing.pages])

    return asyncio.run(listed())


def scythe(url: str) -> int:
    """oaipmh-scythe."""
    client = importlib.import_module("oaipmh_scythe").Scythe(url)
    return sum(bool(record.metadata) for record in client.list_records(metadata_prefix="oai_dc"))


def sickle(url: str) -> int:
    """Sickle."""
    client = importlib.import_module("sickle").Sickle(url)
    return sum(bool(record.metadata) for record in client.ListRecords(metadataPrefix="oai_dc"))


CLIENTS: dict[str, Callable[[str], int]] = {
    "metaharvest": metaharvest,
    "with-digests": partial(metaharvest, digests=True),
    "scythe": scythe,
    "sickle": sickle,
}
_OURS = "metaharvest.sources.oai_pmh.source"
MODULES = {"metaharvest": _OURS, "with-digests": _OURS, "scythe": "oaipmh_scythe", "sickle": "sickle"}

if __name__ == "__main__":
    # As the harvester's command line has it, for all of them.
    gc.set_threshold(150_000, *gc.get_threshold()[1:])
    importlib.import_module(MODULES[sys.argv[1]])
    wall, processor = time.perf_counter(), time.process_time()
    number = CLIENTS[sys.argv[1]](sys.argv[2])
    took = {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor}
    print(json.dumps({"records": number, **took}))
