"""Access to targets over HTTP: the one way to `requests`, made from the settings of a target.

Its rules: time-outs for connecting and reading, and a deadline for the whole exchange; certificates verified by the
system's authorities and by ca_file; a client certificate; a proxy from the settings alone, nothing from the
environment or ~/.netrc; a limit to the size of responses; the User-Agent of all requests of this program. Redirects are
not followed: no other server may get our token, and a POST must reach its server. A GET is retried a few times if the
connection breaks or the server is busy; a request that may change something is sent once.

It returns responses of any status; the target interprets the status, or `HttpAnswer.refusal` does.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar
from itertools import count
from pathlib import Path

import requests
from requests.cookies import extract_cookies_to_jar
from urllib3.exceptions import HTTPError

from metaharvest.config.secret_references import url_with_password
from metaharvest.config.settings import Settings
from metaharvest.config.trust_store import configured_authorities, system_trust
from metaharvest.errors import SettingsError, TargetError
from metaharvest.fetch.backoff import seconds_wanted, wait_after
from metaharvest.fetch.client import user_agent
from metaharvest.model import Finding
from metaharvest.targets import http_failures
from metaharvest.targets.deadline import Deadline, DeadlineAdapter
from metaharvest.targets.interruption import pause

log = logging.getLogger(__name__)

_BUSY = frozenset({429, 502, 503, 504})
ANSWER_BYTES = 1_048_576
"""The default limit of an answer, in bytes after decompression."""

_MORE_CONNECTIONS = 4
"""Connections beside those for uploads; if all are in use, other exchanges wait."""

Part = tuple[str | None, bytes | str, str]
"""A part of a multipart body: file name (None: a plain field), content, content type."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A server's response, of any status. Header names in any case."""

    url: str
    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def ok(self) -> bool:
        """True for a success."""
        return 200 <= self.status < 300

    def refusal(self, words: str = "") -> TargetError:
        """The error for this response if the caller knows no better one; `words` are the server's own, if any."""
        location = self.headers.get("Location", "")
        words = words or http_failures.page_words(self.body)
        return http_failures.refused(self.status, self.reason, self.url, words, location)


@dataclass(frozen=True, slots=True)
class _Failure:
    """An exchange without a response. `again`: a retry now makes sense; `sent`: the request may have arrived."""

    finding: Finding
    cause: Exception | None = None
    again: bool = False
    sent: bool = True


class Unanswered(TargetError):
    """There is no whole response. `sent`: the request may have reached the server, which may have carried it out.

    Always transient.
    """

    def __init__(self, finding: Finding, *, sent: bool) -> None:
        super().__init__(finding, transient=True)
        self.sent = sent


