"""Counts the records of one window's list, page by page, and compares them with the announced number."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from metaharvest.model import Finding, Level
from metaharvest.model.lengths import TOKEN
from metaharvest.model.values import frozen
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.protocol import Token
from metaharvest.sources.oai_pmh.responses import Response
from metaharvest.sources.oai_pmh.versions import Versions
from metaharvest.text import counted, one_line

MOST_STALE = 10
"""Pages in a row without new records, each with a token, after which the list breaks off.

Seen at https://github.com/coneda/kor/issues/55.
"""

MOST_EMPTY = 1_000
"""Empty pages in a row at the beginning of a list, or without an announced size, after which the list breaks off.

A source repository may filter its pages by set: https://github.com/libris/librisxl/pull/1812
"""

UNDATED = 0
"""The version of a record without a datestamp, as in lists of identifiers in 1.x. It may be any version."""

_NEXT_TOKEN = (
    "The repository should let each token lead to the records after its page, and end the last page with an empty "
    "resumptionToken."
)
_ALL_RECORDS = (
    "The repository's keeper should find out why the others were left out, or set completeListSize to the number of "
    "records in the list."
)
_ASKED_AGAIN = "The next harvest asks for this list once more."


@dataclass(slots=True)
class Counts:
    """The records of one window's list, since its beginning in this harvest."""

    named: dict[int, int] | Versions
    """The version of each record that came, by its key (see key_and_version)."""
    before: int = 0
    """The number of records that an earlier harvest received."""
    announced: int | None = None
    """The last completeListSize."""
    highest: int = 0
    """The highest completeListSize."""
    moved: int = 0
    """The number of records that came a second time, with another datestamp or in another answer."""
    received: int = 0
    """The number of records that this harvest received."""
    nameless: int = 0
    """The number of received records without a key."""
    pages: int = 0
    """The number of whole answers."""
    fresh: int = 0
    """The number of received records that had not come in this harvest before."""
    has_failed: bool = False
    """True if an answer has failed: its records come a second time."""
    used: set[int] = field(default_factory=set)
    """Hashes of the tokens that were sent."""
    on_page: set[int] = field(default_factory=set)
    """The keys of the records in the answer that is being read; the first answer has all of `named`, and needs none."""
    is_first: bool = True
    """True if all of `named` came in the answer that is being read."""
    stale: int = 0
    """The number of whole answers in a row without new records."""
    last: int = 0
    """The number of records in the last answer with records."""
    most: int = 0
    """The number of records in the longest answer."""
    lacks_token: bool = False
    """True if the last answer had no resumptionToken at all, after answers that had one."""
    in_doubt: bool = False
    """True if the list has ended, perhaps too early."""
    has_ended: bool = False
    notes: list[Finding] = field(default_factory=list)
    """Warnings about the list."""

    @property
    def different(self) -> int:
        """The number of different records, as far as this harvest knows."""
        return self.before + len(self.named) + self.nameless

    def begin_answer(self) -> None:
        """Begin to count the records of the next answer."""
        self.on_page.clear()
        self.is_first = not self.named

    def is_on_page(self, key: int) -> bool:
        """True if a record of `named` came in the answer that is being read."""
        return self.is_first or key in self.on_page

    def note_unusable(self, answer: Response) -> int:
        """Note the unusable records of an answer. Returns how many of them are new."""
        new = 0
        for key in answer.unusable:
            if key is not None:
                new += key not in self.named
                self.named[key] = UNDATED
        self.nameless += len(answer.unusable) - new
        return new

    def follow(self, answer: Response, sent: str, number: int, new: int) -> Finding | None:
        """Count a whole answer with `number` records, `new` of them new, to the token that was `sent`.

        Returns the error if its token is not to be followed.
        """
        token = answer.token or Token("")
        if token.too_long:
            message = (
                f"The resumption token of a page has {token.too_long:,} characters; {TOKEN:,} are sent back at most."
            )
            return Finding("oai.token", message, "The repository should use short tokens.")
        if sent:
            self.used.add(hash(sent))
        self.announced = token.size or self.announced
        self.highest = max(self.highest, self.announced or 0)
        if (token.text or token.is_blank) and self.announced and self.different > self.announced:
            # More records came than announced: https://github.com/OpenSKOS/OpenSKOS/issues/8
            self.announced = None
        # Older versions of pycsw end a list with 0: https://github.com/geopython/pycsw/pull/966
        if token.text == "0" and (self.different == self.announced or not (number or self.announced)):
            self.has_ended = True
        self.received += number
        self.pages += 1
        self.stale = 0 if new else self.stale + 1
        if not token.text and (sent or token.is_blank):
            self._end_without_token(number, answer)
        self.last, self.most = number or self.last, max(self.most, number)
        # The token 0 at the end of a list may have been sent before.
        if self.has_ended:
            return None
        # https://github.com/coneda/kor/issues/55, https://github.com/afuetterer/oaipmh-scythe/issues/411
        if hash(token.text) in self.used and not new:
            if token.text == sent and self._end_in_token(number):
                return None
            shown = one_line(token.text, 100)
            message = f"The repository gives the same resumption token again, with no new records: {shown}."
            return Finding("oai.broken-off", message, _NEXT_TOKEN)
        may_be_filtered = not (number or (self._received and self.announced))
        if token.text and self.stale >= (MOST_EMPTY if may_be_filtered else MOST_STALE):
            message = f"{self.stale} pages in a row had no new records, and a token each."
            return Finding("oai.broken-off", message, _NEXT_TOKEN)
        return None

    def end_in_error(self, answer: Response) -> None:
        """Note that noRecordsMatch, in answer to a token, has ended the list.

        Seen at https://github.com/inveniosoftware/invenio-app-rdm/issues/2715.
        """
        message = f"A list of the repository ended in an error: {', '.join(map(str, answer.errors))}."
        if not self.announced or self._is_size_of_page:
            self._doubt(f"{message} {counted(self._received, 'record')} had come", Level.ERROR)
        else:
            self.notes.append(Finding("oai.token", message, _NEXT_TOKEN, Level.WARNING))

    @property
    def _received(self) -> int:
        return self.before + self.received

    @property
    def _is_size_of_page(self) -> bool:
        """True if the announced number may be the number of records on a page."""
        return self.pages < 2 and self._received == self.announced

    def _end_without_token(self, number: int, answer: Response) -> None:
        """Note the end of the list on a page with `number` records; the page may have lost its token.

        In 2.0, a list ends with an empty token. A page that is shorter than the others may also have none, or white
        space. Some lists lose the token of their first page: https://github.com/next-l/enju_leaf/issues/1538
        """
        self.lacks_token = answer.token is None and not answer.root.is_old
        is_odd = self.lacks_token or (answer.token is not None and answer.token.is_blank)
        if (number and not is_odd) or (number or self.last) < self.most:
            return
        if self.announced and not (self.pages == 2 and self._received == self.announced):
            return
        # Some source repositories never send an empty token. In 1.x, a list of nothing means that nothing matches.
        level = Level.WARNING if number or answer.token else Level.ERROR
        where = "a full page, without the empty resumptionToken of an end" if number else "a page without records"
        self._doubt(f"The list ended in {where}: {counted(self._received, 'record')} had come", level)

    def _end_in_token(self, number: int) -> bool:
        """End the list if it is over on a page whose token leads to the page itself; it has `number` records, none new.

        Seen at https://github.com/infrae/pyoai/pull/8 and https://github.com/DOAJ/doaj/issues/1396.
        """
        message = "The last page of the list has a resumption token, which leads to the page itself"
        if self.announced and self.announced == self.different and self.announced > self.most:
            self.notes.append(Finding("oai.token", f"{message}.", _NEXT_TOKEN, Level.WARNING))
        elif not number and self._received and self.announced in (None, self.different):
            self._doubt(f"{message}: {counted(self._received, 'record')} had come", Level.WARNING)
        else:
            return False
        self.has_ended = True
        return True

    def _doubt(self, message: str, level: Level) -> None:
        """Note that the list has ended, perhaps without some of its records."""
        message += ", and no completeListSize says whether these are all. So no record counts as missing."
        self.notes.append(Finding("oai.token", message, _NEXT_TOKEN, level))
        self.in_doubt = True


