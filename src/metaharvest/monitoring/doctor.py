"""All health checks: the settings, the files and servers in them, the database, and a test mail.

The callers show them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from metaharvest.config.settings import load
from metaharvest.errors import SettingsError
from metaharvest.monitoring.check import Check, problem
from metaharvest.monitoring.database_checks import check_database
from metaharvest.monitoring.settings_checks import check_settings, send_test_mail


def examine(config: Path | None, clock: Callable[[], datetime], *, test_mail: bool = False) -> Iterator[Check]:
    """Every check of the installation with this settings file, one by one. Only a test mail changes anything."""
    try:
        settings = load(config)
    except SettingsError as error:
        yield from (problem("settings", sentence) for sentence in error.problems)
        return
    yield from check_settings(settings)
    yield from check_database(settings, clock())
    if test_mail:
        yield from send_test_mail(settings, clock())
