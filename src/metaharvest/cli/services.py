"""The use cases, for commands. Each module is imported when a command first uses it, so that help answers at once."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metaharvest.services import accounts as accounts
    from metaharvest.services import change_hooks as change_hooks
    from metaharvest.services import check_report as check_report
    from metaharvest.services import documents as documents
    from metaharvest.services import export as export
    from metaharvest.services import harvester as harvester
    from metaharvest.services import installation as installation
    from metaharvest.services import jobs as jobs
    from metaharvest.services import json_documents as json_documents
    from metaharvest.services import pipeline as pipeline
    from metaharvest.services import registrations as registrations
    from metaharvest.services import reports as reports
    from metaharvest.services import requests as requests
    from metaharvest.services import runs as runs
    from metaharvest.services import schedule_files as schedule_files
    from metaharvest.services import search as search
    from metaharvest.services import sites as sites
    from metaharvest.services import source_repositories as source_repositories
    from metaharvest.services import tables as tables
    from metaharvest.services import targets as targets
    from metaharvest.services import works as works
else:

    def __getattr__(name: str) -> ModuleType:
        if name.startswith("__"):
            # Python looks for names such as __path__, and goes on after this error alone.
            raise AttributeError(name)
        return import_module(f"metaharvest.services.{name}")
