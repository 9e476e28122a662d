"""Reads URLs as people write them, and distinguishes public addresses from others, which may not be requested.

Pure functions for `client.py`: nothing here opens a socket or resolves a name.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from metaharvest.model import Network
from metaharvest.model.values import frozen
from metaharvest.text import one_line, shown_url

DEFAULT_PORTS = {"http": 80, "https": 443}

_KEPT_IN_URLS = "!#$%&'()*+,/:;=?@[]~"
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*\.?")
_PLAIN = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9]+(?:[.-][a-z0-9]+)*)(?::(?P<port>[1-9][0-9]{0,4}))?"
    r"/[A-Za-z0-9._~!$&'()*+,/:;=@-]*"
)
"""Almost every URL: nothing in it has to be encoded, decoded or left out."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_SPECIAL_4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
            *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        ),
    )
)
_SPECIAL_6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
"""Networks of IANA's special-purpose registries, and multicast; of IPv6, the networks inside 2000::/3.

https://www.iana.org/assignments/iana-ipv4-special-registry/ and .../iana-ipv6-special-registry/. The standard library
has an older list, in which 192.0.0.8 to 192.0.0.255 and 3fff::/20 are public. 2001::/23 has Teredo, ORCHID and
benchmarks.
"""


class BadUrl(ValueError):
    """A text is not a URL that can be fetched; the message is the second half of a sentence: "it has no host name"."""


class UnsupportedScheme(BadUrl):
    """A URL is neither http nor https."""


def without_login(url: str) -> str:
    """A URL that may be shown and stored: as it is sent, without user name and password; unchanged if it is no URL."""
    try:
        return parse_url(url).url
    except BadUrl:
        return url


def repository_key(base_url: str) -> str:
    """The key of a source repository: base URLs that differ in the scheme or the host's final dot have the same."""
    host, slash, rest = without_login(base_url).partition("://")[2].partition("/")
    return f"{host_without_dot(host)}{slash}{rest}".rstrip("/")


def host_without_dot(host: str) -> str:
    """A host, perhaps with a port, without its final dot: `example.org.` and `example.org` are one host."""
    return host.replace(".:", ":").rstrip(".")


@frozen
class WebAddress:
    """An http or https URL, ready for the wire: `url` is ASCII, without credentials and fragment, `host` lower case."""

    url: str
    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str = ""

    def __repr__(self) -> str:
        return f"WebAddress({self.url!r})"

    @property
    def server(self) -> str:
        """The host, on its usual ports the same name; with its port on any other."""
        host = self.host.rstrip(".")
        return host if self.port in DEFAULT_PORTS.values() else f"{host}:{self.port}"

    def following(self, location: str) -> WebAddress:
        """The address of a redirect from here. Raises BadUrl.

        Credentials stay with their own host: they are kept on the same origin, or on its way from http to https.
        """
        try:
            joined = urljoin(self.url, location)
        except ValueError:
            raise BadUrl("its host name or port is not written correctly") from None
        there = parse_url(joined)
        same_origin = (self.scheme, self.port) == (there.scheme, there.port)
        upgrade = (self.scheme, self.port, there.scheme, there.port) == ("http", 80, "https", 443)
        if there.username is None and self.host == there.host and (same_origin or upgrade):
            return replace(there, username=self.username, password=self.password)
        return there


def parse_url(text: str) -> WebAddress:
    """`text` as a WebAddress; spaces, other characters and international host names are encoded.

    Raises BadUrl, or UnsupportedScheme.
    """
    stripped = text.strip()
    if plain := _PLAIN.fullmatch(stripped):
        scheme, host, number = plain["scheme"], plain["host"], int(plain["port"] or 0)
        if len(host) <= 253 and number <= 65_535 and number != DEFAULT_PORTS[scheme]:
            return WebAddress(stripped, scheme, host, number or DEFAULT_PORTS[scheme])
    if _CONTROL.search(stripped):
        raise BadUrl("it contains a line break or another control character")
    try:
        parts = urlsplit(stripped)
        port = parts.port
    except ValueError:
        raise BadUrl("its host name or port is not written correctly") from None
    scheme = parts.scheme
    if not scheme:
        raise BadUrl("it does not begin with http:// or https://")
    if scheme not in DEFAULT_PORTS:
        raise UnsupportedScheme(scheme)
    if port == 0:
        raise BadUrl("its port is 0")
    host, port = _host(parts), port or DEFAULT_PORTS[scheme]
    return WebAddress(_url(parts, scheme, host, port), scheme, host, port, *_credentials(parts))


def shown(text: str) -> str:
    """`text`, which may be no URL at all, in a form that may be shown: without a possible password."""
    try:
        return shown_url(parse_url(text).url)
    except BadUrl:
        head, at, tail = text.rpartition("@")
        scheme = re.match(r"\s*[A-Za-z][A-Za-z0-9+.-]*://", head)
        return shown_url((scheme[0] if scheme else "") + tail) if at else shown_url(text)


@lru_cache(maxsize=4096)
def is_allowed(address: str, allowed: tuple[Network, ...]) -> bool:
    """True if the numeric `address` is public, or in one of the `allowed` networks."""
    there = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(there, IPv6Address) and there.ipv4_mapped:
        there = there.ipv4_mapped
    return any(there in network for network in allowed) or _is_public(there)


def literal_address(host: str) -> str | None:
    """The numeric address that `host` spells, in any of the spellings that resolvers accept (`127.1`), or None.

    `host` is in lower case. A final dot changes nothing.
    """
    host = host.rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return "127.0.0.1"
    with suppress(ValueError):
        return str(ipaddress.ip_address(host.strip("[]")))
    with suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host))
    return None


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    """Open to everybody, by the IANA special-purpose registries; an address inside an address counts too."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _SPECIAL_4)
    if address in _NAT64:
        return _is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    if address.sixtofour:
        return _is_public(address.sixtofour)
    return address in _GLOBAL_UNICAST and not any(address in network for network in _SPECIAL_6)


def is_loopback(host: str) -> bool:
    """True if `host`, as a URL has it, is this machine itself."""
    literal = literal_address(host.lower())
    if literal is None:
        return False
    there = ipaddress.ip_address(literal.partition("%")[0])
    mapped = there.ipv4_mapped if isinstance(there, IPv6Address) else None
    return (mapped or there).is_loopback


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    named = one_line(host, 100)
    if not host:
        raise BadUrl("it has no host name")
    if ":" in host:
        try:
            return f"[{IPv6Address(host)}]"
        except ValueError:
            raise BadUrl(f"'{named}' is not an address") from None
    if not host.isascii() and len(host) <= 253:
        import idna  # few hosts need it

        with suppress(UnicodeError):
            host = idna.encode(host, uts46=True).decode("ascii")
    if len(host) > 253 or not _HOST_NAME.fullmatch(host):
        raise BadUrl(f"'{named}' is not a host name")
    return host


def _credentials(parts: SplitResult) -> tuple[str | None, str]:
    if parts.username is None:
        return None, ""
    username, password = unquote(parts.username), unquote(parts.password or "")
    if any(ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF for c in username + password):
        raise BadUrl("its user name or password contains a control character")
    return username, password


def _url(parts: SplitResult, scheme: str, host: str, port: int) -> str:
    authority = host if port == DEFAULT_PORTS[scheme] else f"{host}:{port}"
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        return f"{scheme}://{authority}{quote(rest, safe=_KEPT_IN_URLS)}"
    except UnicodeEncodeError:
        raise BadUrl("it contains characters that are not text") from None
