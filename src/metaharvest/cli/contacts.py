"""`metaharvest contacts`: removes the address of a person from everything that is stored."""

from __future__ import annotations

import click

from metaharvest.cli.invocation import Invocation, require_yes, usage_errors
from metaharvest.cli.printing import print_json, print_line
from metaharvest.text import clean


@click.group("contacts")
def command() -> None:
    """Remove the address of a person.

    Example: metaharvest contacts forget anna@example.org --yes
    """


@command.command("forget")
@click.argument("address")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def forget(invocation: Invocation, address: str, yes: bool, as_json: bool) -> None:
    """Remove an address from the schedule, the deliveries, the stored reports and the log.

    Says what was changed, and where the address may still be: mails that were sent, backups, documents.

    Example: metaharvest contacts forget anna@example.org --yes
    """
    from metaharvest.services import installation

    with usage_errors():
        address = installation.checked_address(address)
    question = f"Remove {address} from everything that is stored? It cannot be undone."
    require_yes(yes, question, f"--yes to forget {address}. It cannot be undone.")
    done, stays = installation.forget_address(invocation.harvester, address, invocation.start)
    if as_json:
        print_json(
            {
                "address": address,
                "contact_of": list(done.sites),
                "deliveries_changed": done.deliveries,
                "reports_changed": done.reports,
                "log_rows": done.rows,
                "stays_elsewhere": stays,
            }
        )
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
