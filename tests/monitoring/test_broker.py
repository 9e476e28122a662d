"""The sentences about a broker that cannot be reached: each says what to do."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from amqp.exceptions import MessageNacked

from metaharvest.monitoring.broker import trouble, try_broker
from support.ports import free_port


def said(address: str) -> str:
    with pytest.raises(OSError) as caught:
        try_broker(address)
    return trouble(address, caught.value)


@pytest.mark.slow
def test_a_port_without_a_broker() -> None:
    assert said(f"amqp://guest:secret@127.0.0.1:{free_port()}/") == (
        "The broker at 127.0.0.1 ([workers] broker) cannot be reached: Connection refused. "
        "Check the host and the port in the address, and that RabbitMQ runs there"
    )


@pytest.mark.slow
def test_a_port_without_tls() -> None:
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    answering = threading.Thread(target=server.serve_forever)
    answering.start()
    try:
        sentence = said(f"amqps://guest:secret@127.0.0.1:{server.server_port}/")
    finally:
        server.shutdown()
        answering.join()
        server.server_close()
    assert sentence.startswith("The broker at 127.0.0.1 ([workers] broker) cannot be reached: ")
    assert sentence.endswith(
        "amqps:// needs a port where RabbitMQ has TLS, usually 5671, and a certificate that is trusted"
    )


def test_a_broker_that_drops_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    try_broker("memory://")
    monkeypatch.setattr("kombu.entity.Queue.get", lambda *_, **__: None)
    with pytest.raises(MessageNacked) as caught:
        try_broker("memory://")
    assert "takes no messages: a policy of the virtual host limits its queues" in trouble("memory://", caught.value)
