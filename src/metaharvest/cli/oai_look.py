"""`metaharvest oai identify`, `formats`, `sets`, `list`, `get` and `same`: print responses of a source repository."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import ROWS
from metaharvest.cli.oai_asking import BASE_URL, PREFIX, SET, Question, asks_repository, datestamp, oai_finding
from metaharvest.cli.printing import print_fields, print_json, print_line
from metaharvest.cli.tables import print_table
from metaharvest.model.mappings import picked

if TYPE_CHECKING:
    from metaharvest.model import FetchedDocument, ListedDocument
    from metaharvest.services.source_repositories import ListedRecord


@click.command("identify")
@BASE_URL
@asks_repository
def identify(question: Question) -> int:
    """Show the description of the source repository at URL, and its oddities.

    \b
    Example: metaharvest oai identify https://repository.example.org/oai
    """
    identity, findings = question.repository.identify()
    answers: dict[str, Any] = {
        **picked(identity, "repository_name=name base_url protocol_version=version response_date"),
        "earliest_datestamp": identity.earliest or None,
        "deleted_record": identity.deleted_record or None,
        "granularity": identity.granularity or None,
        "admin_emails": list(identity.emails),
        "compression": list(identity.compression),
        "friends": list(identity.friends),
    }
    if question.as_json:
        print_json({**answers, "findings": [oai_finding(finding) for finding in findings]})
        return 0
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in answers.items()}
    print_fields({name.replace("_", " "): value for name, value in shown.items()})
    for finding in findings:
        print_line(f"{finding.level.value}: {finding.with_remedy}")
    return 0


@click.command("formats")
@BASE_URL
@asks_repository
def formats(question: Question) -> int:
    """List the metadata formats of the source repository at URL.

    \b
    Example: metaharvest oai formats https://repository.example.org/oai
    """
    found = [
        {"prefix": each.prefix, "namespace": each.namespace, "schema_url": each.schema}
        for each in question.repository.formats()
    ]
    headers = ("prefix", "namespace", "schema")
    return _print_all(found, headers, "The repository says that it has no metadata formats.", question.as_json)


@click.command("sets")
@BASE_URL
@asks_repository
def sets(question: Question) -> int:
    """List the sets of the source repository at URL.

    \b
    Example: metaharvest oai sets https://repository.example.org/oai
    """
    found = [{"set_spec": each.spec, "set_name": each.name} for each in question.repository.sets()]
    return _print_all(found, ("set", "name"), "The repository has no sets.", question.as_json)


@click.command("list")
@BASE_URL
@PREFIX
@SET
@click.option("--from", "begin", metavar="DATE", callback=datestamp, help="The earliest datestamp to ask for.")
@click.option("--until", metavar="DATE", callback=datestamp, help="The latest datestamp to ask for.")
@click.option("--limit", type=ROWS, metavar="N", default=100, show_default=True, help="The first N records.")
@asks_repository
def list_(question: Question, limit: int) -> int:
    """List records of the source repository at URL, as they would be harvested.

    \b
    Example: metaharvest oai list https://repository.example.org/oai --set frogs --from 2026-11-01
    """
    found = question.repository.records(limit)
    rows = [_record_mapping(record) for record in found.records]
    if question.as_json:
        print_json(rows)
    elif rows:
        print_table(
            ["identifier", "datestamp", "sets", ""],
            [(row["oai_identifier"], row["datestamp"], ", ".join(row["set_specs"]), _state(row)) for row in rows],
        )
        if len(rows) == limit:
            print_line(f"The first {limit:,}; --limit shows more.")
    elif found.broken_off is None:
        print_line("The repository has no such records.")
    if found.broken_off is None:
        return 0
    print_line(found.broken_off.with_remedy, err=True)
    return 1


@click.command("get")
@BASE_URL
@click.argument("identifier")
@PREFIX
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the metadata there."
)
@asks_repository
def get(question: Question, identifier: str, output: Path | None) -> int:
    """Print the metadata of one record of the source repository at URL, as a document of its own.

    \b
    Example: metaharvest oai get https://repository.example.org/oai oai:repository.example.org:17
    """
    found = question.repository.record(identifier)
    if output is not None:
        output.write_bytes(found.content)
    if question.as_json:
        print_json(_document_mapping(found))
    elif output is None:
        click.echo(found.content, nl=not found.content.endswith(b"\n"))
    return 0


@click.command("same")
@BASE_URL
@click.argument("identifier")
@click.argument("other_url", metavar="OTHER_URL")
@click.argument("other_identifier", metavar="OTHER_IDENTIFIER")
@PREFIX
@asks_repository
def same(question: Question, identifier: str, other_url: str, other_identifier: str) -> int:
    """Report if two records, of one repository or of two, are of the same item.

    By the guidelines for aggregators, they are if they have the same identifier in the same repository, or the same
    identifier and it is a URI of a known scheme, or the same source in their provenance.

    \b
    Example: metaharvest oai same https://a.example.org/oai oai:a.example.org:17 https://b.example.org/oai 4711
    Exit codes: 0 the same item; 1 not known to be the same.
    """
    other = replace(question.repository, base_url=other_url)
    why = question.repository.why_same(identifier, other, other_identifier)
    if question.as_json:
        print_json({"is_same": why is not None, "same_because": why})
    else:
        print_line(f"The same item. {why}" if why else "Nothing says that they are of the same item.")
    return 0 if why else 1


def _print_all(found: list[dict[str, str]], headers: Sequence[str], none: str, as_json: bool) -> int:
    """Print these items of a source repository, or that it has `none`. Returns the exit code."""
    if as_json:
        print_json(found)
    elif found:
        print_table(headers, [tuple(each.values()) for each in found])
    else:
        print_line(none)
    return 0


def _record_mapping(record: ListedRecord) -> dict[str, Any]:
    return {
        **_header_mapping(record.document),
        "is_deleted": record.deleted,
        "document_type": record.document.document_type or None,
        "bytes": None if record.content is None else len(record.content),
        "url": record.document.url,
        "findings": [oai_finding(finding) for finding in record.findings],
    }


def _state(row: dict[str, Any]) -> str:
    if row["is_deleted"]:
        return "deleted"
    if row["findings"]:
        return str(row["findings"][0]["message"])
    return f"{row['bytes']:,} bytes, {row['document_type'] or 'no namespace'}"


def _document_mapping(found: FetchedDocument) -> dict[str, Any]:
    return {
        **_header_mapping(found.document),
        "document_type": found.document.document_type or None,
        "url": found.document.url,
        "bytes": len(found.content),
        "sha256": found.sha256,
        "content": found.content.decode("utf-8"),
    }


def _header_mapping(document: ListedDocument) -> dict[str, Any]:
    origin = document.origin
    assert origin is not None
    return {
        "oai_identifier": origin.identifier,
        "datestamp": origin.datestamp or None,
        "set_specs": list(origin.sets),
    }
