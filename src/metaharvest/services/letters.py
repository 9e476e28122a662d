"""Mails with one-time links, and about decisions: they are sent at once, and not stored, as a link is a secret."""

from __future__ import annotations

from metaharvest.errors import RequestError
from metaharvest.mail.message import RenderedText
from metaharvest.mail.notices import send_now
from metaharvest.reports.letters import DoorLetter
from metaharvest.reports.render import render_page
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line

__all__ = ["DoorLetter", "send"]

_PARTS = ("subject.txt", "body.txt", "body.html")


def send(harvester: Harvester, template: str, recipient: str, letter: DoorLetter) -> None:
    """Send the mail of the templates `email/TEMPLATE/` to one address. Raises RequestError if it cannot be sent."""
    settings = harvester.settings
    subject, text, html = (render_page(f"email/{template}/{part}", letter, settings) for part in _PARTS)
    rendered = RenderedText(one_line(subject.strip()), text, html)
    if not send_now(settings, template, recipient, rendered, harvester.now()):
        raise RequestError(f"The mail to {one_line(recipient)} could not be sent. Try again in an hour.")
