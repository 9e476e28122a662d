"""Mail and text that reports put together themselves, because it is faster: byte for byte what the library makes."""

from __future__ import annotations

import textwrap
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaharvest.config.settings import Settings
from metaharvest.mail.message import RenderedText, Report, build, header_text, message_id
from metaharvest.reports.render import wrapped
from support.journal_rows import NOW

POLICY = SMTP.clone(cte_type="7bit")
ADDRESSES = st.from_regex(r"[a-z]{1,9}([.+_=-][a-z0-9]{1,9}){0,3}@[a-z]{1,40}\.example", fullmatch=True)
WORDS = st.lists(st.text("ab=-. ", min_size=1, max_size=100) | st.text(min_size=1, max_size=9), max_size=40)
LINES = st.lists(st.text("ab= ", max_size=200) | st.text(max_size=100), max_size=9).map("\n".join)


def library_message(report: Report, settings: Settings) -> bytes:
    """The same message from the email package, with the boundary that `report` has."""
    name = settings.harvester.name
    message = EmailMessage(policy=POLICY)
    message["Subject"] = report.subject
    message["From"] = Address(name, "harvester", "example.org")
    for header, addresses in (("To", report.recipients), ("Reply-To", settings.harvester.administrators)):
        message[header] = tuple(Address("", *address.rsplit("@", 1)) for address in addresses)
    message["Date"] = NOW
    message["Message-ID"] = report.message_id
    message["Auto-Submitted"] = "auto-generated"
    message["MIME-Version"] = "1.0"
    message["Content-Type"] = "multipart/alternative"
    for subtype, text in (("plain", report.text), ("html", report.html)):
        part = EmailMessage(policy=POLICY)
        part.set_content(text, subtype=subtype, cte="quoted-printable")
        del part["MIME-Version"]
        message.attach(part)
    message.set_boundary(report.content.partition(b'boundary="')[2].partition(b'"')[0].decode())
    return message.as_bytes(policy=POLICY.clone(max_line_length=300 if (report.subject + name).isascii() else 76))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Example network", "Réseau d’essai", 'Say "hi", (you)'])
@settings(max_examples=60)
@given(
    subject=WORDS.map(" ".join),
    text=LINES,
    html=LINES,
    recipients=st.lists(ADDRESSES, min_size=1, max_size=20, unique=True),
)
def test_a_message_is_what_the_library_writes(
    name: str, subject: str, text: str, html: str, recipients: list[str]
) -> None:
    configured = Settings.model_validate(
        {
            "harvester": {"name": name, "administrators": ["steward@example.org", "o'neil@example.org"]},
            "mail": {"sender": "harvester@example.org"},
        }
    )
    body = RenderedText(header_text(subject), text, html)
    identifier = message_id("site:1", (1,), configured)

    report = build("site", "site:1", identifier, tuple(recipients), body, None, configured, NOW)

    assert report.content == library_message(report, configured)


@pytest.mark.slow
@given(text=WORDS.map(" ".join), indent=st.integers(0, 90), first=st.sampled_from(["", "- ", "What to do: "]))
def test_text_is_wrapped_as_textwrap_does_it(text: str, indent: int, first: str) -> None:
    begin, further = " " * indent + first, " " * (indent + len(first))
    wrapper = textwrap.TextWrapper(78, begin, further, break_long_words=False, break_on_hyphens=False)

    assert wrapped(text, indent, first) == wrapper.fill(text)
