"""Redaction: a forgotten address or an erased document leaves no trace in a report."""

from __future__ import annotations

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from jinja2 import Environment

from metaharvest.mail.redaction import REMOVED, without_address, without_document

SHOWN = '<a href="mailto:{{ address | urlencode | replace("%40", "@") }}">{{ address }}</a>'
"""An address as the templates of reports write it."""


def message(text: str, html: str = "") -> bytes:
    made = EmailMessage(policy=SMTP)
    made["To"], made["Subject"] = "data@alder.example.org", "alder: 1 new"
    made.set_content(text)
    if html:
        made.add_alternative(html, subtype="html")
    return made.as_bytes()


def texts(content: bytes) -> str:
    parsed = message_from_bytes(content, policy=SMTP)
    assert isinstance(parsed, EmailMessage)
    return "\n".join(part.get_content() for part in parsed.walk() if part.get_content_maintype() == "text")


@pytest.mark.parametrize(
    "address", ["mary.o'brien@example.org", "mary+x@example.org", "a&b@example.org", "mary@exämple.org"]
)
def test_a_forgotten_address_goes_from_the_text_and_from_links(address: str) -> None:
    html = Environment(autoescape=True).from_string(SHOWN).render(address=address)
    content = without_address(message(f"Write to {address}.", html), address)
    assert content is not None
    left = texts(content)
    assert left.count(REMOVED) == 3
    assert "mary" not in left
    assert "example" not in left


def test_a_longer_address_stays() -> None:
    assert without_address(message("Write to ann-mary@example.org, mary@example.org.uk."), "mary@example.org") is None


@pytest.mark.parametrize("text", ["ren-alder.1", "ren-alder.1.12: not valid", "<ren-alder.1>", "x/ren-alder.1.xml"])
def test_a_report_that_names_an_erased_document_loses_its_text(text: str) -> None:
    content = without_document(message(text), "ren-alder.1", "It was erased.")
    assert content is not None
    assert texts(content).strip() == "It was erased."


@pytest.mark.parametrize("text", ["ren-alder.12", "ren-alder.10.1: not valid", "big-ren-alder.1", "ren-alder.1-b"])
def test_a_report_about_another_document_keeps_its_text(text: str) -> None:
    assert without_document(message(text), "ren-alder.1", "It was erased.") is None
