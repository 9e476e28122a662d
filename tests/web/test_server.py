"""The socket that `serve` listens on."""

from __future__ import annotations

import socket

from metaharvest.web.server import listen


def test_the_body_of_an_answer_does_not_wait_for_the_acknowledgement_of_the_head() -> None:
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
