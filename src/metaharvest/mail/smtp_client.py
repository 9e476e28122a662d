"""The library's SMTP client, with limits to a server's answers: their length, and the time until they are whole.

`smtplib` waits for each part of an answer, and reads as many lines as come: a server that never ends its answer took
all memory, or held the run for ever.
"""

from __future__ import annotations

import smtplib
import socket
import time

LONGEST_ANSWER = 65_536
"""Bytes of one answer with all its lines; RFC 5321, 4.5.3.1.5, allows 512 for a line."""

_PIECE = 4_096


class AnswerTooLong(OSError):
    """An answer that was not read to its end."""


class _AnswerReader:
    """Reads lines from a connection. The library calls `readline` and `close`; `begin` starts a new answer."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._seconds = seconds
        self._received = b""
        self._read = 0
        self._ends = 0.0

    def begin(self) -> None:
        """The next line is the first one of an answer."""
        self._read = 0
        self._ends = time.monotonic() + self._seconds

    def readline(self, limit: int) -> bytes:
        """A line, or the beginning of a longer one; empty at the end. Raises AnswerTooLong, TimeoutError."""
        while (end := self._received.find(b"\n", 0, limit)) < 0 and len(self._received) < limit:
            if not (piece := self._piece()):
                break
            self._received += piece
        size = end + 1 if end >= 0 else min(limit, len(self._received))
        line, self._received = self._received[:size], self._received[size:]
        self._read += size
        if self._read > LONGEST_ANSWER:
            raise AnswerTooLong(f"an answer of more than {LONGEST_ANSWER:,} bytes")
        return line

    def close(self) -> None:
        """Nothing: the connection is the client's to close."""

    def _piece(self) -> bytes:
        if (left := self._ends - time.monotonic()) <= 0:
            raise TimeoutError("timed out")
        before = self._connection.gettimeout()
        self._connection.settimeout(left)
        try:
            return self._connection.recv(_PIECE)
        finally:
            self._connection.settimeout(before)


class _BoundedAnswers:
    """Bounds the answers of both clients. After STARTTLS the library makes a new reader, which drops earlier text."""

    file: _AnswerReader | None
    sock: socket.socket
    timeout: float

    def getreply(self) -> tuple[int, bytes]:
        """Code and text of an answer. Raises SMTPServerDisconnected, whose context has the reason."""
        if self.file is None:
            self.file = _AnswerReader(self.sock, self.timeout)
        self.file.begin()
        return super().getreply()  # type: ignore[misc, no-any-return]


class SmtpClient(_BoundedAnswers, smtplib.SMTP):  # type: ignore[misc]
    """Speaks SMTP, and STARTTLS."""


class SmtpTlsClient(_BoundedAnswers, smtplib.SMTP_SSL):  # type: ignore[misc]
    """Speaks SMTP over TLS from the beginning."""
