"""The link in a site's report to the page of the site, which opens it for reading only. Nothing is stored.

The link has the number of the site, the day, and a signature over both and the site's contacts. It ends after
LIFETIME, and when the contacts change: a former contact no longer sees the site.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
from datetime import date, timedelta
from functools import cache

from metaharvest.config.secret_references import is_reference, resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError
from metaharvest.model import Site

log = logging.getLogger(__name__)

LIFETIME = timedelta(days=90)
PAGE = "/console/site/"
"""The page that the link opens; the token follows."""

_TOKEN = re.compile(r"([1-9]\d{0,17})\.([1-9]\d{0,6})\.([0-9a-f]{32})", re.ASCII)
_SIGNATURE = 32


def page_address(settings: Settings, site: Site, today: date) -> str:
    """The address of the site's page for a report of this day; empty if the settings have no address or no key."""
    key = _key(settings)
    if not settings.web.url or not key:
        return ""
    return f"{settings.web.url.rstrip('/')}{PAGE}{token(key, site, today)}"


def token(key: bytes, site: Site, day: date) -> str:
    """The token of a site and a day."""
    number = day.toordinal()
    return f"{site.site_id}.{number}.{_signature(key, site, number)}"


def site_number(text: str) -> int | None:
    """The number of the site that a token names; None if it is no token. It is not checked yet."""
    found = _TOKEN.fullmatch(text)
    return int(found[1]) if found else None


def is_valid(settings: Settings, text: str, site: Site, today: date) -> bool:
    """True if the token is one of this site, with its present contacts, and not too old."""
    found, key = _TOKEN.fullmatch(text), _key(settings)
    if found is None or not key or int(found[1]) != site.site_id:
        return False
    day = int(found[2])
    is_signed = hmac.compare_digest(found[3], _signature(key, site, day))
    # One day of tolerance: the clock of the machine that runs may be ahead of this one.
    return is_signed and -1 <= today.toordinal() - day <= LIFETIME.days


def _signature(key: bytes, site: Site, day: int) -> str:
    contacts = ",".join(sorted(address.casefold() for address in site.contacts))
    text = f"site page|{site.site_id}|{day}|{contacts}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:_SIGNATURE]


def _key(settings: Settings) -> bytes:
    """The key of the settings; empty if there is none, or if its reference leads nowhere."""
    key = settings.web.token_key
    if key and is_reference(key):
        try:
            key = resolve_secret(key, settings.folder)
        except SettingsError as error:
            _warn(str(error))
            return b""
    return key.encode()


@cache
def _warn(problem: str) -> None:
    """Log why reports have no link, once in a process."""
    log.warning("Reports have no link to the page of their site: %s", problem)
