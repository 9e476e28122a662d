"""The documents whose last findings have a rule, wherever the finding is kept: as a problem, or in the log alone."""

from __future__ import annotations

from sqlalchemy.orm import Session

from metaharvest.model import Finding, Level, OutcomeKind, SiteRunKind
from metaharvest.problems.follow import EndedSiteRun, update_problems
from metaharvest.queries.documents import DocumentCursor, DocumentFilter, document_rows
from support.journal_rows import TODAY, JournalRows

RULE, EVENT = "eml.unit-undefined", "target.unconfirmed"
INVALID = OutcomeKind.INVALID


def found(session: Session, rule: str, limit: int) -> list[tuple[str | None, str]]:
    """The sites and documents, read page by page."""
    every: list[tuple[str | None, str]] = []
    after: DocumentCursor | None = None
    while page := list(document_rows(session, DocumentFilter(rule=rule), TODAY, limit=limit, after=after)):
        every += [(each.site, each.document_id) for each in page]
        after = page[-1].cursor
    return every


def test_problems_events_and_site_runs_that_go_on(session: Session, rows: JournalRows) -> None:
    run = rows.run()
    alder, birch = (rows.site_run(run, rows.site(name)) for name in ("alder", "birch"))
    cedar = rows.site_run(run, rows.site("cedar"), ended_at=None)
    finding, event = Finding(RULE, "No such unit."), Finding(EVENT, "Not confirmed.", level=Level.WARNING)
    for site_run, document_id in ((alder, "a.1"), (alder, "a.2"), (birch, "a.2"), (cedar, "c.1")):
        rows.ledger(site_run, document_id, 1, INVALID)
        rows.document(run, site_run, document_id, 1, INVALID, finding)
    rows.ledger(birch, "b.1", 1, OutcomeKind.INSERTED)
    rows.document(run, birch, "b.1", 1, OutcomeKind.INSERTED, event)
    # The site birch lists a document of alder, too, without the finding.
    rows.ledger(birch, "a.1", 1, OutcomeKind.INSERTED)
    rows.document(run, birch, "a.1", 1, OutcomeKind.INSERTED)
    cedar.status = "running"
    session.flush()
    ended = [
        EndedSiteRun(each.site_schedule_id, each.site_run_id, SiteRunKind.SCHEDULED, True, True)
        for each in (alder, birch)
    ]
    update_problems(session, ended, TODAY)

    for limit in (1, 2, 10):
        assert found(session, RULE, limit) == [("alder", "a.1"), ("alder", "a.2"), ("birch", "a.2"), ("cedar", "c.1")]
        assert found(session, EVENT, limit) == [("birch", "b.1")]
