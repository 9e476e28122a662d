"""Reports: from the journal to a rendered message in the outbox, and from there to the people.

    site_view.py, admin_view.py   read the journal (findings.py: by rule; tables.py: the CSV; words.py: the wording)
    render.py                     templates/email/... -> subject, text, HTML; a plain report where a template fails
    message.py                    the whole message: headers, alternatives, attachment
    wanted.py                     whether a site run deserves a report
    outbox.py, mail.py            queued, delivered per recipient by SMTP or into a Maildir folder

Everything told is read from the tables, never remembered: whoever reads them sees what the mail said.
"""

from __future__ import annotations

from metaharvest.reports.compose import admin_report, site_report, site_reports
from metaharvest.reports.message import Report
from metaharvest.reports.outbox import Deliveries, Turn, deliver, queue, queue_all, resend
from metaharvest.reports.tables import documents_csv, log_csv

__all__ = [
    "Deliveries",
    "Report",
    "Turn",
    "admin_report",
    "deliver",
    "documents_csv",
    "log_csv",
    "queue",
    "queue_all",
    "resend",
    "site_report",
    "site_reports",
]
