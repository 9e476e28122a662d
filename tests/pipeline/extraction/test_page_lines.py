"""Lines of pages: running heads, page numbers, joined words, paragraphs."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.extraction.page_lines import Line, joined_line, lines_of_pages, lines_of_text, text_of


def pages_of(*pages: str) -> list[tuple[str, list[int], list[int]]]:
    """Pages with a line every 12 points, from the top down."""
    made = []
    for page in pages:
        lines = page.split("\n")
        made.append(("\r\n".join(lines), [72] * len(lines), [700 - 12 * row for row in range(len(lines))]))
    return made


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("a recovery of for-\nests today", "a recovery of forests\ntoday"),
        ("a recovery of for\u00ad\nests", "a recovery of forests"),
        ("a recovery of for\ufffeests", "a recovery of forests"),
        ("the Baden-\nWürttemberg area", "the Baden-Württemberg\narea"),
        ("a well-\nknown and well-known", "a well-known\nand well-known"),
        ("see 10.1234/abc-\ndef here", "see 10.1234/abc-def\nhere"),
        ("see https://example.org/a\ufffeb", "see https://example.org/a-b"),
        ("pages 10-\n20 of it", "pages 10-\n20 of it"),
        ("a range -\nand more", "a range -\nand more"),
        ("ﬁnd eﬃcient ﬂows", "find efficient flows"),
        ("one\n\ntwo\n\n\nthree", "one\n\ntwo\n\nthree"),
        ("hyphen-", "hyphen-"),
    ],
)
def test_words_are_joined_at_line_ends(text: str, joined: str) -> None:
    assert text_of(lines_of_text(text)) == joined


def test_a_reference_becomes_one_line() -> None:
    lines = [Line("Lind A. Recov-"), Line("ery of beech for-", gap=True), Line("ests. J Trees.")]
    assert joined_line(lines) == "Lind A. Recovery of beech forests. J Trees."


def test_running_heads_and_page_numbers_go_and_the_text_stays() -> None:
    pages = [f"Lind et al. Beech\nText {name} of a\nmore {name}\n{number}" for number, name in enumerate("abcd", 11)]
    text = text_of(lines_of_pages(pages_of(*pages)))
    assert text == "\n".join(f"Text {name} of a\nmore {name}" for name in "abcd")


def test_heads_of_left_and_right_pages_go() -> None:
    pages = [f"{'Lind' if number % 2 else 'Beech'} {number}\nBody {'x' * number}\nend" for number in range(8)]
    assert "Lind" not in text_of(lines_of_pages(pages_of(*pages)))


@pytest.mark.parametrize("number", ["7", "- 7 -", "Page 7 of 9", "Seite 7", "vii", "7/9"])
def test_page_numbers_have_many_forms(number: str) -> None:
    assert (
        text_of(lines_of_pages(pages_of(f"Some text\nmore text\nthe end\n{number}"))) == "Some text\nmore text\nthe end"
    )


def test_a_line_that_two_pages_share_is_no_head() -> None:
    text = text_of(lines_of_pages(pages_of("Abstract\none", "Abstract\ntwo", "Methods\nthree")))
    assert text.count("Abstract") == 2


def test_a_text_of_numbers_stays() -> None:
    assert text_of(lines_of_pages(pages_of("1\n2\n3\n4\n5\n6\n7\n8"))) == "3\n4\n5\n6"


def test_a_broken_word_does_not_begin_a_paragraph() -> None:
    """pdfium makes one line of two, so that the distance to the next one is twice as large."""
    page = ("one line of text\r\na recov\ufffeery of it\r\nand more text\r\nthe end", [72] * 4, [700, 688, 664, 652])
    assert "\n\n" not in text_of(lines_of_pages([page]))
