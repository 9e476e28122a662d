"""Works: the outputs that are the same. A function of the pairs and of the decisions of people about them.

Outputs that an identifier or a person says to be the same come together first. A group then joins the work of the first
group whose own outputs are the same as one of its own: joining any member instead costs 10 points of precision. Two
outputs of different versions, or that a person calls different, are never in one work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from metaharvest.model.values import frozen

Pair = tuple[int, int]
"""Two numbers of documents, the lower one first."""


@frozen
class Links:
    """The links between outputs.

    `decided`: a person says that they are the same. `sure`: an identifier says so. `likely`: titles say so. `apart`:
    they are versions of each other, or a person says that they are different.
    """

    decided: Collection[Pair] = ()
    sure: Collection[Pair] = ()
    likely: Collection[Pair] = ()
    apart: Collection[Pair] = ()


def works_of(numbers: Iterable[int], links: Links) -> dict[int, int]:
    """Output -> work, the number of its first output. `numbers` has all outputs that the links connect."""
    groups = _Groups(sorted(numbers), links.apart)
    for pairs in (links.decided, links.sure):
        for first, second in sorted(pairs):
            groups.join(first, second)
    members = groups.members()
    group_of = {each: group for group, some in members.items() for each in some}
    likely = _neighbours(links.likely)
    founders: dict[int, int] = {}
    for group in sorted(members):
        near = {group_of[each] for one in members[group] for each in likely[one]}
        for founder in sorted(near & founders.keys()):
            if groups.join(founder, group):
                break
        else:
            founders[group] = group
    return {each: groups.of(each) for each in groups.all}


def _neighbours(pairs: Iterable[Pair]) -> Mapping[int, set[int]]:
    found: defaultdict[int, set[int]] = defaultdict(set)
    for first, second in pairs:
        found[first].add(second)
        found[second].add(first)
    return found


class _Groups:
    """Sets of outputs, each named by its lowest number. They join unless two outputs must stay apart."""

    def __init__(self, numbers: Sequence[int], apart: Collection[Pair]) -> None:
        self.all = numbers
        self._group = {each: each for each in numbers}
        self._members = {each: {each} for each in numbers}
        self._apart = _neighbours(apart)

    def of(self, number: int) -> int:
        return self._group[number]

    def members(self) -> dict[int, set[int]]:
        return {group: set(members) for group, members in self._members.items()}

    def join(self, first: int, second: int) -> bool:
        """Join the groups of two outputs; False if they must not be joined."""
        low, high = sorted((self._group[first], self._group[second]))
        if low == high:
            return True
        stay, come = self._members[low], self._members[high]
        if any(not self._apart[each].isdisjoint(stay) for each in come):
            return False
        stay |= come
        del self._members[high]
        for each in come:
            self._group[each] = low
        return True
