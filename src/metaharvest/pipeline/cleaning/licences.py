"""Licences by SPDX (https://spdx.org/licenses/), access rights of COAR, ends of embargoes: from texts. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from metaharvest.model.outputs import Access

_LONGEST = 4_000
"""Characters of a statement that are read."""

_CC_URL = re.compile(
    r"creativecommons\.org/licen[cs]es/(by(?:-nc)?(?:-(?:nd|sa))?|by-(?:nd|sa)-nc|nc(?:-(?:nd|sa))?|nd|sa)"
    r"(?:/(\d\.\d))?(?:/([a-z]{2,3}|igo|scotland)(?=[/\s.,;)\"'>#]|$))?",
    re.IGNORECASE,
)
_CC_PUBLIC = re.compile(
    r"creativecommons\.org/(?:publicdomain/)?(zero|mark|publicdomain|cc0)\b(?:/1\.0)?", re.IGNORECASE
)
_CC_CODE = re.compile(
    r"\bcc[\s_:-]{0,2}((?:by|nc|nd|sa|attribution)(?:[\s_,/-]{1,3}(?:nc|nd|sa|noncommercial|noderiv\w{0,8}|sharealike)(?![a-z])){0,2})"
    r"[\s_/:(v-]{0,3}(\d(?:\.\d)?)?(?:[\s-](?:unported|international|igo|[a-z]{2})\b)?",
    re.IGNORECASE,
)
_CC_WORDS = re.compile(
    r"\b(?:attribution|atribuci[oó]n|atribui[cç][aã]o|namensnennung|naamsvermelding|attribuzione|reconocimiento|paternit[eé]|"
    r"uznanie autorstwa|reconeixement|erkännande)\b"
)
_NONCOMMERCIAL = re.compile(
    r"non[\s-]?commercial|no[\s-]?comercial|nicht[\s-]?kommerziell|niet[\s-]?commercieel|non[\s-]?commerciale|"
    r"pas d[’']utilisation commerciale|não[\s-]?comercial|nao[\s-]?comercial|użycie niekomercyjne|\bnc\b"
)
_NODERIVS = re.compile(
    r"no[\s-]?deriv|sin[\s-]?(?:obras?[\s-]?)?deriva|sem[\s-]?deriva|keine[\s-]?bearbeitung|geen[\s-]?afgeleide|"
    r"non opere derivate|pas de modification|bez utworów zależnych|\bnd\b"
)
_SHAREALIKE = re.compile(
    r"share[\s-]?alike|compartir[\s-]?igual|compartilha[\s-]?igual|weitergabe unter gleichen|gelijk[\s-]?delen|"
    r"condividi allo stesso|partage dans les mêmes|na tych samych|\bsa\b"
)
_CREATIVE_COMMONS = re.compile(r"creative[\s-]?commons|\bcc\b")
_VERSION = re.compile(r"(?<![\d.])([1-4]\.[05])(?!\d|\.\d)")
_WHOLE_VERSION = re.compile(r"\bby(?:[\s-](?:nc|nd|sa)){0,2}\s?v?([34])\b")

_TABLE = r"""
CC0-1.0 \bcc[\s-]?0\b|\bcc[\s-]?zero\b|public domain dedication(?! and licen)|creative commons zero|cc0
CC-PDDC creative commons public domain dedication and certification
PDDL-1.0 \bpddl\b|opendatacommons\.org/licenses/pddl|public domain dedication and licen[cs]e
ODbL-1.0 \bodbl\b|\bodc-odbl\b|opendatacommons\.org/licenses/odbl|open (?:data commons open )?database licen[cs]e
ODC-By-1.0 \bodc[\s-]by\b|opendatacommons\.org/licenses/by|open data commons attribution
AGPL-3.0-only \bagpl[\s-]?(?:v(?:ersion)?\s?)?3|affero general public licen[cs]e|licenses/agpl
LGPL-3.0-only \blgpl[\s-]?(?:v(?:ersion)?\s?)?3|lesser general public licen[cs]e[\s,]{0,2}(?:v(?:ersion)?\s?)?3|
  licenses/lgpl-3
