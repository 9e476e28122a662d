"""Progress on a terminal: a bar for each site. Nothing on anything else."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from metaharvest.services.runs import Progress
from metaharvest.text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bars


_MOST_BARS = 20
"""With more sites than this, a bar disappears when its site has ended."""


class _SiteBars(Progress):
    """A bar for each site."""

    def __init__(self, bars: Bars) -> None:
        from rich.progress import TaskID

        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def site_began(self, name: str) -> None:
        from rich.markup import escape

        self._tasks[name] = self._bars.add_task(escape(one_line(name)), total=None)

    def documents_listed(self, name: str, listed: int) -> None:
        self._bars.update(self._tasks[name], total=listed)

    def documents_ended(self, name: str, number: int) -> None:
        self._bars.advance(self._tasks[name], number)

    def site_ended(self, name: str) -> None:
        """The bar stops at the number of documents of the site. A site that could not begin has none."""
        if (task := self._tasks.get(name)) is None:
            return
        stays = len(self._tasks) <= _MOST_BARS
        self._bars.update(task, total=self._bars.tasks[task].completed, visible=stays)
        self._bars.stop_task(task)


@contextmanager
def shown_progress(*, transient: bool = False) -> Iterator[Progress]:
    """Bars on stderr, if it is a terminal, as long as the context lasts; `transient` ones disappear afterwards."""
    if not sys.stderr.isatty():
        yield Progress()
        return
    from rich import progress as rich
    from rich.console import Console

    shown = (
        rich.TextColumn("{task.description}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
    )
    with rich.Progress(*shown, console=Console(stderr=True), transient=transient) as bars:
        yield _SiteBars(bars)
