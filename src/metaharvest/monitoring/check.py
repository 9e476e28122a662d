"""What a health check says of one thing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is (`OK`, `WARNING` or `PROBLEM`), and what that means or what to do."""

    name: str
    state: str
    message: str


def ok(name: str, message: str) -> Check:
    """All is well."""
    return Check(name, "OK", message)


def warning(name: str, message: str) -> Check:
    """Something to look at, which stops nothing."""
    return Check(name, "WARNING", message)


def problem(name: str, message: str) -> Check:
    """Something that has to be mended."""
    return Check(name, "PROBLEM", message)