@frozen
class SizeCheck:
    """The number of records that came, compared with the announced number.

    This number of records may have been `left_out`. `short`: the list lacks this number, and must be repeated; 0: it is
    no error. `usual`: the source repository announces this number too many in each list. `finding`: the error, or a
    warning.
    """

    left_out: int = 0
    short: int = 0
    usual: int = 0
    finding: Finding | None = None

    @property
    def error(self) -> Finding | None:
        """The error; None if the list has ended well."""
        return self.finding if self.short else None


def check_size(counts: Counts, *, short: int | None, usual: int, is_full: bool) -> SizeCheck:
    """Compare the number of records with completeListSize, which is an estimate by the protocol.

    A list that lacks more than 1 % is an error the first time. The same shortfall a second time (`short` is that of the
    last list) is no error, and becomes `usual`: some source repositories count deleted records that they do not list,
    or the records of all sets (https://github.com/MI-DPLA/combine/issues/240). A list whose last page lost its token is
    an error each time (https://github.com/coneda/kor/issues/110).
    """
    announced, received = counts.announced or 0, counts.before + counts.received
    lacks, left_out, allowed = announced - received, counts.moved, max(1, announced // 100)
    if announced >= counts.different:  # otherwise it is the size of something else
        left_out = max(announced, counts.highest) - counts.different
    is_short = lacks > allowed
    if not is_short and is_full:
        usual = 0
    if left_out <= 0:
        return SizeCheck(usual=usual)
    message = (
        f"The repository announced a list of {counted(announced, 'record')} (completeListSize) and sent {received:,}."
    )
    if is_short and counts.lacks_token:
        why = Finding("oai.broken-off", f"{message} Its last page has no resumptionToken.", _NEXT_TOKEN)
        return SizeCheck(left_out, lacks, usual, why)
    if is_short:
        if short and received and abs(lacks - short) <= allowed:
            usual = lacks
        if not received or lacks > usual + allowed:
            why = Finding("oai.broken-off", f"{message} {_ASKED_AGAIN}", _ALL_RECORDS)
            return SizeCheck(left_out, lacks, usual, why)
        left_out = max(0, left_out - lacks)
        message += " It does so in each list: it counts records that it does not list, and the list is complete."
    warning = Finding("oai.list-size", message, _ALL_RECORDS, Level.WARNING) if lacks > 0 else None
    return SizeCheck(left_out, 0, usual, warning)


def key_and_version(record: ListedRecord) -> tuple[int, int]:
    """The key of a record, and of this version of it."""
    origin = record.document.origin
    assert origin is not None
    is_dated = bool(origin.datestamp) or record.deleted
    return hash(origin.identifier), _version(origin.datestamp, record.deleted) if is_dated else UNDATED


@lru_cache(maxsize=1_000)
def _version(datestamp: str, deleted: bool) -> int:
    """The number of a version. Records that share a datestamp share the object: 140,000 objects take 5 MB."""
    return hash((datestamp, deleted))
