"""The process that reads files of others: `python -m ...reader_process pdf|markup MEMORY SECONDS`.

A message is its length, eight bytes, and its bytes. One comes in: a file. One goes out: an answer, as JSON. It has
`error`, one of the names in `reading`, or what was read. A crafted file may take over the process. Therefore it has few
rights: no new files, no room on the disk, MEMORY bytes, and SECONDS of processor time for each file.
"""

from __future__ import annotations

import codecs
import ctypes
import json
import os
import re
import resource
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

MOST_CHARACTERS = 20_000_000
"""Of a text; some 5,000 pages."""

LENGTH = struct.Struct("!Q")
OUT_OF_MEMORY = 77
"""The exit code of a process that has reached its memory limit."""

Answer = dict[str, Any]


def main() -> None:
    """Answer files from standard input until it is closed."""
    for each in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # the parent decides: its end closes standard input
        signal.signal(each, signal.SIG_IGN)
    mode, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    read = _PREPARED[mode]()
    _limit(memory)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while (content := received(source)) is not None:
        _allow(seconds)
        try:
            answer = read(content)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except Exception as error:  # noqa: BLE001 - the parent says which file it was
            answer = {"error": "unexpected", "message": f"{type(error).__name__}: {error}"}
        send(target, json.dumps(answer).encode())


def received(source: IO[bytes]) -> bytes | None:
    """The next message; None at the end."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    (size,) = LENGTH.unpack(head)
    content = source.read(size)
    return content if len(content) == size else None


def send(target: IO[bytes], content: bytes) -> None:
    """Write one message."""
    target.write(LENGTH.pack(len(content)))
    target.write(content)
    target.flush()


def _limit(memory: int) -> None:
    """Give up what no file needs. Libraries are loaded before."""
    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0)):
        _, highest = resource.getrlimit(kind)
        most = most if highest == resource.RLIM_INFINITY else min(most, highest)
        resource.setrlimit(kind, (most, most))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def _allow(seconds: int) -> None:
    """Let the process end when the next file takes more processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, highest = resource.getrlimit(resource.RLIMIT_CPU)
    most = int(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(
        resource.RLIMIT_CPU, (most if highest == resource.RLIM_INFINITY else min(most, highest), highest)
    )


# -- PDF


def _prepare_pdf() -> Callable[[bytes], Answer]:
    import pypdfium2
    import pypdfium2.raw as raw

    # This loads what is loaded at first use: afterwards the process opens no file.
    pypdfium2.PdfDocument.new().close()
    codecs.lookup("utf-16-le")

    def read(content: bytes) -> Answer:
        try:
            document = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError as error:
            is_locked = getattr(error, "err_code", None) in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY)
            return {"error": "encrypted" if is_locked else "damaged", "message": str(error)}
        try:
            return _pages(document, raw)
        finally:
            document.close()

    return read


def _pages(document: Any, raw: Any) -> Answer:
    """Each page: its text, and the place (x, y) at which each of its lines begins."""
    pages: list[tuple[str, list[int], list[int]]] = []
    characters = damaged = 0
    for number in range(len(document)):
        handle = raw.FPDF_LoadPage(document, number)
        text_page = raw.FPDFText_LoadPage(handle) if handle else None
        if text_page:
            pages.append(_page(text_page, raw))
            characters += len(pages[-1][0])
            raw.FPDFText_ClosePage(text_page)
        else:
            damaged += 1
        if handle:
            raw.FPDF_ClosePage(handle)
        if characters > MOST_CHARACTERS:
            return {"error": "too-large"}
    if damaged and not pages:
        return {"error": "damaged", "message": "no page can be read"}
    return {"pages": pages, "damaged": damaged}


def _page(text_page: Any, raw: Any) -> tuple[str, list[int], list[int]]:
    count = raw.FPDFText_CountChars(text_page)
    if count <= 0:
        return "", [], []
    buffer = ctypes.create_string_buffer(2 * count + 2)
    written = raw.FPDFText_GetText(text_page, 0, count, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)))
    text = buffer.raw[: 2 * max(0, written - 1)].decode("utf-16-le", "replace")
    x, y = ctypes.c_double(), ctypes.c_double()
    xs, ys, place = [], [], 0
    is_wide = not text.isascii() and any(c > "\uffff" for c in text)
    for line in text.split("\r\n"):
        index = raw.FPDFText_GetCharIndexFromTextIndex(text_page, place)
        raw.FPDFText_GetCharOrigin(text_page, index, x, y)
        xs.append(round(x.value))
        ys.append(round(y.value))
        place += len(line) + 2 + (sum(c > "\uffff" for c in line) if is_wide else 0)
    return text, xs, ys


# -- HTML and XML

_SAMPLE = "<html><body><article><p>" + "This is a text for the first call. " * 20 + "</p></article></body></html>"
_LANGUAGE = re.compile(rb"""<html\b[^<>]{0,500}?\slang\s?=\s?["']?([A-Za-z]{2,3})\b""", re.IGNORECASE)
_LINES = re.compile(r"\n+")
_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "nav", "form", "button", "head"))
_FEW = 200
"""A page with fewer characters of main text may be one whose text was not recognised as such."""


def _prepare_markup() -> Callable[[bytes], Answer]:
    """Load what pages need, also the charsets: afterwards the process opens no file."""
    import encodings.aliases
    import logging

    import trafilatura

    from metaharvest.pipeline.extraction import jats

    logging.disable()
    for name in set(encodings.aliases.aliases.values()):
        with suppress(LookupError):
            codecs.lookup(name)
    for page in (_SAMPLE.encode(), b"<html><body></body></html>", b"<p>\xe4"):
        _web_page(page)
        trafilatura.extract(page, favor_recall=True)

    def read(content: bytes) -> Answer:
        """A first byte tells XML (x) from HTML (h)."""
        answer = jats.read(content[1:]) if content[:1] == b"x" else _web_page(content[1:])
        return answer if len(answer.get("text", "")) <= MOST_CHARACTERS else {"error": "too-large"}

    return read


def _web_page(content: bytes) -> Answer:
    """The text of a page without menus and advertisements, and its language."""
    import trafilatura
    from trafilatura.utils import load_html

    tree = load_html(content)
    if tree is None:
        return {"error": "no-text"}
    declared = _LANGUAGE.search(content[:4096])
    text = trafilatura.extract(tree, favor_recall=True, include_comments=False) or ""
    if len(text) < _FEW and len(everything := _all_text(tree)) > _FEW:
        text = everything
    if not text.strip():
        return {"error": "no-text"}
    return {"text": _LINES.sub("\n\n", text), "language": declared[1].decode().lower() if declared else None}


def _all_text(tree: Any) -> str:
    """All text of the page: a line for each element that has some."""
    lines = []
    pending = [tree]
    while pending:
        element = pending.pop()
        if isinstance(element, str):
            lines.append(" ".join(element.split()))
        elif isinstance(element.tag, str) and element.tag not in _SKIPPED:
            pending.extend(part for child in reversed(element) for part in (child.tail or "", child))
            lines.append(" ".join((element.text or "").split()))
    return "\n".join(line for line in lines if line)


_PREPARED: dict[str, Callable[[], Callable[[bytes], Answer]]] = {"pdf": _prepare_pdf, "markup": _prepare_markup}

if __name__ == "__main__":
    with suppress(BrokenPipeError):
        main()
