"""The lines that the benchmarks print: what was measured, beside what, the ratio of the two, and the goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table

HEADINGS = ("benchmark", "measured", "", "beside", "ratio", "goal", "")


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement. `beside` is the yardstick of the same run; `goal` the highest ratio, or value, to be reached."""

    name: str
    value: float
    unit: str = "s"
    beside: str = ""
    yardstick: float | None = None
    goal: float | None = None
    goal_is_ratio: bool = False
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.value / self.yardstick if self.yardstick else None

    def cells(self) -> tuple[str, ...]:
        compared = self.ratio if self.goal_is_ratio else self.value
        met = "" if self.goal is None or compared is None else ("reached" if compared <= self.goal else "missed")
        goal = "" if self.goal is None else f"{self.goal:g}{'' if self.goal_is_ratio else f' {self.unit}'}"
        beside = f"{self.beside}: {number(self.yardstick)} {self.unit}" if self.yardstick else self.beside
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return self.name, f"{number(self.value)} {self.unit}", self.note, beside, ratio, goal, met


def number(value: float | None) -> str:
    """Three significant digits or whole numbers: more is noise."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def show(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on the terminal."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify=_justified(heading))
    for row in rows:
        table.add_row(*row)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=180)
    console.print(table)


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as a Markdown table."""
    dashes = ["--:" if _justified(heading) == "right" else "---" for heading in headings]
    return "\n".join(f"| {' | '.join(row)} |" for row in (headings, dashes, *rows))


def _justified(heading: str) -> Literal["left", "right"]:
    return "left" if heading in ("", "benchmark", "beside") else "right"
