"""Tells a monitor that a run has ended, by a GET of the URL in [monitoring], so that silence is noticed.

The monitor is the operator's own choice: it may be on any address, and the policy for what sites serve is not for it.
The URL usually holds a token: no more of it than scheme and host is shown. How a ping goes changes nothing of a run.
"""

from __future__ import annotations

import time
from contextlib import suppress
from urllib.parse import urlsplit

from metaharvest.config.secret_references import is_reference, resolve_secret
from metaharvest.config.settings import PING_PLACES, Settings, check_ping_address
from metaharvest.errors import SettingsError
from metaharvest.text import one_line

DEADLINE_SECONDS = 10
"""For one attempt, from the look-up of the name to the end of the answer."""

_PAUSE_SECONDS = 1
_ATTEMPTS = 2
_REDIRECTS = 5
_NOT_NOW = frozenset({408, 425, 429})


def ping_url(settings: Settings) -> str:
    """The monitor's URL, its places not filled in yet, from wherever it is kept; empty where none is set.

    Raises SettingsError, without the URL in it.
    """
    given = settings.monitoring.ping_url
    if "://" in given and not is_reference(given):
        return given
    try:
        url = resolve_secret(given, settings.folder)
    except SettingsError as error:
        raise SettingsError(f"[monitoring] ping_url: {error}") from None
    try:
        return check_ping_address(url) if given else ""
    except ValueError as error:
        raise SettingsError(f"[monitoring] ping_url: what {given} holds cannot be pinged: {error}.") from None


def tells_how_it_ended(url: str) -> bool:
    """Whether something is filled in. Where nothing is, every ping means the same: the run came to its end."""
    return any(place in url for place in PING_PLACES)


def masked(url: str) -> str:
    """The URL as it may be shown."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{one_line(parts.netloc.rpartition('@')[2], 100)}/..."


def ping(settings: Settings, status: str, exit_code: int, *, ended: bool = True) -> str | None:
    """Fetch the URL, twice at most; a sentence where the monitor could not be told. Raises SettingsError.

    `ended`: whether there was a run that came to its end.
    """
    url = ping_url(settings)
    if not url:
        return None
    for place, value in zip(PING_PLACES, (status, str(exit_code), "down" if exit_code else "up"), strict=True):
        url = url.replace(place, value)
    trouble: str | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        trouble, transient = _get(url, settings)
        if not transient:
            break
    if trouble is None:
        return None
    what = "the run ended" if ended else "no run came to its end"
    return f"The monitor at {masked(url)} ([monitoring] ping_url) could not be told that {what}: {trouble}."


def _get(url: str, settings: Settings) -> tuple[str | None, bool]:
    """One GET: what went wrong, and whether another try may help."""
    import pycurl

    from metaharvest.config.trust_store import BadAuthorities, read_authorities, system_trust
    from metaharvest.fetch.client import user_agent

    curl = pycurl.Curl()
    try:
        curl.setopt(pycurl.URL, url.encode())
        for which in (pycurl.PROTOCOLS, pycurl.REDIR_PROTOCOLS):
            curl.setopt(which, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.USERAGENT, user_agent(settings.harvester.name, settings.http.contact_url))
        curl.setopt(pycurl.FOLLOWLOCATION, 1)
        curl.setopt(pycurl.MAXREDIRS, _REDIRECTS)
        curl.setopt(pycurl.TIMEOUT, DEADLINE_SECONDS)
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
        curl.setopt(pycurl.PROXY, _proxy(url, settings).encode())
        curl.setopt(pycurl.NOPROXY, "")
        curl.setopt(pycurl.CAINFO, str(system_trust()))
        if settings.http.ca_file is not None:
            # Where it cannot be used, no run was made, and just that the monitor is to hear.
            with suppress(BadAuthorities):
                own = read_authorities(settings.path(settings.http.ca_file))
                curl.setopt(pycurl.CAINFO_BLOB, system_trust().read_bytes() + b"\n" + own)
        # What the monitor says is of no use; where it goes on saying it, the deadline ends it.
        curl.setopt(pycurl.WRITEFUNCTION, len)
        curl.perform()
        status = curl.getinfo(pycurl.RESPONSE_CODE)
    except pycurl.error as error:
        return _words(int(error.args[0]), str(error.args[-1])), True
    finally:
        curl.close()
    if 200 <= status < 300:
        return None, False
    return f"it answered {status}", status >= 500 or status in _NOT_NOW


def _words(code: int, words: str) -> str:
    import pycurl

    from metaharvest.reports.words import counted

    if code == pycurl.E_OPERATION_TIMEDOUT:
        return f"it did not answer within {counted(DEADLINE_SECONDS, 'second')}"
    return one_line(words, 200).rstrip(".")


def _proxy(url: str, settings: Settings) -> str:
    """The proxy of [http], but not for a monitor in a network of one's own."""
    if not settings.http.proxy:
        return ""
    import socket

    from metaharvest.fetch.url import is_allowed

    host = urlsplit(url).hostname or ""
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):  # UnicodeError: a label of more than 63 characters
        return settings.http.proxy
    return settings.http.proxy if all(is_allowed(address, ()) for address in addresses) else ""
