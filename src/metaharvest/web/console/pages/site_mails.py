"""A report about a site: its text as it was sent, its deliveries, and sending it again."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.errors import DatabaseError, MetaharvestError
from metaharvest.model.kinds import Role
from metaharvest.queries.outbox import ReportRecord, report_content, report_record, site_of_report
from metaharvest.services import reports
from metaharvest.web.console.pages.outbox import shown_mail
from metaharvest.web.console.pages.site_form import split_parts
from metaharvest.web.console.visit import NotFound, Visit


def show(visit: Visit) -> Response:
    """The report as it was sent."""
    record, content = _report(visit)
    may_change = visit.visitor.role >= Role.STEWARD
    return visit.render("site_mail.html", report=record, mail=shown_mail(content), may_change=may_change)


def resend(visit: Visit) -> Response:
    """Put the report into the outbox again, for its recipients or for others."""
    record, _ = _report(visit)
    with visit.mistakes():
        done = reports.resend(visit.harvester, record.report_id, split_parts(visit.form.text("to")))
        notice = f"The report waits for its delivery to {', '.join(done.recipients)}."
        return visit.redirect("/console/sites", visit.site.name, "mails", record.report_id, notice=notice)
    return show(visit)


def _report(visit: Visit) -> tuple[ReportRecord, bytes]:
    """The report of the path, if it is about this site. Raises NotFound."""
    number = visit.path["report"]
    missing = NotFound("There is no such report about this site.")
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise missing
    with visit.harvester.reading() as session:
        if site_of_report(session, int(number)) != visit.site.site_id:
            raise missing
        try:
            return report_record(session, int(number)), report_content(session, int(number))
        except DatabaseError:
            raise
        except MetaharvestError:
            raise missing from None
