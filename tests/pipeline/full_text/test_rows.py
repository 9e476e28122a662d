"""The rows of files: as many as an installation has."""

from __future__ import annotations

import sqlite3

from sqlalchemy import create_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import StaticPool

from metaharvest.database.pipeline_models import OutputFile
from metaharvest.pipeline.full_text.rows import used


def test_any_number_of_files_is_looked_up() -> None:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    OutputFile.metadata.create_all(engine, tables=[OutputFile.metadata.tables["output_file"]])
    with Session(engine) as session:
        connection = session.connection().connection.driver_connection
        assert isinstance(connection, sqlite3.Connection)
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 1_000)  # PostgreSQL takes 65,535 parameters
        assert used(session, [f"{number:064x}" for number in range(2_000)]) == set()
