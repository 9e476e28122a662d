"""A call with an Idempotency-Key whose process is killed: it can be repeated when its lease has ended."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import requests
from sqlalchemy import select

from metaharvest.database.console_models import ApiCall
from metaharvest.database.engine import readers, writers
from metaharvest.services import accounts
from support.console import served_console
from support.harvester import Harvester
from support.ports import free_port
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("database", ["sqlite"], indirect=True)]
ENDLESS = ", ".join(f"harvest_operation AS o{number}" for number in range(8))


def test_a_call_whose_process_was_killed_is_carried_out_again_after_its_lease(harvester: Harvester) -> None:
    harvester.add_site("elm", "https://elm.example.org/list.xml")
    with harvester.opened() as opened:
        secret = accounts.add_key(opened, "portal", "steward", "test", 30)
    harvester.rows(f"CREATE TRIGGER endless AFTER INSERT ON harvest_request BEGIN SELECT count(*) FROM {ENDLESS}; END")
    port = free_port()
    serving = harvester.start("serve", "--port", str(port))
    try:
        assert serving.stdout is not None
        serving.stdout.readline()
        with pytest.raises(requests.ReadTimeout):
            call(f"http://127.0.0.1:{port}", secret, seconds=0.5)
        wait_until(lambda: begun(harvester))
    finally:
        serving.kill()
        serving.communicate(timeout=30)
    harvester.rows("DROP TRIGGER endless")
    with served_console(harvester) as console:
        refused = call(console.url, secret)
        assert refused.status_code == 409
        assert "not ended" in refused.json()["detail"]
        with writers(harvester.engine).begin() as session:
            [row] = session.query(ApiCall).all()
            row.called_at = datetime.now(UTC) - timedelta(minutes=11)
        assert call(console.url, secret).status_code == 202
        again = call(console.url, secret)
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (202, "true")
    assert harvester.rows("SELECT count(*) FROM harvest_request") == [(1,)]


def begun(harvester: Harvester) -> bool:
    """True if there is a call without an answer; the hanging call has the lock for writing."""
    with readers(harvester.engine)() as session:
        return session.scalars(select(ApiCall.status)).all() == [None]


def call(url: str, secret: str, seconds: float = 60) -> requests.Response:
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "one"}
    return requests.post(f"{url}/api/v1/harvests", json={"site": "elm"}, headers=headers, timeout=seconds)
