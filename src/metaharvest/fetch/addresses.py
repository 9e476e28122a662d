"""Turns a URL as people write it into the address of a request, over redirects; gives the reason if it is refused."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.fetch.exchange import Query
from metaharvest.fetch.url import BadUrl, UnsupportedScheme, WebAddress, parse_url, shown
from metaharvest.model import Finding
from metaharvest.text import shown_url


def started(url: str, query: Query | None) -> WebAddress:
    """The address that `url` names, with the query, if there is one. Raises FetchError."""
    try:
        here = parse_url(url)
    except BadUrl as error:
        raise _refusal(error, shown(url), 0.0) from error
    if query is None or query.post:
        return here
    return replace(here, url=f"{here.url}{'&' if urlsplit(here.url).query else '?'}{query.arguments}")


def redirected(here: WebAddress, location: str, spent: float, query: Query | None) -> WebAddress:
    """The address of a redirect to `location`, with the same query, also if `location` lacks it. Raises FetchError."""
    try:
        there = here.following(location)
    except BadUrl as error:
        subject = f"{shown_url(here.url)} redirects to {shown(location)}, which"
        remedy = "Correct the redirect on the web server: it must lead to an http:// or https:// URL."
        if str(error) == "file":
            remedy += " A file: URL names a file of the computer that opens it, so that others cannot follow it."
        raise _refusal(error, subject, spent, remedy) from error
    if query is None or query.post or urlsplit(there.url).query:
        return there
    return replace(there, url=f"{there.url}?{query.arguments}")


def busy(address: WebAddress, http: HttpSettings, waited: float) -> Finding:
    """All connections to a host were in use for this number of seconds."""
    return Finding(
        "http.busy",
        f"{shown_url(address.url)} was not fetched: all {http.connections_per_host} connections that the harvester "
        f"allows itself to {address.host} were in use for {waited:g} seconds.",
        "The server answers very slowly. The harvester tries again by itself.",
    )


def aborted(address: WebAddress) -> Finding:
    """The database could not confirm in time that this process may still send requests to the host."""
    return Finding(
        "http.busy",
        f"The request for {shown_url(address.url)} was aborted: the database could not confirm that no other process "
        f"of the harvester asks {address.host} at the same time.",
        "The harvester tries again by itself.",
    )


def overloaded(address: WebAddress, waited: float) -> Finding:
    """There was no room for another document for this number of seconds."""
    return Finding(
        "http.busy",
        f"{shown_url(address.url)} was not fetched: the harvester had too many other documents under way for "
        f"{waited:g} seconds.",
        "The harvester tries again by itself.",
    )


def _refusal(error: BadUrl, subject: str, spent: float, remedy: str = "") -> FetchError:
    """The finding about a URL that cannot be requested; `subject` begins the sentence."""
    if isinstance(error, UnsupportedScheme):
        message = f"{subject} cannot be harvested: only http and https are, not '{error}'."
        remedy = remedy or "Put the document on a web server and give its http:// or https:// URL."
        return FetchError(Finding("http.scheme", message, remedy), seconds=spent)
    message = f"{subject} is not a URL that can be fetched: {error}."
    remedy = remedy or "Write it like https://example.org/metadata/eml.xml."
    return FetchError(Finding("http.bad-url", message, remedy), seconds=spent)
