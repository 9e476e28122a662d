"""Which sites a run harvests, what it does to their dates, and what broken rows of the schedule cost."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError

from metaharvest.harvest.run import RunRequest
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.mails import words_of

TYPED = ("datenextharvest", "updatefrequency", "enabled")
"""Columns into which only SQLite lets anything."""


def night(harvester: Harvester, day: str) -> int:
    """A run whose clock shows this day. Returns its number."""
    with harvester.opened(clock=lambda: datetime.fromisoformat(f"{day}T12:00:00Z")) as opened:
        return opened.run(RunRequest(opened.today())).run_id


def dates(harvester: Harvester, name: str) -> tuple[str | None, str | None]:
    sql = "SELECT datelastharvest, datenextharvest FROM harvest_site_schedule WHERE name = ?"
    [(last, following)] = harvester.rows(sql, name)
    return last, following


def test_a_named_site_is_harvested_though_not_due_and_no_other(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1")
    harvester.add_site("later", url, datenextharvest="2999-12-24")
    harvester.add_site("due", url)
    run = harvester.run("2026-11-20", "--site", "later")
    assert [(site["site_name"], site["kind"]) for site in run["sites"]] == [("later", "named")]
    assert dates(harvester, "later") == ("2026-11-20", "2026-11-21")


@on_one_database
def test_force_harvests_all_enabled_sites(harvester: Harvester, server: HttpServer) -> None:
    for name in ("a", "b", "c"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}"), datenextharvest="2999-12-24")
    harvester("sites", "disable", "b")
    run = harvester.run("2026-11-20", "--force")
    assert [site["site_name"] for site in run["sites"]] == ["a", "c"]


def test_an_unknown_or_disabled_name_is_a_usage_error_that_leaves_no_run(harvester: Harvester) -> None:
    harvester.add_site("off", "http://127.0.0.1/list.xml")
    harvester("sites", "disable", "off")
    for name, words in (("nobody", "There is no site named 'nobody'"), ("off", "switched off")):
        said = harvester("run", "--site", name)
        assert (said.code, said.out) == (2, "")
        assert words in said.err
    assert harvester.rows("SELECT count(*) FROM harvest_run") == [(0,)]


@on_one_database
def test_a_night_on_which_no_site_is_due_says_so(harvester: Harvester) -> None:
    harvester.add_site("later", "http://127.0.0.1/list.xml", datenextharvest="2999-12-24")
    run = harvester.run("2026-11-20")
    assert (run["status"], run["sites"], run["exit_code"]) == ("succeeded", [], 0)
    assert any("no site was due" in subject for subject in harvester.subjects())


@on_one_database
def test_months_keep_the_day_they_were_set_for(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("monthly", publish(server, "a.1.1"), unit="months", datenextharvest="2026-01-31")
    nexts = []
    for day in ("2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"):
        harvester.run(day)
        nexts.append(dates(harvester, "monthly")[1])
    assert nexts == ["2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31"]


def test_the_day_begins_in_the_configured_time_zone(tmp_path: Path, server: HttpServer) -> None:
    from datetime import UTC, datetime, timedelta
    from zoneinfo import ZoneInfo

    from support.harvester import SETTINGS

    zone = "Pacific/Kiritimati"
    harvester = Harvester(tmp_path, SETTINGS.replace('name = "Test', f'time_zone = "{zone}"\nname = "Test'))
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester("run")
    local = (datetime.now(UTC) - timedelta(seconds=30)).astimezone(ZoneInfo(zone)).date()
    assert dates(harvester, "site")[0] == str(local)
    harvester.close()


BROKEN = [
    ("unit = 'fortnights'", "unit is 'fortnights'"),
    ("unit = NULL", "unit is empty"),
    ("contact_email = ''", "no contact"),
    ("contact_email = 'one@example.org; two'", "'two' is not an email address"),
    ("documentlisturl = 'harvestList.xml'", "is not a web address"),
    ("documentlisturl = 'ftp://example.org/list'", "is not a web address"),
    ("datenextharvest = 'some day'", "datenextharvest is 'some day'"),
    ("updatefrequency = 'often'", "updatefrequency is 'often'"),
    ("updatefrequency = 0", "from 1 to 99"),
    ("notify = 'maybe'", "notify is 'maybe'"),
    ("options = 'x'", "options"),
    ("source_kind = 'ftp'", "source_kind"),
    ("enabled = 'perhaps'", "enabled is 'perhaps'"),
    ("name = ''", "the name is empty"),
]
"""What other people's SQL may do to a row, and the words that tell of it."""


