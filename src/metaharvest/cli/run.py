"""`metaharvest run`: one run, for cron; with `--dry-run`, what it would do."""

from __future__ import annotations

import gc
from contextlib import ExitStack, suppress
from functools import cache
from typing import Any

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, Invocation, day
from metaharvest.cli.json_lines import print_note
from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.runs import print_run
from metaharvest.cli.signals import stop_on_signal
from metaharvest.model import OutcomeKind
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import clean, counted


@click.command("run")
@click.option("--site", "names", metavar="NAME", multiple=True, help="Only this site, due or not. May be repeated.")
@click.option("--force", is_flag=True, help="All enabled sites, due or not.")
@click.option("--full", is_flag=True, help="Repositories list all that they have, not only what has changed.")
@click.option("--requested", is_flag=True, help="Only sites that people asked for; nothing if there are none.")
@click.option("--dry-run", is_flag=True, help="Rehearse: fetch and check everything, write nothing anywhere.")
@click.option("--date", "day", metavar="YYYY-MM-DD", callback=day, help="Take this day for today.")
@click.option("--force-date", is_flag=True, help="Take a --date that is more than 7 days from the clock.")
@AS_JSON
@click.option("--strict", is_flag=True, help="Exit with 3 for document errors and deferrals too.")
def command(
    invocation: Invocation,
    /,
    requested: bool,
    dry_run: bool,
    force_date: bool,
    as_json: bool,
    strict: bool,
    **options: Any,
) -> int:
    """Harvest the sites that are due: one run, for cron.

    Exit codes: 0 done (documents with errors are the sites' affair); 1 an unexpected failure; 2 settings or usage;
    3 done, but a site or the target failed as a whole, or a deadline cut the run short, and the administrator's mail
    says so; 4 done, but a report could not be handed over to the mail server; 69 the database cannot be used;
    75 another run is under way; 130 stopped by a signal.
    """
    # The imports make 170,000 objects, which stay: the garbage collector would look at them for 0.1 s.
    gc.disable()
    from metaharvest.cli.progress import shown_progress
    from metaharvest.services import runs

    _freeze_once()
    gc.enable()
    harvester = invocation.harvester
    if requested and dry_run:
        raise click.UsageError("--requested takes requests, and --dry-run changes nothing: use one of the two.")
    request = runs.request(harvester, requested=requested, any_day=dry_run or force_date, **options)
    if requested and not services.requests.is_harvest_waiting(harvester):
        # Cron may ask each minute: it mails what a command prints.
        if as_json:
            print_json(None)
        return 0
    if dry_run:
        return _rehearse(harvester, request, as_json, strict)
    with stop_on_signal() as stop:
        done = runs.harvest(harvester, request, progress=shown_progress(), stop=stop, strict=strict, note=print_note)
        # The run has ended by now: a stdout that cannot be written is an error of the command.
        if as_json:
            result = done.result
            more = {"undelivered": result.undelivered, "cut_short": result.cut_short or None}
            print_json({**as_mapping(done.record), **more})
        else:
            print_run(done.record)
            for sentence in filter(None, (runs.went_nowhere(harvester, done.record), _undelivered(done.result))):
                click.echo(clean(sentence))
    return done.exit_code


@cache
def _freeze_once() -> None:
    """Leave what the process holds now out of collections.

    A second time, in a process that makes many runs, would keep what the earlier runs left.
    """
    gc.freeze()


def harvest_now(harvester: services.harvester.Harvester, *, requested: bool = False) -> None:
    """One run of the due sites, as cron would start it, or of the requested ones, with one line about it on stderr.

    Raises KeyboardInterrupt if a signal stopped the run, after the work in progress is finished.
    """
    from metaharvest.cli.progress import shown_progress

    with stop_on_signal() as stop:
        request = services.runs.request(harvester, requested=requested)
        done = services.runs.harvest(harvester, request, progress=shown_progress(), stop=stop, note=print_note)
        _print_event(harvester, done)
    if stop.by_signal:
        raise KeyboardInterrupt


def _print_event(harvester: services.harvester.Harvester, done: services.runs.FinishedRun) -> None:
    """Print one line for a run: the results of its sites, and the exit code of the same `metaharvest run`."""
    from metaharvest.reports.phrasing import run_story, statuses_of_sites

    record = done.record
    errors = record.totals.errors
    counts = {kind: sum(site.number(kind) for site in record.sites) for kind in OutcomeKind}
    parts = [record.status, run_story(statuses_of_sites((site.site_id, site.status) for site in record.sites), counts)]
    parts += [counted(errors, "error")] if errors else []
    sentences = (*record.targets_away, services.runs.went_nowhere(harvester, record), _undelivered(done.result))
    more = " ".join(filter(None, sentences))
    story = f"Run {record.run_id} ({record.harvest_date}): {'; '.join(parts)}; exit code {done.exit_code}. {more}"
    with suppress(OSError):
        print_line(story, err=True)


def _undelivered(result: services.runs.RunResult) -> str:
    if not result.undelivered:
        return ""
    cases = counted(result.undelivered, "case")
    return f"Reports could not be handed over in {cases}: `metaharvest reports --undelivered` says why."


def _rehearse(
    harvester: services.harvester.Harvester, request: services.runs.RunRequest, as_json: bool, strict: bool
) -> int:
    from metaharvest.cli.progress import shown_progress

    with ExitStack() as stack:
        with shown_progress() as progress:
            done = stack.enter_context(harvester.dry_run(request, progress))
        if as_json:
            print_json({**as_mapping(done.record), "dry_run": True})
        else:
            click.echo(clean(services.reports.admin_report(done.harvester, done.result.run_id).text))
            click.echo("This was a rehearsal: nothing was written, no mail was sent.")
    return services.runs.exit_code_of_dry_run(done, strict=strict)
