"""`metaharvest requests` and `registrations`: what people ask the harvester to do, and what people outside ask for."""

from __future__ import annotations

from datetime import datetime

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import AS_JSON, NUMBER, ROWS, Invocation
from metaharvest.cli.printing import Column, print_json, print_line, print_records, rows_of, stamp, table_options
from metaharvest.queries.json_keys import as_mapping


@click.group("requests", invoke_without_command=True)
@click.option("--open", "only_open", is_flag=True, help="Only requests that wait, or that a run has taken.")
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@click.option("--after", type=NUMBER, metavar="ID", help="The next page: requests before this one.")
@table_options
def requests_command(invocation: Invocation, only_open: bool, limit: int, after: int | None, as_json: bool) -> None:
    """List what people have asked the harvester to do, the newest first.

    `sites harvest`, `sites skip` and `runs stop` ask; a run, or the daemon, takes it.

    Example: metaharvest requests --open
    """
    from metaharvest.model.requests import RequestState

    states = (RequestState.WAITING, RequestState.TAKEN) if only_open else ()
    wanted = queries.requests.RequestFilter(states=states)
    found = invocation.harvester.read(queries.requests.requests, wanted, limit, after)
    keys = "request_id kind site scope state run_id asked_by asked_at sentence"
    rows = rows_of(found, keys, site=lambda each: each.site or "whole run")
    headings: list[str | Column] = [
        Column("scope", 6),
        "state",
        Column("run", 5),
        "by",
        "at (UTC)",
        Column("result", 7, wrap=True),
    ]
    none = "There is no such request." if only_open or after else "There are no requests yet."
    print_records(as_json, found, ["request", "kind", "site", *headings], rows, none)


@requests_command.command("cancel")
@click.argument("request_id", type=click.IntRange(min=1))
def cancel(invocation: Invocation, request_id: int) -> None:
    """Take a request back, as long as no run has taken it."""
    services.requests.cancel(invocation.harvester, request_id)
    click.echo(f"Request {request_id} is taken back.")


def print_asked(asked: services.requests.Asked, as_json: bool = False) -> None:
    """Print the request, and what it waits for."""
    request = asked.request
    if as_json:
        print_json({**as_mapping(request), "is_new": asked.is_new, "waits_for": asked.waits_for})
        return
    known = "" if asked.is_new else f", which {request.asked_by or 'somebody'} has made already"
    print_line(f"Request {request.request_id}{known}: {_WISHES[request.kind].format(request.site or 'the run')}.")
    print_line(asked.waits_for)


_WISHES = {"harvest": "harvest {}", "stop": "stop {}", "skip": "leave {} out of the next run"}


# -- registrations


@click.group("registrations")
def registrations_command() -> None:
    """Decide about the requests of people outside: new sites, sites that move or leave.

    Example: metaharvest registrations list
    """


@registrations_command.command("list")
@click.option("--all", "everything", is_flag=True, help="Decided and expired requests, too.")
@click.option("--limit", type=ROWS, default=100, show_default=True, metavar="N", help="The oldest N.")
@click.option(
    "--after", type=click.IntRange(0, NUMBER.max), default=0, metavar="ID", help="The next page: after this one."
)
@table_options
def list_registrations(invocation: Invocation, everything: bool, limit: int, after: int, as_json: bool) -> None:
    """List the requests that wait for a decision, or for proofs, the oldest first.

    Example: metaharvest registrations list --all
    """
    found = services.registrations.waiting(invocation.harvester, everything=everything, after=after, limit=limit)
    headings = ["number", "name", "kind", "state", "source", "asked by", "at (UTC)", "problem"]
    rows = rows_of(
        found, "number=registration_id name kind=kind.value state=state.words url address asked_at mail_problem"
    )
    none = "There are no requests yet." if everything else "No request waits."
    documents = list(map(services.json_documents.registration_document, found))
    print_records(as_json, documents, headings, rows, none)


@registrations_command.command("show")
@click.argument("registration_id", type=NUMBER)
@AS_JSON
def show(invocation: Invocation, registration_id: int, as_json: bool) -> None:
    """Show a request, its proofs, and the changes that accepting it makes."""
    found = services.registrations.find(invocation.harvester, registration_id)
    document = services.json_documents.registration_document(found)
    if as_json:
        print_json(document)
        return
    for key, value in document.items():
        if value not in (None, "", []):
            print_line(f"{key.replace('_', ' '):18} {_words(value)}")
    for sentence in services.registrations.effect(invocation.harvester, found):
        print_line(sentence)


@registrations_command.command("accept")
@click.argument("registration_id", type=NUMBER)
@click.option("--without-proofs", is_flag=True, help="Accept it before its proofs have come: you know the people.")
def accept(invocation: Invocation, registration_id: int, without_proofs: bool) -> None:
    """Accept a request: the site is registered, moved or removed, and the person gets a mail."""
    done = services.registrations.accept(invocation.harvester, registration_id, without_proofs=without_proofs)
    _print_done(done, "accepted")


@registrations_command.command("refuse")
@click.argument("registration_id", type=NUMBER)
@click.option("--reason", required=True, metavar="TEXT", help="It is mailed to the person who asked.")
def refuse(invocation: Invocation, registration_id: int, reason: str) -> None:
    """Refuse a request; the reason is mailed, if the address is confirmed."""
    done = services.registrations.refuse(invocation.harvester, registration_id, reason)
    _print_done(done, "refused")


@registrations_command.command("mail")
@click.argument("registration_id", type=NUMBER)
def mail(invocation: Invocation, registration_id: int) -> None:
    """Send the decision, or the link if there is no decision yet, to the person who asked again."""
    found = services.registrations.mail_last(invocation.harvester, registration_id)
    print_line(found.mail_problem or f"The mail to {found.address} was sent again.")


def _print_done(done: services.registrations.Registration, word: str) -> None:
    print_line(f"Registration {done.registration_id}, {done.name}, is {word}.")
    if done.mail_problem:
        print_line(f"{done.mail_problem} `metaharvest registrations mail {done.registration_id}` sends it again.")


def _words(value: object) -> str:
    if isinstance(value, datetime):
        return f"{stamp(value)} UTC"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
