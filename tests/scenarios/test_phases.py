"""Where the time of a harvest went: in the report to the site, in `runs show`, and in the tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.harvester import SETTINGS, Harvester, eml, publish
from support.http_server import Asking, HttpServer, Route
from support.mails import words_of

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

COLUMNS = "server_seconds, waiting_seconds, checking_seconds, storing_seconds"


def slow(content: bytes) -> Route:
    def route(asking: Asking) -> None:
        asking.pause(0.1)
        asking.answer(content)

    return route


def publish_slowly(server: HttpServer, number: int) -> str:
    docids = [f"a.{each}.1" for each in range(number)]
    url = publish(server, *docids)
    for docid in docids:
        server.route(f"/{docid}.xml", slow(eml(docid)))
    return url


def told_to_the_site(harvester: Harvester) -> str:
    [mail] = [each for each in harvester.mails() if "site@" in str(each["To"])]
    return words_of(mail)


def test_a_report_tells_where_the_time_of_many_documents_went(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish_slowly(server, 24))
    run = harvester.run("2026-11-20")
    [(in_all, waiting, checking, storing)] = harvester.rows(f"SELECT {COLUMNS} FROM harvest_site_run")
    assert in_all >= 2.4
    # Nobody else asks this server.
    assert 0 < waiting < in_all / 2
    assert checking > 0
    assert storing > 0
    told = told_to_the_site(harvester)
    found = re.search(
        r"Where the time of the documents went: your server (\d+) %, (\d+) ms a document; waiting for a free "
        r"connection [\w ]+ %; checking [\w ]+ %; storing [\w ]+ %\.",
        told,
    )
    assert found, told
    assert 100 <= int(found[2]) < 1000
    shown = harvester("runs", "show", str(run["run_id"])).out
    assert f"its server {found[1]} %; waiting for a free connection " in shown
    [site] = json.loads(harvester("runs", "show", str(run["run_id"]), "--json").out)["sites"]
    assert site["server_seconds"] == in_all


def test_of_a_few_documents_it_is_not_told(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish_slowly(server, 4))
    harvester.run("2026-11-20")
    told = told_to_the_site(harvester)
    assert "asked for 4 documents" in told
    assert "Where the time" not in told


def test_a_night_without_new_documents_took_no_time_of_them(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    run = harvester.run("2026-11-21")
    rows = harvester.rows(f"SELECT {COLUMNS} FROM harvest_site_run ORDER BY site_run_id DESC")
    assert rows[0] == (0, 0, 0, 0)
    assert "its server" not in harvester("runs", "show", str(run["run_id"])).out


def test_documents_that_are_sent_to_a_repository_take_time_there(
    harvester: Harvester, server: HttpServer, tmp_path: Path
) -> None:
    folder = f'[target]\nkind = "folder"\nfolder = "{tmp_path / "shelf"}"\n'
    harvester.config.write_text(SETTINGS + folder + f'[database]\nurl = "sqlite:///{tmp_path}/metaharvest.db"\n')
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    assert harvester.run("2026-11-20")["sites"][0]["inserted"] == 2
    [(_, _, _, storing)] = harvester.rows(f"SELECT {COLUMNS} FROM harvest_site_run")
    assert storing > 0