def test_each_broken_row_fails_its_site_alone_with_a_sentence(harvester: Harvester, server: HttpServer) -> None:
    good = harvester.add_site("good", publish(server, "b.1.1", path="/good.xml"))
    broken = {}
    for number, (change, words) in enumerate(BROKEN):
        break_it = f"UPDATE harvest_site_schedule SET {change} WHERE site_schedule_id = ?"
        if harvester.engine.dialect.name != "sqlite" and change.split()[0] in TYPED and "'" in change:
            with pytest.raises(DBAPIError):
                harvester.rows(break_it, good)
            continue
        site = harvester.add_site(f"broken-{number}", publish(server, "a.1.1"))
        harvester.rows(break_it, site)
        broken[site] = words
    run = harvester.run("2026-11-20")
    statuses = dict(harvester.rows("SELECT site_schedule_id, status FROM harvest_site_run"))
    assert statuses == {good: "succeeded", **dict.fromkeys(broken, "failed")}
    assert run["exit_code"] == 3
    assert set(harvester.held()) == {"b.1.1"}
    reasons = dict(harvester.rows("SELECT site_schedule_id, failure_reason FROM harvest_site_run"))
    [admin] = [mail for mail in harvester.mails() if f"{len(broken) + 1} sites" in mail["Subject"]]
    text = words_of(admin)
    for site, words in broken.items():
        assert words in reasons[site]
        assert words in text
    assert harvester.operations(run["run_id"]).count("SiteError") == len(broken)


def test_a_disabled_broken_row_disturbs_nobody(harvester: Harvester) -> None:
    harvester.add_site("broken", "http://127.0.0.1/list.xml")
    harvester.rows("UPDATE harvest_site_schedule SET unit = 'moons', enabled = false")
    assert harvester.run("2026-11-20")["sites"] == []


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_thousands_of_old_reports_are_purged_a_few_hundred_at_a_time(harvester: Harvester, server: HttpServer) -> None:
    """Nobody else may write while a transaction lasts."""
    harvester.add_site("site", publish(server, "a.1.1"))
    run = night(harvester, "2026-01-01")
    harvester.rows(
        "INSERT INTO report_outbox (report_id, idempotency_key, kind, run_id, message_id, subject, content, "
        "created_at) "
        "WITH RECURSIVE old(number) AS (SELECT 1000 UNION ALL SELECT number + 1 FROM old WHERE number < 2199) "
        "SELECT number, number, kind, run_id, message_id, subject, content, created_at FROM old "
        "JOIN report_outbox ON report_id = 1"
    )
    harvester.rows(
        "INSERT INTO report_delivery (report_id, recipient, status, attempts) "
        "SELECT report_id, 'a@example.org', 'sent', 1 FROM report_outbox WHERE report_id >= 1000"
    )
    deleted = [0]

    def count(_connection: object, cursor: Any, statement: str, *_: object) -> None:
        if statement.startswith("DELETE FROM report_outbox"):
            deleted[-1] += cursor.rowcount

    event.listen(Engine, "after_cursor_execute", count)
    event.listen(Engine, "commit", next_transaction := lambda _connection: deleted.append(0))
    try:
        for day in ("2026-10-10", "2026-11-05"):
            night(harvester, day)  # a long pause is less than a month behind: nothing is purged
        assert sum(deleted) == 0
        night(harvester, "2026-11-20")
    finally:
        event.remove(Engine, "after_cursor_execute", count)
        event.remove(Engine, "commit", next_transaction)
    assert sum(deleted) == 1202
    assert max(deleted) <= 500
    assert harvester.rows("SELECT count(*) FROM report_outbox WHERE run_id = ?", run) == [(0,)]
