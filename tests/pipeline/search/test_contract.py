"""The contract of a search index, with the embedded one and with two servers of the protocol of OpenSearch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from metaharvest.errors import IndexUnavailable, MetaharvestError, NoIndex
from metaharvest.pipeline.search import index_places
from metaharvest.pipeline.search.contract import (
    INDEX_VERSION,
    Entry,
    Filters,
    Found,
    Hiding,
    Place,
    Search,
    Sort,
)
from metaharvest.pipeline.search.index_places import IndexFolder, IndexPlace, IndexServer
from metaharvest.pipeline.search.query_language import read_query
from support.outputs import entry, output
from support.ports import free_port
from support.search_servers import search_server

ENTRIES = [
    entry(
        1,
        output(
            "Leaf phenology of beech",
            creators=["Rivera, Ana", "Forest Institute"],
            abstract="Beech trees unfold their leaves early. We studied the leaf area index.",
            subjects=["phenology", "Fagus sylvatica"],
            year=2019,
            doi="10.5063/f1abc",
        ),
        text="The study plots lie in the Solling mountains.",
    ),
    entry(2, output("Oak growth in dry years", creators=["Müller, Jörg"], abstract="Oak, not beech.", year=2015)),
    entry(3, output("Soil moisture data", kind="dataset", year=2021, licence="CC0-1.0"), site="elm", site_id=2),
    entry(4, output("森林における機械学習", language="ja", year=2021, creators=["王, 小明"]), site="elm", site_id=2),
    entry(5, output("Über die Größe der Straße", language="de", year=None, kind="", licence="")),
    entry(6, output("Area of the leaf", abstract="beech", year=2019), work=1),
]


@pytest.fixture(scope="session", params=["folder", "osmem", "noida"])
def make_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[], IndexPlace]]:
    """Makes empty places of one kind."""
    names = iter(range(1000))
    if request.param == "folder":
        folder = tmp_path_factory.mktemp("index")
        yield lambda: IndexFolder(folder / str(next(names)))
        return
    with search_server(request.param) as url:
        yield lambda: IndexServer(f"{url}/test-{next(names)}")


@pytest.fixture(scope="session")
def filled(make_place: Callable[[], IndexPlace]) -> IndexPlace:
    """A place with ENTRIES, which no test changes."""
    made = make_place()
    rebuild(made, ENTRIES)
    return made


def rebuild(place: IndexPlace, entries: Sequence[Entry]) -> None:
    with place.begin() as opened:
        opened.put(entries)
        opened.commit()
    place.swap()


def test_an_entry_that_is_refused_leaves_the_others(make_place: Callable[[], IndexPlace]) -> None:
    bad = replace(entry(2, output("Bad year of oak")), year=10**30)
    place = make_place()
    with place.begin() as writer:
        refused = writer.put([entry(1, output("Oak")), bad, entry(3, output("Oak leaf"))])
        writer.commit()
        assert (writer.size(), writer.last_number()) == (2, 3)
    assert list(refused) == [2]
    assert "1000000000000000000000000000000" in refused[2] or "1e+30" in refused[2]
    place.swap()
    assert set(numbers(ask(place, "oak"))) == {1, 3}


def test_an_author_is_found_without_the_apostrophe(make_place: Callable[[], IndexPlace]) -> None:
    place = make_place()
    rebuild(place, [entry(1, output("Oak", creators=["O'Brien, Pat", "D’Angelo, Lu"])), entry(2, output("O'Brien"))])
    for text in ("OBrien", "author:obrien", 'author:"Pat OBrien"', "Lu DAngelo", "Pat O’Brien"):
        assert numbers(ask(place, text)) == [1], text


def write(place: IndexPlace, entries: Sequence[Entry] = (), gone: Sequence[int] = ()) -> None:
    writer = place.current()
    assert writer is not None
    with writer as opened:
        opened.put(entries)
        opened.remove(gone)
        opened.commit()


def ask(place: IndexPlace, text: str, **options: object) -> Found:
    return place.reader().search(Search(read_query(text), **options))  # type: ignore[arg-type]


def numbers(found: Found) -> list[int]:
    return [each.number for each in found.hits]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("beech", {1, 2, 6}),
        ("BÉECH", {1, 2, 6}),
        ("beech oak", {2}),
        ("beech OR moisture", {1, 2, 3, 6}),
        ("beech -oak", {1, 6}),
        ('"leaf area"', {1}),
        ("leaf area", {1, 6}),
        ("title:beech", {1}),
        ("author:rivera", {1}),
        ('author:"Ana Rivera"', {1}),
        ('"Rivera, Ana"', {1}),
        ("author:muller", {2}),
        ("subject:fagus", {1}),
        ("solling", {1}),
        ("fulltext:solling", {1}),
        ("abstract:solling", set()),
        ("year:2019", {1, 6}),
        ("year:2016..2020", {1, 6}),
        ("year:2021.. -moisture", {4}),
        ("year:..2016 OR year:2021", {2, 3, 4}),
        ("site:elm", {3, 4}),
        ("type:article", {1, 2, 4, 6}),
        ("author:mueller", {2}),
        ("Joerg Mueller", {2}),
        ('author:"Joerg Mueller"', {2}),
        ("title:ueber", set()),
        ("language:ja", {4}),
        ("language:jpn", {4}),
        ("language:German", {5}),
        ("language:(ger OR japonais)", {4, 5}),
        ("NOT language:eng", {4, 5}),
        ("language:nowhere", set()),
        ("licence:cc0", {3}),
        ("licence:CC-BY", {1, 2, 4, 6}),
        ("doi:10.5063/F1ABC", {1}),
        ("10.5063/f1abc", {1}),
        ("https://doi.org/10.5063/F1ABC", {1}),
        ("https://dx.doi.org/10.5063/F1ABC", {1}),
        ("title: beech", {1}),
        ("author:(rivera OR müller) -title:oak", {1}),
        ("author:王小明", {4}),
        ("id:doc.5", {5}),
        ("機械学習", {4}),
        ("学習", {4}),
        ("機械工学", set()),
        ("title:森林", {4}),
        ("author:小明", {4}),
        ("strasse grosse", {5}),
        ("-beech", {3, 4, 5}),
        ("-(beech OR oak) year:2021", {3, 4}),
        ("", {1, 2, 3, 4, 5, 6}),
        ("nowhere", set()),
    ],
)
def test_queries_find(filled: IndexPlace, query: str, expected: set[int]) -> None:
    found = ask(filled, query)
    assert set(numbers(found)) == expected
    assert found.total == len(expected)


def test_a_title_weighs_more_than_an_abstract(filled: IndexPlace) -> None:
    assert numbers(ask(filled, "beech"))[0] == 1
    assert numbers(ask(filled, "leaf"))[0] in (1, 6)
    scores = [each.score for each in ask(filled, "beech").hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


def test_the_newest_year_comes_first(filled: IndexPlace) -> None:
    assert numbers(ask(filled, "")) == [4, 3, 6, 1, 2, 5]
    assert numbers(ask(filled, "beech", sort=Sort.YEAR)) == [6, 1, 2]


def test_nothing_comes_after_the_last_place(filled: IndexPlace) -> None:
    assert numbers(ask(filled, "", after=Place(0, 1, 6))) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters({"site": ["elm"]}), {3, 4}),
        (Filters({"type": ["dataset", "thesis"]}), {3}),
        (Filters({"year": ["2019"], "full_text": ["no"]}), {6}),
        (Filters({"licence": ["CC-BY-4.0"], "language": ["ja"]}), {4}),
        (Filters(first_year=2016, last_year=2020), {1, 6}),
        (Filters(first_year=2021), {3, 4}),
        (Filters(work=1), {1, 6}),
        (Filters(document_id="doc.3"), {3}),
        (Filters({"site": ["cc0"]}), set()),
    ],
)
def test_filters(filled: IndexPlace, filters: Filters, expected: set[int]) -> None:
    assert set(numbers(ask(filled, "", filters=filters))) == expected


def test_facets_count_all_hits(filled: IndexPlace) -> None:
    found = ask(filled, "", limit=1, facets=True)
    assert dict(found.facets["site"]) == {"alder": 4, "elm": 2}
    assert list(found.facets["type"].items()) == [("journal article", 4), ("dataset", 1)]
    assert dict(found.facets["year"]) == {"2019": 2, "2021": 2, "2015": 1}
    assert dict(found.facets["language"]) == {"en": 4, "de": 1, "ja": 1}
    assert dict(found.facets["licence"]) == {"CC-BY-4.0": 4, "CC0-1.0": 1}
    assert dict(found.facets["full_text"]) == {"no": 5, "yes": 1}
    assert dict(ask(filled, "oak", facets=True).facets["site"]) == {"alder": 1}
    assert ask(filled, "oak").facets == {}


def test_hidden_sites_are_in_no_answer(filled: IndexPlace) -> None:
    hiding = Hiding(sites=[2])
    found = ask(filled, "", hiding=hiding, facets=True)
    assert set(numbers(found)) == {1, 2, 5, 6}
    assert found.total == 4
    assert dict(found.facets["site"]) == {"alder": 4}
    assert ask(filled, "", hiding=Hiding(sites=[1, 2], origins=["frogs"])).total == 0
    single = ask(filled, "", hiding=Hiding(numbers=[2, 4, 99]), facets=True, sort=Sort.YEAR)
    assert (numbers(single), single.total) == ([3, 6, 1, 5], 4)
    assert dict(single.facets["site"]) == {"alder": 3, "elm": 1}
    assert numbers(ask(filled, "beech", hiding=Hiding(numbers=[1]))) == [6, 2]
    related = filled.reader().more_like_this({"森林": 1.0, "beech": 1.0}, 10, hiding)
    assert {each.number for each in related} == {1, 2, 6}


@pytest.mark.parametrize("sort", list(Sort))
def test_pages_follow_one_another(make_place: Callable[[], IndexPlace], sort: Sort) -> None:
    place = make_place()
    words = ["beech", "beech oak", "beech oak elm fir"]
    entries = [entry(number, output(words[number % 3], year=2000 + number % 4)) for number in range(1, 31)]
    rebuild(place, entries)
    whole = numbers(ask(place, "beech", sort=sort, limit=100))
    assert sorted(whole) == list(range(1, 31))
    found: list[int] = []
    after = None
    while page := ask(place, "beech", sort=sort, limit=4, after=after).hits:
        found += [each.number for each in page]
        after = page[-1].place
        assert after.seen == len(found)
    assert found == whole


@pytest.mark.parametrize("gone", [{12}, range(9, 13), range(1, 13), range(1, 12)])
def test_a_page_after_outputs_that_are_gone_skips_none(
    make_place: Callable[[], IndexPlace], gone: Collection[int]
) -> None:
    place = make_place()
    rebuild(place, [entry(number, output("beech")) for number in range(1, 25)])
    last = None
    for _ in range(3):
        last = ask(place, "beech", sort=Sort.RELEVANCE, limit=4, after=last).hits[-1].place
    assert last is not None
    assert (last.number, last.seen) == (12, 12)
    found = ask(place, "beech", sort=Sort.RELEVANCE, limit=4, after=last, hiding=Hiding(numbers=frozenset(gone)))
    assert numbers(found) == [13, 14, 15, 16]


def test_related_outputs_have_most_of_the_terms(filled: IndexPlace) -> None:
    reader = filled.reader()
    found = reader.more_like_this({"beech": 1.0, "leaf": 1.0, "phenology": 2.0}, 2, Hiding())
    assert [each.number for each in found] == [1, 6]
    assert found[0].score > found[1].score
    assert reader.more_like_this({}, 5, Hiding()) == []
    assert reader.frequencies(["beech", "oak", "solling"]) == {"beech": 3, "oak": 1, "solling": 0, "": 6}


def test_an_entry_replaces_an_older_one_and_readers_see_it(make_place: Callable[[], IndexPlace]) -> None:
    place = make_place()
    rebuild(place, [entry(1, output("beech")), entry(2, output("oak"))])
    reader = place.reader()
    assert reader.size() == 2
    write(place, [entry(1, output("elm")), entry(3, output("fir"))], gone=[2, 99])
    assert reader.size() == 2
    assert [each.record["title"] for each in reader.search(Search(read_query("elm OR fir OR oak OR beech"))).hits]
    assert ask(place, "beech").total == ask(place, "oak").total == 0
    write(place, [entry(1, output("elm")), entry(3, output("fir"))])
    assert (reader.size(), ask(place, "elm").total) == (2, 1)


def test_an_entry_replaces_one_that_is_not_committed(make_place: Callable[[], IndexPlace]) -> None:
    place = make_place()
    with place.begin() as writer:
        for title in ("beech", "oak"):
            writer.put([entry(1, output(title))])
        writer.commit()
    place.swap()
    assert (place.reader().size(), ask(place, "oak").total) == (1, 1)


def test_the_record_comes_back_as_it_was(filled: IndexPlace) -> None:
    [hit] = ask(filled, "id:doc.1").hits
    assert hit.record == ENTRIES[0].record
    assert hit.record["creators"][0] == {"name": "Rivera, Ana", "family": "Rivera", "given": "Ana", "kind": "person"}


def test_a_new_index_is_made_beside_the_old_one(make_place: Callable[[], IndexPlace]) -> None:
    place = make_place()
    reader = place.reader()
    assert place.current() is None
    assert place.next() is None
    assert place.version() is None
    with pytest.raises(NoIndex) as caught:
        reader.size()
    assert str(caught.value) == "There is no search index yet: `metaharvest pipeline run` makes it."
    rebuild(place, [entry(1, output("old"))])
    assert reader.size() == 1
    with place.begin() as writer:
        assert writer.last_number() == 0
        writer.put([entry(1, output("new")), entry(7, output("new"))])
        writer.commit()
    assert (ask(place, "old").total, ask(place, "new").total) == (1, 0)
    begun = place.next()
    assert begun is not None
    with begun as writer:
        assert writer.last_number() == 7
        writer.put([entry(8, output("new"))])
        writer.commit()
    place.swap()
    assert (ask(place, "old").total, ask(place, "new").total, reader.size()) == (0, 3, 3)
    assert place.next() is None
    assert place.version() == INDEX_VERSION
    place.swap()
    assert reader.size() == 3


def test_an_old_index_that_cannot_be_deleted_is_no_new_one(
    make_place: Callable[[], IndexPlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place()

    def refuse(name: str) -> None:
        raise IndexUnavailable(f"{name} is busy.")

    with monkeypatch.context() as patch:
        patch.setattr(place, "_delete", refuse)
        for title in ("old", "new"):
            rebuild(place, [entry(1, output(title))])
    assert place.next() is None
    assert ask(place, "new").total == 1
    assert len(place._names()) == 2
    place.delete_old()
    assert len(place._names()) == 1
    assert ask(place, "new").total == 1


def test_an_index_of_another_version_answers_until_the_new_one_is_complete(
    make_place: Callable[[], IndexPlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    def know(version: int, oldest: int = 1) -> None:
        monkeypatch.setattr(index_places, "INDEX_VERSION", version)
        monkeypatch.setattr(index_places, "OLDEST_READABLE", oldest)

    place = make_place()
    rebuild(place, [entry(1, output("beech"))])
    know(2)
    assert (place.version(), place.current(), place.next()) == (1, None, None)
    with place.begin() as writer:
        writer.put([entry(1, output("beech")), entry(2, output("beech"))])
        writer.commit()
    reader = place.reader()
    assert (reader.size(), ask(place, "beech").total) == (1, 1)
    place.swap()
    assert (place.version(), reader.size(), ask(place, "beech").total) == (2, 2, 2)
    # An older program, and one whose fields are too different, have none.
    for versions in ((1,), (4, 3)):
        know(*versions)
        with pytest.raises(NoIndex, match="pipeline run"):
            ask(place, "beech")
        with pytest.raises(NoIndex, match="pipeline run"):
            place.reader().size()


def test_a_server_that_is_away_is_a_sentence() -> None:
    place = IndexServer(f"http://user:secret@127.0.0.1:{free_port()}")
    with pytest.raises(IndexUnavailable) as caught:
        place.reader().search(Search())
    assert "cannot be reached: [Errno 111] Connection refused." in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_damaged_index_is_a_sentence(tmp_path: Path) -> None:
    place = IndexFolder(tmp_path)
    rebuild(place, ENTRIES[:1])
    (tmp_path / "v1-1" / "meta.json").write_text("{}", encoding="utf-8")
    with pytest.raises(IndexUnavailable) as caught:
        IndexFolder(tmp_path).reader().size()
    assert "`metaharvest pipeline rebuild-index` makes it again" in str(caught.value)


@pytest.mark.parametrize(
    ("module", "library", "extra", "used"),
    [
        ("tantivy", "tantivy", "pipeline", lambda folder: IndexFolder(folder).begin()),
        ("opensearchpy", "opensearch-py", "opensearch", lambda _: IndexServer("http://127.0.0.1:1").reader()),
    ],
)
def test_a_library_that_is_missing_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    module: str,
    library: str,
    extra: str,
    used: Callable[[Path], object],
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MetaharvestError) as caught:
        used(tmp_path)
    assert str(caught.value).startswith(f"The library {library} is not installed, which the search needs.")
    assert f"pip install 'metaharvest[{extra}]'" in str(caught.value)
