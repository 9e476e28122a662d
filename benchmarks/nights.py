"""The benchmarks that harvest: a full night, a quiet one, slow sites, growth, and other databases."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import inspect, text

from benchmarks import databases, yardsticks
from benchmarks.corpus import SiteFolder, write_documents, write_list
from benchmarks.installation import NIGHT, Cost, Installation
from benchmarks.servers import FORGETFUL, free_port, hosts, nginx, slow_server
from benchmarks.states import THIS, State
from benchmarks.table import Line

SITES = 10
QUIET_SITES, QUIET_DOCUMENTS, QUIET_BYTES = 1000, 500, 2000
BEFORE = datetime.fromisoformat("2029-12-31T00:00:00")
"""When the documents of quiet nights were stored; UTC, without a zone as the tables have it."""

SLOW_SITES, SLOW_DOCUMENTS, LATENCY, CONNECTIONS = 26, 200, 0.1, 4
SLOW_SETTINGS = {"default settings": None, f"workers = {CONNECTIONS * SLOW_SITES}": CONNECTIONS * SLOW_SITES}
"""What slow sites are harvested with: the name in tables, and `workers`, or None for the default."""


class NotHarvested(Exception):
    """A run did not do what it was measured for."""


def full_night(scratch: Path, scale: float) -> Iterator[Line]:
    """5,000 new documents of 10 sites, beside the limit."""
    with served(scratch, SITES, scaled(500, scale)) as sites:
        limit = yardsticks.measure(sites, scratch)
        yield Line("fetching: curl -Z", limit.fetch.wall, note=_processor(limit.fetch.processor))
        yield Line("validating: xmllint", limit.validate.wall, note=_processor(limit.validate.processor))
        yield Line("storing: sqlite3", limit.store.wall, note=_processor(limit.store.processor))
        cost = first_night(scratch, sites)
    total, documents = limit.sum, sum(site.documents for site in sites)
    yield Line("full night", cost.wall, "s", "limit", total.wall, goal=1.5, goal_is_ratio=True, note=_of(cost))
    yield Line("full night, processor", cost.processor, "s", "limit", total.processor)
    yield Line("full night, a document", cost.wall / documents * 1000, "ms", "limit", total.wall / documents * 1000)


def quiet_night(scratch: Path, scale: float) -> Iterator[Line]:
    """1,000 sites with 500 unchanged documents each: lists answered 304, and lists that must be read."""
    network = quiet_network(scratch, scale)
    with closing(QuietNights(scratch / "quiet", network.sites)) as quiet:
        with network.serve():
            curl = yardsticks.fetch([site.list_url for site in network.sites], scratch)
            quiet.run()
            same = quiet.run()
        network.rewrite("another night, nothing new")
        with network.serve(FORGETFUL):
            read = quiet.run()
    yield Line("fetching the lists: curl -Z", curl.wall, note=_processor(curl.processor))
    beside = f"curl, {len(network.sites):,} lists"
    yield Line("quiet night, lists 304", same.wall, "s", beside, curl.wall, goal=10, note=_of(same))
    yield Line("quiet night, lists read", read.wall, "s", beside, curl.wall, goal=30, note=_of(read))


def slow_sites(scratch: Path, scale: float) -> Iterator[Line]:
    """26 sites whose servers take 100 ms for every answer, beside one of them alone."""
    with slow_network(scratch, SLOW_SITES, scaled(SLOW_DOCUMENTS, scale)) as sites:
        alone = first_night(scratch, sites[:1])
        yield Line("one slow site alone", alone.wall, note=_of(alone))
        for settings, workers in SLOW_SETTINGS.items():
            cost = first_night(scratch, sites, workers)
            name, note = f"{SLOW_SITES} slow sites, {settings}", _of(cost)
            yield Line(name, cost.wall, "s", "one alone", alone.wall, goal=1.3, goal_is_ratio=True, note=note)


def growth(scratch: Path, scale: float) -> Iterator[Line]:
    """1,000, 10,000 and 100,000 new documents: time per document without start-up, and peak memory."""
    first: float | None = None
    for documents in (1000, 10_000, 100_000):
        with served(scratch, SITES, scaled(documents // SITES, scale)) as sites:
            cost, idle = _first_night_and_idle(scratch, sites)
        number = sum(site.documents for site in sites)
        each = (cost.wall - idle.wall) / number * 1000
        compared = {"beside": "the fewest", "yardstick": first, "goal": 1.3, "goal_is_ratio": True} if first else {}
        first = first or each
        yield Line(f"{number:,} documents, each", each, "ms", note=_of(cost), **compared)  # type: ignore[arg-type]
        yield Line(f"{number:,} documents, peak memory", cost.memory, "MB", goal=300)


def other_databases(scratch: Path, scale: float) -> Iterator[Line]:
    """The full night on every database that is there."""
    with served(scratch, SITES, scaled(500, scale)) as sites:
        sqlite = first_night(scratch, sites)
        yield Line("full night, SQLite", sqlite.wall, note=_of(sqlite))
        for kind in databases.SERVERS:
            try:
                with databases.server_database(kind) as url:
                    cost = first_night(scratch, sites, url=url)
            except databases.NoServer as reason:
                print(f"The full night on {kind} was skipped: {reason}.")
                continue
            yield Line(f"full night, {kind}", cost.wall, beside="SQLite", yardstick=sqlite.wall, note=_of(cost))


def first_night(
    scratch: Path,
    sites: Sequence[SiteFolder],
    workers: int | None = None,
    url: str = databases.SQLITE,
    state: State = THIS,
) -> Cost:
    """The cost of a run that harvests all documents of the sites for the first time, into a database of its own."""
    with _installed(scratch, sites, workers, url, state) as installation:
        return _harvest(installation, sites)


@contextmanager
def served(scratch: Path, number: int, documents: int) -> Iterator[list[SiteFolder]]:
    """This number of sites, with this number of documents each, served by nginx; their files are deleted at the end."""
    port, addresses = free_port(), hosts(number)
    sites = _sites(scratch, addresses, port, documents)
    _write(sites)
    try:
        with nginx(scratch / "root", addresses, port, scratch):
            yield sites
    finally:
        shutil.rmtree(scratch / "root")


@contextmanager
def slow_network(scratch: Path, number: int, documents: int, latency: float = LATENCY) -> Iterator[list[SiteFolder]]:
    """This number of sites with this number of documents each; their servers wait `latency` seconds for each answer."""
    port, addresses = free_port(), hosts(number)
    sites = _sites(scratch, addresses, port, documents)
    _write(sites)
    with slow_server(scratch / "root", addresses, port, latency):
        yield sites


@dataclass(frozen=True, slots=True)
class QuietNetwork:
    """Many sites of which only the lists are there: their documents are not asked for."""

    scratch: Path
    addresses: Sequence[str]
    port: int
    sites: Sequence[SiteFolder]

    def serve(self, options: str = "") -> AbstractContextManager[None]:
        """nginx with these options, as long as the context lasts."""
        return nginx(self.scratch / "root", self.addresses, self.port, self.scratch, options)

    def rewrite(self, comment: str) -> None:
        """Write the lists with other bytes."""
        for site in self.sites:
            write_list(site, comment)


def quiet_network(scratch: Path, scale: float) -> QuietNetwork:
    """1,000 sites, their lists written."""
    port, addresses = free_port(), hosts(scaled(QUIET_SITES, scale))
    network = QuietNetwork(scratch, addresses, port, _sites(scratch, addresses, port, QUIET_DOCUMENTS))
    network.rewrite("")
    return network


class QuietNights:
    """An installation whose sites list only documents that it holds. In the first run it gets to know their lists."""

    def __init__(self, folder: Path, sites: Sequence[SiteFolder], state: State = THIS) -> None:
        self._sites = sites
        self._nights = 0
        self._installation = Installation(folder, state=state)
        try:
            self._installation.register(sites)
            _fill(self._installation, sites)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._installation.close()

    def run(self) -> Cost:
        """The next night, with a look whether every document was accounted for and every report written."""
        cost = self._installation.run(NIGHT + timedelta(days=self._nights))
        self._nights += 1
        last = "(SELECT max(run_id) FROM harvest_run)"
        unchanged = sum(site.documents for site in self._sites)
        _expect(self._installation, f"SELECT sum(unchanged) FROM harvest_site_run WHERE run_id = {last}", unchanged)
        _expect(self._installation, f"SELECT count(*) FROM report_outbox WHERE run_id = {last}", len(self._sites) + 1)
        return cost


def scaled(number: int, scale: float) -> int:
    """That many, times the scale; at least one."""
    return max(1, round(number * scale))


def _first_night_and_idle(scratch: Path, sites: Sequence[SiteFolder]) -> tuple[Cost, Cost]:
    """The costs of a first night, and of a run after it in which nothing is due."""
    with _installed(scratch, sites) as installation:
        return _harvest(installation, sites), installation.run(NIGHT)


def _harvest(installation: Installation, sites: Sequence[SiteFolder]) -> Cost:
    cost = installation.run(NIGHT)
    _expect(installation, "SELECT count(*) FROM document_revision", sum(site.documents for site in sites))
    _expect(installation, "SELECT count(*) FROM report_outbox", len(sites) + 1)
    return cost


def _expect(installation: Installation, statement: str, number: int) -> None:
    found = installation.number(statement)
    if found != number:
        raise NotHarvested(f"{statement}: {found:,} instead of {number:,}")


@contextmanager
def _installed(
    scratch: Path,
    sites: Sequence[SiteFolder],
    workers: int | None = None,
    url: str = databases.SQLITE,
    state: State = THIS,
) -> Iterator[Installation]:
    folder = scratch / "installation"
    installation = Installation(folder, url, workers, state)
    try:
        installation.register(sites)
        yield installation
    finally:
        installation.close()
        shutil.rmtree(folder)


def _sites(scratch: Path, addresses: Sequence[str], port: int, documents: int) -> list[SiteFolder]:
    names = [f"site-{number:04}" for number in range(1, len(addresses) + 1)]
    return [
        SiteFolder(name, scratch / "root" / name, f"http://{address}:{port}/{name}", documents)
        for name, address in zip(names, addresses, strict=True)
    ]


def _write(sites: Sequence[SiteFolder]) -> None:
    for site in sites:
        write_documents(site)
        write_list(site)


def _fill(installation: Installation, sites: Sequence[SiteFolder]) -> None:
    """What a first night would have left of these documents, by SQL; their content is shorter than real ones."""
    numbers = installation.site_numbers()
    into_target = installation.table("document_revision").insert()
    into_ledger = installation.table("harvest_document").insert()
    # The versions that are compared may be from before the column `state`.
    columns = into_ledger.table.c
    stands = {name: value for name, value in (("outcome", "inserted"), ("state", "held")) if name in columns}
    for site in sites:
        stored, ledger = [], []
        for document_id, body, url in site.entries():
            known = {
                "site_schedule_id": numbers[site.name],
                "document_id": document_id,
                "revision": 1,
                "document_type": body.document_type,
                "sha256": "0" * 64,
            }
            held = {"content": bytes(QUIET_BYTES), "size": QUIET_BYTES, "inserted_at": BEFORE}
            stored.append({**known, **held, "source_url": url})
            ledger.append({**known, **stands, "document_url": url, "target_revision": 1, "attempts": 0})
        with installation.engine.begin() as connection:
            connection.execute(into_target, stored)
            connection.execute(into_ledger, ledger)
    _fill_catalogue(installation)


def _fill_catalogue(installation: Installation) -> None:
    """The current documents; the versions that are compared may be from before this table."""
    if "catalogue_document" not in inspect(installation.engine).get_table_names():
        return
    with installation.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO catalogue_document (catalogue_document_id, document_id, item_identifier, document_type, "
                "revision, sha256, title, site_schedule_id, deleted, changed_at, change_seq) "
                "SELECT document_revision_id, document_id, document_id, document_type, revision, sha256, '', "
                "site_schedule_id, FALSE, inserted_at, document_revision_id FROM document_revision"
            )
        )


def _of(cost: Cost) -> str:
    return f"{_processor(cost.processor)}, {cost.memory:.0f} MB"


def _processor(seconds: float) -> str:
    return f"processor {seconds:.1f} s"
