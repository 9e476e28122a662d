"""A readers-writer lock for libxml2: many threads may parse at once; a schema is compiled while no thread parses.

Two things make it necessary. lxml gives libxml2 its loader of included files through a setting of the whole process,
which every parse sets and restores: a schema that is compiled at the same time can lose the loader, and with it the
files that it imports. And libxml2 initialises its built-in types with the first schema of a process, without a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_changed = threading.Condition()
_parsing = 0
"""Threads that parse now."""
_compilers = 0
"""Threads that compile, or wait for their turn."""
_compiling = False


@contextmanager
def parsing() -> Iterator[None]:
    """Hold while parsing or validating. Waits while a thread compiles a schema, or waits to do so."""
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
    """Hold while compiling a schema. Waits until no other thread parses or compiles."""
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
