"""Reads files of others by processes with limits; a file that ends its process costs itself alone.

A process starts with its first file, and serves one file after the other: to start it takes longer than most files.
"""

from __future__ import annotations

import codecs
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from metaharvest.model.values import frozen
from metaharvest.pipeline.extraction.citation import Reference, marked
from metaharvest.pipeline.extraction.page_lines import Line, lines_of_pages, lines_of_text, text_of
from metaharvest.pipeline.extraction.reader_process import LENGTH, OUT_OF_MEMORY, send
from metaharvest.pipeline.full_text import kinds
from metaharvest.pipeline.full_text.kinds import Kind
from metaharvest.text import one_line

LARGEST = {"pdf": 104_857_600, "xml": 52_428_800, "html": 20_971_520, "plain": 20_971_520}
"""Bytes of a file of each kind that is read."""

MEMORY = 1_073_741_824
"""Bytes that a process may use for data."""

SECONDS = 30
"""The processor time for one file."""

_ON_THE_CLOCK = 4
"""The time for one file on the clock, as a multiple: other programs use the processor as well."""

_LARGEST_ANSWER = 268_435_456
_FEWEST_LETTERS = 40
"""A PDF with fewer letters has no text layer: only a stamp of the archive or of the scanner."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@frozen
class Reading:
    """What a file has. `pages` is None where a file has none.

    `language` is declared by the file, `references` are marked as such in it; None: the text has them.
    """

    text: str
    lines: tuple[Line, ...]
    pages: int | None = None
    language: str | None = None
    references: tuple[Reference, ...] | None = None


class Unreadable(Exception):
    """A file has no text for us: a rule of rules.py, and a sentence."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


_KINDS = {Kind.PDF: "pdf", Kind.HTML: "html", Kind.JATS: "xml", Kind.XML: "xml"}


def kind_of(media_type: str, content: bytes) -> str:
    """pdf, html, xml or plain. The bytes count more than the media type. Raises Unreadable for anything else."""
    if kind := _KINDS.get(kinds.kind_of(content, media_type)):
        return kind
    if media_type.strip().lower().startswith("text/") and b"\0\0\0" not in content[:1024]:
        return "plain"
    shown = one_line(kinds.bare_type(media_type), 80) or "of unknown type"
    raise Unreadable("extraction.unknown-type", f"The file ({shown}) is neither PDF nor HTML, XML or plain text.")


class FileReader:
    """Reads files. Use it in a `with`: the end stops the processes. One thread at a time."""

    def __init__(self, memory: int = MEMORY, seconds: int = SECONDS) -> None:
        self._limits = memory, seconds
        self._processes: dict[str, _Process] = {}

    def read(self, content: bytes, media_type: str) -> Reading:
        """The text of a file. Raises Unreadable."""
        kind = kind_of(media_type, content)
        if len(content) > LARGEST[kind]:
            raise Unreadable("extraction.too-large", f"The file has more than {LARGEST[kind] // 1_048_576} MB.")
        if kind == "plain":
            return of_text(_decoded(content, media_type))
        if kind == "pdf":
            return _of_pages(self._answer("pdf", content))
        answer = self._answer("markup", (b"x" if kind == "xml" else b"h") + content)
        return of_text(answer["text"], answer.get("language"), [marked(each) for each in answer.get("references", ())])

    def _answer(self, mode: str, content: bytes) -> Mapping[str, Any]:
        """What the process answers. Raises Unreadable.

        A file under which an old process ends is tried again in a new one: earlier files may have used its memory.
        A file whose process was ended from outside is tried again, too.
        """
        process = self._processes.setdefault(mode, _Process(mode, *self._limits))
        for is_last in (False, True):
            is_new = process.is_new
            try:
                answer = process.answer(content)
                break
            except _Ended as ended:
                if is_last or ended.is_over_time or (is_new and not ended.is_from_outside):
                    raise Unreadable("extraction.too-expensive", ended.sentence) from None
        if error := answer.get("error"):
            raise Unreadable(*_sentence(str(error), str(answer.get("message", ""))))
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        for process in self._processes.values():
            process.kill()


