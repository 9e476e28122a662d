"""Finds local files that a harvest list names by their present or future URLs on the web.

A site's folder has the list and the documents. So each document is checked once, from its file, even before it is
published.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

from metaharvest.fetch.local_files import is_file_url
from metaharvest.model import ListedDocument
from metaharvest.publishing.naming import BaseUrl

_MOST_PARTS = 6
"""The depth of folders in which the files of a list are searched."""


FolderFiles = Mapping[str, tuple[str, int | None]]
"""The document id, "" if unknown, and the revision, if known, of each file, by its path below a folder."""


def listed_files(entries: Sequence[ListedDocument], files: FolderFiles) -> tuple[BaseUrl | None, dict[str, str]]:
    """The folder's address on the web, None if unknown; and by URL the files that are documents of the list.

    They are found by URL, or else by docid.
    """
    on_web = [entry for entry in entries if not is_file_url(entry.url)]
    by_url = {entry.url: entry for entry in on_web}
    base = base_of(on_web, files)
    found = {url: file for file in files if base and (url := base.url_of(file)) in by_url}
    at_url = set(found.values())
    by_id: defaultdict[str, dict[int, str]] = defaultdict(dict)
    for entry in on_web:
        if entry.url not in found:
            by_id[entry.document_id].setdefault(entry.revision, entry.url)
    for file in [each for each in files if each not in at_url]:
        document_id, revision = files[file]
        urls = by_id.get(document_id)
        if document_id and urls:
            found[urls.pop(revision if revision in urls else max(urls))] = file
    return base, found


def base_of(entries: Iterable[ListedDocument], files: FolderFiles) -> BaseUrl | None:
    """The folder's address on the web: the beginning of the URLs of most files whose docid is in the list."""
    by_name: defaultdict[str, list[ListedDocument]] = defaultdict(list)
    for entry in entries:
        by_name[_last_part(entry.url)].append(entry)
    numbers: Counter[str] = Counter()
    for file, (document_id, _) in files.items():
        path = quote(os.fsencode(file))
        for entry in by_name.get(_last_part(path), ()):
            front = entry.url.removesuffix(path)
            is_same = document_id in ("", entry.document_id)
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
