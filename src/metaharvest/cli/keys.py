"""`metaharvest keys`: the keys with which programs call the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation, login, usage_errors
from metaharvest.cli.printing import print_json, stamp
from metaharvest.cli.tables import print_table, table_options
from metaharvest.model.kinds import GRANTED
from metaharvest.model.mappings import picked

if TYPE_CHECKING:
    from metaharvest.services.accounts import Key


@click.group("keys")
def command() -> None:
    """Make, list and revoke keys of the API.

    Example: metaharvest keys add portal --role viewer
    """


@command.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice([role.word for role in GRANTED]), required=True, help="What it may do.")
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="The days it is valid.")
@click.pass_obj
def add(invocation: Invocation, name: str, role: str, days: int) -> None:
    """Make a key, and print it: it is not stored, and shown only this once.

    Example: metaharvest keys add portal --role viewer --days 90
    """
    from metaharvest.services import accounts

    with usage_errors():
        secret = accounts.add_key(invocation.harvester, name, role, login() or "command line", days)
    click.echo(secret)


@command.command("list")
@table_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def list_keys(invocation: Invocation, as_json: bool) -> None:
    """List the keys, the newest first, with roles and dates.

    Example: metaharvest keys list
    """
    from metaharvest.services import accounts

    now, found = invocation.harvester.now(), accounts.list_keys(invocation.harvester)
    if as_json:
        print_json([_object(key) for key in found])
    elif not found:
        click.echo("There are no keys yet. `metaharvest keys add NAME --role viewer` makes one.")
    else:
        print_table(
            ["number", "name", "role", "state", "made", "expires", "last used", "made by"],
            [
                [
                    key.key_id,
                    key.name,
                    key.role.word,
                    "valid" if key.is_valid(now) else "revoked" if key.revoked_at else "expired",
                    stamp(key.created_at),
                    stamp(key.expires_at),
                    stamp(key.last_used_at),
                    key.created_by,
                ]
                for key in found
            ],
        )


@command.command("revoke")
@click.argument("number", type=click.IntRange(1, 2**53))
@click.pass_obj
def revoke(invocation: Invocation, number: int) -> None:
    """Revoke the key with this number; `keys list` has the numbers.

    Example: metaharvest keys revoke 3
    """
    from metaharvest.services import accounts

    with usage_errors():
        accounts.revoke_key(invocation.harvester, number)
    click.echo("The key was revoked.")


def _object(key: Key) -> dict[str, object]:
    keys = "key_id key_name=name role=role.word created_by created_at expires_at last_used_at revoked_at"
    return picked(key, keys)
