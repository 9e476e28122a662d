"""Which files documents get: within the folder, one document each, also where case or Unicode forms do not count."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaharvest.targets.folder.index import Index, make_index, open_index
from metaharvest.targets.folder.names import Layout, Place, digest_of, place_of, read

AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)

HOSTILE = [
    "",
    ".",
    "..",
    "...",
    "/",
    "\\",
    "a/../../b",
    "/etc/passwd",
    "\0",
    "-rf",
    "~",
    "~root",
    "a ",
    "a.",
    " ",
    "a\nb",
]
MEANING = ["con", "CON", "aux.txt", "Nul.", "com1", "LPT9.a", "starting_at_5000", "Starting_At_5", "x.xml", "X.XML"]
OURS = ["%2F", "%2f", "a=b", f"a={digest_of('x')}", "other=", "a~b", ".metaharvest", ".git", "index.db"]
ALIKE = ["a", "A", "é", "e\u0301", "É", "ß", "SS", "ss", "ﬁ", "fi", "ı", "I", "i", "Å", "Å", "K", "k"]
NUMBERS = ["0", "1", "01", "1234", "1234.2", "1234.1", "1.2.3", str(2**63)]
LONG = ["x" * 300, "X" * 300, "é" * 100, ":" * 30, "a:" * 200]

parts = st.one_of(st.sampled_from(HOSTILE + MEANING + OURS + ALIKE + NUMBERS + LONG), st.text(max_size=8))
listed = st.builds(lambda scope, number: f"{scope}.{number}", parts, st.integers(0, 2**63 - 1) | st.integers(0, 3))
oai = st.lists(parts, min_size=1, max_size=4).map(lambda parts: ":".join(["oai", *parts]))
records = st.builds(
    lambda origin, prefix, identifier: f"{origin}/{prefix}/{identifier}",
    st.sampled_from(["repo", "a.b-c", "con", ".", "~", "x.xml"]) | parts,
    st.sampled_from(["oai_dc", "dc=", "(x)", "x.xml", "."]) | parts,
    oai | parts.map(lambda part: f"urn:{part}") | parts,
)
document_ids = st.one_of(listed, oai, records, parts, st.text())
revisions = st.one_of(st.integers(0, 4), st.integers(0, 2**63 - 1))
layouts = st.sampled_from(["tree", "flat"])

NAME = re.compile(r"[A-Za-z0-9_@+,%][A-Za-z0-9_.@+,%=~-]*(?<!\.)")
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)


def path_of(place: Place, revision: int) -> str:
    return "/".join((*place.folders, place.file_name(revision)))


def folded(path: str) -> str:
    """What tells a file from others where case and Unicode forms do not count."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFC", path).casefold())


@pytest.mark.parametrize(
    ("document_id", "revision", "tree", "flat"),
    [
        ("knb-lter-gce.109", 6, "knb-lter-gce/109/knb-lter-gce.109.6.xml", "knb-lter-gce.109.6.xml"),
        ("knb.lter.gce.109", 0, "knb.lter.gce/109/knb.lter.gce.109.0.xml", "knb.lter.gce.109.0.xml"),
        ("oai:ilLib:alliance:1234", 1, "ilLib/alliance/1234.xml", "ilLib~alliance~1234.xml"),
        ("oai:ilLib:alliance:1234", 2, "ilLib/alliance/1234.2.xml", "ilLib~alliance~1234.2.xml"),
        ("oai:ilLib:alliance:1234.2", 1, "ilLib/alliance/1234%2E2.xml", "ilLib~alliance~1234%2E2.xml"),
        ("oai:arXiv.org:hep-th/9901001", 1, "arXiv.org/hep-th%2F9901001.xml", "arXiv.org~hep-th%2F9901001.xml"),
        ("dams.org/dc/oai:ilLib:a:12", 1, "dams.org/dc=/ilLib/a/12.xml", "dams.org~dc=~ilLib~a~12.xml"),
        ("dams.org/dc/oai:ilLib:a:12", 2, "dams.org/dc=/ilLib/a/12.2.xml", "dams.org~dc=~ilLib~a~12.2.xml"),
        ("dams.org/dc/urn:a:12", 1, "dams.org/dc=/other=/urn%3Aa%3A12.xml", "dams.org~dc=~other=~urn%3Aa%3A12.xml"),
        ("doi:10.5072/FK2", 1, "other=/doi%3A10.5072%2FFK2.1.xml", "other=~doi%3A10.5072%2FFK2.1.xml"),
        ("../../etc.1", 1, "%2E.%2F..%2Fetc/1/%2E.%2F..%2Fetc.1.1.xml", "%2E.%2F..%2Fetc.1.1.xml"),
        ("aux.1", 1, "%61ux/1/%61ux.1.1.xml", "%61ux.1.1.xml"),
    ],
)
def test_people_find_a_document_by_its_identifier(document_id: str, revision: int, tree: str, flat: str) -> None:
    assert path_of(place_of(document_id, "tree"), revision) == tree
    assert path_of(place_of(document_id, "flat"), revision) == flat


