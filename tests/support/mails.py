"""What a mail says to the person who reads it."""

from __future__ import annotations

import re
from email.message import EmailMessage

GOOD, DOUBTFUL, BAD = "#1b7a4b", "#9a5b00", "#b3261e"
"""The colours of reports."""


def text_of(mail: EmailMessage) -> str:
    """The plain text of a mail."""
    body = mail.get_body(("plain",))
    assert body is not None
    return str(body.get_content())


def words_of(mail: EmailMessage) -> str:
    """The same, with one space for each line break, so that sentences can be looked for."""
    return " ".join(text_of(mail).split())


def tone_of(mail: EmailMessage) -> str:
    """The colour of the bar with the story of a report."""
    page = mail.get_body(("html",))
    assert page is not None
    [colour] = re.findall(r'class="inside" style="background:(#\w+)', str(page.get_content()))
    return str(colour)
