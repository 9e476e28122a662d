"""Actions in the filters of the templates: `marked` in HTML, `wrapped` in text."""

from __future__ import annotations

import re

from metaharvest.model.actions import todo
from metaharvest.reports.render import marked, wrapped


def _codes(text: str) -> list[str]:
    return re.findall(r"<code [^>]*>(.*?)</code>", marked(text))


def test_text_between_backticks_is_code_and_everything_is_escaped() -> None:
    assert marked("a < b") == "a &lt; b"
    assert _codes("Write `<title>`, not `<b>`.") == ["&lt;title&gt;", "&lt;b&gt;"]


def test_an_action_is_one_piece_of_code_whatever_its_values_are() -> None:
    confirm = todo("sites.confirm", name="<a`b")
    assert _codes(f"If `all` is right: {confirm}.") == ["all", "metaharvest sites confirm &#x27;&lt;a`b&#x27;"]


def test_a_command_stays_in_one_line_of_a_text() -> None:
    confirm = todo("sites.confirm", name="alder  creek by the river")
    said = f"If the keeper of the repository says that it is right, type {confirm} and wait for the next harvest."
    assert wrapped(said, 2).splitlines() == [
        "  If the keeper of the repository says that it is right, type",
        "  `metaharvest sites confirm 'alder  creek by the river'` and wait for the",
        "  next harvest.",
    ]
