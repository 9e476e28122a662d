"""Which document people mean: they write docids and document ids, and leave it to the program to tell which."""

from __future__ import annotations

from metaharvest.errors import MetaharvestError
from metaharvest.targets.base import Target


def find_document(target: Target, name: str) -> tuple[str, int | None]:
    """The document that `name` means, and the revision if it names one: read as a docid first, then as a document id.

    Raises MetaharvestError if the target has neither, TargetError if it does not answer.
    """
    head, _, tail = name.rpartition(".")
    held: list[int] = []
    if head and tail.isdecimal() and tail.isascii():
        held = [each.revision for each in target.revisions(head)]
        if int(tail) in held:
            return head, int(tail)
    if target.revisions(name):
        return name, None
    if held:
        known = ", ".join(map(str, held))
        raise MetaharvestError(f"The target has no revision {tail} of {head}. It has: {known}.")
    raise MetaharvestError(f"The target has no document '{name}'. `metaharvest target list` lists those it has.")
