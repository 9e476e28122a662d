"""Explains a failed exchange to the people who can correct it: libcurl's errors are translated here alone.

Pure functions for `client.py`: an `Exchange` goes in, a FetchError comes out. The failure is transient (worth another
attempt tonight) or lasting, which is decided here too.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from http.client import responses

import pycurl

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.fetch import protection
from metaharvest.fetch.backoff import seconds_wanted
from metaharvest.fetch.exchange import Exchange, StopReason
from metaharvest.fetch.html_page import html_title
from metaharvest.fetch.local_files import IF_TOO_LARGE
from metaharvest.fetch.transfer import ERROR_PAGE_BYTES
from metaharvest.fetch.url import WebAddress
from metaharvest.model import Finding
from metaharvest.model.actions import Remedy, todo
from metaharvest.model.values import frozen
from metaharvest.text import one_line, shown_url

TRANSIENT_STATUSES = frozenset({408, 425, 429, 502, 503, 504, 520, 521, 522, 523, 524})
"""520 to 524 are Cloudflare's: the web server behind it is down, or silent. https://github.com/sindresorhus/got/pull/991"""

_E_TOO_LARGE = 100
_E_PROXY = 97
_E_HTTP2_STREAM = 92

_TLS_CODES = {
    pycurl.E_SSL_CONNECT_ERROR,
    pycurl.E_PEER_FAILED_VERIFICATION,
    pycurl.E_SSL_CIPHER,
    pycurl.E_SSL_CACERT_BADFILE,
}
_CONNECTION_CODES = {
    pycurl.E_COULDNT_CONNECT,
    pycurl.E_RECV_ERROR,
    pycurl.E_SEND_ERROR,
    pycurl.E_GOT_NOTHING,
}
_PROXY_CODES = {pycurl.E_COULDNT_RESOLVE_PROXY, pycurl.E_COULDNT_CONNECT, _E_PROXY}
_SOCKS_NOT_REACHED = {19, 20, 21, 22, 24, 26}
"""CURLPX_REPLY_CONNECTION_REFUSED, _GENERAL_SERVER_FAILURE (also for a name that is not resolved), _HOST_UNREACHABLE,
_NETWORK_UNREACHABLE, _TTL_EXPIRED (RFC 1928, section 6), and CURLPX_REQUEST_FAILED of SOCKS4.
"""
_BROKEN_CODES = _CONNECTION_CODES | {pycurl.E_HTTP2, _E_HTTP2_STREAM}
_PROTOCOL_CODES = {
    pycurl.E_FTP_WEIRD_SERVER_REPLY,
    pycurl.E_UNSUPPORTED_PROTOCOL,
    pycurl.E_BAD_CONTENT_ENCODING,
    _E_TOO_LARGE,
}
_UNKNOWN_AUTHORITY = (
    "it comes from an authority that this harvester does not trust, or the server does not send its intermediate "
    "certificates, which browsers may have from other sites"
)
CERTIFICATE_PROBLEMS = {
    9: "it is not valid yet, or the harvester's clock is wrong",
    10: "it has expired",
    18: "it is self-signed",
    19: "it comes from an authority that this harvester does not trust (a self-signed one)",
    20: _UNKNOWN_AUTHORITY,
    21: _UNKNOWN_AUTHORITY,
    23: "it has been revoked",
    62: "it is for another host name",
    64: "it is for another address",
}
"""X509_V_ERR_... in OpenSSL's x509_vfy.h -> the fault of a server's certificate."""

_TRY_LATER = "The harvester tries again by itself. If this goes on, ask whoever runs the web server to look into it."


@frozen
class Circumstances:
    """The context of messages: the policy, our name, the first URL, the seconds spent before the exchange.

    `administrator` is the address in our From header, or empty. `is_list`: a harvest list is requested, whose URL the
    administrator has registered; `is_repository`: a repository, by OAI-PMH.
    """

    settings: HttpSettings
    user_agent: str
    first_url: str
    deadline: float
    spent: float = 0.0
    administrator: str = ""
    is_list: bool = False
    is_repository: bool = False

    @property
    def what(self) -> str:
        """The object of the request, in a word."""
        return "OAI-PMH interface" if self.is_repository else "list" if self.is_list else "document"

    def where(self, url: str) -> str:
        """`url` in the words of messages, and the URL before the redirects."""
        here, first = shown_url(url), shown_url(self.first_url)
        return here if here == first else f"{here} (redirected from {first})"


