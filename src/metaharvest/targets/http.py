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
import re
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from http.client import responses
from http.cookiejar import CookieJar
from itertools import count
from pathlib import Path

import requests
from requests.cookies import extract_cookies_to_jar
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError, ProxyError

from metaharvest.config.secret_references import url_with_password
from metaharvest.config.settings import Settings
from metaharvest.config.trust_store import configured_authorities, system_trust
from metaharvest.errors import SettingsError, TargetError
from metaharvest.fetch.backoff import seconds_wanted, wait_after
from metaharvest.fetch.client import user_agent
from metaharvest.fetch.error_messages import CERTIFICATE_PROBLEMS
from metaharvest.fetch.html_page import html_title
from metaharvest.model import Finding
from metaharvest.model.values import frozen
from metaharvest.targets.deadline import Deadline, DeadlineAdapter
from metaharvest.targets.interruption import pause
from metaharvest.text import one_line, shown_url

log = logging.getLogger(__name__)

_BUSY = frozenset({429, 502, 503, 504})
ANSWER_BYTES = 1_048_576
"""The default limit of an answer, in bytes after decompression."""

_MORE_CONNECTIONS = 4
"""Connections beside those for uploads; if all are in use, other exchanges wait."""

_NOT_NOW = frozenset({408, 425, 429})
"""Statuses below 500 that may be temporary."""

_NEVER = frozenset({501, 505})
"""Statuses from 500 on that are lasting: the server does not support such a request."""

_LATER = (
    "Nothing is lost: it is tried again in the next run. If it lasts, the administrator should ask the people who "
    "run the repository."
)
_CHECK_LOGIN = (
    "The administrator should check the login in the target's settings (token, certificate, or user name "
    "and password), and ask the people who run the repository whether it may write there."
)
_CHECK_URL = "The administrator should check url in the target's settings, and ask the people who run the repository."
_OURS_REFUSED = {
    "CERTIFICATE_EXPIRED": "it has expired",
    "CERTIFICATE_REVOKED": "it has been revoked",
    "UNKNOWN_CA": "it comes from an authority that the repository does not trust",
    "BAD_CERTIFICATE": "the repository finds it bad",
    "CERTIFICATE_UNKNOWN": "the repository cannot accept it",
    "UNSUPPORTED_CERTIFICATE": "it is of a kind that the repository does not take",
    "CERTIFICATE_REQUIRED": "none was sent, and the repository asks for one",
    "HANDSHAKE_FAILURE": "the repository gave no further reason; it may ask for a client certificate",
}
"""The end of the name of a TLS alert -> the fault of the certificate that we sent."""

_NOT_REACHED = re.compile(r"Tunnel connection failed: 50[0234]\b")
"""The words if a proxy cannot reach the server: see _proxy() in fetch/error_messages.py."""

Part = tuple[str | None, bytes | str, str]
"""A part of a multipart body: file name (None: a plain field), content, content type."""


@frozen
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
        if not words and (title := html_title(self.body)):
            words = f"a page titled '{title}'"
        where = shown_url(self.url)
        answered = f"{self.status} {one_line(shown_url(self.reason), 100) or responses.get(self.status, '')}".strip()
        said = f"{where} answered {answered}" + (f": {words.rstrip('.')}." if words else ".")
        if self.status in _NOT_NOW or (self.status >= 500 and self.status not in _NEVER):
            return TargetError(Finding("target.away", said, _LATER), transient=True)
        if 300 <= self.status < 400:
            location = self.headers.get("Location", "")
            moved = f"{where} has moved to {shown_url(location)}." if location else said
            remedy = "The administrator should write the new address into url in the target's settings."
            return TargetError(Finding("target.moved", moved, remedy))
        if self.status in (401, 403):
            return TargetError(Finding("target.login", said, _CHECK_LOGIN))
        if self.status == 407:
            return TargetError(_proxy_does_not_work(where, f"answered {answered}"), transient=True)
        return TargetError(Finding("target.answer", said, _CHECK_URL))


class Unanswered(TargetError):
    """There is no whole response. `sent`: the request may have reached the server, which may have carried it out.

    `again`: a retry now makes sense. Always transient.
    """

    def __init__(self, finding: Finding, *, sent: bool = True, again: bool = False) -> None:
        super().__init__(finding, transient=True)
        self.sent = sent
        self.again = again


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

        `cookies` are sent; it gets the cookies of the response, and threads may share it. A GET is retried a few times.
        `most_bytes` limits the response. Raises Unanswered.
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
            try:
                answer = self._exchange(request, cookies, most_bytes)
            except Unanswered as error:
                if method == "GET" and error.again and self._waits(request.url, attempt):
                    continue
                raise
            if method != "GET" or answer.status not in _BUSY:
                break
            wanted = seconds_wanted(answer.headers.get("Retry-After", ""), answer.headers.get("Date", ""))
            if not self._waits(request.url, attempt, wanted):
                break
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        self._adapter.close()

    def _exchange(self, request: requests.Request, cookies: CookieJar | None, most_bytes: int) -> HttpAnswer:
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
                    raise Unanswered(_too_slow(url, target.deadline)) from error
                finding, sent = _unanswered(error, url, bool(self._proxies)), not _was_never_sent(error)
                raise Unanswered(finding, sent=sent, again=_is_worth_another_try(error)) from error
        if deadline.passed:
            # A response of no announced length seems complete after the connection was shut down.
            raise Unanswered(_too_slow(url, target.deadline))
        if body is None:
            raise Unanswered(_too_large(url, most_bytes, is_document=most_bytes == self.document_bytes))
        return HttpAnswer(url, response.status_code, response.reason or "", response.headers, body)

    def _waits(self, url: str, attempt: int, wanted: float | None = None) -> bool:
        """Wait for the next attempt; False if there is none. `wanted`: the seconds that the server asks for."""
        wait = wait_after(attempt, self._http, wanted)
        if wait is None:
            return False
        log.debug("%s is asked again in %.1f seconds", url, wait)
        return pause(wait)


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