@pytest.mark.slow
@settings(max_examples=200)
@given(document_ids, revisions, layouts, st.booleans())
def test_every_name_is_one_that_every_file_system_takes_and_means_nothing_else(
    document_id: str, revision: int, layout: Layout, hashed: bool
) -> None:
    place = place_of(document_id, layout, hashed)
    names = [*place.folders, place.file_name(revision)]
    assert len(names) <= 9
    for name in names:
        assert NAME.fullmatch(name)
        assert not RESERVED.match(name)
        assert len(name) <= 140
    for folder in place.folders:
        assert not re.fullmatch(r"(?i)starting_at_\d+|.*\.xml", folder)


@pytest.mark.slow
@settings(max_examples=200)
@given(document_ids, revisions, layouts, st.booleans())
def test_a_name_tells_its_document_and_revision(document_id: str, revision: int, layout: Layout, hashed: bool) -> None:
    place = place_of(document_id, layout, hashed)
    found = read(place.folders, place.file_name(revision))
    assert found is not None
    assert (found.revision, found.layout) == (revision, layout)
    assert (found.document_id, found.digest) == ((None, digest_of(document_id)) if place.hashed else (document_id, ""))


@given(st.lists(st.text("abAB.%=~12/ -_", min_size=1, max_size=12), max_size=3), st.text("abAB.%=~12 ", max_size=12))
def test_other_names_are_no_documents(folders: list[str], stem: str) -> None:
    """Whatever is read as a document is what that document would be named, to the letter."""
    if found := read(folders, f"{stem}.xml"):
        place = place_of(found.document_id, found.layout) if found.document_id is not None else None
        assert place is None or (list(place.folders), place.file_name(found.revision)) == (folders, f"{stem}.xml")


@contextmanager
def an_index() -> Iterator[Index]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "index.db"
        make_index(file, "here")
        with closing(open_index(file, Path(folder), "here")) as index:
            yield index


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.tuples(document_ids, revisions), min_size=1, max_size=25, unique=True), layouts, st.integers(1, 4))
def test_no_two_files_are_one_where_case_and_unicode_forms_do_not_count(
    documents: list[tuple[str, int]], layout: Layout, most: int
) -> None:
    with an_index() as index, index.writing():
        paths = [index.path_for(index.place(each, layout), revision, most) for each, revision in documents]
        again = [index.place(each, layout) for each, _ in documents]
    assert len({folded(path) for path in paths}) == len(documents)
    # Folders too: each has one spelling, and none is a file.
    spelled = {folder for path in paths for folder in above(path)}
    assert len({folded(folder) for folder in spelled}) == len(spelled)
    assert not {folded(folder) for folder in spelled} & {folded(path) for path in paths}
    # A file that is copied to such a file system, and back, still tells its document.
    for (document_id, revision), path, place in zip(documents, paths, again, strict=True):
        *folders, name = [part for part in path.split("/") if not part.startswith("starting_at_")]
        found = read(folders, name)
        assert found is not None
        told = (None, digest_of(document_id)) if place.hashed else (document_id, "")
        assert (found.document_id, found.digest, found.revision) == (*told, revision)
    inside = Counter(path.rpartition("/")[0] for path in {*paths, *spelled})
    assert max(number - numbered(folder, spelled) for folder, number in inside.items()) <= most


