"""The XML of answers: the envelope, errors, headers, records, tokens. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from metaharvest.model.namespaces import XSI
from metaharvest.text import only_xml
from metaharvest.web.provider.arguments import ProtocolError
from metaharvest.web.provider.formats import Format

OAI = "http://www.openarchives.org/OAI/2.0/"


class Header(NamedTuple):
    """The header of a record."""

    identifier: str
    datestamp: datetime
    sets: Sequence[str]
    deleted: bool


def stamp(when: datetime) -> str:
    """A time of UTC as the protocol writes it."""
    return f"{when.isoformat()[:19]}Z"


def envelope(base_url: str, arguments: Mapping[str, str], at: datetime, inner: bytes) -> bytes:
    """A whole answer. `at` is its responseDate, `arguments` the request as the answer repeats it."""
    attributes = "".join(f" {name}={quoteattr(value)}" for name, value in arguments.items())
    start = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<OAI-PMH xmlns="{OAI}" xmlns:xsi="{XSI}" xsi:schemaLocation="{OAI} {OAI}OAI-PMH.xsd">'
        f"<responseDate>{stamp(at)}</responseDate><request{attributes}>{escape(base_url)}</request>"
    )
    return b"".join((start.encode(), inner, b"</OAI-PMH>\n"))


def errors(found: Iterable[ProtocolError]) -> bytes:
    """The error elements."""
    return "".join(f'<error code="{each.code}">{escape(each.message)}</error>' for each in found).encode()


def element(name: str, text: str) -> str:
    """An element with text. A character that XML does not have is replaced."""
    return f"<{name}>{escape(only_xml(text))}</{name}>"


def header(of: Header) -> bytes:
    """A header element."""
    status = ' status="deleted"' if of.deleted else ""
    # A setSpec has no character that XML escapes.
    sets = "".join([f"<setSpec>{each}</setSpec>" for each in of.sets])
    return (
        f"<header{status}><identifier>{escape(of.identifier)}</identifier>"
        f"<datestamp>{stamp(of.datestamp)}</datestamp>{sets}</header>"
    ).encode()


def record(of: Header, metadata: bytes, about: bytes) -> bytes:
    """A record element; a deleted record has neither metadata nor about."""
    content = b"" if of.deleted else b"<metadata>" + metadata + b"</metadata>" + about
    return b"<record>" + header(of) + content + b"</record>"


def token(text: str, cursor: int, size: int, expires: datetime | None) -> bytes:
    """A resumptionToken element; an empty one ends a list."""
    expiry = f' expirationDate="{stamp(expires)}"' if expires else ""
    return f'<resumptionToken{expiry} completeListSize="{size}" cursor="{cursor}">{text}</resumptionToken>'.encode()


def metadata_format(of: Format) -> str:
    """A metadataFormat element."""
    return (
        f"<metadataFormat>{element('metadataPrefix', of.prefix)}{element('schema', of.schema)}"
        f"{element('metadataNamespace', of.namespace)}</metadataFormat>"
    )
