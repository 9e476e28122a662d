"""What the harvest expects of a target, whichever it is.

Every target passes all of these tests: a new one joins with a function in SUBJECTS that makes it, without documents.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine, insert

from metaharvest.config.settings import Settings
from metaharvest.database.engine import readers, writers
from metaharvest.database.models import HarvestDocument
from metaharvest.errors import TargetError
from metaharvest.model import Action, FetchedDocument, Holding, ListedDocument
from metaharvest.rehearsal.dry_run import RehearsalTarget
from metaharvest.rules import RULES
from metaharvest.sites.registry import add_site
from metaharvest.targets.base import Deletion, Target, TargetSession, Upload
from metaharvest.targets.dataone.target import DataOneTarget
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.folder.names import Layout
from metaharvest.targets.folder.target import FolderTarget
from metaharvest.targets.metacat.target import MetacatTarget
from metaharvest.targets.owners import session_of
from support.databases import KINDS, Servers, open_sqlite_file
from support.metacat_server import Metacat
from support.remote_target import RemoteTarget, Repository

SITE = 1
AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Subject:
    """A target to be tested, beside a journal in the database `engine`.

    `keeper` is what has the documents afterwards: the session itself, or, if it forgets what it is given, that of the
    target that it asks. `secrets` are in the settings of the target. `limits` are what its repository cannot do: it
    says so, and does not do it by halves.
    """

    target: Target
    session: TargetSession
    engine: Engine
    keeper: TargetSession
    secrets: tuple[str, ...] = ()
    limits: frozenset[str] = frozenset()

    @property
    def forgets(self) -> bool:
        return self.keeper is not self.session

    def upload(self, *documents: FetchedDocument) -> list[Action]:
        """Hand these over as the journal does."""
        return self._upload(self.session, documents)

    def hold(self, *documents: FetchedDocument) -> None:
        """Have these in the repository already."""
        for document in documents:
            self._upload(self.keeper, [document])

    def cannot(self, limit: str, *documents: FetchedDocument) -> bool:
        """Whether this is a limit of the repository; then these documents are refused, with what to do about it."""
        if limit not in self.limits:
            return False
        for document in documents:
            with pytest.raises(TargetError) as caught:
                self.upload(document)
            require_refusal(caught.value)
            assert not self.session.holds(document.document.document_id, document.document.revision, document.sha256)
        return True

    def _upload(self, target: TargetSession, documents: Sequence[FetchedDocument]) -> list[Action]:
        uploads = [Upload(document, SITE, AT) for document in documents]
        if target.writes_in_journal:
            with writers(self.engine).begin() as session:
                return target.upload(uploads, session)
        return [target.upload(each) for each in uploads]


def require_refusal(error: TargetError) -> None:
    """It is for good, and says what it is and what to do."""
    assert not error.transient
    assert error.findings
    for finding in error.findings:
        assert finding.rule in RULES
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")


@contextmanager
def subject_of(
    target: Target,
    engine: Engine,
    *,
    real: Target | None = None,
    secrets: Sequence[str] = (),
    limits: Sequence[str] = (),
) -> Iterator[Subject]:
    """The target with a session; `real` keeps what the target itself forgets."""
    with session_of(target, None, readers(engine)) as session, (real or target).session(None) as keeper:
        yield Subject(target, session, engine, keeper if real else session, tuple(secrets), frozenset(limits))


def fetched(docid: str, content: bytes = b"") -> FetchedDocument:
    document_id, _, revision = docid.rpartition(".")
    content = content or f"<eml>{docid}</eml>".encode()
    document = ListedDocument(document_id, int(revision), "eml://ecoinformatics.org/eml-2.1.1", "https://e.org/1.xml")
    return FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.1)


@contextmanager
def journal(kind: str, servers: Servers, folder: Path) -> Iterator[Engine]:
    """A database with all tables, in which site 1 is registered."""
    if (given := servers.test_database(kind).engine) is not None:
        engine = given
    else:
        engine = open_sqlite_file(folder / "journal.db")
    try:
        with writers(engine).begin() as session:
            site = {"name": "site", "documentlisturl": "https://e.org/list.xml", "contact_email": "site@example.org"}
            assert add_site(session, site).site_id == SITE
        yield engine
    finally:
        engine.dispose()


@contextmanager
def embedded(kind: str, servers: Servers, folder: Path) -> Iterator[Subject]:
    with journal(kind, servers, folder) as engine:
        target = EmbeddedTarget(readers(engine))
        secrets = (engine.url.password,) if engine.url.password else ()
        with subject_of(target, engine, secrets=secrets) as subject:
            yield subject


@contextmanager
def rehearsal(servers: Servers, folder: Path) -> Iterator[Subject]:
    """A rehearsal into the embedded target."""
    with embedded("sqlite", servers, folder) as real:
        target = RehearsalTarget(real.target, readers(real.engine), {})
        with subject_of(target, real.engine, real=real.target) as subject:
            yield subject


@contextmanager
def remote(servers: Servers, folder: Path) -> Iterator[Subject]:
    """A repository that is reached by HTTP, with a login."""
    with Repository() as repository, journal("sqlite", servers, folder) as engine:
        target = RemoteTarget(repository.url.replace("://", "://harvester:remote-secret@"))
        with subject_of(target, engine, secrets=["remote-secret"]) as subject:
            yield subject


@contextmanager
def metacat(servers: Servers, folder: Path) -> Iterator[Subject]:
    """Metacat's old interface, which reads documents as text, and has no names with other than one point."""
    user, secret = "uid=harvester,o=LTER", "metacat-secret"
    (folder / "metacat-password").write_text(secret)
    (folder / "metacat-password").chmod(0o600)
    with Metacat({user: secret}) as running, journal("sqlite", servers, folder) as engine:
        target = {"kind": "metacat", "url": running.url, "username": user, "password": "file:metacat-password"}
        settings = Settings.model_validate({"target": target, "folder": folder})
        limits = ["64 bits", "utf-16", "white space", "no text", "query", "without point", "listing", "deleted"]
        with subject_of(MetacatTarget(settings), engine, secrets=[secret], limits=limits) as subject:
            yield subject


