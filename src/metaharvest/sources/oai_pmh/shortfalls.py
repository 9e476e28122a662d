"""Lists that are shorter than announced: completeListSize is an estimate by the protocol.

The first list that is too short is an error, and is asked for once more. The same shortfall in the next list is the
repository's way to count, for example to count deleted records that it does not list.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_ALLOWED = 100
"""One record in this number may be missing in a list without an error."""


@dataclass(slots=True)
class Shortfalls:
    """The number of records that lists lacked, by setSpec; "" is the list of all records.

    `seen`: lists that were an error, and are asked for once more. `usual`: lists that were short again. `listed`: the
    records of the last list, if it announced more; None otherwise.
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
        """Forget the shortfall of this set: its list had all that was announced.

        Only a full list changes what is usual.
        """
        self.seen.pop(set_spec, None)
        if is_full:
            self.usual.pop(set_spec, None)


def is_short(announced: int, received: int) -> bool:
    """True if a list has too few of the announced records."""
    return announced - received > _allowed(announced)


def _allowed(announced: int) -> int:
    return max(1, announced // _ALLOWED)
