"""The folder target: what is in the folder, what a crash leaves, what people do to its files, and what it says then."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from metaharvest.errors import TargetError
from metaharvest.model import Action, FetchedDocument, ListedDocument
from metaharvest.rules import RULES
from metaharvest.targets.base import Upload
from metaharvest.targets.folder import base_folder
from metaharvest.targets.folder.files import Files
from metaharvest.targets.folder.names import Layout, digest_of
from metaharvest.targets.folder.session import FolderSession
from metaharvest.targets.folder.target import FolderTarget
from support.databases import open_sqlite_file
from targets.test_folder_names import document_ids, layouts

AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
TYPE = "https://eml.ecoinformatics.org/eml-2.2.0"
FIRST = "ilLib/alliance/1234.xml"
OAI = "oai:ilLib:alliance:1234"


class Installation:
    """A folder, and the harvester's own database beside it."""

    def __init__(self, scratch: Path, layout: Layout = "tree", most: int = 5000) -> None:
        self.engine: Engine = open_sqlite_file(scratch / "metaharvest.db")
        self.base = scratch / "repository"
        self.layout: Layout = layout
        self.most = most

    @property
    def target(self) -> FolderTarget:
        """The target as a run that begins now has it."""
        return FolderTarget(self.base, self.layout, self.most, self.engine)

    @property
    def index(self) -> Path:
        return self.base / ".metaharvest" / "index.db"

    def files(self) -> dict[str, bytes]:
        """Every file outside of what is the harvester's own."""
        found = (path for path in self.base.rglob("*") if path.is_file())
        relative = {str(path.relative_to(self.base)): path for path in found}
        return {name: path.read_bytes() for name, path in relative.items() if not name.startswith(".")}

    def holdings(self, *document_ids: str) -> dict[str, int]:
        with self.target.session(None) as session:
            return {each: holding.revision for each, holding in session.holdings(document_ids).items()}

    def put(self, *uploads: Upload) -> list[Action]:
        with self.target.session(None) as session:
            return [session.upload(each) for each in uploads]

    def change(self, sql: str, *values: object) -> None:
        """Change the index by hand."""
        with closing(sqlite3.connect(self.index)) as connection, connection:
            assert connection.execute(sql, values).rowcount

    def held(self) -> list[tuple[str, int, str, str | None]]:
        return [(held.document_id, held.revision, held.document_type, held.sha256) for held in self.target.held()]

    def standing(self) -> tuple[str, str]:
        [standing] = self.target.check(None)
        return standing.status, standing.sentence


@pytest.fixture
def installed(tmp_path: Path) -> Iterator[Installation]:
    made = Installation(tmp_path)
    yield made
    made.engine.dispose()


def upload(document_id: str, revision: int, content: bytes = b"") -> Upload:
    content = content or eml(f"{document_id} {revision}")
    document = ListedDocument(document_id, revision, TYPE, "https://me:secret@site.example.org/1.xml")
    return Upload(FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.1), 1, AT)


def eml(words: str) -> bytes:
    return f'<e:eml xmlns:e="{TYPE}">{words.encode("ascii", "xmlcharrefreplace").decode()}</e:eml>'.encode()


def refusal(call: object, *arguments: object) -> TargetError:
    """What a call raises, which must be whole sentences, with a rule that is known."""
    with pytest.raises(TargetError) as caught:
        call(*arguments)  # type: ignore[operator]
    for finding in caught.value.findings:
        assert finding.rule in RULES
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")
    return caught.value


def rule_of(error: TargetError) -> str:
    [finding] = error.findings
    return finding.rule


# -- what is in the folder


