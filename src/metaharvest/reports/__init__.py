"""Reports: from the journal to a rendered message; the room `mail` delivers it.

    compose.py             puts the steps together
    notify_policy.py       decides if a site run deserves a report
    site_view.py, admin_view.py, digest_view.py
                           the values of a report, read from the journal
    findings.py, source_lines.py, document_lists.py, problem_history.py, pipeline_notes.py, start_here.py
                           the parts of a view, each about one subject
    parts.py, phrasing.py  the values, the words and numbers that several modules share
    tables.py, workbook.py tables as CSV, and as a workbook
    letters.py             letters to people outside
    render.py              templates/email/... -> subject, text, HTML; a plain report if a template fails
    template_check.py      tries templates with sample reports

Everything in a report is read from the tables, never from memory: the tables say what the mail said.
"""
