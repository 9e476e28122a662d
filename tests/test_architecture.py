"""docs/architecture.md: its picture shows the imports, what it names exists, and its words hold in docs and code."""

from __future__ import annotations

import ast
import importlib.util
import re
from graphlib import CycleError
from pathlib import Path
from types import ModuleType

import pytest

import metaharvest
from lint.foreign_text import nodes_below

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGE = Path(metaharvest.__file__).parent

PATH = re.compile(r"`([\w./-]+(?:\.(?:py|md|toml|sql|html|txt|ini|sh)|/))`")
FUNCTION = re.compile(r"`(?:\w+\.)*(\w+)\(\)`")

GENERATED = ("commands.md", "rules.md", "settings.md")
PAGES = [ROOT / "README.md", *(page for page in (ROOT / "docs").rglob("*.md") if page.name not in GENERATED)]
TEMPLATES = [file for file in (ROOT / "templates").rglob("*") if file.is_file()]

SECOND_MEANINGS = {
    "repository": r"(?<!source )(?<!central )(?<!oai-pmh )\brepositor(?:y|ies)\b",
    "site": r"\bweb ?sites?\b|\b(?:documentation|pages) as a site\b",
    "target": r"\b(?:build|fuzz|make) targets?\b|\btargets guided\b",
    "window": r"\b(?:browser|private|terminal|time) windows?\b",
}
"""How a word of the glossary looks in a second meaning: a target is never "the repository", a web page no site."""

ONE_KIND_OF_REPOSITORY = "oai-pmh.md"
"""The page on which each repository is a source repository."""

REPLACED = re.compile(
    r"(?<![.\w])(?:told|tells?|mend(?:s|ed|ing)?|anew|heed(?:s|ed)?|so many|those of|that which|(?:in|of) passing"
    r"|already there)\b",
    re.IGNORECASE,
)
"""Docs and mails say: report, correct, again, obey, the noun itself, temporary, unchanged."""


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_house", ROOT / "docs" / "draw_house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_house_is_that_of_its_imports(drawing: ModuleType) -> None:
    page = PAGE.read_text(encoding="utf-8")
    picture = drawing.picture(drawing.rooms_of("metaharvest"), PACKAGE)
    assert page == drawing.drawn_into(page, picture), "run `make docs`"


def test_an_arrow_that_others_imply_is_not_drawn_but_the_table_has_the_import(
    drawing: ModuleType, tmp_path: Path
) -> None:
    for name, purpose in {"top": "Orders.", "middle": "Works.", "ground": "Holds values."}.items():
        (tmp_path / f"{name}.py").write_text(f'"""{purpose}\n\nMore of it."""\n', encoding="utf-8")
    house = {"top": frozenset({"middle", "ground"}), "middle": frozenset({"ground"}), "ground": frozenset[str]()}
    picture = drawing.picture(house, tmp_path)
    arrows = [line.strip() for line in picture.splitlines() if "-->" in line]
    assert arrows == ["top --> middle", "middle --> ground"]
    assert "| 2 | `top` | Orders. | ground, middle |" in picture.splitlines()


def test_rooms_that_import_one_another_in_a_circle_are_not_drawn(drawing: ModuleType, tmp_path: Path) -> None:
    circle = {"a": frozenset({"b"}), "b": frozenset({"c"}), "c": frozenset({"b"})}
    with pytest.raises(CycleError):
        drawing.picture(circle, tmp_path)


def test_every_path_that_the_page_names_is_there() -> None:
    named = set(PATH.findall(PAGE.read_text(encoding="utf-8")))
    assert named
    assert {path for path in named if not _found(path)} == set()


def test_every_function_that_a_table_of_the_page_names_is_in_a_file_of_its_row() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    missing: list[str] = []
    for row in rows:
        files = [file for path in PATH.findall(row) if (file := _found(path)) and file.suffix == ".py"]
        named = set(FUNCTION.findall(row))
        for file in files:
            named -= _defined(file, named)
        missing += named
    assert missing == []


@pytest.mark.slow
def test_every_function_that_the_page_names_is_in_the_package() -> None:
    named = set(FUNCTION.findall(PAGE.read_text(encoding="utf-8")))
    assert named
    for file in PACKAGE.rglob("*.py"):
        named -= _defined(file, named)
    assert named == set()


def test_the_glossary_has_some_25_words_in_alphabetical_order() -> None:
    words = _words()
    assert 20 <= len(words) <= 30
    assert words == sorted(set(words))


