"""`metaharvest coordinate`: a tick of the coordinator, for cron."""

from __future__ import annotations

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.json_lines import print_note
from metaharvest.cli.printing import print_json
from metaharvest.errors import MetaharvestError
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import counted


@click.command("coordinate")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def command(invocation: Invocation, as_json: bool) -> None:
    """Open the run of the day if it is time, make a job for each site, end a run whose sites are done.

    Workers do the work. Start it every minute, by cron, a timer or `celery beat`, on as many machines as you like: what
    one has done the others leave alone. The settings are in the section [workers].

    Example: metaharvest coordinate
    """
    from metaharvest.services import jobs
    from metaharvest.workers.broker import application, wake

    harvester = invocation.harvester
    app = application(harvester)
    done = jobs.coordinate(harvester)
    if done.ready:
        try:
            wake(app)
        except MetaharvestError as error:
            print_note(str(error))
    if as_json:
        print_json(as_mapping(done))
    elif done.opened and done.run_id:
        click.echo(f"Run {done.run_id} begins: {counted(done.new_jobs, 'job')} for workers.")
    elif done.new_jobs:
        click.echo(f"{counted(done.new_jobs, 'new job')} for run {done.run_id}.")
