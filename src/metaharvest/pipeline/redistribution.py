"""The licences under which the text of an output may be given away, and the licence of one output. Pure.

A text that was taken from a PDF is no unchanged copy. Licences without derivatives (ND) are therefore not among them.
"""

from __future__ import annotations

import re
from datetime import date

from metaharvest.model.outputs import Output
from metaharvest.pipeline.cleaning.licences import spdx_of
from metaharvest.pipeline.full_text.links import is_closed

LICENCES = (
    *("CC0-1.0", "CC-PDDC", "CC-PDM-1.0", "PDDL-1.0", "Unlicense"),
    *("ODC-By-1.0", "OGL-UK-1.0", "OGL-UK-2.0", "OGL-UK-3.0", "etalab-2.0", "NLOD-2.0"),
    *("DL-DE-BY-2.0", "DL-DE-ZERO-2.0", "GFDL-1.3-only", "GFDL-1.3-or-later"),
)
"""Identifiers of SPDX, beside the licences of Creative Commons."""

CREATIVE_COMMONS = ("CC-BY", "CC-BY-SA", "CC-BY-NC", "CC-BY-NC-SA")
"""Licences of Creative Commons, of all versions and ports. All versions allow redistribution."""

_VERSION = re.compile(r"-\d\.\d(?:-[A-Z]{2,3})?")
_ANY_VERSION = "4.0"


def shared_under(output: Output, of_file: str | None, today: date) -> str | None:
    """The licence that allows to give the text of an output away: of its file, else of its record. None: none does.

    `of_file` is the licence of the file: an identifier of SPDX, a URL or words. A licence of Creative Commons without
    a version has the name `CC-BY` or the like. None also if the record names a licence that does not allow it, or says
    that its file is closed.
    """
    if is_closed(output, today.isoformat()):
        return None
    given = [of_file or "", *(each.spdx or each.url or each.text for each in output.licences)]
    named = list(dict.fromkeys(name for text in given if (name := _name(text))))
    return named[0] if named and all(map(_is_open, named)) else None


def _name(text: str) -> str | None:
    """The identifier of SPDX of a licence; only its kind if it is of Creative Commons and has no version."""
    if text in LICENCES:
        return text
    if known := spdx_of(text):
        return known
    # The kind of a licence does not depend on its version.
    some = spdx_of(f"{text} {_ANY_VERSION}")
    return _VERSION.sub("", some) if some and some.startswith("CC-BY") else None


def _is_open(name: str) -> bool:
    return name in LICENCES or _VERSION.sub("", name) in CREATIVE_COMMONS
