"""Health checks of the installation, and the ping that reports the end of a run to a monitor."""

from __future__ import annotations

from metaharvest.model.values import frozen


@frozen
class Check:
    """The object of a check, its state (`OK`, `WARNING` or `PROBLEM`), and the meaning or the next step.

    `is_on_tonight`: the page *Tonight* has the same problem in its lists of sites.
    """

    name: str
    state: str
    message: str
    is_on_tonight: bool = False


def ok(name: str, message: str) -> Check:
    """All is well."""
    return Check(name, "OK", message)


def warning(name: str, message: str) -> Check:
    """Something to check, which stops nothing."""
    return Check(name, "WARNING", message)


def problem(name: str, message: str) -> Check:
    """Something that must be corrected."""
    return Check(name, "PROBLEM", message)
