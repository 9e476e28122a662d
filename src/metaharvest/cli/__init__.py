"""The command line: wires the parts together, shows progress, prints. It holds no query and no harvesting logic.

The module of a command is imported when the command is used: `metaharvest --help` answers at once.
People read stdout, logs go to stderr, `--json` gives machines one JSON document, also where a command fails.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from metaharvest import __version__
from metaharvest.cli import json_lines
from metaharvest.cli.invocation import Invocation, alone, usage_errors
from metaharvest.cli.json_lines import print_failure
from metaharvest.cli.printing import print_json
from metaharvest.cli.signals import handled
from metaharvest.cli.thread_starts import limit_thread_starts
from metaharvest.config.secret_references import MaskingFormatter, masked
from metaharvest.errors import (
    DatabaseError,
    IndexUnavailable,
    LockHeld,
    MetaharvestError,
    NoIndex,
    RunLost,
    ScheduleError,
    SettingsError,
    TargetError,
)
from metaharvest.services.exit_codes import ExitCode, exit_code_of
from metaharvest.text import clean, shown_url

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.services.harvester import RunLimits

_STDERR = 2

_UNEXPECTED = "metaharvest met something that it did not expect"
STOPPED = "Stopped. What was under way is taken up by the next run."
_NOTHING_CHANGED = "Stopped. Nothing was changed."

_COMMANDS = {
    "demo": "Harvest the sample sites: needs no configuration.",
    "init": "Write a settings file, create or upgrade the database.",
    "sites": "Register sites and change the schedule.",
    "run": "Harvest the sites that are due: one run, for cron.",
    "check": "Rehearse: what would tomorrow's report say?",
    "list": "Make harvest lists, change, check and compare them.",
    "oai": "Look at OAI-PMH repositories, rehearse their harvest, find others.",
    "daemon": "Run again and again, on machines without cron.",
    "coordinate": "Let workers harvest: open the run of the day, make jobs, end the run.",
    "worker": "Work on jobs, beside workers on other machines.",
    "workers": "List the workers.",
    "jobs": "List the jobs of workers, show one, cancel one.",
    "pipeline": "Clean, find, read, compare and index the documents; show how far it is.",
    "changes": "Give the changed documents to another program, in order.",
    "works": "Show the outputs that are the same, and decide about pairs.",
    "log": "Read the log.",
    "documents": "Show how documents stand, over all sites; a document's history.",
    "search": "Find outputs by words: titles, authors, subjects, full texts.",
    "problems": "Count the open problems by rule, over all sites.",
    "runs": "List the runs, show one, stop the one under way.",
    "requests": "List the requests of people to the harvester.",
    "registrations": "Decide about the requests of people outside.",
    "decisions": "List who has changed what.",
    "figures": "Show the totals of all sites in a period.",
    "year": "Show how a year went: shares, repairs, silent sites.",
    "diff": "Show what changed between two runs.",
    "reports": "List, show, resend and deliver reports.",
    "contacts": "Remove the address of a person.",
    "export": "Write the journal into one workbook, all documents into dataset files.",
    "filter": "Try the filters of a site on documents.",
    "normalize": "Try the normalising of a site on documents.",
    "target": "Look into targets, check them, copy from one to another.",
    "serve": "Serve the console; publish the documents by OAI-PMH and on landing pages.",
    "users": "Add people to the console, list, change and remove them.",
    "keys": "Make, list and revoke keys of the API.",
    "database": "Copy everything into another database.",
    "doctor": "Report what is missing or overdue.",
    "completion": "Complete commands in your shell.",
}

_MODULES = {
    "list": "lists",
    **dict.fromkeys(("filter", "normalize"), "filters"),
    **dict.fromkeys(("worker", "coordinate", "workers", "jobs"), "workers"),
    **dict.fromkeys(("figures", "year"), "figures"),
    **dict.fromkeys(("log", "decisions"), "log"),
    **dict.fromkeys(("runs", "diff"), "runs"),
    **dict.fromkeys(("documents", "problems"), "documents"),
    **dict.fromkeys(("pipeline", "works", "search"), "pipeline"),
    **dict.fromkeys(("export", "changes"), "export"),
    **dict.fromkeys(("users", "keys"), "accounts"),
    **dict.fromkeys(("requests", "registrations"), "requests"),
    **dict.fromkeys(("init", "doctor", "database", "contacts", "completion"), "installation"),
}
"""Command -> its module, if it has another name. A module of several commands has `NAME_command` for each."""

_EXAMPLES = {
    "demo": "metaharvest demo",
    "init": "metaharvest init",
    "sites": "metaharvest sites list",
    "sites add": "metaharvest sites add Alder --list-url https://alder.example.org/list.xml --contact im@example.org",
    "sites list": "metaharvest sites list --json",
    "sites show": 'metaharvest sites show "Alder Creek"',
    "sites edit": 'metaharvest sites edit "Alder Creek" --every 2 --unit weeks',
    "sites enable": 'metaharvest sites enable "Alder Creek"',
    "sites disable": 'metaharvest sites disable "Alder Creek"',
    "sites harvest": 'metaharvest sites harvest "Alder Creek"',
    "sites skip": 'metaharvest sites skip "Alder Creek"',
    "sites remove": 'metaharvest sites remove "Alder Creek"',
    "sites import-metacat": "metaharvest sites import-metacat --csv harvest_site_schedule.csv --dry-run",
    "sites confirm": 'metaharvest sites confirm "Alder Creek"',
    "run": 'metaharvest run --site "Alder Creek" --dry-run',
    "check": "metaharvest check https://alder.example.org/list.xml",
    "runs": "metaharvest runs --limit 7",
    "runs show": "metaharvest runs show 12",
    "runs now": "metaharvest runs now",
    "runs stop": 'metaharvest runs stop --site "Alder Creek"',
    "runs remove": "metaharvest runs remove 12",
    "requests cancel": "metaharvest requests cancel 3",
    "registrations show": "metaharvest registrations show 3",
    "registrations accept": "metaharvest registrations accept 3",
    "registrations refuse": 'metaharvest registrations refuse 3 --reason "The site is registered already."',
    "registrations mail": "metaharvest registrations mail 3",
    "reports": "metaharvest reports --undelivered",
    "reports show": "metaharvest reports show 12",
    "reports deliver": "metaharvest reports deliver",
    "target": "metaharvest target list",
    "target list": "metaharvest target list --json",
    "target show": "metaharvest target show knb-lter-gce.109",
    "target get": "metaharvest target get knb-lter-gce.109.6 -o document.xml",
    "target check": "metaharvest target check --json",
    "target copy": "metaharvest target copy embedded target --dry-run",
    "target rebuild": "metaharvest target rebuild",
    "pipeline run": "metaharvest pipeline run --stage cleaning",
    "pipeline failures": "metaharvest pipeline failures --stage full-text",
    "pipeline rebuild-index": "metaharvest pipeline rebuild-index",
    "pipeline retry": "metaharvest pipeline retry full-text",
    "works": "metaharvest works look",
    "database": "metaharvest database copy --to sqlite:///copy.db",
    "database repair-dates": "metaharvest database repair-dates",
    "doctor": "metaharvest doctor --send-test-mail",
}
"""An example for the help of each command that has none in its own text, by its words."""

_KINDS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str], ...] = (
    (click.FileError, "file"),
    (click.ClickException, "usage"),
    ((click.Abort, KeyboardInterrupt), "interrupted"),
    (SettingsError, "settings"),
    (ScheduleError, "schedule"),
    (LockHeld, "locked"),
    ((DatabaseError, RunLost), "database"),
    (TargetError, "target"),
    ((NoIndex, IndexUnavailable), "index"),
    (MetaharvestError, "request"),
    (OSError, "file"),
)
"""The kinds of errors in JSON: the first match counts."""

_WITH_REQUEST_ERRORS = frozenset({"contacts forget", "export dataset", "reports drop"})
"""Commands whose RequestErrors have the kind `request` in JSON: only a major version may change it (docs/json.md)."""

_OBJECTS_BEFORE_COLLECTION = 30_000
"""The number of new objects after which the garbage collector looks for cycles. Few cycles are made, and with Python's
own number of 700 the collector takes a tenth of the time. Sessions of SQLAlchemy are cycles: 750 of them, which are
150,000 objects, take 10 MB."""

_M_ARENA_MAX = -8


class _LazyGroup(click.Group):
    """Commands by name; a command's module is imported when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return _command(name) if name in _COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@cache
