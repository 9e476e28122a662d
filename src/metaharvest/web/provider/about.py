"""The about containers of a record: its provenance, with the provenance of its source nested, and its rights. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from metaharvest.catalogue.provenance import Provenance
from metaharvest.model.namespaces import XSI
from metaharvest.transform.embedding import NotEmbeddable, embedded, root_of, written
from metaharvest.web.provider.arguments import SECOND, read_date

PROVENANCE = "http://www.openarchives.org/OAI/2.0/provenance"
RIGHTS = "http://www.openarchives.org/OAI/2.0/rights/"
_ORIGIN = f"{{{PROVENANCE}}}originDescription"
_VALUES = [f"{{{PROVENANCE}}}{name}" for name in ("baseURL", "identifier", "datestamp", "metadataNamespace")]
_CHARACTERS = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/?#]++|%[0-9A-Fa-f]{2}|(?!))*+")
_SIMPLE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*+:[A-Za-z0-9\-._~:]++")
"""Most identifiers: a scheme, and characters that need no further look."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*")
_PORT = re.compile(r":[0-9]{1,5}|")


def about_containers(provenance: Provenance | None, *, altered: bool) -> bytes:
    """The about elements of a record; none for a document of a harvest list. `altered`: the metadata is made here."""
    if provenance is None or not provenance.origin.prefix:
        return b""
    roots = list(_roots(provenance.origin.about))
    own = _provenance(provenance, roots, altered=altered or provenance.altered)
    rights = (embedded(root) for root in roots if root.tag == f"{{{RIGHTS}}}rights")
    return b"".join(b"<about>" + each + b"</about>" for each in (own, *rights) if each)


def _roots(containers: Sequence[bytes]) -> Iterator[etree._Element]:
    for each in containers:
        with suppress(NotEmbeddable):
            yield root_of(each)


def _provenance(provenance: Provenance, roots: Sequence[etree._Element], *, altered: bool) -> bytes:
    """The provenance container; empty if the values of the source do not have the form of its schema."""
    origin = provenance.origin
    common = _common(origin.base_url, origin.response_date, origin.namespace, altered)
    datestamp = _datestamp(origin.datestamp)
    if common is None or datestamp is None or not _is_uri(origin.identifier):
        return b""
    before, after = common
    start = f"{before}<identifier>{escape(origin.identifier)}</identifier>{datestamp}{after}"
    if not roots:
        return f"{start}</originDescription></provenance>".encode()
    earlier = [
        each for root in roots if root.tag == f"{{{PROVENANCE}}}provenance" for each in root.iterchildren(_ORIGIN)
    ]
    nested = next((written(each) for each in earlier if _fits(each)), b"")
    return start.encode() + nested + b"</originDescription></provenance>"


@lru_cache(maxsize=4096)
def _datestamp(text: str) -> str | None:
    """The element with a datestamp of the source; None if it is no date. Cached: many records have the same one."""
    known = text if SECOND.fullmatch(text) else text[:10]
    return f"<datestamp>{known}</datestamp>" if _is_date(known) else None


@lru_cache(maxsize=256)
def _common(base_url: str, response_date: str, namespace: str, altered: bool) -> tuple[str, str] | None:
    """The parts of a provenance container before and after the values of a record; None if a value has a wrong form.

    Cached, as all records of an answer of a source repository have them in common.
    """
    if not (_is_date(response_date) and _is_uri(base_url) and _is_uri(namespace)):
        return None
    return (
        f'<provenance xmlns="{PROVENANCE}" xmlns:xsi="{XSI}" xsi:schemaLocation="{PROVENANCE} {PROVENANCE}.xsd">'
        f'<originDescription harvestDate={quoteattr(response_date)} altered="{str(altered).lower()}">'
        f"<baseURL>{escape(base_url)}</baseURL>",
        f"<metadataNamespace>{escape(namespace)}</metadataNamespace>",
    )


def _fits(origin: etree._Element | None) -> bool:
    """True if the schema of provenance accepts an originDescription, and all that are nested in it."""
    while origin is not None:
        children = list(origin.iterchildren("*"))
        texts = [(each.text or "").strip() for each in children[:4]]
        if (
            [each.tag for each in children] not in (_VALUES, [*_VALUES, _ORIGIN])
            or any(len(each) or each.attrib for each in children[:4])
            or "".join([origin.text or "", *(each.tail or "" for each in origin)]).strip()
            or sorted(origin.attrib) != ["altered", "harvestDate"]
            or origin.get("altered") not in ("true", "false", "1", "0")
            or not all(map(_is_date, (origin.get("harvestDate") or "", children[2].text or "")))
            or not all(map(_is_uri, (texts[0], texts[1], texts[3])))
        ):
            return False
        origin = children[4] if len(children) > 4 else None
    return True


def _is_uri(text: str) -> bool:
    """True for a URI or a relative reference (RFC 3986), without an address of IPv6."""
    if _SIMPLE.fullmatch(text):
        return True
    if not _CHARACTERS.fullmatch(text) or text.count("#") > 1:
        return False
    before = text.partition("#")[0].partition("?")[0]
    scheme, colon, rest = before.partition(":")
    if not colon or "/" in scheme:
        rest = before
    elif not _SCHEME.fullmatch(scheme):
        return False
    if not rest.startswith("//"):
        return True
    user, _, host = rest[2:].partition("/")[0].rpartition("@")
    return "@" not in user and bool(_PORT.fullmatch(host[len(host.partition(":")[0]) :]))


def _is_date(text: str) -> bool:
    return read_date(text) is not None
