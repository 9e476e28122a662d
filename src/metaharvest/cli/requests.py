"""`metaharvest requests`: what people have asked the harvester to do; `print_asked` is for the commands that ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import ROWS, Invocation, called_alone, usage_errors
from metaharvest.cli.printing import print_json, print_line, stamp
from metaharvest.cli.tables import Column, print_table, table_options
from metaharvest.queries.json_keys import as_mapping

if TYPE_CHECKING:
    from metaharvest.services.requests import Asked


@click.group("requests", invoke_without_command=True)
@called_alone
@click.option("--open", "only_open", is_flag=True, help="Only requests that wait, or that a run has taken.")
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@click.option("--after", type=click.IntRange(min=1), metavar="ID", help="The next page: requests before this one.")
@table_options
def command(invocation: Invocation, only_open: bool, limit: int, after: int | None, as_json: bool) -> None:
    """List what people have asked the harvester to do, the newest first.

    `sites harvest`, `sites skip` and `runs stop` ask; a run, or the daemon, takes it.

    Example: metaharvest requests --open
    """
    from metaharvest.model.requests import RequestState
    from metaharvest.queries.requests import RequestFilter
    from metaharvest.services import requests

    states = (RequestState.WAITING, RequestState.TAKEN) if only_open else ()
    found = requests.listed(invocation.harvester, RequestFilter(states=states), limit, after)
    if as_json:
        print_json([as_mapping(each) for each in found])
        return
    if not found:
        click.echo("There is no such request." if only_open or after else "There are no requests yet.")
        return
    rows = [
        [
            *(each.request_id, each.kind, each.site or "whole run", each.scope, each.state, each.run_id),
            *(each.asked_by, stamp(each.asked_at), each.sentence),
        ]
        for each in found
    ]
    end = Column("result", 7, wrap=True)
    print_table(["request", "kind", "site", Column("scope", 6), "state", Column("run", 5), "by", "at", end], rows)


@command.command("cancel")
@click.argument("request_id", type=click.IntRange(min=1))
@click.pass_obj
def cancel(invocation: Invocation, request_id: int) -> None:
    """Take a request back, as long as no run has taken it."""
    from metaharvest.services import requests

    with usage_errors():
        requests.cancel(invocation.harvester, request_id)
    click.echo(f"Request {request_id} is taken back.")


def print_asked(asked: Asked, as_json: bool = False) -> None:
    """Print the request, and what it waits for."""
    request = asked.request
    if as_json:
        print_json({**as_mapping(request), "is_new": asked.is_new, "waits_for": asked.waits_for})
        return
    known = "" if asked.is_new else f", which {request.asked_by or 'somebody'} has made already"
    print_line(f"Request {request.request_id}{known}: {_WORDS[request.kind].format(request.site or 'the run')}.")
    print_line(asked.waits_for)


_WORDS = {"harvest": "harvest {}", "stop": "stop {}", "skip": "leave {} out of the next run"}
