"""What the plainest tools need for the same files: curl to fetch, xmllint to validate, sqlite3 to store.

Their sum is "the limit": what a harvest would take on one core if it did nothing else.
"""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from benchmarks.corpus import SiteFolder
from benchmarks.servers import tool
from metaharvest.validation.schemas import VERSIONS

COMMIT_EVERY = 100
FILES_AT_ONCE = 2000
"""How many files one xmllint gets: its command line is as long as the system allows."""

_CATALOG = """\
<catalog xmlns="urn:oasis:names:tc:entity:xmlns:xml:catalog">
  <system systemId="http://www.w3.org/2009/01/xml.xsd" uri="{xml}"/>
  <uri name="http://www.w3.org/2009/01/xml.xsd" uri="{xml}"/>
</catalog>
"""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds on the clock, and of the processor."""

    wall: float = 0.0
    processor: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.wall + other.wall, self.processor + other.processor)


@dataclass(frozen=True, slots=True)
class Limit:
    """What fetching, validating and storing the same files costs with the plainest tools."""

    fetch: Spent
    validate: Spent
    store: Spent

    @property
    def sum(self) -> Spent:
        return self.fetch + self.validate + self.store


def measure(sites: Sequence[SiteFolder], scratch: Path) -> Limit:
    """Measure all three; the sites must be served at this moment."""
    folder = scratch / "yardsticks"
    folder.mkdir()
    try:
        urls = [url for site in sites for _, _, url in site.entries()]
        return Limit(
            _best(lambda: fetch(urls, folder)),
            _best(lambda: _validate(sites, folder)),
            _best(lambda: _store(sites, folder)),
        )
    finally:
        shutil.rmtree(folder)


def _best(measure_once: Callable[[], Spent]) -> Spent:
    """The quickest of three: what the tool can do, not what else the machine was doing."""
    return min((measure_once() for _ in range(3)), key=lambda spent: spent.wall)


def fetch(urls: Sequence[str], folder: Path) -> Spent:
    """What `curl -Z --parallel-max 8` needs to get every URL into a file."""
    config, target = folder / "urls", folder / "fetched"
    config.write_text("".join(f'url = "{url}"\noutput = "{number}.out"\n' for number, url in enumerate(urls)))
    target.mkdir()
    spent = _run(
        [tool("curl", "curl"), "-s", "-S", "-f", "-Z", "--parallel-max", "8", "--config", str(config)], cwd=target
    )
    shutil.rmtree(target)
    return spent


def _validate(sites: Sequence[SiteFolder], folder: Path) -> Spent:
    """`xmllint --schema` with the schema that metaharvest uses, for each version of EML."""
    spent = Spent()
    for version in VERSIONS.values():
        documents = [
            str(site.folder / url.rpartition("/")[2])
            for site in sites
            for _, body, url in site.entries()
            if body.document_type == version.namespace
        ]
        schema, environment = _schema(version.path, folder)
        for start in range(0, len(documents), FILES_AT_ONCE):
            command = [tool("xmllint", "libxml2-utils"), "--noout", "--nonet", "--schema", schema]
            spent += _run([*command, *documents[start : start + FILES_AT_ONCE]], env=environment)
    return spent


def _schema(path: str, folder: Path) -> tuple[str, dict[str, str]]:
    """The schema file in the EMLvp package, and the environment in which xmllint finds the W3C's xml.xsd locally."""
    package = Path(str(files("emlvp")))
    catalog = folder / "catalog.xml"
    catalog.write_text(_CATALOG.format(xml=(package / "schemas/EML2.2.0/xsd/xml.xsd").as_uri()), encoding="utf-8")
    return str(package / path), {**os.environ, "XML_CATALOG_FILES": str(catalog)}


def _store(sites: Sequence[SiteFolder], folder: Path) -> Spent:
    """The `sqlite3` module: the same bytes into a table with a unique key, a commit every hundred."""
    documents = [
        (document_id, 1, (site.folder / url.rpartition("/")[2]).read_bytes())
        for site in sites
        for document_id, _, url in site.entries()
    ]
    for left in folder.glob("store.db*"):
        left.unlink()
    began, busy = time.perf_counter(), time.process_time()
    connection = sqlite3.connect(folder / "store.db", isolation_level=None)
    connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
    connection.execute("CREATE TABLE document (id TEXT, revision INTEGER, content BLOB, UNIQUE (id, revision))")
    for start in range(0, len(documents), COMMIT_EVERY):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO document VALUES (?, ?, ?)", documents[start : start + COMMIT_EVERY])
        connection.execute("COMMIT")
    connection.close()
    return Spent(time.perf_counter() - began, time.process_time() - busy)


def _run(command: Sequence[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> Spent:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(command, cwd=cwd, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