def failure(exchange: Exchange, given: Circumstances) -> FetchError | None:
    """The error of `exchange`; None if a whole document came."""
    finding, transient = _judge(exchange, given)
    if finding is None:
        return None
    retry_after = None
    if transient and exchange.status >= 400:
        retry_after = seconds_wanted(exchange.headers.get("retry-after", ""), exchange.headers.get("date", ""))
    return FetchError(
        finding,
        transient=transient,
        seconds=given.spent + exchange.seconds,
        retry_after=retry_after,
        counted=transient and not exchange.connected,
        status=exchange.status,
        page=_page(exchange),
    )


def out_of_time(url: str, given: Circumstances) -> Finding:
    """The deadline for everything has passed."""
    within = f"within {_seconds(given.deadline)}, the most that it may take"
    remedy = "The server answers too slowly. " + _TRY_LATER
    return Finding("http.deadline", f"{given.where(url)} was not received whole {within}.", remedy)


def busy(address: WebAddress, http: HttpSettings, waited: float) -> Finding:
    """All connections to a host were in use for this number of seconds."""
    connections = f"all {http.connections_per_host} connections that the harvester allows itself to {address.host}"
    message = f"{shown_url(address.url)} was not fetched: {connections} were in use for {waited:g} seconds."
    return Finding("http.busy", message, "The server answers very slowly. The harvester tries again by itself.")


def aborted(address: WebAddress) -> Finding:
    """The database could not confirm in time that this process may still send requests to the host."""
    why = f"the database could not confirm that no other process of the harvester asks {address.host} at the same time"
    message = f"The request for {shown_url(address.url)} was aborted: {why}."
    return Finding("http.busy", message, "The harvester tries again by itself.")


def overloaded(address: WebAddress, waited: float) -> Finding:
    """There was no room for another document for this number of seconds."""
    why = f"the harvester had too many other documents under way for {waited:g} seconds"
    message = f"{shown_url(address.url)} was not fetched: {why}."
    return Finding("http.busy", message, "The harvester tries again by itself.")


def too_many_redirects(url: str, given: Circumstances, *, sets_cookie: bool) -> Finding:
    """More redirects than the policy follows; `sets_cookie`: the server may redirect until it gets its cookie back."""
    message = f"{shown_url(given.first_url)} is redirected more than {given.settings.max_redirects} times, at last to "
    message += f"{shown_url(url)}."
    if sets_cookie:
        message += " The server sets a cookie, and may wait for it; the harvester sends no cookies."
    remedy = "write the final URL into the harvest list"
    if given.what != "document":
        remedy = f"send the administrator the {given.what}'s final URL"
    circle = "If the server redirects in a circle, correct that; otherwise"
    return Finding("http.redirects", message, f"{circle} {remedy}.")


def address_not_public(url: str, address: str, given: Circumstances) -> Finding:
    """The server's address is in a network that may not be harvested."""
    return Finding(
        "http.address-not-public",
        f"{given.where(url)} leads to {address}, which is not a public address; it is not harvested.",
        Remedy(
            "Give a URL that everybody can reach. If this is meant to be harvested, the harvester's administrator can "
            "allow the network (http.allow_networks in the settings, or for this site alone). {} asks it; `list add` "
            "and `oai` have the same option.",
            todo("lists.check_in_network", network=f"{address.partition('%')[0]}/{128 if ':' in address else 32}"),
        ),
    )


def _judge(exchange: Exchange, given: Circumstances) -> tuple[Finding | None, bool]:
    """The finding, and True if it is transient."""
    where = given.where(exchange.address.url)
    if given.settings.proxy and (proxy := _proxy(exchange, given, where)):
        return proxy, True
    if exchange.status >= 300 or exchange.status == 206:
        return _status(exchange, given, where), exchange.status in TRANSIENT_STATUSES
    if exchange.code == 0:
        return _incomplete(exchange, given, where)
    if exchange.stop is not None:
        return _stopped(exchange, given, where)
    if exchange.code == pycurl.E_FILESIZE_EXCEEDED:
        return _too_large(exchange, where), False
    if exchange.code == pycurl.E_OPERATION_TIMEDOUT:
        return _timed_out(exchange, given, where), True
    if exchange.refused_address and not exchange.opened:
        return address_not_public(exchange.address.url, exchange.refused_address, given), False
    return _transport(exchange, where)


