"""Rows that somebody else has written into the schedule: each fails alone, whatever a database allows in it."""

from __future__ import annotations

import pytest

from support.harvester import Harvester, Said, publish
from support.http_server import HttpServer

DAY = "2026-11-20"
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_mariadb = pytest.mark.parametrize("database", ["mariadb"], indirect=True)
on_postgresql = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


def two_sites(harvester: Harvester, server: HttpServer, change: str) -> None:
    """A site whose row somebody changes like this, and a good one."""
    harvester.add_site("broken", publish(server, "a.1.1"))
    harvester.add_site("good", publish(server, "b.1.1", path="/good.xml"))
    harvester.rows(f"UPDATE harvest_site_schedule SET {change} WHERE name = 'broken'")


def told_alone(harvester: Harvester, words: str, name: str = "broken") -> None:
    """The broken site alone is told, in a sentence, by every command that reads the schedule."""
    run = harvester.run(DAY)
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {name: "failed", "good": "succeeded"}
    assert set(harvester.findings(run["run_id"])) == {(None, "error", "site.row")}
    for arguments in (("sites", "list"), ("sites", "show", name)):
        in_words(harvester(*arguments), words, code=0)
    in_words(harvester("doctor"), words, code=1)
    in_words(harvester("run", "--dry-run", "--date", DAY), words, code=3)


def in_words(said: Said, words: str, code: int) -> None:
    assert (said.code, said.err) == (code, "")
    assert words in " ".join(said.out.split())


@on_postgresql
@pytest.mark.parametrize(
    ("column", "day"),
    [
        ("datenextharvest", "infinity"),
        ("datelastharvest", "-infinity"),
        ("datenextharvest", "0044-03-15 BC"),
        ("datelastharvest", "10000-01-01"),
    ],
)
def test_a_date_that_only_postgresql_has_fails_its_site_alone(
    harvester: Harvester, server: HttpServer, column: str, day: str
) -> None:
    two_sites(harvester, server, f"{column} = '{day}'")
    told_alone(harvester, f"{column} is '{day}'; it must be a date like 2026-11-20")
    said = harvester("sites", "edit", "broken", "--next", "2030-01-01")
    assert said.code == 0
    assert said.err.startswith("warning: broken: the next harvest, 2030-01-01, is ")
    assert [site["status"] for site in harvester.run("2030-01-01", "--site", "broken")["sites"]] == ["succeeded"]


@on_mariadb
@pytest.mark.parametrize(("column", "day"), [("datenextharvest", "0000-00-00"), ("datelastharvest", "2026-11-00")])
def test_a_date_that_only_mariadb_has_fails_its_site_alone(
    harvester: Harvester, server: HttpServer, column: str, day: str
) -> None:
    harvester.rows("SET SESSION sql_mode = ''")
    two_sites(harvester, server, f"{column} = '{day}'")
    harvester.engine.dispose()  # other tests get connections with the usual mode
    told_alone(harvester, f"{column} is '{day}'; it must be a date like 2026-11-20")


@on_sqlite
@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("documentlisturl", "TEXT"),
        ("contact_email", "TEXT"),
        ("contact_email", "BLOB"),
        ("notify", "TEXT"),
        ("ldapdn", "BLOB"),
        ("options", "TEXT"),
    ],
)
def test_text_that_is_not_utf8_fails_its_site_alone(
    harvester: Harvester, server: HttpServer, column: str, kind: str
) -> None:
    two_sites(harvester, server, f"{column} = CAST(x'64e972' AS {kind})")
    told_alone(harvester, "d\ufffdr")


@on_sqlite
@pytest.mark.parametrize("kind", ["TEXT", "BLOB"])
def test_a_name_that_is_not_utf8_fails_its_site_alone(harvester: Harvester, server: HttpServer, kind: str) -> None:
    two_sites(harvester, server, f"name = CAST(x'64e972' AS {kind})")
    told_alone(harvester, "name is 'd\ufffdr'; write it as UTF-8 text", name="d\ufffdr")
    said = harvester("sites", "edit", "d\ufffdr", "--name", "der")
    assert (said.code, said.err) == (0, "")
    assert harvester.rows("SELECT name FROM harvest_site_schedule ORDER BY 1") == [("der",), ("good",)]
