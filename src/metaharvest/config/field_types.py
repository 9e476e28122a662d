"""The checks of single values of the settings, and the types of fields that apply them.

A check returns the value in the form in which it is used, or raises ValueError with the second half of a sentence ("it
must be ..."), which never shows a possible secret. Sections, the settings file and the environment are in
`settings.py`.
"""

from __future__ import annotations

import ipaddress
import json
import re
from datetime import time
from email.utils import parseaddr
from pathlib import Path
from typing import Annotated
from urllib.parse import SplitResult, parse_qsl, urlsplit
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator, Field

from metaharvest.config.kinds import TARGETS
from metaharvest.config.paths import at_home
from metaharvest.config.secret_references import HOW_TO_REFER, check_reference, is_reference
from metaharvest.model import Network
from metaharvest.model.namespaces import OAI_DOMAIN
from metaharvest.text import invisible_character, without_marks

_LONGEST_EMAIL = 254
"""Characters of an address: RFC 5321, section 4.5.3.1.3, without the angle brackets."""

PING_PLACEHOLDERS = ("{status}", "{exit_code}", "{up_or_down}")
"""The placeholders of [monitoring] ping_url, replaced at the end of a run."""

BROKER_ADDRESS = "it must be an address like amqp://HOST/, amqps://HOST/ or amqp://HOST:5672/"
"""The second half of a sentence about an address for which `is_broker_address` is False."""

_PROXY_SCHEMES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")
"""The kinds of proxies that libcurl can use."""

_DATABASE_PASSWORD = re.compile(r"[\w+]+://[^:/]*:(?P<password>[^@]*)@")
"""The password in a database URL, found as SQLAlchemy finds it."""


def check_email(address: str) -> str:
    """`address` trimmed; ValueError with a sentence if it is not one plain email address.

    Invisible marks are left out: people copy them with an address from web pages and spreadsheets.
    """
    text = without_marks(address).strip()
    local, _, domain = text.rpartition("@")
    forbidden = invisible_character(text) or any(c in '<>,;()[]\\"' for c in text) or "@" in local
    if not local or forbidden or not all(domain.split(".")) or parseaddr(text)[1] != text:
        raise ValueError(f"'{text}' is not an email address; write it like name@example.org")
    if len(text) > _LONGEST_EMAIL:
        raise ValueError(f"an email address has at most {_LONGEST_EMAIL} characters, and this one has {len(text):,}")
    return text


def check_network(text: object) -> Network:
    """An address range like 127.0.0.0/8 (or a single address) as a network; ValueError with a sentence otherwise."""
    try:
        return ipaddress.ip_network(str(text).strip(), strict=False)
    except ValueError:
        raise ValueError(f"'{text}' is not an address range; write it like 127.0.0.0/8 or 2001:db8::/32") from None


def url_parts(url: str) -> SplitResult | None:
    """The parts of a URL that names a host, and a port other than 0 if any; None if `url` is something else."""
    try:
        parts = urlsplit(url)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def _is_web_address(url: str) -> bool:
    parts = url_parts(url)
    return parts is not None and parts.scheme in ("http", "https") and re.fullmatch("[!-~]*", url) is not None


def _require_no_password(url: str, key: str) -> None:
    """Raises ValueError, which says that the password belongs to another key. An example would be masked."""
    if ":" in url.rpartition("@")[0].rpartition("://")[2]:
        where = f"leave the user name alone before the @, and in {key} {HOW_TO_REFER}"
        raise ValueError(f"a password is never written here: {where}")


def check_ping_address(url: str) -> str:
    """The URL of a monitor; ValueError with a sentence that does not show `url` if it is not one."""
    if not _is_web_address(url):
        raise ValueError("it must be a web address that begins with https:// or http://")
    for placeholder in re.findall(r"\{[^{}]*\}", url):
        if placeholder not in PING_PLACEHOLDERS:
            raise ValueError(f"there is no {placeholder} to fill in; there are {', '.join(PING_PLACEHOLDERS)}")
    return url


def is_broker_address(value: str) -> bool:
    """True if `value` is an address of a broker: amqp:// or amqps://, a host, and a port, if any, that is a number."""
    parts = url_parts(value)
    return parts is not None and parts.scheme in ("amqp", "amqps")


def _check_broker(value: str) -> str:
    """The address of a broker, or a reference to it: it has a password."""
    value = value.strip()
    if is_reference(value) or is_broker_address(value):
        return value
    raise ValueError(f"{BROKER_ADDRESS}, or {HOW_TO_REFER}")


def _check_ping_url(value: str) -> str:
    value = value.strip()
    if is_reference(value):
        return value
    if "://" in value:
        return check_ping_address(value)
    raise ValueError(f"it must be a web address, or {HOW_TO_REFER}")


