"""The search for everybody: what its page and the API for readers have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from metaharvest.model.values import frozen
from metaharvest.services.harvester import Harvester
from metaharvest.services.search import OutputSearch
from metaharvest.web.provider.provider import Provider
from metaharvest.web.provider.view import hidden_of


@frozen
class Readers:
    """The search of the published outputs. `turn` is the turn of a request from an address: it raises Busy."""

    searching: OutputSearch
    turn: Callable[[str], AbstractContextManager[None]]
    page_url: Callable[[str], str]

    def with_url(self, output: Mapping[str, Any]) -> Mapping[str, Any]:
        """An output with the address of its page."""
        return {**output, "url": self.page_url(output["document_id"])}


def readers_of(harvester: Harvester, provider: Provider) -> Readers:
    """The search of an installation, without the sites that this provider does not publish."""
    public = provider.public
    searching = OutputSearch(harvester, lambda session: hidden_of(session, public))
    return Readers(searching, provider.turn, public.page_url)
