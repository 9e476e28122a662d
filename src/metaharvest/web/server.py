"""Serves the public web application until a signal ends it."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import uvicorn

from metaharvest.catalogue import publication
from metaharvest.catalogue.change_feed import COMMIT_LAG
from metaharvest.config.secret_references import is_reference, resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.errors import MetaharvestError, SettingsError
from metaharvest.queries.public_sites import former_numbers_of, numbers_of, unknown_numbers
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line
from metaharvest.web.application import application
from metaharvest.web.pages.addresses import page_path
from metaharvest.web.pages.routes import Pages
from metaharvest.web.provider.identifiers import domain_of
from metaharvest.web.provider.provider import Provider
from metaharvest.web.provider.view import Public

_MOST_CONNECTIONS = 800
"""Many systems allow a process 1,024 open files. Requests on further connections get a 503."""

_IDLE_SECONDS = 15
"""The time that a connection stays open after an answer."""

_GRACE_SECONDS = 30
"""The time for answers under way after the signal."""


@dataclass(frozen=True, slots=True)
class Served:
    """The addresses of the process and of the provider, and notes for the operator."""

    url: str
    base_url: str
    notes: Sequence[str]


def serve(harvester: Harvester, host: str, port: int, report: Callable[[Served], None]) -> None:
    """Serve until SIGTERM or SIGINT; port 0: any free one. `report` is called as soon as requests are accepted.

    Raises SettingsError, DatabaseError, and MetaharvestError if the address cannot be used.
    """
    try:
        listening = socket.create_server((host, port), family=_family(host), backlog=2048)
    except OSError as error:
        # Python adds the address to the words of the system.
        reason = one_line(str(error.strerror or error)).partition(" (while")[0]
        raise MetaharvestError(f"The address {host}, port {port}, cannot be used: {reason}.") from error
    with listening:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        public, notes = describe(harvester, url)
        provider = Provider(harvester, public, harvester.settings.web.lists_at_once)
        config = uvicorn.Config(
            application(provider, Pages(harvester, provider)),
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        if not harvester.settings.web.url and host in ("0.0.0.0", "::"):
            notes = [*notes, f"url of [web] is not set: harvesters read {public.base_url} as the base URL."]
        report(Served(url, public.base_url, notes))
        # uvicorn raises the signal again after it has ended.
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


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


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