@contextmanager
def folder(layout: Layout, servers: Servers, scratch: Path) -> Iterator[Subject]:
    """A folder of which no part may get more than three names."""
    with journal("sqlite", servers, scratch) as engine:
        target = FolderTarget(scratch / "repository", layout, 3, engine)
        with subject_of(target, engine) as subject:
            yield subject


@contextmanager
def dataone(servers: Servers, folder: Path) -> Iterator[Subject]:
    """A member node, with a token. It is not to take these documents for EML, which it checks itself."""
    node, token = servers.member_node(), folder / "token"
    token.write_text(node.token())
    token.chmod(0o600)
    section = {"kind": "dataone", "url": node.url, "token": f"file:{token}", "format_id": "application/octet-stream"}
    target = DataOneTarget(Settings.model_validate({"target": section, "http": {"retry_wait": 0.01}}))
    limits = ["listing without the deleted"]
    with (
        journal("sqlite", servers, folder) as engine,
        subject_of(target, engine, secrets=[node.token()], limits=limits) as subject,
    ):
        yield subject


SUBJECTS: dict[str, Callable[[Servers, Path], AbstractContextManager[Subject]]] = {
    **{f"embedded-{kind}": partial(embedded, kind) for kind in KINDS},
    "rehearsal": rehearsal,
    "remote": remote,
    "metacat": metacat,
    "folder-tree": partial(folder, "tree"),
    "folder-flat": partial(folder, "flat"),
    "dataone": dataone,
}


