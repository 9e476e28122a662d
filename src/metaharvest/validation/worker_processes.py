"""Starts worker processes by `spawn`, also from within a daemonic process.

Job queues run their jobs in daemonic processes. multiprocessing allows these no children, which could stay behind when
the daemonic process is ended. The workers of the harvester end themselves: when the channel to their parent is closed,
or when their time limit is over.
"""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.context import SpawnContext, SpawnProcess

_starting = threading.Lock()


class WorkerProcess(SpawnProcess):
    """A process that any process may start."""

    def start(self) -> None:
        """Start it. Raises OSError."""
        # No public setting allows this: BaseProcess.start() refuses if the current process is marked as daemonic.
        config = getattr(multiprocessing.current_process(), "_config", {})
        with _starting:
            mark = config.pop("daemon", None)
            try:
                super().start()
            finally:
                if mark is not None:
                    config["daemon"] = mark


class WorkerContext(SpawnContext):
    """The context of multiprocessing for worker processes."""

    Process = WorkerProcess