def _incomplete(exchange: Exchange, given: Circumstances, where: str) -> tuple[Finding | None, bool]:
    if not exchange.headed:
        return _connection(exchange, where, "broke off before the headers came to their end"), True
    if exchange.complete and (challenge := _challenge(exchange, given, where)):
        return challenge, False
    if exchange.size == 0 and exchange.complete:
        message = f"{where} is empty: the server answered {_status_words(exchange)} and sent nothing."
        return Finding("http.empty", message, f"Put the {given.what} back in its place on the web server."), False
    return (None, False) if exchange.complete else (_truncated(exchange, where), True)


def _stopped(exchange: Exchange, given: Circumstances, where: str) -> tuple[Finding, bool]:
    if exchange.stop is StopReason.ADDRESS:
        return address_not_public(exchange.address.url, exchange.refused_address, given), False
    if exchange.stop is StopReason.READ_TIMEOUT:
        limit = _seconds(given.settings.read_timeout)
        received = f"after {exchange.wire:,} bytes" if exchange.wire else "before the document began"
        message = f"{where}: the server sent nothing more for {limit}, {received}."
        return Finding("http.timeout-read", message, _TRY_LATER), True
    if exchange.stop is StopReason.TOO_SLOW:
        message = f"{where} came too slowly: {exchange.wire:,} bytes in {_seconds(exchange.seconds)}."
        return Finding("http.timeout-read", message, _TRY_LATER), True
    if exchange.stop is StopReason.ENCODING:
        coding = one_line(shown_url(exchange.headers.get("content-encoding", "")), 60)
        message = f"{where} was sent compressed as '{coding}', which could not be decompressed."
        remedy = "Only gzip is asked for. Turn compression off for this file on the web server, or repair the file."
        return Finding("http.encoding", message, remedy), False
    return _too_large(exchange, where), False


def _too_large(exchange: Exchange, where: str) -> Finding:
    size = f"{exchange.announced:,} bytes" if exchange.announced > exchange.limits.size else "more than that"
    if exchange.size > exchange.limits.size and exchange.size > exchange.wire:
        size = "more than that after decompression"
    message = f"{where} is larger than the {exchange.limits.size:,} bytes that are accepted: {size}."
    return Finding("http.too-large", message, IF_TOO_LARGE)


def _timed_out(exchange: Exchange, given: Circumstances, where: str) -> Finding:
    if exchange.connected or exchange.seconds + 0.01 >= exchange.limits.deadline:
        return out_of_time(exchange.address.url, given)
    limit = _seconds(given.settings.connect_timeout)
    if not exchange.resolved:
        return Finding("http.dns", f"{where}: the host name was not resolved within {limit}.", _TRY_LATER)
    message = f"{where}: no connection to {exchange.address.host} within {limit}."
    remedy = "The server is down, or a firewall keeps the harvester out. " + _TRY_LATER
    return Finding("http.timeout-connect", message, remedy)


def _proxy(exchange: Exchange, given: Circumstances, where: str) -> Finding | None:
    """The finding about the proxy, or about a host that the proxy cannot reach.

    For such a host, Squid answers 503, others 500 or 502: https://github.com/elazarl/goproxy/issues/51,
    https://github.com/chobits/ngx_http_proxy_connect_module/issues/137
    """
    if exchange.tunnel_status in (500, 502, 503, 504) or exchange.proxy_error in _SOCKS_NOT_REACHED:
        host = exchange.address.host
        message = f"{where}: the harvester's proxy could not connect to {host} ({_words(exchange)})."
        return Finding("http.connection", message, "The server may be down. " + _TRY_LATER)
    refused = exchange.status == 407 or exchange.tunnel_status >= 300
    # TLS with the proxy begins before CONNECT, TLS with the site after it.
    is_tls_of_proxy = given.settings.proxy.lower().startswith("https:") and not exchange.tunnel_status
    codes = _PROXY_CODES | _TLS_CODES if is_tls_of_proxy else _PROXY_CODES
    if exchange.code not in codes and not refused:
        return None
    words = _status_words(exchange) if exchange.status == 407 else _words(exchange)
    message = f"{where} could not be fetched: the harvester's own proxy does not work ({words})."
    remedy = "This is not the site's fault. The harvester's administrator has to check http.proxy in the settings."
    return Finding("http.proxy", message, remedy)


