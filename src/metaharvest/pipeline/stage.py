"""A stage of the pipeline, and its results for documents.

A stage has two parts. `perform` works, as long as it takes, and writes nothing into the database. `store` writes
the results into tables of the stage, in the transaction that notes that the stage is done. A stage that is killed in
between does its work again: both parts are idempotent.

Another distribution adds a stage by an entry point in the group `metaharvest.stages`, whose object is a `Stage`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from metaharvest.catalogue.stage_documents import Document as Document
from metaharvest.config.settings import Settings
from metaharvest.database.engine import database_errors, writers
from metaharvest.model.kinds import StageName as StageName
from metaharvest.model.kinds import StepState as StepState
from metaharvest.model.values import frozen


@frozen
class Failure:
    """The reason of a failure: a rule of rules.py, and a sentence. `retry_after` is the pause before the next try.

    The pause doubles with each failure, unless it `is_exact`: its end is known, such as the end of an embargo.
    """

    rule: str
    message: str
    retry_after: timedelta | None = None
    is_exact: bool = False


@frozen
class Result:
    """The result of a stage for a document: a value for `store`, a failure, or neither if there is nothing to do.

    `state` without a failure or a value is SKIPPED. A failure may have a value, too: the known part of it.
    """

    document: Document
    value: Any = None
    failure: Failure | None = None

    @property
    def state(self) -> StepState:
        """The state of the document at the stage afterwards."""
        if self.failure is not None:
            return StepState.FAILED
        return StepState.SKIPPED if self.value is None else StepState.DONE


@frozen
class Context:
    """The installation for a stage. `stops` is true when the stage is to end: after the document in hand.

    `part` of `parts` is the share of the documents that this process has. `memory` has what stages keep from one
    batch to the next, by their names.
    """

    engine: Engine
    settings: Settings
    now: Callable[[], datetime]
    stops: Callable[[], bool] = lambda: False
    part: int = 0
    parts: int = 1
    memory: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder of files, texts and the index."""
        return self.settings.path(self.settings.pipeline.folder)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A session for reading. Raises DatabaseUnavailable."""
        with database_errors(self.engine), Session(self.engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session for a transaction, which is committed at the end. Raises DatabaseUnavailable."""
        with database_errors(self.engine), writers(self.engine).begin() as session:
            yield session


def _nothing(*_arguments: object) -> None:
    """For a stage without tables or files."""


@frozen
class Stage:
    """A stage. A higher `version` has all documents done again. `wakes` are the stages that use its results.

    A stage of another distribution names the stages whose results it uses: it `follows` them.

    `perform` gets documents that are there, and gives a result for each; a document without a result stays waiting.
    `store` replaces what the stage has of these documents. `forget` and `remove` delete what it has of documents that
    are gone: first outside of the database, then in it. `tidy` is called at the end of the work, and deletes
    files that no row names any more. `batch` is the number of documents at a time, `parts` the number of
    jobs of workers that may do the stage at a time, each with its share of the documents.
    """

    name: str
    version: int
    perform: Callable[[Context, Sequence[Document]], Iterable[Result]]
    store: Callable[[Session, Sequence[Result], datetime], None] = _nothing
    remove: Callable[[Session, Collection[int]], None] = _nothing
    forget: Callable[[Context, Collection[int]], None] = _nothing
    tidy: Callable[[Context], None] = _nothing
    wakes: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    batch: int = 200
    parts: int = 1
