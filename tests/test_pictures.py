"""The pictures in the documentation are there, and show what the program does now: `make pictures` makes them."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections import Counter
from html import unescape
from pathlib import Path
from types import ModuleType

import pytest
from lxml import etree

from support.shown_commands import PAGES, ROOT

IMAGES = ROOT / "docs" / "images"
NAMED = re.compile(r"!\[[^\]]+\]\(([^)\s]+)\)")
CHANGES = re.compile(r"\d{4}-\d\d-\d\d|127\.0\.0\.1:\d+")
"""What is another one each time: days, ports."""


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made(pictures: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recordings, and with the demo that they left."""
    folder = tmp_path_factory.mktemp("pictures")
    pictures.record(folder, folder)
    return folder


def words(picture: Path) -> Counter[str]:
    """What a recording of a terminal says, in no order, as sites side by side have none."""
    texts = [unescape(text).replace("\xa0", " ") for text in re.findall(r">([^<]+)</text>", picture.read_text("utf-8"))]
    return Counter(CHANGES.sub("...", " ".join(texts)).split())


def test_every_picture_that_a_page_names_is_there() -> None:
    named = [(page, name) for page in PAGES for name in NAMED.findall(page.read_text(encoding="utf-8"))]
    assert named
    assert [(page.name, name) for page, name in named if not (page.parent / name).is_file()] == []
    used = {(page.parent / name).resolve() for page, name in named}
    assert [file.name for file in IMAGES.iterdir() if file not in used] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["check.svg", "demo.svg"])
def test_a_recording_shows_what_the_commands_say_now(made: Path, name: str) -> None:
    shown = words(made / name)
    assert shown["metaharvest"] >= 1
    assert words(IMAGES / name) == shown


@pytest.mark.parametrize("name", ["check.svg", "demo.svg"])
def test_a_recording_fetches_nothing_from_elsewhere(name: str) -> None:
    text = (IMAGES / name).read_text(encoding="utf-8")
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", text)
    assert not etree.fromstring(text.encode()).xpath("//@href")


@pytest.mark.slow
def test_reports_are_photographed(pictures: ModuleType, made: Path) -> None:
    browser = next(filter(None, map(shutil.which, pictures.BROWSERS)), None)
    if browser is None:
        pytest.skip("Chromium is not there")
    pictures.photograph_reports(browser, made, made)
    for name in pictures.REPORTS:
        assert (made / name).read_bytes().startswith(b"\x89PNG")
        assert (made / name).stat().st_size > 20_000
