"""The web application: its public addresses, their headers and errors; and the console, where it is served."""

from __future__ import annotations

import gzip
import hashlib
import logging
import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from metaharvest.errors import DatabaseError
from metaharvest.web.bodies import accepts_gzip, read_body, with_time_limit
from metaharvest.web.pages.routes import HEADERS, UNEXPECTED_ERROR, Pages
from metaharvest.web.provider import try_it
from metaharvest.web.provider.provider import Provider
from metaharvest.web.turns import Busy, address_of

log = logging.getLogger(__name__)

_MOST_BYTES = 65_536
"""The largest body of a POST request."""

_WAIT_SECONDS = 20.0
"""The time that a request to the provider waits for its turn: harvesters give up after 30 seconds and more."""

_WITHOUT_TURN = (("verb", "Identify"), ("verb", "ListMetadataFormats"))
"""Arguments of requests that read neither a list nor a record; a request with two verbs is refused."""

_LEAST_BYTES_GZIPPED = 1000
_GZIP_LEVEL = 5
_RETRY_SECONDS = 5
_RETRY_DATABASE_SECONDS = 60
_HEADERS = {
    **HEADERS,
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{try_it.STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
}
"""On every answer: metadata may have elements of HTML, which a browser would execute."""

_RESPONSE_DATE = re.compile(rb"<responseDate>[^<]*</responseDate>")
_ORIGIN = re.compile(r"https?://[^/]*", re.IGNORECASE)
_RAW_ORIGIN = re.compile(rb"^https?://[^/]*", re.IGNORECASE)
_CONSOLE = re.compile(r"/console(?:/|$)")
_API = re.compile(r"/api/v1(?:/|$)")
_FORM = "application/x-www-form-urlencoded"


def application(
    provider: Provider, pages: Pages, console: ASGIApp | None = None, api: ASGIApp | None = None
) -> ASGIApp:
    """The application that publishes with this provider and these pages, has this console at /console, and this API."""

    async def oai(request: Request) -> Response:
        return await _oai(provider, request)

    made = Starlette(
        routes=[
            Route("/favicon.ico", _no_icon),
            Route("/oai", oai, methods=["GET", "POST"]),
            # A redirect would name the host of the request, which anybody may make up.
            Route("/oai/", oai, methods=["GET", "POST"]),
            Route("/oai/try", _form),
            *pages.routes(),
        ],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    made.router.redirect_slashes = False
    root = urlsplit(provider.public.base_url).path.removesuffix("/oai")

    async def with_path(scope: Scope, receive: Receive, send: Send) -> None:
        """Answer also a request whose target is a whole URL: RFC 9112, section 3.2.2."""
        if scope["type"] == "http" and (start := _ORIGIN.match(scope["path"])):
            path = scope["path"][start.end() :] or "/"
            raw_path = scope.get("raw_path", b"")
            scope = {**scope, "path": path, "raw_path": _RAW_ORIGIN.sub(b"", raw_path) or b"/"}
        path = scope["path"].removeprefix(root) if scope["type"] == "http" else ""
        if console and _CONSOLE.match(path):
            await console(scope, receive, send)
        elif api and _API.match(path):
            await api(scope, receive, send)
        else:
            await made(scope, receive, send)

    return with_time_limit(with_path, _HEADERS)


async def _oai(provider: Provider, request: Request) -> Response:
    if not request.url.query and request.method != "POST" and _is_browser(request.headers.get("accept", "")):
        if request.url.path.endswith("/"):
            return RedirectResponse("../oai", headers=_HEADERS)
        return HTMLResponse(try_it.page(provider.public), headers={**_HEADERS, "Vary": "Accept"})
    text = request.url.query
    if request.method == "POST":
        try:
            body = await read_body(request, _MOST_BYTES)
        except ClientDisconnect:
            body = b""
        if body is None:
            return _sentence(413, f"A request has at most {_MOST_BYTES:,} bytes.")
        # Another type of body counts as an empty one.
        is_form = request.headers.get("content-type", _FORM).partition(";")[0].strip().lower() == _FORM
        text = "&".join(filter(None, (text, body.decode("latin-1") if is_form else "")))
    return await _in_turn(provider, text, request)


async def _form(request: Request) -> Response:
    """Redirect to the request of a form, without the fields that are empty."""
    query = urlencode([(name, value) for name, value in request.query_params.multi_items() if value.strip()])
    return RedirectResponse(f"../oai?{query}", 303, headers=_HEADERS)


async def _no_icon(_request: Request) -> Response:
    """Browsers ask for it, and report an answer 404 as an error of the page."""
    return Response(status_code=204, headers=_HEADERS)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _sentence(error.status_code, f"{error.detail}.")
    answer.headers.update(error.headers or {})
    return answer


async def _failed(_request: Request, _error: Exception) -> Response:
    return _sentence(500, UNEXPECTED_ERROR)


async def _in_turn(provider: Provider, text: str, request: Request) -> Response:
    """The answer to a request with these arguments, when it has its turn; a sentence if it has to wait too long.

    Some harvesters give up at the first 503: https://github.com/Esri/geoportal-server-harvester/pull/101
    """
    pairs = _pairs(text)
    if any(pair in _WITHOUT_TURN for pair in pairs):
        return await run_in_threadpool(_answer, provider, pairs, request)
    try:
        async with provider.turn_without_thread(address_of(request), _WAIT_SECONDS):
            return await run_in_threadpool(_answer, provider, pairs, request)
    except Busy:
        return _sentence(503, "Many records are being read at this moment. Please try again.", _RETRY_SECONDS)


def _answer(provider: Provider, pairs: Sequence[tuple[str, str]], request: Request) -> Response:
    """The answer to a request with these arguments. An error becomes a sentence."""
    try:
        content = provider.answer(pairs)
    except DatabaseError as error:
        log.error("A request was not answered: %s", error)
        return _sentence(503, "The records cannot be read at this moment. Please try again.", _RETRY_DATABASE_SECONDS)
    except Exception:
        log.exception("A request was not answered: an unexpected error")
        return _sentence(500, UNEXPECTED_ERROR)
    headers = {**_HEADERS, "Vary": "Accept, Accept-Encoding"}
    if b"<Identify>" in content[:2000]:
        headers["ETag"] = f'W/"{hashlib.sha256(_RESPONSE_DATE.sub(b"", content)).hexdigest()[:32]}"'
        if headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
    if len(content) >= _LEAST_BYTES_GZIPPED and accepts_gzip(request):
        content, headers["Content-Encoding"] = gzip.compress(content, _GZIP_LEVEL), "gzip"
    return Response(content, media_type="text/xml", headers=headers)


def _sentence(status: int, text: str, retry_after: int = 0) -> Response:
    retry = {"Retry-After": str(retry_after)} if retry_after else {}
    return PlainTextResponse(f"{text}\n", status, headers={**_HEADERS, **retry})


def _pairs(text: str) -> Sequence[tuple[str, str]]:
    """The arguments of a query or a form. Bytes that are not UTF-8 become a character that no value may have."""
    return [
        (name, value.replace("\ufffd", "\0"))
        for name, value in parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=None)
    ]


def _is_browser(accept: str) -> bool:
    """True if a client names HTML before XML. The default of Java does so, too; it also names image/gif."""
    html, xml = accept.find("text/html"), accept.find("/xml")
    return html >= 0 and (xml < 0 or html < xml) and "image/gif" not in accept
