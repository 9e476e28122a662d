"""The charset of the header Content-Type."""

from __future__ import annotations

from io import BytesIO

import pytest

from metaharvest.sources.charset import charset_for, declare_charset


@pytest.mark.parametrize(
    ("body", "content_type", "is_declared"),
    [
        (b"<OAI-PMH>Fr\xf6gs", "text/xml; charset=ISO-8859-1", True),
        (b"\n<?xml version='1.0'?><o:OAI-PMH>Fr\xf6gs", 'text/xml;charset="iso-8859-1"', True),
        (
            "<OAI-PMH>\u041b\u044f\u0433\u0443\u0448\u043a\u0438".encode("cp1251"),
            "text/xml; charset=windows-1251",
            True,
        ),
        (b"<?xml version='1.0' encoding='UTF-8'?><OAI-PMH>Fr\xf6gs", "text/xml; charset=ISO-8859-1", False),
        ("<OAI-PMH>Fr\xf6gs".encode(), "text/xml; charset=ISO-8859-1", False),
        ("<OAI-PMH>Fr\xf6gs, Fl\xf6he".encode() + b"\xf6", "text/xml; charset=ISO-8859-1", False),
        (b"<OAI-PMH>Frogs", "text/xml; charset=ISO-8859-1", False),
        (b"<OAI-PMH>Fr\xf6gs", "text/xml; charset=UTF-8", False),
        (b"<OAI-PMH>Fr\xf6gs", "text/xml", False),
        (b"<OAI-PMH>Fr\xf6gs", "text/xml; charset=utf-7", False),
    ],
)
def test_the_charset_of_the_header_applies_to_an_answer_without_a_declaration(
    body: bytes, content_type: str, is_declared: bool
) -> None:
    file = BytesIO(body)
    if charset := charset_for(body, content_type):
        declare_charset(file, charset)
    assert file.tell() == 0
    declared = f'<?xml version="1.0" encoding="{charset}"?>'.encode()
    root = body[max(body.find(b"<OAI"), body.find(b"<o:OAI")) :]
    assert file.getvalue() == (declared + root if is_declared else body)
