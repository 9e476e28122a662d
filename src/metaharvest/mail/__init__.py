"""How reports leave: the outbox, SMTP, Maildir."""
