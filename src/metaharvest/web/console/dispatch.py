"""From a request to a page, and back: finds the page, decides on access, reads the form, sets cookies and headers."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from math import ceil
from urllib.parse import unquote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from metaharvest.errors import (
    DatabaseError,
    LockHeld,
    MetaharvestError,
    RunLost,
    SettingsError,
    UnknownDocument,
)
from metaharvest.model import Network
from metaharvest.model.kinds import Role
from metaharvest.queries.public_sites import numbers_of
from metaharvest.services import accounts
from metaharvest.services.accounts import NOBODY, Visitor
from metaharvest.services.harvester import Harvester
from metaharvest.text import counted
from metaharvest.web.console.access import NAVIGATION, OF_PIPELINE, PAGES
from metaharvest.web.console.cookies import Cookies
from metaharvest.web.console.defence import CSRF_FIELD, HEADERS, is_own_origin, is_token_right, local_path, part_of
from metaharvest.web.console.forms import Form, RefusedForm, read_form
from metaharvest.web.console.openid import OpenIdProvider, is_safe
from metaharvest.web.console.rights import FORM_BYTES, Decision, Page, decide
from metaharvest.web.console.visit import Console, NamedSite, NotFound, Visit
from metaharvest.web.turns import RateLimit, address_of, client_of

log = logging.getLogger(__name__)

_FAILED = "Something went wrong here. The operator finds it in the log of the server."
_NOTHING = "There is no page at this address."
_NO_SITE = "There is no site of this name, or you are not one of its contacts."
_OTHER_NAME = "There is no site of this name. It may have another name now, or may have been removed."
_STALE = "This form is too old, or it was not sent from a page of this console. Open the page again, and repeat it."
_RETRY_SECONDS = 60
_MOST_TRIES = 20
_TRIES_SECONDS = 900
_MENU = [(label, page) for label, path in NAVIGATION for page in PAGES if (page.method, page.path) == ("GET", path)]
PEER = "metaharvest.peer"
"""The key of a request's scope with the address of the other end, before X-Forwarded-For is applied."""


def console_application(harvester: Harvester, url: str) -> ASGIApp:
    """The application that answers at /console; `url` is the address at which the process listens."""
    public = harvester.settings.web.url or url
    parts = urlsplit(public)
    console = Console(
        harvester=harvester,
        url=public,
        root=parts.path.rstrip("/"),
        is_https=parts.scheme == "https",
        navigation=partial(_navigation, harvester.settings.pipeline.enabled),
        may_open=_may_open,
        limit=RateLimit(_MOST_TRIES, _TRIES_SECONDS),
        later=ThreadPoolExecutor(1, "console"),
        openid=_openid(harvester, public),
    )

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        response = await _answer(console, Request(scope, receive))
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)

    return application


def found_page(pages: Sequence[Page], method: str, path: str) -> tuple[Page | None, Mapping[str, str], Sequence[str]]:
    """The page of this method and raw path, the texts in the places of its names, and the methods that the path has.

    A page whose path is written out goes before one with a name at that place.
    """
    parts = path.split("/")
    matches = []
    for page in pages:
        wanted = page.path.split("/")
        if len(wanted) == len(parts) and all(_fits(*each) for each in zip(wanted, parts, strict=True)):
            matches.append((page, wanted))
    matches.sort(key=lambda match: [part.startswith("{") for part in match[1]])
    methods = [page.method for page, _ in matches]
    for page, wanted in matches:
        if page.method == ("GET" if method == "HEAD" else method):
            names = zip(wanted, parts, strict=True)
            return page, {name[1:-1]: part_of(part) for name, part in names if name.startswith("{")}, methods
    return None, {}, methods


def _fits(wanted: str, part: str) -> bool:
    return bool(part) if wanted.startswith("{") else wanted == unquote(part)


