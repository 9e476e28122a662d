"""docs/rules.md and the rules that the code names."""

from __future__ import annotations

from pathlib import Path

from metaharvest.model.actions import ACTIONS
from metaharvest.rules import GROUPS, RULES, render
from support.module_texts import texts_of

ROOT = Path(__file__).resolve().parent.parent
PREFIXES = tuple(f"{group}." for group in GROUPS)


def named_rules(path: Path) -> set[str]:
    """Every literal of a module that reads like a rule's name. Actions, and a message of ASGI, have such names, too."""
    return {
        text
        for _, text, _ in texts_of(path)
        if text.startswith(PREFIXES)
        and all(part.replace("-", "").isalnum() for part in text.split("."))
        and text.islower()
        and text != "http.request"
        and text not in ACTIONS
        and not text.endswith((".py", ".xml", ".txt", ".html", ".csv", ".toml"))
    }


def test_every_rule_that_the_code_names_is_listed() -> None:
    missing = {
        f"{path.name}: {rule}"
        for path in (ROOT / "src").rglob("*.py")
        for rule in named_rules(path)
        if rule not in RULES
    }
    assert missing == set()


def test_the_page_of_rules_is_current() -> None:
    page = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
    assert page == render(), "run `python -m metaharvest.rules > docs/rules.md`"


def test_every_rule_says_cause_and_remedy_in_sentences_and_has_a_heading() -> None:
    for name, rule in RULES.items():
        assert name.partition(".")[0] in GROUPS, name
        assert rule.title, name
        assert not rule.title.endswith("."), name
        assert rule.cause.endswith("."), name
        assert rule.remedy.endswith("."), name
