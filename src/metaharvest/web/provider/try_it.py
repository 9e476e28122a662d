"""The page for a person who opens the provider in a browser: forms for the verbs, without any script. Pure."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape

from metaharvest.text import one_line
from metaharvest.web.provider.view import Public

_STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
form { border: 1px solid; border-radius: .4rem; padding: .8rem 1rem; margin: 1rem 0; }
h2 { font-size: 1.1rem; margin: 0 0 .4rem; }
label { display: flex; flex-wrap: wrap; gap: .2rem .8rem; margin: .4rem 0; }
label span { min-width: 10rem; }
input { flex: 1 1 14rem; min-width: 0; font: inherit; padding: .2rem .4rem; }
button { font: inherit; padding: .2rem 1rem; }
code { overflow-wrap: anywhere; }
a { color: inherit; }
"""
STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
"""The SHA-256 of the style, for the content security policy."""

_LIST = ("metadataPrefix", "from", "until", "set")
_FORMS: Sequence[tuple[str, str, Sequence[str]]] = (
    ("Identify", "What this repository is.", ()),
    ("ListMetadataFormats", "The formats of the records, or of one record.", ("identifier",)),
    ("ListSets", "The sets of records.", ()),
    ("GetRecord", "One record.", ("identifier", "metadataPrefix")),
    ("ListRecords", "Records, page by page.", _LIST),
    ("ListIdentifiers", "The headers of records, page by page.", _LIST),
)
_EXAMPLES = {"metadataPrefix": "oai_dc", "from": "2026-01-31", "until": "2026-12-31"}
_REQUIRED = {
    "GetRecord": ("identifier", "metadataPrefix"),
    **dict.fromkeys(("ListRecords", "ListIdentifiers"), _LIST[:1]),
}


def page(public: Public) -> str:
    """The page, in HTML."""
    name = escape(one_line(public.name))
    forms = "\n".join(_form(*each) for each in _FORMS)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{name}: OAI-PMH</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{name}</h1>\n"
        "<p>Programs harvest the records of this repository with "
        '<a href="https://www.openarchives.org/OAI/openarchivesprotocol.html">OAI-PMH 2.0</a>. '
        f"The base URL is <code>{escape(public.base_url)}</code>. Answers are XML.</p>\n"
        f"{forms}\n</main>\n</body>\n</html>\n"
    )


def _form(verb: str, purpose: str, arguments: Sequence[str]) -> str:
    fields = "".join(_field(each, is_required=each in _REQUIRED.get(verb, ())) for each in arguments)
    return (
        f'<form method="get" action="oai/try">\n<h2>{verb}</h2>\n<p>{purpose}</p>\n'
        f'<input type="hidden" name="verb" value="{verb}">\n{fields}<button>Ask</button>\n</form>'
    )


def _field(name: str, *, is_required: bool) -> str:
    required = " required" if is_required else ""
    value = ' value="oai_dc"' if name == "metadataPrefix" else ""
    return (
        f"<label><span>{name}</span>"
        f'<input name="{name}"{value} placeholder="{_EXAMPLES.get(name, "")}"{required}></label>\n'
    )
