"""Reports the end of a run to a monitor, by a GET of the URL in [monitoring], so that a missing run is noticed.

The operator chooses the monitor: it may be at any address, and the network policy for sites does not apply to it. The
URL usually contains a token: only its scheme and host are shown. A failed ping does not change the result of a run.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from metaharvest.config.field_types import PING_PLACEHOLDERS, check_ping_address
from metaharvest.config.secret_references import is_reference, resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError
from metaharvest.text import counted, one_line

if TYPE_CHECKING:
    import pycurl

DEADLINE_SECONDS = 10
"""For one attempt, from the look-up of the name to the end of the answer."""

_PAUSE_SECONDS = 1
_ATTEMPTS = 2
_REDIRECTS = 5
_NOT_NOW = frozenset({408, 425, 429})


def ping_url(settings: Settings) -> str:
    """The monitor's URL, its placeholders not yet replaced, from its secret reference; empty if none is set.

    Raises SettingsError, whose sentence does not show the URL.
    """
    given = settings.monitoring.ping_url
    if "://" in given and not is_reference(given):
        return given
    place = settings.place("monitoring", "ping_url")
    try:
        url = resolve_secret(given, settings.folder)
    except SettingsError as error:
        raise SettingsError(f"{place}: {error}") from None
    try:
        return check_ping_address(url) if given else ""
    except ValueError as error:
        raise SettingsError(f"{place}: what {given} holds cannot be pinged: {error}.") from None


def shown_monitor(url: str) -> str:
    """The monitor's URL in a form that may be shown."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{one_line(parts.netloc.rpartition('@')[2], 100)}/..."


def notify_monitor(settings: Settings, status: str, exit_code: int, *, ended: bool) -> str | None:
    """Fetch the monitor's URL, twice at most; a sentence if that failed.

    `ended`: True if a run came to its end. If none did, only a monitor whose URL has placeholders is called: to another
    one, every ping means that a run came to its end.
    """
    try:
        url = ping_url(settings)
    except SettingsError as error:
        return str(error)
    if not url or not (ended or any(placeholder in url for placeholder in PING_PLACEHOLDERS)):
        return None
    values = (status, str(exit_code), "down" if exit_code else "up")
    for placeholder, value in zip(PING_PLACEHOLDERS, values, strict=True):
        url = url.replace(placeholder, value)
    failure: str | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        failure, transient = _get(url, settings)
        if not transient:
            break
    if failure is None:
        return None
    what = "the run ended" if ended else "no run came to its end"
    return (
        f"The monitor at {shown_monitor(url)} ([monitoring] ping_url) did not get the message that {what}: {failure}."
    )


def _get(url: str, settings: Settings) -> tuple[str | None, bool]:
    """One GET: the error, and True if another attempt may help."""
    import pycurl

    curl = pycurl.Curl()
    try:
        _set_options(curl, url, settings)
        curl.perform()
        status = curl.getinfo(pycurl.RESPONSE_CODE)
    except SettingsError as error:
        return str(error).rstrip("."), False
    except pycurl.error as error:
        if error.args[0] == pycurl.E_OPERATION_TIMEDOUT:
            return f"it did not answer within {counted(DEADLINE_SECONDS, 'second')}", True
        return one_line(str(error.args[-1]), 200).rstrip("."), True
    finally:
        curl.close()
    if 200 <= status < 300:
        return None, False
    return f"it answered {status}", status >= 500 or status in _NOT_NOW


def _set_options(curl: pycurl.Curl, url: str, settings: Settings) -> None:
    import pycurl

    from metaharvest.config.trust_store import BadAuthorities, read_authorities, system_trust
    from metaharvest.fetch.client import user_agent

    curl.setopt(pycurl.URL, url.encode())
    curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.REDIR_PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.USERAGENT, user_agent(settings.harvester.name, settings.http.contact_url))
    curl.setopt(pycurl.FOLLOWLOCATION, 1)
    curl.setopt(pycurl.MAXREDIRS, _REDIRECTS)
    curl.setopt(pycurl.TIMEOUT, DEADLINE_SECONDS)
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
    curl.setopt(pycurl.PROXY, _proxy(url, settings).encode())
    curl.setopt(pycurl.NOPROXY, "")
    curl.setopt(pycurl.CAINFO, str(system_trust()))
    curl.setopt(pycurl.PROXY_CAINFO, str(system_trust()))
    if settings.http.ca_file is not None:
        # If it cannot be used, there was no run, and the monitor has to know that.
        with suppress(BadAuthorities):
            own = read_authorities(settings.path(settings.http.ca_file))
            for option in (pycurl.CAINFO_BLOB, pycurl.PROXY_CAINFO_BLOB):
                curl.setopt(option, system_trust().read_bytes() + b"\n" + own)
    # The body of the answer is not used; if it does not end, the deadline ends it.
    curl.setopt(pycurl.WRITEFUNCTION, len)


def _proxy(url: str, settings: Settings) -> str:
    """The proxy of [http] with its password; empty for a monitor whose addresses are not public.

    Raises SettingsError if the password cannot be read.
    """
    if not settings.http.proxy:
        return ""
    import socket

    from metaharvest.fetch.url import is_allowed

    host = urlsplit(url).hostname or ""
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):  # UnicodeError: a label of more than 63 characters
        return settings.proxy()
    return settings.proxy() if all(is_allowed(address, ()) for address in addresses) else ""