def _transport(exchange: Exchange, where: str) -> tuple[Finding, bool]:
    """The finding about a problem between the two machines, or in the server's use of HTTP."""
    code = exchange.code
    if code == pycurl.E_COULDNT_RESOLVE_HOST:
        message = f"{where}: the host name {exchange.address.host} was not found (DNS)."
        return Finding("http.dns", message, "Check the spelling of the host name. " + _TRY_LATER), True
    if code == pycurl.E_PARTIAL_FILE or (exchange.headed and code in _BROKEN_CODES):
        return _truncated(exchange, where), True
    if code in _TLS_CODES:
        return _tls(exchange, where)
    if code in _BROKEN_CODES:
        return _connection(exchange, where, f"failed ({_words(exchange)})"), True
    if code in _PROTOCOL_CODES:
        message = f"{where}: what the server sent is not a proper HTTP answer ({_words(exchange)})."
        remedy = "Check that the URL's port belongs to a web server, and its set-up."
        return Finding("http.protocol", message, remedy), False
    message = f"{where} could not be fetched: {_words(exchange)} (libcurl error {code})."
    return Finding("http.other", message, "Please send this line to the harvester's administrator."), False


def _connection(exchange: Exchange, where: str, what: str) -> Finding:
    message = f"{where}: the connection to {exchange.address.host} {what}."
    return Finding("http.connection", message, "The server may be down. " + _TRY_LATER)


def _truncated(exchange: Exchange, where: str) -> Finding:
    of = f" of {exchange.announced:,} announced" if exchange.announced else ""
    what = "the compressed data have no end" if exchange.code == 0 else "the transfer broke off"
    if not exchange.wire:  # such as chunks that are announced, and not sent
        what += f" ({_words(exchange)})"
    message = f"{where} did not arrive whole: {what} after {exchange.wire:,} bytes{of}."
    return Finding("http.truncated", message, _TRY_LATER)


def _tls(exchange: Exchange, where: str) -> tuple[Finding, bool]:
    host, words = exchange.address.host, _words(exchange)
    if exchange.code == pycurl.E_SSL_CONNECT_ERROR and any(
        w in words.lower() for w in ("reset", "syscall", "eof", "broken pipe")
    ):
        return _connection(exchange, where, f"broke off while it was being encrypted ({words})"), True
    if "wrong version number" in words.lower():
        message = f"{where}: {host} answers without encryption (TLS) on port {exchange.address.port}."
        remedy = "If it speaks plain HTTP there, write http:// in place of https://, or the port that speaks TLS."
        return Finding("http.tls", message, remedy), False
    if exchange.code != pycurl.E_PEER_FAILED_VERIFICATION:
        message = f"{where}: no encrypted connection to {host} could be agreed on ({words})."
        remedy = "Ask whoever runs the web server to check its TLS set-up; TLS 1.2 or later is needed."
        return Finding("http.tls", message, remedy), False
    problem = CERTIFICATE_PROBLEMS.get(exchange.verify_result, words)
    if "subject name" in words or "does not match" in words:
        problem = "it is for another host name"
    return Finding(
        "http.tls",
        f"{where}: the certificate of {host} is not accepted: {problem}.",
        Remedy(
            "Ask the keepers of the web server to renew or correct its certificate. If it comes from an authority of "
            "your own, send the certificate of the authority to the harvester's administrator, who can trust it for "
            "this site ({}), or for all sites (ca_file in the section [http] of the settings).",
            todo("sites.set_authorities"),
        ),
    ), False


def _challenge(exchange: Exchange, given: Circumstances, where: str) -> Finding | None:
    """A protection service's page in the place of the document, with a status of success."""
    if exchange.size and "html" not in exchange.headers.get("content-type", "").lower():
        return None
    exchange.file.seek(0)
    page = exchange.file.read(ERROR_PAGE_BYTES)
    exchange.file.seek(0, os.SEEK_END)
    return _blocked(exchange, given, where, page)


