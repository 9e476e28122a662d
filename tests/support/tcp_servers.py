"""Servers of one's own protocol on loopback: mail servers, proxies."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


@contextmanager
def serving(conversation: type[socketserver.BaseRequestHandler]) -> Iterator[int]:
    """The port of a server that has a conversation in a thread for each connection."""
    with _Server(("127.0.0.1", 0), conversation) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
