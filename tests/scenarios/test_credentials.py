"""Credentials in URLs are used, and found nowhere afterwards but where they were written and where they are needed."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import inspect

from support.harvester import Harvester, eml, harvest_list
from support.http_server import HttpServer

USER, PASSWORD = "anna-of-alder", "sesame-open"
HOST = f"{USER}:{PASSWORD}@127.0.0.1"
SENT = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
NEEDED = {("harvest_site_schedule", "documentlisturl"), ("harvest_document", "document_url")}


def shows(text: str) -> bool:
    """Whether a text has any of it, however it is cut or encoded."""
    return any(part in text for part in (USER, PASSWORD, "sesame", SENT.removeprefix("Basic ")))


@contextmanager
def refusing(harvester: Harvester, document_id: str) -> Iterator[None]:
    """Have the database refuse the ledger's row of a document, quoting the row where it likes to."""
    dialect, name = harvester.engine.dialect.name, "test_refuses"
    if dialect == "sqlite":
        harvester.rows(
            f"CREATE TRIGGER {name} BEFORE INSERT ON harvest_document WHEN NEW.document_id = '{document_id}' "
            "BEGIN SELECT RAISE(ABORT, 'this one not'); END"
        )
    elif dialect == "postgresql":
        harvester.rows(f"ALTER TABLE harvest_document ADD CONSTRAINT {name} CHECK (document_id <> '{document_id}')")
    try:
        yield
    finally:
        if dialect == "postgresql":
            harvester.rows(f"ALTER TABLE harvest_document DROP CONSTRAINT {name}")


def publish_everything(server: HttpServer) -> list[str]:
    """Sites with every way a document and a list can go wrong, all with credentials; the URLs of the lists."""

    def url(path: str) -> str:
        return server.url(path, host=HOST)

    server.serve("/good.xml", eml("a.1.1"))
    server.serve("/busy.xml", b"busy", status=503)
    server.serve("/forbidden.xml", b"<html><title>Log in</title></html>", status=401)
    server.serve("/invalid.xml", eml("a.4.1").replace(b"contact", b"contat"))
    server.serve("/page.html", b"<!DOCTYPE html><html><head><title>Log in</title></head></html>")
    server.redirect("/moved.xml", url("/new.xml"))
    server.serve("/new.xml", eml("a.6.1"))
    server.redirect("/circle.xml", url("/circle.xml"))
    server.redirect("/astray.xml", f"ftp://{HOST}/x.xml")
    server.redirect("/private.xml", f"http://{USER}:{PASSWORD}@10.0.0.1/x.xml")
    server.serve("/refused.xml", eml("a.10.1"))
    names = ("good", "busy", "forbidden", "invalid", "page.html", "moved", "circle", "astray", "private", "refused")
    entries = [
        (f"a.{number}.1", url(f"/{name}" if "." in name else f"/{name}.xml")) for number, name in enumerate(names, 1)
    ]
    server.serve("/a.xml", harvest_list([*entries, ("a.1.1", url("/again.xml"))]))
    server.serve("/b.xml", harvest_list([("a.1.1", url("/good.xml"))]))
    server.serve("/c.xml", harvest_list([("c.1.1", url("/x.xml?a=1&b=2"))]))
    broken = [f"http://{USER}:{PASSWORD}/x@127.0.0.1/", f"http:{USER}:{PASSWORD}@a/", f"//{USER}:{PASSWORD}@a/x"]
    broken += [f"ftp://{HOST}/x", f"http://{HOST}:0/x", f"http://{USER}:{PASSWORD}@bad host/", f"{USER}:{PASSWORD}@a"]
    server.serve("/d.xml", harvest_list([(f"d.{number}.1", each) for number, each in enumerate(broken, 1)]))
    long_line = f"<x/>{'<!-- - -->' * 12}<documentURL>http://{USER}:{PASSWORD}@127.0.0.1/{'x' * 140}&y</documentURL>"
    server.serve("/e.xml", b'<h:harvestList xmlns:h="eml://ecoinformatics.org/harvestList">' + long_line.encode())
    return [url(path) for path in ("/a.xml", "/b.xml", "/c.xml", "/d.xml", "/e.xml", "/missing-list.xml")]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_credentials_are_used_and_shown_nowhere(harvester: Harvester, server: HttpServer) -> None:
    urls = publish_everything(server)
    for name, url in zip("abcdef", urls, strict=True):
        harvester.add_site(name, url)
    said: list[str] = []
    with refusing(harvester, "a.10"):
        for command in (("run", "--dry-run"), ("check", urls[0], "--csv")):
            said += [(each := harvester(*command)).out, each.err]
        for day in ("2026-11-20", "2026-11-21"):
            said += harvester.start("run", "--date", day, "--force").communicate(timeout=100)
    assert {request.headers.get("authorization") for request in server.requests} == {SENT}
    assert {"a.1.1", "a.6.1"} <= set(harvester.held())
    outcomes = {outcome for (outcome,) in harvester.rows("SELECT outcome FROM harvest_log WHERE outcome IS NOT NULL")}
    assert {"inserted", "access-error", "invalid", "duplicate", "upload-error"} <= outcomes

    for command in (
        *(("log", *more) for more in ((), ("--json",), ("--csv",), ("--document", "a.1.1"))),
        *(("runs", *more) for more in (("--json",), ("show", "1"), ("show", "1", "--json"))),
        *(("reports", *more) for more in ((), ("--json",), ("show", "1"))),
        *(("sites", *more) for more in (("list",), ("list", "--json"), ("show", "a"), ("show", "a", "--json"))),
        *(("target", *more) for more in (("list",), ("list", "--json"), ("show", "a.1"), ("show", "a.1", "--json"))),
        ("check", urls[0], "--json"),
        ("check", urls[3]),
        ("check", urls[5].replace("/missing", " /missing")),
        ("check", f"http://{USER}:{PASSWORD}@{PASSWORD}@127.0.0.1:1/x"),
        ("sites", "add", "g", "--list-url", f"http://{USER}:{PASSWORD}@bad host/", "--contact", "a@example.org"),
        ("sites", "add", "g", "--list-url", f"http://{USER}:{PASSWORD}/x@host/", "--contact", "a@example.org"),
        ("sites", "add", "g", "--list-url", urls[0], "--contact", "a@example.org"),
        ("doctor",),
        ("doctor", "--json"),
    ):
        each = harvester(*command)
        assert each.out + each.err, command
        assert "Traceback" not in each.out + each.err
        said += [each.out, each.err]
    assert [line for text in said for line in text.splitlines() if shows(line)] == []
    assert list(_mails_that_show_it(harvester)) == []
    assert set(_columns_that_show_it(harvester)) == NEEDED


