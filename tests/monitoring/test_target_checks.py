"""Whether targets answer, as whom, and what we may do there: `target check`, and the same in `doctor`."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from metaharvest.database.engine import readers
from metaharvest.monitoring.target_checks import check_target, check_targets
from metaharvest.sites.registry import read_sites
from metaharvest.targets.base import Standing
from support.harvester import Harvester
from support.remote_target import RemoteTarget, Repository, installed

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

LIST = "https://example.org/list.xml"


@pytest.fixture
def repository(harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """The repository that the settings name; sites with a login of their own, without, and one that is switched off."""
    monkeypatch.syspath_prepend(installed(tmp_path))
    monkeypatch.setenv("SITE_PASSWORD", "secret")
    harvester.add_site("plain", LIST)
    harvester.add_site("alder", LIST, ldapdn="uid=alder", ldappwd="env:SITE_PASSWORD")
    harvester.add_site("birch", LIST, ldapdn="uid=birch", ldappwd="env:SITE_PASSWORD")
    harvester.add_site("off", LIST, ldapdn="uid=off", ldappwd="env:SITE_PASSWORD", enabled="false")
    with Repository() as running:
        add(harvester, f'[target]\nkind = "remote"\nurl = "{running.url}"\n')
        yield running


def add(harvester: Harvester, settings: str) -> None:
    harvester.config.write_text(f"{harvester.config.read_text()}{settings}", encoding="utf-8")


Checks = list[tuple[str, str, str]]


def checked(harvester: Harvester, *arguments: str) -> tuple[int, str, Checks]:
    """`target check --json`: exit code, state, and the checks."""
    said = harvester("target", "check", *arguments, "--json")
    assert said.out, said.err
    told = json.loads(said.out)
    return said.code, told["state"], [(each["check"], each["state"], each["message"]) for each in told["checks"]]


ANSWERS = "The remote repository answers, and knows us as"


def test_the_target_and_each_login_of_a_site_that_is_on_are_checked(
    harvester: Harvester, repository: Repository
) -> None:
    expected = [
        ("target", "OK", f"{ANSWERS} nobody."),
        ("target as alder", "OK", f"{ANSWERS} uid=alder."),
        ("target as birch", "OK", f"{ANSWERS} uid=birch."),
    ]
    assert checked(harvester) == (0, "OK", expected)
    repository.refused = {"uid=birch"}
    expected[2] = ("target as birch", "PROBLEM", "The remote repository does not let uid=birch in.")
    assert checked(harvester) == (1, "PROBLEM", expected)
    said = harvester("target", "check")
    assert said.code == 1
    assert said.out.splitlines()[2:] == [
        "PROBLEM  target as birch: The remote repository does not let uid=birch in.",
        "",
        "1 problem, 0 warnings.",
    ]
    assert repository.received == []


def test_doctor_says_the_same(harvester: Harvester, repository: Repository) -> None:
    repository.refused = {"uid=alder"}
    said = harvester("doctor", "--json")
    told = [(each["check"], each["state"], each["message"]) for each in json.loads(said.out)["checks"]]
    assert said.code == 1
    assert [each for each in told if each[0].startswith("target")] == checked(harvester)[2]


def test_a_target_of_a_site_s_own_is_checked_with_its_login(harvester: Harvester, repository: Repository) -> None:
    with Repository() as own:
        own.refused = {"uid=alder"}
        add(harvester, f'[sites.alder.target]\nkind = "remote"\nurl = "{own.url}"\n')
        code, _, checks = checked(harvester)
    assert code == 1
    assert ("target of alder", "PROBLEM", "The remote repository does not let uid=alder in.") in checks
    assert [name for name, _, _ in checks] == ["target", "target of alder", "target as birch"]
    assert "uid=alder" not in repository.logins


def test_what_a_target_says_to_everybody_is_said_once(harvester: Harvester, repository: Repository) -> None:
    """The embedded target has no logins."""
    harvester.config.write_text(harvester.config.read_text().replace("[target]", "[targets.new]"))
    assert checked(harvester) == (0, "OK", [("target", "OK", "The embedded repository holds 0 documents.")])
    repository.patience = 0
    assert checked(harvester, "--target", "new")[0] == 1


def test_a_target_that_is_away_is_one_problem_however_many_sites_go_there(
    harvester: Harvester, repository: Repository
) -> None:
    repository.patience = 0
    code, state, checks = checked(harvester)
    assert (code, state) == (1, "PROBLEM")
    [(name, state, message)] = checks
    assert (name, state) == ("target", "PROBLEM")
    assert message.startswith("The repository does not answer: ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--site", "alder"], ("target as alder", f"{ANSWERS} uid=alder.")),
        (["--site", "plain"], ("target as plain", f"{ANSWERS} nobody.")),
        (["--target", "target"], ("target", f"{ANSWERS} nobody.")),
        (["--target", "embedded"], ("target embedded", "The embedded repository holds 0 documents.")),
        (["--target", "target", "--site", "birch"], ("target as birch", f"{ANSWERS} uid=birch.")),
        (
            ["--target", "embedded", "--site", "birch"],
            ("target embedded as birch", "The embedded repository"),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_one_target_or_one_site_is_checked_alone(
    harvester: Harvester, repository: Repository, arguments: list[str], expected: tuple[str, str]
) -> None:
    code, _, [(name, state, message)] = checked(harvester, *arguments)
    assert (code, name, state) == (0, expected[0], "OK")
    assert message.startswith(expected[1])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--target", "old"], "There is no target 'old'. Known are: target, embedded."),
        (["--site", "elder"], "There is no site named 'elder'. Known sites: alder, birch, off, plain."),
        (["--site", "broken"], "broken: "),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_name_that_means_nothing_is_a_mistake_of_the_caller(
    harvester: Harvester, repository: Repository, arguments: list[str], sentence: str
) -> None:
    if "broken" in arguments:
        harvester.rows("UPDATE harvest_site_schedule SET name = 'broken', unit = 'eons' WHERE name = 'off'")
    said = harvester("target", "check", *arguments)
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err


def test_settings_of_which_no_target_can_be_made_are_a_problem(
    harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path))
    place = tmp_path / "remote_repositories-installed" / "remote_repositories.py"
    place.write_text("import a_module_that_nobody_has\n", encoding="utf-8")
    harvester.add_site("alder", LIST)
    add(harvester, '[sites.alder.target]\nkind = "remote"\n')
    monkeypatch.delitem(__import__("sys").modules, "remote_repositories", raising=False)
    code, _, checks = checked(harvester)
    assert code == 1
    assert [(name, state) for name, state, _ in checks] == [("target", "OK"), ("target of alder", "PROBLEM")]
    assert "a_module_that_nobody_has" in checks[1][2]


# -- targets that hang, or fail


class Hanging(RemoteTarget):
    """Begins to answer, and never comes to the end, unless it `ends`."""

    def __init__(self, *, ends: bool = False) -> None:
        super().__init__("http://127.0.0.1:9")
        self.asked = 0
        self.released = threading.Event()
        if ends:
            self.released.set()

    def check(self, site: Any) -> Iterator[Standing]:
        self.asked += 1
        yield Standing("ok", "It is there.")
        self.released.wait(60)


@contextmanager
def hanging() -> Iterator[Hanging]:
    target = Hanging()
    try:
        yield target
    finally:
        target.released.set()


def test_a_target_that_hangs_holds_up_nobody_for_ever_and_is_asked_no_more(
    harvester: Harvester, repository: Repository
) -> None:
    with hanging() as target, harvester.opened(target=target) as opened, readers(harvester.engine)() as session:
        began = time.monotonic()
        checks = list(check_targets(opened.targets, read_sites(session), limit=0.2))
        assert time.monotonic() - began < 30  # the target hangs for 60
    assert [(check.state, check.message) for check in checks] == [
        ("OK", "It is there."),
        ("PROBLEM", "a remote repository: it has not answered within 0.2 seconds."),
    ]
    assert target.asked == 1


def test_a_target_to_which_logins_of_sites_make_no_difference_is_not_asked_about_each(harvester: Harvester) -> None:
    for number in range(20):
        harvester.add_site(f"site-{number}", LIST, ldapdn=f"uid={number}", ldappwd="env:SITE_PASSWORD")
    target = Hanging(ends=True)
    with harvester.opened(target=target) as opened, readers(harvester.engine)() as session:
        [check] = check_targets(opened.targets, read_sites(session))
    assert (check.state, target.asked) == ("OK", 4)


def test_a_target_that_does_what_nobody_expects_is_a_problem(harvester: Harvester) -> None:
    class Failing(RemoteTarget):
        def check(self, site: Any) -> Iterator[Standing]:
            raise RuntimeError("what nobody promised")

    target = Failing("http://127.0.0.1:9")
    [check] = check_target("target", lambda: target, None)
    assert (check.state, check.message) == ("PROBLEM", "It could not be asked: what nobody promised")
