"""Papers for the benchmark of extraction: made works, in lists of references of many styles and layouts.

The names and titles are invented. A style writes a work as a reference; a layout places references on pages.
"""

from __future__ import annotations

import random
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from support.pdf_files import Placed, pdf_of

_FAMILIES = [
    "Lind",
    "Bo",
    "Holm",
    "Albrecht",
    "Ferrari",
    "Nowak",
    "Dvořák",
    "Müller-Groß",
    "García",
    "O'Neil",
    "McBride",
    "Sørensen",
    "Åkesson",
    "Öztürk",
    "Tanaka",
    "Chen",
    "Petrov",
    "Kowalska",
    "Almeida",
    "Rossi",
    "Janssen",
    "Fischer",
    "Dupont",
    "Lefèvre",
    "Hansen",
    "Virtanen",
    "Nagy",
    "Ionescu",
    "Papadaki",
    "Silva",
    "Costa",
]
_PARTICLES = ("van der Berg", "de la Cruz", "von Stein", "ter Horst", "dos Santos", "Di Marco", "García Márquez")
_GIVEN = [
    "Anna",
    "Bert",
    "Carl",
    "Dora",
    "Erik",
    "Freya",
    "Georg",
    "Hana",
    "Ida",
    "Jan",
    "Karin",
    "Lars",
    "Mia",
    "Nils",
    "Olga",
    "Per",
    "Rosa",
    "Sven",
    "Tara",
    "Ulla",
]
_THINGS = [
    "beech forests",
    "young oaks",
    "frozen ground",
    "old bridges",
    "public libraries",
    "western rivers",
    "school readers",
    "night trains",
    "sea birds",
    "peat bogs",
    "stone walls",
    "small farms",
    "large files",
    "random walks",
    "city parks",
    "mountain lakes",
]
_ASPECTS = [
    "recovery",
    "growth",
    "slow decay",
    "history",
    "measurement",
    "distribution",
    "economics",
    "temperature",
    "long memory",
    "management",
    "diversity",
    "structure",
    "water balance",
    "spatial pattern",
    "seasonal change",
    "early warning",
]
_PLACES = [
    "the north",
    "poor soils",
    "three valleys",
    "four cities",
    "the late summer",
    "a dry climate",
    "small towns",
    "E. coli labs",
]
_FORMS = (
    "{Aspect} of {things} in {place}",
    "On the {aspect} of {things}",
    "{Things} and their {aspect}: a study of {place}",
    "Does {aspect} explain the loss of {things} in {place}?",
    "A model for the {aspect} of {things}, with remarks on {place}",
    "{Aspect} and {aspect2} of {things}: results from {place}, 1990-2015",
    "Notes on {things}",
)
_GERMAN = (
    ["Zur Geschichte der {0} im {1}", "Untersuchungen über {0} und {1}", "Die Bedeutung der {0} für die {1}"],
    ["Buchenwälder", "Brücken", "Büchereien", "Gletscher", "Vögel", "Moore", "Dörfer", "Wege"],
)
_FRENCH = (
    ["Étude sur {0} et {1}", "L'histoire de {0} au temps de {1}", "La question de {0} dans {1}"],
    ["la forêt", "la rivière", "la montagne", "l'école", "la ville", "la pluie", "l'oiseau", "la récolte"],
)
_JOURNALS = [
    "Journal of Trees",
    "Forests Today",
    "Annals of Slow Science",
    "Water and Ground",
    "Acta Silvae",
    "Proc. North. Soc.",
    "Nat. Notes",
    "Zeitschrift für Wald",
    "Revue des Forêts",
    "Int. J. Made Up Things",
]
_CITIES = ("Oslo: North Press", "Berlin: Verlag am Wald", "Paris: Presses du Nord", "Lund: Bokhuset")


@dataclass(frozen=True, slots=True)
class Person:
    family: str
    given: str

    def initials(self, mark: str = ".", between: str = " ") -> str:
        return between.join(f"{part[0]}{mark}" for part in self.given.split())


@dataclass(frozen=True, slots=True)
class MadeWork:
    """A work. `kind` is article, book or chapter; `number` is its number in the catalogue."""

    number: int
    people: tuple[Person, ...]
    title: str
    year: int
    journal: str
    volume: int
    issue: int
    first: int
    last: int
    kind: str = "article"
    doi: str | None = None


