"""The common options of the commands of `metaharvest oai`, and the requests to a source repository."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import NETWORKS, Invocation, usage_errors
from metaharvest.model.mappings import picked

if TYPE_CHECKING:
    from metaharvest.model import Finding, Network
    from metaharvest.services.source_repositories import SourceRepository

AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
BASE_URL = click.argument("base_url", metavar="URL")
PREFIX = click.option(
    "--prefix", default="oai_dc", metavar="PREFIX", show_default=True, help="The metadataPrefix of the format."
)
POST = click.option("--post", is_flag=True, help="Send requests as forms (POST).")


def datestamp(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """An option's value as a datestamp of OAI-PMH. Raises click.BadParameter."""
    if text is None:
        return None
    from metaharvest.services.source_repositories import check_datestamp

    try:
        return check_datestamp(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _one_set(_context: click.Context, _parameter: click.Parameter, specs: tuple[str, ...]) -> str | None:
    """The set; None if the option was not given. Raises click.BadParameter for several."""
    if len(specs) > 1:
        raise click.BadParameter("a list has one set, or all records: give one, and run the command for each set.")
    return next(iter(specs), None)


SET = click.option("--set", "set_spec", metavar="SPEC", multiple=True, callback=_one_set, help="Only this set.")


@dataclass(frozen=True, slots=True)
class Question:
    """A person's question to a source repository; `as_json`: the response is printed as JSON."""

    repository: SourceRepository
    as_json: bool


def asks_repository(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the common options of these commands, and a Question. Its other options are passed on."""

    def asking(
        invocation: Invocation,
        /,
        base_url: str,
        networks: tuple[Network, ...],
        as_json: bool,
        post: bool,
        prefix: str = "oai_dc",
        set_spec: str | None = None,
        begin: str | None = None,
        until: str | None = None,
        **others: Any,
    ) -> int:
        """Call the command with a Question; click shows its docstring in place of this one."""
        repository = repository_at(
            invocation, base_url, networks, prefix, set_spec=set_spec, begin=begin, until=until, post=post
        )
        with usage_errors():
            return command(Question(repository, as_json), **others)

    asking.__doc__ = command.__doc__
    return POST(NETWORKS(AS_JSON(click.pass_obj(asking))))


def repository_at(
    invocation: Invocation, base_url: str, networks: tuple[Network, ...], prefix: str = "oai_dc", **more: Any
) -> SourceRepository:
    """The source repository at this base URL, which need not be registered."""
    from metaharvest.config.settings import load
    from metaharvest.model import OaiOptions
    from metaharvest.services.source_repositories import SourceRepository

    options = OaiOptions(origin="oai", prefix=prefix, **more)
    return SourceRepository(load(invocation.config), base_url, options, networks)


def oai_finding(finding: Finding) -> dict[str, Any]:
    """A finding for JSON."""
    shown = picked(finding, "rule level=level.value message remedy")
    return {**shown, "oai_identifier": finding.docid or None}
