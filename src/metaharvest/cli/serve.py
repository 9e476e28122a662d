"""`metaharvest serve`: the console, and the published documents, in a process that never harvests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.json_lines import print_note
from metaharvest.errors import library_errors

if TYPE_CHECKING:
    from metaharvest.services.harvester import Harvester
    from metaharvest.web.server import Served


@click.command("serve")
@click.option("--public", is_flag=True, help="Serve only the public pages: no console, and only reading.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free port.")
def command(invocation: Invocation, public: bool, host: str, port: int) -> None:
    """Serve the console, and publish the documents of the embedded target, until Ctrl-C.

    The console, at /console, has pages for stewards, operators and contacts of sites, who sign in. The public pages are
    an OAI-PMH 2.0 provider and landing pages. With --public there is no console: the process only reads the database.
    It may run beside the harvest, on another machine, or with a login that may only read.

    The settings are in the section [web].

    \b
    Examples:
      metaharvest serve
      metaharvest serve --public --port 8000
    """
    serve_until_signal(invocation.harvester, host, port, with_console=not public)


def serve_until_signal(harvester: Harvester, host: str, port: int, *, with_console: bool) -> None:
    """Serve, and print the addresses. Raises MetaharvestError."""
    require_libraries()
    from metaharvest.web.server import serve

    serve(harvester, host, port, _print_addresses, with_console=with_console)


def require_libraries() -> None:
    """Raises MetaharvestError if a library of serve is missing."""
    with library_errors("web", "serve needs", "python_multipart", "starlette", "uvicorn"):
        import metaharvest.web.server  # noqa: F401


def _print_addresses(served: Served) -> None:
    for note in served.notes:
        print_note(note)
    if served.console_url:
        click.echo(f"The console is at {served.console_url}.")
    if served.first_link:
        click.echo(f"There are no users yet. This link signs you in as the operator, once: {served.first_link}")
    click.echo(f"The OAI-PMH provider is at {served.url}/oai. Ctrl-C ends it.")
    if served.base_url != f"{served.url}/oai":
        click.echo(f"Harvesters know it as {served.base_url}.")
