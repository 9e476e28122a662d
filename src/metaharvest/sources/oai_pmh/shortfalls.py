"""Lists that are shorter than announced: completeListSize is an estimate by the protocol.

The first list that is too short is an error, and is asked for once more. The same shortfall in the next list is the
repository's way to count, as of one that counts deleted records and does not list them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_ALLOWED = 100
"""One record in this number may be missing in a list without an error."""


@dataclass(slots=True)
class Shortfalls:
    """By how many records lists were shorter than announced, by their sets; "" is the list of all records.

    `seen`: of lists that were an error, and are asked for once more. `usual`: of lists that were short again.
    `listed`: how many records the last list really has, if it announced more; None otherwise.
    """

    seen: dict[str, int] = field(default_factory=dict)
    usual: dict[str, int] = field(default_factory=dict)
    listed: int | None = None

    def usual_of(self, set_spec: str, announced: int, received: int) -> int:
        """The shortfall of a list that is too short, if that is usual; 0 if the list is an error."""
        short, allowed = announced - received, _allowed(announced)
        before = self.seen.pop(set_spec, None)
        if before is not None and abs(short - before) <= allowed and received:
            self.usual[set_spec] = short
        if not received or short > self.usual.get(set_spec, 0) + allowed:
            self.seen[set_spec] = short
            return 0
        self.listed = received
        return short

    def end(self, set_spec: str, *, is_full: bool) -> None:
        """A list of this set has ended with all that was announced; a list of changes alone says nothing of others."""
        self.seen.pop(set_spec, None)
        if is_full:
            self.usual.pop(set_spec, None)


def is_short(announced: int, received: int) -> bool:
    """Whether a list has too few of the records that were announced."""
    return announced - received > _allowed(announced)


def _allowed(announced: int) -> int:
    return max(1, announced // _ALLOWED)
