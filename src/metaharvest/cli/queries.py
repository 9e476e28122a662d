"""The read models, for commands. Each module is imported when a command first uses it, so that help answers at once."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metaharvest.queries import changes as changes
    from metaharvest.queries import decisions as decisions
    from metaharvest.queries import document_search as document_search
    from metaharvest.queries import documents as documents
    from metaharvest.queries import figures as figures
    from metaharvest.queries import history as history
    from metaharvest.queries import jobs as jobs
    from metaharvest.queries import live as live
    from metaharvest.queries import log as log
    from metaharvest.queries import outbox as outbox
    from metaharvest.queries import pipeline as pipeline
    from metaharvest.queries import problems as problems
    from metaharvest.queries import records as records
    from metaharvest.queries import requests as requests
    from metaharvest.queries import runs as runs
    from metaharvest.queries import sites as sites
    from metaharvest.queries import trends as trends
    from metaharvest.queries import works as works
else:

    def __getattr__(name: str) -> ModuleType:
        if name.startswith("__"):
            # Python looks for names such as __path__, and goes on after this error alone.
            raise AttributeError(name)
        return import_module(f"metaharvest.queries.{name}")