def above(path: str) -> Iterator[str]:
    """The folders that a path is in."""
    while path := path.rpartition("/")[0]:
        yield path


def numbered(folder: str, spelled: set[str]) -> int:
    """How many folders like starting_at_5000 there are in a folder."""
    begin = f"{folder}/starting_at_" if folder else "starting_at_"
    return sum(each.startswith(begin) and "/" not in each[len(begin) :] for each in spelled)


def test_documents_that_differ_in_case_alone_have_files_of_their_own() -> None:
    with an_index() as index, index.writing():
        ids = ["oai:ilLib:a:X", "oai:ilLib:a:x", "oai:illib:a:y", "oai:ilLib:A:z", "Scope.1", "scope.1", "scope.2"]
        paths = {each: index.path_for(index.place(each, "tree"), 1, 5000) for each in ids}
    assert paths == {
        "oai:ilLib:a:X": "ilLib/a/X.xml",
        "oai:ilLib:a:x": f"ilLib/x={digest_of('oai:ilLib:a:x')}.1.xml",
        "oai:illib:a:y": f"ilLib/y={digest_of('oai:illib:a:y')}.1.xml",
        "oai:ilLib:A:z": f"ilLib/z={digest_of('oai:ilLib:A:z')}.1.xml",
        "Scope.1": "Scope/1/Scope.1.1.xml",
        "scope.1": f"Scope/scope.1={digest_of('scope.1')}.1.xml",
        "scope.2": f"Scope/scope.2={digest_of('scope.2')}.1.xml",
    }


def test_a_folder_gets_so_many_names_and_no_more() -> None:
    """Files and folders count alike."""
    with an_index() as index, index.writing():
        tree = [index.path_for(index.place(f"a.{n}", "tree"), 1, 3) for n in range(8)]
        revisions = [index.path_for(index.place("a.7", "tree"), n, 3) for n in range(2, 5)]
        flat = [index.path_for(index.place(f"b.{n}", "flat"), 1, 3) for n in range(8)]
    assert [path.rpartition("/")[0] for path in tree] == [
        *("a/0", "a/1", "a/2"),
        *("a/starting_at_3/3", "a/starting_at_3/4", "a/starting_at_3/5"),
        *("a/starting_at_6/6", "a/starting_at_6/7"),
    ]
    inside = "a/starting_at_6/7"
    assert revisions == [f"{inside}/a.7.2.xml", f"{inside}/a.7.3.xml", f"{inside}/starting_at_3/a.7.4.xml"]
    # The folder `a` is one of the names in the base folder.
    folders = ["", "", *["starting_at_3"] * 3, *["starting_at_6"] * 3]
    assert [path.rpartition("/")[0] for path in flat] == folders


def test_the_documentation_shows_the_names_that_files_get() -> None:
    page = (Path(__file__).parents[2] / "docs" / "targets" / "folder.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| (?:(?:any other document id, such as )?`([^`]+)`|the same)(.*?) \| `([^`]+)` \| `([^`]+)` \|$",
        page,
        re.MULTILINE,
    )
    assert len(rows) == 5
    last = ""
    for document_id, what, tree, flat in rows:
        last = document_id or last
        number = re.search(r"revision (\d+)", what)
        revision = int(number[1]) if number else 2 if "second revision" in what else 1
        for place, shown in ((place_of(last, "tree"), tree), (place_of(last, "flat"), flat)):
            assert "/".join((*place.folders, place.file_name(revision))) == shown