def _openid(harvester: Harvester, public: str) -> OpenIdProvider | None:
    """The provider of OpenID Connect, if the settings name one. Raises SettingsError if it cannot be used."""
    web = harvester.settings.web
    if not web.oidc_issuer:
        return None
    if not web.oidc_client_id:
        raise SettingsError("oidc_client_id of [web] is missing: the provider of OpenID Connect needs it.")
    if find_spec("authlib") is None:
        raise SettingsError(
            "oidc_issuer of [web] is set, but the library authlib is not installed. "
            "Install it with `pip install 'metaharvest[oidc]'`."
        )
    if not is_safe(web.oidc_issuer):
        raise SettingsError("oidc_issuer of [web] has to begin with https: it decides who signs in.")
    return OpenIdProvider(harvester.settings, f"{public}/console/oidc/return")


def _navigation(has_pipeline: bool, visitor: Visitor) -> Sequence[tuple[str, str]]:
    if visitor.role is Role.PUBLIC:
        return []
    shown = [(label, page) for label, page in _MENU if has_pipeline or page.path not in OF_PIPELINE]
    return [(label, page.path) for label, page in shown if decide(page, visitor, None) is Decision.ALLOWED]


def _may_open(visitor: Visitor, method: str, path: str) -> bool:
    page, values, _ = found_page(PAGES, method, path)
    return page is not None and decide(page, visitor, values.get("site")) is Decision.ALLOWED


async def _answer(console: Console, request: Request) -> Response:
    raw = request.scope.get("raw_path") or request.url.path.encode()
    path = raw.partition(b"?")[0].decode("latin-1").removeprefix(console.root)
    page, values, methods = found_page(PAGES, request.method, path)
    cookies = Cookies(request.cookies, console.is_https)
    visit = Visit(
        console,
        page or Page(request.method, path, lambda visit: visit.not_found(_NOTHING), Role.PUBLIC),
        NOBODY,
        cookies,
        values,
        request.query_params,
        request.headers,
        address_of(request),
        peer=_peer(request),
        request_path=path + (f"?{request.url.query}" if request.url.query else ""),
    )
    form: Form | RefusedForm = Form()
    if request.method == "POST":
        try:
            form = await read_form(request, page.most_bytes if page else FORM_BYTES)
        except RefusedForm as refused:
            form = refused
    response = await run_in_threadpool(_in_thread, visit, page, methods, form)
    cookies.write_to(response)
    return response


def _in_thread(visit: Visit, page: Page | None, methods: Sequence[str], form: Form | RefusedForm) -> Response:
    """The answer to a visit; each error becomes a page with a sentence."""
    try:
        visit.visitor = _visitor(visit)
        if page is None and methods:
            response = visit.message(
                405, "This address cannot be opened in this way.", page=_page_above(visit.request_path)
            )
            response.headers["Allow"] = ", ".join(sorted({*methods, *(["HEAD"] if "GET" in methods else [])}))
            return response
        if page is None:
            return visit.not_found(_NOTHING)
        if isinstance(form, RefusedForm):
            return visit.message(form.status, form.sentence)
        if any("\0" in text for text in (*visit.path.values(), *visit.query.keys(), *visit.query.values())):
            return visit.not_found(_NOTHING)
        visit.form = form
        return _refused(visit) or page.answer(visit)
    except MetaharvestError as error:
        return _sentences(visit, error)
    except Exception:
        log.exception("A page of the console was not answered: an unexpected error")
        return _page_of(visit, 500, _FAILED)


def _visitor(visit: Visit) -> Visitor:
    """The person of the session, or the one whom a trusted server in front names."""
    web, harvester = visit.console.harvester.settings.web, visit.console.harvester
    named = visit.headers.get(web.trusted_header) if web.trusted_header else None
    if named and _is_in(visit.peer, web.trusted_networks):
        return replace(accounts.visitor_of_address(harvester, named), by_proxy=True)
    token = visit.cookies.session
    return accounts.visitor_of_session(harvester, token) if token else NOBODY


def _is_in(address: str, networks: Sequence[Network]) -> bool:
    try:
        return any(ip_address(address) in network for network in networks)
    except ValueError:
        return False


