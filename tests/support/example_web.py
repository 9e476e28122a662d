"""The web sites of the documentation's examples, `https://....example.org`, as a proxy on loopback answers for them.

Commands that are shown can so be run as they are written: settings of the environment name the proxy, and the authority
that has signed its certificates.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import trustme

Page = Callable[[str, str], bytes | None]
"""What is at a host and path, with its query; None: nothing."""


class _Server(ThreadingHTTPServer):
    """`tls` has a certificate for every host of the examples."""

    daemon_threads = True

    def __init__(self, page: Page, tls: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), _Proxy)
        self.page = page
        self.tls = tls


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    host = ""

    def do_CONNECT(self) -> None:
        """From here on this is the host that was asked for."""
        self.host = self.path.partition(":")[0]
        self.send_response(200)
        self.end_headers()
        self.wfile.flush()
        self.rfile.close()
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb", -1)
        self.wfile = self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        content = self.server.page(self.host or url.netloc, f"{url.path}?{url.query}".removesuffix("?"))
        body = b"There is nothing here.\n" if content is None else content
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def example_web(folder: Path, page: Page) -> Iterator[Mapping[str, str]]:
    """The settings of the environment with which whatever is asked for is answered by `page`."""
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("*.example.org").configure_cert(tls)
    authority.cert_pem.write_to_path(folder / "examples.pem")
    server = _Server(page, tls)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield {
            "METAHARVEST_HTTP__PROXY": f"http://127.0.0.1:{server.server_address[1]}",
            "METAHARVEST_HTTP__CA_FILE": str(folder / "examples.pem"),
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
