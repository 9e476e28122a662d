"""Accents of TeX in the titles and abstracts of arXiv."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.cleaning.tex import with_letters


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"Schr\"odinger", "Schrödinger"),
        (r"Erd\H{o}s, Erd\H os", "Erdős, Erdős"),
        (r"M{\"u}ller, Poincar\'{e}", "Müller, Poincaré"),
        (r"na\"{\i}ve, na\"\i ve", "naïve, naïve"),
        (r"Czerwi\'nski, Lazi\'c", "Czerwiński, Lazić"),
        (r"fa\c{c}on, \v{S}koda, \r{A}ngstr\"om", "façon, Škoda, Ångström"),
        (r"S{\o}rensen, \L{}\'od\'z, Gau\ss ian", "Sørensen, Łódź, Gaußian"),
        (r"a $\'x \c{c}$ and \'e", r"a $\'x \c{c}$ and é"),
        (r"for \$5, by G\"odel", r"for \$5, by Gödel"),
        (r"\omega \leq \overline{x} \dot \alpha", r"\omega \leq \overline{x} \dot \alpha"),
        (r"O\'Brien, \~{}, 10\%", r"O\'Brien, \~{}, 10\%"),
        ("plain", "plain"),
    ],
)
def test_accents_are_letters(text: str, expected: str) -> None:
    assert with_letters(text) == expected
