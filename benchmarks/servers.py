"""The web servers of the benchmarks: nginx for speed, a small asyncio server for slowness. Both on loopback alone."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

NGINX = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
worker_rlimit_nofile 65536;
events {{ worker_connections 16384; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  sendfile on; tcp_nopush on; keepalive_timeout 60; keepalive_requests 1000000;
  types {{ application/xml xml; }}
  server {{
{listen}
    root {root};
    {options}
  }}
}}
"""
FORGETFUL = "etag off; if_modified_since off; add_header Last-Modified '';"
"""nginx options that make it answer every conditional request in full, and name neither ETag nor Last-Modified."""


class MissingTool(Exception):
    """A program that the benchmarks need is not installed."""


def tool(name: str, package: str) -> str:
    """The path of a program. Raises MissingTool."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found is None:
        raise MissingTool(f"The benchmarks need {name}: apt-get install {package}")
    return found


def hosts(count: int) -> list[str]:
    """This number of loopback addresses, from 127.0.0.2 on."""
    return [f"127.0.{number // 250}.{number % 250 + 1}" for number in range(1, count + 1)]


def free_port() -> int:
    """A port of four digits, as such ports are, that is free on every loopback address at this moment."""
    for port in random.sample(range(8100, 10_000), 100):
        with socket.socket() as probe:
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port was found between 8100 and 9999")


@contextmanager
def nginx(root: Path, addresses: Sequence[str], port: int, scratch: Path, options: str = "") -> Iterator[None]:
    """nginx serving `root` on `port` of all `addresses`, as long as the context lasts."""
    folder = scratch / "nginx"
    folder.mkdir(exist_ok=True)
    listen = "\n".join(f"    listen {address}:{port};" for address in addresses)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, listen=listen, root=root, options=options), encoding="utf-8")
    process = subprocess.Popen(
        [tool("nginx", "nginx-light"), "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(config)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with _running(process, addresses[-1], port):
        yield


@contextmanager
def slow_server(root: Path, addresses: Sequence[str], port: int, latency: float) -> Iterator[None]:
    """A server in a process of its own that waits `latency` seconds before each answer."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.servers", str(root), str(port), str(latency), *addresses],
        cwd=Path(__file__).parents[1],
    )
    with _running(process, addresses[-1], port):
        yield


@contextmanager
def _running(process: subprocess.Popen[bytes], host: str, port: int) -> Iterator[None]:
    try:
        _await_answer(process, host, port)
        yield
    finally:
        process.terminate()
        process.wait(20)


def _await_answer(process: subprocess.Popen[bytes], host: str, port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"the web server on {host}:{port} did not start")


class _Sleeper(asyncio.Protocol):
    """Answers each GET with the file that it names, after the latency. Requests of one connection come in turn."""

    def __init__(self, files: dict[bytes, bytes], latency: float) -> None:
        self._files = files
        self._latency = latency
        self._waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        while b"\r\n\r\n" in self._waiting:
            head, _, self._waiting = self._waiting.partition(b"\r\n\r\n")
            asyncio.get_running_loop().call_later(self._latency, self._answer, head.split(b" ", 2)[1])

    def _answer(self, path: bytes) -> None:
        if self._transport.is_closing():
            return
        content = self._files.get(path)
        status = b"404 Not Found" if content is None else b"200 OK"
        content = content or b""
        head = b"HTTP/1.1 %s\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n" % (status, len(content))
        self._transport.write(head + content)  # type: ignore[attr-defined]


async def _serve(root: Path, port: int, latency: float, addresses: Sequence[str]) -> None:
    files = {f"/{path.relative_to(root)}".encode(): path.read_bytes() for path in root.rglob("*.xml")}
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(lambda: _Sleeper(files, latency), address, port, backlog=256) for address in addresses
    ]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]))
