"""`metaharvest workers`: the workers that are there."""

from __future__ import annotations

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.json_lines import print_note
from metaharvest.cli.printing import print_json, stamp
from metaharvest.cli.tables import Column, print_table, table_options
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import counted


@click.command("workers")
@table_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def command(invocation: Invocation, as_json: bool) -> None:
    """List the workers: where they are, since when, what they do, and when they were seen.

    Example: metaharvest workers
    """
    from metaharvest.services import jobs

    found = jobs.workers(invocation.harvester)
    if as_json:
        print_json([as_mapping(each) for each in found])
        return
    if not found:
        click.echo("No worker is there. `metaharvest worker` starts one.")
        return
    rows = [
        [
            each.name,
            each.host,
            each.pid,
            stamp(each.began_at),
            stamp(each.seen_at),
            "silent" if each.is_silent else each.kind or "idle",
            each.jobs,
            each.subject,
        ]
        for each in found
    ]
    print_table(["worker", "machine", "process", "since", "seen", "work", "jobs", Column("on", 7, wrap=True)], rows)
    for each in found:
        if each.is_silent:
            number = counted(each.jobs, "job")
            next_worker = f" A minute after that time, the next free worker goes on with {number}." if each.jobs else ""
            print_note(
                f"{each.name} was last seen at {each.seen_at:%H:%M:%S} (UTC), and may have died: look at process "
                f"{each.pid} on {each.host}.{next_worker}"
            )
