"""Reports: from the journal to a rendered message; the room `mail` delivers it.

    compose.py                    puts the steps together
    notify_policy.py              decides if a site run deserves a report
    site_view.py, admin_view.py   the values of a report, read from the journal
    render.py                     templates/email/... -> subject, text, HTML; a plain report if a template fails

Everything in a report is read from the tables, never from memory: the tables say what the mail said.
"""

from __future__ import annotations

from metaharvest.mail.message import Report
from metaharvest.mail.outbox import Deliveries, DeliveringRun, deliver, number_waiting, queue, queue_all
from metaharvest.mail.resend import Dropped, Resent, ResentRefused, drop, entitled, resend, resend_refused
from metaharvest.reports.compose import admin_report, digest, site_report, site_reports
from metaharvest.reports.render import make_ready
from metaharvest.reports.site_view import NamedTarget, NamedTargets
from metaharvest.reports.tables import documents_csv, log_csv, selected_log_csv, table_csv

__all__ = [
    "Deliveries",
    "DeliveringRun",
    "Dropped",
    "NamedTarget",
    "NamedTargets",
    "Report",
    "Resent",
    "ResentRefused",
    "admin_report",
    "deliver",
    "digest",
    "documents_csv",
    "drop",
    "entitled",
    "log_csv",
    "make_ready",
    "number_waiting",
    "queue",
    "queue_all",
    "resend",
    "resend_refused",
    "selected_log_csv",
    "site_report",
    "site_reports",
    "table_csv",
]
