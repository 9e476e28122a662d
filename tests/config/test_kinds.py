"""Kinds of targets and sources: those of this program are found, and cannot be replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from metaharvest.config.kinds import SOURCES, TARGETS, Kinds
from metaharvest.config.settings import HttpSettings, Settings
from metaharvest.config.target_settings import KEYS_OF_KINDS
from metaharvest.errors import ScheduleError, SettingsError
from metaharvest.model import Site
from metaharvest.sources.harvest_list.source import HarvestListSource
from metaharvest.sources.lookup import source_for
from metaharvest.targets.embedded import EmbeddedTarget
from metaharvest.targets.lookup import target_for
from support.distributions import install
from support.fetching import WaitingFetcher
from support.journal_rows import new_database

SITE = Site(1, "alder", "https://alder.example.org/list.xml", ("a@example.org",))


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = new_database()
    yield made
    made.dispose()


@pytest.fixture
def client() -> Iterator[WaitingFetcher]:
    with WaitingFetcher(HttpSettings(), name="Test network", administrator=None) as made:
        yield made


def test_every_kind_of_this_program_is_found(engine: Engine, client: WaitingFetcher) -> None:
    needed = {"url": "https://repository.example.org", "folder": "documents", "rights_holder": "CN=network"}
    for kind in TARGETS.built_in:
        keys = {key: value for key, value in needed.items() if key in KEYS_OF_KINDS[kind]}
        assert target_for(Settings.model_validate({"target": {"kind": kind, **keys}}), engine).describe()
    for kind in SOURCES.built_in:
        assert source_for(replace(SITE, source_kind=kind), client.fetcher)


def test_a_kind_of_this_program_cannot_be_replaced(
    engine: Engine, client: WaitingFetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {"metaharvest_targets": "embedded = Other", "metaharvest_sources": "harvest-list = Other"}
    monkeypatch.syspath_prepend(install(tmp_path, "added_others", "raise RuntimeError\n", **kinds))
    assert isinstance(target_for(Settings(), engine), EmbeddedTarget)
    assert isinstance(source_for(SITE, client.fetcher), HarvestListSource)
    assert TARGETS.names() == list(TARGETS.built_in)


def test_a_kind_that_is_not_there_is_told_with_those_that_are(engine: Engine, client: WaitingFetcher) -> None:
    assert "shelf" not in TARGETS
    assert None not in SOURCES
    settings = Settings().model_copy(update={"target": Settings().target.model_copy(update={"kind": "shelf"})})
    with pytest.raises(SettingsError, match="no such kind; known are embedded"):
        target_for(settings, engine)
    with pytest.raises(ScheduleError, match=r"alder: source_kind = 'oai' cannot be used: .* known are harvest-list"):
        source_for(replace(SITE, source_kind="oai"), client.fetcher)


def test_kinds_are_read_again_once_the_search_path_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = Kinds("metaharvest.tests", ())
    assert kinds.names() == []
    monkeypatch.syspath_prepend(install(tmp_path, "added_tests", "Other = 1\n", metaharvest_tests="some = Other"))
    assert kinds.names() == ["some"]
    assert kinds.load("some") == 1
