"""The broker of the workers, as the settings name it: try it, and say what is wrong with it."""

from __future__ import annotations

import ssl
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from metaharvest.config.field_types import BROKER_ADDRESS, is_broker_address
from metaharvest.config.secret_references import is_reference, resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError
from metaharvest.text import one_line

if TYPE_CHECKING:
    from kombu.connection import Connection

SECONDS = 5
"""The time that the broker gets to answer."""

_CHECK = "metaharvest.check.1"

_BLOCKED = "takes no messages: its memory or its disk may be full. `rabbitmqctl status` has its alarms"
_NACKED = "takes no messages: a policy of the virtual host limits its queues. `rabbitmqctl list_policies` has it"
_REFUSAL_REMEDY = (
    "Correct the address, or in RabbitMQ the user, its permissions, its virtual host, or a limit: docs/scaling.md has "
    "the commands"
)
_ADDRESS_REMEDY = "Check the host and the port in the address, and that RabbitMQ runs there"
_TLS_REMEDY = "amqps:// needs a port where RabbitMQ has TLS, usually 5671, and a certificate that is trusted"


def address_of(settings: Settings) -> str:
    """The address of the broker, also where the settings have a reference to it.

    Raises SettingsError if it cannot be read, or is no address of a broker.
    """
    named = settings.workers.broker
    address = resolve_secret(named, settings.folder) if is_reference(named) else named
    if not is_broker_address(address):
        raise SettingsError(f"The address of the broker in {named} ([workers] broker) is wrong: {BROKER_ADDRESS}.")
    return address


@contextmanager
def connected(address: str) -> Iterator[Connection]:
    """A connection for a message or two. No step waits longer than SECONDS, not even the end.

    A broker whose memory or disk is full reads nothing more: it would not confirm a message or the end.
    """
    from kombu.connection import Connection

    options = {"confirm_publish": True, "read_timeout": SECONDS, "write_timeout": SECONDS}
    connection = Connection(address, connect_timeout=SECONDS, transport_options=options)  # type: ignore[no-untyped-call]
    try:
        connection.connect()  # type: ignore[no-untyped-call]
        yield connection
    finally:
        connection.collect()  # type: ignore[no-untyped-call]


def try_broker(address: str) -> None:
    """Send a message through the broker and back, with an exchange and a queue like the workers have.

    Raises AMQPError if the broker refuses it, MessageNacked if it takes no message or drops it, OSError if it is away.
    """
    from amqp.exceptions import MessageNacked
    from kombu.entity import Exchange, Queue
    from kombu.messaging import Producer

    with connected(address) as connection:
        channel = connection.channel()  # type: ignore[no-untyped-call]
        # It stays: another process may use it at this moment, and would miss it.
        exchange = Exchange(_CHECK, "fanout")  # type: ignore[no-untyped-call]
        queue: Any = Queue(f"{_CHECK}.{uuid.uuid4().hex}", exchange, exclusive=True)(channel)  # type: ignore[no-untyped-call]
        queue.declare()
        producer: Any = Producer(channel)  # type: ignore[no-untyped-call]
        producer.publish({}, exchange=exchange)
        if queue.get(no_ack=True) is None:
            raise MessageNacked


def where(address: str) -> str:
    """The host of the broker."""
    return urlsplit(address).hostname or "its address"


def is_refusal(error: BaseException) -> bool:
    """True if the broker answered, and refuses the user, the virtual host, a queue or a message."""
    from amqp.exceptions import AMQPError, ConnectionForced

    is_answer = isinstance(error, AMQPError) and bool(error.reply_code)
    return is_answer and not isinstance(error, ConnectionForced)  # the broker ends


def trouble(address: str, error: BaseException) -> str:
    """What is wrong with the broker, and what to do, as sentences without a full stop at the end."""
    from amqp.exceptions import AMQPError, MessageNacked

    the_broker = f"The broker at {where(address)} ([workers] broker)"
    error = error.__cause__ if isinstance(error.__cause__, AMQPError | OSError) else error
    if isinstance(error, MessageNacked):
        return f"{the_broker} {_NACKED}"
    if isinstance(error, TimeoutError):
        return f"{the_broker} does not answer in time, or {_BLOCKED}"
    said = getattr(error, "reply_text", "") or getattr(error, "strerror", "") or error
    reason = (one_line(str(said)) or type(error).__name__).rstrip(".")
    if is_refusal(error):
        return f"{the_broker} answers with a refusal: {reason}. {_REFUSAL_REMEDY}"
    remedy = _TLS_REMEDY if isinstance(error, ssl.SSLError) else _ADDRESS_REMEDY
    return f"{the_broker} cannot be reached: {reason}. {remedy}"
