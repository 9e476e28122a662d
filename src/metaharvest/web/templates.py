"""The templates of pages."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from metaharvest.text import clean


def environment(folder: Path) -> Environment:
    """The templates in a folder: values are escaped, control characters left out, undefined names an error."""
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _cleaned(value: object) -> object:
    return clean(value) if type(value) is str else value