class HttpClient:
    """Sends requests to the server at `settings.target.url`; safe for threads, which share its connections.

    Raises SettingsError if the certificates, the key, ca_file or the proxy cannot be used.
    """

    def __init__(self, settings: Settings) -> None:
        target = settings.target
        self.url = target.url
        place = settings.place("target", "proxy_password")
        proxy = url_with_password(target.proxy, target.proxy_password, settings.folder, f"{place} is set, but proxy")
        if proxy.startswith("socks"):
            problem = "a target is reached through an http:// or https:// proxy, not through SOCKS"
            raise SettingsError(f"{settings.place('target', 'proxy')} cannot be used: {problem}.")
        encrypted = any(each.startswith("https:") for each in (target.url, proxy))
        context = _context(settings) if encrypted else None
        connections = target.uploads_at_once + _MORE_CONNECTIONS
        self._adapter = DeadlineAdapter(context, connections)
        self._room = threading.BoundedSemaphore(connections)
        self._target = target
        self._http = settings.http
        self._proxies = {"http": proxy, "https": proxy} if proxy else {}
        self.document_bytes = settings.http.max_document_bytes
        self._headers = {
            "User-Agent": user_agent(settings.harvester.name, settings.http.contact_url),
            "Accept-Encoding": "gzip",
        }
        administrator = next(iter(settings.harvester.administrators), "")
        if administrator.isascii() and administrator.isprintable() and administrator:
            self._headers["From"] = administrator

    def ask(
        self,
        method: str,
        path: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, str] | None = None,
        data: Mapping[str, str] | bytes | None = None,
        parts: Sequence[tuple[str, Part]] = (),
        cookies: CookieJar | None = None,
        most_bytes: int = ANSWER_BYTES,
    ) -> HttpAnswer:
        """The response to a request for `path` (quoted, added to the target's url) with form fields or multipart parts.

        `cookies` are sent; it gets the cookies of the response, and threads may share it. A GET or HEAD is retried a
        few times. `most_bytes` limits the response. Raises Unanswered.
        """
        request = requests.Request(
            method,
            self.url + path,
            headers={**self._headers, **(headers or {})},
            params=dict(params or {}),
            data=data,
            files=list(parts) or None,
            cookies=cookies,
        )
        for attempt in count(1):
            outcome = self._exchange(request, cookies, most_bytes)
            wait = self._wait(outcome, attempt) if method in ("GET", "HEAD") else None
            if wait is None:
                break
            log.debug("%s %s is asked again in %.1f seconds", method, self.url + path, wait)
            if not pause(wait):
                break
        if isinstance(outcome, _Failure):
            raise Unanswered(outcome.finding, sent=outcome.sent) from outcome.cause
        return outcome

    def close(self) -> None:
        """Close the idle connections."""
        self._adapter.close()

    def _exchange(self, request: requests.Request, cookies: CookieJar | None, most_bytes: int) -> HttpAnswer | _Failure:
        target, url = self._target, request.url
        with self._room, Deadline(target.deadline) as deadline:
            try:
                prepared = request.prepare()
                timeout = (target.connect_timeout, target.read_timeout)
                response = self._adapter.send(prepared, stream=True, timeout=timeout, proxies=self._proxies)
                with response:
                    if cookies is not None:
                        extract_cookies_to_jar(cookies, prepared, response.raw)  # type: ignore[no-untyped-call]
                    body = _read(response, most_bytes)
            except (OSError, HTTPError) as error:  # requests' own errors are OSErrors
                if deadline.passed:
                    return _Failure(http_failures.too_slow(url, target.deadline), error)
                finding = http_failures.unanswered(error, url, bool(self._proxies))
                again = http_failures.worth_another_try(error)
                return _Failure(finding, error, again, sent=not http_failures.never_got_there(error))
        if deadline.passed:
            # A response of no announced length seems complete after the connection was shut down.
            return _Failure(http_failures.too_slow(url, target.deadline))
        if body is None:
            return _Failure(http_failures.too_large(url, most_bytes, is_document=most_bytes == self.document_bytes))
        return HttpAnswer(url, response.status_code, response.reason or "", response.headers, body)

    def _wait(self, outcome: HttpAnswer | _Failure, attempt: int) -> float | None:
        """The seconds until the retry of a request; None: there is no retry."""
        if isinstance(outcome, _Failure):
            return wait_after(attempt, self._http) if outcome.again else None
        if outcome.status not in _BUSY:
            return None
        headers = outcome.headers
        wanted = seconds_wanted(headers.get("Retry-After", ""), headers.get("Date", ""))
        return wait_after(attempt, self._http, wanted)


def _read(response: requests.Response, most: int) -> bytes | None:
    """The body, decompressed; None if it is larger than `most` bytes."""
    body = bytearray()
    for piece in response.iter_content(65_536):
        body += piece
        if len(body) > most:
            return None
    return bytes(body)


def _context(settings: Settings) -> ssl.SSLContext:
    """The accepted certificates, and the client's own."""
    target = settings.target
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=system_trust())
    if target.ca_file is not None:
        own = configured_authorities(settings.path(target.ca_file), settings.place("target", "ca_file"))
        context.load_verify_locations(cadata=own.decode("ascii", "ignore"))
    if target.certificate is not None:
        certificate, key = settings.path(target.certificate), target.key and settings.path(target.key)
        _load_certificate(context, certificate, key, settings.place("target", "certificate"))
    return context


def _load_certificate(context: ssl.SSLContext, certificate: Path, key: Path | None, place: str) -> None:
    try:
        # The password keeps OpenSSL from asking for one at a terminal.
        context.load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        files = f"{certificate} and {key}" if key else str(certificate)
        problem = "they must be PEM, belong together, and the key may not be encrypted"
        raise SettingsError(f"The client certificate in {files} ({place}) cannot be used: {problem}.") from error
    except OSError as error:
        file = next((each for each in (certificate, key) if each and not each.is_file()), certificate)
        problem = f"The client certificate ({place}) cannot be read from {file}: {error.strerror}."
        raise SettingsError(problem) from error
