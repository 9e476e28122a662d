"""The list of references in a text, and its references."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.extraction.page_lines import Line, lines_of_text
from metaharvest.pipeline.extraction.references import find, is_heading

BODY = "\n".join(f"A line of the text, number {number}, with words about trees." for number in range(60))
REFERENCES = [
    "Lind, A., & Bo, C. D. (2001). On the growth of beech in poor soils. Journal of Trees, 3(2), 1–15.",
    "Holm, K. (2005). Storms and what they leave behind: a long study. Forests Today, 12, 100–120.",
    "van der Berg, J. (1998). Water in woods. In P. Schmidt (Ed.), Woods of the north (pp. 5–25). Berlin: Verlag.",
    "World Health Organization. (2019). Global report on trees. https://example.org/report",
]


def wrapped(text: str, width: int = 60, indent: str = "") -> list[str]:
    """The lines of a text, the later ones indented."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= width:
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def found(*lists: str, heading: str = "References", after: str = "") -> list[str]:
    return find(lines_of_text("\n".join((BODY, "", heading, *lists, after))))


@pytest.mark.parametrize("label", ["[{}] ", "{}. ", "{} ", "({}) ", "[{}]", "{}) "])
def test_numbered_references(label: str) -> None:
    lines = [line for number, each in enumerate(REFERENCES, 1) for line in wrapped(label.format(number) + each)]
    assert found(*lines) == REFERENCES


def test_references_with_blank_lines_between() -> None:
    lines = [line for each in REFERENCES for line in (*wrapped(each), "")]
    assert found(*lines) == REFERENCES


def test_references_known_by_their_names() -> None:
    lines = [line for each in REFERENCES[:3] for line in wrapped(each)]
    assert found(*lines) == REFERENCES[:3]


def test_references_each_on_a_line() -> None:
    assert found(*REFERENCES) == REFERENCES


def test_references_in_a_list_of_a_page() -> None:
    assert found(*(f"- {each}\n" for each in REFERENCES)) == REFERENCES


@pytest.mark.parametrize("indents", [(72, 90), (90, 72)])
def test_references_known_by_their_indents(indents: tuple[int, int]) -> None:
    """Hanging indents, and indents of first lines; names that no rule knows."""
    strange = [
        "anonymous notes on the growth of trees in gardens and parks of the town. 1999. Unpublished.",
        *REFERENCES,
    ]
    lines = [Line(line, indents[0], 700) for line in BODY.split("\n")] + [Line("Literatur", 72, 100)]
    for each in strange:
        first, *rest = wrapped(each)
        lines += [Line(first, indents[0], 90), *(Line(line, indents[1], 80) for line in rest)]
    assert find(lines) == strange


def test_two_columns_on_two_pages() -> None:
    lines = [Line(line, 72, 700) for line in BODY.split("\n")] + [Line("References", 72, 100)]
    for number, each in enumerate(REFERENCES * 2):
        first, *rest = wrapped(f"Anon {each}")
        left, page = (72, 310)[number % 2], number // 4
        lines += [Line(first, left, 90, page), *(Line(line, left + 12, 80, page) for line in rest)]
    assert find(lines) == [f"Anon {each}" for each in REFERENCES * 2]


@pytest.mark.parametrize(
    "heading",
    [
        *("References", "REFERENCES", "7. References", "R E F E R E N C E S", "Literature Cited:", "VI. Bibliography"),
        *("Literaturverzeichnis", "Références bibliographiques", "Bibliografía", "Referências", "Riferimenti"),
        *("Literatuur", "Källor", "Referanser", "Lähteet", "Piśmiennictwo", "Použitá literatura", "Irodalom"),
        *("Список литературы", "ЛИТЕРАТУРА", "Βιβλιογραφία", "Kaynakça", "参考文献", "引用文献", "참고문헌", "المراجع"),
        *("Daftar Pustaka", "**References**", "# References", "References and Notes"),
    ],
)
def test_headings_of_many_languages(heading: str) -> None:
    assert is_heading(heading)
    assert found(*REFERENCES, heading=heading) == REFERENCES


@pytest.mark.parametrize("text", ["see References", "The literature of the north", "Reference values", "", "7"])
def test_other_lines_are_no_heading(text: str) -> None:
    assert not is_heading(text)


@pytest.mark.parametrize("after", ["Appendix A", "Supplementary Material", "Danksagung", "\nTable 1. The plots of it"])
def test_the_list_ends_at_the_next_heading(after: str) -> None:
    assert found(*REFERENCES, after=f"{after}\nMore text of 2001, by Lind, A. (2001).") == REFERENCES


def test_a_heading_in_a_table_of_contents_is_not_the_list() -> None:
    text = "\n".join(("Contents", "References", "Appendix", BODY, "References", *REFERENCES))
    assert find(lines_of_text(text)) == REFERENCES


def test_a_heading_on_each_page_of_the_list_does_not_cut_it() -> None:
    lines = [f"[{number}] {each}" for number, each in enumerate(REFERENCES, 1)]
    assert found(*lines[:2], "References", *lines[2:]) == REFERENCES


def test_the_last_list_counts_and_the_first_part_of_a_text_has_none() -> None:
    text = "\n".join(("References", *REFERENCES, BODY, BODY))
    assert find(lines_of_text(text)) == []


def test_a_heading_on_the_line_of_the_first_reference() -> None:
    lines = [f"[{number}] {each}" for number, each in enumerate(REFERENCES, 1)]
    assert found(*lines[1:], heading=f"References {lines[0]}") == REFERENCES


def test_a_numbered_list_without_a_heading() -> None:
    lines = [f"[{number}] {each}" for number, each in enumerate(REFERENCES * 2, 1)]
    assert found(*lines, heading="") == REFERENCES * 2


def test_a_text_without_a_list_has_no_references() -> None:
    assert find(lines_of_text(BODY)) == []
    assert find([]) == []


def test_a_year_at_the_beginning_of_a_line_is_no_number_of_a_reference() -> None:
    lines = [f"[{number}] {each}" for number, each in enumerate(REFERENCES, 1)]
    lines[1] = lines[1].replace("Forests Today", "Forests\n2005 Today")
    assert found(*lines)[1] == REFERENCES[1].replace("Forests Today", "Forests 2005 Today")


@pytest.mark.slow
def test_a_long_list_stays_quick() -> None:
    """Linear time: ten thousand lines in a second."""
    assert len(found(*(REFERENCES * 2_500))) == 5_000
