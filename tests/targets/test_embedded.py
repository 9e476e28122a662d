"""The embedded target, in what it does beyond the contract of all targets."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import insert

from metaharvest.database.engine import readers, writers
from metaharvest.database.models import DocumentRevision
from metaharvest.errors import TargetError
from metaharvest.model import FetchedDocument, ListedDocument, RecordOrigin
from metaharvest.targets.base import Upload
from metaharvest.targets.embedded import EmbeddedTarget
from support.catalogue import fill_catalogue
from support.harvester import Harvester


def test_every_revision_of_very_many_documents_is_listed_in_order(harvester: Harvester) -> None:
    """They are read a page at a time; one document has more revisions than two pages."""
    numbers = [(f"b.{number:04}", 1) for number in range(1500)] + [("b.0700", each) for each in range(2, 2600)]
    numbers += [("b.0999", each) for each in range(2, 5)]
    same = {"document_type": "", "size": 0, "sha256": "", "source_url": "", "content": b""}
    same["inserted_at"] = datetime(2026, 11, 20, tzinfo=UTC)
    with writers(harvester.engine).begin() as session:
        rows = [{"document_id": name, "revision": revision, **same} for name, revision in numbers]
        session.execute(insert(DocumentRevision), rows)
        fill_catalogue(session.connection())
    target = EmbeddedTarget(readers(harvester.engine))
    held = ((each.document_id, each.revision) for each in target.held())
    assert list(held) == sorted(numbers)


def test_what_is_asked_for_while_it_is_listed_is_answered(harvester: Harvester) -> None:
    """Whoever is given a page may use the database before asking for the next one."""
    same = {"document_type": "", "size": 1, "sha256": "", "source_url": "", "content": b"x"}
    same["inserted_at"] = datetime(2026, 11, 20, tzinfo=UTC)
    with writers(harvester.engine).begin() as session:
        rows = [{"document_id": f"b.{number}", "revision": 1, **same} for number in range(1200)]
        session.execute(insert(DocumentRevision), rows)
        fill_catalogue(session.connection())
    target = EmbeddedTarget(readers(harvester.engine))
    for number, each in enumerate(target.held()):
        assert target.content(each.document_id, each.revision) == b"x"
        if number == 1100:
            with writers(harvester.engine).begin() as session:
                session.execute(insert(DocumentRevision), [{"document_id": "a.1", "revision": 1, **same}])
                fill_catalogue(session.connection())
    assert number == 1199


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"about": (b"<a/>" * 250_001,)}, "its about elements have more than 1,000,000 bytes"),
        ({"sets": ("s" * 1025,)}, "a setSpec has more than 1,024 characters"),
        ({"namespace": "urn:" + "n" * 2048}, "its namespace has more than 2,048 characters"),
    ],
)
def test_a_value_that_is_too_long_to_be_kept_is_refused(
    harvester: Harvester, values: dict[str, Any], words: str
) -> None:
    origin = replace(RecordOrigin("https://r.example.org/oai", "oai:r:1", "oai_dc", "2026-11-20", ""), **values)
    document = ListedDocument("r.1", 1, "", "https://r.example.org/oai", origin=origin)
    upload = Upload(FetchedDocument(document, b"<a/>", "0" * 64, 0.0), 1, datetime(2026, 11, 20, tzinfo=UTC))
    with readers(harvester.engine)() as session, pytest.raises(TargetError) as refused:
        EmbeddedTarget(readers(harvester.engine)).upload([upload], session)
    assert words in refused.value.findings[0].message
