"""`metaharvest worker`, `workers`, `coordinate` and `jobs`: the workers of many machines."""

from __future__ import annotations

import queue
import signal
from collections.abc import Sequence

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import AS_JSON, NUMBER, ROWS, Invocation
from metaharvest.cli.json_lines import print_note
from metaharvest.cli.printing import Column, print_json, print_line, print_records, print_table, rows_of, table_options
from metaharvest.cli.signals import handled
from metaharvest.errors import MetaharvestError
from metaharvest.model.actions import todo
from metaharvest.model.jobs import OPEN, JobState
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import counted


@click.command("worker")
@click.option("--name", default="", metavar="NAME", help="A unique name. Default: the machine, and the process number.")
def worker_command(invocation: Invocation, name: str) -> None:
    """Work on jobs until SIGTERM or Ctrl-C, beside workers on other machines.

    The first signal ends the work at its next checkpoint; another worker goes on with it. Start one worker for each
    core of a machine, under a supervisor. `metaharvest coordinate` makes the jobs.

    Example: metaharvest worker --name alder-1
    """
    ending = queue.SimpleQueue[None]()
    with handled(lambda _number, _frame: ending.put(None), signal.SIGTERM, signal.SIGINT):
        from metaharvest.workers.worker import work

        work(invocation.harvester, name, ending)


@click.command("coordinate")
@AS_JSON
def coordinate_command(invocation: Invocation, as_json: bool) -> None:
    """Open the run of the day if it is time, make a job for each site, end a run whose sites are done.

    Workers do the work. Start it every minute, by cron, a timer or `celery beat`, on as many machines as you like: what
    one has done the others leave alone. The settings are in the section [workers].

    Example: metaharvest coordinate
    """
    from metaharvest.workers.broker import application, wake

    harvester = invocation.harvester
    app = application(harvester)
    done = services.jobs.coordinate(harvester)
    if done.ready:
        try:
            wake(app)
        except MetaharvestError as error:
            print_note(str(error))
    if as_json:
        print_json(done)
    elif done.opened and done.run_id:
        click.echo(f"Run {done.run_id} begins: {counted(done.new_jobs, 'job')} for workers.")
    elif done.new_jobs:
        click.echo(f"{counted(done.new_jobs, 'new job')} for run {done.run_id}.")


@click.command("workers")
@table_options
def workers_command(invocation: Invocation, as_json: bool) -> None:
    """List the workers: where they are, since when, what they do, and when they were seen.

    Example: metaharvest workers
    """
    found = invocation.harvester.read(queries.jobs.workers)
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("No worker is there. `metaharvest worker` starts one.")
        return
    keys = "name host pid began_at seen_at kind jobs subject"
    rows = rows_of(found, keys, kind=lambda each: "silent" if each.is_silent else each.kind or "idle")
    headings = ["worker", "machine", "process", "since (UTC)", "seen (UTC)", "work", "jobs"]
    print_table([*headings, Column("on", 7, wrap=True)], rows)
    for each in found:
        if each.is_silent:
            number = counted(each.jobs, "job")
            next_worker = f" A minute after that time, the next free worker goes on with {number}." if each.jobs else ""
            print_note(
                f"{each.name} was last seen at {each.seen_at:%H:%M:%S} (UTC), and may have died: look at process "
                f"{each.pid} on {each.host}.{next_worker}"
            )


# -- jobs

_JOB = click.IntRange(min=1)