def test_a_file_a_revision_and_nothing_else_but_what_is_the_harvesters_own(installed: Installation) -> None:
    assert installed.put(upload("a.1", 1), upload("a.1", 3), upload(OAI, 1), upload(OAI, 2)) == [
        *(Action.INSERT, Action.UPDATE),
        *(Action.INSERT, Action.UPDATE),
    ]
    assert installed.files() == {
        "a/1/a.1.1.xml": eml("a.1 1"),
        "a/1/a.1.3.xml": eml("a.1 3"),
        FIRST: eml(f"{OAI} 1"),
        "ilLib/alliance/1234.2.xml": eml(f"{OAI} 2"),
    }
    assert sorted(path.name for path in installed.base.iterdir()) == [".metaharvest", "a", "ilLib"]
    assert (installed.base / FIRST).stat().st_mode & 0o777 == 0o666 & ~umask()
    assert list((installed.base / ".metaharvest" / "tmp").iterdir()) == []


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_it_can_be_put_under_git_and_is_whole_in_a_clone_once_its_index_was_made(
    installed: Installation, tmp_path: Path
) -> None:
    installed.put(upload("a.1", 1), upload("x" * 300, 1), upload("a.2", 1))
    with installed.target.session(None) as session:
        session.delete("a.2")
    held = installed.held()

    def git(*arguments: str, where: Path = installed.base) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=me", "-c", "user.email=me@example.org", *arguments],
            cwd=where,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "-m", "all")
    kept = git("ls-files", ".metaharvest").split()
    digest = digest_of("x" * 300)
    assert sorted(Path(path).name for path in kept) == sorted([".gitignore", "a.2.1.xml", "folder.json", digest])
    clone = tmp_path / "clone"
    git("clone", "--quiet", str(installed.base), str(clone), where=tmp_path)
    shutil.rmtree(installed.base)
    clone.rename(installed.base)
    error = refusal(installed.holdings, "a.1")
    assert (rule_of(error), error.transient) == ("target.folder-index", True)
    assert "is not there (it does not travel with git)" in str(error)
    assert "`metaharvest target rebuild`" in error.findings[0].remedy
    done = installed.target.rebuild()
    assert (done.documents, done.revisions, done.deleted, done.others, done.problems) == (2, 2, 1, 0, [])
    assert installed.held() == held
    assert installed.put(upload("a.3", 1)) == [Action.INSERT]
    assert installed.standing()[0] == "ok"
    assert rule_of(refusal(installed.put, upload("a.2", 1))) == "target.exists"


def test_a_document_is_put_again_where_it_is_and_nothing_is_doubled(installed: Installation) -> None:
    assert installed.put(upload("a.1", 1), upload("a.1", 2), upload("a.1", 1), upload("a.1", 2)) == [
        *(Action.INSERT, Action.UPDATE),
        *(Action.INSERT, Action.UPDATE),
    ]
    assert sorted(installed.files()) == ["a/1/a.1.1.xml", "a/1/a.1.2.xml"]
    error = refusal(installed.put, upload("a.1", 2, b"<other/>"))
    assert (rule_of(error), error.transient) == ("target.other-content", False)
    assert "a/1/a.1.2.xml" in str(error)
    error = refusal(installed.put, upload("a.1", 0))
    assert (rule_of(error), error.transient) == ("target.exists", False)
    assert installed.files()["a/1/a.1.2.xml"] == eml("a.1 2")


