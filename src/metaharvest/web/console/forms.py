"""The form of a request: read within a limit, its texts, days and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import parse_qsl

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message

from metaharvest.errors import RequestError
from metaharvest.model.values import frozen
from metaharvest.text import one_line

_MOST_FIELDS = 5000
_MOST_FILES = 1000
_MOST_BYTES_AT_ONCE = 134_217_728
_UNCOUNTED_BYTES = 1_048_576
"""The most bytes of all forms in memory together. The first bytes of each form, _UNCOUNTED_BYTES, do not count."""

_MOST_ENCODED_BYTES = 1_048_576
"""The largest form without files: its escapes take 20 times the time and 80 times the memory of a file."""

_UTF_8 = (b"utf-8", b"utf8")


_FIRST_DAY, _LAST_DAY = date(1900, 1, 1), date(9000, 1, 1)


def day_of(text: str, field: str) -> date | None:
    """The day that a person wrote in this field; None if the text is empty. Raises RequestError."""
    text = text.strip()
    try:
        day = date.fromisoformat(text) if text else None
    except ValueError:
        raise RequestError.about(field, f"'{one_line(text, 40)}' is not a day: write it as 2026-11-20.") from None
    if day is not None and not _FIRST_DAY <= day <= _LAST_DAY:
        raise RequestError.about(field, f"{day} is too far away: it must be from {_FIRST_DAY} to {_LAST_DAY}.")
    return day


class RefusedForm(Exception):
    """The form of a request is not read: the status of the answer, and its sentence."""

    status = 400
    sentence = ""


class TooLarge(RefusedForm):
    """The body of a request is larger than its page, or a form of its kind, may be."""

    status = 413

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes)
        kib = most_bytes // 1024
        most = f"{kib:,} KiB" if kib < 1024 else f"{kib // 1024:,} MiB"
        self.sentence = f"This is too large: this page takes {most} at most. Send a smaller file, or fewer."


class Busy(RefusedForm):
    """Others send large forms at this moment."""

    status = 503
    sentence = "Others are sending large files at this moment. Please try again in a minute."


class NotReadable(RefusedForm):
    """The body of a request is no form."""

    sentence = "What was sent cannot be read as a form."


@frozen
class Upload:
    """A file that was sent: the name that the browser gave it, and its bytes."""

    name: str
    content: bytes


class Form:
    """The values of a form, by the names of its fields."""

    def __init__(self, texts: Sequence[tuple[str, str]] = (), files: Sequence[tuple[str, Upload]] = ()) -> None:
        self._texts = texts
        self._files = files

    def text(self, name: str, default: str = "") -> str:
        """The first value of this field without spaces around it; `default` if the form has no such field."""
        return next((value.strip() for each, value in self._texts if each == name), default)

    def texts(self, name: str) -> list[str]:
        """All values of this field, as of boxes that are ticked."""
        return [value for each, value in self._texts if each == name]

    def whole(self, name: str) -> str:
        """The first value of this field as it was sent, for texts in which spaces count."""
        return next((value for each, value in self._texts if each == name), "")

    def is_set(self, name: str) -> bool:
        """True if the form has this field, as of a box that is ticked."""
        return any(each == name for each, _ in self._texts)

    def files(self, name: str) -> list[Upload]:
        """The files of this field; an empty field has none."""
        return [upload for each, upload in self._files if each == name and (upload.name or upload.content)]


@dataclass
class _Room:
    """The bytes of large forms that are in memory; used by the one thread that reads forms."""

    taken: int = 0


_room = _Room()


async def read_form(request: Request, most_bytes: int) -> Form:
    """The form in the body of this request. Raises TooLarge, Busy, NotReadable."""
    media_type, options = parse_options_header(request.headers.get("content-type"))
    if media_type != b"multipart/form-data":
        most_bytes = min(most_bytes, _MOST_ENCODED_BYTES)
    elif options.get(b"charset", _UTF_8[0]).lower() not in _UTF_8:
        # Browsers send UTF-8. Some codecs of Python take the square of a text's length, and make half characters.
        raise NotReadable
    body, counted = bytearray(), 0
    try:
        async for part in request.stream():
            body += part
            if len(body) > most_bytes:
                raise TooLarge(most_bytes)
            if len(body) - counted > _UNCOUNTED_BYTES:
                more = len(body) - counted
                if _room.taken + more > _MOST_BYTES_AT_ONCE:
                    raise Busy
                _room.taken += more
                counted += more
        if media_type == b"application/x-www-form-urlencoded":
            return await run_in_threadpool(_decoded, bytes(body))
        return await _parsed(request, bytes(body), most_bytes)
    except ClientDisconnect as error:
        raise NotReadable from error
    finally:
        _room.taken -= counted


def _decoded(body: bytes) -> Form:
    """The form without files in this body. Raises NotReadable."""
    try:
        texts = parse_qsl(body.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise NotReadable from error
    return _form(texts, [])


async def _parsed(request: Request, body: bytes, most_bytes: int) -> Form:
    """The form with files in this body; an empty one if the body is no form. Raises NotReadable."""

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    texts, files = list[tuple[str, str]](), list[tuple[str, Upload]]()
    try:
        parsing = Request(request.scope, receive).form(
            max_files=_MOST_FILES, max_fields=_MOST_FIELDS, max_part_size=most_bytes
        )
        async with parsing as form:
            for name, value in form.multi_items():
                if isinstance(value, UploadFile):
                    files.append((name, Upload(value.filename or "", await value.read())))
                else:
                    texts.append((name, value))
    except (HTTPException, MultiPartException, FormParserError, UnicodeError, ValueError, KeyError) as error:
        raise NotReadable from error
    return _form(texts, files)


def _form(texts: Sequence[tuple[str, str]], files: Sequence[tuple[str, Upload]]) -> Form:
    # No database stores this character, and no person writes it.
    if any("\0" in text for pair in texts for text in pair):
        raise NotReadable
    return Form(texts, files)