LGPL-2.1-only \blgpl[\s-]?(?:v(?:ersion)?\s?)?2\.1|lesser general public licen[cs]e[\s,]{0,2}(?:v(?:ersion)?\s?)?2\.1|
  licenses/(?:old-licenses/)?lgpl-2\.1
GPL-3.0-only \bgpl[\s-]?(?:v(?:ersion)?\s?)?3|general public licen[cs]e[\s,]{0,2}(?:v(?:ersion)?\s?)?3|licenses/gpl-3|
  licenses/gpl\.html
GPL-2.0-only \bgpl[\s-]?(?:v(?:ersion)?\s?)?2|general public licen[cs]e[\s,]{0,2}(?:v(?:ersion)?\s?)?2|
  licenses/(?:old-licenses/)?gpl-2
MIT \bmit licen[cs]e\b|^(?:the )?mit$|opensource\.org/licenses/mit|licenses/mit\b|\bexpat licen[cs]e
Apache-2.0 \bapache[\s-](?:software )?(?:licen[cs]e[\s,]{0,2})?(?:v(?:ersion)?\s?)?2|apache\.org/licenses/license-2|
  licenses/apache-2|^apache(?: licen[cs]e)?$
BSD-3-Clause \bbsd[\s-](?:3|three)[\s-]clause|3[\s-]clause bsd|bsd-3|(?:new|modified|revised) bsd|new bsd
BSD-2-Clause \bbsd[\s-](?:2|two)[\s-]clause|2[\s-]clause bsd|bsd-2|simplified bsd|freebsd licen[cs]e
MPL-2.0 \bmpl[\s-]?2|mozilla public licen[cs]e[\s,]{0,2}(?:v(?:ersion)?\s?)?2|mozilla\.org/mpl/2|
  mozilla\.org/en-us/mpl/2
EUPL-1.2 \beupl[\s-]?(?:v(?:ersion)?\s?\.?)?1\.2|european union public licen[cs]e[\s,]{0,2}(?:v(?:ersion)?\s?\.?)?1\.2
EPL-2.0 \bepl[\s-]?2|eclipse public licen[cs]e[\s,-]{0,3}(?:v(?:ersion)?\s?)?2
OGL-UK-3.0 open government licen[cs]e[\s,]{0,2}(?:\(ogl\)\s?)?(?:v(?:ersion)?\s?)?3|open-government-licence/version/3|
  \bogl[\s-](?:uk-)?(?:v)?3
