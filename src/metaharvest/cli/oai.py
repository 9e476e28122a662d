"""`metaharvest oai`: shows the responses of OAI-PMH repositories, rehearses their harvest, and finds others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, NETWORKS, ROWS, Invocation, one_of, parsed
from metaharvest.cli.list_printing import print_findings
from metaharvest.cli.printing import print_fields, print_json, print_line, print_records, print_table
from metaharvest.model.mappings import picked
from metaharvest.text import one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.model import FetchedDocument, Finding, ListedDocument, Network
    from metaharvest.services.source_repositories import ListedRecord, RehearsedList, SourceRepository


_BASE_URL = click.argument("base_url", metavar="URL")
_PREFIX = click.option(
    "--prefix", default="oai_dc", metavar="PREFIX", show_default=True, help="The metadataPrefix of the format."
)
_POST = click.option("--post", is_flag=True, help="Send requests as forms (POST).")


_SET = click.option(
    "--set",
    "set_spec",
    metavar="SPEC",
    multiple=True,
    callback=one_of("a list has one set, or all records: give one, and run the command for each set."),
    help="Only this set.",
)


def _datestamp(text: str) -> str:
    return services.source_repositories.check_datestamp(text)


def _asks_repository(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options about a source repository to a command, which gets the repository and `as_json`.

    The command gets its other options by name.
    """

    def asking(
        invocation: Invocation,
        /,
        base_url: str,
        networks: tuple[Network, ...],
        as_json: bool,
        **options: Any,
    ) -> int:
        asked = {name: options.pop(name) for name in _ASKED if name in options}
        return command(_repository_at(invocation, base_url, networks, **asked), as_json, **options)

    asking.__doc__ = command.__doc__
    return _POST(NETWORKS(AS_JSON(asking)))


_ASKED = ("prefix", "set_spec", "begin", "until", "post")
"""The options about the requests: names in OaiOptions. A command has some of them."""


def _repository_at(
    invocation: Invocation, base_url: str, networks: tuple[Network, ...], **asked: Any
) -> SourceRepository:
    """The source repository at this base URL, which need not be registered."""
    from metaharvest.config.settings import load
    from metaharvest.model import OaiOptions

    return services.source_repositories.SourceRepository(
        load(invocation.config), base_url, OaiOptions(origin="oai", **asked), networks
    )


def _oai_finding(finding: Finding) -> dict[str, Any]:
    shown = picked(finding, "rule level=level.value message remedy")
    return {**shown, "oai_identifier": finding.docid or None}


@click.group("oai")
def command() -> None:
    """Look at OAI-PMH repositories. No settings and no database are needed.

    \b
    Example: metaharvest oai validate https://repository.example.org/oai
    """


@command.command("identify")
@_BASE_URL
@_asks_repository
def identify(repository: SourceRepository, as_json: bool) -> int:
    """Show the description of the source repository at URL, and its oddities.

    \b
    Example: metaharvest oai identify https://repository.example.org/oai
    """
    identity, findings = repository.identify()
    answers: dict[str, Any] = {
        **picked(identity, "repository_name=name base_url protocol_version=version response_date"),
        "earliest_datestamp": identity.earliest or None,
        "deleted_record": identity.deleted_record or None,
        "granularity": identity.granularity or None,
        "admin_emails": list(identity.emails),
        "compression": list(identity.compression),
        "friends": list(identity.friends),
    }
    if as_json:
        print_json({**answers, "findings": [_oai_finding(finding) for finding in findings]})
        return 0
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in answers.items()}
    print_fields({name.replace("_", " "): value for name, value in shown.items()})
    for finding in findings:
        print_line(f"{finding.level.value}: {finding.with_remedy}")
    return 0


@command.command("formats")
@_BASE_URL
@_asks_repository
def formats(repository: SourceRepository, as_json: bool) -> int:
    """List the metadata formats of the source repository at URL.

    \b
    Example: metaharvest oai formats https://repository.example.org/oai
    """
    found = [picked(each, "prefix namespace schema_url=schema") for each in repository.describe().formats]
    rows, none = [tuple(each.values()) for each in found], "The repository says that it has no metadata formats."
    print_records(as_json, found, ("prefix", "namespace", "schema"), rows, none)
    return 0


@command.command("sets")
@_BASE_URL
@_asks_repository
def sets(repository: SourceRepository, as_json: bool) -> int:
    """List the sets of the source repository at URL.

    \b
    Example: metaharvest oai sets https://repository.example.org/oai
    """
    found = [picked(each, "set_spec=spec set_name=name") for each in repository.sets()]
    rows = [tuple(each.values()) for each in found]
    print_records(as_json, found, ("set", "name"), rows, "The repository has no sets.")
    return 0


