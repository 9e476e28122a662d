"""One worker process: Celery receives the messages, and a thread of its own does the work."""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
import warnings

from metaharvest.errors import MetaharvestError
from metaharvest.monitoring import broker
from metaharvest.services import pipeline
from metaharvest.services.exit_codes import ExitCode, exit_code_of
from metaharvest.services.harvester import Harvester
from metaharvest.services.jobs import coordinate
from metaharvest.services.worker_loop import WorkerLoop, process_named
from metaharvest.workers.broker import TICK, WAKE, application, refusal, wake

log = logging.getLogger(__name__)

_LEAVING_SECONDS = 10.0
"""The time that Celery gets to leave the broker after the work has ended: the broker may be away."""


def work(harvester: Harvester, name: str, ending: queue.SimpleQueue[None]) -> None:
    """Work until SIGTERM or Ctrl-C: then the slice under way ends at its next checkpoint.

    The caller's handlers of these signals put None into `ending`, until Celery has handlers of its own. A handler
    interrupts the main thread, which may hold a lock of the loop; only such a queue takes something at any moment.

    Raises SettingsError, MetaharvestError, DatabaseError.
    """
    process = process_named(name)
    if harvester.settings.pipeline.enabled:
        pipeline.require_libraries()  # otherwise its jobs would fail here, and never reach another worker
    app = application(harvester)  # reports a missing broker or library before anything of Celery is imported
    from celery import signals
    from celery.exceptions import SecurityWarning

    if why := refusal(app):
        log.error("The worker ends: %s", why)
        sys.exit(ExitCode.FAILED)  # the supervisor starts it again: the broker may be set up at this moment
    harvester.engine  # noqa: B018 - a database of another version is an error of the start

    def wake_all() -> None:
        try:
            wake(app)
        except MetaharvestError as error:
            log.warning("%s", error)

    loop = WorkerLoop(harvester, process, wake_all)

    def waken() -> None:
        loop.wake()

    def tick() -> None:
        try:
            if coordinate(harvester).new_jobs:
                wake_all()
        except MetaharvestError as error:
            log.warning("The tick of the coordinator: %s", error)

    app.task(name=WAKE)(waken)
    app.task(name=TICK)(tick)

    signals.worker_shutting_down.connect(lambda **_: ending.put(None), weak=False)
    # As root, Celery warns of messages that contain code. Workers accept only JSON.
    warnings.filterwarnings("ignore", "\\s*You're running the worker with superuser", SecurityWarning)
    receiver = app.Worker(
        hostname=f"{process.name}@{process.host}",
        pool="solo",
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        quiet=True,
    )
    address = str(app.conf.broker_url)
    logging.getLogger("celery.worker").addFilter(lambda record: _say_refusal(record, address))
    logging.getLogger("celery.worker.consumer.consumer").addFilter(lambda record: _end_if_refused(record, address))
    receiver.install_platform_tweaks(receiver)  # its handlers of signals: start() begins without them
    if not ending.empty():
        return
    working = threading.Thread(target=_work, args=(loop,), name="work")
    working.start()
    threading.Thread(target=_end, args=(ending, loop, working), name="end", daemon=True).start()
    try:
        receiver.start()
    finally:
        ending.put(None)
        working.join()
    if receiver.exitcode:
        log.error("The worker ends, as it cannot receive messages of the broker ([workers] broker): see above.")
        sys.exit(ExitCode.FAILED)


def _say_refusal(record: logging.LogRecord, address: str) -> bool:
    """Put a sentence in the place of a traceback where the broker refuses the worker."""
    error = record.exc_info[1] if record.exc_info else None
    if error is not None and broker.is_refusal(error):
        record.msg, record.args, record.exc_info = f"{broker.trouble(address, error)}.", (), None
    return True


def _end_if_refused(record: logging.LogRecord, address: str) -> bool:
    """End the worker if the broker refuses to let it connect again: Celery would try six times a second for ever.

    A lost connection is no refusal, whatever the reason of the broker: Celery connects again.
    """
    from amqp.exceptions import AccessRefused, InvalidPath, NotAllowed
    from celery.worker import state
    from celery.worker.consumer.consumer import CONNECTION_ERROR

    if record.msg != CONNECTION_ERROR:
        return True
    values = record.args if isinstance(record.args, tuple) else ()
    error = next((each for each in values if isinstance(each, AccessRefused | InvalidPath | NotAllowed)), None)
    if error is not None:
        record.msg, record.args = f"{broker.trouble(address, error)}.", ()
        state.should_stop = ExitCode.FAILED.value
    return True


def _work(loop: WorkerLoop) -> None:
    # A worker that cannot work must not stay: its supervisor starts another one.
    try:
        loop.run()
    except MetaharvestError as error:
        log.error("The worker ends: %s", error)
        os._exit(exit_code_of(error))
    except Exception:
        log.exception("The worker ends")
        os._exit(ExitCode.FAILED)


def _end(ending: queue.SimpleQueue[None], loop: WorkerLoop, working: threading.Thread) -> None:
    """End the work after a signal, and the process if Celery does not end some time later: the broker may be away."""
    ending.get()
    loop.end()
    working.join()
    threading.Event().wait(_LEAVING_SECONDS)
    os._exit(0)
