"""All threads of a command share one heap."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, sys, threading
from metaharvest.cli import share_one_heap
if sys.argv[1] == "one":
    share_one_heap()
together = threading.Barrier(4)
def take():
    kept = bytearray(10_000)
    together.wait()
threads = [threading.Thread(target=take) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen(sys.argv[2].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="Only glibc has several heaps.")
def test_threads_share_one_heap(tmp_path: Path) -> None:
    numbers = {}
    for heaps in ("own", "one"):
        file = tmp_path / heaps
        subprocess.run([sys.executable, "-c", PROGRAM, heaps, str(file)], check=True)
        numbers[heaps] = file.read_text().count("<heap nr=")
    assert numbers["one"] == 1
    assert numbers["own"] > 1