def _command(name: str) -> click.Command:
    module = importlib.import_module(f"metaharvest.cli.{_MODULES.get(name, name)}")
    command = getattr(module, f"{name}_command", None) or module.command
    assert isinstance(command, click.Command)
    _prepare(command, name)
    return command


def _prepare(command: click.Command, words: str) -> None:
    """Prepare the command with these words, and its own commands.

    Each gets the Invocation as its first argument, raises UsageError for RequestError, and has an example in its help.
    """
    if words in _EXAMPLES and "Example" not in (command.help or ""):
        command.epilog = f"Example: {_EXAMPLES[words]}"
    if command.callback is not None:
        call = command.callback if words in _WITH_REQUEST_ERRORS else usage_errors()(command.callback)
        command.callback = alone(call) if isinstance(command, click.Group) else click.pass_obj(call)
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            _prepare(each, f"{words} {name}")


@click.group(
    cls=_LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The settings file. Default: metaharvest.toml here, then in your configuration folder.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    expose_value=False,  # main() has seen it already.
    help="How stderr is written, where warnings, errors and events go; json: an object a line.",
)
@click.version_option(__version__, prog_name="metaharvest")
@click.pass_context
def cli(ctx: click.Context, config: Path | None) -> None:
    """Harvests metadata documents from the sites that publish them, and reports the results to everybody."""
    ctx.obj = (ctx.obj or Invocation)(config)
    ctx.call_on_close(ctx.obj.close)
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is None:
        click.echo(_what_to_do_first(ctx.obj))
        click.echo(f"\nAll commands: {ctx.obj.start} --help")