@pytest.fixture(params=SUBJECTS)
def subject(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[Subject]:
    with SUBJECTS[request.param](servers, tmp_path) as made:
        yield made


def revisions(subject: Subject, *document_ids: str) -> dict[str, int]:
    """Document id -> the revision that the target says it holds."""
    holdings = subject.session.holdings(document_ids)
    assert all(holding.document_id == document_id for document_id, holding in holdings.items())
    return {document_id: holding.revision for document_id, holding in holdings.items()}


# -- what it holds


def test_an_empty_target_holds_nothing(subject: Subject) -> None:
    assert revisions(subject) == revisions(subject, "a.1", "a.2") == {}
    assert not subject.session.holds("a.1", 1, fetched("a.1.1").sha256)


def test_a_holding_is_the_highest_revision_of_each_document_that_is_asked_for(subject: Subject) -> None:
    subject.hold(fetched("a.1.1"), fetched("a.1.9"), fetched("a.1.10"), fetched("a.2.0"), fetched("a.3.7"))
    assert revisions(subject, "a.1", "a.2", "a.4") == {"a.1": 10, "a.2": 0}


def test_a_holding_tells_the_digest_and_the_site_if_they_are_known(subject: Subject) -> None:
    subject.hold(fetched("a.1.1"), fetched("a.1.2"))
    holding: Holding = subject.session.holdings(["a.1"])["a.1"]
    assert holding.sha256 in (None, fetched("a.1.2").sha256)
    assert holding.site_id in (None, SITE)


def test_a_thousand_documents_are_asked_about_at_a_time(subject: Subject) -> None:
    subject.hold(fetched("a.17.1"), fetched("a.999.2"))
    assert revisions(subject, *(f"a.{number}" for number in range(1000))) == {"a.17": 1, "a.999": 2}


def test_a_revision_has_64_bits(subject: Subject) -> None:
    document = fetched(f"a.1.{2**63 - 1}")
    if subject.cannot("64 bits", document):
        return
    subject.hold(document)
    assert revisions(subject, "a.1") == {"a.1": 2**63 - 1}


def test_it_holds_exactly_these_bytes_under_this_docid_or_not(subject: Subject) -> None:
    first, second = fetched("a.1.1"), fetched("a.1.2")
    subject.hold(first, second)
    assert subject.session.holds("a.1", 1, first.sha256)
    assert subject.session.holds("a.1", 2, second.sha256)
    assert not subject.session.holds("a.1", 1, second.sha256)
    assert not subject.session.holds("a.1", 3, second.sha256)
    assert not subject.session.holds("a.2", 1, first.sha256)


ODD_BYTES = {
    "latin-1": '<?xml version="1.0" encoding="iso-8859-1"?><e>é</e>'.encode("iso-8859-1"),
    "utf-16": "<e>é</e>".encode("utf-16"),
    "white space": b"\xef\xbb\xbf\r\n <e>\r\n\t</e>\n\n ",
    "no text": bytes(range(256)),
    "long": b"<e>" + b"x" * 3_000_000 + b"</e>",
}


@pytest.mark.parametrize("kind", ODD_BYTES)
def test_the_bytes_stay_as_they_were_received(subject: Subject, kind: str) -> None:
    document = fetched("a.1.1", ODD_BYTES[kind])
    if subject.cannot(kind, document):
        return
    subject.hold(document)
    assert subject.session.holds("a.1", 1, document.sha256)


OTHER_IDS = {
    "case": "ALDER_c.1",
    "pattern": "alder%c.1",
    "path": "alder/c.1",
    "query": "alder?c#1",
    "escaped": "alder%5Fc.1",
    "without point": "alder_c1",
}


@pytest.mark.parametrize("kind", OTHER_IDS)
def test_document_ids_are_compared_exactly(subject: Subject, kind: str) -> None:
    other = OTHER_IDS[kind]
    subject.hold(fetched("alder_c.1.3"))
    assert revisions(subject, "alder_c.1", other) == {"alder_c.1": 3}
    assert not subject.session.holds(other, 3, fetched("alder_c.1.3").sha256)
    if subject.cannot(kind, fetched(f"{other}.3")):
        return
    assert subject.upload(fetched(f"{other}.3")) == [Action.INSERT]
    if not subject.forgets:
        assert revisions(subject, "alder_c.1", other) == {"alder_c.1": 3, other: 3}


@pytest.mark.parametrize("other", ["alder.1 ", " alder.1", "ålder.1", "a\u030alder.1", "ａlder.1", "alder.1\u200b", ""])
def test_what_is_no_document_id_finds_nothing(subject: Subject, other: str) -> None:
    """Document ids are printable ASCII, and have no space at their ends."""
    subject.hold(fetched("alder.1.3"))
    assert revisions(subject, "alder.1", other) == {"alder.1": 3}
    assert not subject.session.holds(other, 3, fetched("alder.1.3").sha256)


# -- what it lists


def test_it_lists_every_revision_document_by_document_in_ascending_order(subject: Subject) -> None:
    subject.hold(*(fetched(docid) for docid in ("b.1.2", "a.10.1", "a.2.9", "a.2.10", "B.1.1")))
    if subject.cannot("listing"):
        with pytest.raises(TargetError) as caught:
            list(subject.target.held())
        require_refusal(caught.value)
    else:
        listed = [(held.document_id, held.revision) for held in subject.target.held()]
        assert listed == [("B.1", 1), ("a.10", 1), ("a.2", 9), ("a.2", 10), ("b.1", 2)]
    assert [held.revision for held in subject.target.revisions("a.2")] == [10, 9]
    assert subject.target.revisions("a.3") == subject.target.revisions("A.2") == []


@pytest.mark.parametrize("kind", ODD_BYTES)
def test_it_gives_back_the_bytes_as_they_were_received(subject: Subject, kind: str) -> None:
    document = fetched("a.1.1", ODD_BYTES[kind])
    if subject.cannot(kind, document):
        return
    subject.hold(document)
    assert subject.target.content("a.1", 1) == document.content
    assert subject.target.content("a.1", 2) is None
    assert subject.target.content("a.2", 1) is None


def test_what_it_says_of_a_revision_is_true(subject: Subject) -> None:
    document = fetched("a.1.1")
    subject.hold(document)
    [held] = subject.target.revisions("a.1")
    assert held.size in (None, len(document.content))
    assert held.sha256 in (None, document.sha256)
    if not subject.cannot("listing"):
        assert [*subject.target.held()] == [held]


# -- uploads


def test_the_first_revision_of_a_document_is_an_insert_all_others_are_updates(subject: Subject) -> None:
    subject.hold(fetched("a.1.3"))
    assert subject.upload(fetched("a.1.4")) == [Action.UPDATE]
    assert subject.upload(fetched("a.2.1")) == [Action.INSERT]
    assert subject.upload(fetched("a.2.2")) == [Action.UPDATE]
    several = [fetched(docid) for docid in ("a.3.1", "a.1.5", "a.3.2", "a.4.1")]
    assert subject.upload(*several) == [Action.INSERT, Action.UPDATE, Action.UPDATE, Action.INSERT]


def test_what_was_uploaded_is_held_unless_the_target_forgets_it(subject: Subject) -> None:
    document = fetched("a.1.1")
    subject.upload(document)
    assert revisions(subject, "a.1") == ({} if subject.forgets else {"a.1": 1})
    assert subject.session.holds("a.1", 1, document.sha256) is not subject.forgets


def test_a_revision_that_is_there_is_refused_and_stays_as_it_was(subject: Subject) -> None:
    if subject.forgets:
        pytest.skip("it has nothing that could be replaced")
    first = fetched("a.1.1")
    subject.hold(first)
    with pytest.raises(TargetError) as caught:
        subject.upload(fetched("a.1.1", b"<eml>other</eml>"))
    require_refusal(caught.value)
    assert revisions(subject, "a.1") == {"a.1": 1}
    assert subject.session.holds("a.1", 1, first.sha256)


def test_if_one_of_several_is_refused_none_of_them_is_there(subject: Subject) -> None:
    if subject.forgets or not subject.session.writes_in_journal:
        pytest.skip("it is given documents one by one, or keeps none")
    subject.hold(fetched("a.2.1"))
    uploads = [Upload(fetched(docid), SITE, AT) for docid in ("a.1.1", "a.2.1", "a.3.1")]
    with writers(subject.engine).begin() as session, pytest.raises(TargetError):
        subject.session.upload(uploads, session)
    assert revisions(subject, "a.1", "a.2", "a.3") == {"a.2": 1}


class Undone(Exception):
    """Ends a transaction."""


def test_an_upload_is_undone_with_its_session(subject: Subject) -> None:
    """Then the journal hands the same over again, and is told the same."""
    if not subject.session.writes_in_journal:
        pytest.skip("it does not write in the journal's session")
    subject.hold(fetched("a.2.1"))
    documents = [fetched(docid) for docid in ("a.1.1", "a.2.2", "a.1.2")]
    actions = [Action.INSERT, Action.UPDATE, Action.UPDATE]
    with contextlib.suppress(Undone), writers(subject.engine).begin() as session:
        assert subject.session.upload([Upload(document, SITE, AT) for document in documents], session) == actions
        raise Undone
    assert revisions(subject, "a.1", "a.2") == {"a.2": 1}
    assert not subject.session.holds("a.1", 1, documents[0].sha256)
    assert subject.upload(*documents) == actions


# -- deletions


def delete(subject: Subject, docid: str) -> None:
    """Have the document deleted."""
    document = fetched(docid).document
    if subject.keeper.writes_in_journal:
        with writers(subject.engine).begin() as session:
            subject.keeper.delete(Deletion(document, SITE, AT), session)
    else:
        assert subject.keeper.delete(document.document_id)


def test_a_deleted_document_is_not_listed_and_not_copied(subject: Subject) -> None:
    subject.hold(fetched("a.1.1"), fetched("a.1.2"), fetched("a.2.1"))
    delete(subject, "a.1.2")
    if subject.limits & {"listing", "listing without the deleted"}:
        pytest.skip("it lists nothing, or does not tell what is deleted")
    assert [each.docid for each in subject.target.held()] == ["a.2.1"]


def test_the_revisions_of_a_deleted_document_are_used_up_and_told(subject: Subject) -> None:
    subject.hold(fetched("a.1.1"), fetched("a.1.2"), fetched("a.2.1"))
    delete(subject, "a.1.2")
    held = revisions(subject, "a.1", "a.2", "a.3")
    others = [each for each in ("a.1", "a.3") if each not in held]
    assert held["a.2"] == 1
    assert {**held, **subject.session.used_up(others)} == {"a.1": 2, "a.2": 1}
    if not subject.forgets and "deleted" not in subject.limits:
        assert subject.upload(fetched("a.1.3")) in ([Action.INSERT], [Action.UPDATE])
        assert revisions(subject, "a.1") == {"a.1": 3}


# -- what it says of itself


def test_it_describes_itself_in_a_few_words_without_secrets(subject: Subject) -> None:
    words = subject.target.describe()
    assert 0 < len(words) <= 100
    assert words.isprintable()
    assert not [secret for secret in subject.secrets if secret in words]


def test_it_says_how_it_stands_and_writes_nothing_for_that(subject: Subject) -> None:
    subject.hold(fetched("a.1.1"))
    standings = list(subject.target.check(None))
    assert standings
    assert not [standing for standing in standings if standing.status == "problem"]
    assert all(standing.sentence.endswith(".") for standing in standings)
    assert not [secret for secret in subject.secrets for standing in standings if secret in standing.sentence]
    assert revisions(subject, "a.1") == {"a.1": 1}


def listed_as_kept(subject: Subject) -> int:
    """A ledger of which one entry is as the target has it; what the target says."""
    subject.hold(*(fetched(docid) for docid in ("a.1.1", "a.2.1", "a.2.2", "a.4.1")))
    entries: dict[str, dict[str, object]] = {
        "a.1": {},  # the target holds just this
        "a.2": {},  # and a higher revision
        "a.3": {},  # not this
        "a.4": {"pending_sha256": "0" * 64},
        "a.5": {"outcome": "invalid", "next_attempt": date(2026, 11, 21)},
    }
    common = {
        "site_schedule_id": SITE,
        "revision": 1,
        "document_url": "u",
        "document_type": "t",
        "outcome": "unchanged",
    }
    with writers(subject.engine).begin() as session:
        for document_id, columns in entries.items():
            values = {**common, "document_id": document_id, "target_revision": 1, **columns}
            session.execute(insert(HarvestDocument).values(**values))
    assert subject.session.writes_in_journal
    return subject.session.kept(SITE)


def test_it_never_says_that_it_has_kept_more_of_the_ledger_than_it_has(subject: Subject) -> None:
    if not subject.session.writes_in_journal:
        pytest.skip("it is asked about each document")
    assert listed_as_kept(subject) in (0, 1)
    assert subject.session.kept(SITE + 1) == 0


@pytest.mark.parametrize("subject", [name for name in SUBJECTS if name.startswith("embedded")], indirect=True)
def test_the_embedded_target_counts_what_it_has_kept(subject: Subject) -> None:
    """0 would do, and would cost a question for each document."""
    assert listed_as_kept(subject) == 1
