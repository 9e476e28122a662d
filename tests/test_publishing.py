"""Lists that a site keeps: the promise of a docid through any number of nights, canonical text, packageIds in place."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from lxml import etree

from metaharvest.errors import PublishingError
from metaharvest.model import ListedDocument
from metaharvest.publishing.comparing import Difference, differences
from metaharvest.publishing.contents import FolderOptions, Revisions
from metaharvest.publishing.documents import NotReplaceable, with_package_id
from metaharvest.publishing.entries import Change
from metaharvest.publishing.list_file import read_list_file, written
from metaharvest.publishing.naming import BaseUrl, base_url
from metaharvest.publishing.plan import BuildRequest, carry_out, plan_build
from metaharvest.sources.harvest_list.source import read_list
from support.harvester import eml
from support.lists import BASE, SiteFolder, documents_of

# -- the promise: a docid never changes its content


IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Thousands of lists are written, each of them to the disk itself where that is one."""

FILES = st.sampled_from(["1.xml", "2.xml", "sub/1.xml"])
"""Files of which the first and the last are the same document."""


class Nights(RuleBasedStateMachine):
    """A site that edits its documents in every way, and builds its list now and then.

    Titles stand for contents. A packageId that is brought into line with the list is no other content.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="metaharvest-nights-", dir=IN_MEMORY))
        self.site = SiteFolder(self.folder)
        self.site.put("always.xml", "alder.99.1")
        self.promised: dict[str, str] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(file=FILES, title=st.sampled_from("abc"), revision=st.none() | st.integers(0, 6))
    def edit(self, file: str, title: str, revision: int | None) -> None:
        """Change a document, and leave its revision, or write one by hand; where there is none, make it."""
        if revision is None:
            revision = self._revision(file)
        self.site.put(file, f"alder.{file[-5]}.{revision}", title)

    @rule(file=FILES)
    def remove(self, file: str) -> None:
        (self.folder / file).unlink(missing_ok=True)

    @rule(writes=st.booleans(), all_revisions=st.booleans())
    def build(self, writes: bool, all_revisions: bool) -> None:
        request = BuildRequest(
            self.folder,
            BaseUrl(BASE),
            self.site.list_file,
            FolderOptions(revisions=Revisions.ALL if all_revisions else None),
            writes=writes,
        )
        plan = plan_build(request)
        carry_out(plan)
        content = self.site.list_file.read_bytes()
        assert written(read_list_file(content)) == content
        if not any(found.finding.is_error for found in plan.findings):
            assert not plan_build(request).changes_list
        self._keep_promises({each.document.docid for each in plan.changes if each.change is Change.HELD})

    def _revision(self, file: str) -> int:
        path = self.folder / file
        package_id = etree.parse(path).getroot().get("packageId") if path.exists() else None
        return int((package_id or "0").rpartition(".")[2])

    def _keep_promises(self, held: Collection[str]) -> None:
        """Of older revisions none was promised: harvesters pass over what is below the highest that they know.

        An entry that is `held` is told as an error: its file was changed so that nothing can be decided about it.
        """
        highest: dict[str, ListedDocument] = {}
        for document in documents_of(self.site.list_file):
            if document.revision >= highest.setdefault(document.document_id, document).revision:
                highest[document.document_id] = document
        for document in highest.values():
            path = self.folder / document.url.removeprefix(BASE)
            if path.exists() and document.docid not in held:
                title = etree.parse(path).findtext("dataset/title") or ""
                assert self.promised.setdefault(document.docid, title) == title, document
            event(f"revision {document.revision}")


TestNights = pytest.mark.slow(Nights.TestCase)
TestNights.settings = settings(max_examples=150, stateful_step_count=20)


def test_a_build_that_was_cut_short_comes_to_the_same_list(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    site.put("rain.xml", "alder.2.1")
    site.put("soil.xml", "alder.3.1")
    site.build()
    site.put("rain.xml", "alder.2.1", "Changed")
    site.put("soil.xml", "alder.3.1", "Changed")
    before = site.list_file.read_bytes()
    site.build("--write")
    after = site.list_file.read_bytes()
    # As if it had ended between the documents and the list, or between two documents.
    site.list_file.write_bytes(before)
    site.put("soil.xml", "alder.3.1", "Changed")
    site.build("--write")
    assert site.list_file.read_bytes() == after
    assert (tmp_path / "soil.xml").read_bytes() == eml("alder.3.2", "Changed")


@pytest.mark.parametrize("name", ["harvest-list.xml", "rain.xml"])
def test_what_somebody_else_changes_meanwhile_is_not_overwritten(tmp_path: Path, name: str) -> None:
    site = SiteFolder(tmp_path)
    site.put("rain.xml", "alder.2.1")
    site.build()
    site.put("rain.xml", "alder.2.1", "Changed")
    plan = plan_build(BuildRequest(tmp_path, base_url(BASE), site.list_file, writes=True))
    changed = (tmp_path / name).read_bytes().replace(b"</", b" </", 1)
    (tmp_path / name).write_bytes(changed)
    with pytest.raises(PublishingError, match="was changed"):
        carry_out(plan)
    assert (tmp_path / name).read_bytes() == changed
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


# -- canonical text

GAP = st.sampled_from(["", " ", "\n", "\n  ", "\n\n", "\r\n\t"])
COMMENT = st.text(st.characters(codec="utf-8", exclude_characters="-\r", exclude_categories=["Cc", "Cs"]), max_size=8)
NOISE = st.lists(
    st.one_of(GAP, COMMENT.map("<!--{}-->".format), st.sampled_from(["<?other data?>", "<!-- two\n  lines -->"])),
    max_size=4,
).map("".join)


@st.composite
def lists_by_hand(draw: st.DrawFn) -> bytes:
    """A valid list with comments, instructions and white space everywhere."""
    gaps = iter([draw(NOISE) for _ in range(40)])
    docids = draw(st.lists(st.tuples(st.sampled_from(["a", "b.c"]), st.integers(0, 20), st.integers(0, 9)), min_size=1,
                           max_size=3))  # fmt: skip
    entries = "".join(
        f"{next(gaps)}<document>{next(gaps)}<docid>{next(gaps)}<scope>{scope}{next(gaps).strip()}</scope>{next(gaps)}"
        f"<identifier> {identifier}</identifier>{next(gaps)}<revision>{revision}</revision>{next(gaps)}</docid>"
        f"{next(gaps)}<documentType>eml&amp;</documentType>{next(gaps)}<documentURL>https://x.example/é?a&amp;b"
        f"</documentURL>{next(gaps)}</document>"
        for scope, identifier, revision in docids
    )
    root = "eml://ecoinformatics.org/harvestList"
    text = f'{next(gaps)}<l:harvestList xmlns:l="{root}">{entries}{next(gaps)}</l:harvestList>{next(gaps)}'
    return text.encode()


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(lists_by_hand())
def test_canonical_text_keeps_documents_and_comments_and_is_stable(content: bytes) -> None:
    before = list(read_list(io.BytesIO(content)))
    list_file = read_list_file(content)
    once = written(list_file)
    assert written(read_list_file(once)) == once
    after = list(read_list(io.BytesIO(once)))
    assert [(each.docid, each.document_type, each.url) for each in after] == [
        (each.docid, each.document_type, each.url) for each in before
    ]
    assert comments_of(once) == comments_of(content)


def comments_of(content: bytes) -> list[str]:
    """The comments and instructions of a list, sorted: some of them change places."""
    root = etree.fromstring(content, etree.XMLParser(remove_comments=False))
    found = root.getroottree().xpath("//comment() | //processing-instruction()")
    assert isinstance(found, list)
    return sorted(str(etree.tostring(node, encoding="unicode", with_tail=False)) for node in found)  # type: ignore[arg-type]


# -- packageIds

NAMES = st.sampled_from(["id", "system", "scope", "packageid", "xpackageId"])
VALUES = st.text(st.sampled_from("ab =/>'.&\n packageId"), max_size=12)


@st.composite
def eml_roots(draw: st.DrawFn) -> tuple[str, str]:
    """What comes before and after a packageId in a document."""
    names = draw(st.lists(NAMES, unique=True))
    quotes = draw(st.sampled_from("'\""))

    def attribute(name: str) -> str:
        quote = draw(st.sampled_from("'\""))
        value = draw(VALUES).replace("&", "&amp;").replace(quote, "")
        return f"{draw(st.sampled_from([' ', chr(10), '  ']))}{name}={quote}{value}{quote}"

    cut = draw(st.integers(0, len(names)))
    misc = draw(
        st.sampled_from(["", "<!-- <x packageId='1'> -->", "<?x <y packageId='1'>?>", "\n", "<!DOCTYPE e SYSTEM 'a>'>"])
    )
    before = "".join(map(attribute, names[:cut]))
    after = "".join(map(attribute, names[cut:]))
    blank = draw(st.sampled_from(["", " ", "\n"]))
    head = f"{misc}<e{before} packageId{blank}={blank}{quotes}{blank}"
    return head, f"{blank}{quotes}{after}><f packageId='no'>é</f></e>"


@given(
    eml_roots(),
    st.sampled_from([("utf-8", ""), ("utf-8-sig", ""), ("utf-16", "UTF-16"), ("latin-1", "ISO-8859-1")]),
    st.sampled_from(["alder.1.2", "b.2.3"]),
)
def test_a_package_id_is_replaced_where_it_stands_and_nothing_else(
    around: tuple[str, str], encoding: tuple[str, str], package_id: str
) -> None:
    codec, declared = encoding
    declaration = f'<?xml version="1.0" encoding="{declared}"?>' if declared else ""

    def document(value: str) -> bytes:
        return f"{declaration}{around[0]}{value}{around[1]}".encode(codec)

    before = document("old.1.1")
    parsed = etree.fromstring(before).getroottree().docinfo.encoding or "UTF-8"
    assert with_package_id(before, parsed, package_id) == document(package_id)


@pytest.mark.parametrize(
    ("content", "encoding", "package_id"),
    [
        (b"<e packageId='a.1.1'/>", "x-unknown", "a.1.2"),
        (b"<e id='a.1.1'/>", "utf-8", "a.1.2"),
        (b"<e packageId='a.1.1'/>", "utf-8", "a'.1.2"),
        (b"<e packageId='a.1.1'/>", "utf-8", "a&.1.2"),
        (b"\xff<e packageId='a.1.1'/>", "utf-8", "a.1.2"),
    ],
)
def test_where_that_cannot_be_done_nothing_is(content: bytes, encoding: str, package_id: str) -> None:
    with pytest.raises(NotReplaceable):
        with_package_id(content, encoding, package_id)


# -- differences


@pytest.mark.slow
@given(st.data())
def test_lists_differ_from_one_another_and_not_from_themselves(data: st.DataObject) -> None:
    old, new = (data.draw(lists_by_hand()) for _ in range(2))
    before, now = list(read_list(io.BytesIO(old))), list(read_list(io.BytesIO(new)))
    assert differences(before, before) == []
    assert differences(before, list(read_list(io.BytesIO(written(read_list_file(old)))))) == []
    found = differences(before, now)
    opposite = {
        Difference.ADDED: Difference.REMOVED,
        Difference.LOWERED: Difference.RAISED,
        Difference.URL_CHANGED: Difference.URL_CHANGED,
        Difference.TYPE_CHANGED: Difference.TYPE_CHANGED,
    }
    back = differences(now, before)
    for kind, other in opposite.items():
        assert {each.document_id for each in found if each.kind is kind} <= {
            each.document_id for each in back if each.kind is other
        }
