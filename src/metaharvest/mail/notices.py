"""Mails that are sent at once and stored nowhere, as they may have a link that is a secret."""

from __future__ import annotations

import html
import logging
import secrets
from contextlib import closing
from datetime import datetime

from metaharvest.config.settings import Settings
from metaharvest.mail.delivery import Letter
from metaharvest.mail.message import RenderedText, build, message_id
from metaharvest.mail.outbox import backend_for
from metaharvest.text import only_xml

log = logging.getLogger(__name__)


def send_notice(settings: Settings, to: str, subject: str, paragraphs: tuple[str, ...], now: datetime) -> bool:
    """Send a notice, a short mail, to one address; false, and a line in the log, if it could not be handed over."""
    text = "\n\n".join(paragraphs) + "\n"
    page = "".join(f"<p>{_shown(each)}</p>\n" for each in paragraphs)
    rendered = RenderedText(subject, text, f"<!DOCTYPE html>\n<html><body>\n{page}</body></html>\n")
    return send_now(settings, "notice", to, rendered, now)


def send_now(settings: Settings, kind: str, to: str, rendered: RenderedText, now: datetime) -> bool:
    """Send a mail to one address; false, and a line in the log, if it could not be handed over."""
    identifier = message_id(kind, (secrets.token_hex(16),), settings)
    mail = build(kind, "", identifier, (to,), rendered, None, settings, now)
    with closing(backend_for(settings)) as backend:
        [attempt] = backend.send([Letter(identifier, mail.content, now, (to,))])
    if attempt.status != "sent":
        log.error("A mail was not sent: %s", attempt.error)
    return attempt.status == "sent"


def _shown(paragraph: str) -> str:
    """A paragraph as HTML; one that is a web address becomes a link."""
    escaped = html.escape(only_xml(paragraph))
    is_link = paragraph.startswith(("http://", "https://")) and not any(map(str.isspace, paragraph))
    return f'<a href="{escaped}">{escaped}</a>' if is_link else escaped
