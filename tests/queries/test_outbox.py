"""The filters of the list of reports."""

from __future__ import annotations

import pytest
from sqlalchemy.orm import Session

from metaharvest.database.models import ReportDelivery, ReportOutbox
from metaharvest.queries.outbox import ReportFilter, newest_reports
from support.journal_rows import NOW, JournalRows

ANNA, BOB = "Anna@example.org", "bob@example.org"


@pytest.mark.parametrize(
    ("which", "subjects"),
    [
        (ReportFilter(recipient="anna@example.org", state="refused"), ["second"]),
        (ReportFilter(recipient=ANNA, undelivered=True), ["second"]),
        (ReportFilter(recipient=BOB, state="refused"), ["first"]),
        (ReportFilter(undelivered=True), ["second", "first"]),
        (ReportFilter(recipient=ANNA), ["second", "first"]),
        (ReportFilter(), ["second", "first"]),
    ],
)
def test_a_recipient_and_a_state_are_those_of_one_delivery(
    session: Session, rows: JournalRows, which: ReportFilter, subjects: list[str]
) -> None:
    run = rows.run()
    for subject, states in (("first", {ANNA: "sent", BOB: "refused"}), ("second", {ANNA: "refused", BOB: "sent"})):
        report = ReportOutbox(
            idempotency_key=subject, kind="admin", run_id=run.run_id, message_id=f"<{subject}@example.org>",
            subject=subject, content=b"", created_at=NOW,
        )  # fmt: skip
        session.add(report)
        session.flush()
        session.add_all(
            ReportDelivery(report_id=report.report_id, recipient=recipient, status=status)
            for recipient, status in states.items()
        )
    session.flush()
    assert [each.subject for each in newest_reports(session, 10, which)] == subjects