def made_works(number: int, seed: int = 1) -> list[MadeWork]:
    """Works; every third has a DOI. Some titles of one author are alike, as they are in life."""
    chance = random.Random(seed)
    works: list[MadeWork] = []
    while len(works) < number:
        families = chance.sample((*_FAMILIES, *_PARTICLES), chance.choice((1, 1, 2, 2, 3, 4, 6)))
        people = tuple(Person(each, " ".join(chance.sample(_GIVEN, chance.choice((1, 2))))) for each in families)
        first = chance.randrange(1, 2000)
        works.append(
            MadeWork(
                len(works) + 1,
                people,
                _title(chance),
                chance.randrange(1955, 2025),
                chance.choice(_JOURNALS),
                chance.randrange(1, 150),
                chance.randrange(1, 13),
                first,
                first + chance.randrange(2, 40),
                chance.choices(("article", "book", "chapter"), (7, 2, 1))[0],
                f"10.{chance.randrange(1000, 99999)}/{chance.choice(('j.', 's', 'x(a)-', ''))}{len(works):05d}"
                if chance.random() < 0.33
                else None,
            )
        )
    return works


def _title(chance: random.Random) -> str:
    forms, words = chance.choice((None, None, None, _GERMAN, _FRENCH)) or (None, None)
    if forms and words:
        return chance.choice(forms).format(*chance.sample(words, 2))
    aspect, aspect2 = chance.sample(_ASPECTS, 2)
    things = chance.choice(_THINGS)
    return chance.choice(_FORMS).format(
        aspect=aspect, Aspect=aspect.capitalize(), aspect2=aspect2, things=things, Things=things.capitalize(),
        place=chance.choice(_PLACES),
    )  # fmt: skip


# -- styles


def _joined(names: Sequence[str], last: str, between: str = ", ") -> str:
    return names[0] if len(names) == 1 else between.join(names[:-1]) + last + names[-1]


def _inverted(work: MadeWork, mark: str = ".", comma: str = ", ", between: str = " ") -> list[str]:
    return [f"{each.family}{comma}{each.initials(mark, between)}" for each in work.people]


def _doi(work: MadeWork, before: str = "https://doi.org/") -> str:
    return f" {before}{work.doi}" if work.doi else ""


def apa(work: MadeWork) -> str:
    names = _joined(_inverted(work), ", & ")
    if work.kind == "book":
        return f"{names} ({work.year}). {work.title}. North Press.{_doi(work)}"
    where = f"{work.journal}, {work.volume}({work.issue}), {work.first}–{work.last}."
    if work.kind == "chapter":
        where = f"In A. Editor & B. Helper (Eds.), Handbook of everything (pp. {work.first}–{work.last}). North Press."
    return f"{names} ({work.year}). {work.title}. {where}{_doi(work)}"


def harvard(work: MadeWork) -> str:
    names = _joined(_inverted(work, between=""), " and ")
    return (
        f"{names}, {work.year}. {work.title}. {work.journal}, {work.volume}({work.issue}), pp.{work.first}-{work.last}."
    )


def chicago(work: MadeWork) -> str:
    first, *others = work.people
    names = _joined([f"{first.family}, {first.given}", *(f"{each.given} {each.family}" for each in others)], ", and ")
    where = f"{work.journal} {work.volume} ({work.issue}): {work.first}–{work.last}."
    return f"{names}. {work.year}. “{work.title}.” {where}{_doi(work)}"


def old_book(work: MadeWork) -> str:
    names = _joined(_inverted(work), " and ", "; ")
    return f"{names} {work.year}. {work.title}. {work.journal} {work.volume}: {work.first}-{work.last}."


def german(work: MadeWork) -> str:
    names = _joined(_inverted(work), "; ", "; ")
    return f"{names} ({work.year}): {work.title}. In: {work.journal} {work.volume}, S. {work.first}-{work.last}."


def springer(work: MadeWork) -> str:
    names = ", ".join(_inverted(work, "", " ", ""))
    pages = f"{work.first}–{work.last}"
    return f"{names} ({work.year}) {work.title}. {work.journal} {work.volume}:{pages}.{_doi(work, 'doi:')}"


def vancouver(work: MadeWork) -> str:
    names = ", ".join(_inverted(work, "", " ", "")[:6])
    if work.kind == "book":
        return f"{names}. {work.title}. {_CITIES[work.number % 4]}; {work.year}."
    return f"{names}. {work.title}. {work.journal}. {work.year};{work.volume}({work.issue}):{work.first}-{work.last}."


def ieee(work: MadeWork) -> str:
    names = _joined([f"{each.initials()} {each.family}" for each in work.people], " and ")
    where = f"{work.journal}, vol. {work.volume}, no. {work.issue}, pp. {work.first}–{work.last}, May {work.year}"
    return f"{names}, “{work.title},” {where}{f', doi: {work.doi}' if work.doi else ''}."


