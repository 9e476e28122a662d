"""What a repository can be asked for in place of a list that it cannot give: windows of its dates."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from lxml import etree

from metaharvest.errors import FetchError
from metaharvest.model import ListMethod
from metaharvest.sources.base import Patience
from metaharvest.sources.oai_pmh.answers import Answer, NoAnswer
from metaharvest.sources.oai_pmh.bounds import DATE
from metaharvest.sources.oai_pmh.course import Course
from metaharvest.sources.oai_pmh.datestamps import Window
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.sources.oai_pmh.repository import Repository

_MOST_LOOKED_AT = 1_000


class Windows:
    """Halves the windows of one repository's lists, as long as it takes notice of them."""

    def __init__(self, repository: Repository, identity: Identity, prefix: str, patience: Patience) -> None:
        self._repository = repository
        self._identity = identity
        self._prefix = prefix
        self._patience = patience
        self._are_heeded = True

    def halves(self, course: Course, *, in_days: bool) -> tuple[Window, ...] | None:
        """The window of a list in two; None if it is as small as windows are, or they are of no use."""
        if not self._are_heeded:
            return None
        identity = self._identity
        seconds = identity.has_seconds and not in_days and not course.window.has_days
        return course.window.halves(identity.earliest, identity.response_date, seconds=seconds)

    def look_at(self, datestamps: Sequence[str], course: Course) -> None:
        """Note if most of these are not of the window that was asked for: the repository takes no notice of windows."""
        far = sum(map(course.window.is_far, datestamps))
        self._are_heeded = self._are_heeded and 2 * far <= len(datestamps)

    async def has_at_most(self, most: int, course: Course) -> bool | None:
        """Ask whether a window has at most so many records, all named by one answer; None if there is no answer."""
        part = course.part(course.window, ListMethod.LIST_IDENTIFIERS)
        arguments = part.arguments(self._prefix, is_old=self._identity.version != "2.0")
        try:
            (datestamps, number), answer = await self._repository.short(part.verb, arguments, self._patience, _named)
        except (FetchError, NoAnswer):
            return None
        self.look_at(datestamps, course)
        return number <= most and not (answer.token and answer.token.text)


def _named(tree: etree._Element, answer: Answer) -> tuple[list[str], int]:
    """The datestamps of the first records in an answer, and the number of all its records."""
    datestamps = islice(tree.iter(answer.root.name("datestamp")), _MOST_LOOKED_AT)
    number = sum(1 for _ in tree.iter(answer.root.name("identifier")))
    return [(each.text or "")[:DATE] for each in datestamps], number