def _what_to_do_first(invocation: Invocation) -> str:
    """The first steps, for a person who has just installed the program, or has forgotten them."""
    from metaharvest.config.settings import find_file

    start, file = invocation.start, invocation.config or find_file()
    if file is None or not file.is_file():
        return (
            "There are no settings here yet.\n"
            f"  {start} demo         shows all of it on sample sites, and needs nothing\n"
            f"  {start} check URL    rehearses the harvest of a list, a document or a folder\n"
            f"  {start} init         writes a settings file here, and makes the database"
        )
    return (
        f"The settings are in {file}.\n"
        f"  {start} doctor                                            says what is missing\n"
        f"  {start} sites add NAME --list-url URL --contact EMAIL     registers a site\n"
        f"  {start} sites add NAME --oai BASEURL                      registers an OAI-PMH repository\n"
        f"  {start} run                                               harvests the sites that are due\n"
        f"  {start} runs                                              says what happened"
    )


def _log_to_stderr(arguments: Sequence[str]) -> None:
    """Write the log of the program to stderr; as JSON, with all other output there, if that is requested."""
    to_stderr = logging.StreamHandler(sys.stderr)
    # A library logs a Ctrl-C while it was closing something, and raises it, too.
    to_stderr.addFilter(lambda record: not (record.exc_info and record.exc_info[0] is KeyboardInterrupt))
    to_stderr.setFormatter(MaskingFormatter("%(levelname)s %(name)s: %(message)s"))
    if json_lines.are_asked_for(arguments):
        formatter = json_lines.json_formatter()
        to_stderr.setFormatter(formatter)
        sys.stderr = json_lines.JsonLines(sys.stderr, formatter)
    logging.basicConfig(handlers=[to_stderr], level=logging.WARNING)


