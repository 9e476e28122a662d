"""What a mail says to the person who reads it."""

from __future__ import annotations

from email.message import EmailMessage


def text_of(mail: EmailMessage) -> str:
    """The plain text of a mail."""
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def words_of(mail: EmailMessage) -> str:
    """The same, with one space for each line break, so that sentences can be looked for."""
    return " ".join(text_of(mail).split())
