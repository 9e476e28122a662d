"""Workers and a broker that gives them little time to acknowledge a message, or refuses them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from amqp.exceptions import AMQPError

from metaharvest.monitoring import broker as trying
from metaharvest.workers.broker import application, wake
from soak.test_workers import coordinate, is_closed, publish_repository, start, use_workers
from support.databases import Servers, TestDatabase
from support.harvester import Harvester
from support.http_server import HttpServer
from support.rabbitmq import RabbitNode
from support.waiting import wait_until

CONSUMER_TIMEOUT = 3
"""In seconds. RabbitMQ looks each second here, and each minute otherwise."""

PAGES, SECONDS = 10, 1.0
"""The pages of the source repository, and the time that each takes: more than three consumer timeouts together."""

NO_PERMISSION = (
    'rabbit_auth_backend_internal:set_permissions(<<"guest">>, <<"/">>, <<"^$">>, <<"^$">>, <<"^$">>, <<"test">>)'
)


@pytest.fixture
def database(servers: Servers) -> TestDatabase:
    return servers.test_database("postgresql")


@pytest.fixture(scope="module")
def broker() -> Iterator[RabbitNode]:
    milliseconds = 1000 * CONSUMER_TIMEOUT
    node = RabbitNode(settings=f", {{consumer_timeout, {milliseconds}}}, {{channel_tick_interval, 1000}}")
    yield node
    node.close()


def test_a_job_longer_than_the_consumer_timeout_is_done_once_by_one_worker(
    harvester: Harvester, server: HttpServer, broker: RabbitNode, tmp_path: Path
) -> None:
    use_workers(harvester, broker.url, 600)
    docids = publish_repository(harvester, server, "slow", 2 * PAGES, SECONDS)
    with (tmp_path / "output").open("wb") as output:
        module = [sys.executable, "-m", "metaharvest"]
        process = start(module, harvester.config, output.fileno(), "worker", "--name", "alder")
    try:
        coordinate(harvester, tmp_path)
        wait_until(lambda: process.poll() is not None or is_closed(harvester), seconds=120)
        assert process.poll() is None, (tmp_path / "output").read_text(encoding="utf-8")
    finally:
        process.terminate()
        process.wait(60)
    assert sorted(harvester.held()) == sorted(docids)
    [(seconds, claims, slices)] = harvester.rows("SELECT seconds, fence, slices FROM job WHERE kind = 'harvest_site'")
    assert seconds > 3 * CONSUMER_TIMEOUT
    assert (claims, slices) == (1, 0)
    assert "timed out" not in broker.log()
    pages = [each.path for each in server.requests if "ListRecords" in each.path]
    assert len(pages) == len(set(pages)) == PAGES


def test_a_message_wakes_each_worker(harvester: Harvester, broker: RabbitNode) -> None:
    from kombu.connection import Connection

    use_workers(harvester, broker.url, 600)
    opened = harvester.opened()
    app = application(opened)
    opened.close()
    wake(app)  # nobody is there
    with Connection(broker.url) as connection:  # type: ignore[no-untyped-call]
        waiting = [application(opened).amqp.queues["metaharvest.wake.1"](connection.channel()) for _ in range(2)]
        for queue in waiting:
            queue.declare()
        wake(app)
        assert all(queue.get(no_ack=True) is not None for queue in waiting)


def test_messages_expire_by_the_broker_not_by_the_clock_of_a_worker(harvester: Harvester, broker: RabbitNode) -> None:
    """A worker whose clock is some minutes ahead receives messages, too."""
    from kombu.connection import Connection

    use_workers(harvester, broker.url, 600)
    opened = harvester.opened()
    app = application(opened)
    opened.close()
    with Connection(broker.url) as connection:  # type: ignore[no-untyped-call]
        queues = [app.amqp.queues[name](connection.channel()) for name in ("metaharvest.wake.1", "metaharvest.tick.1")]
        for queue in queues:
            queue.declare()
        wake(app)
        [(tick, schedule)] = app.conf.beat_schedule.items()
        app.send_task(tick, **schedule["options"], connection=connection)
        for queue in queues:
            message = queue.get(no_ack=True)
            assert message.headers["expires"] is None
            assert message.properties["expiration"] == "60000"


def test_a_broker_that_refuses_the_user_or_the_virtual_host_is_a_sentence(
    harvester: Harvester, broker: RabbitNode
) -> None:
    harvester.add_site("alder", "http://127.0.0.1:9/list.xml")
    settings = harvester.config.read_text(encoding="utf-8")
    for right, wrong, why in (
        ("guest:guest", "guest:wrong", "ACCESS_REFUSED"),
        ("//", "/nowhere", "vhost nowhere not found"),
    ):
        head, _, tail = broker.url.rpartition(right)
        harvester.config.write_text(settings, encoding="utf-8")
        use_workers(harvester, f"{head}{wrong}{tail}", 600)
        for command, code in (("worker", 1), ("coordinate", 0)):
            process = harvester.start(command)
            _, said = process.communicate(timeout=120)
            assert "Traceback" not in said
            assert "The broker at 127.0.0.1 ([workers] broker) answers with a refusal" in said
            assert why in said
            assert process.returncode == code


@contextmanager
def connected_worker(harvester: Harvester, broker: RabbitNode, output: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that waits for messages. It tries the broker; then its receiver and the receiver's consumer connect."""
    use_workers(harvester, broker.url, 600)
    before = broker.log().count("granted access to vhost")
    with output.open("wb") as file:
        module = [sys.executable, "-m", "metaharvest"]
        worker = start(module, harvester.config, file.fileno(), "worker", "--name", "alder")
    try:
        wait_until(lambda: broker.log().count("granted access to vhost") >= before + 3)
        yield worker
    finally:
        worker.kill()


