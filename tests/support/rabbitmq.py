"""A RabbitMQ node that the tests start themselves, with a port and folders of its own, and that they may kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path

import pytest

from support.ports import free_port
from support.waiting import wait_until

_PROGRAMS = Path("/usr/lib/rabbitmq/bin")
_MISSING = "RabbitMQ is not installed: on Debian, `apt-get install rabbitmq-server`."


def require_rabbitmq() -> None:
    """Skip the test where RabbitMQ is not installed."""
    if not (_PROGRAMS / "rabbitmq-server").exists() or shutil.which("erl") is None:
        (pytest.fail if os.environ.get("REQUIRE_SERVICES") == "1" else pytest.skip)(_MISSING)


class RabbitNode:
    """A node with the user guest, reached at `url`. It keeps its queues when it is killed and started again.

    It listens at the address `host`; `settings` are terms of the application `rabbit`, each with a comma before it.
    """

    def __init__(self, host: str = "127.0.0.1", settings: str = "") -> None:
        require_rabbitmq()
        self._folder = Path(tempfile.mkdtemp(prefix="metaharvest-rabbitmq-"))
        self._port = free_port()
        self.url = f"amqp://guest:guest@{host}:{self._port}//"
        name = f"metaharvest-{uuid.uuid4().hex[:8]}@localhost"
        self._environment = {
            **os.environ,
            "HOME": str(self._folder),
            "RABBITMQ_NODENAME": name,
            "RABBITMQ_NODE_IP_ADDRESS": host,
            "RABBITMQ_NODE_PORT": str(self._port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(self._folder / "data"),
            "RABBITMQ_LOG_BASE": str(self._folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self._folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self._folder / "advanced.config"),
            "RABBITMQ_PID_FILE": str(self._folder / "pid"),
        }
        (self._folder / "plugins").write_text("[].\n", encoding="utf-8")
        terms = f"[{{rabbit, [{{loopback_users, []}}{settings}]}}].\n"
        (self._folder / "advanced.config").write_text(terms, encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = (self._folder / "output").open("ab")
        with log:
            self._process = subprocess.Popen(
                [_PROGRAMS / "rabbitmq-server"],
                stdout=log,
                stderr=log,
                env=self._environment,
                start_new_session=True,
            )
        wait_until(self._answers, seconds=120)

    def kill(self) -> None:
        """End it with SIGKILL, as a power failure would."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def control(self, *arguments: str) -> None:
        """Run rabbitmqctl with these arguments."""
        command = [str(_PROGRAMS / "rabbitmqctl"), "--quiet", *arguments]
        subprocess.run(command, env=self._environment, stdout=subprocess.DEVNULL, check=True)

    def log(self) -> str:
        """What it has logged."""
        return "".join(file.read_text(encoding="utf-8") for file in sorted((self._folder / "log").glob("*.log")))

    def close(self) -> None:
        """End it, and delete its folders."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        from kombu.connection import Connection
        from kombu.exceptions import OperationalError

        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "output").read_text(encoding="utf-8")
        connection = Connection(self.url, connect_timeout=2)  # type: ignore[no-untyped-call]
        try:
            with connection:
                connection.ensure_connection(max_retries=1, timeout=2)  # type: ignore[no-untyped-call]
        except (OperationalError, OSError):
            return False
        return True
