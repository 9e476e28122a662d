"""Oddities of a list: the number and the first example of each kind, and a finding about it at the list's end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from metaharvest.model import Finding, Level
from metaharvest.sources.oai_pmh.repair import TOO_DEEP
from metaharvest.text import one_line


class _Number(int):
    """A number in a sentence: `{0:,}` writes it, `{0:is|are}` writes the word that goes with it."""

    def __format__(self, how: str) -> str:
        for_one, bar, for_more = how.partition("|")
        return (for_one if self == 1 else for_more) if bar else super().__format__(how)


@dataclass(slots=True)
class Oddities:
    """Counts the oddities of one list by their kind, each kind with its first example."""

    _counted: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, kind: str, example: str = "", number: int = 1) -> None:
        """Count an oddity, or this number of them."""
        before, first = self._counted.get(kind) or (0, one_line(example, 200))
        self._counted[kind] = before + number, first

    def number(self, kind: str) -> int:
        """The number of oddities of this kind."""
        return self._counted.get(kind, (0, ""))[0]

    def counted(self) -> dict[str, tuple[int, str]]:
        """The number and the first example of each kind."""
        return dict(self._counted)

    def add(self, counted: Mapping[str, Sequence[Any]]) -> None:
        """Add the oddities of another part of the list; see counted()."""
        for kind, (number, example) in counted.items():
            self.note(kind, example, number)

    def restart(self, counted: Mapping[str, Sequence[Any]]) -> None:
        """Forget all oddities but these: a part of the list is read again."""
        self._counted.clear()
        self.add(counted)

    def finding(self, kind: str) -> Finding | None:
        """The finding about the oddities of this kind; None if there are none."""
        if not (number := self.number(kind)):
            return None
        rule, sentence, remedy, level = _KINDS[kind]
        example = self._counted[kind][1]
        return Finding(rule, sentence.format(_Number(number), example), remedy or well_formed(example), level)

    def findings(self, *, is_whole: bool = True) -> tuple[Finding, ...]:
        """The findings about a list. If it is not whole, records that came twice do not count."""
        kinds = [kind for kind in _KINDS if kind != "days" and (is_whole or kind != "twice")]
        return tuple(finding for finding in map(self.finding, kinds) if finding)


_KINDS = {
    "nameless": (
        "oai.identifier",
        "{0:,} of the list's records have no identifier that can be read; they cannot be harvested.",
        "The repository's keeper should write an identifier into each header.",
        Level.ERROR,
    ),
    # https://github.com/geopython/pycsw/issues/899
    "element": (
        "oai.protocol",
        "The list has {0:,} elements that are neither records nor a resumption token, such as {1}; they are left out.",
        "The repository's keeper should write only records into a list, and a resumptionToken at its end.",
        Level.ERROR,
    ),
    # https://github.com/omeka/Omeka/issues/610
    "notice": (
        "oai.protocol",
        "The list has {0:,} {0:element|elements} of HTML between its records, such as {1}, in which programs write "
        "warnings.",
        "The repository's keeper should find their reason, and let them go to the log. No record is lost by them.",
        Level.WARNING,
    ),
    "tokens": (
        "oai.token",
        "{0:,} of the list's answers {0:has|have} several resumption tokens; the last that is not empty was followed "
        "({1}).",
        "The repository's keeper should end each page with one resumption token, which is empty only on the last page.",
        Level.WARNING,
    ),
    "namespace": (
        "oai.protocol",
        "{0:,} of the list's records are not in the namespace of their answer (but in: {1}); they were accepted.",
        "The repository's keeper should write them in the namespace of the answer: other harvesters leave them out.",
        Level.WARNING,
    ),
    "crowded": (
        "oai.too-large",
        "{0:,} of the list's answers {0:was|were} read record by record, as {0:it has|they have} too much in one "
        "place: {1}.",
        "The repository's keeper should make the large parts of its answers smaller: no harvester needs as much.",
        Level.WARNING,
    ),
    "too-long": (
        "oai.too-long",
        "{0:,} {0:value of the list is|values of the list are} too long, and {0:was|were} left out or cut: such as "
        "{1}.",
        "The repository's keeper should shorten them: a setSpec has 1,024 characters at most, and the about "
        "containers of one record have 1 MB.",
        Level.WARNING,
    ),
    "no-format": (
        "oai.no-metadata",
        "{0:,} of the list's records {0:does|do} not exist in this format, such as {1}.",
        "No action is needed, unless they should exist.",
        Level.WARNING,
    ),
    # https://github.com/MarkVSullivan/SobekCM-Web-Application/issues/6
    "foreign": (
        "oai.protocol",
        "{0:,} of the list's records {0:is|are} not in the set that was asked for, though others are: such as {1}. "
        "{0:It was|They were} accepted.",
        "The repository's keeper should check that all pages of a list are of its set: resumption tokens may lose it.",
        Level.WARNING,
    ),
    # https://github.com/TreeBASE/treebase/issues/194, https://github.com/infrae/pyoai/pull/30
    "datestamp": (
        "oai.datestamp",
        "{0:,} of the list's records {0:has|have} a datestamp that OAI-PMH does not have, such as {1}.",
        "The repository's keeper should write them in UTC, like 2026-11-20T03:00:00Z or 2026-11-20.",
        Level.WARNING,
    ),
    "days": (
        "oai.granularity",
        "The repository says that its datestamps have seconds; {0:,} of the list's records {0:has|have} days. What "
        "changes later on such a day would not be listed, and whole days are asked for from now on.",
        "The repository's keeper corrects the granularity in Identify, or has the datestamps written with seconds.",
        Level.WARNING,
    ),
    "ill-formed": (
        "oai.ill-formed",
        "{0:,} of the list's answers {0:was|were} not well-formed XML ({1}); what could be read was taken.",
        "",
        Level.WARNING,
    ),
    # https://github.com/artefactual/atom/issues/1581, https://github.com/DOAJ/doaj/issues/712
    "twice": (
        "oai.duplicates",
        "{0:,} of the list's records came twice. If that is because the list moved while it was read, other records "
        "may have been left out.",
        "The repository should list the records in an order that does not change while they are read, such as the "
        "order of their identifiers. A full harvest finds the records that were left out.",
        Level.WARNING,
    ),
}
"""The rule, the message, the remedy and the level of each kind. "days" is for source repositories that promise seconds.
"""


IN_THE_LOG = "The repository's keeper should find the reason in its log, and repair it."
"""The remedy for an answer that did not come, or not to its end."""

IN_UTF_8 = (
    'The repository should write its answers in UTF-8, and begin them with <?xml version="1.0" encoding="UTF-8"?>, as '
    "the protocol says."
)
"""The remedy for an answer whose characters or declaration cannot be read."""

_WELL_FORMED = (
    "The repository should make its answers with a library that writes XML: mostly a & or < in a text is not "
    "escaped, or there is something before <?xml."
)


def well_formed(damage: str) -> str:
    """The remedy for an answer in which the parser found this damage."""
    if damage == TOO_DEEP:
        return "The repository's keeper should look for elements that are never closed, and correct the record."
    if damage.startswith(("Invalid bytes", "Malformed declaration")):
        return IN_UTF_8
    return IN_THE_LOG if damage.startswith("Premature end") else _WELL_FORMED
