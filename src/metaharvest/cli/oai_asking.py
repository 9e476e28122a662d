"""The common options of the commands of `metaharvest oai`, and the requests to a source repository."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from metaharvest.cli.invocation import NETWORKS, Invocation

if TYPE_CHECKING:
    from metaharvest.fetch.client import Fetcher
    from metaharvest.model import Finding, Network, OaiOptions, Site
    from metaharvest.sources.base import TimeBudget

Answer = TypeVar("Answer")
Ask = Callable[["Site", "Fetcher", "TimeBudget"], Awaitable[Answer]]

AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
BASE_URL = click.argument("base_url", metavar="URL")
PREFIX = click.option(
    "--prefix", default="oai_dc", metavar="PREFIX", show_default=True, help="The metadataPrefix of the format."
)
POST = click.option("--post", is_flag=True, help="Send requests as forms (POST).")


def datestamp(_context: click.Context, _parameter: click.Parameter, text: str | None) -> str | None:
    """An option's value as a datestamp of OAI-PMH. Raises click.BadParameter."""
    from metaharvest.sites.options import check_datestamp

    try:
        return None if text is None else check_datestamp(text)
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
    """A person's request to a source repository that is not registered; `as_json`: the response is printed as JSON."""

    invocation: Invocation
    base_url: str
    networks: tuple[Network, ...]
    options: OaiOptions
    as_json: bool = False

    def ask(self, call: Ask[Answer]) -> Answer:
        """Send requests to the source repository with `call`, under the network policy of the settings.

        Raises click.UsageError if the address is no base URL.
        """
        from metaharvest.config.settings import load
        from metaharvest.harvest import adhoc_client
        from metaharvest.model import Site, SiteOptions
        from metaharvest.sites.rows import check_list_url, no_base_url

        try:
            url = check_list_url(self.base_url, is_repository=True)
            why = no_base_url(url)
        except ValueError as error:
            why = f"{error}."
        if why:
            raise click.UsageError(f"{why[:1].upper()}{why[1:]}")
        options = SiteOptions(allow_networks=self.networks, oai=self.options)
        site = Site(0, "", url, (), source_kind="oai-pmh", options=options)
        return adhoc_client.ask(load(self.invocation.config), site, call)


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
        options = options_of(prefix, set_spec=set_spec, begin=begin, until=until, post=post)
        return command(Question(invocation, base_url, networks, options, as_json), **others)

    asking.__doc__ = command.__doc__
    return POST(NETWORKS(AS_JSON(click.pass_obj(asking))))


def options_of(prefix: str = "oai_dc", **more: Any) -> OaiOptions:
    """The options of a source repository that is not registered."""
    from metaharvest.model import OaiOptions

    return OaiOptions(origin="oai", prefix=prefix, **more)


def oai_finding(finding: Finding) -> dict[str, Any]:
    """A finding for JSON."""
    return {
        "rule": finding.rule,
        "level": finding.level.value,
        "message": finding.message,
        "remedy": finding.remedy,
        "oai_identifier": finding.docid or None,
    }
