"""The charset of the header Content-Type, for an OAI-PMH answer or a harvest list that declares no encoding."""

from __future__ import annotations

import codecs
import re
import shutil
import tempfile
from typing import BinaryIO

from metaharvest.fetch.xml_bounds import DECLARATION_BYTES

_PART = 1_048_576

ONE_BYTE = re.compile(r"iso-8859-(?:[1-9]|1[013-6])|windows-125[0-8]|koi8-[ru]")
"""The encodings whose tags can be found in bytes, and whose texts Python decodes.

All others are read as UTF-8. US-ASCII is a part of it.
"""

_CHARSET = re.compile(r"""(?i)\bcharset\s*=\s*["']?([A-Za-z0-9._-]{1,40})""")
_UNDECLARED = re.compile(
    rb"""(\s*+(?:<\?xml\s+version\s*=\s*["']1\.\d["'](?:\s+standalone\s*=\s*["'](?:yes|no)["'])?\s*\?>|(?!))?+)"""
    rb"""(?:\s++|<\?(?!xml\s)[^>]*+>|<!--[^>]*+>|(?!))*+"""
    rb"""(?=<(?:[A-Za-z_][\w.-]{0,99}:)?(?:OAI|Identify|GetRecord|List|harvestList))"""
)
"""An answer or a list that declares no encoding, up to its root element: its declaration, instructions and comments."""


async def apply_charset(file: BinaryIO, content_type: str) -> None:
    """Declare the charset of the Content-Type in `file` if it applies; `file` is at its start afterwards.

    A cancelled caller waits for the thread, which uses the file.
    """
    import asyncio  # the process that reads answers needs no event loop: 3 MB

    file.seek(0)
    charset = charset_for(file.read(DECLARATION_BYTES), content_type)
    file.seek(0)
    if charset:
        running = asyncio.get_running_loop().run_in_executor(None, declare_charset, file, charset)
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise


def charset_for(head: bytes, content_type: str) -> str:
    """The charset of the Content-Type, if it says how to read an answer or a list that begins so; otherwise empty.

    It applies to one that declares no encoding: https://www.rfc-editor.org/rfc/rfc7303#section-3
    """
    named = _CHARSET.search(content_type)
    charset = named[1].lower() if named else ""
    return charset if ONE_BYTE.fullmatch(charset) and _UNDECLARED.match(head) else ""


def declare_charset(file: BinaryIO, charset: str) -> None:
    """Put a declaration before an answer or a list (see charset_for), unless it is UTF-8.

    Many servers send one charset always. `file` is at its start before and afterwards. To be called in a thread.
    """
    is_utf_8 = _is_utf_8(file)
    file.seek(0)
    if is_utf_8 or (begun := _UNDECLARED.match(file.read(DECLARATION_BYTES))) is None:
        file.seek(0)
        return
    with tempfile.SpooledTemporaryFile(_PART) as other:
        file.seek(begun.end(1))
        shutil.copyfileobj(file, other, _PART)
        other.seek(0)
        file.seek(0)
        file.truncate()
        file.write(f'<?xml version="1.0" encoding="{charset}"?>'.encode())
        shutil.copyfileobj(other, file, _PART)
    file.seek(0)


def _is_utf_8(file: BinaryIO) -> bool:
    """True if most bytes beyond ASCII are characters of UTF-8; the others are damage."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    others = wrong = 0
    while part := file.read(_PART):
        text = decoder.decode(part)
        others += len(text) - len(text.encode("ascii", "ignore"))
        wrong += text.count("\ufffd")
    return 2 * wrong <= others
