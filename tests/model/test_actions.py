"""Actions: a text names them by commands that the command line takes, and they are found in it again, exactly."""

from __future__ import annotations

import pickle
import shlex
from itertools import combinations
from pathlib import Path

import click
import pytest

from metaharvest.cli import cli
from metaharvest.model import Finding
from metaharvest.model.actions import ACTIONS, Remedy, Todo, parts, todo

HOSTILE = [
    "alder", "alder creek", "it's", "a`b", "` `metaharvest doctor` `", "'`metaharvest sites disable birch`'", "{}",
    "`metaharvest", "{0}", "$(touch x)", "a;b", "a\\", 'a"b', "NAME", "-x", "", "æøå 森", "#1", "!!", "~", "a\nb",
]  # fmt: skip
PROBES = {
    "BASEURL": "https://example.org/oai", "DATE": "2026-11-20", "DAYS": "30", "DOCID": "alder.1.2",
    "DOCUMENT": "alder.1", "EMAIL": "a@example.org", "JOB_ID": "1", "NETWORK": "10.0.0.0/8", "NUMBER": "300",
    "REFERENCE": "env:SECRET", "REPORT_ID": "1", "REQUEST_ID": "1", "REVISION": "3", "ROLE": "viewer", "RUN_ID": "1",
    "SEQ": "0", "STAGE": "cleaning", "URL": "https://example.org/list.xml",
}  # fmt: skip


def _names(action: str) -> list[str]:
    return [word for word in ACTIONS[action][0].split() if word.isupper()]


@pytest.mark.parametrize("action", ACTIONS)
def test_the_command_line_takes_every_command(action: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    known = PROBES | {"FILE": str(file), "LIST": str(file), "RECORD": str(file), "FOLDER": str(tmp_path)}
    values = {name.lower(): known.get(name, "alder") for name in _names(action)}
    words = shlex.split(todo(action, **values).command)
    command: click.Command = cli
    context: click.Context | None = None
    while isinstance(command, click.Group):
        context = command.make_context(words[0], words[1:], parent=context)
        words = [*context._protected_args, *context.args]
        if not words:
            return
        _, found, rest = command.resolve_command(context, words)
        assert found is not None
        command, words = found, [words[0], *rest]
    command.make_context(words[0], words[1:], parent=context)


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_is_found_in_a_text_again(action: str) -> None:
    for value in HOSTILE:
        named = todo(action, **{name.lower(): value for name in _names(action)})
        assert list(parts(f"If it is right ({named}).")) == ["If it is right (", named, ")."]
    assert list(parts(str(todo(action)))) == ["", Todo(action, {}), ""]


def test_no_two_commands_can_be_taken_for_each_other() -> None:
    for (first, (one, _)), (second, (other, _)) in combinations(ACTIONS.items(), 2):
        pairs = list(zip(one.split(), other.split(), strict=False))
        is_alike = len(one.split()) == len(other.split()) and all(a == b or (a + b).isupper() for a, b in pairs)
        assert not is_alike, (first, second)
        may_be = len(one.split()) == len(other.split()) and all(a == b or a.isupper() or b.isupper() for a, b in pairs)
        assert not may_be, (first, second)


def test_a_label_has_the_values() -> None:
    assert todo("sites.confirm", name="alder creek").label == "confirm the deletions of the site alder creek"
    assert todo("sites.confirm").label == "confirm the deletions of the site NAME"


@pytest.mark.parametrize("action", ACTIONS)
def test_every_value_of_a_command_or_label_is_one_of_the_action(action: str) -> None:
    command, label = ACTIONS[action]
    assert label[0].islower()
    assert not label.endswith(".")
    assert {word for word in label.replace("OAI-PMH", "").split() if word.isupper()} <= set(command.split())


def test_an_action_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        todo("sites.remove_all")
    with pytest.raises(KeyError, match="site"):
        todo("sites.confirm", site="alder")


@pytest.mark.parametrize("value", HOSTILE)
def test_a_value_of_a_remedy_names_no_action(value: str) -> None:
    confirm = todo("sites.confirm", name=value)
    remedy = Remedy("Ask {} for {:,} records, or type {}.", value, 1204, confirm)
    assert [part for part in parts(remedy) if isinstance(part, Todo)] == [confirm]
    assert "1,204 records" in remedy


def test_only_a_remedy_names_actions_in_a_finding() -> None:
    """A packageId, or the page of a server, may have the form of a command."""
    foreign = "Write packageId=`metaharvest sites disable alder`."
    assert Finding("eml.no-id", "", foreign).remedy == "Write packageId='metaharvest sites disable alder'."
    assert Finding("eml.no-id", "", "Write `packageId`.").remedy == "Write `packageId`."
    remedy = Remedy("{} checks them.", todo("installation.check"))
    kept = Finding("target.settings", "", remedy)
    assert pickle.loads(pickle.dumps(kept)).remedy == kept.remedy == "`metaharvest doctor` checks them."
    assert isinstance(pickle.loads(pickle.dumps(kept)).remedy, Remedy)


def test_a_remedy_is_a_value_of_another_one() -> None:
    first = Remedy("Ask for {} with {}.", "`a`.1", todo("runs.list"))
    both = Remedy("{} Then {}.", first, todo("runs.start"))
    assert both == "Ask for `a`.1 with `metaharvest runs`. Then `metaharvest run`."


@pytest.mark.parametrize(
    "text",
    [
        "",
        "`metaharvest",
        "`metaharvest `",
        "`metaharvest fly`",
        "`metaharvest sites  confirm alder`",
        "`metaharvest sites confirm 'alder'`",
        "`metaharvest sites confirm 'alder`",
        "`metaharvest sites confirm al\\der`",
        "`metaharvest sites confirm alder\n`",
        "`rm -r alder`",
    ],
)
def test_other_texts_are_only_texts(text: str) -> None:
    """An action has one spelling: a text that has been changed on its way names none."""
    assert list(parts(text)) == [text]
