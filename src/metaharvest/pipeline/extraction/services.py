"""Requests to the services of the settings, Crossref and GROBID. The administrator names and trusts them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from metaharvest import __version__
from metaharvest.config.settings import HttpSettings
from metaharvest.config.trust_store import system_trust
from metaharvest.text import one_line, shown_url

if TYPE_CHECKING:
    import requests

LARGEST_ANSWER = 20_971_520
_CONNECT_SECONDS = 20.0
_LONGEST_PAUSE = 30.0
"""Seconds that a service may ask for before a request is sent again; for more, the documents wait."""

_FIRST_PAUSE = 2.0
_TRIES = 3
_BUSY = frozenset((429, 502, 503, 504))
_REFUSED = frozenset((400, 413, 414, 415, 422))


class ServiceAway(Exception):
    """A service gives no answer that can be used. The message is a sentence."""


class ServiceSlow(ServiceAway):
    """A service took this request, and did not answer it in time."""


class ServiceRefused(ServiceAway):
    """A service cannot answer this one request; others it may."""


class ServiceClient:
    """Sends requests to a service, one after the other. Use it in a `with`.

    `pace` is the time from one request to the next in seconds, `seconds` the time for one answer.
    """

    def __init__(self, name: str, http: HttpSettings, *, pace: float, seconds: float) -> None:
        import requests

        self._name = name
        self._pace = pace
        self._seconds = seconds
        self._next = 0.0
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(system_trust())
        self._session.headers["User-Agent"] = f"metaharvest/{__version__}"
        if http.proxy:
            self._session.proxies = {"http": http.proxy, "https": http.proxy}

    def get(self, url: str) -> str:
        """The answer to a request for this address. Raises ServiceAway."""
        return self._text("GET", url)

    def post(self, url: str, file: tuple[str, bytes, str], fields: dict[str, str]) -> str:
        """The answer to a form with a file (field, content, media type) and fields.

        Raises ServiceAway, ServiceSlow, ServiceRefused.
        """
        name, content, media_type = file
        return self._text("POST", url, files={name: ("file", content, media_type)}, data=fields)

    def _text(self, method: str, url: str, **body: Any) -> str:
        import requests

        limits = (_CONNECT_SECONDS, self._seconds)
        for _ in range(_TRIES):
            time.sleep(max(0.0, self._next - time.monotonic()))
            self._next = time.monotonic() + self._pace
            try:
                with self._session.request(method, url, timeout=limits, stream=True, **body) as answer:
                    if answer.status_code not in _BUSY:
                        return self._whole(answer, url)
                    if not self._pause(answer.headers):
                        break
            except requests.ReadTimeout:
                raise ServiceSlow(f"{self.at(url)} gives no answer within {self._seconds:g} seconds.") from None
            except requests.RequestException as error:
                why = one_line(str(error) or type(error).__name__, 200)
                raise ServiceAway(f"{self.at(url)} cannot be reached: {why}.") from None
        raise ServiceAway(f"{self.at(url)} is busy.")

    def _whole(self, answer: requests.Response, url: str) -> str:
        if answer.status_code == 204:
            return ""
        if answer.status_code != 200:
            kind = ServiceRefused if _is_refused(answer) else ServiceAway
            raise kind(f"{self.at(url)} answers with the status {answer.status_code}.")
        until, content = time.monotonic() + self._seconds, bytearray()
        for part in answer.iter_content(65_536):
            content += part
            if len(content) > LARGEST_ANSWER or time.monotonic() > until:
                raise ServiceAway(f"The answer of {self.at(url)} is too large, or takes too long.")
        return content.decode("utf-8", "replace")

    def at(self, url: str) -> str:
        """The service, for a sentence, without the login of its address."""
        return f"{self._name} at {shown_url(f'{urlsplit(url).scheme}://{urlsplit(url).netloc}')}"

    def _pause(self, headers: Mapping[str, str]) -> bool:
        """Wait as the service wants; False if that is too long."""
        from metaharvest.fetch.backoff import seconds_wanted

        retry_after = headers.get("Retry-After")
        seconds = seconds_wanted(retry_after, headers.get("Date", "")) if retry_after else _FIRST_PAUSE
        if seconds is None or seconds > _LONGEST_PAUSE:
            return False
        self._next = time.monotonic() + seconds
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _trace: TracebackType | None) -> None:
        self._session.close()


def _is_refused(answer: requests.Response) -> bool:
    """True if the answer is about the request. GROBID names the fault of a file: `[BAD_INPUT_DATA] PDF to XML ...`.

    https://grobid.readthedocs.io/en/latest/Grobid-service/#use-grobid-services
    """
    if answer.status_code in _REFUSED:
        return True
    return answer.status_code == 500 and next(answer.iter_content(1), b"") == b"["
