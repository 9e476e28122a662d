"""A session with the folder: uploads, deletions and lookups for one site."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Literal

from metaharvest.errors import TargetError
from metaharvest.model import Action, Finding, Holding
from metaharvest.model.values import frozen
from metaharvest.targets.base import Upload
from metaharvest.targets.folder.base_folder import DELETED, NAMES, RECEIVED, BaseFolder, locked, named
from metaharvest.targets.folder.failures import in_sentences, linked, out_of_date, shown
from metaharvest.targets.folder.files import TEMPORARY
from metaharvest.targets.folder.index import Index, Revision
from metaharvest.targets.folder.names import digest_of, place_of
from metaharvest.text import shown_url

_LISTINGS = 100
"""The number of folders whose names are cached, as long as they do not change."""


@frozen
class _Listing:
    """The names in a folder that was last changed at `changed`, and the names of documents, by document."""

    changed: int
    names: frozenset[str]
    of_documents: Mapping[str, Sequence[tuple[int, str]]]


class FolderSession:
    """Reads and writes one folder; to be closed. The first upload begins the folder, if necessary."""

    writes_in_journal: Literal[False] = False

    def __init__(self, folder: BaseFolder) -> None:
        self._folder = folder
        self._files = folder.files
        self._index: Index | None = None
        self._writing = ExitStack()
        self._writes = False
        self._listings: dict[str, _Listing] = {}

    def close(self) -> None:
        """Release the index, and the lock."""
        with self._folder.lock:
            if self._index:
                self._index.close()
            self._writing.close()

    # -- holdings

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revision of each. Raises TargetError if the files of one do not agree with the index."""
        with in_sentences(self._folder.path), self._folder.lock:
            if (index := self._reading()) is None:
                return {}
            found, odd = self._look(index, document_ids)
            if odd:
                # Another harvester may have put a file there after the index was read.
                self._listings.clear()
                again, odd = self._look(index, odd)
                found |= again
            if odd:
                others = len(odd) - 1
                more = "; another document is not as it says either" if others else ""
                more = f"; {others:,} more documents are not as it says either" if others > 1 else more
                raise out_of_date(self._folder.path, f"{next(iter(odd.values()))}{more}")
            return found

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """The highest revision of each of these documents that is no longer in its place."""
        with in_sentences(self._folder.path), self._folder.lock:
            if (index := self._reading()) is None:
                return {}
            groups = groupby(list(index.revisions(document_ids)), key=attrgetter("document_id"))
            known = {document_id: self._known(rows) for document_id, rows in groups}
            return {document_id: rows[-1].revision for document_id, rows in known.items() if rows}

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """True if exactly these bytes are in the file of this docid, independent of the index."""
        with in_sentences(self._folder.path), self._folder.lock:
            if (index := self._reading()) is None:
                return False
            if (row := index.revision(document_id, revision)) is not None:
                return self._files.digest(row.path) == sha256
            place = place_of(document_id, self._folder.layout)
            folder = index.folder("".join(f"/{name.lower()}" for name in place.folders)) or "/".join(place.folders)
            return self._files.digest(f"{folder}/{place.file_name(revision)}".lstrip("/")) == sha256

    # -- uploads

    def upload(self, upload: Upload) -> Action:
        """Put a document into its file. The same bytes in the same place are no change."""
        content = upload.fetched.content
        with in_sentences(self._folder.path):
            with self._folder.lock:
                index = self._begun()
                with index.writing():
                    row, action = self._reserved(upload, index)
            if row.state != "held":
                if upload.fetched.received is not None:
                    with self._folder.lock:  # it replaces the remains of a failed upload
                        self._files.remove(f"{RECEIVED}/{row.path}")
                        self._files.write(f"{RECEIVED}/{row.path}", upload.fetched.received)
                self._put(row, content, index)
            return action

    def delete(self, document_id: str) -> bool:
        """Move a document's files out of the public folders; they are kept apart, not lost."""
        with in_sentences(self._folder.path), self._folder.lock:
            if self._reading() is None:
                return False
            index = self._begun()
            rows = self._known(index.revisions([document_id]))
            held = [row for row in rows if row.state != "deleted"]
            is_news = bool(rows) and rows[-1].state != "deleted"
            # The highest revision first: from then on the files alone show that the document was deleted.
            for row in reversed(held):
                self._set_apart(row)
            with index.writing():
                for row in held:
                    index.put(replace(row, state="deleted"))
            for folder in {row.folder for row in held}:
                self._files.remove_if_empty(folder)
            return is_news

    def erase(self, document_id: str) -> int:
        """Delete the kept files of a deleted document, the received ones, and those that a killed upload left.

        Returns the number of files.
        """
        with in_sentences(self._folder.path), self._folder.lock:
            if self._reading() is None:
                return 0
            removed, rows = 0, list(self._begun().revisions([document_id]))
            digests = {row.sha256 for row in rows}
            for path in [f"{TEMPORARY}/{name}" for name in self._files.names(TEMPORARY)]:
                if self._files.digest(path) in digests:
                    self._files.remove(path)
                    removed += 1
            for row in rows:
                for path in (f"{DELETED}/{row.path}", f"{RECEIVED}/{row.path}"):
                    if self._files.digest(path) is not None:
                        self._files.remove(path)
                        self._files.sync(path.rpartition("/")[0])
                        self._files.remove_if_empty(path.rpartition("/")[0])
                        removed += 1
            return removed

    def restore(self, document_id: str) -> None:
        """Put the files of a deleted document back. Forget erased ones, so that they can be uploaded again."""
        with in_sentences(self._folder.path), self._folder.lock:
            if self._reading() is None:
                return
            index = self._begun()
            for row in [each for each in index.revisions([document_id]) if each.state == "deleted"]:
                apart = f"{DELETED}/{row.path}"
                # A restoration that was interrupted has moved it already.
                is_there = self._files.digest(row.path) == row.sha256
                if not is_there and self._files.digest(apart) is not None:
                    self._files.make(row.folder)
                    if not self._files.move(apart, row.path):
                        raise linked(self._folder.path, row.path)
                    is_there = True
                if is_there:
                    self._files.sync(row.folder)
                with index.writing():
                    if is_there:
                        index.put(replace(row, state="held"))
                    else:
                        index.forget(row)

    def _reserved(self, upload: Upload, index: Index) -> tuple[Revision, Action]:
        """The row for this revision, with a place of its own; `held`: the file exists already."""
        document, base = upload.fetched.document, self._folder.path
        rows = list(index.revisions([document.document_id]))
        same = next((row for row in rows if row.revision == document.revision), None)
        others = self._known(row for row in rows if row is not same)
        is_first = not others or others[0].revision > document.revision or others[-1].state == "deleted"
        action = Action.INSERT if is_first else Action.UPDATE
        if same and same.state == "held":
            there = self._files.digest(same.path)
            if there is None:
                raise out_of_date(base, f"{shown(same.path)} is not there any more")
            if there != upload.fetched.sha256:
                raise _other_content(same)
            return same, action
        highest = max(
            [*others, *([same] if same and same.state == "deleted" else [])], key=attrgetter("revision"), default=None
        )
        if highest and highest.revision >= document.revision:
            raise _exists(highest)
        path = same.path if same else ""
        if not path:
            place = index.place(document.document_id, self._folder.layout)
            path = index.path_for(place, document.revision, self._folder.most)
            if place.hashed:  # the files do not show the document id
                digest = digest_of(document.document_id)
                name = document.document_id.encode(errors="surrogatepass")
                self._files.write(f"{NAMES}/{digest[:2]}/{digest}", name)
        what = document.document_type, len(upload.fetched.content), upload.fetched.sha256
        when = upload.at.isoformat(), shown_url(document.url)
        row = Revision(document.document_id, document.revision, path, "reserved", *what, *when)
        index.put(row)
        return row, action

    def _put(self, row: Revision, content: bytes, index: Index) -> None:
        """Write the file of a reserved revision, synced with its folder."""
        temporary = self._files.write_temporary(content)
        moved = False
        try:
            self._files.make(row.folder)
            with self._folder.lock, index.writing():
                moved = self._files.move(temporary, row.path)
        finally:
            if not moved:
                self._files.remove(temporary)
        there = row
        if not moved:
            found = self._files.content(row.path) or b""
            there = replace(row, size=len(found), sha256=self._files.digest(row.path) or "")
        self._files.sync(row.folder)
        with self._folder.lock, index.writing():
            index.put(replace(there, state="held"))
        if there.sha256 != row.sha256:
            raise _other_content(row)

    def _set_apart(self, row: Revision) -> None:
        """Move the file of a revision to the deleted documents; a file that is there already stays."""
        apart = f"{DELETED}/{row.path}"
        there = self._files.digest(row.path)
        if there is None:
            if self._files.digest(apart) is None:
                raise out_of_date(self._folder.path, f"{shown(row.path)} is not there any more")
            return
        if self._files.move(row.path, apart):
            for path in (apart, row.path):
                self._files.sync(path.rpartition("/")[0])
        elif self._files.digest(apart) == there:
            self._files.remove(row.path)
        else:
            raise linked(self._folder.path, apart)

    # -- the index, and the files beside it

    def _reading(self) -> Index | None:
        if self._index is None:
            self._index = self._folder.opened()
        return self._index

    def _begun(self) -> Index:
        """The index to write into; remains of dead runs are removed first."""
        if not self._writes:
            if self._index:
                self._index.close()
                self._index = None
            with ExitStack() as stack:
                self._folder.begin()
                stack.enter_context(locked(self._files))
                # Opened under the lock: another process may have rebuilt it before.
                self._index = self._folder.opened()
                self._writing = stack.pop_all()
            assert self._index is not None
            for row in self._index.reserved():  # of interrupted uploads
                if self._folder.came_there(row):
                    with self._index.writing():
                        self._index.put(replace(row, state="held"))
            self._files.make(TEMPORARY)
            self._files.clear_temporary()
            self._writes = True
        assert self._index is not None
        return self._index

    def _known(self, rows: Iterator[Revision]) -> list[Revision]:
        """These rows without the revisions whose files never came into their places."""
        return [row for row in rows if row.state != "reserved" or self._folder.came_there(row)]

    def _look(self, index: Index, document_ids: Iterable[str]) -> tuple[dict[str, Holding], dict[str, str]]:
        """The holdings of these documents; and a sentence for each whose files do not agree with the index."""
        found: dict[str, Holding] = {}
        odd: dict[str, str] = {}
        for document_id, group in groupby(list(index.revisions(list(document_ids))), key=attrgetter("document_id")):
            rows = list(group)
            known = self._known(iter(rows))
            if not known or known[-1].state == "deleted":
                continue
            highest, listing = known[-1], self._listed(known[-1].folder)
            if highest.path.rpartition("/")[2] not in listing.names:
                if self._files.digest(f"{DELETED}/{highest.path}") is None:
                    odd[document_id] = f"{shown(highest.path)} is not there any more"
                continue
            numbers = {row.revision for row in rows}
            of_document = [
                each for key in (document_id, digest_of(document_id)) for each in listing.of_documents.get(key, ())
            ]
            if unknown := [name for revision, name in of_document if revision not in numbers]:
                odd[document_id] = f"it does not know {shown(f'{highest.folder}/{unknown[0]}'.lstrip('/'))}"
                continue
            found[document_id] = Holding(document_id, highest.revision, highest.sha256)
        return found, odd

    def _listed(self, folder: str) -> _Listing:
        """The names in a folder, read again only after a change."""
        try:
            with self._files.folder(folder) as descriptor:
                changed = os.fstat(descriptor).st_mtime_ns
        except FileNotFoundError:
            return _Listing(0, frozenset(), {})
        listing = self._listings.get(folder)
        if listing is None or listing.changed != changed:
            names = self._files.names(folder)
            of_documents: dict[str, list[tuple[int, str]]] = {}
            for name in names:
                if what := named(f"{folder}/{name}".lstrip("/")):
                    of_documents.setdefault(what.digest or what.document_id or "", []).append((what.revision, name))
            listing = _Listing(changed, frozenset(names), of_documents)
            if len(self._listings) >= _LISTINGS:
                self._listings.clear()
            self._listings[folder] = listing
        return listing


def _exists(there: Revision) -> TargetError:
    had, now = ("had", ", which was deleted") if there.state == "deleted" else ("has", "")
    message = f"The repository {had} revision {there.revision} of {there.document_id} by now{now}."
    remedy = f"If this document is newer, list it as revision {there.revision + 1}."
    return TargetError(Finding("target.exists", message, remedy))


def _other_content(there: Revision) -> TargetError:
    message = (
        f"The repository has {there.document_id}.{there.revision} already, with other content: {shown(there.path)}."
    )
    remedy = f"Compare the two; to replace what the repository has, list the document as revision {there.revision + 1}."
    return TargetError(Finding("target.other-content", message, remedy))
