"""Which work a reference names, and when it names none."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.extraction.citation import parsed
from metaharvest.pipeline.extraction.matching import Work, by_title

BEECH = Work(("On the growth of beech in poor soils",), 2001, ("Lind", "van der Bo"), number=1)
OAK = Work(("On the growth of oak in rich soils",), 2001, ("Lind",), number=2)
SERIES = [
    Work((f"Vegetation of the northern heaths. Part {part}. Methods",), 2001, ("Lind",), number=number)
    for number, part in enumerate(("I", "II", "III"))
]


@pytest.mark.parametrize(
    "raw",
    [
        "Lind, A. (2001). On the growth of beech in poor soils. Journal of Trees, 3, 1-15.",
        "A. LIND. ON THE GROWTH OF BEECH IN POOR SOILS. 2001.",
        "Bo, C. van der, On the grovvth of beech in poor soil, J Trees 2000",
        "Lind A (2002) On the growth of beech in poor soils - a study of many plots. J Trees",
        "A. Lind, “On the growth of beech in\u00a0poor soils”, 2001",
    ],
)
def test_a_work_is_recognised_in_spite_of_style_and_misprints(raw: str) -> None:
    found = by_title(parsed(raw), [OAK, BEECH])
    assert found is not None
    assert found.work is BEECH
    assert found.score >= 85


@pytest.mark.parametrize(
    "raw",
    [
        "Lind, A. (1995). On the growth of beech in poor soils. Journal of Trees, 3, 1-15.",
        "Holm, K. (2001). On the growth of beech in poor soils. Journal of Trees, 3, 1-15.",
        "Lind, A. (2001). On the growth of pine in wet ground. Journal of Trees, 3, 1-15.",
        "Lind, A. (2001). Journal of Trees, 3, 1-15.",
    ],
)
def test_another_year_another_name_or_another_title_is_another_work(raw: str) -> None:
    assert by_title(parsed(raw), [BEECH]) is None


@pytest.mark.parametrize("number", [0, 1, 2])
def test_parts_of_a_series_are_told_apart(number: int) -> None:
    raw = f"Lind A. {SERIES[number].titles[0]}. J Trees 2001."
    found = by_title(parsed(raw), SERIES)
    assert found is not None
    assert found.work is SERIES[number]


def test_the_longer_of_two_titles_that_fit_counts() -> None:
    short = Work(("Growth of beech in soils",), 2001, ("Lind",))
    long = Work(("Growth of beech in soils of the north",), 2001, ("Lind",))
    found = by_title(parsed("Lind A (2001) Growth of beech in soils of the north. J"), [short, long])
    assert found is not None
    assert found.work is long


def test_a_short_title_must_be_all_of_the_title_of_the_reference() -> None:
    work = Work(("Forests",), 2001, ("Lind",))
    assert by_title(parsed("Lind A (2001) Forests. Oslo."), [work]) is not None
    assert by_title(parsed("Lind A (2001) Forests of the north and their growth. Oslo."), [work]) is None


def test_two_dois_are_two_works() -> None:
    work = Work(BEECH.titles, 2001, ("Lind",), doi="10.1000/a")
    raw = "Lind A (2001) On the growth of beech in poor soils. J Trees. "
    assert by_title(parsed(raw + "doi:10.1000/b"), [work]) is None
    assert by_title(parsed(raw), [work]) is not None


def test_a_work_without_names_or_year_needs_a_sure_title() -> None:
    raw = "Anon. (2001) On the growth of beech in poor soils. J Trees."
    assert by_title(parsed(raw), [Work(BEECH.titles, 2001)]) is not None
    assert by_title(parsed(raw), [Work(BEECH.titles)]) is None
    assert by_title(parsed(raw.replace("growth", "grovvth")), [Work(BEECH.titles, 2001)]) is None
    assert by_title(parsed("Lind A. On the growth of beech in poor soils. In press."), [BEECH]) is not None


def test_titles_and_names_in_chinese() -> None:
    work = Work(("贫瘠土壤上山毛榉的生长",), 2010, ("王明",))
    assert by_title(parsed("王明, 李华. 贫瘠土壤上山毛榉的生长[J]. 生态学报, 2010"), [work]) is not None
    assert by_title(parsed("李华. 贫瘠土壤上山毛榉的生长[J]. 生态学报, 2010"), [work]) is None
