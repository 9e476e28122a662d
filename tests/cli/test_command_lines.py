"""Command lines to paste, printed or in the documentation, do what they say, word for word."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import initialize
from support.harvester import eml

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which the program is called as bin/metaharvest, and is not found by its name alone."""
    script = tmp_path / "a b" / "bin" / "metaharvest"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!{sys.executable}\nfrom metaharvest.cli import main\n\nif __name__ == '__main__':\n    main()\n"
    )
    script.chmod(0o755)
    return tmp_path / "a b"


def paste(folder: Path, line: str) -> str:
    """What a shell in `folder` prints for a command line, which must succeed."""
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout


def test_what_the_demo_prints_can_be_pasted(folder: Path) -> None:
    said = paste(folder, "bin/metaharvest demo --nights 1 --folder demo")
    *lines, publishing = re.findall(r"^  (bin/metaharvest .*)$", said, re.MULTILINE)
    assert len(lines) == 3
    assert shlex.split(publishing)[-1:] == ["serve"]
    for line in lines:
        assert paste(folder, line)


def test_what_init_prints_can_be_pasted(folder: Path) -> None:
    for how in ("bin/metaharvest", f"'{sys.executable}' -m metaharvest"):
        said = paste(folder, f"{how} --config 'my own.toml' init")
        add = re.findall(r"^  2\. (.* sites) add NAME", said, re.MULTILINE)
        assert "No site is registered yet" in paste(folder, f"{add[0]} list")
        (folder / "my own.toml").unlink()


def test_the_bare_name_is_printed_where_it_finds_this_program(folder: Path) -> None:
    said = paste(folder, 'PATH="$PWD/bin:$PATH" metaharvest init')
    assert "  3. metaharvest doctor " in said


def block_with(page: str, words: str) -> str:
    """The one block of commands in a page of the documentation that has these words."""
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    [found] = [block for block in blocks if words in block]
    return str(found)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="there is no sqlite3")
def test_the_backup_in_the_documentation_makes_a_copy(tmp_path: Path) -> None:
    initialize(tmp_path)
    for _ in range(2):
        paste(tmp_path, block_with("operators.md", "sqlite3 metaharvest.db"))
    assert [file.read_bytes()[:15] for file in (tmp_path / "backup").iterdir()] == [b"SQLite format 3"]


def test_the_documentation_tells_where_the_templates_are(tmp_path: Path) -> None:
    line = block_with("stewards.md", "data_folder('templates')")
    printed = paste(tmp_path, line.replace("/srv/harvest/venv/bin/python", f"'{sys.executable}'"))
    assert (Path(printed.strip()) / "email" / "site_report" / "body.txt").is_file()


def blocks_below(page: str, heading: str) -> list[str]:
    """The blocks of commands in a page of the documentation from this heading to the next of its rank."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = re.split(r"^## ", text.split(f"## {heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return [text for language, text in blocks if not language]


def test_a_list_is_published_with_the_commands_of_the_documentation_alone(folder: Path) -> None:
    (folder / "eml").mkdir()
    for number, name in enumerate(("rain", "discharge"), start=1):
        (folder / "eml" / f"{name}.xml").write_bytes(eml(f"ren-alder.{number}.1"))
    (folder / "eml" / "1-soil.xml").write_bytes(eml("ren-alder.9.1"))
    in_path = f'PATH="$PWD/bin:{Path(sys.executable).parent}:$PATH"; '
    build, from_names, one_by_one, diff = blocks_below("site-contacts.md", "Publish a list in ten minutes")
    for line in build.splitlines():
        said = paste(folder, in_path + line)
    assert said == "eml/harvest-list.xml is a valid harvest list of 3 documents.\n"
    for line in from_names.splitlines():
        # Not all names in the folder fit: those that do not are told, and their entries stay.
        done = subprocess.run(in_path + line, shell=True, cwd=folder, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, "")
        assert "build.name" in done.stdout
    for old in ("harvest-list.xml", "old-list.xml"):
        shutil.copy(folder / "eml" / "harvest-list.xml", folder / old)
    for line in one_by_one.splitlines():
        paste(folder, in_path + line)
    done = subprocess.run(in_path + diff, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ren-alder.1" in done.stdout
