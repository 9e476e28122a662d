"""A process that does the stage for documents, for a test that kills it: `stage_process.py SETTINGS NUMBER`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.orm import Session

from metaharvest.config.settings import load
from metaharvest.database.engine import open_database
from metaharvest.pipeline.full_text.stage import STAGE
from metaharvest.pipeline.stage import Context, Document


def main(settings_file: str, number: int) -> None:
    settings = load(Path(settings_file))
    engine = open_database(settings)
    names = [f"oai:r:{n}" for n in range(number)]
    documents = [Document(n, name, name, None, "oai_dc", 1, n, n, None, None, False) for n, name in enumerate(names)]
    now = datetime(2026, 11, 28, 3, tzinfo=UTC)
    for one in documents:
        results = list(STAGE.perform(Context(engine, settings, lambda: now), [one]))
        with Session(engine) as session, session.begin():
            STAGE.store(session, results, now)


main(sys.argv[1], int(sys.argv[2]))
