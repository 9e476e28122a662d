"""The target of the kind `none`, which cannot pass the contract of the others: it keeps nothing that it is given."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from sqlalchemy.orm import Session

from metaharvest.model import Action, FetchedDocument, ListedDocument
from metaharvest.targets.base import Target, TransactionalTarget, Upload
from metaharvest.targets.nothing import NoTarget

AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)


def upload(session: TransactionalTarget, *docids: str) -> list[Action]:
    """What becomes of documents with these docids, each with content of its own."""
    uploads = []
    for docid in docids:
        document_id, _, revision = docid.rpartition(".")
        document = ListedDocument(document_id, int(revision), "eml", "https://e.org/1.xml")
        content = docid.encode()
        fetched = FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.1)
        uploads.append(Upload(fetched, 1, AT))
    return session.upload(uploads, Session())


def test_it_holds_nothing_of_what_it_was_given() -> None:
    target: Target = NoTarget()
    with target.session(None) as session:
        assert session.writes_in_journal
        assert not session.keeps
        upload(session, "a.1.1")
        assert session.holdings(["a.1"]) == {}
        assert session.used_up(["a.1"]) == {}
        assert not session.holds("a.1", 1, hashlib.sha256(b"a.1.1").hexdigest())
        assert session.kept(1) == 0
    assert list(target.held()) == target.revisions("a.1") == []
    assert target.content("a.1", 1) is None


def test_the_first_revision_of_a_document_is_an_insert_and_stays_one_if_it_is_handed_over_again() -> None:
    with NoTarget().session(None) as session:
        assert upload(session, "a.1.3", "a.1.4", "a.2.1") == [Action.INSERT, Action.UPDATE, Action.INSERT]
        assert upload(session, "a.1.3", "a.1.4") == [Action.INSERT, Action.UPDATE]


def test_every_session_begins_with_nothing() -> None:
    target = NoTarget()
    for _ in range(2):
        with target.session(None) as session:
            assert upload(session, "a.1.1") == [Action.INSERT]


def test_it_says_that_nothing_is_uploaded() -> None:
    [standing] = NoTarget().check(None)
    assert standing.status == "warning"
    assert "nothing is uploaded" in standing.sentence
    assert NoTarget().describe().isprintable()
