"""One reference, in many styles: its DOI, year, title and surnames."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.extraction.citation import marked, parsed, year_of, years_in

TITLE = "On the growth of beech in poor soils"


@pytest.mark.parametrize(
    "raw",
    [
        f"Lind, A., & Bo, C. D. (2001). {TITLE}. Journal of Trees, 3(2), 1–15.",
        f"Lind A, Bo CD. {TITLE}. J Trees. 2001;3(2):1-15.",
        f"A. Lind and C. D. Bo, “{TITLE},” J. Trees, vol. 3, no. 2, pp. 1901–1915, May 2001.",
        f"Lind, A.; Bo, C. D. {TITLE}. J. Trees 2001, 3, 1–15.",
        f"Lind A., Bo C.D. 2001. {TITLE}. J. Trees 3: 1-15.",
        f"Lind, A. & Bo, C. D. {TITLE}. J. Trees 3, 1–15 (2001).",
        f"Lind A, Bo CD (2001) {TITLE}. J Trees 3:1-15",
        f"Lind A, Bo CD: {TITLE}. J Trees 2001, 3:1-15.",
        f"LIND, A.; BO, C. {TITLE}. Revista, v. 3, n. 2, p. 1-15, 2001.",
        f"Lind, A., Bo, C. (2001): {TITLE}. In: Schmidt, P. (Hrsg.): Wälder. Berlin, S. 1-20.",
        f"Lind A.B., Bo C.D. {TITLE} // J. Trees. 2001. Vol. 3. P. 1-15.",
        f"Lind A, Bo C. {TITLE}[J]. J. Trees, 2001, 30(2): 1-15.",
        f"Lind, A. and Bo, C., 2001. {TITLE}. J. Trees, 3, 1850-1862. https://example.org/2019/x",
        f"Lind A, Bo C. {TITLE}. Oslo: Press; 2001. Accessed 5 May 2019",
        f"Lind, A., Bo, C., et al. (2001, May). {TITLE}. In Proceedings of the third meeting.",
    ],
)
def test_each_usual_style_is_read(raw: str) -> None:
    found = parsed(raw)
    assert found.year == 2001
    assert found.title is not None
    assert found.title.startswith(TITLE)
    assert len(found.title) < len(TITLE) + 10
    assert [name.title() for name in found.surnames] == ["Lind", "Bo"]


@pytest.mark.parametrize(
    ("raw", "year", "title", "surnames"),
    [
        (
            "Müller-Groß, K., van der Berg, J. (2010): Die Buche im Solling. Verlag.",
            2010,
            "Die Buche im Solling",
            ("Müller-Groß", "van der Berg"),
        ),
        (
            "Иванов И.И., Петров П.П. Рост бука на бедных почвах // Лесоведение. 2005. № 3.",
            2005,
            "Рост бука на бедных почвах",
            ("Иванов", "Петров"),
        ),
        (
            "王明, 李华. 贫瘠土壤上山毛榉的生长[J]. 生态学报, 2010, 30(2): 1-15.",
            2010,
            "贫瘠土壤上山毛榉的生长",
            ("王明",),
        ),
        ("山田太郎 (2012) ブナ林の更新過程. 日本生態学会誌 62: 1-10.", 2012, "ブナ林の更新過程", ()),
        ("World Health Organization. (2019). Global report on trees.", 2019, "Global report on trees", ()),
        ("J. Smith, R. Jones, Phys. Rev. Lett. 12, 345 (1999).", 1999, None, ("Smith", "Jones")),
        ("García Márquez G, O'Neil P (2015) Why we plant trees. Forests 6", 2015, "Why we plant trees", None),
        (
            "Lind, A. A study of E. coli in St. Petersburg. J. X 3 (1998).",
            1998,
            "A study of E. coli in St. Petersburg",
            None,
        ),
    ],
)
def test_names_and_titles_of_many_languages(
    raw: str, year: int, title: str | None, surnames: tuple[str, ...] | None
) -> None:
    found = parsed(raw)
    assert (found.year, found.title) == (year, title)
    if surnames is not None:
        assert found.surnames == surnames


@pytest.mark.parametrize(
    ("raw", "year"),
    [
        ("Lind A. A history since 1850. J. Trees. 2001;3:1-15.", 2001),
        ("Lind A. (1999a). A history since 1850 and to 2020.", 1999),
        ("Lind A. A history. Trees 12, 1901-1950, 1987.", 1987),
        ("Lind A. A history. https://example.org/2015/07/x doi:10.1000/2014.123", None),
        ("Lind A. A history. Retrieved 2 May 2018.", None),
        ("Lind A. n.d. A history.", None),
        ("A number such as 20011 or 3.1999 is no year", None),
    ],
)
def test_the_year_of_publication_is_no_page_and_no_date_of_a_visit(raw: str, year: int | None) -> None:
    assert year_of(raw) == year


def test_all_years_of_a_text() -> None:
    assert years_in("Lind (1999) A history since 1850, pp. 1901-1950, https://x.org/2012") == {1999, 1850}


def test_what_a_file_marks_counts_more_than_the_text() -> None:
    found = marked(
        {
            "raw": "Bo C 2002 Trees in winter",
            "doi": "https://doi.org/10.1000/A",
            "title": "Trees",
            "year": None,
            "surnames": [],
        }
    )
    assert (found.doi, found.title, found.year, found.surnames) == ("10.1000/a", "Trees", 2002, ("Bo",))
