"""Recognises HTML in the text of an EML document, and names the right EML elements."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from metaharvest.text import joined, one_line

RULE = "eml.html"

_EML_FOR = (
    (("p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "center"), "<para>"),
    (("b", "strong", "i", "em", "u"), "<emphasis>"),
    (("sup",), "<superscript>"),
    (("sub",), "<subscript>"),
    (("a",), '<ulink url="…">'),
    (("ul",), "<itemizedlist>"),
    (("ol",), "<orderedlist>"),
    (("li",), "<listitem><para>"),
    (("pre",), "<literalLayout>"),
)
_NEW_PARAGRAPH = ("br", "hr")
_DROPPED = ("span", "font", "small", "big", "img", "tbody", "thead", "tr", "td", "th")

NAMES = frozenset({*(name for names, _ in _EML_FOR for name in names), *_NEW_PARAGRAPH, *_DROPPED})
"""The recognised elements of HTML; EML has no element of these names."""

TEXTS = frozenset(
    {
        "abstract", "acknowledgements", "additionalInfo", "description", "example", "funding", "gettingStarted",
        "intellectualRights", "introduction", "moduleDescription", "purpose", "samplingDescription", "text",
    }
)  # fmt: skip
"""The elements of EML that have paragraphs."""

INNER = frozenset(
    {
        "para", "section", "emphasis", "superscript", "subscript", "ulink", "citetitle", "itemizedlist", "orderedlist",
        "listitem", "literalLayout", "value",
    }
)  # fmt: skip
"""The elements inside of such a text."""

INLINE = INNER - {"para", "section", "listitem"}
"""The elements that may stand within a line of text."""

FREE = frozenset({"metadata", "inline"})
"""The elements of EML that may hold anything, HTML too."""

_CODE = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,30});")
_OF_XML = frozenset({"amp", "lt", "gt", "quot", "apos"})


def is_html(name: str) -> bool:
    """True for a tag of HTML, and for a tag that Word puts into HTML, such as `<o:p>`."""
    prefix, _, local = name.rpartition(":")
    return local.lower() in NAMES if not prefix else prefix.lower() in ("o", "w", "st1", "html", "xhtml")


def codes_in(text: str) -> list[str]:
    """The codes of HTML in a text that XML lacks, such as `&nbsp;`, each once."""
    return list(dict.fromkeys(match[0] for match in _CODE.finditer(text) if match[1] not in _OF_XML))


def character_for(code: str) -> str:
    """The character for a code such as `&deg;`; empty for a code that HTML lacks, too."""
    character = html.unescape(code)
    if character == code or len(character) != 1:
        return ""
    number = f"&#{ord(character)};"
    return f"{character} or {number}" if character.isprintable() and not character.isspace() else number


def message(holder: str, names: Iterable[str], codes: Iterable[str]) -> str:
    """The message, such as `abstract has HTML in it: <p>, <b> and &nbsp;.`"""
    found = [*(f"<{name}>" for name in _shown(names)), *codes]
    return f"{one_line(holder, 100)} has HTML in it, which EML does not know: {joined(found[:12])}."


def remedy(holder: str, names: Iterable[str], codes: Iterable[str], *, takes_markdown: bool) -> str:
    """The remedy: the elements of EML to write instead."""
    known = list(_shown(names))
    parts = [f"{character} for {code}" for code in codes if (character := character_for(code))]
    if holder not in TEXTS | INNER:
        # A title or a name is a line of text.
        also = f" Write {joined(parts)}." if parts else ""
        return f"Remove the tags, and keep the text: {one_line(holder, 100)} takes text alone.{also}"
    for of_html, of_eml in reversed(_EML_FOR):
        if used := [f"<{name}>" for name in known if name in of_html]:
            parts.insert(0, f"{of_eml} for {joined(used)}")
    advice = [f"Write {joined(parts)}."] if parts else []
    if any(name in _NEW_PARAGRAPH for name in known):
        advice.append(f"Begin a new <para> at {joined([f'<{name}>' for name in known if name in _NEW_PARAGRAPH])}.")
    if others := [f"<{name}>" for name in known if name in _DROPPED or ":" in name]:
        advice.append(f"Remove {joined(others)}, and keep the text.")
    if takes_markdown:
        advice.append("Or write the text as Markdown, in <markdown> in place of <para>.")
    return " ".join(advice)


def _shown(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(one_line(name.lower(), 40) for name in names))
