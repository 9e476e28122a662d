"""Two servers from PyPI that speak the protocol of OpenSearch, on free ports of this computer: osmem and noida."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.ports import free_port
from support.waiting import wait_until

_PACKAGES = {"osmem": ("osmem_server", "bin/osmem-server"), "noida": ("noida_db", "noida-db")}


@contextmanager
def search_server(name: str) -> Iterator[str]:
    """The URL of a running server. Without its package the test is skipped, or fails with REQUIRE_SERVICES=1."""
    program, port = _program(name), free_port()
    folder = Path(tempfile.mkdtemp(prefix="metaharvest-search-"))
    process = subprocess.Popen(
        [program, *_arguments(name, port, folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.PIPE,  # osmem ends with its standard input
        start_new_session=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _answers(url))
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def _arguments(name: str, port: int, folder: Path) -> Sequence[str]:
    if name == "osmem":
        return ["--addr", f"127.0.0.1:{port}", "--no-ja"]
    return ["start", "--data-dir", str(folder), "--only", "elasticsearch", "--elasticsearch-port", str(port)]


def _program(name: str) -> Path:
    package, path = _PACKAGES[name]
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        missing = f"The package {package.replace('_', '-')} is not installed: it has a search server for tests."
        (pytest.fail if os.environ.get("REQUIRE_SERVICES") == "1" else pytest.skip)(missing)
    return Path(found.origin).parent / path


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
