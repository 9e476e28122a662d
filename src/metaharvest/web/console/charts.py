"""Bar charts for pages: the places of the bars, which templates draw as SVG. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 520
HEIGHT = 110
_TOP = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, in units of the drawing; `label` is its text for people who point at it."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing of bars. `most` is the largest value; `begin` and `end` are the texts at the ends of the axis."""

    title: str
    bars: tuple[Bar, ...]
    most: float
    begin: str
    end: str


def chart(title: str, values: Sequence[tuple[str, float | None]], unit: str = "") -> Chart:
    """A chart of these values with their labels in order. A value that is None has no bar."""
    most = max((value for _, value in values if value is not None), default=0)
    step = WIDTH / max(1, len(values))
    bars = []
    for place, (label, value) in enumerate(values):
        if value is None:
            continue
        height = (HEIGHT - _TOP) * value / most if most else 0.0
        if value:
            height = max(height, 1.5)
        shown = f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
        bars.append(
            Bar(
                round(place * step + step * 0.12, 2),
                round(HEIGHT - height, 2),
                round(step * 0.76, 2),
                round(height, 2),
                f"{label}: {shown}{unit and f' {unit}'}",
            )
        )
    return Chart(title, tuple(bars), most, values[0][0] if values else "", values[-1][0] if values else "")