def test_a_worker_that_may_not_connect_again_ends_with_a_sentence(
    harvester: Harvester, broker: RabbitNode, tmp_path: Path
) -> None:
    with connected_worker(harvester, broker, tmp_path / "output") as worker:
        broker.control("clear_permissions", "--vhost", "/", "guest")
        try:
            broker.control("close_all_connections", "test")
            assert worker.wait(60) == 1
        finally:
            broker.control("set_permissions", "--vhost", "/", "guest", ".*", ".*", ".*")
    said = (tmp_path / "output").read_text(encoding="utf-8")
    assert said.count("([workers] broker) answers with a refusal: NOT_ALLOWED") == 1
    assert "Correct the address, or in RabbitMQ the user, its permissions" in said
    assert "Traceback" not in said


def test_a_worker_whose_connection_ends_with_an_error_of_the_broker_connects_again(
    harvester: Harvester, broker: RabbitNode, tmp_path: Path
) -> None:
    with connected_worker(harvester, broker, tmp_path / "output") as worker:
        connected = broker.log().count("granted access to vhost")

        def connects_again() -> bool:
            broker.control("eval", "[exit(Channel, test) || Channel <- rabbit_channel:list()].")
            return broker.log().count("granted access to vhost") > connected or worker.poll() is not None

        wait_until(connects_again)
        assert worker.poll() is None
        worker.terminate()
        assert worker.wait(60) == 0
    said = (tmp_path / "output").read_text(encoding="utf-8")
    assert "INTERNAL_ERROR" in said
    assert "answers with a refusal" not in said


def test_a_broker_without_room_or_without_permissions_is_a_sentence_at_once(
    broker: RabbitNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trying, "SECONDS", 1)

    def trouble() -> str:
        try:
            trying.try_broker(broker.url)
        except (AMQPError, OSError) as error:
            return trying.trouble(broker.url, error)
        return ""

    with ThreadPoolExecutor(4) as threads:
        assert {said.result() for said in [threads.submit(trouble) for _ in range(24)]} == {""}
    broker.control("eval", "vm_memory_monitor:set_vm_memory_high_watermark(0.000001).")
    wait_until(trouble)
    assert "its memory or its disk may be full" in trouble()
    broker.control("eval", f"vm_memory_monitor:set_vm_memory_high_watermark(0.6), {NO_PERMISSION}.")
    wait_until(lambda: "answers with a refusal: ACCESS_REFUSED" in trouble())
