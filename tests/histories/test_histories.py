"""Some histories with fixed seeds; `python -m histories` lives as many others as one likes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from histories.history import History, Life, lived
from histories.source import Fault

SEEDS = range(1, 16)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_record_of_a_history_is_kept_named_or_counted(seed: int, tmp_path: Path) -> None:
    history = lived(seed, tmp_path)
    if history.problems:
        pytest.fail(f"{history}\n\nagain: cd tests; python -m histories --seed {seed}", pytrace=False)


def lose(life: Life) -> None:
    life.harvester.lose("%:1")


def delete(life: Life) -> None:
    life.harvester.rows(
        "INSERT INTO document_tombstone (document_id, revision, datestamp, deleted_at) "
        "SELECT document_id, revision, '2026-01-01', inserted_at FROM document_revision WHERE document_id LIKE ?",
        "%:1",
    )
    life.harvester.rows("UPDATE catalogue_document SET deleted = TRUE WHERE document_id LIKE ?", "%:1")
    del life.source.records["oai:test:1"]


def keep(life: Life) -> None:
    life.source.records["oai:test:1"].deleted = True


def spoil(life: Life) -> None:
    life.harvester.rows("UPDATE harvest_site_run SET inserted = inserted + 1 WHERE inserted > 0")


def ask_twice(life: Life) -> None:
    life.source.intervals += [(1.0, 3.0), (2.0, 4.0)]


def change(life: Life) -> None:
    life.source.records["oai:test:1"].title += " again"


def leave_out(life: Life) -> None:
    """An error that lasts, and that the last run had not seen."""
    lose(life)
    life.source.lasting.append(Fault("error for record", identifier="oai:test:1"))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lose, "the target has nothing of oai:test:1"),
        (change, "the target has an old version of oai:test:1"),
        (leave_out, "which no error names or counts"),
        (delete, "though the source repository never said so"),
        (keep, "the target has oai:test:1, which is deleted"),
        (spoil, "listed 5, and has"),
        (ask_twice, "1 list requests began before an earlier one had ended"),
    ],
)
def test_the_check_notices(wrong: Callable[[Life], None], what: str, tmp_path: Path) -> None:
    history = History(seed=0)
    with ExitStack() as opened:
        life = Life(history, tmp_path, opened, calm=True)
        life.register()
        life.calm_nights()
        wrong(life)
        life.check()
    assert what in "\n".join(history.problems)


def test_nothing_is_wrong_with_a_calm_history(tmp_path: Path) -> None:
    history = History(seed=0)
    with ExitStack() as opened:
        life = Life(history, tmp_path, opened, calm=True)
        life.register()
        life.calm_nights()
        life.check()
    assert history.problems == []
