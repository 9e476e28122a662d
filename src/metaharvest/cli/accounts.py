"""`metaharvest users` and `keys`: the users of the console, and the keys with which programs call the API."""

from __future__ import annotations

from datetime import datetime

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import NUMBER, Invocation, login
from metaharvest.cli.printing import print_line, print_records, stamp, table_options
from metaharvest.model.kinds import GRANTED
from metaharvest.model.mappings import picked

_ROLES = click.Choice([role.word for role in GRANTED])


@click.group("users")
def users_command() -> None:
    """Add people to the console, list, change and remove them.

    A viewer sees all sites. A steward changes sites and decides. An operator also makes users and keys. Contacts of
    sites need no account: they sign in with the address that their site has.

    Example: metaharvest users add anna@example.org --role steward
    """


@users_command.command("add")
@click.argument("address")
@click.option("--role", type=_ROLES, required=True, help="What the person may do.")
@click.option("--name", default="", help="The person's name.")
def add_user(invocation: Invocation, address: str, role: str, name: str) -> None:
    """Add a user, and print the link for the first visit.

    Example: metaharvest users add anna@example.org --role steward --name Anna
    """
    user = services.accounts.add_user(invocation.harvester, address, role, name)
    click.echo(f"{user.address} was added.")
    _print_link(invocation, user.address)


@users_command.command("list")
@table_options
def list_users(invocation: Invocation, as_json: bool) -> None:
    """List the users, with their roles.

    Example: metaharvest users list
    """
    found = services.accounts.list_users(invocation.harvester)
    keys = "address full_name=name role=role.word created_at disabled_at issuer"
    rows = [
        [user.address, user.role.word, "disabled" if user.disabled_at else "", user.name, stamp(user.created_at)]
        for user in found
    ]
    headings = ["address", "role", "state", "name", "since (UTC)"]
    none = "There are no users yet. `metaharvest users add ADDRESS --role operator` adds the first one."
    print_records(as_json, [picked(user, keys) for user in found], headings, rows, none)


@users_command.command("edit")
@click.argument("address")
@click.option("--role", type=_ROLES, help="What the person may do.")
@click.option("--name", help="The person's name.")
@click.option("--enable/--disable", "enabled", default=None, help="Whether the person may sign in.")
@click.option(
    "--unbind", is_flag=True, help="After a change of the OpenID Connect provider: find the user by the address."
)
def edit_user(
    invocation: Invocation, address: str, role: str | None, name: str | None, enabled: bool | None, unbind: bool
) -> None:
    """Change the role, the name or the state of a user.

    Example: metaharvest users edit anna@example.org --role operator
    """
    if role is None and name is None and enabled is None and not unbind:
        raise click.UsageError("Nothing to change: give --role, --name, --enable, --disable or --unbind.")
    user = services.accounts.edit_user(
        invocation.harvester, address, role=role, name=name, enabled=enabled, unbind=unbind
    )
    click.echo(f"{user.address} is {user.role.word}{', and disabled' if user.disabled_at else ''}.")


@users_command.command("remove")
@click.argument("address")
def remove_user(invocation: Invocation, address: str) -> None:
    """Remove a user; the sessions of the person end.

    Example: metaharvest users remove anna@example.org
    """
    services.accounts.remove_user(invocation.harvester, address)
    print_line(f"{address} was removed.")


@users_command.command("link")
@click.argument("address")
def link_user(invocation: Invocation, address: str) -> None:
    """Print a new link that signs a user in, once, within 24 hours.

    Example: metaharvest users link anna@example.org
    """
    user = services.accounts.read_user(invocation.harvester, address)
    _print_link(invocation, user.address)


def _print_link(invocation: Invocation, address: str) -> None:
    url = invocation.harvester.settings.web.url
    token = services.accounts.new_link(invocation.harvester, address)
    click.echo(f"This link signs {address} in, once, within 24 hours:")
    click.echo(f"  {url or 'http://127.0.0.1:8000'}/console/link/{token}")
    if not url:
        click.echo("url of [web] is not set: the link is right if `metaharvest serve` runs on this machine.")


# -- keys


@click.group("keys")
def keys_command() -> None:
    """Make, list and revoke keys of the API.

    Example: metaharvest keys add portal --role viewer
    """


@keys_command.command("add")
@click.argument("name")
@click.option("--role", type=_ROLES, required=True, help="What it may do.")
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="The days it is valid.")
def add_key(invocation: Invocation, name: str, role: str, days: int) -> None:
    """Make a key, and print it: it is not stored, and shown only this once.

    Example: metaharvest keys add portal --role viewer --days 90
    """
    secret = services.accounts.add_key(invocation.harvester, name, role, login() or "command line", days)
    click.echo(secret)


@keys_command.command("list")
@table_options
def list_keys(invocation: Invocation, as_json: bool) -> None:
    """List the keys, the newest first, with roles and dates.

    Example: metaharvest keys list
    """
    now, found = invocation.harvester.now(), services.accounts.list_keys(invocation.harvester)
    keys = "key_id key_name=name role=role.word created_by created_at expires_at last_used_at revoked_at"
    headings = ["number", "name", "role", "state", "made (UTC)", "expires (UTC)", "last used (UTC)", "made by"]
    none = "There are no keys yet. `metaharvest keys add NAME --role viewer` makes one."
    rows = [_key_row(key, now) for key in found]
    print_records(as_json, [picked(key, keys) for key in found], headings, rows, none)


def _key_row(key: services.accounts.Key, now: datetime) -> list[object]:
    state = "valid" if key.is_valid(now) else "revoked" if key.revoked_at else "expired"
    dates = map(stamp, (key.created_at, key.expires_at, key.last_used_at))
    return [key.key_id, key.name, key.role.word, state, *dates, key.created_by]


@keys_command.command("revoke")
@click.argument("number", type=NUMBER)
def revoke_key(invocation: Invocation, number: int) -> None:
    """Revoke the key with this number; `keys list` has the numbers.

    Example: metaharvest keys revoke 3
    """
    services.accounts.revoke_key(invocation.harvester, number)
    click.echo("The key was revoked.")
