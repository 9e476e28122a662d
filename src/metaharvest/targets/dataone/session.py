"""A session with a member node: its holdings, uploads, deletions.

Two creations of one PID at a time can damage the node's storage, and Metacat deletes bytes when it refuses one. So the
node is queried before anything is sent, and nothing is ever sent again. After a failed response the node is queried for
the document, which may have arrived.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from metaharvest.config.target_settings import TargetSettings
from metaharvest.errors import TargetError
from metaharvest.model import Action, Finding, Holding, ListedDocument
from metaharvest.targets.base import Upload
from metaharvest.targets.dataone import refusals, system_metadata
from metaharvest.targets.dataone.listing import NodeListing, parts_of
from metaharvest.targets.dataone.node import MOST_REVISIONS, Node, Unreadable
from metaharvest.targets.dataone.system_metadata import LONGEST_IDENTIFIER, Series, SystemMetadata
from metaharvest.targets.http import Unanswered
from metaharvest.targets.interruption import carried, require_time
from metaharvest.text import one_line

log = logging.getLogger(__name__)

_SIDE_BY_SIDE = 4
_LONGEST_CHAIN = 500
"""The most objects in a chain, from the highest listed revision on."""


@dataclass(slots=True, eq=False, repr=False)
class DataOneSession:
    """The node, for any site: the token or the certificate in the settings is our identity.

    `require_login` raises TargetError if the node no longer lets us create objects. `archived` has the highest known
    archived revision of each document whose series was read, else -1.
    """

    node: Node
    listing: NodeListing
    settings: TargetSettings
    rights_holder: str
    require_login: Callable[[], None]
    archived: dict[str, int] = field(default_factory=dict)

    writes_in_journal: Literal[False] = field(default=False, init=False)

    # -- what it holds

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revisions; from the listing if that is cheaper, else series by series."""
        if not self.listing.note_questions(len(document_ids)):
            found = self.by_series(document_ids)
            return found | self._listed([each for each in document_ids if each not in found])
        found = self._listed(document_ids)
        # The listing of a large node has the known formats alone.
        rest = [] if self.listing.is_whole else [each for each in document_ids if each not in found]
        return found | self.by_series(rest)

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """The highest archived revisions, series by series. `holdings` leaves them out from then on."""
        self.by_series([each for each in document_ids if each not in self.archived])
        archived = [each for each in document_ids if self.archived[each] >= 0]
        # A document that came back after a deletion has a chain without a series id.
        for document_id, revision in self.listing.highest(archived).items() if archived else ():
            if revision > self.archived[document_id] and self._is_archived(f"{document_id}.{revision}"):
                self.archived[document_id] = revision
        return {each: self.archived[each] for each in archived}

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """True if it has these bytes; they are fetched if the node uses another digest than SHA-256."""
        pid = f"{document_id}.{revision}"
        meta = self._object(pid)
        if meta is None:
            return False
        if meta.checksum.sha256 is not None:
            return meta.checksum.sha256 == sha256
        content = self.node.content(pid)
        return content is not None and hashlib.sha256(content).hexdigest() == sha256

    def by_series(self, document_ids: Sequence[str]) -> dict[str, Holding]:
        """The highest revisions, with a request for each document. Documents without a series id are left out."""
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
            answers = threads.map(carried(self._readable_head), document_ids)
            heads = dict(zip(document_ids, answers, strict=True))
        found: dict[str, Holding] = {}
        for document_id, head in heads.items():
            revision = _revision_of(document_id, head.pid) if head else -1
            archived = revision if head and head.archived else -1
            self.archived[document_id] = max(archived, self.archived.get(document_id, -1))
            if head and not head.archived and revision >= 0:
                found[document_id] = Holding(document_id, revision, head.checksum.sha256)
        return found

    def _listed(self, document_ids: Sequence[str]) -> dict[str, Holding]:
        """The holdings in the listing, without the archived objects that we saw or archived: it does not mark them."""
        if not document_ids:
            return {}
        highest = self.listing.highest(document_ids).items()
        return {each: Holding(each, revision) for each, revision in highest if revision > self.archived.get(each, -1)}

    def _readable_head(self, document_id: str) -> SystemMetadata | None:
        require_time()
        try:
            return self._head_of_series(document_id)
        except Unreadable:
            return None

    def _head_of_series(self, document_id: str) -> SystemMetadata | None:
        """The last object of the series with this id; None if this is no series id."""
        meta = self.node.meta(document_id)
        return meta if meta and meta.pid != document_id else None

    def _object(self, pid: str) -> SystemMetadata | None:
        """The object with this PID; None if there is none, even if it is the id of a series."""
        meta = self.node.meta(pid)
        return meta if meta and meta.pid == pid else None

    def _is_archived(self, pid: str) -> bool:
        """True if the object with this PID is archived, as far as we may read that."""
        try:
            there = self._object(pid)
        except Unreadable:
            return False
        return there is not None and there.archived

    # -- uploads

    def upload(self, upload: Upload) -> Action:
        """Create the document, or supersede its last revision."""
        with self._login_checked():
            return self._stored(upload)

    @contextmanager
    def _login_checked(self) -> Iterator[None]:
        """A refusal is transient if our login has ended: it does not concern the document."""
        try:
            yield
        except TargetError as error:
            if not error.transient and error.findings[0].rule == "target.login":
                try:
                    self.require_login()
                except TargetError as ended:
                    raise TargetError(*ended.findings, transient=True) from error
            raise

    def _stored(self, upload: Upload) -> Action:
        document, content = upload.fetched.document, upload.fetched.content
        if len(document.docid) > LONGEST_IDENTIFIER or " " in document.docid:
            may_have = f"it may have {LONGEST_IDENTIFIER} characters, and no spaces"
            message = f"{one_line(document.docid)} is no identifier for DataONE: {may_have}."
            raise TargetError(Finding("target.refused", message, "Give the document another identifier."))
        there = self._object(document.docid)
        if there is not None:
            return self._already_there(there, content)
        series = self._series(document.document_id)
        if series.highest >= document.revision:
            message = f"The repository has revision {series.highest} of {document.document_id} by now."
            remedy = f"If this document is newer, list it as revision {series.highest + 1}."
            raise TargetError(Finding("target.exists", message, remedy))
        action = self._send(document, content, series)
        self.listing.add(document.document_id, document.revision)
        return action

    def _already_there(self, there: SystemMetadata, content: bytes) -> Action:
        if there.archived:
            message = f"{there.pid} was archived in the repository: it is deleted there, and its revision is used up."
            remedy = "Take it out of the list; to have it back, raise its revision."
            raise TargetError(Finding("target.exists", message, remedy))
        if not self._is(there, content):
            message = f"The repository has other content under {there.pid}: {there.size:,} bytes, {there.format_id}."
            remedy = "A revision never changes: raise it. The administrator can compare the two."
            raise TargetError(Finding("target.other-content", message, remedy))
        self.listing.add(*parts_of(there.pid))
        return Action.INSERT if there.obsoletes is None else Action.UPDATE

    def _is(self, there: SystemMetadata, content: bytes) -> bool:
        """True if an object has exactly these bytes."""
        if there.size != len(content):
            return False
        same = there.checksum.is_of(content)
        return self.node.content(there.pid) == content if same is None else same

    def _series(self, document_id: str) -> Series:
        """The document on the node, by its series id, or by the PIDs of its revisions."""
        head = self._head_of_series(document_id)
        if head is not None and not head.archived:
            return Series(head, self._highest_in_series(document_id, head), document_id)
        chain = self._listed_chain(document_id)
        highest = max((_revision_of(document_id, each.pid) for each in (head, *chain) if each), default=-1)
        # An archived object cannot be superseded, and no other object can use its series id.
        series_id = document_id if head is None else None
        if not chain or chain[-1].archived:
            return Series(None, highest, series_id)
        return Series(chain[-1], highest, chain[-1].series_id or series_id)

    def _highest_in_series(self, document_id: str, head: SystemMetadata) -> int:
        """The highest revision. It may differ from the last one: a node does not check their order."""
        revisions = [_revision_of(document_id, head.pid)]
        known = self.listing.known(document_id)
        if known is not None:
            return max(known, *revisions)
        for _, page in self.node.listing({"identifier": document_id}, MOST_REVISIONS):
            revisions += [_revision_of(document_id, each.pid) for each in page]
        return max(revisions)

    def _listed_chain(self, document_id: str) -> list[SystemMetadata]:
        """The objects from the highest listed revision to the end of its chain; empty if no revision is listed.

        Raises TargetError, also if the chain has no end.
        """
        found: dict[str, SystemMetadata] = {}
        revision = self.listing.highest([document_id]).get(document_id)
        pid = None if revision is None else f"{document_id}.{revision}"
        while pid is not None and pid not in found and (here := self._object(pid)) is not None:
            if len(found) >= _LONGEST_CHAIN:
                raise refusals.endless_chain(self.node.url, f"{document_id}.{revision}", len(found))
            require_time()
            found[pid] = here
            pid = here.obsoleted_by
        return list(found.values())

    def _send(self, document: ListedDocument, content: bytes, series: Series) -> Action:
        head = series.head
        sysmeta = system_metadata.written(document, content, series, self.settings, self.rights_holder)
        failed: TargetError | None = None
        try:
            if head is None:
                answer = self.node.create(document.docid, sysmeta, content)
            else:
                answer = self.node.update(head.pid, document.docid, sysmeta, content)
            if not answer.ok:
                failed = refusals.refused_document(answer, document.docid)
            elif not system_metadata.confirms(answer.body, document.docid):
                failed = refusals.not_understood(answer, f"it did not confirm {document.docid}")
        except Unanswered as error:
            if not error.sent:
                raise
            failed = error
        if failed is not None and not self._arrived(document.docid, content, failed):
            raise failed
        return Action.INSERT if head is None else Action.UPDATE

    def _arrived(self, pid: str, content: bytes, failed: TargetError) -> bool:
        """True if the node has the document despite the failure; raises `failed` as transient if that is unknown."""
        try:
            there = self._object(pid)
            arrived = there is not None and self._is(there, content)
        except TargetError as error:
            raise TargetError(*failed.findings, transient=True) from error
        if arrived:
            log.info("%s arrived, though the repository's answer was: %s", pid, failed)
        return arrived

    # -- deletions

    def delete(self, document_id: str) -> bool:
        """Archive the last revision: its bytes stay, and searches no longer offer it."""
        with self._login_checked():
            series = self._series(document_id)
            if series.head is not None:
                self._archive(series.head.pid)
        self.archived[document_id] = series.highest
        return series.head is not None

    def _archive(self, pid: str) -> None:
        failed: TargetError | None = None
        try:
            answer = self.node.archive(pid)
            if not answer.ok:
                failed = refusals.refused_document(answer, pid)
        except Unanswered as error:
            failed = error
        if failed is not None:
            there = self._object(pid)
            if there is None or not there.archived:
                raise failed


def _revision_of(document_id: str, pid: str) -> int:
    """The revision of this document that this PID names; -1 if it names another object."""
    owner, revision = parts_of(pid)
    return revision if owner == document_id else -1