def _refused(visit: Visit) -> Response | None:
    """The answer to a visitor who may not open the page, or to a form that another server sent; None for all others."""
    page, visitor = visit.page, visit.visitor
    if page.method == "POST":
        is_own = is_own_origin(visit.headers, visit.console.url)
        if not is_own or not is_token_right(visit.cookies.secret(is_new=False), visit.form.text(CSRF_FIELD)):
            return visit.message(403, _STALE, page=_page_of_form(visit))
    client = f"{client_of(visit.client)} {page.path}"
    if page.tries and (seconds := visit.console.limit.seconds_to_wait(client, page.tries)):
        response = visit.message(
            429, f"Too many requests came from here. Please try again in {counted(ceil(seconds / 60), 'minute')}."
        )
        response.headers["Retry-After"] = str(seconds)
        return response
    name = visit.path.get("site") if page.of_site else None
    decision = decide(page, visitor, name)
    if decision is Decision.SIGN_IN:
        if "hx-request" in visit.headers or page.method == "POST":
            ended = "You are not signed in, or your session has ended. Please sign in again."
            return visit.message(403, ended, page=_page_of_form(visit))
        return visit.redirect("/console/login", next=visit.request_path)
    if decision is Decision.HIDDEN:
        return _no_site(visit)
    if decision is Decision.FORBIDDEN:
        needed = page.least if page.least > Role.CONTACT else Role.STEWARD
        yours = f"This needs the role {needed.word}, and your role is {visitor.role.word}."
        return visit.message(403, f"{yours} An operator can change it.")
    if name is None or page.least is Role.PUBLIC:
        return None
    with visit.console.harvester.reading() as session:
        number = numbers_of(session, [name]).get(name)
    if number is None:
        return _no_site(visit)
    visit.named_site = NamedSite(number, name)
    return None


def _no_site(visit: Visit) -> Response:
    """The answer if no site of the visitor has this name, with a link to the sites that they see."""
    if visit.visitor.role > Role.CONTACT:
        return visit.message(404, _OTHER_NAME, page="/console/sites", words="All sites")
    return visit.message(404, _NO_SITE, page="/console/my-sites", words="My sites")


def _page_of_form(visit: Visit) -> str:
    """The path of the page from which the browser sent a form; empty if the request names no page of this console."""
    try:
        page = urlsplit(visit.headers.get("referer", ""))
    except ValueError:
        return ""
    if page.netloc not in (visit.headers.get("host"), urlsplit(visit.console.url).netloc):
        return ""
    return _page_above(local_path(page.path.removeprefix(visit.console.root)))


def _page_above(path: str) -> str:
    """The path without its query, or the nearest folder of it, that can be opened."""
    path = path.partition("?")[0]
    while True:
        page, names, _ = found_page(PAGES, "GET", path)
        # The address of a form, such as /console/sites/several, is not that of a site with this name.
        is_form = bool(names) and any(each.path == path for each in PAGES)
        if page is not None and not is_form:
            return path
        path = path.rpartition("/")[0] or "/console/"


def _sentences(visit: Visit, error: MetaharvestError) -> Response:
    """The page for an error that a person can cause."""
    if isinstance(error, DatabaseError):
        log.error("A page of the console was not answered: %s", error)
        response = _page_of(visit, 503, "The database cannot be used at this moment. Please try again.")
        response.headers["Retry-After"] = str(_RETRY_SECONDS)
        return response
    status = 422
    if isinstance(error, NotFound | UnknownDocument):
        status = 404
    elif isinstance(error, LockHeld | RunLost):
        status = 409
    form_page = _page_of_form(visit) if visit.page.method == "POST" else ""
    return _page_of(visit, status, *(error.in_form.splitlines() or error.sentences), page=form_page)


def _page_of(visit: Visit, status: int, *sentences: str, page: str = "") -> Response:
    try:
        return visit.message(status, *sentences, page=page)
    except Exception:
        log.exception("A page of the console was not answered: the page of an error cannot be made")
        return PlainTextResponse(f"{_FAILED}\n", status)


def _peer(request: Request) -> str:
    peer = request.scope.get(PEER) or request.scope.get("client")
    return str(peer[0]) if peer else ""
