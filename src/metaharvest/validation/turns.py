"""Lets many threads parse at once, and one compile a schema while none parses.

lxml hands libxml2 its loader of included files by a setting of the whole process, which every parse sets and puts back:
a schema that is compiled beside a parse loses the loader, and with it what it imports. And libxml2 sets up its built-in
types with the first schema of a process, without a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_changed = threading.Condition()
_parsing = 0
_compilers = 0
_compiling = False


@contextmanager
def parsing() -> Iterator[None]:
    """For whatever parses: beside others that do, never beside the compiling of a schema."""
    global _parsing
    with _changed:
        while _compilers:
            _changed.wait()
        _parsing += 1
    try:
        yield
    finally:
        with _changed:
            _parsing -= 1
            _changed.notify_all()


@contextmanager
def compiling() -> Iterator[None]:
    """For the compiling of a schema: alone. Those who want to parse wait until nobody wants to compile."""
    global _compilers, _compiling
    with _changed:
        _compilers += 1
        while _parsing or _compiling:
            _changed.wait()
        _compiling = True
    try:
        yield
    finally:
        with _changed:
            _compilers -= 1
            _compiling = False
            _changed.notify_all()
