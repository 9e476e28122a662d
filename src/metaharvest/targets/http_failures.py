"""Failed exchanges with a target, in words for the administrator: the errors of requests, urllib3 and TLS.

Pure functions for `http.py`.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from http.client import responses

import requests
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NameResolutionError, NewConnectionError, ProxyError

from metaharvest.errors import TargetError
from metaharvest.fetch.error_messages import CERTIFICATE_PROBLEMS
from metaharvest.fetch.html_page import html_title
from metaharvest.model import Finding
from metaharvest.text import one_line, shown_url

_NOT_NOW = frozenset({408, 425, 429})
"""Statuses below 500 that may be temporary."""

_NEVER = frozenset({501, 505})
"""Statuses from 500 on that are lasting: the server does not support such a request."""

_LATER = "Nothing is lost: it is tried again in the next run. If it lasts, the administrator should ask the people who "
_LATER += "run the repository."
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


def too_slow(url: str, seconds: float) -> Finding:
    """The error about the deadline for the whole exchange."""
    message = f"{shown_url(url)} had not answered whole after {seconds:g} seconds, the most that it may take."
    remedy = "If the repository needs so long, the administrator can raise deadline in the target's settings. "
    return Finding("target.away", message, remedy + _LATER)


def too_large(url: str, most: int, *, is_document: bool) -> Finding:
    """The error about a response of more than `most` bytes; `is_document`: the limit is the one of documents."""
    message = f"{shown_url(url)} answered more than {most:,} bytes, the most that is accepted."
    remedy = "The administrator should show this to the people who run the repository."
    if is_document:
        remedy = "If this is a document that is meant to be so large, the administrator can raise max_document_bytes "
        remedy += "in [http] of the settings."
    return Finding("target.answer", message, remedy)


def unanswered(error: Exception, url: str, proxy: bool) -> Finding:
    """The error about an exchange without a whole response."""
    where, causes = shown_url(url), list(_causes(error))
    if proxy and any(isinstance(each, requests.exceptions.ProxyError) for each in causes):
        message = f"{where} was not reached: the proxy in the target's settings does not work ({_words(causes)})."
        return Finding("target.away", message, "The administrator should check proxy and proxy_password there.")
    for each in causes:
        if isinstance(each, ssl.SSLError) and (tls := _tls(each, where)):
            return tls
    if any(isinstance(each, NameResolutionError) for each in causes):
        remedy = "The administrator should check the spelling of the host name in the target's url. "
        return Finding("target.away", f"{where}: the host name is not known (DNS).", remedy + _LATER)
    return Finding("target.away", f"{where} did not answer: {_what(causes)}.", _LATER)


def never_got_there(error: Exception) -> bool:
    """True if the server can have done nothing: there was no connection for the request."""
    kinds = (NewConnectionError, NameResolutionError, ConnectTimeoutError, ProxyError, ssl.SSLCertVerificationError)
    return any(isinstance(each, kinds) for each in _causes(error))


def worth_another_try(error: Exception) -> bool:
    """True if a failed request may be repeated now: False if it has taken long, or the cause is lasting."""
    lasting = (requests.exceptions.Timeout, requests.exceptions.SSLError, requests.exceptions.InvalidURL, TimeoutError)
    return not any(isinstance(each, (*lasting, NameResolutionError)) for each in _causes(error))


def refused(status: int, reason: str, url: str, words: str, location: str = "") -> TargetError:
    """The error about a refusal that the caller knows no better; `words` are the server's, if any."""
    where = shown_url(url)
    answered = f"{status} {one_line(shown_url(reason), 100) or responses.get(status, '')}".strip()
    said = f"{where} answered {answered}" + (f": {words.rstrip('.')}." if words else ".")
    if status in _NOT_NOW or (status >= 500 and status not in _NEVER):
        return TargetError(Finding("target.away", said, _LATER), transient=True)
    if 300 <= status < 400:
        moved = f"{where} has moved to {shown_url(location)}." if location else said
        remedy = "The administrator should write the new address into url in the target's settings."
        return TargetError(Finding("target.moved", moved, remedy))
    if status in (401, 403, 407):
        remedy = "The administrator should check the login in the target's settings (token, certificate, or user name "
        remedy += "and password), and ask the people who run the repository whether it may write there."
        return TargetError(Finding("target.login", said, remedy))
    remedy = "The administrator should check url in the target's settings, and ask the people who run the repository."
    return TargetError(Finding("target.answer", said, remedy))


def page_words(body: bytes) -> str:
    """The title of an HTML page; empty for anything else."""
    title = html_title(body)
    return f"a page titled '{title}'" if title else ""


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
        return "no connection came about in time"
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
