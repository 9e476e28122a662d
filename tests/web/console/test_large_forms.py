"""Large and hostile forms: the server answers other people meanwhile, and keeps its memory."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.requests import Request
from starlette.types import Message

from metaharvest.web.console import forms
from metaharvest.web.console.forms import Busy, NotReadable, TooLarge, read_form
from support.console import served_console
from support.databases import on_one_database
from support.harvester import Harvester

MB = 1_048_576


FILES = "multipart/form-data; boundary=b"
FIELD = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n'


def form_of(parts: list[bytes], media_type: str = FILES) -> Request:
    waiting = [{"type": "http.request", "body": part, "more_body": True} for part in parts]

    async def receive() -> Message:
        return waiting.pop(0) if waiting else {"type": "http.request", "body": b"", "more_body": False}

    headers = [(b"content-type", media_type.encode())]
    return Request({"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}, receive)


def test_all_large_forms_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "_MOST_BYTES_AT_ONCE", 3 * MB)
    with pytest.raises(Busy):
        asyncio.run(read_form(form_of([FIELD + b"x" * MB] + [b"x" * MB] * 4), 10 * MB))
    with pytest.raises(TooLarge):
        asyncio.run(read_form(form_of([b"x" * MB] * 3), 2 * MB))
    form = asyncio.run(read_form(form_of([FIELD, b"x" * 2 * MB, b"\r\n--b--\r\n"]), 3 * MB))
    assert len(form.text("a")) == 2 * MB
    assert forms._room.taken == 0


def test_a_form_without_files_has_a_limit_of_its_own() -> None:
    encoded = "application/x-www-form-urlencoded"
    with pytest.raises(TooLarge):
        asyncio.run(read_form(form_of([b"a=" + b"%41" * 400_000], encoded), 28 * MB))
    form = asyncio.run(read_form(form_of([b"a=" + b"%C3%A4+" * 40_000, b"&b=%ff&c"], encoded), 28 * MB))
    assert (form.whole("a"), form.text("b"), form.is_set("c")) == ("ä " * 40_000, "\ufffd", True)
    with pytest.raises(NotReadable):
        asyncio.run(read_form(form_of([b"a=%00"], encoded), MB))
    with pytest.raises(NotReadable):
        asyncio.run(read_form(form_of([b"&".join([b"a="] * 5001)], encoded), MB))


@pytest.mark.parametrize("charset", ["punycode", "unicode_escape", "UTF-7"])
def test_a_form_has_no_codec_of_its_own(charset: str) -> None:
    """Of 240 KB as Punycode, the server's one thread for all requests made a text in 12 seconds."""
    with pytest.raises(NotReadable):
        asyncio.run(read_form(form_of([FIELD, b"\\ud800\r\n--b--\r\n"], f"{FILES}; charset={charset}"), MB))
    form = asyncio.run(read_form(form_of([FIELD, b"\xc3\xa4\r\n--b--\r\n"], f"{FILES}; charset=UTF-8"), MB))
    assert form.text("a") == "ä"


@on_one_database
@pytest.mark.slow
def test_ten_uploads_and_a_bomb_at_once_do_not_stop_the_server(harvester: Harvester) -> None:
    bomb = b"<!DOCTYPE a [<!ENTITY a '" + b"x" * 1000 + b"'><!ENTITY b '" + b"&a;" * 1000 + b"'>]><a>&b;&b;</a>"
    deep = b"<a>" * 500_000
    with served_console(harvester) as console, ThreadPoolExecutor(10) as pool:
        pages = [console.visitor().open("/console/check") for _ in range(10)]
        files = [bomb, deep, b"<a>" + b"x" * 9 * MB, b"\x1f\x8b" + b"\0" * MB, b"<a b='" + b"&lt;" * MB + b"'/>"] * 2
        sent = [
            pool.submit(page.submit, "Check", None, {"file": ("a.xml", content)})
            for page, content in zip(pages, files, strict=True)
        ]
        for _ in range(5):
            assert console.visitor().open("/console/login").status == 200
        assert {each.result().status for each in sent} <= {200, 422, 503}
