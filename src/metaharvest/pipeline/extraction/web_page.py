"""Reads HTML: the text of a page without menus and advertisements. It runs in the reader process."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from typing import Any

_SAMPLE = "<html><body><article><p>" + "This is a text for the first call. " * 20 + "</p></article></body></html>"
_LANGUAGE = re.compile(rb"""<html\b[^<>]{0,500}?\slang\s?=\s?["']?([A-Za-z]{2,3})\b""", re.IGNORECASE)
_LINES = re.compile(r"\n+")
_SKIPPED = frozenset(("script", "style", "noscript", "template", "svg", "nav", "form", "button", "head"))
_FEW = 200
"""A page with fewer characters of main text may be one whose text was not recognised as such."""


def prepare() -> None:
    """Load what pages need, also the charsets: afterwards the process opens no file."""
    import encodings.aliases
    import logging

    import trafilatura

    logging.disable()
    for name in set(encodings.aliases.aliases.values()):
        with suppress(LookupError):
            codecs.lookup(name)
    for page in (_SAMPLE.encode(), b"<html><body></body></html>", b"<p>\xe4"):
        read(page)
        trafilatura.extract(page, favor_recall=True)


def read(content: bytes) -> dict[str, Any]:
    """The text and the language of a page, or `error`."""
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