def _status(exchange: Exchange, given: Circumstances, where: str) -> Finding:
    page = _page(exchange)
    if blocked := _blocked(exchange, given, where, page):
        return blocked
    message = f"{where}: the server answered {_answer(exchange, html_title(page))}."
    remedy = _STATUS_REMEDIES.get(exchange.status)
    if exchange.status == 401 and exchange.address.username is not None:
        remedy = "The server does not accept the user name and password in the URL: correct them."
    if given.what != "document" and exchange.status in (404, 410):
        remedy = f"Put the {given.what} where the URL says, or send the administrator its new address."
    if remedy is None:
        by_hand = "Check the URL and the web server; open the URL in a browser."
        remedy = _TRY_LATER if exchange.status >= 500 or exchange.status in TRANSIENT_STATUSES else by_hand
    return Finding("http.status", message, remedy(given) if callable(remedy) else remedy)


def _page(exchange: Exchange) -> bytes:
    """The beginning of the page in the place of a document."""
    page = bytes(exchange.page)
    compressed = exchange.headers.get("content-encoding", "").lower() in ("gzip", "x-gzip")
    return _inflated(page) if compressed else page


def _answer(exchange: Exchange, title: str | None) -> str:
    return _status_words(exchange) + (f", with a page titled '{title}'" if title else "")


def _blocked(exchange: Exchange, given: Circumstances, where: str, page: bytes) -> Finding | None:
    """The finding if a protection service sent `page`; None if it did not."""
    title = html_title(page)
    service = protection.service(exchange.status, exchange.headers, title, page)
    if service is None:
        return None
    who = f"a protection service ({service})" if service else "a protection service"
    others = "the pages that follow it" if given.is_repository else "the other files of our harvest list"
    letter = (
        f'Please let requests whose User-Agent is "{given.user_agent}" pass without a challenge: they are our '
        f"network's metadata harvester, which reads a few files a night.{_who_to_ask(given)} "
        f"It asks for {shown_url(exchange.address.url)} and {others}."
    )
    message = f"{where}: {who} keeps the harvester out (answer {_answer(exchange, title)})."
    return Finding("http.blocked", message, f"Send this to your web administrator: {letter}")


def _who_to_ask(given: Circumstances) -> str:
    """Our address: the one in the From header; the network's is in the server's own log."""
    answered = "where questions are answered, also about the network address that they come from"
    return f" They carry the header From: {given.administrator}, {answered}." if given.administrator else ""


def _readable(given: Circumstances) -> str:
    return given.what if given.is_repository else "file"


_STATUS_REMEDIES: dict[int, str | Callable[[Circumstances], str]] = {
    401: lambda given: (
        f"The server asks for a user name and a password. Make the {_readable(given)} readable for everybody."
    ),
    403: lambda given: (
        f"Make the {_readable(given)} readable for everybody, or ask your web administrator to admit requests whose "
        f'User-Agent is "{given.user_agent}".{_who_to_ask(given)}'
    ),
    404: "Put the document where the URL says, or correct the URL in the harvest list.",
    410: "Put the document back where the URL says, or take it out of the harvest list.",
    429: "The server finds that the harvester asks too often. It waits and tries again by itself.",
    500: "The web server has a fault of its own; its error log says more.",
}


def _status_words(exchange: Exchange) -> str:
    """`404 Not Found`: the standard's words if the server gives none."""
    reason = one_line(shown_url(exchange.reason), 100) or responses.get(exchange.status, "")
    return f"{exchange.status} {reason}".strip()


def _inflated(page: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(page, 65_536)
    except zlib.error:
        return b""


def _words(exchange: Exchange) -> str:
    """The words of the operating system or libcurl, without the full stop."""
    if exchange.code == pycurl.E_COULDNT_CONNECT and exchange.os_error:
        return os.strerror(exchange.os_error)
    return one_line(shown_url(exchange.words), 200).rstrip(".") or "no reason given"


def _seconds(seconds: float) -> str:
    return f"{seconds:g} second" if seconds == 1 else f"{seconds:g} seconds"
