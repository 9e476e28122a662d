"""Reports: from the journal to a rendered message; the room `mail` delivers it.

    compose.py                    puts the steps together
    parts.py                      the parts that several modules share
    notify_policy.py              decides if a site run deserves a report
    site_view.py, admin_view.py   the values of a report, read from the journal
    render.py                     templates/email/... -> subject, text, HTML; a plain report if a template fails

Everything in a report is read from the tables, never from memory: the tables say what the mail said.
"""
