"""The settings that the documentation shows can be loaded as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from metaharvest.config.settings import load

DOCS = Path(__file__).resolve().parent.parent / "docs"
NO_SETTINGS = {"architecture.md"}
"""Its examples are parts of a pyproject.toml."""

EXAMPLES = {
    f"{page.relative_to(DOCS)}-{number}": example
    for page in sorted(DOCS.rglob("*.md"))
    if page.name not in NO_SETTINGS
    for number, example in enumerate(re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S), start=1)
}


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)
def test_the_settings_of_an_example_can_be_loaded(example: str, tmp_path: Path) -> None:
    file = tmp_path / "metaharvest.toml"
    file.write_text(example, encoding="utf-8")
    load(file, {})


def test_each_target_with_a_page_has_an_example() -> None:
    for page in (DOCS / "targets").glob("*.md"):
        assert any(f'kind = "{page.stem}"' in example for example in EXAMPLES.values())