@command.command("list")
@_BASE_URL
@_PREFIX
@_SET
@click.option("--from", "begin", metavar="DATE", callback=parsed(_datestamp), help="The earliest datestamp to ask for.")
@click.option("--until", metavar="DATE", callback=parsed(_datestamp), help="The latest datestamp to ask for.")
@click.option("--limit", type=ROWS, metavar="N", default=100, show_default=True, help="The first N records.")
@_asks_repository
def list_(repository: SourceRepository, as_json: bool, limit: int) -> int:
    """List records of the source repository at URL, as they would be harvested.

    \b
    Example: metaharvest oai list https://repository.example.org/oai --set frogs --from 2026-11-01
    """
    found, broken_off = repository.records(limit)
    rows = [_record_mapping(record) for record in found]
    if as_json:
        print_json(rows)
    elif rows:
        print_table(
            ["identifier", "datestamp", "sets", ""],
            [(row["oai_identifier"], row["datestamp"], ", ".join(row["set_specs"]), _state(row)) for row in rows],
        )
        if len(rows) == limit:
            print_line(f"The first {limit:,}; --limit shows more.")
    elif broken_off is None:
        print_line("The repository has no such records.")
    if broken_off is None:
        return 0
    print_line(broken_off.with_remedy, err=True)
    return 1


@command.command("get")
@_BASE_URL
@click.argument("identifier")
@_PREFIX
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the metadata there."
)
@_asks_repository
def get(repository: SourceRepository, as_json: bool, identifier: str, output: Path | None) -> int:
    """Print the metadata of one record of the source repository at URL, as a document of its own.

    \b
    Example: metaharvest oai get https://repository.example.org/oai oai:repository.example.org:17
    """
    found = repository.record(identifier)
    if output is not None:
        output.write_bytes(found.content)
    if as_json:
        print_json(_document_mapping(found))
    elif output is None:
        click.echo(found.content, nl=not found.content.endswith(b"\n"))
    return 0


@command.command("same")
@_BASE_URL
@click.argument("identifier")
@click.argument("other_url", metavar="OTHER_URL")
@click.argument("other_identifier", metavar="OTHER_IDENTIFIER")
@_PREFIX
@_asks_repository
def same(repository: SourceRepository, as_json: bool, identifier: str, other_url: str, other_identifier: str) -> int:
    """Report if two records, of one repository or of two, are of the same item.

    By the guidelines for aggregators, they are if they have the same identifier in the same repository, or the same
    identifier and it is a URI of a known scheme, or the same source in their provenance.

    \b
    Example: metaharvest oai same https://a.example.org/oai oai:a.example.org:17 https://b.example.org/oai 4711
    Exit codes: 0 the same item; 1 not known to be the same.
    """
    other = replace(repository, base_url=other_url)
    why = repository.why_same(identifier, other, other_identifier)
    if as_json:
        print_json({"is_same": why is not None, "same_because": why})
    else:
        print_line(f"The same item. {why}" if why else "Nothing says that they are of the same item.")
    return 0 if why else 1


def _record_mapping(record: ListedRecord) -> dict[str, Any]:
    return {
        **_header_mapping(record.document),
        "is_deleted": record.deleted,
        "document_type": record.document.document_type or None,
        "bytes": None if record.content is None else len(record.content),
        "url": record.document.url,
        "findings": [_oai_finding(finding) for finding in record.findings],
    }


def _state(row: dict[str, Any]) -> str:
    if row["is_deleted"]:
        return "deleted"
    if row["findings"]:
        return str(row["findings"][0]["message"])
    return f"{row['bytes']:,} bytes, {row['document_type'] or 'no namespace'}"


def _document_mapping(found: FetchedDocument) -> dict[str, Any]:
    about = {"document_type": found.document.document_type or None, "url": found.document.url}
    content = {"bytes": len(found.content), "sha256": found.sha256, "content": found.content.decode("utf-8")}
    return {**_header_mapping(found.document), **about, **content}


def _header_mapping(document: ListedDocument) -> dict[str, Any]:
    origin = document.origin
    assert origin is not None
    return {
        "oai_identifier": origin.identifier,
        "datestamp": origin.datestamp or None,
        "set_specs": list(origin.sets),
    }


