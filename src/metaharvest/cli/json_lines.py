"""`--log-format json`: all of stderr is JSON, an object a line: sentences of commands as well as the log."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, TextIO

import click

from metaharvest.config.secret_references import masked


def are_asked_for(arguments: Sequence[str]) -> bool:
    """True if a command line asks for them; checked before parsing, so that its errors are JSON, too."""
    return "--log-format=json" in arguments or ("--log-format", "json") in pairwise(arguments)


class JsonLines(io.TextIOBase):
    """The replacement for stderr: each written line becomes one object."""

    def __init__(self, stream: TextIO, formatter: logging.Formatter) -> None:
        self._stream = stream
        self._formatter = formatter
        self._begun = ""

    def write(self, text: str) -> int:
        """Take a part of a line, or some lines that belong together."""
        self._begun += text
        if self._begun.endswith("\n"):
            said, self._begun = self._begun.strip(), ""
            if said:
                self._stream.write(self.line(said))
        return len(text)

    def line(self, text: str, level: int = logging.INFO) -> str:
        """The object with this text, as a line."""
        record = logging.LogRecord("metaharvest", level, "", 0, text, None, None)
        return self._formatter.format(record) + "\n"

    def say(self, text: str, level: int) -> None:
        """Write one object with this text."""
        self._stream.write(self.line(text, level))
        self.flush()

    def flush(self) -> None:
        """Flush stderr."""
        self._stream.flush()

    def close(self) -> None:
        """Close stderr."""
        self._stream.close()
        super().close()


def json_formatter() -> logging.Formatter:
    """Writes records as JSON, without secrets."""
    from pythonjsonlogger.json import JsonFormatter

    class MaskedJson(JsonFormatter):
        def process_log_record(self, log_data: dict[str, Any]) -> dict[str, Any]:
            # Before the text is encoded: JSON escapes quotes and other letters than ASCII in a secret.
            return {name: masked(value) if isinstance(value, str) else value for name, value in log_data.items()}

        def format(self, record: logging.LogRecord) -> str:
            return masked(super().format(record))

    fields = {"asctime": "time", "levelname": "level", "name": "logger"}
    return MaskedJson("%(asctime)s %(levelname)s %(name)s %(message)s", rename_fields=fields)


def print_failure(text: str) -> None:
    """Print on stderr that the command failed, and why, if stderr is writable."""
    with suppress(OSError):
        if isinstance(sys.stderr, JsonLines):
            sys.stderr.say(text, logging.ERROR)
        else:
            click.echo(text, err=True)


def print_note(text: str) -> None:
    """Print a note on stderr: a full disk, or a closed stderr, must not stop the command."""
    with suppress(OSError):
        click.echo(text, err=True)
