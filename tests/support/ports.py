"""Ports for servers that a test starts, stops and starts again at the same place."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from random import SystemRandom


def free_port(*hosts: str) -> int:
    """A port that nothing listens on at these addresses (127.0.0.1), below those that systems give to connections.

    Those are from 32768 on in Linux. While its server is away, no connection of another test can be given it.
    """
    for port in SystemRandom().sample(range(20_000, 32_000), 100):
        with suppress(OSError), ExitStack() as stack:
            for host in hosts or ("127.0.0.1",):
                stack.enter_context(socket.create_server((host, port)))
            return port
    raise AssertionError("all ports are taken")
