"""The Celery application of the workers, and the message that wakes all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metaharvest.errors import MetaharvestError, library_errors
from metaharvest.monitoring import broker
from metaharvest.services.harvester import Harvester
from metaharvest.services.jobs import require_broker

if TYPE_CHECKING:
    from celery import Celery

WAKE = "metaharvest.wake"
TICK = "metaharvest.tick"

_WAKE_QUEUE = "metaharvest.wake.1"
_TICK_QUEUE = "metaharvest.tick.1"
"""Names of queues carry a version: RabbitMQ refuses a queue with other properties than it has."""

_TICK_SECONDS = 60.0
_EXPIRATION = {"expiration": 60}
"""Seconds after which the broker drops a message that no worker has received: idle workers look for jobs by themselves.

With `expires`, a worker whose clock is ahead of the sender's clock would drop each message.
"""


def application(harvester: Harvester) -> Celery:
    """The Celery application for the broker in the settings. Raises SettingsError, MetaharvestError."""
    require_broker(harvester)
    address = broker.address_of(harvester.settings)
    with library_errors("workers", "workers need"):
        from celery import Celery
        from kombu.common import Broadcast
        from kombu.entity import Exchange, Queue
    # A lost message costs nothing, and an acknowledgement that cannot be sent is a traceback in the log.
    wake_queue: Any = Broadcast(_WAKE_QUEUE, no_ack=True)  # type: ignore[no-untyped-call]
    tick_exchange = Exchange(_TICK_QUEUE)  # type: ignore[no-untyped-call]
    tick_queue = Queue(_TICK_QUEUE, tick_exchange, _TICK_QUEUE, no_ack=True)  # type: ignore[no-untyped-call]
    app = Celery("metaharvest", broker=address, set_as_current=False)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_queues=[wake_queue, tick_queue],
        task_default_queue=_TICK_QUEUE,
        task_default_exchange=_TICK_QUEUE,
        task_default_routing_key=_TICK_QUEUE,
        task_routes={WAKE: {"exchange": _WAKE_QUEUE, "exchange_type": "fanout"}},
        beat_schedule={TICK: {"task": TICK, "schedule": _TICK_SECONDS, "options": _EXPIRATION}},
        broker_transport_options={"confirm_publish": True},
        broker_connection_timeout=broker.SECONDS,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        worker_enable_remote_control=False,  # its queue locks out a worker of the same name that starts again
        # It cancels no task here, as none is acknowledged late. Without it, Celery warns at each loss of a connection.
        worker_cancel_long_running_tasks_on_connection_loss=True,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,  # it would make a log line of each piece of a traceback of a thread
        worker_prefetch_multiplier=1,
    )
    return app


def refusal(app: Celery) -> str:
    """The reason why the broker refuses this worker; empty if it is away, or refuses nothing."""
    from amqp.exceptions import AMQPError, MessageNacked

    address = str(app.conf.broker_url)
    try:
        broker.try_broker(address)
    except AMQPError as error:
        return f"{broker.trouble(address, error)}." if broker.is_refusal(error) else ""
    except (MessageNacked, OSError):
        return ""  # a worker works without messages, and tries again until the broker is there
    return ""


def wake(app: Celery) -> None:
    """Wake all workers. Raises MetaharvestError if the broker does not take the message: they find jobs later."""
    from amqp.exceptions import AMQPError, MessageNacked, NotFound
    from kombu.exceptions import OperationalError

    address = str(app.conf.broker_url)
    try:
        with broker.connected(address) as connection:
            app.send_task(WAKE, **_EXPIRATION, retry=False, connection=connection)
    except NotFound:
        return  # no worker has made the exchange, so that nobody waits
    except (OperationalError, AMQPError, MessageNacked, OSError) as error:
        raise MetaharvestError(
            f"{broker.trouble(address, error)}. Workers find the jobs some seconds later."
        ) from error
