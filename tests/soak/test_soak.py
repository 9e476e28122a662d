"""Runs over some 250 documents, killed with SIGKILL again and again, end as those of a world where nothing happened.

Two worlds harvest the same network, night after night. In one, each night is one run. In the other, the nightly run is
killed at moments of chance, and started again, until one comes to its end; where it was closed already, the delivery of
its reports is. After every night both are compared, row for row and byte for byte: the target's documents, the ledger,
the schedule, the site runs with their totals, the log and the detail log of every site, the reports to sites with their
deliveries, and the messages in the Maildir, each of which must be there exactly once.

What is left out of the comparison, because it tells that there were more runs than one, or when:
- the numbers that tables give out (and what points to them), times and durations, in sentences too;
- rows of the log that belong to a run and not to a site (HarvesterStartup, HarvesterShutdown, RunInterrupted,
  LogPurged, ReportQueued for the administrators): a killed run has its own;
- that a site run which was taken up again read its list again: these rows of the log count once a site run;
- the reports to the administrators, one a run: each run must have exactly one, delivered as it was queued, that names
  the run's sites, and every killed run is told of as interrupted, once.
"""

import contextlib
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from support.databases import KINDS, Servers
from support.gmn import MemberNode
from support.http_server import HttpServer
from support.metacat_server import Metacat
from support.remote_target import Repository
from support.soak_killer import Killer
from support.soak_network import ON_CHANGE, Network, day
from support.soak_world import Rows, World, problems_of, state_of

KILLS_A_NIGHT = (4, 25)


@pytest.fixture(params=KINDS)
def worlds(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> Iterator[tuple[World, World]]:
    """An undisturbed world and one to be disturbed, each with a database without tables."""
    with servers.another(request.param) as first, servers.another(request.param) as second:
        made = World(tmp_path / "undisturbed", first), World(tmp_path / "disturbed", second)
        yield made
        for world in made:
            world.close()


def test_killed_runs_end_as_if_nothing_had_happened(
    worlds: tuple[World, World], server: HttpServer, kills: int, chance: random.Random
) -> None:
    undisturbed, disturbed = worlds
    network = prepared(worlds, server)
    calm, killer = Killer(undisturbed, server, chance), Killer(disturbed, server, chance)
    for night, found in nights(network, calm, killer, kills, chance):
        found += differences(state_of(undisturbed, day(night)), state_of(disturbed, day(night)))
        compared(night, killer, found)


@pytest.mark.parametrize("worlds", ["postgresql"], indirect=True)
def test_a_remote_target_receives_every_document_exactly_once_however_often_runs_are_killed(
    worlds: tuple[World, World], server: HttpServer, kills: int, chance: random.Random
) -> None:
    """The target is reached by HTTP and keeps documents by itself; only what it received, and when, differs from above.

    A document that arrived while its run was killed is looked up, and not fetched again: the rows that say that it was
    fetched and checked are missing, with the warnings of the check, and one more warning tells of it. Therefore of the
    log only the outcomes are compared, of the detail log what is not about such documents, and no mails' text; nor how
    many reports a site gets that asks for them where its warnings change.
    """
    undisturbed, disturbed = worlds
    network = prepared(worlds, server, sites_own_documents=False)
    with Repository() as one, Repository() as other:
        calm = Killer(undisturbed, server, chance, starter(undisturbed, one), one.received)
        killer = Killer(disturbed, server, chance, starter(disturbed, other), other.received)
        for night, found in nights(network, calm, killer, kills, chance):
            found += differences(remote_state_of(worlds, undisturbed), remote_state_of(worlds, disturbed))
            if other.documents != one.documents:
                found.append("the two repositories do not hold the same")
            found += [f"{docid} arrived {n} times" for docid, n in Counter(other.received).items() if n > 1]
            compared(night, killer, found)
        print(f"{len(other.received)} documents, {len(looked_up(disturbed))} of them looked up")


FOLDER = '[target]\nkind = "folder"\nfolder = "repository"\nfiles_per_folder = 40\n'


@pytest.fixture
def folder_worlds(tmp_path: Path) -> Iterator[tuple[World, World]]:
    """Worlds whose documents go into a folder."""
    made = World(tmp_path / "undisturbed", settings=FOLDER), World(tmp_path / "disturbed", settings=FOLDER)
    yield made
    for world in made:
        world.close()


def test_a_folder_has_every_document_exactly_once_however_often_runs_are_killed(
    folder_worlds: tuple[World, World], server: HttpServer, kills: int, chance: random.Random
) -> None:
    """What is left out of the comparison is said above. Its index, made anew from the files, says what it said."""
    undisturbed, disturbed = folder_worlds
    network = prepared(folder_worlds, server, sites_own_documents=False)
    arrived = Arrived(lambda: names_of(disturbed).total())
    calm, killer = Killer(undisturbed, server, chance), Killer(disturbed, server, chance, uploads=arrived)
    for night, found in nights(network, calm, killer, kills, chance):
        found += differences(remote_state_of(folder_worlds, undisturbed), remote_state_of(folder_worlds, disturbed))
        contents = [files_of(world) for world in folder_worlds]
        if contents[0] != contents[1]:
            found.append(f"the folders do not hold the same: {sorted(contents[0].items() ^ contents[1].items())[:3]}")
        found += [f"there are {n} of {name}" for name, n in names_of(disturbed).items() if n > 1]
        held = json_of(disturbed)
        assert disturbed.start("target", "rebuild").wait() == 0, disturbed.said()
        if odd := set(held) ^ set(json_of(disturbed)):
            found.append(f"the index does not say what the files say: {sorted(odd)[:3]}")
        compared(night, killer, found)
    print(f"{len(files_of(disturbed))} documents, {len(looked_up(disturbed))} of them looked up")


USER = "uid=harvester,o=LTER,dc=ecoinformatics,dc=org"


@pytest.fixture
def metacats(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Metacat, Metacat]]:
    """Two that take their time, so that uploads are under way at every moment."""
    monkeypatch.setenv("METACAT_PASSWORD", "secret")
    with Metacat({USER: "secret"}, slowest=0.02) as one, Metacat({USER: "secret"}, slowest=0.02) as other:
        yield one, other