def test_what_is_there_is_told_without_credentials(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    [held] = installed.target.revisions("a.1")
    assert (held.source_url, held.inserted_at, held.document_type) == ("https://site.example.org/1.xml", AT, TYPE)
    assert installed.target.describe() == f"the folder {installed.base}"[:100] or "…" in installed.target.describe()


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_a_folder_gets_so_many_names_also_after_its_index_was_made_anew(tmp_path: Path, layout: Layout) -> None:
    installed = Installation(tmp_path, layout, most=3)
    for number in range(7):
        if number in (2, 5):
            installed.target.rebuild()
        installed.put(upload(f"a.{number}", 1))
    folders = {path.rpartition("/")[0] for path in installed.files()}
    if layout == "flat":
        assert folders == {"", "starting_at_3", "starting_at_6"}
    else:
        numbers = ["0", "1", "2", *(f"starting_at_3/{n}" for n in (3, 4, 5)), "starting_at_6/6"]
        assert folders == {f"a/{number}" for number in numbers}
    assert installed.standing()[1].endswith("holds 7 documents in 7 files.")
    installed.engine.dispose()


def test_documents_stay_in_their_layout_if_the_settings_name_another(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    installed.layout = "flat"
    installed.put(upload("a.1", 2), upload("a.2", 1))
    assert sorted(installed.files()) == ["a.2.1.xml", "a/1/a.1.1.xml", "a/1/a.1.2.xml"]
    held = installed.held()
    installed.target.rebuild()
    assert installed.held() == held
    installed.put(upload("a.1", 3))
    assert "a/1/a.1.3.xml" in installed.files()


@pytest.mark.slow
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.lists(document_ids, min_size=1, max_size=8, unique=True), layouts)
def test_whatever_an_identifier_contains_its_file_is_inside_and_tells_it(
    tmp_path: Path, ids: list[str], layout: Layout
) -> None:
    scratch = tmp_path / hashlib.sha256(repr((ids, layout)).encode()).hexdigest()
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    installed = Installation(scratch, layout, most=3)
    contents = {each: f"<e>{number}</e>".encode() for number, each in enumerate(ids)}
    installed.put(*(upload(each, 1, content) for each, content in contents.items()))
    assert sorted(installed.files().values()) == sorted(contents.values())
    assert {path.name.partition("-")[0] for path in scratch.iterdir()} == {"repository", "metaharvest.db"}
    installed.index.unlink()
    installed.target.rebuild()
    assert {held.document_id: installed.target.content(held.document_id, 1) for held in installed.target.held()} == (
        contents
    )
    installed.engine.dispose()


# -- deleted documents


def test_a_deleted_document_is_out_of_sight_and_kept_apart(installed: Installation) -> None:
    installed.put(upload(OAI, 1), upload(OAI, 2), upload("a.1", 1))
    with installed.target.session(None) as session:
        assert not session.delete("oai:none:none:1")
        assert session.delete(OAI)
        assert not session.delete(OAI)
        assert session.holdings([OAI]) == {}
        assert not session.holds(OAI, 2, upload(OAI, 2).fetched.sha256)
    assert list(installed.files()) == ["a/1/a.1.1.xml"]
    assert sorted(path.name for path in installed.base.iterdir()) == [".metaharvest", "a"]
    apart = installed.base / ".metaharvest" / "deleted"
    assert (apart / FIRST).read_bytes() == eml(f"{OAI} 1")
    assert installed.target.revisions(OAI) == []
    assert installed.target.content(OAI, 1) is None
    assert installed.standing()[1].endswith("holds 1 document in 1 file, and 2 files of deleted documents apart.")


@pytest.mark.parametrize("made_anew", [False, True])
def test_the_revisions_of_a_deleted_document_are_used_up_and_a_higher_one_brings_it_back(
    installed: Installation, made_anew: bool
) -> None:
    installed.put(upload(OAI, 1), upload(OAI, 2))
    with installed.target.session(None) as session:
        session.delete(OAI)
    if made_anew:
        installed.index.unlink()
        installed.target.rebuild()
    for revision in (1, 2):
        error = refusal(installed.put, upload(OAI, revision))
        assert (rule_of(error), error.transient) == ("target.exists", False)
        assert "deleted" in str(error)
    assert installed.put(upload(OAI, 3)) == [Action.INSERT]
    assert installed.holdings(OAI) == {OAI: 3}
    assert list(installed.files()) == ["ilLib/alliance/1234.3.xml"]
    with installed.target.session(None) as session:
        assert session.delete(OAI)
    assert installed.holdings(OAI) == {}


def test_a_deletion_that_was_broken_off_is_finished_by_the_next_one(installed: Installation) -> None:
    installed.put(upload(OAI, 1), upload(OAI, 2))
    apart = installed.base / ".metaharvest" / "deleted" / "ilLib" / "alliance"
    apart.mkdir(parents=True)
    (installed.base / "ilLib/alliance/1234.2.xml").rename(apart / "1234.2.xml")
    assert installed.holdings(OAI) == {}
    with installed.target.session(None) as session:
        assert session.delete(OAI)
    assert installed.files() == {}
    assert sorted(path.name for path in apart.iterdir()) == ["1234.2.xml", "1234.xml"]


@pytest.mark.parametrize("moved", [1, 2])
def test_a_restoration_that_was_interrupted_is_finished_by_the_next_one(installed: Installation, moved: int) -> None:
    installed.put(upload(OAI, 1), upload(OAI, 2))
    before = installed.files()
    with installed.target.session(None) as session:
        session.delete(OAI)
    apart = installed.base / ".metaharvest" / "deleted"
    for name in sorted(before)[:moved]:
        (installed.base / name).parent.mkdir(parents=True, exist_ok=True)
        (apart / name).rename(installed.base / name)
    with installed.target.session(None) as session:
        session.restore(OAI)
    assert installed.holdings(OAI) == {OAI: 2}
    assert installed.files() == before
    assert installed.standing()[0] == "ok"


def test_another_file_in_the_place_of_a_restored_one_is_reported(installed: Installation) -> None:
    installed.put(upload(OAI, 1))
    with installed.target.session(None) as session:
        session.delete(OAI)
    (installed.base / FIRST).parent.mkdir(parents=True)
    (installed.base / FIRST).write_bytes(b"<other/>")
    with installed.target.session(None) as session:
        assert rule_of(refusal(session.restore, OAI)) == "target.folder-link"
    assert installed.files() == {FIRST: b"<other/>"}


# -- what a crash leaves


def test_a_crash_before_the_file_was_in_its_place_leaves_nothing_that_is_held(installed: Installation) -> None:
    installed.put(upload("a.1", 1), upload("a.2", 1))
    (installed.base / "a/2/a.2.1.xml").unlink()
    installed.change("UPDATE revision SET state = 'reserved' WHERE document_id = 'a.2'")
    assert installed.holdings("a.1", "a.2") == {"a.1": 1}
    assert installed.put(upload("a.2", 1, b"<other/>")) == [Action.INSERT]
    assert installed.files()["a/2/a.2.1.xml"] == b"<other/>"
    assert installed.holdings("a.2") == {"a.2": 1}


def test_a_crash_after_the_file_was_in_its_place_is_found_at_the_next_look(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    installed.change("UPDATE revision SET state = 'reserved'")
    assert installed.holdings("a.1") == {"a.1": 1}
    with installed.target.session(None) as session:
        assert session.holds("a.1", 1, upload("a.1", 1).fetched.sha256)
    assert [held[:2] for held in installed.held()] == [("a.1", 1)]
    assert [held.revision for held in installed.target.revisions("a.1")] == [1]
    assert installed.target.content("a.1", 1) == upload("a.1", 1).fetched.content
    assert installed.put(upload("a.1", 2)) == [Action.UPDATE]
    assert [held.revision for held in installed.target.revisions("a.1")] == [2, 1]


def test_a_file_that_the_index_does_not_know_is_taken_for_what_it_is(installed: Installation) -> None:
    """A power cut may take the last rows of the index with it."""
    installed.put(upload("a.1", 1), upload("a.2", 1))
    installed.change("DELETE FROM revision WHERE document_id = 'a.2'")
    installed.change("DELETE FROM document WHERE document_id = 'a.2'")
    installed.change("DELETE FROM folder WHERE key = '/a/2'")
    with installed.target.session(None) as session:
        assert session.holds("a.2", 1, upload("a.2", 1).fetched.sha256)
        assert not session.holds("a.2", 1, "0" * 64)
    assert installed.put(upload("a.2", 1)) == [Action.INSERT]
    assert installed.standing()[0] == "ok"


def test_another_file_in_the_place_of_a_document_stays_and_is_told(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    (installed.base / "a/1/a.1.2.xml").write_bytes(b"<mine/>")
    error = refusal(installed.put, upload("a.1", 2))
    assert (rule_of(error), error.transient) == ("target.other-content", False)
    assert installed.files()["a/1/a.1.2.xml"] == b"<mine/>"
    assert installed.holdings("a.1") == {"a.1": 2}
    assert installed.target.content("a.1", 2) == b"<mine/>"


def test_what_was_half_written_is_removed_after_a_day(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    old, new = (installed.base / ".metaharvest" / "tmp" / name for name in ("old", "new"))
    for file in (old, new):
        file.write_bytes(b"<half")
    os.utime(old, (1e9, 1e9))
    installed.put(upload("a.2", 1))
    assert not old.exists()
    assert new.exists()


# -- what people do to it


@pytest.mark.slow
def test_what_is_there_while_the_index_is_made_anew_is_nothing_for_git(installed: Installation) -> None:
    """So it is, too, if the command is killed."""
    installed.put(*(upload(f"a.{number}", 1) for number in range(300)))
    seen, done = set[str](), threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.update(path.name for path in (installed.base / ".metaharvest").iterdir())

    looking = threading.Thread(target=look)
    looking.start()
    installed.target.rebuild()
    done.set()
    looking.join()
    ignored = (installed.base / ".metaharvest/.gitignore").read_text().split()
    kept = {name for name in seen if not any(fnmatch(name, pattern.rstrip("/")) for pattern in ignored)}
    assert len(seen) > len(kept) + 3
    assert kept == {"folder.json", ".gitignore"}


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["gone", "empty", "nonsense", "cut", "other", "version"])
def test_an_index_that_is_lost_or_damaged_is_told_and_made_anew(installed: Installation, damage: str) -> None:
    installed.put(*(upload(f"a.{number}", 1) for number in range(40)), upload("X" * 300, 1))
    held = installed.held()
    content = installed.index.read_bytes()
    made = {"empty": b"", "nonsense": b"nonsense" * 1000, "cut": content[:8192]}
    if damage in made:
        installed.index.write_bytes(made[damage])
    elif damage == "gone":
        installed.index.unlink()
    elif damage == "other":
        installed.change("UPDATE about SET folder_id = 'another'")
    else:
        with closing(sqlite3.connect(installed.index)) as connection:
            connection.execute("PRAGMA user_version = 99")
    calls = [
        lambda: installed.holdings("a.1"),
        lambda: installed.put(upload("b.1", 1)),
        lambda: list(installed.target.held()),
        lambda: installed.target.content("a.1", 1),
    ]
    for call in calls:
        error = refusal(call)
        assert (rule_of(error), error.transient) == ("target.folder-index", True)
        assert "`metaharvest target rebuild`" in error.findings[0].remedy
    status, sentence = installed.standing()
    assert (status, "`metaharvest target rebuild`" in sentence) == ("problem", True)
    assert installed.target.rebuild().documents == 41
    assert installed.held() == held
    assert installed.standing()[0] == "ok"


def test_a_folder_that_another_process_rebuilt_is_used(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    target = installed.target
    with target.session(None) as session:
        assert session.holdings(["a.1"])
    (installed.base / ".metaharvest/folder.json").write_text("{")
    installed.target.rebuild()
    with target.session(None) as session:
        assert session.holdings(["a.1"])["a.1"].revision == 1


def test_an_index_whose_damage_sqlite_cannot_name_is_rebuilt(installed: Installation) -> None:
    installed.put(*(upload(f"a.{number}", 1) for number in range(40)))
    content = installed.index.read_bytes()
    installed.index.write_bytes(content.replace(b"CREATE TABLE folder", b"CREATE TA\xff\xff\xff folder"))
    error = refusal(installed.holdings, "a.1")
    assert rule_of(error) == "target.folder-index"
    assert installed.target.rebuild().documents == 40
    assert installed.standing()[0] == "ok"


def test_making_the_index_anew_keeps_what_only_the_old_one_knows(installed: Installation) -> None:
    installed.put(upload("a.1", 1), upload("a.2", 1))
    before = list(installed.target.held())
    (installed.base / "a/2/a.2.1.xml").write_bytes(b"<changed/>")
    installed.target.rebuild()
    after = list(installed.target.held())
    assert after[0] == before[0]
    assert (after[1].sha256, after[1].size) == (hashlib.sha256(b"<changed/>").hexdigest(), len(b"<changed/>"))
    assert (after[1].source_url, after[1].document_type) == ("", "")


def test_files_that_were_taken_away_are_told_and_nothing_else_is_done(installed: Installation) -> None:
    installed.put(*(upload(f"a.{number}", 1) for number in range(4)))
    for number in (1, 2):
        (installed.base / f"a/{number}/a.{number}.1.xml").unlink()
    assert installed.holdings("a.0", "a.3") == {"a.0": 1, "a.3": 1}
    error = refusal(installed.holdings, "a.0", "a.1", "a.2", "a.3")
    assert (rule_of(error), error.transient) == ("target.folder-index", True)
    assert "a/1/a.1.1.xml is not there any more; another document is not as it says either." in str(error)
    assert rule_of(refusal(installed.target.content, "a.1", 1)) == "target.folder-index"
    status, sentence = installed.standing()
    assert status == "problem"
    assert "a/1/a.1.1.xml and 1 other file are not there any more" in sentence
    installed.target.rebuild()
    assert installed.holdings("a.0", "a.1", "a.2", "a.3") == {"a.0": 1, "a.3": 1}
    assert installed.put(upload("a.1", 1)) == [Action.INSERT]


@pytest.mark.parametrize("layout", ["tree", "flat"])
def test_files_that_were_added_are_told_if_they_are_of_a_document_that_is_asked_for(
    tmp_path: Path, layout: Layout
) -> None:
    installed = Installation(tmp_path, layout)
    installed.put(upload("a.1", 1), upload("a.2", 1), upload("X" * 300, 1))
    first = next(path for path in installed.files() if path.endswith("a.1.1.xml"))
    long = next(path for path in installed.files() if "=" in path)
    (installed.base / first.replace("a.1.1", "a.1.7")).write_bytes(b"<seven/>")
    (installed.base / long.replace(".1.xml", ".2.xml")).write_bytes(b"<two/>")
    (installed.base / "README.md").write_text("A word to people.")
    assert installed.holdings("a.2") == {"a.2": 1}
    for asked in ("a.1", "X" * 300):
        error = refusal(installed.holdings, "a.2", asked)
        assert (rule_of(error), error.transient) == ("target.folder-index", True)
        assert "it does not know" in str(error)
    status, sentence = installed.standing()
    assert status == "problem"
    assert "it does not know" in sentence
    assert "README" not in sentence
    done = installed.target.rebuild()
    assert (done.revisions, done.others) == (5, 1)
    assert installed.holdings("a.1", "X" * 300) == {"a.1": 7, "X" * 300: 2}
    installed.engine.dispose()


def test_files_that_are_there_twice_or_do_not_tell_their_document_are_told(installed: Installation) -> None:
    installed.put(upload("a.1", 1), upload("X" * 300, 1))
    (installed.base / "a.1.1.xml").write_bytes(b"<flat/>")
    (installed.base / "a" / "starting_at_5000" / "1").mkdir(parents=True)
    shutil.copy(installed.base / "a/1/a.1.1.xml", installed.base / "a/starting_at_5000/1/a.1.1.xml")
    for names in (installed.base / ".metaharvest/names").rglob("*"):
        if names.is_file():
            names.write_bytes(b"another")
    done = installed.target.rebuild()
    assert (done.documents, done.left_out) == (1, 3)
    assert [problem.partition(" ")[0] for problem in done.problems] == [
        "a/starting_at_5000/1/a.1.1.xml",
        "a.1.1.xml",
        f"other=/{'X' * 60}={digest_of('X' * 300)}.1.xml",
    ]
    assert "with the same content: a/1/a.1.1.xml is used." in done.problems[0]
    assert "with other content: a/1/a.1.1.xml is used." in done.problems[1]


def test_a_folder_with_documents_that_was_never_used_here_is_not_taken_for_an_empty_one(
    installed: Installation,
) -> None:
    (installed.base / "a/1").mkdir(parents=True)
    (installed.base / "a/1/a.1.1.xml").write_bytes(eml("a.1 1"))
    error = refusal(installed.holdings, "a.1")
    assert rule_of(error) == "target.folder-index"
    assert "is not there, but documents are" in str(error)
    assert installed.target.rebuild().documents == 1
    [held] = installed.target.held()
    assert (held.document_id, held.revision, held.document_type) == ("a.1", 1, TYPE)


def test_other_files_in_a_new_folder_are_left_alone(installed: Installation) -> None:
    (installed.base / ".git").mkdir(parents=True)
    (installed.base / "README.md").write_text("A word to people.")
    assert installed.holdings("a.1") == {}
    assert not (installed.base / ".metaharvest").exists()
    installed.put(upload("a.1", 1))
    assert sorted(installed.files()) == ["README.md", "a/1/a.1.1.xml"]


def test_files_with_names_that_are_no_text_are_left_alone(installed: Installation) -> None:
    """As Latin-1 names are, unpacked from an archive."""
    installed.put(upload("a.1", 1))
    for name in (b"caf\xe9.xml", b"a/1/\xff.1.xml", b"a.1.9.xml\n"):
        (installed.base / os.fsdecode(name)).touch()
    assert installed.standing()[0] == "ok"
    assert installed.put(upload("a.1", 2)) == [Action.UPDATE]
    done = installed.target.rebuild()
    assert (done.revisions, done.others, done.problems) == (2, 3, [])
    assert installed.standing()[0] == "ok"


def test_nothing_is_made_before_the_first_document(installed: Installation) -> None:
    assert installed.holdings("a.1") == {}
    assert list(installed.target.held()) == installed.target.revisions("a.1") == []
    assert installed.target.content("a.1", 1) is None
    with installed.target.session(None) as session:
        assert not session.holds("a.1", 1, "")
        assert not session.delete("a.1")
    assert installed.standing() == (
        "ok",
        f"Nothing was put into the folder {installed.base} yet; the first document begins it.",
    )
    assert not installed.base.exists()


# -- mounts, links, rights, room


@pytest.mark.parametrize("left", ["nothing", "an empty folder", "a folder with other files"])
def test_a_folder_that_is_not_mounted_is_not_taken_for_an_empty_one(installed: Installation, left: str) -> None:
    installed.put(upload("a.1", 1))
    away = installed.base.rename(installed.base.with_name("away"))
    if left != "nothing":
        installed.base.mkdir()
    if left == "a folder with other files":
        (installed.base / "lost+found").mkdir()
    before = sorted(installed.base.rglob("*"))
    for call in (
        lambda: installed.holdings("a.1"),
        lambda: installed.put(upload("a.2", 1)),
        lambda: list(installed.target.held()),
    ):
        error = refusal(call)
        assert (rule_of(error), error.transient) == ("target.folder-missing", True)
        assert "mounted" in error.findings[0].remedy
    assert installed.standing()[0] == "problem"
    assert sorted(installed.base.rglob("*")) == before
    if installed.base.exists():
        shutil.rmtree(installed.base)
    away.rename(installed.base)
    assert installed.holdings("a.1") == {"a.1": 1}


def test_another_folder_in_its_place_is_told_until_it_is_taken_as_it_is(
    installed: Installation, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Installation(tmp_path / "other")
    other.put(upload("b.1", 1))
    installed.put(upload("a.1", 1))
    installed.base.rename(tmp_path / "away")
    other.base.rename(installed.base)
    assert rule_of(refusal(installed.holdings, "a.1")) == "target.folder-missing"
    installed.target.rebuild()
    assert installed.holdings("a.1", "b.1") == {"b.1": 1}
    other.engine.dispose()


def test_a_folder_that_goes_away_in_the_middle_is_told(installed: Installation) -> None:
    with installed.target.session(None) as session:
        session.upload(upload("a.1", 1))
        installed.base.rename(installed.base.with_name("away"))
        error = refusal(session.upload, upload("a.2", 1))
        assert (rule_of(error), error.transient) == ("target.away", True)
        assert not installed.base.exists()


def test_a_damaged_marker_is_told_and_written_anew(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    (installed.base / ".metaharvest/folder.json").write_text("{")
    error = refusal(installed.holdings, "a.1")
    assert rule_of(error) == "target.folder-missing"
    assert "`metaharvest target rebuild`" in error.findings[0].remedy
    installed.target.rebuild()
    assert installed.holdings("a.1") == {"a.1": 1}
    assert json.loads((installed.base / ".metaharvest/folder.json").read_text())["id"]


def test_links_inside_the_folder_are_not_followed(installed: Installation, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "1").mkdir(parents=True)
    (outside / "secret.xml").write_bytes(b"<secret/>")
    installed.put(upload("b.1", 1))
    (installed.base / "a").symlink_to(outside)
    error = refusal(installed.put, upload("a.1", 1))
    assert (rule_of(error), error.transient) == ("target.folder-link", False)
    assert f"{installed.base}/a/1 is a symbolic link" in str(error)
    (installed.base / "b/1/b.1.2.xml").symlink_to(outside / "secret.xml")
    (installed.base / "c").mkdir()
    (installed.base / "c/1").write_bytes(b"a file where a folder belongs")
    for revised in (upload("b.1", 2), upload("c.1", 1)):
        assert rule_of(refusal(installed.put, revised)) == "target.folder-link"
    assert sorted(path.name for path in outside.rglob("*")) == ["1", "secret.xml"]
    assert (outside / "secret.xml").read_bytes() == b"<secret/>"
    done = installed.target.rebuild()
    assert (done.documents, done.revisions) == (1, 1)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_file_in_the_place_of_one_costs_that_document_alone(installed: Installation, kind: str) -> None:
    installed.put(upload("a.1", 1), upload("b.1", 1))
    place = installed.base / "a/1/a.1.2.xml"
    if kind == "link":
        place.symlink_to("a.1.1.xml")
    elif kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    for _ in range(2):
        error = refusal(installed.put, upload("a.1", 2))
        assert (rule_of(error), error.transient) == ("target.folder-link", False)
        assert str(place) in str(error)
        assert installed.holdings("a.1", "b.1") == {"a.1": 1, "b.1": 1}
    assert installed.put(upload("b.1", 2)) == [Action.UPDATE]
    place.rmdir() if kind == "folder" else place.unlink()
    assert installed.put(upload("a.1", 2)) == [Action.UPDATE]


def test_a_link_to_the_base_folder_itself_is_followed(installed: Installation, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    installed.base.symlink_to(tmp_path / "disk")
    installed.put(upload("a.1", 1))
    assert (tmp_path / "disk/a/1/a.1.1.xml").exists()
    assert installed.holdings("a.1") == {"a.1": 1}


def test_a_file_in_the_place_of_the_folder_is_told(installed: Installation) -> None:
    installed.base.write_text("a file")
    assert rule_of(refusal(installed.put, upload("a.1", 1))) == "target.away"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 400 KB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only the superuser may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=False)


def test_a_full_disk_is_told_and_loses_nothing(installed: Installation, small_disk: Path) -> None:
    installed.base = small_disk / "repository"
    installed.put(upload("a.1", 1))
    with installed.target.session(None) as session:
        error = refusal(session.upload, upload("a.2", 1, b"x" * 1_000_000))
        assert (rule_of(error), error.transient) == ("target.folder-full", True)
        assert "No space left on device" in str(error)
        assert session.upload(upload("a.3", 1)) is Action.INSERT
    assert installed.holdings("a.1", "a.2", "a.3") == {"a.1": 1, "a.3": 1}
    assert list((installed.base / ".metaharvest/tmp").iterdir()) == []
    # To the last byte: the index cannot be written either.
    with (small_disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(b"x" * 1024):
            pass
    for number in range(20):
        with pytest.raises(TargetError) as caught:
            installed.put(upload(f"b.{number}", 1))
        assert (rule_of(caught.value), caught.value.transient) == ("target.folder-full", True)
    (small_disk / "filler").unlink()
    assert installed.put(upload("b.0", 1)) == [Action.INSERT]
    assert [standing.status for standing in installed.target.check(None)] == ["warning", "ok"]


def test_a_file_system_that_is_read_only_is_told(installed: Installation, small_disk: Path) -> None:
    installed.base = small_disk / "repository"
    installed.put(upload("a.1", 1))
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for refused in (
        refusal(installed.put, upload("a.2", 1)),
        refusal(installed.holdings, "a.1"),
        refusal(installed.target.rebuild),
    ):
        assert (rule_of(refused), refused.transient) == ("target.folder-refused", True)
        assert str(refused).endswith("cannot be written: its file system is read-only.")
        assert "Mount it so that it can be written" in refused.findings[0].remedy
        assert "user" not in refused.findings[0].remedy
    told = [each.sentence for each in installed.target.check(None) if each.status == "problem"]
    assert any("read-only" in sentence for sentence in told)
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert installed.put(upload("a.2", 1)) == [Action.INSERT]


def test_an_index_that_this_user_may_not_write_is_told_before_it_is_to_be_written(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    file = installed.base / ".metaharvest/index.db"
    if os.geteuid() != 0:
        file.chmod(0o444)
        assert [standing.status for standing in installed.target.check(None)] == ["problem", "ok"]
        return
    # The superuser may write whatever may be written at all.
    if subprocess.run(["mount", "--bind", file, file], capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", file], check=True)
        assert [standing.status for standing in installed.target.check(None)] == ["problem", "ok"]
    finally:
        subprocess.run(["umount", file], check=True)


# -- several at once


def fill(scratch: Path, first: int, shared: int) -> None:
    """What another process does: documents of its own, and some that others put there as well."""
    installed = Installation(scratch, most=7)
    with installed.target.session(None) as session:
        for number in range(first, first + 20):
            session.upload(upload(f"own.{number}", 1))
            session.upload(upload(f"shared.{number % shared}", 1))
    installed.engine.dispose()


def test_another_process_may_begin_while_the_folder_is_looked_at(
    installed: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_marker = base_folder.read_marker

    def read_before_another_begins(files: Files) -> str | None:
        found = read_marker(files)
        monkeypatch.setattr(base_folder, "read_marker", read_marker)
        installed.put(upload("a.1", 1))
        return found

    monkeypatch.setattr(base_folder, "read_marker", read_before_another_begins)
    assert installed.holdings("a.1") == {"a.1": 1}


@pytest.mark.slow
def test_several_processes_put_documents_into_one_folder(installed: Installation, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=fill, args=(tmp_path, 100 * number, 10)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    expected = {f"own.{100 * process + n}": 1 for process in range(3) for n in range(20)}
    expected |= {f"shared.{n}": 1 for n in range(10)}
    assert installed.holdings(*expected) == expected
    assert len(installed.files()) == 70
    assert installed.standing()[0] == "ok"
    folders: dict[str, int] = {}
    for folder in (path for path in installed.base.rglob("*") if path.is_dir() and ".metaharvest" not in path.parts):
        inside = [path for path in folder.iterdir() if not path.name.startswith("starting_at_")]
        folders[folder.name] = max(len(inside), folders.get(folder.name, 0))
    assert max(folders.values()) <= 7


def test_the_index_is_not_made_anew_while_somebody_writes_and_the_other_way_round(installed: Installation) -> None:
    with installed.target.session(None) as session:
        session.upload(upload("a.1", 1))
        error = refusal(installed.target.rebuild)
        assert (rule_of(error), error.transient) == ("target.away", True)
        assert "a harvester is writing into it" in str(error)
    installed.target.rebuild()


def test_an_index_that_was_made_anew_is_used_from_then_on(installed: Installation) -> None:
    installed.put(upload("a.1", 1))
    target = installed.target
    with target.session(None) as session:
        assert isinstance(session, FolderSession)
        assert set(session.holdings(["a.1"])) == {"a.1"}
        (installed.base / "a/1/a.1.1.xml").unlink()
        installed.target.rebuild()
        assert session.upload(upload("a.1", 1)) is Action.INSERT
    assert installed.holdings("a.1") == {"a.1": 1}
