"""`metaharvest sites import-metacat`: what a person sees and gets who moves from the Metacat Harvester."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from metaharvest.harvest.run import RunRequest
from support.databases import Servers
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.metacat_tables import DETAIL_LOG, LOG, SCHEDULE, metacat_database, write_csv


def today() -> date:
    """It may be another day than at the start of the tests."""
    return datetime.now(UTC).date()


SOON, RECENT, LONG_AGO = (today() + timedelta(days=days) for days in (9, -3, -400))
DN = "uid=alder,o=LTER,dc=ecoinformatics,dc=org"
HUGE = 2**40

ROWS: dict[str, list[tuple[object, ...]]] = {
    "HARVEST_SITE_SCHEDULE": [
        (
            3,
            "http://alder.example.org/list.xml",
            DN,
            SOON,
            RECENT,
            1,
            "months",
            "a@example.org;b@example.org",
            "hunter2",
        ),
        (4, " http://www.birch.example.org/list.xml ", None, LONG_AGO, None, 0, "Weeks", " c@example.org ", None),
        (5, "http://cedar.example.org/list.xml", None, SOON, RECENT, 2, "weeks", "d@example.org", ""),
        (7, "http://alder.example.org/other.xml", DN, SOON, None, 1, "days", "a@example.org", None),
        (8, "http://elm.example.org/list.xml", None, None, None, None, None, None, None),
        (9, "ftp://fern.example.org/list.xml", None, SOON, None, 1, "days", "f@example.org", None),
        (10, "http://cedar.example.org/list.xml", None, SOON, None, 1, "days", "d@example.org", None),
        (11, "http://cedar.example.org/list.xml", None, SOON, None, 1, "days", "e@example.org", None),
    ],
    "HARVEST_LOG": [
        (1, RECENT, 0, "Starting Up Harvester", "harvester.HarvesterStartup", None),
        (2, RECENT, 0, "Retrieved list", "harvester.GetHarvestListSuccess", 3),
        (3, RECENT, 1, "Could not insert", "harvester.InsertDocError", 3),
        (4, RECENT, 0, "Inserted knb.2.1", "harvester.InsertDocSuccess", 3),
        (5, LONG_AGO, 0, "Inserted knb.0.1", "harvester.InsertDocSuccess", 3),
        (6, RECENT, 0, "What?", "harvester.Nonsense", 3),
        (7, RECENT, 1, "No list", "harvester.GetHarvestListError", 8),
    ],
    "HARVEST_DETAIL_LOG": [
        (1, 3, "knb", 1, 1, "http://me:secret@alder.example.org/1.xml", "The user may not write.", "eml"),
        (2, 4, "knb", HUGE, 1, "http://alder.example.org/2.xml", "", "eml"),
        (3, 5, "knb", 0, 1, "http://alder.example.org/0.xml", "Old.", "eml"),
        (4, 99, "knb", 0, 1, "http://alder.example.org/0.xml", "Of no row.", "eml"),
    ],
}
VERDICTS = {
    "SITE_SCHEDULE_ID 3": ("changed", "alder.example.org"),
    "SITE_SCHEDULE_ID 4": ("changed", "birch.example.org"),
    "SITE_SCHEDULE_ID 5": ("taken", "cedar.example.org"),
    "SITE_SCHEDULE_ID 7": ("taken", "alder.example.org-lter"),
    "SITE_SCHEDULE_ID 8": ("refused", None),
    "SITE_SCHEDULE_ID 9": ("refused", None),
    "SITE_SCHEDULE_ID 10": ("present", "cedar.example.org"),
    "SITE_SCHEDULE_ID 11": ("refused", None),
}
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def imported(harvester: Harvester, *arguments: str, code: int = 1) -> dict[str, Any]:
    said = harvester("sites", "import-metacat", "--json", *arguments)
    assert (said.code, said.err) == (code, "")
    assert "hunter2" not in said.out
    found: dict[str, Any] = json.loads(said.out)
    return found


def schedule(harvester: Harvester) -> list[tuple[Any, ...]]:
    return harvester.rows(
        "SELECT name, documentlisturl, contact_email, updatefrequency, unit, datenextharvest, datelastharvest, ldapdn, "
        "ldappwd FROM harvest_site_schedule ORDER BY site_schedule_id"
    )


def csv_tables(folder: Path) -> Path:
    write_csv(folder / "harvest_log.csv", LOG, ROWS["HARVEST_LOG"])
    write_csv(folder / "HARVEST_DETAIL_LOG.csv", DETAIL_LOG, ROWS["HARVEST_DETAIL_LOG"])
    return write_csv(folder / "schedule.csv", SCHEDULE, ROWS["HARVEST_SITE_SCHEDULE"])


@pytest.mark.parametrize("upper", [False, True], ids=["lower case", "upper case"])
def test_schedule_and_log_of_a_metacat_are_taken_over_once(
    harvester: Harvester, servers: Servers, request: pytest.FixtureRequest, tmp_path: Path, upper: bool
) -> None:
    kind = request.node.callspec.params["database"]
    with metacat_database(kind, servers, tmp_path, ROWS, upper=upper) as url:
        source = database_options(url)
        rehearsed = imported(harvester, *source, "--log", "--dry-run")
        assert schedule(harvester) == harvester.rows("SELECT 1 FROM harvest_run") == []
        done = imported(harvester, *source, "--log")
        again = imported(harvester, *source, "--log")

    assert rehearsed == {**done, "dry_run": True, "log": {**done["log"], "run_id": None}}
    assert {row["row"]: (row["verdict"], row["site"]) for row in done["rows"]} == VERDICTS
    assert done["totals"] == {"rows": 8, "taken": 2, "changed": 2, "present": 1, "refused": 3}
    soon, recent, now = SOON.isoformat(), RECENT.isoformat(), today().isoformat()
    alder, other = "http://alder.example.org/list.xml", "http://alder.example.org/other.xml"
    birch, cedar = "http://www.birch.example.org/list.xml", "http://cedar.example.org/list.xml"
    assert schedule(harvester) == [
        ("alder.example.org", alder, "a@example.org, b@example.org", 1, "months", soon, recent, DN, None),
        ("birch.example.org", birch, "c@example.org", 1, "days", now, None, None, None),
        ("cedar.example.org", cedar, "d@example.org", 2, "weeks", soon, recent, None, None),
        ("alder.example.org-lter", other, "a@example.org", 1, "days", soon, None, DN, None),
    ]
    counts = {name: done["log"][name] for name in ("rows", "taken", "present", "too_old", "refused", "without_site")}
    assert counts == {"rows": 7, "taken": 5, "present": 0, "too_old": 1, "refused": 1, "without_site": 1}
    assert (done["log"]["details"], done["log"]["details_taken"], done["log"]["details_left_out"]) == (4, 2, 2)
    assert done["log"]["reasons"] == ["HARVEST_LOG_ID 6: there is no operation 'Nonsense'."]

    # What was refused is refused again, also where the list is registered by now.
    again_by_row = {row["row"]: (row["verdict"], row["site"]) for row in again["rows"]}
    present = {row: ("present", site) for row, (_, site) in VERDICTS.items() if site is not None}
    assert again_by_row == {**VERDICTS, **present}
    assert (again["log"]["taken"], again["log"]["present"], again["log"]["run_id"]) == (0, 5, None)
    assert len(schedule(harvester)) == 4
    assert harvester.rows("SELECT count(*) FROM harvest_log") == [(5,)]


def database_options(url: str) -> list[str]:
    """The options that name a database: its password as a reference."""
    from sqlalchemy import make_url

    from support.harvester import PASSWORD, settings_for

    settings_for(url)
    parsed = make_url(url)
    if parsed.password is None:
        return ["--database", url]
    return ["--database", parsed._replace(password=None).render_as_string(), "--password", f"env:{PASSWORD}"]


@on_sqlite
def test_what_became_of_each_row_is_told_with_what_to_do(harvester: Harvester, tmp_path: Path) -> None:
    said = harvester("sites", "import-metacat", "--csv", str(csv_tables(tmp_path)), "--log")
    assert (said.code, said.err) == (1, "")
    out = said.out.splitlines()
    assert out[0] == "SITE_SCHEDULE_ID 3 (http://alder.example.org/list.xml): taken as alder.example.org, with changes."
    assert "    Changed: the password in LDAPPWD was not taken over: it is in clear." in out
    assert "    Changed: the next harvest is today: it was due on " + f"{LONG_AGO}." in out
    assert "SITE_SCHEDULE_ID 8 (http://elm.example.org/list.xml): refused." in out
    assert "    CONTACT_EMAIL is empty." in out
    assert "8 rows: 2 taken as they are, 2 taken with changes, 1 registered already, 3 refused." in out
    assert any(line.startswith("7 log rows: 5 taken, 0 there already, 1 too old, 1 refused. 4 detail") for line in out)
    assert "hunter2" not in said.out
    assert "secret" not in said.out


@on_sqlite
def test_the_commands_that_are_told_work(harvester: Harvester, tmp_path: Path) -> None:
    """As they are printed, with the settings file in them: for the password, a missing contact, further contacts."""
    done = imported(harvester, "--csv", str(csv_tables(tmp_path)))
    told = {row["row"]: " ".join(row["to_do"]) for row in done["rows"]}
    start = f"--config {shlex.quote(str(harvester.config))} "
    for number, mended in ((3, ""), (8, "--contact x@example.org"), (11, "")):
        command = told[f"SITE_SCHEDULE_ID {number}"].partition(start)[2].replace("--contact EMAIL", mended)
        said = harvester(*shlex.split(command.replace("NAME", "new")))
        assert (said.code, said.err) == (0, "")
    rows = {row[0]: row for row in schedule(harvester)}
    assert rows["alder.example.org"][-1] == "file:alder.example.org.ldap-password"
    assert rows["new"][1] == "http://elm.example.org/list.xml"
    assert rows["cedar.example.org"][2] == "d@example.org, e@example.org"


@on_sqlite
def test_a_csv_file_may_have_other_columns_another_order_and_other_delimiters(
    harvester: Harvester, tmp_path: Path
) -> None:
    file = tmp_path / "s.csv"
    file.write_bytes(
        b"\xef\xbb\xbfContact_Email;REMARK;documentListURL;UpdateFrequency;Unit;LdapDN;DateNextHarvest\r\n"
        b'"a@example.org; b@example.org";"a\r\nnote";http://alder.example.org/l.xml;2;weeks;NULL;\\N\r\n'
        b"c@example.org;;http://user:pw@birch.example.org/l.xml;1;days;;\r\n\r\n"
        b"d@example.org;;http://elm.example.org/l.xml\r\n"
    )
    done = imported(harvester, "--csv", str(file))
    found = [(row["row"], row["verdict"], row["list_url"], row["reasons"]) for row in done["rows"]]
    assert found == [
        ("line 2", "taken", "http://alder.example.org/l.xml", []),
        ("line 4", "taken", "http://birch.example.org/l.xml", []),
        ("line 6", "refused", "", ["It has 3 values, and the first line names 7 columns."]),
    ]
    assert [row[1] for row in schedule(harvester)][1] == "http://user:pw@birch.example.org/l.xml"
    write_csv(file, SCHEDULE, ROWS["HARVEST_SITE_SCHEDULE"][2:3], delimiter="\t")
    assert imported(harvester, "--csv", str(file), code=0)["totals"]["taken"] == 1


HEADER = "SITE_SCHEDULE_ID,DOCUMENTLISTURL,LDAPDN,DATENEXTHARVEST,UPDATEFREQUENCY,UNIT,CONTACT_EMAIL,LDAPPWD"


def with_mark_in_row_2(delimiter: str, mark: str) -> str:
    """Four rows, of which the second one has a password with quotation marks."""
    rows = [HEADER.split(",")]
    for number in range(1, 5):
        url = f"http://s{number}.example.org/list.xml"
        password = mark if number == 2 else ""
        rows.append([str(number), url, "uid=a", str(SOON), "1", "days", f"c{number}@example.org", password])
    return "".join(f"{delimiter.join(row)}\n" for row in rows)


@on_sqlite
@pytest.mark.parametrize("mark", ['"pa55', 'pa"55', '"pa"55', '"'])
def test_a_quotation_mark_in_a_file_as_mysql_writes_it_swallows_no_row(
    harvester: Harvester, tmp_path: Path, mark: str
) -> None:
    file = tmp_path / "mysql.tsv"
    file.write_text(with_mark_in_row_2("\t", mark))
    log = [f'{number}\t{RECENT}\t0\t"m{number}\tharvester.HarvesterStartup\t0' for number in range(1, 30)]
    (tmp_path / "HARVEST_LOG.csv").write_text("\n".join(["\t".join(LOG), *log, ""]))
    (tmp_path / "HARVEST_DETAIL_LOG.csv").write_text("\t".join(DETAIL_LOG) + "\n")
    done = imported(harvester, "--csv", str(file), "--log", code=0)
    assert done["totals"] == {"rows": 4, "taken": 3, "changed": 1, "present": 0, "refused": 0}
    assert [row[0] for row in schedule(harvester)] == [f"s{number}.example.org" for number in range(1, 5)]
    assert (done["log"]["rows"], done["log"]["taken"]) == (29, 29)
    assert harvester.rows("SELECT message FROM harvest_log WHERE harvest_log_id = 1") == [('"m1',)]


@on_sqlite
def test_a_tab_separated_file_with_quotation_marks_around_values_is_read_without_them(
    harvester: Harvester, tmp_path: Path
) -> None:
    file = tmp_path / "quoted.tsv"
    lines = with_mark_in_row_2("\t", "").splitlines()
    file.write_text("".join('"' + line.replace("\t", '"\t"') + '"\n' for line in lines))
    assert imported(harvester, "--csv", str(file), code=0)["totals"]["taken"] == 4
    assert schedule(harvester)[1][:2] == ("s2.example.org", "http://s2.example.org/list.xml")


@on_sqlite
@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("mark", ['"pa55', '"pa"55'])
def test_a_quotation_mark_that_swallows_rows_is_told_with_its_line_and_nothing_is_taken(
    harvester: Harvester, tmp_path: Path, delimiter: str, mark: str
) -> None:
    file = tmp_path / "s.csv"
    file.write_text(with_mark_in_row_2(delimiter, mark))
    said = harvester("sites", "import-metacat", "--csv", str(file))
    assert (said.code, said.out) == (2, "")
    assert f"{file}, line 3, is not CSV: " in said.err
    assert "nothing was taken over" in said.err
    assert "twice" in said.err
    assert "pa" + "55" not in said.err
    assert schedule(harvester) == []

    file.write_text(with_mark_in_row_2(delimiter, ""))
    (tmp_path / "HARVEST_LOG.csv").write_text(f'{",".join(LOG)}\n1,{RECENT},0,x,harvester.HarvesterStartup,\n2,"\n')
    (tmp_path / "HARVEST_DETAIL_LOG.csv").write_text(",".join(DETAIL_LOG) + "\n")
    said = harvester("sites", "import-metacat", "--csv", str(file), "--log")
    assert f"{tmp_path / 'HARVEST_LOG.csv'}, line 3, is not CSV: " in said.err
    assert schedule(harvester) == harvester.rows("SELECT 1 FROM harvest_log") == []


@on_sqlite
def test_the_login_of_a_list_is_neither_shown_nor_left_out_of_a_command_without_a_word(
    harvester: Harvester, tmp_path: Path
) -> None:
    rows = [(1, "https://u:geheim@elm.example.org/list.xml", None, SOON, None, 1, "days", None, None)]
    file = str(write_csv(tmp_path / "s.csv", SCHEDULE, rows))
    said = harvester("sites", "import-metacat", "--csv", file)
    assert "geheim" not in said.out
    assert "sites add NAME --list-url URL --contact EMAIL" in said.out
    assert "URL is the row's DOCUMENTLISTURL with its user name and password, which are never shown" in said.out


@on_sqlite
def test_a_frequency_with_a_fraction_is_told_as_changed(harvester: Harvester, tmp_path: Path) -> None:
    rows = [
        (number, f"http://s{number}.example.org/l.xml", None, SOON, None, every, "days", "a@example.org", None)
        for number, every in enumerate(("1.5", "2.0", "0.5"), start=1)
    ]
    done = imported(harvester, "--csv", str(write_csv(tmp_path / "s.csv", SCHEDULE, rows)), code=0)
    assert [(row["verdict"], row["changes"]) for row in done["rows"]] == [
        ("changed", ["every 1.5 days became every 1 days: the number is a whole one"]),
        ("taken", []),
        ("changed", ["every 0.5 days became every 1 days: the number is a whole one"]),
    ]
    assert [row[3] for row in schedule(harvester)] == [1, 2, 1]


@on_sqlite
def test_names_are_made_from_what_there_is_and_are_free(harvester: Harvester, tmp_path: Path) -> None:
    harvester.add_site("Alder.example.org", "https://elsewhere.example.org/list.xml")
    urls = ["http://alder.example.org/1.xml", "http://alder.example.org/2.xml", "http://alder.example.org/3.xml"]
    urls += ["http://WWW.bücher.example/4.xml", "http://[2001:db8::1]/5.xml", "https://elsewhere.example.org/list.xml"]
    dns = ["uid=a,o=LTER", "uid=b, o = LTER", None, None, None, None]
    rows = [
        (number, url, dn, SOON, None, 1, "days", "a@example.org", None)
        for number, (url, dn) in enumerate(zip(urls, dns, strict=True), start=1)
    ]
    done = imported(harvester, "--csv", str(write_csv(tmp_path / "s.csv", SCHEDULE, rows)), code=0)
    assert [row["site"] for row in done["rows"]] == [
        *("alder.example.org-lter", "alder.example.org-lter-b", "alder.example.org-2"),
        *("bücher.example", "2001-db8-1", "Alder.example.org"),
    ]


@on_sqlite
def test_a_list_that_is_a_file_is_taken_where_the_settings_allow_it(harvester: Harvester, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "list.xml").touch()
    url = (tmp_path / "lists" / "list.xml").as_uri()
    rows = [(1, url, "uid=x,o=Alder Creek", SOON, None, 1, "days", "a@example.org", None)]
    file = str(write_csv(tmp_path / "s.csv", SCHEDULE, rows))
    [row] = imported(harvester, "--csv", file)["rows"]
    assert row["verdict"] == "refused"
    assert "file_folder" in " ".join(row["reasons"])
    assert row["reasons"][0].startswith(url)
    with harvester.config.open("a") as settings:
        settings.write(f'[sites."alder-creek-x"]\nfile_folder = "{tmp_path / "lists"}"\n')
    [row] = imported(harvester, "--csv", file, code=0)["rows"]
    assert (row["verdict"], row["site"]) == ("taken", "alder-creek-x")


def test_rows_of_the_log_keep_their_dates_and_are_read_as_others_are(harvester: Harvester, tmp_path: Path) -> None:
    done = imported(harvester, "--csv", str(csv_tables(tmp_path)), "--log")
    run_id = str(done["log"]["run_id"])
    rows = json.loads(harvester("log", "--json", "--level", "debug").out)
    assert [(row["operation"], row["site"], row["document_id"], row["revision"]) for row in rows] == [
        ("HarvesterStartup", None, None, None),
        ("GetHarvestListSuccess", "alder.example.org", None, None),
        ("InsertDocError", "alder.example.org", "knb.1", 1),
        ("InsertDocSuccess", "alder.example.org", f"knb.{HUGE}", 1),
        ("GetHarvestListError", None, None, None),
    ]
    assert {(row["harvest_date"], row["outcome"], row["site_run_id"]) for row in rows} == {(str(RECENT), None, None)}
    assert rows[0]["logged_at"].startswith(f"{RECENT}T00:00:00")
    [finding] = [finding for row in rows for finding in row["findings"]]
    assert (finding["rule"], finding["level"]) == ("harvest.imported", "error")
    assert finding["error_message"] == "The user may not write."
    assert rows[2]["document_url"] == "http://alder.example.org/1.xml"

    of_site = json.loads(harvester("log", "--run", run_id, "--site", "alder.example.org", "--json").out)
    assert [row["operation"] for row in of_site] == ["InsertDocError", "InsertDocSuccess"]
    of_document = json.loads(harvester("log", "--document", "knb.1.1", "--json").out)
    assert [row["operation"] for row in of_document] == ["InsertDocError"]
    assert "imported" in harvester("runs").out
    assert f"Run {run_id} ({today()}): imported; no site was harvested." in harvester("runs", "show", run_id).out
    table = harvester("log", "--csv", "--run", run_id)
    assert (table.code, table.out.count("\r\n")) == (0, 6)


def test_what_was_imported_disturbs_nothing(harvester: Harvester, server: HttpServer, tmp_path: Path) -> None:
    """Reports, totals, retries, the doctor, transfers and the purge go on as if it were not there."""
    old = [(8, today() - timedelta(days=60), 0, "x", "harvester.InsertDocSuccess", 3)]
    details = [(9, 8, "a", 1, 1, "http://alder.example.org/a.xml", "", "eml")]
    file = csv_tables(tmp_path)
    write_csv(tmp_path / "harvest_log.csv", LOG, [*ROWS["HARVEST_LOG"], *old])
    write_csv(tmp_path / "HARVEST_DETAIL_LOG.csv", DETAIL_LOG, [*ROWS["HARVEST_DETAIL_LOG"], *details])
    write_csv(
        file, SCHEDULE, [(3, publish(server, "a.1.1", "a.2.1"), DN, SOON, None, 1, "days", "a@example.org", None)]
    )
    done = imported(harvester, "--csv", str(file), "--log", code=1)
    assert done["log"]["taken"] == 6
    assert "There has been no run yet" in harvester("doctor").out
    assert harvester("reports").out.startswith("There is no report yet")

    [name] = [row[0] for row in schedule(harvester)]
    run = harvester.run(str(today()), "--site", name)
    assert run["status"] == "succeeded"
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted", "a.2.1": "inserted"}
    assert harvester.mails()
    assert not [mail for mail in harvester.mails() if "Could not insert" in mail.as_string()]
    assert harvester.rows("SELECT count(*) FROM harvest_log WHERE run_id = ?", done["log"]["run_id"]) == [(6,)]
    # What a.1 was in the old log is no transfer: another site is refused, and told nothing of one.
    harvester.add_site("other", publish(server, "a.1.2", path="/other.xml"))
    run = harvester.run(str(today()), "--site", "other")
    assert {rule for _, _, rule in harvester.findings(run["run_id"])} == {"target.other-site"}
    assert "was transferred" not in "".join(mail.as_string() for mail in harvester.mails())

    later = today() + timedelta(days=31)
    moment = datetime.combine(later, time(12), UTC)
    with harvester.opened(clock=lambda: moment) as opened:  # nothing is purged under --date
        opened.run(RunRequest(later, (name,)))
    dates = "SELECT count(*), min(harvest_date) FROM harvest_log WHERE run_id = ?"
    assert harvester.rows(dates, done["log"]["run_id"]) == [(5, str(RECENT))]
    write_csv(tmp_path / "harvest_log.csv", LOG, [(9, RECENT, 0, "More", "harvester.HarvesterShutdown", None)])
    assert imported(harvester, "--csv", str(file), "--log", code=0)["log"]["taken"] == 1
    doctor = harvester("doctor").out
    assert f"Run {run['run_id'] + 1} of {later} ended as" in doctor
    assert "ended as imported" not in doctor


@on_sqlite
def test_rows_with_the_same_words_are_each_taken_once_and_new_ones_when_they_come(
    harvester: Harvester, tmp_path: Path
) -> None:
    file = csv_tables(tmp_path)
    same = [(number, RECENT, 0, "Shutting down", "harvester.HarvesterShutdown", None) for number in (1, 2, 3)]
    write_csv(tmp_path / "harvest_log.csv", LOG, same[:2])
    assert imported(harvester, "--csv", str(file), "--log")["log"]["taken"] == 2
    write_csv(tmp_path / "harvest_log.csv", LOG, same)
    log = imported(harvester, "--csv", str(file), "--log")["log"]
    assert (log["taken"], log["present"]) == (1, 2)


@on_sqlite
def test_a_log_row_with_a_number_without_end_is_taken_as_others_are(harvester: Harvester, tmp_path: Path) -> None:
    file = csv_tables(tmp_path)
    rows = [("9" * 5000, RECENT, 0, "Starting Up Harvester", "harvester.HarvesterStartup", None)]
    write_csv(tmp_path / "harvest_log.csv", LOG, rows)
    assert imported(harvester, "--csv", str(file), "--log")["log"]["taken"] == 1


@on_sqlite
def test_the_time_of_a_log_row_is_that_of_the_harvester_s_zone(harvester: Harvester, tmp_path: Path) -> None:
    file = csv_tables(tmp_path)
    harvester.config.write_text(
        harvester.config.read_text().replace("[harvester]", '[harvester]\ntime_zone = "Asia/Tokyo"')
    )
    rows = [(1, f"{RECENT} 08:30:00.0", 0, "x", "harvester.HarvesterStartup", None)]
    write_csv(tmp_path / "harvest_log.csv", LOG, rows)
    imported(harvester, "--csv", str(file), "--log")
    before = RECENT - timedelta(days=1)
    sql = "SELECT harvest_date, logged_at FROM harvest_log"
    [(day, moment)] = harvester.rows(sql)
    assert (day, moment[:19]) == (str(RECENT), f"{before} 23:30:00")


@on_sqlite
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "one of --database and --csv"),
        (["--database", "sqlite:///x.db", "--csv", "x.csv"], 2, "one of --database and --csv"),
        (["--csv", "x.csv", "--password", "env:X"], 2, "--password goes with --database"),
        (["--csv", "missing.csv"], 2, "missing.csv cannot be read: No such file"),
        (["--csv", "empty.csv"], 2, "has no DOCUMENTLISTURL"),
        (["--csv", "latin.csv"], 2, "is not UTF-8 text: save it as UTF-8"),
        (["--csv", "."], 2, "is a directory"),
        (["--csv", "alone.csv", "--log"], 2, "There is no HARVEST_LOG.csv beside"),
        (["--database", "postgresql+psycopg://me:hunter2@127.0.0.1/m"], 2, "--database: a password is never written"),
        (["--database", "nonsense"], 2, "'nonsense' is not a database URL"),
        (["--database", "postgresql+psycopg://h:port/m"], 2, "is not a database URL"),
        (["--database", "oracle://127.0.0.1/m"], 2, "not a kind of database that metaharvest knows"),
        (["--database", "sqlite:///missing.db"], 2, "There is no file"),
        (["--database", "sqlite:///empty.db"], 2, "sqlite:///empty.db has no table HARVEST_SITE_SCHEDULE"),
        (["--database", "sqlite:///empty.csv"], 69, "file is not a database"),
        (["--database", "postgresql+psycopg://m@127.0.0.1:9/m"], 69, "cannot be read"),
        (["--database", "postgresql+psycopg://m@127.0.0.1:9/m", "--password", "env:NOT_SET"], 2, "NOT_SET"),
        (["--database", "sqlite:///empty.db", "--password", "hunter2"], 2, "a secret is never written here"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(
    harvester: Harvester,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    import sqlite3

    (tmp_path / "empty.csv").write_text("a,b,c\n" * 400)
    (tmp_path / "latin.csv").write_bytes("CONTACT_EMAIL,DOCUMENTLISTURL\né@example.org,http://x\n".encode("latin-1"))
    write_csv(tmp_path / "alone.csv", SCHEDULE, [])
    sqlite3.connect(tmp_path / "empty.db").execute("CREATE TABLE t (x)").connection.close()
    monkeypatch.chdir(tmp_path)
    said = harvester("sites", "import-metacat", *arguments)
    assert (said.code, said.out) == (code, "")
    assert words in said.err
    assert "hunter2" not in said.err
    assert "Traceback" not in said.err


@on_sqlite
def test_somebody_else_s_sqlite_file_is_only_read(harvester: Harvester, servers: Servers, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with metacat_database("sqlite", servers, other, ROWS) as url:
        before = (other / "metacat.db").read_bytes()
        other.chmod(0o555)
        imported(harvester, "--database", url)
        other.chmod(0o755)
    assert (other / "metacat.db").read_bytes() == before
    assert [each.name for each in other.iterdir()] == ["metacat.db"]


@on_sqlite
def test_what_was_refused_is_said_each_time_until_it_is_put_right(harvester: Harvester, tmp_path: Path) -> None:
    rows = (
        "http://alder.example.org/list.xml,a@example.org\n"
        "http://ALDER.example.org:80/list.xml,A@example.org;b@example.org\n"
    )
    (tmp_path / "schedule.csv").write_text(f"DOCUMENTLISTURL,CONTACT_EMAIL\n{rows}")
    arguments = ("sites", "import-metacat", "--csv", str(tmp_path / "schedule.csv"))
    first, second = harvester(*arguments), harvester(*arguments)
    for said in (first, second):
        assert said.code == 1
        assert "Another row has the same list, and became the site alder.example.org" in said.out
        assert "sites edit alder.example.org --add-contact b@example.org\n" in said.out
    assert "1 registered already, 1 refused." in second.out
    assert harvester("sites", "edit", "alder.example.org", "--add-contact", "b@example.org").code == 0
    third = harvester(*arguments)
    assert (third.code, "2 registered already, 0 refused." in third.out) == (0, True)


@on_sqlite
def test_a_database_of_metaharvest_is_not_taken_for_a_metacat(harvester: Harvester, tmp_path: Path) -> None:
    harvester("sites", "add", "elm", "--list-url", "https://elm.example.org/l.xml", "--contact", "elm@example.org")
    (tmp_path / "other").mkdir()
    other = Harvester(tmp_path / "other")
    said = other("sites", "import-metacat", "--database", f"sqlite:///{harvester.folder / 'metaharvest.db'}")
    assert (said.code, said.out) == (2, "")
    assert "is of metaharvest, and not of a Metacat: `metaharvest sites export` there" in said.err
    (tmp_path / "schedule.csv").write_text(
        "site_schedule_id,name,documentlisturl,source_kind\n1,elm,http://x/l.xml,a\n"
    )
    said = other("sites", "import-metacat", "--csv", str(tmp_path / "schedule.csv"))
    assert (said.code, "is of metaharvest, and not of a Metacat" in said.err) == (2, True)
    assert other.rows("SELECT name FROM harvest_site_schedule") == []
    other.close()
