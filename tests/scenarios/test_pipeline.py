"""The pipeline on the sample library, as a person runs it: papers are found by their text, and kills change nothing."""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import select

from metaharvest.database.base import Base
from metaharvest.database.pipeline_models import PIPELINE_TABLES
from metaharvest.demo.nights import register_library
from metaharvest.demo.samples import LIBRARY, SampleNetwork
from support.harvester import Harvester

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
DIFFERS = ("_at", "output_file_id", "output_reference_id")
"""The ends of the names of columns that another run of the same work may fill in another way."""


LARVAE = "heron-library/files/larval-shelters.pdf"


class Network(SampleNetwork):
    """The sample network without the file `lost`."""

    lost = ""

    def file(self, path: str) -> bytes:
        if path.strip("/") == self.lost:
            raise FileNotFoundError
        return super().file(path)


@pytest.fixture
def network() -> Iterator[Network]:
    served = Network()
    with served:
        yield served


@pytest.fixture
def library(harvester: Harvester, network: SampleNetwork) -> Harvester:
    """An installation that has harvested the sample library."""
    with harvester.opened() as opened:
        register_library(opened, network)
    assert harvester("run", "--force").code == 0
    return harvester


def tables(library: Harvester) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the pipeline, without times and numbers of rows."""
    found = {}
    with library.engine.connect() as connection:
        for name in PIPELINE_TABLES:
            table = Base.metadata.tables[name]
            same = [column for column in table.columns if not column.name.endswith(DIFFERS) and column.name != "woken"]
            found[name] = sorted((tuple(row) for row in connection.execute(select(*same))), key=repr)
    return found


def start_again(library: Harvester) -> None:
    """Empty all tables of the pipeline."""
    for name in PIPELINE_TABLES:
        library.rows(f"DELETE FROM {name}")


def stages(library: Harvester) -> dict[str, dict[str, Any]]:
    return {each["stage"]: each for each in json.loads(library("pipeline", "--json").out)["stages"]}


def test_the_library_goes_through_all_stages(library: Harvester) -> None:
    ended = library("pipeline", "run")
    assert ended.code == 0, ended.err
    found = stages(library)
    assert {name: each["waiting_documents"] for name, each in found.items()} == dict.fromkeys(found, 0)
    assert found["index"]["done_documents"] == 6
    assert [found["full-text"][key] for key in ("done_documents", "failed_documents")] == [4, 2]
    texts = library.rows("SELECT language, count(*) FROM output_text GROUP BY language ORDER BY language")
    assert texts == [("de", 1), ("en", 3)]
    works = library.rows("SELECT count(DISTINCT work_id) FROM output_work")
    assert works == [(5,)]  # the article and its deposit are one work
    cited = library.rows("SELECT count(*) FROM output_reference WHERE matched_id IS NOT NULL")
    assert cited == [(3,)]
    assert library("pipeline", "run").out == "Nothing waited.\n"


def test_a_site_that_is_no_longer_public_leaves_nothing_behind(library: Harvester) -> None:
    library("pipeline", "run")
    files = [path for path in (library.folder / "pipeline" / "files").rglob("*") if path.is_file()]
    assert len(files) == 4
    assert library("sites", "edit", LIBRARY.name, "--not-public").code == 0
    assert library("run", "--force").code == 0
    library("pipeline", "run")
    kept = tables(library)
    assert {name for name, rows in kept.items() if rows} == {"pipeline_feed", "pipeline_stage", "pipeline_step"}
    assert {row[0] for row in library.rows("SELECT state FROM pipeline_step")} == {"gone"}
    left = [path for name in ("files", "texts") for path in (library.folder / "pipeline" / name).rglob("*")]
    assert [path for path in left if path.is_file()] == []


def test_an_erased_document_is_gone_at_once_and_a_withdrawn_one_is_in_no_answer(library: Harvester) -> None:
    library("pipeline", "run")
    [(erased, digest), (withdrawn, _)] = library.rows(
        "SELECT document_id, text_sha256 FROM output_text JOIN catalogue_document USING (catalogue_document_id) "
        "ORDER BY document_id LIMIT 2"
    )
    text = library.folder / "pipeline" / "texts" / digest[:2] / digest[2:4] / digest
    assert text.is_file()
    assert {erased, withdrawn} < found_ids(library)
    reason = ("--reason", "a person objects", "--yes")
    assert library("target", "withdraw", withdrawn, *reason).code == 0
    assert library("target", "withdraw", erased, "--erase", *reason).code == 0
    assert not {erased, withdrawn} & found_ids(library)
    assert (len(found_ids(library)), searched(library)["total"]) == (4, 4)
    assert not text.exists()
    [(number,)] = library.rows(f"SELECT catalogue_document_id FROM catalogue_document WHERE document_id = '{erased}'")
    for name, rows in tables(library).items():
        columns = Base.metadata.tables[name].columns.keys()
        if name != "pipeline_step" and "catalogue_document_id" in columns:
            place = columns.index("catalogue_document_id")
            assert number not in {row[place] for row in rows}, name
    library("pipeline", "run")
    assert (len(found_ids(library)), searched(library)["total"]) == (4, 4)


def test_the_next_run_after_an_erasure_makes_the_index_again(library: Harvester) -> None:
    """The files of an index keep what was deleted from it."""
    library("pipeline", "run")
    index = library.folder / "pipeline" / "index"
    erased = min(found_ids(library))
    done = library("target", "withdraw", erased, "--erase", "--reason", "a person objects", "--yes")
    assert (
        "Files of the search index keep its text until `metaharvest pipeline run` has made the index again." in done.out
    )
    assert len(found_ids(library)) == 5
    library("pipeline", "run")
    assert len(found_ids(library)) == 5
    assert sorted(each.name for each in index.iterdir()) == ["current", "lock", "v1-2"]


def searched(library: Harvester) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(library("search", "--json").out)
    return answer


def found_ids(library: Harvester) -> set[str]:
    """The documents of all outputs that the search finds."""
    return {each["document_id"] for each in searched(library)["outputs"]}


def test_a_site_that_wants_no_full_texts_any_more_loses_its_files(library: Harvester) -> None:
    library("pipeline", "run")
    edited = library("sites", "edit", LIBRARY.name, "--full-text", "none")
    assert "full text: as the settings -> none" in edited.out
    library("pipeline", "run")
    assert (
        library.rows("SELECT count(*) FROM output_file") == library.rows("SELECT count(*) FROM output_text") == [(0,)]
    )
    left = [path for name in ("files", "texts") for path in (library.folder / "pipeline" / name).rglob("*")]
    assert [path for path in left if path.is_file()] == []


def test_lost_and_damaged_files_are_fetched_again_when_a_person_asks_for_it(library: Harvester) -> None:
    library("pipeline", "run")
    wanted = tables(library)["output_text"]
    files = library.folder / "pipeline" / "files"
    damaged = next(path for path in files.rglob("*") if path.is_file())
    shutil.rmtree(library.folder / "pipeline")
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"%PDF")
    library.rows("UPDATE pipeline_step SET state = 'waiting' WHERE stage = 'extraction'")
    library("pipeline", "run")
    assert stages(library)["extraction"]["failed_documents"] == len(wanted)
    # One failed while the store was away: it came back without its files.
    library.rows(
        "UPDATE pipeline_step SET rule = 'extraction.store-away' WHERE stage = 'extraction' "
        "AND catalogue_document_id = (SELECT max(catalogue_document_id) FROM output_file)"
    )
    library("pipeline", "retry", "extraction")
    library("pipeline", "run")
    assert tables(library)["output_text"] == wanted
    assert damaged.stat().st_size > 4


def test_the_next_run_fetches_a_damaged_file_again_although_its_text_is_known(library: Harvester) -> None:
    library("pipeline", "run")
    wanted = tables(library)["output_text"]
    damaged = next(path for path in (library.folder / "pipeline" / "files").rglob("*") if path.is_file())
    content = damaged.read_bytes()
    damaged.write_bytes(b"%PDF")
    library.rows("UPDATE pipeline_step SET state = 'waiting' WHERE stage = 'extraction'")
    library("pipeline", "run", "--stage", "extraction")
    assert not damaged.exists()
    assert stages(library)["extraction"]["failed_documents"] == 0
    library("pipeline", "run")
    assert damaged.read_bytes() == content
    assert tables(library)["output_text"] == wanted


def test_a_text_is_found_after_its_link_is_dead(library: Harvester, network: Network) -> None:
    library("pipeline", "run")
    wanted = tables(library)["output_text"]
    network.lost = LARVAE
    library.rows("UPDATE pipeline_step SET state = 'waiting' WHERE stage = 'full-text'")
    library("pipeline", "run")
    assert tables(library)["output_text"] == wanted
    [found] = json.loads(library("search", "fulltext:clay", "--json").out)["outputs"]
    assert found["has_full_text"]
    failures = json.loads(library("pipeline", "failures", "--stage", "full-text", "--json").out)
    assert found["document_id"] in {each["document_id"] for each in failures if each["rule"] == "full-text.missing"}


def test_the_search_knows_the_new_name_of_a_site_and_none_of_a_removed_one(library: Harvester) -> None:
    library("pipeline", "run")
    assert sites_found(library) == {LIBRARY.name}
    library("sites", "edit", LIBRARY.name, "--name", "alder")
    library("pipeline", "run", "--stage", "index")
    assert sites_found(library) == {"alder"}
    library("sites", "remove", "alder", "--yes")
    library("pipeline", "run", "--stage", "index")
    assert sites_found(library) == {None}


def sites_found(library: Harvester) -> set[str | None]:
    """The sites of all outputs in the index."""
    return {each["site"] for each in json.loads(library("search", "--json").out)["outputs"]}


@pytest.mark.slow
def test_a_pipeline_that_is_killed_ends_with_the_same_tables(library: Harvester) -> None:
    library("pipeline", "run")
    wanted = tables(library)
    start_again(library)
    chance = random.Random(20261120)
    kills = [kill_after(library, steps, chance.uniform(0, 0.02)) for steps in (1, 7, 10, 14, 20)]
    assert sum(kills) >= 3
    assert library("pipeline", "run").code == 0
    assert tables(library) == wanted


def kill_after(library: Harvester, steps: int, seconds: float) -> bool:
    """Run the pipeline and kill it this time after this number of steps have ended; True if it was still at work."""
    running = library.start("pipeline", "run")
    while running.poll() is None and ended_steps(library) < steps:
        time.sleep(0.001)
    time.sleep(seconds)
    running.kill()
    running.communicate()
    return running.returncode == -signal.SIGKILL


def ended_steps(library: Harvester) -> int:
    [(number,)] = library.rows("SELECT count(*) FROM pipeline_step WHERE state <> 'waiting'")
    return int(number)
