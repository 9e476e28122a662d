"""The decisions about registrations: states, proofs, limits, and the fields of the form. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from metaharvest.config.field_types import check_email
from metaharvest.errors import RequestError, value_errors
from metaharvest.fetch.url import BadUrl, UnsupportedScheme, WebAddress, parse_url
from metaharvest.model import Unit
from metaharvest.model.values import frozen
from metaharvest.text import character_in_words, invisible_character, one_line

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)

LIFETIME = timedelta(days=14)
"""The time for both proofs; then the request expires, and its links with it."""

ASKED_OF_HOST = 6
ASKED_BY_ADDRESS = 3
MAILED_TO_ADDRESS = 2
"""Requests about a host, requests with an address, and mails to an address that a source names, in a day."""

ASKED_IN_ALL = 30
"""Requests in an hour, by all people together."""

MOST_MAILS = 3
MAIL_AGAIN = timedelta(hours=1)
"""The mails with a link to one address of a request, and the time before the next one to an address of the source."""

MOST_LOOKS = 20
"""The number of times that a list is fetched for the comment with the token."""

LOWEST_PORT = 1024
"""Ports below it, except 80 and 443, are of other services than web servers."""

_IN_A_YEAR = {Unit.DAYS: 366, Unit.WEEKS: 52, Unit.MONTHS: 12}

_ADVERTISING = re.compile(r"://|www\.|@", re.IGNORECASE)
_PROOF = re.compile(r"metaharvest-proof:[ \t]{0,10}([A-Za-z0-9_-]{20,100})")
_MOST_NAME = 100


class Kind(StrEnum):
    """The kinds of requests."""

    SITE = "site"
    MOVE = "move"
    ADDRESS = "address"
    PAUSE = "pause"
    LEAVE = "leave"


class State(StrEnum):
    """The states of a request. `asked`: its source is being asked, or could not be read."""

    ASKED = "asked"
    WAITING_FOR_PROOFS = "waiting-for-proofs"
    WAITING_FOR_DECISION = "waiting-for-decision"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    EXPIRED = "expired"

    @property
    def words(self) -> str:
        """The state in words."""
        return self.value.replace("-", " ")


class Proof(StrEnum):
    """The ways in which the people of a source showed that they agree."""

    ADDRESS = "address"
    """The address of the request is one that the source itself names."""

    MAIL = "mail"
    COMMENT = "comment"


@frozen
class Counts:
    """The numbers of recent requests, this one included."""

    in_all: int
    of_host: int
    by_address: int


def require_within_limits(counts: Counts) -> None:
    """Raises RequestError with the limit that is reached."""
    if counts.by_address > ASKED_BY_ADDRESS:
        raise RequestError(f"This address has made {ASKED_BY_ADDRESS} requests today. Try again tomorrow.")
    if counts.of_host > ASKED_OF_HOST:
        raise RequestError(f"There were {ASKED_OF_HOST} requests about this web server today. Try again tomorrow.")
    if counts.in_all > ASKED_IN_ALL:
        raise RequestError("Too many people register sites at the moment. Try again in an hour.")


def state_after(address_proved: bool, source_proved: bool) -> State:
    """The state of a request with these proofs."""
    return State.WAITING_FOR_DECISION if address_proved and source_proved else State.WAITING_FOR_PROOFS


def is_expired(state: State, asked_at: datetime, now: datetime) -> bool:
    """True if the proofs have not come in time."""
    return state in (State.ASKED, State.WAITING_FOR_PROOFS) and now - asked_at > LIFETIME


def names_address(addresses: Sequence[str], address: str) -> bool:
    """True if a source that names these addresses names this one; upper and lower case are the same."""
    return address.casefold() in (each.casefold() for each in addresses)


def proofs_in(content: bytes) -> list[str]:
    """The tokens in comments of a list: `<!-- metaharvest-proof: TOKEN -->`."""
    marks = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
    text = content.decode(marks.get(content[:2], "latin-1"), "replace")
    comments = (part.partition("-->")[0] for part in text.split("<!--")[1:])
    return [token for comment in comments for token in _PROOF.findall(comment)]


def checked_name(text: str) -> str:
    """The name of a new site. Mails to other people have it, so it may be no advertisement. Raises RequestError."""
    name = " ".join(text.split())
    if not name or len(name) > _MOST_NAME or one_line(name, _MOST_NAME) != name:
        raise RequestError.about("name", "Give the site a name of 1 to 100 printable characters.")
    if not any(map(str.isalnum, name)):
        raise RequestError.about(
            "name", "The name of a site has a letter or a digit: its page has no address without one."
        )
    if _ADVERTISING.search(name):
        raise RequestError.about(
            "name", "The name must not contain a web address or an @. Write the name of the station or network."
        )
    return name


def checked_address(text: str) -> str:
    """The email address. Raises RequestError."""
    if "," in text or ";" in text:
        raise RequestError.about("address", "Write one email address. The steward adds others.")
    if len(text) > 255:
        raise RequestError.about("address", "The email address is longer than 255 characters.")
    with value_errors("address"):
        return check_email(text.strip())


def mailbox(address: str) -> str:
    """The form of an address in which requests are counted: `Anna+1@example.org` is `anna@example.org`."""
    local, _, domain = address.casefold().rpartition("@")
    return f"{local.partition('+')[0]}@{domain}"[:255]


def checked_url(text: str) -> WebAddress:
    """The URL of a source, which a stranger gives. Raises RequestError."""
    example = "Write it like https://www.example.org/eml/harvest-list.xml."
    try:
        address = parse_url(text)
    except UnsupportedScheme:
        raise RequestError.about("url", f"Only http and https addresses are harvested. {example}") from None
    except BadUrl as error:
        raise RequestError.about("url", f"The address cannot be used: {error}. {example}") from None
    if odd := invisible_character(text.strip().replace(" ", "")):
        raise RequestError.about("url", f"The address contains {character_in_words(odd)}. Delete it.")
    if address.username is not None:
        raise RequestError.about(
            "url", "The address contains a user name. Remove it: the harvester reads only public addresses."
        )
    if address.port < LOWEST_PORT and address.port not in (80, 443):
        raise RequestError.about(
            "url", f"Port {address.port} is not a usual port of a web server: use 80, 443, or one above 1023."
        )
    if len(address.url) > 2000:
        raise RequestError.about("url", "The address is longer than 2,000 characters.")
    return address


def checked_frequency(every: int, unit: Unit) -> None:
    """Raises RequestError unless a site may be harvested this often: every day to once a year."""
    if not 1 <= every <= min(99, _IN_A_YEAR[unit]):
        raise RequestError.about("every", "A site is harvested every day at most, and once in a year at least.")
