"""A candidate: an address that may lead to the file of an output."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from urllib.parse import urljoin, urlsplit

from metaharvest.fetch.url import BadUrl, literal_address, parse_url
from metaharvest.model.values import frozen

_LONGEST_URL = 2_000
_LONGEST_WAY = 64


class Expects(StrEnum):
    """The expected content of the address: a file, or a page that leads to it. HTML text serves without a file."""

    FILE = "file"
    HTML_TEXT = "html text"
    PAGE = "page"


@frozen
class Candidate:
    """An address, the way to it (`record > citation_pdf_url`), and what the source says of it.

    `start` is the address of the record that the way began with. `hops` counts the pages on the way.
    """

    url: str
    found_by: str
    expects: Expects = Expects.PAGE
    start: str = ""
    hops: int = 0
    media_type: str | None = None
    licence: str | None = None

    def followed_by(self, other: Candidate) -> Candidate:
        """The candidate that was found on the page of this one."""
        way = f"{self.found_by} > {other.found_by}"[-_LONGEST_WAY:]
        licence = self.licence or other.licence
        return replace(other, found_by=way, start=self.start, hops=self.hops + 1, licence=licence)


def web_address(text: str, base: str = "") -> str | None:
    """The http or https URL that `text` is, seen from `base`; None if it is none.

    Fragments and session ids go. A page that names localhost means its own host: the settings of its server were
    forgotten. Seen at https://github.com/DSpace/dspace-angular/issues/1197.
    """
    try:
        joined = urljoin(base, text.strip()) if base else text.strip()
        if len(joined) > _LONGEST_URL:
            return None
        address = parse_url(joined)
        if base and _is_at_home(address.host) and not _is_at_home(parse_url(base).host):
            parts, here = urlsplit(address.url), urlsplit(base)
            address = parse_url(parts._replace(scheme=here.scheme, netloc=here.netloc).geturl())
    except (BadUrl, ValueError):
        return None
    if address.username is not None:
        return None
    return _without_session(address.url)


def _is_at_home(host: str) -> bool:
    return ("." not in host and ":" not in host) or literal_address(host) == "127.0.0.1"


def _without_session(url: str) -> str:
    """`url` without `;jsessionid=`, which differs from one visit to the next."""
    head, mark, tail = url.partition(";jsessionid=")
    return head + tail[tail.find("?") :] if mark and "?" in tail else head


def host_of(url: str) -> str:
    """The host of a URL, in lower case, without `www.`."""
    return (urlsplit(url).hostname or "").removeprefix("www.")


def is_same_place(host: str, other: str) -> bool:
    """True if two hosts belong together: one is below the other, or both are in one domain of three parts or more."""
    if not host or not other:
        return False
    if host == other or host.endswith(f".{other}") or other.endswith(f".{host}"):
        return True
    domain, of_other = host.partition(".")[2], other.partition(".")[2]
    return domain == of_other and (domain.count(".") >= 2 or (domain.count(".") == 1 and len(domain.split(".")[0]) > 3))
