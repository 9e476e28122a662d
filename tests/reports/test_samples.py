"""The samples with which templates are tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from metaharvest.config.paths import data_folder
from metaharvest.config.settings import ReportsSettings, Settings
from metaharvest.reports.render import environment_for
from metaharvest.reports.template_check import SAMPLES, broken_templates

_PACKAGE = data_folder("templates")


def test_each_mail_has_a_sample_and_can_be_rendered() -> None:
    folders = {each.name for each in (data_folder("templates") / "email").iterdir() if each.is_dir()}
    assert folders - {"shared"} == set(SAMPLES)
    assert broken_templates(Settings()) == []


def own_template(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_samples_reach_each_branch_of_the_templates(tmp_path: Path) -> None:
    branches, reached = set[str](), set[str]()
    for file in (_PACKAGE / "email").rglob("*.*"):
        name, text = str(file.relative_to(_PACKAGE)), file.read_text(encoding="utf-8")

        def with_mark(tag: re.Match[str], name: str = name, text: str = text) -> str:
            branch = f"{name}, line {text.count(chr(10), 0, tag.start()) + 1}, character {tag.start()}: {tag[0]}"
            branches.add(branch)
            return f"{tag[0]}{{{{ reached({branch!r}) or '' }}}}"

        own_template(tmp_path, name, re.sub(r"{%-?\s*(?:if|elif|else|for)\b.*?%}", with_mark, text, flags=re.DOTALL))

    for docs_url in ("https://docs.example.org", ""):
        settings = Settings(reports=ReportsSettings(templates=tmp_path, docs_url=docs_url))
        environment_for(settings).globals["reached"] = reached.add
        assert broken_templates(settings) == []
    assert sorted(branches - reached) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("shared/parts.txt", "{{ group.more | comma }}", "{{ group.mroe }}"),
        ("shared/parts.html", "{{ list.more | comma }}", "{{ list.mroe }}"),
        ("digest_report/body.html", "{{ site.last.broken | comma }}", "{{ site.last.brokn }}"),
        ("digest_report/body.html", "{{ site.last.failed | comma }}", "{{ site.last.faild }}"),
    ],
)
def test_a_wrong_name_in_a_branch_of_an_own_template_is_a_problem(
    tmp_path: Path, name: str, right: str, wrong: str
) -> None:
    text = (_PACKAGE / "email" / name).read_text(encoding="utf-8")
    assert right in text
    own_template(tmp_path, f"email/{name}", text.replace(right, wrong))
    problems = broken_templates(Settings(reports=ReportsSettings(templates=tmp_path)))
    assert problems
    attribute = wrong.rpartition(".")[2].removesuffix(" }}")
    assert all(f"has no attribute '{attribute}'" in problem for problem in problems)
