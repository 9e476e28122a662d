"""Mutations as hypothesis draws them: a handful of changes to one of the real shapes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

_TAG = re.compile(rb"<[^<>]{1,200}>")
_TEXT = re.compile(rb">[^<>]+<")
_VALUE = re.compile(rb'="[^"]*"')
_ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7", "shift_jis")
_DECLARED = (b"UTF-8", b"UTF-16", b"ISO-8859-1", b"EBCDIC-CP-US", b"UTF-7", b"hex", b"idna", b"x" * 50, b"rot13", b"")


@dataclass(frozen=True)
class Change:
    """One change; `at` and `length` are taken modulo what there is."""

    kind: str
    at: int
    length: int
    piece: bytes

    def apply(self, content: bytes) -> bytes:
        start = self.at % (len(content) + 1)
        end = min(len(content), start + self.length)
        match self.kind:
            case "cut":
                return content[:start]
            case "flip":
                return (
                    content[:start]
                    + bytes(byte ^ 1 << self.length % 8 for byte in content[start : start + 1])
                    + content[start + 1 :]
                )
            case "double":
                return content[:end] + content[start:end] * (1 + self.at % 3) + content[end:]
            case "declare":
                declared = b'<?xml version="1.0" encoding="%b"?>' % _DECLARED[self.at % len(_DECLARED)]
                return declared + re.sub(rb"^(?:\xef\xbb\xbf)?<\?xml[^>]*\?>", b"", content)
            case "recode":
                return _recoded(content, _ENCODINGS[self.at % len(_ENCODINGS)])
            case "text":
                return _instead(_TEXT, content, self.at, b">" + self.piece + b"<")
            case "value":
                return _instead(_VALUE, content, self.at, b'="' + self.piece + b'"')
            case "tag":
                return _instead(_TAG, content, self.at, _nth(_TAG, content, self.length))
            case "attributes" | "namespaces":
                name = b"xmlns:n%d" if self.kind == "namespaces" else b"a%d"
                many = b"".join(b" " + name % number + b'="u"' for number in range(6 * self.length))
                tag = _nth(_TAG, content, self.at)
                return _instead(_TAG, content, self.at, re.sub(rb"(?=/?>\Z)", lambda _: many, tag, count=1))
            case "nest":
                deep: int = 10 ** (self.at % 5)
                return content[:start] + b"<a>" * deep + content[start:end] + b"</a>" * deep + content[end:]
        return content[:start] + self.piece + content[end:]


def _nth(pattern: re.Pattern[bytes], content: bytes, number: int) -> bytes:
    found: list[bytes] = pattern.findall(content)
    return found[number % len(found)] if found else b""


def _instead(pattern: re.Pattern[bytes], content: bytes, number: int, piece: bytes) -> bytes:
    places = [match.span() for match in pattern.finditer(content)]
    if not places:
        return content + piece
    start, end = places[number % len(places)]
    return content[:start] + piece + content[end:]


def _recoded(content: bytes, encoding: str) -> bytes:
    try:
        return codecs.encode(content.decode("utf-8"), encoding)
    except UnicodeError:
        return content


_XML_KINDS = (
    "put",
    "put",
    "cut",
    "flip",
    "double",
    "declare",
    "recode",
    "text",
    "text",
    "value",
    "value",
    "tag",
    "nest",
    "attributes",
    "namespaces",
)


def mutated(seeds: Sequence[bytes], pieces: Sequence[bytes], *, xml: bool) -> st.SearchStrategy[bytes]:
    """One of `seeds` with one to five changes."""
    change = st.builds(
        Change,
        st.sampled_from(_XML_KINDS if xml else ("put", "put", "put", "cut", "flip", "double")),
        st.integers(0, 60_000),
        st.integers(0, 40) | st.integers(0, 2000),
        st.sampled_from(list(pieces)) | st.binary(max_size=8),
    )
    return st.builds(_changed, st.sampled_from(list(seeds)), st.lists(change, min_size=1, max_size=5))


def _changed(seed: bytes, changes: list[Change]) -> bytes:
    for change in changes:
        seed = change.apply(seed)
    return seed
