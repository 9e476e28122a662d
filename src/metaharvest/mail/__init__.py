"""The delivery of reports: the outbox, SMTP, Maildir."""
