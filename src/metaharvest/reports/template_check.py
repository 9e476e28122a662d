"""Tries the templates of a folder in a process of its own, with limits: a template is a program that may never end.

As a program (`python -m metaharvest.reports.template_check`) it reads the settings that matter as JSON from standard
input, and prints a JSON list with a sentence for each template that fails.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from metaharvest.config.settings import ReportsSettings, Settings
from metaharvest.reports.render import broken_templates
from metaharvest.text import one_line

SECONDS = 30
"""Processor time."""

_MEMORY_BYTES = 2_000_000_000
"""Address space, which is more than the memory in use."""


def problems_of_templates(settings: Settings) -> list[str]:
    """A sentence for each template that fails. Templates of a folder get 30 seconds and 2 GB in another process."""
    if settings.reports.templates is None:
        return broken_templates(settings)
    given = {
        "templates": str(settings.path(settings.reports.templates)),
        "docs_url": settings.reports.docs_url,
        "seconds": SECONDS,
    }
    program = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(program, input=json.dumps(given), capture_output=True, text=True, timeout=2 * SECONDS)
        found = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return [
            f"The templates in {one_line(str(given['templates']), 1000)} take too long, or too much memory: {_REMEDY}"
        ]
    return [str(sentence) for sentence in found]


_REMEDY = "they must end within 30 seconds and 2 GB; look for a loop over very many values."


def main() -> None:
    """Check the templates in this process, as standard input asks."""
    given = json.load(sys.stdin)
    resource.setrlimit(resource.RLIMIT_CPU, (given["seconds"], given["seconds"]))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    reports = ReportsSettings(templates=Path(given["templates"]), docs_url=given["docs_url"])
    print(json.dumps(broken_templates(Settings(reports=reports))))


if __name__ == "__main__":
    main()
