"""A title has a key in common with each reference to it, and hardly one with others."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.title_keys import keys_in_reference, keys_of_title, plain

TITLE = "On the growth of beech in poor soils: a study of forty plots"


@pytest.mark.parametrize(
    "raw",
    [
        f"Lind, A., & Bo, C. D. (2001). {TITLE}. Journal of Trees, 3(2), 1-15.",
        f"A. Lind and C. D. Bo, \u201c{TITLE.title()},\u201d J. Trees, vol. 3, May 2001.",
        f"LIND A. {TITLE.upper()} // J. Trees. 2001.",
        "Lind A (2001) On the growth of beech in poor soils. J Trees 3",
        "Lind A (2001) On the growth of beach in poor soils \u2013 a study of forty plots. J Trees 3",
        "Lind A (2001) On the grow\u00adth of be-ech in po\u00f6r soils. J Trees 3",
    ],
)
def test_a_reference_has_a_key_of_the_title_in_any_style(raw: str) -> None:
    assert keys_of_title(TITLE) & keys_in_reference(raw)


@pytest.mark.parametrize(
    ("title", "raw"),
    [
        ("贫瘠土壤上山毛榉的生长", "王明, 李华. 贫瘠土壤上山毛榉的生长[J]. 生态学报, 2010, 30(2): 1-15."),
        ("ブナ林の更新過程と種子散布", "山田太郎 (2012) ブナ林の更新過程と種子散布. 日本生態学会誌 62: 1-10."),
        ("Рост бука на бедных почвах", "Иванов И.И. Рост бука на бедных почвах // Лесоведение. 2005."),
        ("Beech trees", "Lind A. (2001). Beech trees. J. Trees 3."),
        ("\u00d8rsted's trees", "Bo, C. 1999. Orsted's trees. Oslo."),
    ],
)
def test_titles_in_other_scripts_and_short_ones_are_found(title: str, raw: str) -> None:
    assert keys_of_title(title) & keys_in_reference(raw)


@pytest.mark.parametrize("title", ["Editorial"[:8], "Preface", "", "?", "木"])
def test_a_title_that_is_too_short_has_no_key(title: str) -> None:
    assert keys_of_title(title) == frozenset()


def test_another_title_has_no_key_in_common() -> None:
    raw = "Lind, A. (2001). The growth of oak in rich soils: a study of forty sites. Journal of Trees 3."
    assert not keys_of_title(TITLE) & keys_in_reference(raw)


def test_a_key_fits_into_its_column() -> None:
    texts = ("x" * 5000, "木" * 500, "a木" * 500, "\ufb03" * 300)
    assert all(len(key) <= 64 for text in texts for key in keys_of_title(text) | keys_in_reference(text))


def test_plain_text_has_neither_accents_nor_marks() -> None:
    assert (
        plain("Stra\u00dfe &  \u00c9l\u00e8ves, na\u00efve\u2014\u0141\u00f3d\u017a_X") == "strasse eleves naive lodz x"
    )
