"""`metaharvest changes`: the change feed for the indexer of another program."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, ROWS, Invocation, usage_errors
from metaharvest.cli.printing import print_json
from metaharvest.cli.signals import stop_on_signal
from metaharvest.services.exit_codes import ExitCode
from metaharvest.text import counted

_SEQ = click.IntRange(0, 2**63 - 1)


@click.command("changes")
@click.option("--since", type=_SEQ, metavar="SEQ", help="The changes after this number. [default: 0, all documents]")
@click.option("--name", metavar="NAME", help="A reader whose position the database keeps. A new one begins with all.")
@click.option("--ack", type=_SEQ, metavar="SEQ", help="Set the position of the reader, and print nothing.")
@click.option("--limit", type=ROWS, default=1000, show_default=True, metavar="N", help="The most changes of a batch.")
@click.option("--run", "command_line", metavar="COMMAND", help="Run this command for each batch, with it on stdin.")
@click.option("--post", "url", metavar="URL", help="Send each batch to this address by POST (application/x-ndjson).")
@click.option("--not-during-sweep", is_flag=True, help="Stop before documents of a site whose list is under way.")
@AS_JSON
@click.pass_obj
def command(
    invocation: Invocation,
    since: int | None,
    name: str | None,
    ack: int | None,
    limit: int,
    command_line: str | None,
    url: str | None,
    not_during_sweep: bool,
    as_json: bool,
) -> int:
    """Give the changed documents to another program, a JSON object a line, in the order of the changes.

    Without --run and --post, the command prints one batch. With one of them, it delivers batch after batch until no
    change is left. The position of a reader (--name) moves when a batch was printed, when the command ended with the
    exit code 0, or when the address answered with 2xx. So each change comes at least once. A document that is no
    longer public counts as deleted.

    Exit codes: 0 done; 1 a batch was not taken; 2 settings or usage; 69 the database cannot be used; 130 stopped by a
    signal.

    \b
    Examples:
      metaharvest changes --since 0 --limit 100
      metaharvest changes --name portal --not-during-sweep
      metaharvest changes --name archive --run "cat >> changes.jsonl"
    """
    from metaharvest.services import change_hooks as hooks

    if since is not None and name is not None:
        raise click.UsageError("Give --since SEQ or --name NAME, not both.")
    if command_line and url:
        raise click.UsageError("Give --run or --post, not both.")
    if ack is not None and (name is None or command_line or url):
        raise click.UsageError("--ack needs --name NAME, and neither --run nor --post.")
    harvester = invocation.harvester
    with usage_errors(), stop_on_signal() as stop:
        if ack is not None and name is not None:
            hooks.confirm(harvester, name, ack)
            if as_json:
                _print_document([], hooks.Delivered(0, ack))
            return ExitCode.DONE
        after = hooks.position(harvester, name) if name is not None else since or 0
        delivers, printed = bool(command_line or url), list[str]()
        send = hooks.to_command(command_line) if command_line else hooks.to_address(url) if url else _print
        if as_json and not delivers:
            send = printed.append
        reader = name if delivers or not as_json else None
        wanted = hooks.Delivery(after, limit, reader, None if delivers else 1, not_during_sweep)
        done = hooks.deliver(harvester, send, wanted, stop.is_set)
        if as_json:
            _print_document(printed, done)
            if name is not None and printed:
                hooks.confirm(harvester, name, done.position)
            return ExitCode.INTERRUPTED if stop.is_set() else ExitCode.DONE
    if delivers:
        click.echo(f"{counted(done.changes, 'change')} delivered; the last one is {done.position}.")
    if done.waits_for is not None:
        click.echo(f"The next changes wait: the list of {done.waits_for} is being harvested.", err=True)
    return ExitCode.INTERRUPTED if stop.is_set() else ExitCode.DONE


def _print_document(batches: Sequence[str], done: services.change_hooks.Delivered) -> None:
    """Print the changes of these batches, and how far the delivery has come, as one JSON document."""
    changes = [json.loads(line) for batch in batches for line in batch.splitlines()]
    about = {"delivered_changes": done.changes, "position": done.position, "waiting_site": done.waits_for}
    print_json({"changes": changes, **about})
    sys.stdout.flush()


def _print(lines: str) -> None:
    """Print a batch; the output is flushed before the position of the reader moves."""
    sys.stdout.write(lines)
    sys.stdout.flush()