class _Ended(Exception):
    """The process has ended under a file. `is_from_outside`: the system or a person has ended it."""

    def __init__(self, sentence: str, *, is_over_time: bool = False, is_from_outside: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.is_over_time = is_over_time
        self.is_from_outside = is_from_outside


class _Process:
    """A reader process, started when it is needed."""

    def __init__(self, mode: str, memory: int, seconds: int) -> None:
        self._arguments = mode, str(memory), str(seconds)
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_new(self) -> bool:
        return self._process is None

    def answer(self, content: bytes) -> dict[str, Any]:
        """The answer of the process about this file. Raises _Ended."""
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            send(process.stdin, content)
            until = time.monotonic() + _ON_THE_CLOCK * self._seconds
            size = LENGTH.unpack(self._bytes(process, LENGTH.size, until))[0]
            if size > _LARGEST_ANSWER:
                raise _Ended("The file gives more text than a program can use.")
            answer: dict[str, Any] = json.loads(self._bytes(process, size, until))
            return answer
        except (BrokenPipeError, EOFError):
            raise self._why(process) from None
        except BaseException:
            self.kill()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-m", "metaharvest.pipeline.extraction.reader_process", *self._arguments]
        environment = {key: value for key, value in os.environ.items() if key in _ENVIRONMENT}
        environment["PYTHONPATH"] = os.pathsep.join(part for part in sys.path if part)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        return self._process

    def _bytes(self, process: subprocess.Popen[bytes], size: int, until: float) -> bytes:
        """The next bytes of the answer. Raises EOFError, and _Ended when the time is over."""
        assert process.stdout is not None
        number, parts = process.stdout.fileno(), bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(number, selectors.EVENT_READ)
            while len(parts) < size:
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise self._over_time()
                part = os.read(number, min(size - len(parts), 1_048_576))
                if not part:
                    raise EOFError
                parts += part
        return bytes(parts)

    def _why(self, process: subprocess.Popen[bytes]) -> _Ended:
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        code = process.poll()
        self.kill()
        if code == -signal.SIGXCPU:
            return self._over_time()
        if code == -signal.SIGKILL:
            sentence = "The system ended the process that read the file: the memory of the machine may be full."
            return _Ended(sentence, is_from_outside=True)
        if code == OUT_OF_MEMORY:
            return _Ended("The reading of the file takes too much memory.")
        return _Ended("The process that read the file crashed: the file is damaged, or made to do harm.")

    def _over_time(self) -> _Ended:
        return _Ended(f"The reading of the file takes more than {self._seconds} seconds.", is_over_time=True)

    def kill(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()


_ENVIRONMENT = frozenset(("PATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LANG", "LC_ALL"))
"""The variables that the process gets: passwords may be in others."""

_SENTENCES = {
    "encrypted": ("extraction.encrypted", "The PDF opens only with a password."),
    "damaged": ("extraction.damaged", "The file is damaged or not complete"),
    "too-large": ("extraction.too-large", "The text of the file has more than 20 million characters."),
    "unknown-xml": ("extraction.unknown-type", "The XML is neither JATS nor TEI: its root element is"),
    "no-text": ("extraction.no-text", "The file has no text."),
}


def _sentence(error: str, message: str) -> tuple[str, str]:
    rule, sentence = _SENTENCES.get(error, ("extraction.damaged", "The file cannot be read"))
    if sentence.endswith("."):
        return rule, sentence
    reason = one_line(message, 200).rstrip(". ")
    return rule, f"{sentence}: {reason}." if reason else f"{sentence}."


def _decoded(content: bytes, media_type: str) -> str:
    """The text: by its byte order mark, as UTF-8, by the charset of the media type, else as Windows-1252.

    Text that is valid UTF-8 and not ASCII is hardly ever anything else, whatever a server declares.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    for encoding in ("utf-8", kinds.charset_of(media_type) or "", "cp1252"):
        try:
            return content.decode(encoding)
        except (LookupError, UnicodeError):
            continue
    return content.decode("latin-1")


def of_text(text: str, language: str | None = None, references: Sequence[Reference] = ()) -> Reading:
    """The reading of a text without pages. Raises Unreadable for a text without letters."""
    lines = lines_of_text(text)
    text = text_of(lines)
    _require_letters(text, "The file has no text.", fewest=1)
    return Reading(text, tuple(lines), language=language, references=tuple(references) or None)


def _of_pages(answer: Mapping[str, Any]) -> Reading:
    pages = answer["pages"]
    lines = lines_of_pages(pages)
    text = text_of(lines)
    _require_letters(text, "The PDF has no text layer: it may be a scan.", _FEWEST_LETTERS)
    return Reading(text, tuple(lines), len(pages) + answer.get("damaged", 0))


def _require_letters(text: str, message: str, fewest: int) -> None:
    if len(text) < 1000 and sum(3 if "\u2e80" <= c <= "\ud7af" else c.isalpha() for c in text) < fewest:
        raise Unreadable("extraction.no-text", message)