def test_each_word_of_the_glossary_is_used_in_the_docs_and_in_the_code() -> None:
    docs = _without_glossary("".join(page.read_text(encoding="utf-8") for page in PAGES))
    code = "".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    assert [word for word in _words() if not _uses(docs, word) or not _uses(code, word)] == []


def test_no_word_of_the_glossary_has_a_second_meaning_in_the_docs() -> None:
    found = {page.name: _second_meanings(page.read_text(encoding="utf-8")) for page in PAGES}
    found[ONE_KIND_OF_REPOSITORY] -= {"repository"}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_words_with_a_second_meaning_are_in_the_glossary() -> None:
    for word in SECOND_MEANINGS:
        assert any(word in each for each in _words())


def test_words_that_are_replaced_do_not_occur_in_docs_and_templates() -> None:
    found = {page.name: REPLACED.findall(_prose(page.read_text(encoding="utf-8"))) for page in PAGES}
    found |= {str(file): REPLACED.findall(file.read_text(encoding="utf-8")) for file in TEMPLATES}
    assert {name: words for name, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It goes into the\nrepository.", {"repository"}),
        ("Repositories of documents", {"repository"}),
        ("The source\nrepository, an OAI-PMH repository, the central repository", set()),
        ('Its subject says "the repository lists nothing": `repository`, [a page](the-repository.md)', set()),
        ("```\nthe repository\n```\n\n    the repository\n", set()),
        ("Our web site is in a private window of a fuzz target.", {"site", "target", "window"}),
    ],
)
def test_a_second_meaning_is_found_outside_of_code_and_quotations(text: str, words: set[str]) -> None:
    assert _second_meanings(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("You are told: mended\nin passing.", ["told", "mended", "in passing"]),
        ("SO MANY documents, so\nmany sites", ["SO MANY", "so many"]),
        ("{% if failure.told %} `told` amended in passing_by", []),
        ('one "quoted\nword, told" and 3" more\n\n2" told', ["told"]),
    ],
)
def test_a_replaced_word_is_found_in_sentences(text: str, words: list[str]) -> None:
    assert REPLACED.findall(_prose(text)) == words


def test_a_word_is_used_in_the_spellings_of_docs_and_code() -> None:
    assert all(_uses(text, "site run") for text in ("two site\nruns", "site_run = 1", "class HarvestSiteRun:"))
    assert not any(_uses(text, "site run") for text in ("a site", "a site is run", "campsite runs"))


def _words() -> list[str]:
    """The first cells of the table of words."""
    section = PAGE.read_text(encoding="utf-8").split("\n## Words\n")[1].split("\n## ")[0]
    return re.findall(r"^\| (?!word )(\w[^|]*?) \|", section, re.MULTILINE)


def _without_glossary(docs: str) -> str:
    before, glossary, after = re.split(r"\n\| word \| meaning \|((?:\n\|.*)+)", docs)
    assert "ledger" in glossary
    return before + after


def _uses(text: str, word: str) -> bool:
    """True if a text has the word, as prose, as a name in snake case, or as a part of a class."""
    prose = r"(?:\b|_)" + r"[\s_]".join(word.split()) + r"(?:s|es)?(?:\b|_)"
    part_of_class = "".join(part.capitalize() for part in word.split())
    return bool(re.search(prose, text, re.IGNORECASE)) or bool(re.search(part_of_class + r"(?![a-z])", text))


def _prose(text: str) -> str:
    """A page's sentences on one line, without code, quotations and the addresses of links."""
    text = re.sub(r"^ *```.*?^ *```$|^    [^\n]*$", " ", text, flags=re.MULTILINE | re.DOTALL)
    return " ".join(re.sub(r'`(?:[^`\n]|\n(?!\n))*`|"(?:[^"\n]|\n(?!\n))*"|\]\([^)]*\)', " ", text).split())


def _second_meanings(text: str) -> set[str]:
    """The words of SECOND_MEANINGS that a text has in a second meaning."""
    prose = _prose(text).lower()
    return {word for word, pattern in SECOND_MEANINGS.items() if re.search(pattern, prose)}


def _found(path: str) -> Path | None:
    """A file or folder of the project, named from its top or from that of the package."""
    return next((there for top in (ROOT, PACKAGE) if (there := top / path).exists()), None)


def _defined(file: Path, named: set[str]) -> set[str]:
    """The functions and classes with these names that a file defines. A file without any is not parsed."""
    source = file.read_text(encoding="utf-8")
    if not any(f"def {name}(" in source or f"class {name}" in source for name in named):
        return set()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return named & {node.name for node in nodes_below(ast.parse(source)) if isinstance(node, kinds)}