def main(
    arguments: Sequence[str] | None = None, limits: RunLimits | None = None, engine: Engine | None = None
) -> NoReturn:
    """The `metaharvest` command: every error that a person can cause ends in a sentence, and in an exit code.

    `limits` and `engine` are for tests: arguments of the command's Harvester (see services/harvester.py).
    """
    limit_thread_starts()
    share_one_heap()
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION, *gc.get_threshold()[1:])
    # Python would look for cycles once more at its end, although the memory is freed anyway.
    atexit.register(gc.freeze)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else list(arguments)
    _log_to_stderr(given)
    sys.exit(_exit_code(given, partial(Invocation, limits=limits, engine=engine)))


def share_one_heap() -> None:
    """Let all threads share one heap: the gaps in heaps of their own take 7 MB in a long harvest.

    Only glibc has a heap for each thread, and this option.
    """
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_ARENA_MAX, 1)


def _open_streams() -> None:
    """Open each standard stream that the program was started without: stdin is empty, output goes to nowhere."""
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    # First the lowest numbers: no file of ours may take the numbers of the standard streams.
    while (number := os.open(os.devnull, os.O_RDWR)) <= _STDERR:
        pass
    os.close(number)
    nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it is open until the program ends
    # Without a buffer: commands that read a pipe see that there is none.
    sys.stdin = sys.stdin or io.StringIO()
    sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere


def _exit_code(arguments: list[str], invocation: Callable[[Path | None], Invocation]) -> int:
    """Run a command; returns its exit code, or the exit code of its error, after a sentence on stderr.

    If JSON was requested, stdout has an object that says the same.
    """
    try:
        with handled(signal.default_int_handler, signal.SIGTERM):
            _require_text(arguments)
            returned = cli(arguments, prog_name="metaharvest", standalone_mode=False, obj=invocation)
            return returned if isinstance(returned, int) else 0
    except click.ClickException as error:
        if json_lines.are_asked_for(arguments):
            print_failure(error.format_message())
        else:
            error.show()
        return _print_error_object(arguments, error, error.exit_code, error.format_message())
    except (click.Abort, KeyboardInterrupt) as error:
        # click turns Ctrl-C into an Abort with a cause. An Abort without one comes before a command changes anything.
        is_signal = isinstance(error, KeyboardInterrupt) or error.__cause__ is not None
        return _failed(arguments, error, ExitCode.INTERRUPTED, STOPPED if is_signal else _NOTHING_CHANGED)
    except MetaharvestError as error:
        return _failed(arguments, error, exit_code_of(error), clean(masked("\n".join(error.sentences))))
    except BrokenPipeError:
        sys.stderr.close()
        return ExitCode.FAILED
    except OSError as error:
        said = f"Something could not be read or written: {clean(masked(str(error)))}."
        return _failed(arguments, error, ExitCode.FAILED, said)
    except Exception as error:
        logging.getLogger(__name__).exception(f"{_UNEXPECTED}. Please report this to its developers")
        return _print_error_object(arguments, error, ExitCode.FAILED, f"{_UNEXPECTED}: stderr says more.")


def _failed(arguments: Sequence[str], error: BaseException, exit_code: int, message: str) -> int:
    """Print why a command failed, for people and, if it asked for JSON, for a program; returns the exit code."""
    print_failure(message)
    return _print_error_object(arguments, error, exit_code, message)


def _print_error_object(arguments: Sequence[str], error: BaseException, exit_code: int, message: str) -> int:
    """Print one JSON object on stdout if a program asked for JSON; returns the exit code."""
    if "--json" in arguments:
        with suppress(OSError):
            kind = next((name for kinds, name in _KINDS if isinstance(error, kinds)), "unexpected")
            print_json({"error": {"kind": kind, "message": message, "exit_code": exit_code}})
    return exit_code


def _require_text(arguments: Sequence[str]) -> None:
    """Raises UsageError if an argument is not text in the encoding of this terminal."""
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            encoding = sys.getfilesystemencoding()
            raise click.UsageError(f"'{shown_url(argument)}' is not text in this terminal's encoding ({encoding}).")
