"""The sites with changes between two runs, from hand-made rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.orm import Session

from metaharvest.errors import MetaharvestError
from metaharvest.model import Finding, OutcomeKind
from metaharvest.queries.changes import Changes, changed_sites, changes
from support.journal_rows import NOW, TODAY, JournalRows, new_database

_BROKEN = Finding("eml.title", "The title is empty.")


def _documents(found: Changes) -> list[tuple[str | None, str, str]]:
    return [(site.site, each.change, each.document_id) for site in found.sites for each in site.documents]


def test_a_failing_document_that_leaves_the_list_after_a_retry_of_another_one_is_a_change() -> None:
    with Session(new_database()) as session:
        rows = JournalRows(session)
        sites = {"alder": ("a.1", "a.2"), "birch": ("b.1",)}
        registered = {name: rows.site(name) for name in sites}
        listed, retried, last = (
            rows.run(TODAY + timedelta(days=night), NOW + timedelta(days=night), "succeeded") for night in range(3)
        )
        for name, documents in sites.items():
            of_list = rows.site_run(listed, registered[name], "with_errors")
            for document_id in documents:
                rows.document(listed, of_list, document_id, 1, OutcomeKind.INVALID, _BROKEN)
            retry = rows.site_run(retried, registered[name], kind="retry")
            rows.document(retried, retry, documents[0], 1, OutcomeKind.INSERTED)
            rows.unchanged(last, rows.site_run(last, registered[name]), (documents[0], 1, 1))

        found, site_ids = changed_sites(session, retried.run_id, last.run_id, limit=9)

        whole = changes(session, retried.run_id, last.run_id)
        assert _documents(found) == _documents(whole) == [("alder", "fixed", "a.2")]
        assert site_ids == [registered["alder"].site_schedule_id]


def test_a_run_that_is_not_there_is_reported_before_a_log_that_was_deleted() -> None:
    with Session(new_database()) as session:
        run = JournalRows(session).run()

        with pytest.raises(MetaharvestError, match=f"There is no run {run.run_id + 1}"):
            changes(session, run.run_id, run.run_id + 1)
