"""`metaharvest init`, `doctor`, `database`, `contacts` and `metaharvest completion`: the installation as a whole."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, Invocation, require_yes, usage_errors
from metaharvest.cli.printing import print_json, print_line, print_table
from metaharvest.model.mappings import picked
from metaharvest.text import clean, counted, one_line


@click.command("init")
def init_command(invocation: Invocation) -> None:
    """Write a commented settings file if there is none, and create or upgrade the database.

    The file is the one named by --config, else metaharvest.toml here; if that is not there, an existing one in your
    configuration folder. An existing file stays as it is.
    """
    from metaharvest.config.settings import FILE_NAME, find_file, load

    path = invocation.config or find_file() or Path(FILE_NAME)
    wrote = services.installation.write_settings(path)
    click.echo(f"Wrote the settings file {path}." if wrote else f"The settings file {path} is already there.")
    settings = load(path)
    database = services.installation.prepare_database(settings)
    if database.is_new:
        click.echo(f"Created the database {database.shown}.")
    elif database.is_upgraded:
        click.echo(f"Upgraded the database {database.shown} from {database.former} to {database.version}.")
    else:
        click.echo(f"The database {database.shown} is already there and up to date.")
    if wrote or database.is_new:
        _say_what_next(invocation, path, has_workers=bool(settings.workers.broker))
    elif not database.is_upgraded:
        click.echo("Nothing to do.")


def _say_what_next(invocation: Invocation, path: Path, *, has_workers: bool) -> None:
    start = invocation.start
    last = (
        "coordinate   lets workers harvest; put it into cron for every minute."
        if has_workers
        else "run      harvests; put it into cron for every night."
    )
    click.echo(
        f"\nWhat next:\n"
        f"  1. Fill in {path}: the name of your network, its time zone, the administrators, how mail is sent.\n"
        f"  2. {start} sites add NAME --list-url URL --contact EMAIL\n"
        f"     or, for an OAI-PMH repository: {start} sites add NAME --oai BASEURL\n"
        f"  3. {start} doctor   says what is still missing.\n"
        f"  4. {start} {last}"
    )


# -- doctor

_COLOURS = {"OK": "green", "WARNING": "yellow", "PROBLEM": "red"}
"""The colour of each state, the gravest last."""


@click.command("doctor")
@AS_JSON
@click.option("--send-test-mail", is_flag=True, help="Send a test message to the administrators.")
def doctor_command(invocation: Invocation, as_json: bool, send_test_mail: bool) -> int:
    """Report what is missing, wrong or overdue.

    Exit codes: 0 all well, or warnings only; 1 there is a problem. Nothing is changed, and no secret is shown.
    """
    return print_checks(
        services.installation.examine(invocation.config, services.harvester.utc_now, test_mail=send_test_mail), as_json
    )


def print_checks(checks: Iterable[services.installation.Check], as_json: bool) -> int:
    """Print each check at once, and then the overall result; returns the exit code."""
    rows = []
    for check in checks:
        rows.append(picked(check, "check=name state message"))
        if not as_json:
            state = click.style(f"{check.state:<7}", fg=_COLOURS[check.state])
            click.echo(f"{state}  {check.name}: {one_line(check.message, 2000)}")
    states = [row["state"] for row in rows]
    if as_json:
        gravest = next((state for state in reversed(_COLOURS) if state in states), "OK")
        print_json({"state": gravest, "checks": rows})
    else:
        problems, warnings = states.count("PROBLEM"), counted(states.count("WARNING"), "warning")
        well = "All is well." if "WARNING" not in states else f"No problem, {warnings}."
        click.echo("\n" + (f"{counted(problems, 'problem')}, {warnings}." if problems else well))
    return 1 if "PROBLEM" in states else 0


# -- database


@click.group("database")
def database_command() -> None:
    """Copy everything into another database, or repair dates that a wrong clock has left behind."""


@database_command.command("copy")
@click.option(
    "--to",
    "url",
    metavar="URL",
    required=True,
    help="The new database, which must be empty: sqlite:///FILE, postgresql+psycopg://USER@HOST/NAME or "
    "mysql+pymysql://USER@HOST/NAME. A relative path starts at the settings file.",
)
@click.option(
    "--password",
    metavar="REFERENCE",
    default="",
    help="Where its password is: env:NAME, file:PATH or keyring:SERVICE/USERNAME.",
)
@AS_JSON
def copy(invocation: Invocation, url: str, password: str, as_json: bool) -> None:
    """Copy everything into another database: schedule, log, ledger, reports, documents. The old one stays as it is.

    Nothing is harvested meanwhile. An interrupted copy continues when the same command is given again. In the end both
    databases are compared, table by table.

    \b
    Examples:
      metaharvest database copy --to postgresql+psycopg://harvest@db.example.org/metaharvest --password env:DB_PASSWORD
      metaharvest database copy --to sqlite:///copy.db
    """

    def report(table: services.installation.CopiedTable) -> None:
        if sys.stderr.isatty():
            kept = f" ({table.copied_before:,} of them before)" if table.copied_before else ""
            click.echo(f"{table.table}: {counted(table.copied, 'row')}{kept}", err=True)

    copied = services.installation.copy_database(invocation.harvester, url, password, report)
    if as_json:
        print_json({"tables": [asdict(table) for table in copied], "rows": sum(table.copied for table in copied)})
        return
    print_table(["table", "rows", "copied"], [[each.table, each.rows, each.copied] for each in copied])
    click.echo("\nEverything was copied, and both come to the same. To use the new database, write into the settings:")
    click.echo("\n[database]")
    click.echo(f'url = "{url}"')
    if password:
        click.echo(f'password = "{password}"')
    click.echo(f"\nThen check whether all is well: {invocation.start} doctor")


@database_command.command("repair-dates")
def repair_dates(invocation: Invocation) -> None:
    """Move dates that lie in the future to today. A wrong clock, or a mistyped --date, leaves such dates.

    Sites whose last harvest lies in the future are due today. Runs, log rows, documents and problems are moved as well.
    Correct the clock first. A date of yours stays: a next harvest in the future, of a site harvested in the past.
    """
    repaired = services.installation.repair_dates(invocation.harvester)
    today = invocation.harvester.today()
    if not repaired:
        click.echo(f"No date lies in the future: today is {today} by the harvester's clock.")
        return
    counts = ", ".join(f"{number:,} {what}" for what, number in repaired.items())
    click.echo(f"Moved to {today}, which is today by the harvester's clock: {counts}.")
    if "sites" in repaired:
        click.echo("The next run harvests these sites.")


# -- contacts


@click.group("contacts")
def contacts_command() -> None:
    """Remove the address of a person.

    Example: metaharvest contacts forget anna@example.org --yes
    """


@contacts_command.command("forget")
@click.argument("address")
@click.option("--yes", is_flag=True, help="Do not ask.")
@AS_JSON
def forget(invocation: Invocation, address: str, yes: bool, as_json: bool) -> None:
    """Remove an address from the schedule, the deliveries, the stored reports and the log.

    Says what was changed, and where the address may still be: mails that were sent, backups, documents.

    Example: metaharvest contacts forget anna@example.org --yes
    """
    with usage_errors():
        address = services.installation.checked_address(address)
    question = f"Remove {address} from everything that is stored? It cannot be undone."
    require_yes(yes, question, f"--yes to forget {address}. It cannot be undone.")
    done, stays = services.installation.forget_address(invocation.harvester, address, invocation.start)
    if as_json:
        changed = picked(done, "contact_of=sites deliveries_changed=deliveries reports_changed=reports log_rows=rows")
        print_json({"address": address, **changed, "stays_elsewhere": stays})
        return
    if done.is_nothing:
        click.echo(f"{address} is in no site, delivery, report or log row.")
    else:
        click.echo(f"{address} was removed.")
        click.echo(clean(f"  contacts of sites: {', '.join(done.sites) or 'none'}"))
        click.echo(f"  deliveries: {done.deliveries}")
        click.echo(f"  stored reports: {done.reports}")
        click.echo(f"  rows of the log and others: {done.rows}")
    for sentence in stays:
        print_line(sentence)


# -- completion


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(_invocation: Invocation, shell: str) -> None:
    """Print the lines for your shell that complete commands and options: put them into its start-up file.

    Example: metaharvest completion bash >> ~/.bashrc
    """
    from metaharvest.cli import cli

    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(cli, {}, "metaharvest", "_METAHARVEST_COMPLETE").source())
