"""Two states of the program, measured in turn: what one pair of runs shares, the machine and its mood, cancels out."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.installation import Cost
from benchmarks.states import State
from benchmarks.table import number

COMPARED = ("benchmark", "time before", "after", "ratio", "processor before", "after", "ratio")
COMPARED_HEADINGS = (*COMPARED, "memory before", "after", "ratio")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the same work cost two states, a `Cost` a pair."""

    name: str
    before: Sequence[Cost]
    after: Sequence[Cost]

    def cells(self) -> tuple[str, ...]:
        """The medians of both, and of the ratios after/before of the pairs, with the lowest and the highest ratio."""
        measures: tuple[tuple[Callable[[Cost], float], str], ...] = (
            (lambda cost: cost.wall, "s"),
            (lambda cost: cost.processor, "s"),
            (lambda cost: cost.memory, "MB"),
        )
        return self.name, *(cell for measure, unit in measures for cell in self._cells(measure, unit))

    def _cells(self, measure: Callable[[Cost], float], unit: str) -> tuple[str, str, str]:
        before, after = list(map(measure, self.before)), list(map(measure, self.after))
        ratios = [later / earlier for earlier, later in zip(before, after, strict=True)]
        spread = f" ({min(ratios):.2f}-{max(ratios):.2f})" if len(ratios) > 1 else ""
        return (
            f"{number(statistics.median(before))} {unit}",
            f"{number(statistics.median(after))} {unit}",
            f"{statistics.median(ratios):.2f}{spread}",
        )


@dataclass(frozen=True, slots=True)
class Pairs:
    """The comparison of two states: this number of pairs of runs, in turn with each state first."""

    before: State
    after: State
    number: int

    def compare(
        self, name: str, measure: Callable[[State], Cost], prepare: Callable[[int], None] | None = None
    ) -> Comparison:
        """Measure both states in turn; `prepare` is called with the number of the pair before each pair."""
        costs: dict[State, list[Cost]] = {self.before: [], self.after: []}
        for pair in range(1, self.number + 1):
            if prepare is not None:
                prepare(pair)
            for state in (self.before, self.after) if pair % 2 else (self.after, self.before):
                costs[state].append(measure(state))
            spent = ", ".join(f"{state.name} {number(of_state[-1].wall)} s" for state, of_state in costs.items())
            print(f"{name}, pair {pair} of {self.number}: {spent}", file=sys.stderr, flush=True)
        return Comparison(name, costs[self.before], costs[self.after])
