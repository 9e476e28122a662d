"""Serves the web application until a signal ends it."""

from __future__ import annotations

import gc
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from metaharvest.catalogue import publication
from metaharvest.catalogue.change_feed import COMMIT_LAG
from metaharvest.config.secret_references import is_reference, resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.errors import MetaharvestError, SettingsError
from metaharvest.model import Network
from metaharvest.model.kinds import Role
from metaharvest.model.values import frozen
from metaharvest.queries.public_sites import former_numbers_of, numbers_of, unknown_numbers
from metaharvest.services import accounts
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line
from metaharvest.web.api.dispatch import api_application
from metaharvest.web.application import application
from metaharvest.web.console.dispatch import PEER, console_application
from metaharvest.web.pages.addresses import page_path
from metaharvest.web.pages.routes import Pages
from metaharvest.web.provider.identifiers import domain_of
from metaharvest.web.provider.provider import Provider
from metaharvest.web.provider.view import Public
from metaharvest.web.readers import readers_of

_MOST_CONNECTIONS = 800
"""Many systems allow a process 1,024 open files. Requests on further connections get a 503."""

_IDLE_SECONDS = 15
"""The time that a connection stays open after an answer."""

_GRACE_SECONDS = 30
"""The time for answers under way after the signal."""


@frozen
class Served:
    """The addresses of the process and of the provider, and notes for the operator.

    `console_url` is the address of the console, empty if it is not served; `first_link` signs the first operator in.
    """

    url: str
    base_url: str
    notes: Sequence[str]
    console_url: str = ""
    first_link: str = ""


def serve(
    harvester: Harvester, host: str, port: int, report: Callable[[Served], None], *, with_console: bool = False
) -> None:
    """Serve until SIGTERM or SIGINT; port 0: any free one. `report` is called as soon as requests are accepted.

    Without the console the process only reads the database.

    Raises SettingsError, DatabaseError, and MetaharvestError if the address cannot be used.
    """
    try:
        listening = listen(host, port)
    except OSError as error:
        # Python adds the address to the words of the system.
        reason = one_line(str(error.strerror or error)).partition(" (while")[0]
        raise MetaharvestError(f"The address {host}, port {port}, cannot be used: {reason}.") from error
    with listening:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        public, notes = describe(harvester, url)
        provider = Provider(harvester, public, harvester.settings.web.lists_at_once)
        readers = readers_of(harvester, provider)
        console = console_application(harvester, url) if with_console else None
        api = api_application(harvester, readers, least=Role.OPERATOR if with_console else Role.PUBLIC)
        pages = Pages(harvester, provider, readers)
        config = uvicorn.Config(
            _with_peer(application(provider, pages, console, api), harvester.settings.web.proxies),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        if not harvester.settings.web.url and host in ("0.0.0.0", "::"):
            notes = [*notes, f"url of [web] is not set: harvesters read {public.base_url} as the base URL."]
        server = uvicorn.Server(config)
        # What is there now stays until the end: the garbage collector then leaves it alone, and pages take 6% less.
        gc.collect()
        gc.freeze()
        with _ended_by_signals(server):
            report(_served(harvester, url, public.base_url, notes, with_console))
            server.run(sockets=[listening])


@contextmanager
def _ended_by_signals(server: uvicorn.Server) -> Iterator[None]:
    """The server ends at SIGTERM or SIGINT, also at one that comes before it runs. Other threads get no signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    former = {each: signal.signal(each, server.handle_exit) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens at this address; port 0: any free one. Raises OSError.

    asyncio disables Nagle's algorithm only for sockets that name their protocol, and this one has protocol 0. With the
    algorithm the body of each answer waits 40 ms: the client delays its acknowledgement of the head.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=2048)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    return listening


def _with_peer(answering: ASGIApp, proxies: Sequence[Network]) -> ASGIApp:
    """The application with the clients that these servers in front name; the scope keeps the other end itself."""
    forwarded: Any = answering
    if proxies:
        forwarded = ProxyHeadersMiddleware(forwarded, [str(each) for each in proxies])

    async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
        await forwarded({**scope, PEER: scope.get("client")}, receive, send)

    return with_peer


def _served(harvester: Harvester, url: str, base_url: str, notes: Sequence[str], with_console: bool) -> Served:
    if not with_console:
        return Served(url, base_url, notes)
    token = accounts.first_link(harvester)
    # The person at this machine may not reach the public address yet.
    first_link = f"{url}/console/link/{token}" if token else ""
    return Served(url, base_url, notes, f"{harvester.settings.web.url or url}/console/", first_link)


def describe(harvester: Harvester, url: str) -> tuple[Public, Sequence[str]]:
    """What a provider in a process at this address says of itself; and notes for the operator. Raises SettingsError."""
    settings, web = harvester.settings, harvester.settings.web
    administrators = _addresses(settings)
    root_url = web.url or url
    base_url = f"{root_url}/oai"
    key, notes = _key(settings)
    with harvester.reading() as session:
        former = {name: former_numbers_of(session, [name]) for name in web.hidden}
        known = {*numbers_of(session, web.hidden), *publication.origins(session)} if web.hidden else set()
        unknown = unknown_numbers(session) if web.hidden else frozenset()
    notes += [
        f"Nothing is hidden by {name} in hidden of [web]: no site and no origin has this name."
        for name, numbers in former.items()
        if name not in known and not numbers
    ]
    return (
        Public(
            name=settings.harvester.name,
            base_url=base_url,
            domain=web.domain or domain_of(base_url),
            administrators=administrators,
            key=key,
            lag=COMMIT_LAG + timedelta(seconds=web.replica_lag),
            page_url=lambda document_id: f"{root_url}/{page_path(document_id)}",
            page_records=web.page_records,
            page_bytes=web.page_bytes,
            friends=web.friends,
            rights=web.rights,
            branding=web.branding,
            hidden=web.hidden,
            hidden_sites=set(unknown).union(*former.values()),
        ),
        notes,
    )


def _addresses(settings: Settings) -> Sequence[str]:
    """The addresses of administrators that the schema accepts. Raises SettingsError if there are none."""
    everyone = settings.harvester.administrators or (settings.mail.sender,)
    if found := [each for each in everyone if "." in each.rpartition("@")[2][1:-1]]:
        return found
    raise SettingsError(
        f"The provider needs an address whose host has a dot, and {', '.join(everyone)} has none: name one in "
        "administrators of [harvester]."
    )


def _key(settings: Settings) -> tuple[bytes, list[str]]:
    """The key of tokens; one for this process alone if the settings have none."""
    key = settings.web.token_key
    if key and is_reference(key):
        key = resolve_secret(key, settings.folder)
    if key:
        return key.encode(), []
    note = (
        "token_key of [web] is not set: harvesters that are in the middle of a list when this process ends have to "
        f'begin it again. A key for it: token_key = "{secrets.token_urlsafe(32)}"'
    )
    return secrets.token_bytes(32), [note]