def _check_sender(address: str) -> str:
    if not address.rpartition("@")[0].isascii():
        raise ValueError("every mail server must take it, so before the @ it must be in ASCII letters")
    return address


def _check_zone(name: str) -> str:
    if name not in available_timezones():
        raise ValueError(f"'{name}' is not a time zone; write it like UTC or Europe/Berlin")
    return name


def _check_time_of_day(moment: time) -> time:
    if moment.tzinfo is not None:
        raise ValueError("it must be a time without a zone, like 03:00:00; the zone is time_zone in [harvester]")
    return moment


def check_database_url(url: str) -> str:
    """`url`; ValueError with a sentence, which does not show it, if there is a password in it."""
    parts = _DATABASE_PASSWORD.match(url)
    in_query = any("passw" in name.lower() for name, _ in parse_qsl(url.partition("?")[2]))
    if in_query or (parts and parts["password"]):
        raise ValueError(f"a password is never written here: take it out of the URL, and in password {HOW_TO_REFER}")
    return url


def _check_proxy(url: str) -> str:
    _require_no_password(url, "proxy_password")
    parts = url_parts(url)
    rest = parts and (parts.path.strip("/") or parts.query or parts.fragment)
    if url and (not parts or rest or parts.scheme not in _PROXY_SCHEMES or re.search(r"[\s\x00-\x1f\x7f]", url)):
        raise ValueError("it must be written like http://proxy.example.org:3128")
    return url


def _check_web_address(url: str) -> str:
    if url and not _is_web_address(url):
        raise ValueError("it must be a web address, like https://repository.example.org/metacat/d1/mn/v2")
    if "@" in urlsplit(url).netloc:
        raise ValueError(f"a user name or password is never written here: {HOW_TO_REFER}")
    return url.rstrip("/")


def _check_search_server(url: str) -> str:
    """The address of a search server. It may have a user name; messages do not show it."""
    _require_no_password(url, "search_password")
    if url and not _is_web_address(url):
        raise ValueError("it must be a web address, like https://search.example.org:9200")
    return url


def _check_domain(name: str) -> str:
    if name and not re.fullmatch(OAI_DOMAIN, name):
        raise ValueError("it must be a domain, like catalogue.example.org")
    return name.lower()


def _check_path(path: Path) -> Path:
    at_home(path)
    return path


def _check_folder(value: object) -> object:
    if not value:
        raise ValueError("it must be the path of a folder")
    return value


def _split(value: object) -> object:
    """A list that is given as one text (as in the environment): comma-separated, or as JSON."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.startswith("["):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"'{text}' is not a JSON list: {error}") from None
    return [part.strip() for part in text.split(",") if part.strip()]


def _check_target_kind(kind: str) -> str:
    if kind not in TARGETS:
        raise ValueError(f"input should be {' or '.join(map(repr, TARGETS.names()))}")
    return kind


Email = Annotated[str, AfterValidator(check_email)]
OptionalEmail = Annotated[str, AfterValidator(lambda address: address and check_email(address))]
Emails = Annotated[tuple[Email, ...], BeforeValidator(_split)]
Sender = Annotated[Email, AfterValidator(_check_sender)]
ZoneName = Annotated[str, AfterValidator(_check_zone)]
TimeOfDay = Annotated[time, AfterValidator(_check_time_of_day)]
DatabaseUrl = Annotated[str, AfterValidator(check_database_url)]
ProxyUrl = Annotated[str, AfterValidator(_check_proxy)]
WebAddress = Annotated[str, AfterValidator(_check_web_address)]
SearchServer = Annotated[str, AfterValidator(_check_search_server)]
WebAddresses = Annotated[tuple[WebAddress, ...], BeforeValidator(_split)]
Domain = Annotated[str, AfterValidator(_check_domain)]
Broker = Annotated[str, AfterValidator(_check_broker)]
PingUrl = Annotated[str, AfterValidator(_check_ping_url)]
TargetKind = Annotated[str, AfterValidator(_check_target_kind)]
SecretReference = Annotated[str, AfterValidator(check_reference)]
LocalPath = Annotated[Path, AfterValidator(_check_path)]
LocalFolder = Annotated[LocalPath | None, BeforeValidator(_check_folder)]
OwnFolder = Annotated[LocalPath, BeforeValidator(_check_folder)]
Networks = Annotated[tuple[Annotated[Network, BeforeValidator(check_network)], ...], BeforeValidator(_split)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_split)]
Positive = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0)]
FiniteSeconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Seconds; 0: no limit, or no wait."""