@pytest.fixture
def metacat_worlds(tmp_path: Path, metacats: tuple[Metacat, Metacat]) -> Iterator[tuple[World, World]]:
    """Worlds whose documents go into a Metacat each, by its old interface."""
    login = f'username = "{USER}"\npassword = "env:METACAT_PASSWORD"\n'
    one, other = (f'[target]\nkind = "metacat"\nurl = "{each.url}"\n{login}' for each in metacats)
    made = World(tmp_path / "undisturbed", settings=one), World(tmp_path / "disturbed", settings=other)
    yield made
    for world in made:
        world.close()


def test_a_metacat_receives_every_document_exactly_once_however_often_runs_are_killed(
    metacat_worlds: tuple[World, World],
    metacats: tuple[Metacat, Metacat],
    server: HttpServer,
    kills: int,
    chance: random.Random,
) -> None:
    """What is left out of the comparison is said above."""
    # Each night takes long: several requests are made for every document.
    kills = max(1, kills // 2)
    (undisturbed, disturbed), (one, other) = metacat_worlds, metacats
    network = prepared(metacat_worlds, server, sites_own_documents=False)
    calm, killer = Killer(undisturbed, server, chance), Killer(disturbed, server, chance, uploads=other.written)
    for night, found in nights(network, calm, killer, kills, chance):
        found += differences(remote_state_of(metacat_worlds, undisturbed), remote_state_of(metacat_worlds, disturbed))
        if other.held != one.held:
            found.append(f"the two do not hold the same: {sorted(other.held.items() ^ one.held.items())[:3]}")
        found += [f"{docid} was stored {n} times" for (_, docid), n in Counter(other.written).items() if n > 1]
        compared(night, killer, found)
    print(f"{len(other.written)} documents, {len(looked_up(disturbed))} of them looked up")


@pytest.fixture
def node(servers: Servers) -> MemberNode:
    return servers.member_node()


@pytest.fixture
def node_worlds(
    tmp_path: Path, metacats: tuple[Metacat, Metacat], node: MemberNode, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[World, World]]:
    """The documents of the disturbed one go into a member node, which is not to check them again itself."""
    monkeypatch.setenv("NODE_TOKEN", node.token())
    login = f'username = "{USER}"\npassword = "env:METACAT_PASSWORD"\n'
    calm = f'[target]\nkind = "metacat"\nurl = "{metacats[0].url}"\n{login}'
    token = 'token = "env:NODE_TOKEN"\nformat_id = "application/octet-stream"\n'
    made = (
        World(tmp_path / "undisturbed", settings=calm),
        World(tmp_path / "disturbed", settings=f'[target]\nkind = "dataone"\nurl = "{node.url}"\n{token}'),
    )
    yield made
    for world in made:
        world.close()


def test_a_member_node_receives_every_document_exactly_once_however_often_runs_are_killed(
    node_worlds: tuple[World, World],
    metacats: tuple[Metacat, Metacat],
    node: MemberNode,
    server: HttpServer,
    kills: int,
    chance: random.Random,
) -> None:
    """What is left out of the comparison is said above. Two at once would damage the bytes that the node has."""
    # A node takes much longer for a document than the other targets.
    kills = max(1, kills // 2)
    undisturbed, disturbed = node_worlds
    network = prepared(node_worlds, server, sites_own_documents=False, many=0.5)
    calm, killer = Killer(undisturbed, server, chance), Killer(disturbed, server, chance, uploads=Arrived(node.number))
    for night, found in nights(network, calm, killer, kills, chance, slower=2):
        found += differences(remote_state_of(node_worlds, undisturbed), remote_state_of(node_worlds, disturbed))
        if node.held() != metacats[0].held:
            found.append("the node does not hold what the undisturbed one has")
        compared(night, killer, found)
    print(f"{node.number()} documents, {len(looked_up(disturbed))} of them looked up")


@pytest.mark.parametrize("kind", KINDS)
def test_init_can_be_killed_and_done_again(
    kind: str, tmp_path: Path, servers: Servers, kills: int, chance: random.Random
) -> None:
    seconds, killed = 0.0, 0
    for number in range(1 + kills // 4):
        with servers.another(kind) as database:
            world = World(tmp_path / str(number), database)
            process = world.start("init")
            began = time.monotonic()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0.2 * seconds, seconds) if number else None)
            process.kill()
            killed += process.wait() != 0
            seconds = seconds or time.monotonic() - began
            assert world.start("init").wait() == 0, world.said()
            world.close()
    print(f"{killed} times init was killed")


def prepared(
    worlds: tuple[World, World], server: HttpServer, sites_own_documents: bool = True, many: float = 1
) -> Network:
    network = Network(server, sites_own_documents, many)
    for world in worlds:
        assert world.start("init").wait() == 0, world.said()
        world.register(network)
    return network


def nights(
    network: Network, calm: Killer, killer: Killer, kills: int, chance: random.Random, slower: float = 1
) -> Iterator[tuple[int, list[str]]]:
    """Night after night, harvested in both worlds, until there were so many kills; and what is wrong in one of them.

    `slower`: how many times as long a night takes where there are kills.
    """
    night = 0
    while killer.kills < kills:
        night += 1
        network.night(night)
        calm.run(day(night))
        killer.seconds = slower * calm.seconds
        killer.night(day(night), min(kills, killer.kills + chance.randint(*KILLS_A_NIGHT)))
        yield night, [problem for each in (calm, killer) for problem in problems_of(each.world, day(night))]


def compared(night: int, killer: Killer, found: list[str]) -> None:
    if found:
        pytest.fail("\n".join([f"Night {night}; {killer.summary()}:", *found]), pytrace=False)
    print(f"{night} nights; {killer.summary()}", flush=True)


class Arrived(Sequence[object]):
    """Grows as documents come into a repository, which says how many there are."""

    def __init__(self, number: Callable[[], int]) -> None:
        self._number = number

    def __len__(self) -> int:
        return self._number()

    def __getitem__(self, number: Any) -> Any:
        raise NotImplementedError


def names_of(world: World) -> Counter[str]:
    """The names of the documents in a folder, wherever they are."""
    paths = (world.folder / "repository").rglob("*.xml")
    return Counter(path.name for path in paths if ".metaharvest" not in path.parts)


def files_of(world: World) -> dict[str, bytes]:
    """Name -> content, of every document in a folder: in which part of it one is, is a matter of who came first."""
    paths = (world.folder / "repository").rglob("*.xml")
    return {path.name: path.read_bytes() for path in paths if ".metaharvest" not in path.parts}


def json_of(world: World) -> list[tuple[str, int, str]]:
    """What the index of a folder says."""
    command = [sys.executable, "-m", "metaharvest", "--config", str(world.config), "target", "list", "--json"]
    listed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return [(each["document_id"], each["revision"], each["sha256"]) for each in listed]


def starter(world: World, repository: Repository) -> Callable[[str], subprocess.Popen[bytes]]:
    """How a run into the repository is started."""
    return lambda day: world.start_python("-m", "support.remote_target", str(world.config), repository.url, day)


def looked_up(world: World) -> set[tuple[Any, ...]]:
    """The documents that had arrived when their run was killed."""
    return set(world.rows("SELECT document_id, revision FROM harvest_detail_log WHERE rule = 'target.unconfirmed'"))


def remote_state_of(worlds: tuple[World, World], world: World) -> dict[str, Rows]:
    # Their site runs are compared below, of all days: on this one there was none.
    state, odd = state_of(world, "1970-01-01"), looked_up(worlds[1])
    log = Counter({row[:-1]: number for row, number in state["log"].items() if row[-3] is not None})
    details = Counter({row: n for row, n in state["detail log"].items() if (row[7], row[6]) not in odd})
    site_runs = world.rows(
        "SELECT r.harvest_date, site_name, kind, listed, inserted, updated, unchanged, stale, duplicate, deferred, "
        "access_error, invalid, upload_error, x.next_harvest FROM harvest_site_run x "
        "JOIN harvest_run r ON r.run_id = x.run_id"
    )
    deliveries = Counter({row: n for row, n in state["deliveries of site reports"].items() if row[0] != ON_CHANGE})
    return {
        "log": log,
        "detail log": details,
        "site runs": Counter(site_runs),
        "ledger": state["ledger"],
        "schedule": state["schedule"],
        "deliveries of site reports": deliveries,
    }


def differences(expected: dict[str, Rows], found: dict[str, Rows]) -> list[str]:
    """The first rows of each table that are missing, or too many; of mails, the lines."""
    told = []
    for table, rows in expected.items():
        missing, odd = rows - found[table], found[table] - rows
        for what, some in (("missing", missing), ("too many", odd)):
            told += [f"{table}, {number} {what}: {str(row)[:400]}" for row, number in list(some.items())[:5]]
        if table == "mails to sites":
            before, after = ([line for (text,) in sorted(some) for line in text.split("\n")] for some in (missing, odd))
            told += unified_diff(before, after, n=0, lineterm="")
    return told
