"""Finds local files that a harvest list names by their present or future URLs on the web.

A site's folder has the list and the documents. So each document is checked once, from its file, even before it is
published.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from metaharvest.fetch.local_files import is_file_url
from metaharvest.model import ListedDocument
from metaharvest.model.values import frozen
from metaharvest.publishing.naming import BaseUrl

_MOST_PARTS = 6
"""The depth of folders in which the files of a list are searched."""


@frozen
class FolderFile:
    """A file by its path below a folder, and its document id and revision if known."""

    file: str
    document_id: str = ""
    revision: int | None = None


def listed_files(
    entries: Sequence[ListedDocument], files: Sequence[FolderFile]
) -> tuple[BaseUrl | None, dict[str, str]]:
    """The folder's address on the web, None if unknown; and by URL the files that are documents of the list.

    They are found by URL, or else by docid.
    """
    on_web = [entry for entry in entries if not is_file_url(entry.url)]
    by_url = {entry.url: entry for entry in on_web}
    base = base_of(on_web, files)
    found: dict[str, str] = {}
    left: list[FolderFile] = []
    for each in files:
        url = base.url_of(each.file) if base else ""
        if url in by_url:
            found[url] = each.file
        else:
            left.append(each)
    by_id: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for entry in on_web:
        if entry.url not in found:
            by_id[entry.document_id].setdefault(entry.revision, entry.url)
    for each in left:
        urls = by_id.get(each.document_id)
        if each.document_id and urls:
            revision = each.revision if each.revision in urls else max(urls)
            found[urls.pop(revision)] = each.file
    return base, found


def base_of(entries: Iterable[ListedDocument], files: Iterable[FolderFile]) -> BaseUrl | None:
    """The folder's address on the web: the beginning of the URLs of most files whose docid is in the list."""
    by_name: defaultdict[str, list[ListedDocument]] = defaultdict(list)
    for entry in entries:
        by_name[_last_part(entry.url)].append(entry)
    numbers: Counter[str] = Counter()
    for each in files:
        path = quote(os.fsencode(each.file))
        for entry in by_name.get(_last_part(path), ()):
            front = entry.url.removesuffix(path)
            is_same = each.document_id in ("", entry.document_id)
            if front != entry.url and front.endswith(("/", "=", "?", "&")) and is_same:
                numbers[front] += 1
    return BaseUrl(max(numbers, key=lambda front: (numbers[front], front))) if numbers else None


def base_of_list(path: Path, entries: Iterable[ListedDocument]) -> BaseUrl | None:
    """The web address of the folder of the list at `path`, if its files have the names in the list."""
    numbers: Counter[str] = Counter()
    for entry in entries:
        parts = entry.url.split("/")[3:]
        for count in range(1, min(len(parts), _MOST_PARTS) + 1):
            tail = "/".join(parts[-count:])
            if tail and path.parent.joinpath(_unquoted(tail)).is_file():
                numbers[entry.url.removesuffix(tail)] += 1
    return BaseUrl(max(numbers, key=lambda front: (numbers[front], front))) if numbers else None


def _unquoted(path: str) -> str:
    return os.fsdecode(unquote_to_bytes(path).replace(b"\0", b""))


def _last_part(url: str) -> str:
    return url.rpartition("/")[2].rpartition("=")[2]
