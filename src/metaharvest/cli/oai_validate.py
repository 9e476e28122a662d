"""`metaharvest oai validate`: a rehearsal of a source repository's harvest, with a remedy for each oddity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import ROWS
from metaharvest.cli.list_printing import print_findings
from metaharvest.cli.oai_asking import BASE_URL, PREFIX, SET, Question, asks_repository, oai_finding
from metaharvest.cli.printing import print_fields, print_json, print_line
from metaharvest.model.mappings import picked
from metaharvest.text import shown_url

if TYPE_CHECKING:
    from metaharvest.services.source_repositories import RehearsedList


@click.command("validate")
@BASE_URL
@PREFIX
@SET
@click.option("--pages", type=ROWS, metavar="N", help="Read the first N pages of the list. [default: all of it]")
@asks_repository
def validate(question: Question, pages: int | None) -> int:
    """Rehearse the harvest of the source repository at URL, and show its keeper all oddities.

    Its list is read as at night, and its responses to invalid requests are tested. Nothing is kept.

    \b
    Example: metaharvest oai validate https://repository.example.org/oai --pages 3

    Exit codes: 0 harvesters lose nothing; 1 they lose something; 2 settings or usage.
    """
    repository = question.repository
    rehearsal = repository.rehearse(pages)
    base_url, prefix = shown_url(repository.base_url), repository.options.prefix
    if question.as_json:
        print_json(_mapping(base_url, prefix, rehearsal))
    else:
        _print(base_url, prefix, rehearsal)
    return 1 if rehearsal.has_errors else 0


_NUMBERS = "pages records records_deleted=deleted records_not_had=bad complete_list_size=announced is_whole"


def _mapping(base_url: str, prefix: str, rehearsal: RehearsedList) -> dict[str, Any]:
    identity = rehearsal.inspection.identity
    return {
        "base_url": base_url,
        "repository_name": identity.name,
        "protocol_version": identity.version,
        "prefix": prefix,
        **picked(rehearsal, _NUMBERS),
        "namespaces": [{"namespace": name, "records": number} for name, number in rehearsal.types.most_common()],
        "findings": [oai_finding(finding) for finding in rehearsal.findings],
        "left_out": [{"rule": rule, "findings_left_out": number} for rule, number in rehearsal.left_out.items()],
    }


def _print(base_url: str, prefix: str, rehearsal: RehearsedList) -> None:
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