@command.command("validate")
@_BASE_URL
@_PREFIX
@_SET
@click.option("--pages", type=ROWS, metavar="N", help="Read the first N pages of the list. [default: all of it]")
@_asks_repository
def validate(repository: SourceRepository, as_json: bool, pages: int | None) -> int:
    """Rehearse the harvest of the source repository at URL, and show its keeper all oddities.

    Its list is read as at night, and its responses to invalid requests are tested. Nothing is kept.

    \b
    Example: metaharvest oai validate https://repository.example.org/oai --pages 3

    Exit codes: 0 harvesters lose nothing; 1 they lose something; 2 settings or usage.
    """
    rehearsal = repository.rehearse(pages)
    base_url, prefix = shown_url(repository.base_url), repository.options.prefix
    if as_json:
        print_json(_rehearsal_mapping(base_url, prefix, rehearsal))
    else:
        _print_rehearsal(base_url, prefix, rehearsal)
    return 1 if rehearsal.has_errors else 0


_NUMBERS = "pages records records_deleted=deleted records_not_had=bad complete_list_size=announced is_whole"


def _rehearsal_mapping(base_url: str, prefix: str, rehearsal: RehearsedList) -> dict[str, Any]:
    identity = rehearsal.inspection.identity
    return {
        "base_url": base_url,
        "repository_name": identity.name,
        "protocol_version": identity.version,
        "prefix": prefix,
        **picked(rehearsal, _NUMBERS),
        "namespaces": [{"namespace": name, "records": number} for name, number in rehearsal.types.most_common()],
        "findings": [_oai_finding(finding) for finding in rehearsal.findings],
        "left_out": [{"rule": rule, "findings_left_out": number} for rule, number in rehearsal.left_out.items()],
    }


def _print_rehearsal(base_url: str, prefix: str, rehearsal: RehearsedList) -> None:
    identity = rehearsal.inspection.identity
    print_findings((base_url, finding) for finding in rehearsal.findings)
    for rule, number in rehearsal.left_out.items():
        print_line(f"{number:,} more like these ({rule}).")
    types = ", ".join(f"{name or 'none'} ({number:,})" for name, number in rehearsal.types.most_common(9))
    announced = f" of {rehearsal.announced:,} announced" if rehearsal.announced else ""
    print_fields(
        {
            "repository": identity.name or base_url,
            "version": identity.version,
            "format": prefix,
            "pages": f"{rehearsal.pages:,}",
            "records": f"{rehearsal.records:,}{announced}",
            "deleted": f"{rehearsal.deleted:,}",
            "not to be had": f"{rehearsal.bad:,}",
            "namespaces": types,
        }
    )
    print_line(_verdict(rehearsal))


def _verdict(rehearsal: RehearsedList) -> str:
    if rehearsal.has_errors:
        return "Harvesters lose something here: see the errors above."
    found = "nothing odd was found" if not rehearsal.findings else "harvesters get along with the findings above"
    read = "The list was read to its end" if rehearsal.is_whole else "The first pages were read"
    return f"{read}: {found}."


@command.command("friends")
@click.argument("source", metavar="URL|FILE")
@click.option("--add", is_flag=True, help="Register the new ones, switched off.")
@click.option("--contact", metavar="EMAILS", help="With --add: who gets the reports.")
@_PREFIX
@NETWORKS
@AS_JSON
def friends(
    invocation: Invocation,
    source: str,
    add: bool,
    contact: str | None,
    prefix: str,
    networks: tuple[Network, ...],
    as_json: bool,
) -> int:
    """Find other source repositories: the friends of the one at URL, or the base URLs in FILE, one a line or as XML.

    \b
    Example: metaharvest oai friends https://repository.example.org/oai
             metaharvest oai friends repositories.txt --add --contact steward@example.org
    """
    if add and not contact:
        raise click.UsageError("With --add, give --contact: the email addresses of the people who get the reports.")
    repositories, urls = services.source_repositories, _base_urls(invocation, source, networks)
    sites = repositories.register_repositories(invocation.harvester, urls, contact or "", prefix) if add else {}
    if as_json:
        print_json([{"base_url": shown_url(url), "site": sites.get(url)} for url in urls])
        return 0
    if not urls:
        print_line("No other repositories are named there.")
        return 0
    headings = ["base URL", "registered as"] if add else ["base URL"]
    print_table(headings, [(shown_url(url), sites.get(url, "is registered already"))[: len(headings)] for url in urls])
    if sites:
        print_line("They are switched off: `metaharvest oai validate URL` looks at one, `sites enable` switches it on.")
    return 0


def _base_urls(invocation: Invocation, source: str, networks: tuple[Network, ...]) -> tuple[str, ...]:
    repositories, path = services.source_repositories, Path(source)
    if "://" in source:
        named = repositories.usable(_repository_at(invocation, source, networks).friends())
    elif not path.is_file():
        raise click.UsageError(f"'{one_line(source)}' is no URL, and there is no such file.")
    else:
        named = repositories.usable(repositories.base_urls_in_file(path))
    for sentence in named.left_out:
        print_line(sentence, err=True)
    return named.base_urls
