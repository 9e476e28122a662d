"""`metaharvest users`: the users of the console, and links that sign them in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation, usage_errors
from metaharvest.cli.printing import print_json, print_line, stamp
from metaharvest.cli.tables import print_table, table_options
from metaharvest.model.kinds import GRANTED
from metaharvest.model.mappings import picked

if TYPE_CHECKING:
    from metaharvest.services.accounts import User

_ROLES = click.Choice([role.word for role in GRANTED])


@click.group("users")
def command() -> None:
    """Add people to the console, list, change and remove them.

    A viewer sees all sites. A steward changes sites and decides. An operator also makes users and keys. Contacts of
    sites need no account: they sign in with the address that their site has.

    Example: metaharvest users add anna@example.org --role steward
    """


@command.command("add")
@click.argument("address")
@click.option("--role", type=_ROLES, required=True, help="What the person may do.")
@click.option("--name", default="", help="The person's name.")
@click.pass_obj
def add(invocation: Invocation, address: str, role: str, name: str) -> None:
    """Add a user, and print the link for the first visit.

    Example: metaharvest users add anna@example.org --role steward --name Anna
    """
    from metaharvest.services import accounts

    with usage_errors():
        user = accounts.add_user(invocation.harvester, address, role, name)
    click.echo(f"{user.address} was added.")
    _print_link(invocation, user.address)


@command.command("list")
@table_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def list_users(invocation: Invocation, as_json: bool) -> None:
    """List the users, with their roles.

    Example: metaharvest users list
    """
    from metaharvest.services import accounts

    found = accounts.list_users(invocation.harvester)
    if as_json:
        print_json([_object(user) for user in found])
    elif not found:
        click.echo("There are no users yet. `metaharvest users add ADDRESS --role operator` adds the first one.")
    else:
        rows = [
            [user.address, user.role.word, "disabled" if user.disabled_at else "", user.name, stamp(user.created_at)]
            for user in found
        ]
        print_table(["address", "role", "state", "name", "since"], rows)


@command.command("edit")
@click.argument("address")
@click.option("--role", type=_ROLES, help="What the person may do.")
@click.option("--name", help="The person's name.")
@click.option("--enable/--disable", "enabled", default=None, help="Whether the person may sign in.")
@click.option(
    "--unbind", is_flag=True, help="After a change of the OpenID Connect provider: find the user by the address."
)
@click.pass_obj
def edit(
    invocation: Invocation, address: str, role: str | None, name: str | None, enabled: bool | None, unbind: bool
) -> None:
    """Change the role, the name or the state of a user.

    Example: metaharvest users edit anna@example.org --role operator
    """
    from metaharvest.services import accounts

    if role is None and name is None and enabled is None and not unbind:
        raise click.UsageError("Nothing to change: give --role, --name, --enable, --disable or --unbind.")
    with usage_errors():
        if unbind:
            accounts.unbind_user(invocation.harvester, address)
        user = accounts.edit_user(invocation.harvester, address, role=role, name=name, enabled=enabled)
    click.echo(f"{user.address} is {user.role.word}{', and disabled' if user.disabled_at else ''}.")


@command.command("remove")
@click.argument("address")
@click.pass_obj
def remove(invocation: Invocation, address: str) -> None:
    """Remove a user; the sessions of the person end.

    Example: metaharvest users remove anna@example.org
    """
    from metaharvest.services import accounts

    with usage_errors():
        accounts.remove_user(invocation.harvester, address)
    print_line(f"{address} was removed.")


@command.command("link")
@click.argument("address")
@click.pass_obj
def link(invocation: Invocation, address: str) -> None:
    """Print a new link that signs a user in, once, within 24 hours.

    Example: metaharvest users link anna@example.org
    """
    from metaharvest.services import accounts

    with usage_errors():
        user = accounts.read_user(invocation.harvester, address)
    _print_link(invocation, user.address)


def _print_link(invocation: Invocation, address: str) -> None:
    from metaharvest.services import accounts

    url = invocation.harvester.settings.web.url
    token = accounts.new_link(invocation.harvester, address)
    click.echo(f"This link signs {address} in, once, within 24 hours:")
    click.echo(f"  {url or 'http://127.0.0.1:8000'}/console/link/{token}")
    if not url:
        click.echo("url of [web] is not set: the link is right if `metaharvest serve` runs on this machine.")


def _object(user: User) -> dict[str, object]:
    return picked(user, "address full_name=name role=role.word created_at disabled_at issuer")
