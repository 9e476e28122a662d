"""`metaharvest registrations`: the requests of people outside, and the decision about each."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import AS_JSON, ROWS, Invocation, usage_errors
from metaharvest.cli.printing import print_json, print_line, stamp
from metaharvest.cli.tables import print_table, table_options

if TYPE_CHECKING:
    from metaharvest.services.registrations import Registration

_NUMBER = click.IntRange(1, 2**53)


@click.group("registrations")
def command() -> None:
    """Decide about the requests of people outside: new sites, sites that move or leave.

    Example: metaharvest registrations list
    """


@command.command("list")
@click.option("--all", "everything", is_flag=True, help="Decided and expired requests, too.")
@click.option("--limit", type=ROWS, default=100, show_default=True, metavar="N", help="The oldest N.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="ID", help="The next page: after this one.")
@table_options
@click.pass_obj
def list_registrations(invocation: Invocation, everything: bool, limit: int, after: int, as_json: bool) -> None:
    """List the requests that wait for a decision, or for proofs, the oldest first.

    Example: metaharvest registrations list --all
    """
    from metaharvest.services import registrations
    from metaharvest.services.json_documents import registration_document

    found = registrations.waiting(invocation.harvester, everything=everything, after=after, limit=limit)
    if as_json:
        print_json([registration_document(each) for each in found])
    elif not found:
        click.echo("There are no requests yet." if everything else "No request waits.")
    else:
        print_table(
            ["number", "name", "kind", "state", "source", "asked by", "at", "problem"],
            [
                [
                    *(each.registration_id, each.name, each.kind.value, each.state.words, each.url, each.address),
                    *(stamp(each.asked_at), each.mail_problem),
                ]
                for each in found
            ],
        )


@command.command("show")
@click.argument("registration_id", type=_NUMBER)
@AS_JSON
@click.pass_obj
def show(invocation: Invocation, registration_id: int, as_json: bool) -> None:
    """Show a request, its proofs, and the changes that accepting it makes."""
    from metaharvest.services import registrations
    from metaharvest.services.json_documents import registration_document

    with usage_errors():
        found = registrations.find(invocation.harvester, registration_id)
    if as_json:
        print_json(registration_document(found))
        return
    for key, value in registration_document(found).items():
        if value not in (None, "", []):
            print_line(f"{key.replace('_', ' '):18} {_words(value)}")
    for sentence in registrations.effect(invocation.harvester, found):
        print_line(sentence)


@command.command("accept")
@click.argument("registration_id", type=_NUMBER)
@click.option("--without-proofs", is_flag=True, help="Accept it before its proofs have come: you know the people.")
@click.pass_obj
def accept(invocation: Invocation, registration_id: int, without_proofs: bool) -> None:
    """Accept a request: the site is registered, moved or removed, and the person gets a mail."""
    from metaharvest.services import registrations

    with usage_errors():
        done = registrations.accept(invocation.harvester, registration_id, without_proofs=without_proofs)
    _print_done(done, "accepted")


@command.command("refuse")
@click.argument("registration_id", type=_NUMBER)
@click.option("--reason", required=True, metavar="TEXT", help="It is mailed to the person who asked.")
@click.pass_obj
def refuse(invocation: Invocation, registration_id: int, reason: str) -> None:
    """Refuse a request; the reason is mailed, if the address is confirmed."""
    from metaharvest.services import registrations

    with usage_errors():
        done = registrations.refuse(invocation.harvester, registration_id, reason)
    _print_done(done, "refused")


@command.command("mail")
@click.argument("registration_id", type=_NUMBER)
@click.pass_obj
def mail(invocation: Invocation, registration_id: int) -> None:
    """Send the decision, or the link if there is no decision yet, to the person who asked again."""
    from metaharvest.services import registrations

    with usage_errors():
        found = registrations.mail_last(invocation.harvester, registration_id)
    print_line(found.mail_problem or f"The mail to {found.address} was sent again.")


def _print_done(done: Registration, word: str) -> None:
    print_line(f"Registration {done.registration_id}, {done.name}, is {word}.")
    if done.mail_problem:
        print_line(f"{done.mail_problem} `metaharvest registrations mail {done.registration_id}` sends it again.")


def _words(value: object) -> str:
    if isinstance(value, datetime):
        return stamp(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