def _columns_that_show_it(harvester: Harvester) -> Iterator[tuple[str, str]]:
    tables = inspect(harvester.engine)
    for table in tables.get_table_names():
        names = [column["name"] for column in tables.get_columns(table)]
        for row in harvester.rows(f"SELECT {', '.join(names)} FROM {table}"):
            for name, value in zip(names, row, strict=True):
                text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
                if shows(text):
                    yield table, name


def _mails_that_show_it(harvester: Harvester) -> Iterator[str]:
    mails = harvester.mails()
    assert len(mails) > 5
    for mail in mails:
        for part in mail.walk():
            if part.is_multipart():
                continue
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            text = (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).decode()
            if shows(text + str(mail.items())):
                yield text


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_surprise_shows_them_neither_on_stderr_nor_in_the_log_row(
    harvester: Harvester, server: HttpServer, tmp_path: Path
) -> None:
    server.serve("/a.xml", harvest_list([("a.1.1", server.url("/good.xml", host=HOST))]))
    server.serve("/good.xml", eml("a.1.1"))
    harvester.add_site("a", server.url("/a.xml", host=HOST))
    (tmp_path / "sitecustomize.py").write_text(
        "import metaharvest.validation.validator as v\n"
        "def check(self, content, document, mismatch):\n"
        "    raise ZeroDivisionError(f'a mistake of ours: {document}')\n"
        "v.Validator.check = check\n",
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path))
        out, err = harvester.start("run", "--json").communicate(timeout=60)
    assert json.loads(out)["sites"][0]["upload_error"] == 1
    assert "ZeroDivisionError: a mistake of ours" in err
    assert not shows(out + err)
    [(message, excerpt)] = harvester.rows("SELECT error_message, excerpt FROM harvest_detail_log")
    assert "a mistake of ours" in message
    assert "a mistake of ours" in excerpt
    assert not shows(message + excerpt)


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_surprise_of_the_command_itself_ends_in_a_sentence_without_them(
    harvester: Harvester, server: HttpServer, tmp_path: Path
) -> None:
    url = server.url("/a.xml", host=HOST)
    harvester.add_site("a", url)
    (tmp_path / "sitecustomize.py").write_text(
        "import metaharvest.sites.registry as r\n"
        "def read(*a, **k):\n"
        f"    raise ZeroDivisionError('a mistake of ours: {url}')\n"
        "r.read_sites = read\n",
        encoding="utf-8",
    )
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(tmp_path))
        process = harvester.start("sites", "list")
        out, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "did not expect" in err
    assert "ZeroDivisionError" in err
    assert not shows(out + err)