def nature(work: MadeWork) -> str:
    names = _joined(_inverted(work), " & ")
    return f"{names} {work.title}. {work.journal} {work.volume}, {work.first}–{work.last} ({work.year})."


def mdpi(work: MadeWork) -> str:
    names = "; ".join(_inverted(work, between=""))
    return f"{names} {work.title}. {work.journal} {work.year}, {work.volume}, {work.first}–{work.last}.{_doi(work)}"


def abnt(work: MadeWork) -> str:
    names = "; ".join(f"{each.family.upper()}, {each.initials()}" for each in work.people)
    where = f"{work.journal}, v. {work.volume}, n. {work.issue}, p. {work.first}-{work.last}, {work.year}."
    return f"{names} {work.title}. {where}"


def gost(work: MadeWork) -> str:
    names = ", ".join(f"{each.family} {each.initials(between='')}" for each in work.people)
    return f"{names} {work.title} // {work.journal}. {work.year}. Vol. {work.volume}. P. {work.first}–{work.last}."


NAMED = (apa, harvard, chicago, old_book, german, springer)
"""Styles in the order of names."""

NUMBERED = (vancouver, ieee, nature, mdpi, abnt, gost, springer)
"""Styles in the order of numbers."""

STYLES: dict[str, Callable[[MadeWork], str]] = {each.__name__: each for each in (*NAMED, *NUMBERED)}

# -- layouts

_BODY = (
    "The plots were visited each summer, and all young trees were counted by two people who did not know the earlier "
    "numbers. Earlier work (Lind 2001; Holm et al. 1999) had found the same in other places. We compare the years."
)
_HEADINGS = ("References", "REFERENCES", "7. References", "Literature cited", "Literaturverzeichnis", "Bibliographie")
_LABELS = ("[{}] ", "{}. ", "{} ", "({}) ", "{}) ")
_ENDS = ("", "", "Appendix A", "Supplementary material", "Table 1. All plots of the study, by year")


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: its bytes, the style and layout, and the references as they were written."""

    name: str
    content: bytes
    media_type: str
    references: Sequence[str]
    works: Sequence[MadeWork] = field(default=())


def made_papers(works: Sequence[MadeWork], number: int, seed: int = 2) -> list[Paper]:
    """Papers of all styles and layouts in turn."""
    chance = random.Random(seed)
    papers = []
    for place in range(number):
        cited = chance.sample(works, chance.randrange(4, 26))
        layout = list(LAYOUTS)[place % len(LAYOUTS)]
        styles = NUMBERED if "number" in layout else NAMED
        style = styles[place // len(LAYOUTS) % len(styles)]
        if styles is NAMED:
            cited.sort(key=lambda work: (work.people[0].family, work.year))
        written = [style(work) for work in cited]
        papers.append(
            LAYOUTS[layout](replace(Paper(f"{style.__name__}, {layout}", b"", "", written), works=cited), chance)
        )
    return papers


def _wrapped(text: str, width: int, chance: random.Random, *, broken: bool = True) -> list[str]:
    """The lines of a text; now and then a word is broken at the end of a line."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    for place in range(len(lines) - 1):
        first, _, rest = lines[place + 1].partition(" ")
        if broken and first.isalpha() and first.islower() and len(first) > 7 and chance.random() < 0.5:
            lines[place] += f" {first[:4]}-"
            lines[place + 1] = f"{first[4:]} {rest}"
    return lines


def _text_paper(paper: Paper, chance: random.Random, blocks: Sequence[Sequence[str]], between: str) -> Paper:
    body = "\n".join(line for _ in range(12) for line in textwrap.wrap(_BODY, 80))
    listed = between.join("\n".join(block) for block in blocks)
    text = f"A made paper\n\n{body}\n\n{chance.choice(_HEADINGS)}\n\n{listed}\n\n{_after(chance)}"
    return replace(paper, content=text.encode(), media_type="text/plain")


def _after(chance: random.Random) -> str:
    end = chance.choice(_ENDS)
    return f"{end}\nMore text of 2003." if end else ""


