"""`metaharvest serve --public`: publishes the harvested documents, in a process that never harvests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.json_lines import print_note
from metaharvest.errors import MetaharvestError

if TYPE_CHECKING:
    from metaharvest.web.server import Served


@click.command("serve")
@click.option("--public", is_flag=True, required=True, help="Serve everybody: OAI-PMH and landing pages.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free port.")
@click.pass_obj
def command(invocation: Invocation, public: bool, host: str, port: int) -> None:
    """Publish the documents of the embedded target until Ctrl-C: an OAI-PMH 2.0 provider, and landing pages.

    It only reads the database. It may run beside the harvest, on another machine, or with a login that may only read.
    Its settings are in the section [web].

    \b
    Example: metaharvest serve --public --port 8000
    """
    try:
        from metaharvest.web.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        raise MetaharvestError(
            f"The library {error.name} is not installed, which serve needs. "
            "Install it with `pip install 'metaharvest[web]'`."
        ) from error
    serve(invocation.harvester, host, port, _print_addresses)


def _print_addresses(served: Served) -> None:
    for note in served.notes:
        print_note(note)
    click.echo(f"The OAI-PMH provider is at {served.url}/oai. Ctrl-C ends it.")
    if served.base_url != f"{served.url}/oai":
        click.echo(f"Harvesters know it as {served.base_url}.")
