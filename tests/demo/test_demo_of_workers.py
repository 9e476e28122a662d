"""`demo --workers`, where RabbitMQ is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from amqp.exceptions import AMQPError

from metaharvest.cli.demo import BROKER
from metaharvest.monitoring.broker import try_broker


def test_two_workers_harvest_the_last_night(tmp_path: Path) -> None:
    try:
        try_broker(BROKER)
    except (AMQPError, OSError) as error:
        pytest.skip(f"No RabbitMQ is at {BROKER}: {error}")
    command = [
        sys.executable,
        "-m",
        "metaharvest",
        "demo",
        "--workers",
        "--nights",
        "1",
        "--folder",
        str(tmp_path / "it"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "The workers worker-1 and worker-2 harvest." in done.stdout
    jobs = [line for line in done.stdout.splitlines() if " harvest_site " in line]
    assert len(jobs) == 6
    assert all(" done " in line and " worker-" in line for line in jobs)
    assert "7 reports" in done.stdout
