"""Services are for every door: none needs the command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import metaharvest


@pytest.mark.slow
def test_no_service_needs_the_command_line() -> None:
    """A console and workers import all of them without click."""
    folder = Path(metaharvest.__file__).parent / "services"
    names = [f"metaharvest.services.{file.stem}" for file in folder.glob("*.py") if file.stem != "__init__"]
    program = (
        f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\n"
        "print(*(name for name in sys.modules if name.startswith(('click', 'metaharvest.cli'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_help_needs_no_models() -> None:
    """`metaharvest --help` answers at once: it imports neither the values of a run nor a database."""
    program = (
        "import metaharvest.cli, sys\n"
        "print(*(name for name in sys.modules if name.startswith(('metaharvest.model', 'sqlalchemy', 'pydantic'))))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.slow
def test_a_run_needs_no_tables_of_the_console_workers_or_pipeline() -> None:
    """A mapped class takes 3 ms, and all of them are needed only where tables are made, migrated or copied."""
    program = (
        "import metaharvest.services.runs, sys\n"
        "print(*(name for name in sys.modules if name.startswith('metaharvest.database.') and name.endswith(\n"
        "    ('console_models', 'pipeline_models', 'worker_models', 'all_tables'))))\n"
        "print(*(name for name in sys.modules if name.startswith('sqlalchemy.dialects.postgresql')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_process_that_reads_answers_needs_no_event_loop_and_no_settings() -> None:
    """Each of these takes 3 MB or more, and a run has several such processes."""
    program = (
        "import metaharvest.sources.oai_pmh.response_reader, sys\n"
        "print(*({'asyncio', 'ssl', 'pydantic', 'sqlalchemy', 'xmlschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.slow
def test_a_run_needs_no_templates_before_its_reports() -> None:
    """Reports and mail take 7 MB: they are imported when a site's report is made, after its list."""
    program = (
        "import metaharvest.services.runs, metaharvest.harvest.dispatcher, sys\n"
        "print(*({'jinja2', 'smtplib', 'metaharvest.mail', 'metaharvest.reports'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