# -- failed exchanges, in words for the administrator


def _too_slow(url: str, seconds: float) -> Finding:
    message = f"{shown_url(url)} had not answered whole after {seconds:g} seconds, the most that it may take."
    remedy = "If the repository needs more time, the administrator can raise deadline in the target's settings. "
    return Finding("target.away", message, remedy + _LATER)


def _too_large(url: str, most: int, *, is_document: bool) -> Finding:
    """The error about a response of more than `most` bytes; `is_document`: the limit is the one of documents."""
    message = f"{shown_url(url)} answered more than {most:,} bytes, the most that is accepted."
    remedy = "The administrator should show this to the people who run the repository."
    if is_document:
        remedy = "If this is a document that is meant to be so large, the administrator can raise max_document_bytes "
        remedy += "in [http] of the settings."
    return Finding("target.answer", message, remedy)


def _unanswered(error: Exception, url: str, proxy: bool) -> Finding:
    where, causes = shown_url(url), list(_causes(error))
    if proxy and any(isinstance(each, requests.exceptions.ProxyError) for each in causes):
        words = _words(causes)
        if _NOT_REACHED.search(words):
            message = f"{where} was not reached: the proxy could not connect to it ({words})."
            return Finding("target.away", message, _LATER)
        return _proxy_does_not_work(where, words)
    for each in causes:
        if isinstance(each, ssl.SSLError) and (tls := _tls(each, where)):
            return tls
    if any(isinstance(each, NameResolutionError) for each in causes):
        remedy = "The administrator should check the spelling of the host name in the target's url. "
        return Finding("target.away", f"{where}: the host name is not known (DNS).", remedy + _LATER)
    return Finding("target.away", f"{where} did not answer: {_what(causes)}.", _LATER)


def _proxy_does_not_work(where: str, words: str) -> Finding:
    message = f"{where} was not reached: the proxy in the target's settings does not work ({words})."
    return Finding("target.away", message, "The administrator should check proxy and proxy_password there.")


def _was_never_sent(error: Exception) -> bool:
    """True if the server can have done nothing: there was no connection for the request."""
    kinds = (NewConnectionError, NameResolutionError, ConnectTimeoutError, ProxyError, ssl.SSLCertVerificationError)
    return any(isinstance(each, kinds) for each in _causes(error))


def _is_worth_another_try(error: Exception) -> bool:
    """True if a failed request may be repeated now: False if it has taken long, or the cause is lasting."""
    lasting = (requests.exceptions.Timeout, requests.exceptions.SSLError, requests.exceptions.InvalidURL, TimeoutError)
    return not any(isinstance(each, (*lasting, NameResolutionError)) for each in _causes(error))


def _tls(error: ssl.SSLError, where: str) -> Finding | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        problem = CERTIFICATE_PROBLEMS.get(error.verify_code, one_line(error.verify_message, 200).rstrip("."))
        message = f"{where}: the certificate of the server is not accepted: {problem}."
        remedy = "The people who run the repository should renew or correct it. For an authority of your own, the "
        return Finding("target.tls", message, remedy + "administrator can set ca_file in the target's settings.")
    reason = error.reason or ""
    for alert, problem in _OURS_REFUSED.items():
        if reason.endswith(f"ALERT_{alert}"):
            message = f"{where}: the repository does not accept the harvester's certificate: {problem}."
            remedy = "The administrator should check certificate and key in the target's settings."
            return Finding("target.login", message, remedy)
    if isinstance(error, ssl.SSLEOFError):
        message = f"{where}: the server broke the encrypted connection off before it answered."
        remedy = "It may ask for a client certificate, or not accept the one in the target's settings. "
        return Finding("target.away", message, remedy + _LATER)
    if reason == "WRONG_VERSION_NUMBER":
        message = f"{where}: the server answers without encryption (TLS) on this port."
        return Finding("target.tls", message, "The administrator should check url in the target's settings.")
    return None


def _what(causes: list[BaseException]) -> str:
    if any(isinstance(each, requests.exceptions.ConnectTimeout) for each in causes):
        return "the connection was not made in time"
    if any(isinstance(each, requests.exceptions.ReadTimeout | TimeoutError) for each in causes):
        return "it sent nothing more for as long as is waited (read_timeout in the target's settings)"
    return _words(causes)


def _words(causes: list[BaseException]) -> str:
    """The words of the system or the library, without wrapping errors."""
    for each in reversed(causes):
        if isinstance(each, OSError) and each.strerror and not isinstance(each, requests.RequestException):
            return one_line(shown_url(each.strerror), 200).rstrip(".")
    return one_line(shown_url(str(causes[-1])), 200).rstrip(".") or type(causes[-1]).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and the errors wrapped in it, the innermost last."""
    seen: set[int] = set()
    here: BaseException | None = error
    while here is not None and id(here) not in seen:
        seen.add(id(here))
        yield here
        inner = [each for each in here.args if isinstance(each, BaseException)]
        reason = getattr(here, "reason", None) if isinstance(here, HTTPError) else None
        here = reason if isinstance(reason, BaseException) else next(iter(inner), here.__cause__ or here.__context__)
