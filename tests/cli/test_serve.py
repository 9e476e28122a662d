"""`metaharvest serve`: what it says, and that it only needs to read."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from support.console import Browser
from support.databases import TestDatabase, on_one_database
from support.harvester import SETTINGS, Harvester, eml
from support.provider import KEY, checked, document, store, texts


def question(process: subprocess.Popen[str], query: str) -> bytes:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://\S+/oai", line)
    assert found, line
    with urllib.request.urlopen(f"{found[0]}?{query}", timeout=30) as answer:
        return bytes(answer.read())


def identifiers(process: subprocess.Popen[str]) -> list[str]:
    return texts(checked(question(process, "verb=ListIdentifiers&metadataPrefix=oai_dc")), "identifier")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    harvester = Harvester(tmp_path, SETTINGS + KEY)
    store(harvester, document("a.1", eml("a.1.1")))
    with harvester.start("serve", "--public", "--port", "0") as process:
        assert identifiers(process) == ["oai:localhost.localdomain:a.1"]
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, said) == (0, "")
    harvester.close()


@pytest.mark.slow
def test_without_public_it_has_a_console_with_a_link_for_the_first_operator(tmp_path: Path) -> None:
    harvester = Harvester(tmp_path, SETTINGS + KEY)
    for is_first in (True, False):
        with harvester.start("serve", "--port", "0") as process:
            assert process.stdout is not None
            found = re.search(r"The console is at (http://\S+)/console/\.", process.stdout.readline())
            assert found
            browser = Browser(found[1])
            assert browser.open("/oai?verb=Identify").status == 200
            said = process.stdout.readline()
            link = re.search(r"http://\S+/console/link/\S+", said)
            assert (link is not None) == is_first, said
            if link:
                page = browser.open(link[0]).submit("Sign in")
                page = browser.open("/console/users").submit("Add", {"address": "a@example.org", "role": "operator"})
                assert page.status == 200
            process.terminate()
            assert process.communicate(timeout=30)[1] == ""
    harvester.close()


@pytest.mark.slow
@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_login_that_may_only_read_is_enough(tmp_path: Path, database: TestDatabase) -> None:
    harvester = Harvester(tmp_path, SETTINGS + KEY, database)
    store(harvester, document("a.1", eml("a.1.1")))
    name = harvester.engine.url.database
    if database.kind == "postgresql":
        grants = ["CREATE ROLE reader_of_{0} LOGIN", "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_of_{0}"]
        drops = ["DROP OWNED BY reader_of_{0}", "DROP ROLE reader_of_{0}"]
    else:
        grants = ["CREATE USER reader_of_{0}", "GRANT SELECT ON {0}.* TO reader_of_{0}"]
        drops = ["DROP USER reader_of_{0}"]
    for each in grants:
        harvester.rows(each.format(name))
    try:
        url = harvester.engine.url.set(username=f"reader_of_{name}", password=None).render_as_string()
        harvester.config.write_text(f'{SETTINGS}{KEY}[database]\nurl = "{url}"\n')
        with harvester.start("serve", "--public", "--port", "0") as process:
            assert identifiers(process) == ["oai:localhost.localdomain:a.1"]
            process.terminate()
            process.communicate(timeout=30)
    finally:
        for each in drops:
            harvester.rows(each.format(name))
        harvester.close()


@on_one_database
def test_what_is_missing_is_said(harvester: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = harvester("serve", "--public", "--port", port)
        assert said.code == 2
        assert f"The address 127.0.0.1, port {port}, cannot be used: Address already in use." in said.err
    monkeypatch.setitem(sys.modules, "metaharvest.web.server", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "metaharvest.web.server")
    said = harvester("serve", "--public")
    assert said.code == 2
    assert "pip install 'metaharvest[web]'" in said.err
