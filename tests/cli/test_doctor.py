"""`metaharvest doctor`: everything that is missing, wrong or overdue, in plain words."""

from __future__ import annotations

import os
import sqlite3
import ssl
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from metaharvest.config.settings import load
from metaharvest.database.engine import database_url, open_url, run_lock
from support.cli import attempt, initialize, process, tell
from support.forked_checks import fork_template_checks
from support.ports import free_port
from support.smtp_sink import SmtpSink

GOOD = '[harvester]\nadministrators = ["steward@example.org"]\n[http]\ncontact_url = "https://example.org/harvester"\n'
URL = "https://alder.example.org/list.xml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good installation with one site that is not due."""
    (tmp_path / "metaharvest.toml").write_text(GOOD)
    initialize(tmp_path)
    tell(tmp_path, "sites", "add", "alder", "--list-url", URL, "--contact", "a@example.org", "--next", tomorrow())
    run(tmp_path, date.today(), "succeeded")  # noqa: DTZ011 - the test's own date
    return tmp_path


def tomorrow() -> str:
    return str(datetime.now(UTC).date() + timedelta(days=1))


def sql(folder: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(folder / "metaharvest.db") as connection:
        connection.execute(statement, values)
    connection.close()


def run(folder: Path, day: date, status: str, beat: datetime | None = None) -> None:
    began = f"{day} 01:00:00.000000"
    heartbeat = beat.replace(tzinfo=None).isoformat(" ") if beat else began
    sql(
        folder,
        "INSERT INTO harvest_run (harvest_date, started_at, ended_at, status, host, pid, heartbeat_at)"
        " VALUES (?, ?, ?, ?, 'here', 4711, ?)",
        str(day),
        began,
        None if status == "running" else began,
        status,
        heartbeat,
    )


@pytest.fixture(autouse=True)
def _forked_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """test_foreign_settings.py starts the check of templates as an interpreter."""
    fork_template_checks(monkeypatch)


def findings(folder: Path, *arguments: str) -> dict[str, tuple[str, str]]:
    """The last check of each name, with its state and message."""
    told = tell(folder, "doctor", "--json", *arguments)
    checks = {row["check"]: (row["state"], row["message"]) for row in told.json["checks"]}
    assert told.code == int(any(state == "PROBLEM" for state, _ in checks.values()))
    return checks


def settings(folder: Path, text: str) -> None:
    (folder / "metaharvest.toml").write_text(f"{GOOD}{text}")


def smtp(port: int) -> str:
    return f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {port}\nsender = "h@example.org"\n'


@pytest.mark.parametrize(
    ("template", "content", "words"),
    [
        ("site_report/subject.txt", "{{ nosuch.x }}", "line 1 of subject.txt: 'nosuch' is undefined"),
        (
            "site_report/body.txt",
            "\n{{ report.nosuch }}",
            "line 2 of body.txt: 'metaharvest.reports.site_view.SiteView",
        ),
        (
            "admin_report/body.html",
            "{% for site in report.sites %}{{ site.nosuch }}{% endfor %}",
            "line 1 of body.html",
        ),
        ("admin_report/subject.txt", "{{ report.site }}", "has no attribute 'site'"),
        ("admin_report/body.txt", "{{ report.undelivered[0].error }}", "line 1 of body.txt"),
        ("site_report/body.html", "{{ 1 / 0 }}", "ZeroDivisionError"),
        ("site_report/body.html", "{% include 'email/shared/nosuch.html' %}", "email/shared/nosuch.html is not there"),
        ("site_report/body.txt", "{{ report.date | nosuch }}", "No filter named 'nosuch'"),
    ],
)
def test_a_template_that_would_fail_at_night_is_a_problem(
    folder: Path, template: str, content: str, words: str
) -> None:
    settings(folder, '[reports]\ntemplates = "own"\n')
    file = folder / "own" / "email" / template
    file.parent.mkdir(parents=True)
    file.write_text(content)
    state, message = findings(folder)["templates"]
    assert (state, f"The template email/{template} cannot be used" in message) == ("PROBLEM", True)
    assert words in message


@pytest.mark.parametrize("name", ["emial/site_report/body.txt", "email/site_reports/body.txt", "site_report/body.txt"])
def test_a_template_in_a_folder_that_nothing_looks_into_is_told(folder: Path, name: str) -> None:
    settings(folder, '[reports]\ntemplates = "own"\n')
    for each in (name, "email/mine/footer.txt", "email/site_report/body.txt", "README", ".git/config"):
        (folder / "own" / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / "own" / each).write_text("Yours")
    (folder / "own/email/site_report/body.txt").write_text("{% include 'email/mine/footer.txt' %}")
    told = tell(folder, "doctor")
    assert [line for line in told.out.splitlines() if "templates" in line] == [
        f"WARNING  templates: {folder}/own/{name} is not used: no template of that name is, such as "
        "email/site_report/body.txt."
    ]


def test_a_good_installation_is_well(folder: Path) -> None:
    told = tell(folder, "doctor")
    assert told.code == 0
    assert "PROBLEM" not in told.out
    assert "WARNING" not in told.out
    assert told.out.endswith("All is well.\n")


def test_a_fresh_installation_has_warnings_and_exit_code_0(tmp_path: Path) -> None:
    initialize(tmp_path)
    done = process(tmp_path, "doctor")
    assert done.returncode == 0
    for word in ("administrators", "contact_url", "No site is registered", "no run yet"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("more", "command"), [("", "run"), ('[workers]\nbroker = "amqp://guest@127.0.0.1:1/"\n', "coordinate")]
)
def test_without_a_run_the_doctor_names_the_command_that_makes_one(folder: Path, more: str, command: str) -> None:
    settings(folder, more)
    sql(folder, "DELETE FROM harvest_run")
    assert f"`metaharvest {command}` makes one; put it into cron." in findings(folder)["last run"][1]


def test_the_doctor_warns_of_workers_on_sqlite(folder: Path) -> None:
    settings(folder, '[workers]\nbroker = "amqp://guest@127.0.0.1:1/"\n')
    assert findings(folder)["database of workers"] == (
        "WARNING",
        "The database is SQLite. Workers on other machines cannot reach it. Use PostgreSQL or MariaDB "
        "(url in [database]).",
    )


def test_every_problem_of_the_settings_is_told_with_exit_code_1(folder: Path) -> None:
    (folder / "metaharvest.toml").write_text("[harvester]\nworkers = 0\n[mail]\nport = 70000\n[nail]\n")
    done = process(folder, "doctor")
    assert done.returncode == 1
    for key in ("workers", "port", "nail"):
        assert key in done.stdout
    assert done.stdout.count("PROBLEM") == 3


def test_a_variable_that_sets_nothing_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METAHARVEST_MALE__HOST", "x")
    assert "METAHARVEST_MALE__HOST sets nothing" in tell(folder, "doctor").out


def test_a_database_that_is_not_there_is_a_problem(folder: Path) -> None:
    (folder / "metaharvest.db").unlink()
    state, message = findings(folder)["database"]
    assert state == "PROBLEM"
    assert "metaharvest init" in message


def test_a_file_that_is_no_database_is_a_problem(folder: Path) -> None:
    for file in folder.glob("metaharvest.db*"):
        file.unlink()
    (folder / "metaharvest.db").write_bytes(b"no database at all" * 100)
    assert findings(folder)["database"][0] == "PROBLEM"


def test_no_secret_is_shown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_SECRET", "hunter2")
    settings(folder, '[mail]\npassword = "env:MAIL_SECRET"\n[database]\nurl = "nonsense://me:hunter2@host/db"\n')
    told = tell(folder, "doctor")
    assert "hunter2" not in told.out + told.err
    assert "[database] url = (not shown): a password is never written here" in told.out
    settings(folder, '[mail]\npassword = "env:MAIL_SECRET"\n')
    told = tell(folder, "doctor")
    assert "hunter2" not in told.out + told.err
    assert "env:MAIL_SECRET is there" in told.out


def test_a_secret_that_is_missing_is_a_problem_and_one_that_all_can_read_a_warning(folder: Path) -> None:
    settings(folder, '[mail]\npassword = "file:secret"\n')
    assert findings(folder)["password of [mail]"][0] == "PROBLEM"
    (folder / "secret").write_text("x")
    (folder / "secret").chmod(0o644)
    state, message = findings(folder)["password of [mail]"]
    assert (state, "chmod 600" in message) == ("WARNING", True)
    (folder / "secret").chmod(0o600)
    assert findings(folder)["password of [mail]"][0] == "OK"


def test_a_template_of_one_s_own_that_cannot_be_compiled_is_a_problem(folder: Path) -> None:
    settings(folder, '[reports]\ntemplates = "own"\n')
    assert "is not there" in findings(folder)["templates"][1]
    bad = folder / "own" / "email" / "site_report" / "body.txt"
    bad.parent.mkdir(parents=True)
    bad.write_text("{% if %}")
    state, message = findings(folder)["templates"]
    assert state == "PROBLEM"
    assert "email/site_report/body.txt" in message


def test_a_mail_server_that_does_not_answer_is_a_problem(folder: Path) -> None:
    settings(folder, f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {free_port()}\n')
    checks = findings(folder)
    assert checks["mail"][0] == "PROBLEM"
    assert checks["sender"][0] == "WARNING"


def test_the_login_at_the_mail_server_is_tried(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    login = 'security = "starttls"\nca_file = "ca.pem"\nusername = "me"\npassword = "env:MAIL_SECRET"\n'
    with SmtpSink(security="starttls", tls=context, login=("me", "open-sesame")) as sink:
        settings(folder, f"{smtp(sink.port)}{login}")
        monkeypatch.setenv("MAIL_SECRET", "shut-sesame")
        state, message = findings(folder)["mail"]
        assert (state, "does not accept" in message, "sesame" in message) == ("PROBLEM", True, False)
        monkeypatch.setenv("MAIL_SECRET", "open-sesame")
        assert findings(folder)["mail"][0] == "OK"
    assert sink.messages == []


@pytest.mark.parametrize("name", ["tmp", "new", "cur"])
def test_something_else_in_the_place_of_a_folder_for_mail_is_a_problem(folder: Path, name: str) -> None:
    (folder / "mail").mkdir()
    (folder / "mail" / name).write_text("no folder")
    state, message = findings(folder)["mail"]
    assert (state, f"{folder / 'mail' / name} is not a folder" in message) == ("PROBLEM", True)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
@pytest.mark.parametrize("name", ["tmp", "new", "cur"])
def test_a_folder_for_mail_that_cannot_be_written_is_a_problem(folder: Path, name: str) -> None:
    (folder / "mail").mkdir()
    (folder / "mail" / name).mkdir(mode=0o500)
    state, message = findings(folder)["mail"]
    assert (state, str(folder / "mail" / name) in message) == ("PROBLEM", True)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_folders_that_cannot_be_written_are_problems(folder: Path) -> None:
    (folder / "closed").mkdir(mode=0o500)
    settings(folder, '[mail]\nfolder = "closed/mail"\n[reports]\nadmin = "log-file"\nlog_folder = "closed/reports"\n')
    checks = findings(folder)
    assert checks["mail"][0] == checks["administrator's report"][0] == "PROBLEM"


def test_a_test_message_reaches_every_administrator(folder: Path) -> None:
    with SmtpSink() as sink:
        settings(
            folder, f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\nsender = "h@example.org"\n'
        )
        assert findings(folder, "--send-test-mail")["test mail"] == ("OK", "Handed over for steward@example.org.")
    assert [mail.recipients for mail in sink.messages] == [("steward@example.org",)]
    assert "test message" in sink.messages[0].message["Subject"]


def test_a_refused_test_message_is_a_problem(folder: Path) -> None:
    with SmtpSink() as sink:
        sink.answers["steward@example.org"] = "550 no such user"
        settings(
            folder, f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\nsender = "h@example.org"\n'
        )
        state, message = findings(folder, "--send-test-mail")["test mail"]
    assert state == "PROBLEM"
    assert "550" in message


def test_a_run_under_way_is_told_with_its_host_and_process(folder: Path) -> None:
    run(folder, date.today(), "running", datetime.now(UTC))  # noqa: DTZ011 - the test's own date
    engine = open_url(database_url(load(folder / "metaharvest.toml")))
    with run_lock(engine):
        state, message = findings(folder)["run lock"]
        assert state == "OK"
        assert "on here (process 4711), is under way" in message
        sql(folder, "UPDATE harvest_run SET heartbeat_at = '2026-01-01 00:00:00.000000'")
        state, message = findings(folder)["run lock"]
        assert (state, "hangs" in message) == ("PROBLEM", True)
    engine.dispose()


def test_a_run_that_never_ended_is_a_problem(folder: Path) -> None:
    run(folder, date.today(), "running")  # noqa: DTZ011 - the test's own date
    state, message = findings(folder)["run lock"]
    assert (state, "never ended" in message) == ("PROBLEM", True)


def test_a_last_run_that_failed_is_a_problem(folder: Path) -> None:
    run(folder, date.today(), "failed")  # noqa: DTZ011 - the test's own date
    assert findings(folder)["last run"][0] == "PROBLEM"


def test_a_broken_row_is_a_problem_unless_it_is_switched_off(folder: Path) -> None:
    sql(folder, "UPDATE harvest_site_schedule SET unit = 'fortnights'")
    state, message = findings(folder)["sites"]
    assert (state, "fortnights" in message) == ("PROBLEM", True)
    tell(folder, "sites", "disable", "alder")
    assert findings(folder)["sites"][0] == "OK"


def test_an_overdue_site_is_a_problem(folder: Path) -> None:
    past = (datetime.now(UTC) - timedelta(days=9)).date().isoformat()
    sql(folder, "UPDATE harvest_site_schedule SET datenextharvest = ?", past)
    checks = findings(folder)
    assert checks["sites"][0] == "PROBLEM"
    assert f"alder has been due since {past}" in checks["sites"][1]
    assert "schedule" not in checks


def test_a_harvester_that_is_not_started_any_more_is_a_problem(folder: Path) -> None:
    sql(folder, "UPDATE harvest_run SET harvest_date = '2020-01-01'")
    sql(folder, "UPDATE harvest_site_schedule SET datenextharvest = '2020-01-02'")
    state, message = findings(folder)["schedule"]
    assert (state, "2020-01-01, and 1 site waits: check" in message) == ("PROBLEM", True)


def test_refused_reports_are_sent_again_from_their_day_in_the_time_zone_of_the_harvester(folder: Path) -> None:
    file = folder / "metaharvest.toml"
    file.write_text(GOOD.replace("[harvester]\n", '[harvester]\ntime_zone = "America/Los_Angeles"\n'))
    now = datetime.now(UTC).replace(hour=3, minute=30, tzinfo=None)
    sql(
        folder,
        "INSERT INTO report_outbox (idempotency_key, kind, run_id, message_id, subject, content, created_at)"
        " VALUES ('k', 'site', 1, '<m@x>', 's', x'00', ?)",
        now.isoformat(" "),
    )
    values = "VALUES (1, 'a@example.org', 'refused', ?)"
    sql(
        folder,
        f"INSERT INTO report_delivery (report_id, recipient, status, last_attempt_at) {values}",
        now.isoformat(" "),
    )
    assert f"--since {now.date() - timedelta(days=1)}`" in findings(folder)["reports"][1]


def test_reports_that_did_not_arrive_are_told(folder: Path) -> None:
    sql(
        folder,
        "INSERT INTO report_outbox (idempotency_key, kind, run_id, message_id, subject, content, created_at)"
        " VALUES ('k', 'admin', 1, '<m@x>', 's', x'00', ?)",
        datetime.now(UTC).replace(tzinfo=None).isoformat(" "),
    )
    sql(folder, "INSERT INTO report_delivery (report_id, recipient) VALUES (1, 'a@example.org')")
    state, message = findings(folder)["reports"]
    assert (state, message) == ("WARNING", "1 delivery waits for the end of a run.")
    sql(folder, "UPDATE report_delivery SET attempts = 3")
    assert findings(folder)["reports"][0] == "PROBLEM"
    now = datetime.now(UTC).replace(tzinfo=None).isoformat(" ")
    sql(folder, "UPDATE report_delivery SET status = 'refused', last_attempt_at = ?", now)
    state, message = findings(folder)["reports"]
    assert (state, "1 administrator did not get a report" in message) == ("PROBLEM", True)
    assert f"`metaharvest reports resend --state refused --since {now[:10]}` sends them again" in message
    sql(folder, "UPDATE report_outbox SET kind = 'site'")
    state, message = findings(folder)["reports"]
    assert (state, "1 recipient refused" in message) == ("WARNING", True)
    sql(
        folder,
        "INSERT INTO report_outbox (idempotency_key, kind, run_id, message_id, subject, content, created_at)"
        " VALUES ('l', 'site', 1, '<n@x>', 's', x'00', ?)",
        now,
    )
    sql(
        folder,
        "INSERT INTO report_delivery (report_id, recipient, status, last_attempt_at)"
        " VALUES (2, 'a@example.org', 'refused', ?)",
        now,
    )
    assert "1 recipient refused" in findings(folder)["reports"][1]  # one, of two reports


def test_the_doctor_changes_nothing(folder: Path) -> None:
    def contents() -> dict[str, bytes]:
        with sqlite3.connect(folder / "metaharvest.db") as connection:
            dump = "\n".join(connection.iterdump()).encode()
        connection.close()
        files = (path for path in folder.iterdir() if not path.name.startswith("metaharvest.db"))
        return {"database": dump, **{path.name: path.read_bytes() for path in files}}

    before = contents()
    tell(folder, "doctor")
    assert contents() == before


@pytest.mark.parametrize(
    ("url", "right"),
    [
        ("mysql://me@db.example.org/metaharvest", "mysql+pymysql://me@db.example.org/metaharvest"),
        ("mariadb://me@db.example.org/metaharvest", "mysql+pymysql://me@db.example.org/metaharvest"),
        ("postgres://me@db.example.org/metaharvest", "postgresql+psycopg://me@db.example.org/metaharvest"),
        ("postgres+psycopg://me@db.example.org/x", "postgresql+psycopg://me@db.example.org/x"),
        ("postgresql+psycopg3://me@db.example.org/x", "postgresql+psycopg://me@db.example.org/x"),
        ("mysql+mysqldb://me@db.example.org/x", "mysql+pymysql://me@db.example.org/x"),
        ("sqlite3:///metaharvest.db", "sqlite:///metaharvest.db"),
        ("oracle://me@db.example.org/x", "postgresql+psycopg://host/name"),
    ],
)
def test_a_database_url_as_other_programs_write_it_is_told_with_the_right_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, url: str, right: str
) -> None:
    for place in ("[database] url", "METAHARVEST_DATABASE__URL in the environment"):
        settings(folder, f'[database]\nurl = "{url}"\n' if place.startswith("[") else "")
        if not place.startswith("["):
            monkeypatch.setenv("METAHARVEST_DATABASE__URL", url)
        state, message = findings(folder)["database"]
        assert (state, message.startswith(f"{place} = '{url}': "), right in message) == ("PROBLEM", True, True)


@pytest.mark.parametrize(
    ("variable", "value", "check"),
    [
        ("METAHARVEST_DATABASE__URL", "nonsense", "database"),
        ("METAHARVEST_DATABASE__URL", "sqlite://", "database"),
        ("METAHARVEST_MONITORING__PING_URL", "env:NOT_SET_ANYWHERE", "monitor"),
        ("METAHARVEST_HTTP__CA_FILE", "nowhere.pem", "run"),
        ("METAHARVEST_HTTP__PROXY_PASSWORD", "env:HOME", "run"),
    ],
)
def test_a_mistake_in_the_environment_is_not_put_down_to_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, check: str
) -> None:
    monkeypatch.setenv(variable, value)
    message = str(attempt(folder, "run").error) if check == "run" else findings(folder)[check][1]
    assert f"{variable} in the environment" in message
    assert "[database]" not in message
    assert "metaharvest.toml" not in message


def test_the_doctor_does_not_send_people_to_the_doctor(folder: Path) -> None:
    (folder / "metaharvest.db").write_bytes(b"no database at all" * 100)
    state, message = findings(folder)["database"]
    assert state == "PROBLEM"
    assert message.endswith("file is not a database. Check that it is there and that this user may write to it.")
    assert "`metaharvest doctor` says more" in str(attempt(folder, "run").error)


def test_the_file_of_a_secret_is_told_with_its_path(folder: Path) -> None:
    settings(folder, '[database]\npassword = "file:secrets/pw"\n')
    state, message = findings(folder)["password of [database]"]
    path = folder / "secrets" / "pw"
    assert (state, message) == (
        "PROBLEM",
        f"The secret file:secrets/pw cannot be read from {path}: No such file or directory.",
    )
