"""Which document a name means."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from metaharvest.errors import MetaharvestError
from metaharvest.targets.naming import find_document
from support.remote_target import RemoteTarget, Repository


@pytest.fixture
def target(tmp_path: Path) -> Iterator[RemoteTarget]:
    with Repository() as repository:
        repository.documents |= {"a.1.1": b"", "a.1.2": b"", "a.1.2.7": b""}
        yield RemoteTarget(repository.url)


def test_a_name_is_taken_for_a_docid_first_and_then_for_a_document_id(target: RemoteTarget) -> None:
    assert find_document(target, "a.1.2") == ("a.1", 2)
    assert find_document(target, "a.1.2.7") == ("a.1.2", 7)
    assert find_document(target, "a.1") == ("a.1", None)
    with pytest.raises(MetaharvestError, match=r"no revision 3 of a\.1\. It has: 2, 1\."):
        find_document(target, "a.1.3")
    with pytest.raises(MetaharvestError, match=r"no document 'b\.1'"):
        find_document(target, "b.1")
