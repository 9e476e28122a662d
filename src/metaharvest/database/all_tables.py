"""All tables, for the code that creates, migrates, copies or shows them: all models, and the indices with a condition.

A run imports only the models that it needs: 53 mapped classes take 0.15 s, which each command would wait for.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Index, text

from metaharvest.database.base import Base as Base
from metaharvest.database.console_models import ConsoleUser as ConsoleUser
from metaharvest.database.models import HarvestDetailLog, HarvestDocument
from metaharvest.database.pipeline_models import PipelineStep as PipelineStep
from metaharvest.database.worker_models import Job as Job


def _partial_index(name: str, condition: str, *columns: Any) -> None:
    # The options would load the dialect of PostgreSQL, 30 ms, whatever database is used.
    Index(name, *columns, sqlite_where=text(condition), postgresql_where=text(condition))


_partial_index(
    "ix_harvest_document_failing",
    "failing_since IS NOT NULL",
    HarvestDocument.site_schedule_id,
    HarvestDocument.failing_since,
)
_partial_index(
    "ix_harvest_document_retry",
    "next_attempt IS NOT NULL",
    HarvestDocument.next_attempt,
    HarvestDocument.site_schedule_id,
)
_partial_index(
    "ix_harvest_detail_log_without_problem", "fingerprint IS NULL", HarvestDetailLog.rule, HarvestDetailLog.fingerprint
)