OGL-UK-2.0 open government licen[cs]e[\s,]{0,2}(?:v(?:ersion)?\s?)?2|open-government-licence/version/2
OGL-UK-1.0 open-government-licence/(?:version/1)?$
etalab-2.0 (?:etalab|licence ouverte)[\s/-]{0,3}(?:open licence\s?)?(?:v(?:ersion)?\s?)?2
DL-DE-BY-2.0 dl-de[/-]by-2|datenlizenz deutschland[\s–-]{1,3}namensnennung
DL-DE-ZERO-2.0 dl-de[/-]zero-2|datenlizenz deutschland[\s–-]{1,3}zero
NLOD-2.0 \bnlod[\s/-]?(?:no/)?2|norwegian licen[cs]e for open government data[\s(nlod),]{0,9}2
GFDL-1.3-only \bgfdl[\s-]?(?:v)?1\.3|free documentation licen[cs]e
Unlicense \bthe unlicense\b|^unlicense$|unlicense\.org
ISC \bisc licen[cs]e\b|^isc$
Artistic-2.0 artistic[\s-]licen[cs]e[\s-]2|^artistic-2
WTFPL \bwtfpl\b
Zlib ^zlib(?: licen[cs]e)?$
"""
"""Identifiers of SPDX with the patterns of their names and addresses. An indented line goes on with the pattern."""

_OTHERS = tuple(
    (spdx, re.compile(pattern))
    for entry in re.sub(r"\n {2}", "", _TABLE).strip().splitlines()
    for spdx, pattern in [entry.split(" ", 1)]
)
_OR_LATER = re.compile(r"or[\s-](?:any )?later|or \(at your option\)|\d\+|-or-later")
_SPDX = re.compile(
    r"(?:https?://)?(?:www\.)?spdx\.org/licenses/([A-Za-z0-9.+-]{2,40}?)(?:\.html|\.json|/)?", re.IGNORECASE
)
_BARE_SPDX = re.compile(r"CC-BY(?:-NC)?(?:-(?:ND|SA))?-\d\.\d(?:-[A-Z]{2,3})?", re.IGNORECASE)

_SPDX_PORTS: dict[str, dict[str, tuple[str, ...]]] = {
    "CC-BY": {"1.0": (), "2.0": (), "2.5": ("AU",), "3.0": ("AT", "AU", "DE", "IGO", "NL", "US")},
    "CC-BY-SA": {"2.0": ("UK",), "2.1": ("JP",), "3.0": ("AT", "DE", "IGO")},
    "CC-BY-NC": {"3.0": ("DE",)},
    "CC-BY-ND": {"3.0": ("DE",)},
    "CC-BY-NC-SA": {"2.0": ("DE", "FR", "UK"), "3.0": ("DE", "IGO")},
    "CC-BY-NC-ND": {"3.0": ("DE", "IGO")},
}
"""The ports of Creative Commons licences with identifiers of their own; all others count as unported."""


@lru_cache(5_000)
def spdx_of(text: str) -> str | None:
    """The identifier of SPDX for the licence that a text or a URL names; None if it names none.

    A Creative Commons licence without a version counts as none: its versions differ.
    """
    text = " ".join(text[:_LONGEST].split())
    if len(text) < 2:
        return None
    if (found := _SPDX.fullmatch(text)) or (found := _BARE_SPDX.fullmatch(text)):
        return _canonical(found[1] if found.re is _SPDX else found[0])
    lower = text.lower()
    return _by_url(lower) or _by_code(lower) or _by_words(lower) or _other(lower)


def _canonical(spdx: str) -> str:
    if spdx.lower().startswith("cc"):
        return spdx.upper()
    known = {each.lower(): each for each, _ in _OTHERS}
    return known.get(spdx.lower(), spdx)


def _creative_commons(parts: set[str], version: str | None, port: str = "") -> str | None:
    """The identifier of a licence with these parts."""
    kind = "-".join(each for each in ("by", "nc", "nd", "sa") if each in parts)
    if version is None or kind == "by-nd-sa" or not kind.startswith("by"):
        return None
    version = f"{version}.0" if len(version) == 1 else version
    if version not in ("1.0", "2.0", "2.1", "2.5", "3.0", "4.0"):
        return None
    name = f"CC-{kind.upper()}"
    ports = _SPDX_PORTS.get(name, {}).get(version, ())
    port = port.upper()
    return f"{name}-{version}-{port}" if port in ports else f"{name}-{version}"


def _by_url(text: str) -> str | None:
    if "creativecommons.org" not in text:
        return None
    if found := _CC_URL.search(text):
        parts = set(found[1].split("-"))
        # Licences of version 1.0 without attribution have no kinds of today.
        return _creative_commons(parts, found[2] or _version_in(text), found[3] or "")
    if found := _CC_PUBLIC.search(text):
        return "CC-PDM-1.0" if found[1].lower() == "mark" else "CC0-1.0" if found[1].lower() != "publicdomain" else None
    return None


def _version_in(text: str) -> str | None:
    versions = set(_VERSION.findall(text))
    return versions.pop() if len(versions) == 1 else None


def _by_code(text: str) -> str | None:
    """CC BY-NC 4.0, cc_by_4, CC-BY-NC-ND 3.0 Unported."""
    found = _CC_CODE.search(text)
    if found is None:
        return None
    code = found[1].replace("_", "-")
    parts = {"by"} | {part for part, words in _PARTS.items() if words.search(code)}
    version = found[2] or _version_in(text)
    if version and len(version) == 1 and version not in "34":
        version = None
    port = "igo" if "igo" in found[0] else ""
    return _creative_commons(parts, version, port)


_PARTS = {"nc": _NONCOMMERCIAL, "nd": _NODERIVS, "sa": _SHAREALIKE}


def _by_words(text: str) -> str | None:
    """Creative Commons Attribution-NonCommercial 4.0 International, and its like in other languages."""
    found = _CC_WORDS.search(text)
    if found is None or not (_CREATIVE_COMMONS.search(text) or text.startswith(found[0])):
        return None
    if "zero" in text and "public domain" in text:
        return None
    parts = {"by"} | {part for part, words in _PARTS.items() if words.search(text)}
    version = _version_in(text)
    if version is None and (whole := _WHOLE_VERSION.search(text)):
        version = whole[1]
    port = "igo" if re.search(r"\bigo\b", text) else ""
    return _creative_commons(parts, version, port)


def _other(text: str) -> str | None:
    if "public domain mark" in text:
        return "CC-PDM-1.0"
    for spdx, pattern in _OTHERS:
        if pattern.search(text):
            if spdx.endswith("-only") and _OR_LATER.search(text):
                return spdx.replace("-only", "-or-later")
            return spdx
    return None


# -- access

_ACCESS_WORDS = {
    Access.OPEN: """
    c_abf2 openaccess open oa freeaccess freetoread freelyavailable publicaccess unrestricted unrestrictedaccess
    unrestrictedonlineaccess accesoabierto acessoaberto acessoabierto accèsouvert accèslibre freierzugang
    freizugänglich accessoaperto opentoegang fritttilgjengelig açıkerişim
    """,
    Access.EMBARGOED: """
    c_f1cf embargoedaccess embargo embargoed underembargo accesoembargado acessoembargado
    """,
    Access.RESTRICTED: """
    c_16ec restrictedaccess restricted limitedaccess campusonly onlinerestrictedaccess accesorestringido acessorestrito
    accèsrestreint eingeschränkterzugang
    """,
    Access.METADATA_ONLY: """
    c_14cb closedaccess metadataonlyaccess closed metadataonly accesocerrado
    """,
}
"""The terms of COAR and info:eu-repo, and words in other languages, for each kind of access."""

_ACCESS = {word: access for access, words in _ACCESS_WORDS.items() for word in words.split()}
_NOT_LETTERS = re.compile(r"[^\w]|_(?!\w)")
_LAST_PART = re.compile(r"[/#]")


@lru_cache(5_000)
def access_of(text: str) -> Access | None:
    """The access rights that a text names: a term of COAR or info:eu-repo, or its words; None for any other text."""
    text = text.strip().lower()
    if not 2 <= len(text) <= 100:
        return None
    last = _LAST_PART.split(text.rstrip("/"))[-1] if text.startswith(("http", "info:")) else text
    if last in _ACCESS:
        return _ACCESS[last]
    return _ACCESS.get(_NOT_LETTERS.sub("", last).replace("_", ""))


_EMBARGO = re.compile(
    r"(?:embargo(?:ed)?(?:\s?end(?:s|ed)?)?(?:\s?(?:date|until|till|to|expires?|lift(?:ed|s)?|period ends))?"
    r"\s?(?:on|:|/)?\s?|"
    r"available (?:from|after|on)\s|hasta(?: el)?\s|bis(?: zum)?\s)(\d{4}-\d\d(?:-\d\d)?|\d{1,2}[./]\d{1,2}[./]\d{4})",
    re.IGNORECASE,
)


def embargo_in(text: str) -> str | None:
    """The date on which an embargo ends, as a text gives it."""
    found = _EMBARGO.search(text[:_LONGEST])
    return found[1] if found else None
