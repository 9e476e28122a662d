"""Starts worker processes by `spawn`, also from within a daemonic process.

Job queues run their jobs in daemonic processes. multiprocessing allows these no children, since children could outlive
the daemonic process. The workers of the harvester end themselves: when the channel to their parent is closed, or when
their time limit is over.
"""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_starting = threading.Lock()


class WorkerProcess(SpawnProcess):
    """A process that any process may start."""

    def start(self) -> None:
        """Start it. Raises OSError."""
        # No public setting allows this: BaseProcess.start() refuses if the current process is marked as daemonic.
        config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
        with _starting:
            kept = dict(config)
            config.pop("daemon", None)
            # The key of billiard, Celery's own multiprocessing, refuses to be sent to a child of the standard one:
            # https://github.com/celery/billiard/blob/main/billiard/process.py
            self.authkey = bytes(kept["authkey"])
            config["authkey"] = self.authkey
            try:
                super().start()
            finally:
                config.clear()
                config.update(kept)


class WorkerContext(SpawnContext):
    """The context of multiprocessing for worker processes."""

    Process = WorkerProcess
