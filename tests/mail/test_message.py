"""Parts of a message: the names of attached files."""

from __future__ import annotations

import pytest

from metaharvest.mail.message import safe_file_name


@pytest.mark.parametrize(
    ("name", "file_name"),
    [
        ("alder-creek", "alder-creek"),
        ('Sée & Rhône, "haut"', "See-Rhone-haut"),
        ("Station für Ökologie", "Station-fur-Okologie"),
        ("../x", "x"),
        ("東京 湾", "report"),
    ],
)
def test_a_file_name_keeps_the_letters_of_a_name(name: str, file_name: str) -> None:
    assert safe_file_name(name) == file_name
