"""The leases of hosts, on each database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from metaharvest.database.host_leases import HostLeases, read_trouble, written_trouble
from metaharvest.model import ServerTrouble
from support.databases import KINDS, Servers, open_sqlite_file

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.fixture(params=KINDS, scope="module")
def engine(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    if request.param != "sqlite":
        yield servers.require(request.param).engine
        return
    made = open_sqlite_file(tmp_path_factory.mktemp("leases") / "x.db")
    yield made
    made.dispose()


@pytest.fixture(autouse=True)
def _empty(request: pytest.FixtureRequest) -> None:
    if "engine" in request.fixturenames:
        with request.getfixturevalue("engine").begin() as connection:
            connection.execute(text("DELETE FROM host_lease"))


def rows(engine: Engine, column: str) -> list[object]:
    with engine.connect() as connection:
        return list(connection.scalars(text(f"SELECT {column} FROM host_lease ORDER BY host")))


def test_one_holder_at_a_time_has_a_host(engine: Engine) -> None:
    first, second = HostLeases(engine), HostLeases(engine)
    assert first.take("x.example.org") == []
    assert first.take("X.example.org") == []
    assert first.renew(["x.example.org", "y.example.org"]) == {"x.example.org": False}
    assert second.take("x.example.org") is None
    assert first.renew(["X.example.org", "x.example.org"]) == {"X.example.org": False, "x.example.org": True}
    assert second.renew(["x.example.org"]) == {}
    second.give_back("x.example.org", [])
    assert second.take("x.example.org") is None
    first.give_back("x.example.org", [])
    assert second.take("x.example.org") == []
    assert first.renew(["x.example.org"]) == {}
    assert rows(engine, "wanted_at") == [None, None]


def test_a_lease_that_is_not_renewed_ends(engine: Engine) -> None:
    first, second = HostLeases(engine, seconds=0.2), HostLeases(engine, seconds=30)
    assert first.take("x") == []
    assert first.take("y") == []
    time.sleep(0.25)
    assert first.renew(["y"]) == {"y": False}
    assert second.take("x") == []
    assert first.renew(["x", "y"]) == {"y": False}
    first.note("x", [ServerTrouble("x", 100)])
    first.give_back("x", [ServerTrouble("x", 100)])
    assert rows(engine, "holder") == [second.holder, first.holder]
    assert rows(engine, "servers") == [None, None]


def test_the_next_holder_learns_the_trouble_of_servers(engine: Engine) -> None:
    first, second = HostLeases(engine), HostLeases(engine)
    first.take("x")
    first.note("x", [ServerTrouble("x", 100)])
    assert rows(engine, "holder") == [first.holder]
    first.give_back("x", [ServerTrouble("x", 2000, 3, 1000, 500), ServerTrouble("x:8080", 300)])
    [server, other] = second.take("x") or []
    assert (server.server, server.failures) == ("x", 3)
    assert [server.rest, server.failed_before, server.pause] == pytest.approx([2000, 1000, 500], abs=60)
    assert (other.server, other.failures) == ("x:8080", 0)
    assert other.rest == pytest.approx(300, abs=60)
    second.give_back("x", [])
    assert rows(engine, "host") == []


def test_rows_of_hosts_that_nobody_holds_are_deleted_after_a_day(engine: Engine) -> None:
    leases = HostLeases(engine)
    for host in ("lost", "new", "old"):
        leases.take(host)
    leases.give_back("new", [ServerTrouble("new", 100)])
    leases.give_back("old", [ServerTrouble("old", 100)])
    day_before = datetime.now(UTC).replace(tzinfo=None) - timedelta(hours=25)
    with engine.begin() as connection:
        statement = text("UPDATE host_lease SET lease_until = :then WHERE host IN ('lost', 'old')")
        connection.execute(statement, {"then": f"{day_before:%Y-%m-%d %H:%M:%S.%f}"})
    leases.delete_old()
    assert rows(engine, "host") == ["new"]


def test_failures_count_for_an_hour() -> None:
    trouble = [ServerTrouble("x", 4000, 5, 60, 30), ServerTrouble("y", 0, 1)]
    written = written_trouble(trouble, NOW)
    assert read_trouble(written, NOW) == trouble
    assert read_trouble(written, NOW + timedelta(minutes=1)) == [
        ServerTrouble("x", 3940, 5, 120, 0),
        ServerTrouble("y", 0, 1, 60),
    ]
    assert read_trouble(written, NOW + timedelta(minutes=59)) == [
        ServerTrouble("x", 460),
        ServerTrouble("y", 0, 1, 3540),
    ]
    assert read_trouble(written, NOW + timedelta(hours=2)) == []
    # The clock of the database went back.
    assert read_trouble(written, NOW - timedelta(minutes=2))[0] == ServerTrouble("x", 4120, 5, 0, 150)
    assert written_trouble([], NOW) is None
    assert read_trouble(None, NOW) == []