def _pdf_paper(paper: Paper, chance: random.Random, blocks: Sequence[Sequence[tuple[float, str]]], gap: float) -> Paper:
    """One column: blocks of lines, each with its indent, on pages with running heads and numbers."""
    queue = [(72.0, line, 0.0) for _ in range(14) for line in textwrap.wrap(_BODY, 95)]
    queue += [(72.0, chance.choice(_HEADINGS), 14.0)]
    queue += [(72 + x, line, gap if not row else 0.0) for block in blocks for row, (x, line) in enumerate(block)]
    if end := chance.choice(_ENDS):
        queue += [(72.0, end, 20.0), (72.0, "More text of 2003 follows here.", 8.0)]
    pages: list[list[Placed]] = []
    y = 0.0
    for x, line, above in queue:
        y -= 12 + above
        if y < 70:
            number = len(pages) + 1
            pages.append([Placed(f"J. Made Papers {number}", 72, 760, 8), Placed(str(number), 300, 36, 8)])
            y = 720
        pages[-1].append(Placed(line, x, y))
    return replace(paper, content=pdf_of(pages), media_type="application/pdf")


def _columns_paper(paper: Paper, chance: random.Random, blocks: Sequence[Sequence[tuple[float, str]]]) -> Paper:
    """Two columns."""
    lines = [(0.0, line) for _ in range(30) for line in textwrap.wrap(_BODY, 46)] + [(0.0, chance.choice(_HEADINGS))]
    lines += [line for block in blocks for line in block]
    pages: list[list[Placed]] = []
    for place, (x, line) in enumerate(lines):
        page, row = divmod(place, 100)
        if page == len(pages):
            pages.append([])
        column, row = divmod(row, 50)
        pages[-1].append(Placed(line, (54, 318)[column] + x, 730 - 13 * row, 9))
    return replace(paper, content=pdf_of(pages), media_type="application/pdf")


def _blocks(
    paper: Paper, chance: random.Random, width: int, indents: tuple[float, float]
) -> list[list[tuple[float, str]]]:
    wrapped = [_wrapped(each, width, chance) for each in paper.references]
    return [[(indents[0] if not row else indents[1], line) for row, line in enumerate(block)] for block in wrapped]


def _labelled(paper: Paper, chance: random.Random) -> Paper:
    label = chance.choice(_LABELS)
    return replace(paper, references=[label.format(place) + each for place, each in enumerate(paper.references, 1)])


def _unlabelled(made: Paper, paper: Paper) -> Paper:
    return replace(made, references=paper.references)


def _numbers_in_text(paper: Paper, chance: random.Random) -> Paper:
    labelled = _labelled(paper, chance)
    blocks = [_wrapped(each, 80, chance) for each in labelled.references]
    return _unlabelled(_text_paper(labelled, chance, blocks, "\n"), paper)


def _numbers_in_pdf(paper: Paper, chance: random.Random) -> Paper:
    labelled = _labelled(paper, chance)
    return _unlabelled(_pdf_paper(labelled, chance, _blocks(labelled, chance, 95, (0, 0)), 0), paper)


def _numbers_in_columns(paper: Paper, chance: random.Random) -> Paper:
    labelled = _labelled(paper, chance)
    return _unlabelled(_columns_paper(labelled, chance, _blocks(labelled, chance, 46, (0, 14))), paper)


def _page(paper: Paper, chance: random.Random) -> Paper:
    body = "".join(f"<p>{_BODY}</p>" for _ in range(12))
    items = "".join(f"<li>{each.replace('&', '&amp;')}</li>" for each in paper.references)
    page = (
        f"<html><body><article><h1>A made paper</h1>{body}<h2>References</h2><ol>{items}</ol></article></body></html>"
    )
    return replace(paper, content=page.encode(), media_type="text/html")


LAYOUTS: dict[str, Callable[[Paper, random.Random], Paper]] = {
    "numbers, text": _numbers_in_text,
    "numbers, PDF": _numbers_in_pdf,
    "numbers, two columns": _numbers_in_columns,
    "blank lines, text": lambda paper, chance: _text_paper(
        paper, chance, [_wrapped(each, 80, chance) for each in paper.references], "\n\n"
    ),
    "no mark, text": lambda paper, chance: _text_paper(
        paper, chance, [_wrapped(each, 80, chance) for each in paper.references], "\n"
    ),
    "hanging indents, PDF": lambda paper, chance: _pdf_paper(paper, chance, _blocks(paper, chance, 90, (0, 18)), 0),
    "first indents, PDF": lambda paper, chance: _pdf_paper(paper, chance, _blocks(paper, chance, 90, (14, 0)), 0),
    "gaps, PDF": lambda paper, chance: _pdf_paper(paper, chance, _blocks(paper, chance, 95, (0, 0)), 6),
    "no mark, PDF": lambda paper, chance: _pdf_paper(paper, chance, _blocks(paper, chance, 95, (0, 0)), 0),
    "hanging indents, two columns": lambda paper, chance: _columns_paper(
        paper, chance, _blocks(paper, chance, 46, (0, 12))
    ),
    "page": _page,
}