@click.group("jobs", invoke_without_command=True)
@click.option("--open", "only_open", is_flag=True, help="Only jobs that wait, or that a worker has.")
@click.option("--state", type=click.Choice([state.value for state in JobState]), help="Only jobs in this state.")
@click.option("--run", "run_id", type=NUMBER, metavar="RUN_ID", help="Only jobs of this run.")
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@click.option("--after", type=NUMBER, metavar="ID", help="The next page: jobs before this one.")
@table_options
def jobs_command(
    invocation: Invocation,
    only_open: bool,
    state: str | None,
    run_id: int | None,
    limit: int,
    after: int | None,
    as_json: bool,
) -> None:
    """List the jobs of workers, the newest first.

    Example: metaharvest jobs --open
    """
    if only_open and state and state not in OPEN:
        raise click.UsageError(f"A job in the state {state} is not open: leave out --open or --state.")
    states = [JobState(state)] if state else [JobState(each) for each in OPEN] if only_open else []
    found = invocation.harvester.read(queries.jobs.jobs, queries.jobs.JobFilter(states, run_id=run_id), limit, after)
    none = f"There are no jobs yet: {todo('workers.coordinate')} makes them."
    print_jobs(found, as_json, "No job matches these options." if states or run_id or after else none)


@jobs_command.command("show")
@click.argument("job_id", type=_JOB)
@AS_JSON
def show_job(invocation: Invocation, job_id: int, as_json: bool) -> None:
    """Show a job with the steps of its life.

    Example: metaharvest jobs show 12
    """
    job, events = services.jobs.shown(invocation.harvester, job_id)
    if as_json:
        print_json({**as_mapping(job), "events": events})
        return
    print_line(f"Job {job.job_id}: {job.kind} of {job.subject or 'everything'}; {job.state}")
    used = f"{job.seconds:.1f} s, {job.cpu_seconds:.1f} s of the processor, {job.memory_bytes / 1e6:.0f} MB"
    numbers = f"{counted(job.slices, 'earlier slice')}; {counted(job.attempts, 'attempt')}"
    print_line(f"  priority {job.priority}; {numbers}; {used}")
    if job.sentence:
        print_line(f"  {job.sentence}")
    if events:
        rows = [[each.claim, each.step, f"{each.at:%Y-%m-%d %H:%M:%S}", each.worker, each.sentence] for each in events]
        print_table(["claim", "step", "at (UTC)", "worker", Column("note", 7, wrap=True)], rows)


@jobs_command.command("cancel")
@click.argument("job_id", type=_JOB)
def cancel_job(invocation: Invocation, job_id: int) -> None:
    """Cancel a job. A worker that has it ends at its next checkpoint; the next run goes on with the site.

    Example: metaharvest jobs cancel 12
    """
    cancelled = services.jobs.cancel(invocation.harvester, job_id)
    is_taken = cancelled.state == JobState.TAKEN.value
    _print_changed(cancelled, "; its worker ends at the next checkpoint" if is_taken else "")


@jobs_command.command("retry")
@click.argument("job_id", type=_JOB)
def retry_job(invocation: Invocation, job_id: int) -> None:
    """Let a waiting job be tried now, with all attempts again.

    Example: metaharvest jobs retry 12
    """
    _print_changed(services.jobs.retry(invocation.harvester, job_id))


@jobs_command.command("priority")
@click.argument("job_id", type=_JOB)
@click.argument("number", type=int)
def set_priority(invocation: Invocation, job_id: int, number: int) -> None:
    """Change the priority of a job: the job with the highest number comes first.

    Example: metaharvest jobs priority 12 300
    """
    _print_changed(services.jobs.set_priority(invocation.harvester, job_id, number))


def print_jobs(found: Sequence[queries.jobs.JobRecord], as_json: bool = False, none: str = "") -> None:
    """Print jobs as JSON, or as a table; `none` if there are none."""
    keys = "job_id kind subject run_id state priority worker slices seconds sentence"
    rows = rows_of(found, keys, seconds=lambda each: f"{each.seconds:.0f}")
    heads = ["job", "kind", "subject", "run", "state", "priority", "worker", "slices", "seconds"]
    print_records(as_json, found, [*heads, Column("note", 7, wrap=True)], rows, none)


def _print_changed(job: queries.jobs.JobRecord, more: str = "") -> None:
    print_line(f"Job {job.job_id} ({job.subject}): {job.state}, priority {job.priority}{more}.")
