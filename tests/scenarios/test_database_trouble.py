"""The database away, lost, full, read-only or of another version: a sentence, and the next run ends as ever."""

from __future__ import annotations

import gc
import os
import resource
import socket
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from metaharvest.database.locks import server_wide_name
from metaharvest.harvest.limits import RunLimits
from metaharvest.journal.writer import GroupLimits
from support.cli import process, process_as_others
from support.databases import KINDS, TestDatabase
from support.harvester import Harvester, eml, harvest_list, no_more_room, publish
from support.http_server import Asking, HttpServer
from support.mails import text_of, words_of
from support.smtp_sink import SmtpSink
from support.tcp_proxy import TcpProxy

DAY = "2026-11-20"
DOCIDS = [f"a.{number}.1" for number in range(1, 41)]

on_servers = pytest.mark.parametrize("database", KINDS[1:], indirect=True)
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
cursors_cut_off = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def small_groups(harvester: Harvester, request: pytest.FixtureRequest) -> Iterator[None]:
    """Groups of a few documents, so that trouble comes between two commits; cursors that were cut off end here."""
    harvester.limits = RunLimits(group=GroupLimits(notes=5))
    harvester.keeps_engine = False
    yield
    if cursors_cut_off.mark in request.node.own_markers:
        gc.collect()


@pytest.fixture
def proxy(harvester: Harvester, database: TestDatabase) -> Iterator[TcpProxy]:
    """A proxy between the commands and their database; the test itself asks the database directly."""
    url = make_url(database.url)
    with TcpProxy(url.host or "127.0.0.1", url.port or (5432 if database.kind == "postgresql" else 3306)) as proxy:
        there = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        harvester.config.write_text(harvester.config.read_text().replace(database.url, there))
        yield proxy


def two_sites(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("large", publish(server, *DOCIDS))
    harvester.add_site("small", publish(server, "b.1.1", path="/small.xml"))


def patient(harvester: Harvester) -> None:
    """Let a server that the test holds back have all the time it takes."""
    text = harvester.config.read_text()
    for limit in ("read_timeout = 2", "document_deadline = 3", "list_deadline = 8"):
        text = text.replace(limit, f"{limit.partition(' ')[0]} = 100")
    harvester.config.write_text(text)


def failed_with_a_sentence(harvester: Harvester, *words: str, code: int = 69) -> None:
    said = harvester("run", "--date", DAY)
    assert said.code == code, said.err
    for word in words:
        assert word in said.err
    assert "Traceback" not in said.err


def ends_as_if_nothing_had_happened(harvester: Harvester, dead: int = 1) -> None:
    """Run again: everything is there once, and only the dead runs tell that there was trouble."""
    run = harvester.run(DAY)
    assert (run["exit_code"], run["status"]) == (0, "succeeded")
    all_is_there_once(harvester, dead)


def all_is_there_once(harvester: Harvester, dead: int) -> None:
    assert harvester.held() == {docid: eml(docid) for docid in (*DOCIDS, "b.1.1")}
    outcomes = harvester.rows("SELECT document_id, revision, outcome FROM harvest_log WHERE outcome IS NOT NULL")
    assert Counter(outcomes) == Counter((docid.rpartition(".")[0], 1, "inserted") for docid in (*DOCIDS, "b.1.1"))
    site_runs = harvester.rows("SELECT site_name, status, listed, inserted FROM harvest_site_run ORDER BY site_name")
    assert site_runs == [("large", "succeeded", 40, 40), ("small", "succeeded", 1, 1)]
    assert harvester.rows("SELECT count(*), count(outcome) FROM harvest_document") == [(41, 41)]
    statuses = [status for (status,) in harvester.rows("SELECT status FROM harvest_run ORDER BY run_id")]
    assert statuses == ["interrupted"] * dead + ["succeeded"]
    reports = Counter(harvester.rows("SELECT kind, site_run_id, run_id FROM report_outbox WHERE kind = 'site'"))
    assert len({site_run for _, site_run, _ in reports}) == len(reports) == 2
    assert harvester.rows("SELECT count(*) FROM report_delivery WHERE status <> 'sent'") == [(0,)]
    dates = dict(harvester.rows("SELECT name, datenextharvest FROM harvest_site_schedule"))
    assert dates == {"large": "2026-11-21", "small": "2026-11-21"}
    startups = harvester.rows("SELECT count(*) FROM harvest_log WHERE harvest_operation_code = 'RunInterrupted'")
    assert startups == [(dead,)]


def once_in_the_maildir(harvester: Harvester) -> None:
    to_sites = Counter(mail["To"] for mail in harvester.mails())
    assert (to_sites["large@example.org"], to_sites["small@example.org"]) == (1, 1)


@on_servers
def test_a_server_that_is_away_at_the_start_is_told_and_nothing_is_done(
    harvester: Harvester, server: HttpServer, proxy: TcpProxy
) -> None:
    two_sites(harvester, server)
    proxy.cut()
    failed_with_a_sentence(harvester, "The database ", " cannot be used: ")
    assert server.requests == []
    assert harvester.rows("SELECT count(*) FROM harvest_run") == [(0,)]
    said = harvester("doctor", "--json")
    assert said.code == 1
    proxy.mend()
    ends_as_if_nothing_had_happened(harvester, dead=0)
    once_in_the_maildir(harvester)


@on_servers
@cursors_cut_off
@pytest.mark.parametrize("moment", ["/list.xml", "/a.23.1.xml"])
def test_a_server_that_is_lost_in_the_middle_costs_nothing(
    harvester: Harvester, server: HttpServer, proxy: TcpProxy, moment: str
) -> None:
    two_sites(harvester, server)
    answer = server._routes[moment]

    def lose(asking: Asking) -> None:
        proxy.cut()
        answer(asking)

    server.route(moment, lose)
    failed_with_a_sentence(harvester, "cannot be used: ")
    server.route(moment, answer)
    proxy.mend()
    ends_as_if_nothing_had_happened(harvester)
    once_in_the_maildir(harvester)


@on_servers
@cursors_cut_off
def test_a_server_that_is_lost_while_mail_is_sent_repeats_one_message_at_most(
    harvester: Harvester, server: HttpServer, proxy: TcpProxy
) -> None:
    two_sites(harvester, server)
    with SmtpSink() as sink:
        smtp = f'backend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\n'
        harvester.config.write_text(harvester.config.read_text().replace("[mail]\n", f"[mail]\n{smtp}"))
        sink.accepted = proxy.cut
        failed_with_a_sentence(harvester, "cannot be used: ")
        assert len(sink.messages) == 1
        sink.accepted = None
        proxy.mend()
        ends_as_if_nothing_had_happened(harvester)
        ids = Counter((mail.recipients, mail.message["Message-ID"]) for mail in sink.messages)
        assert sorted(ids.values())[-2:] == [1, 2]
        assert len(sink.to("large@example.org")) + len(sink.to("small@example.org")) == 3


# -- full, read-only, of another version


def dead_runs(harvester: Harvester) -> int:
    [(number,)] = harvester.rows("SELECT count(*) FROM harvest_run WHERE status = 'running'")
    return int(number)


@on_sqlite
@pytest.mark.parametrize("kilobytes", [0, 16, 32, 64, 128])
def test_a_disk_that_fills_up_costs_nothing_once_there_is_room(
    harvester: Harvester, server: HttpServer, kilobytes: int
) -> None:
    two_sites(harvester, server)
    with no_more_room(harvester, kilobytes):
        failed_with_a_sentence(harvester, "cannot be used: database or disk is full")
    ends_as_if_nothing_had_happened(harvester, dead_runs(harvester))
    once_in_the_maildir(harvester)


@on_sqlite
def test_a_database_file_that_is_gone_or_no_database_is_told(harvester: Harvester, server: HttpServer) -> None:
    two_sites(harvester, server)
    harvester.engine.dispose()
    file = harvester.folder / "metaharvest.db"
    kept = file.rename(harvester.folder / "kept")
    failed_with_a_sentence(harvester, "There is no database at", "metaharvest init")
    file.write_bytes(b"no database at all" * 100)
    failed_with_a_sentence(harvester, "cannot be used: file is not a database")
    kept.replace(file)
    ends_as_if_nothing_had_happened(harvester, dead=0)


@contextmanager
def read_only(harvester: Harvester) -> Iterator[None]:
    """A PostgreSQL server that is a standby, or a database whose owner has closed it for a while."""
    with harvester.engine.connect() as connection:
        name = connection.scalar(text("SELECT current_database()"))
    harvester.rows(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    try:
        yield
    finally:
        harvester.rows("SET default_transaction_read_only = off")
        with harvester.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"))
            connection.execute(text(f"ALTER DATABASE {name} RESET default_transaction_read_only"))


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_server_that_is_read_only_is_told_and_nothing_is_done(harvester: Harvester, server: HttpServer) -> None:
    two_sites(harvester, server)
    with read_only(harvester):
        failed_with_a_sentence(harvester, "cannot be used: ", "read-only transaction")
        assert harvester("doctor").code == 1
    assert server.requests == []
    ends_as_if_nothing_had_happened(harvester, dead=0)


@pytest.mark.parametrize(
    ("version", "words"), [("0001", "older than this program"), ("9999", "newer than this program")]
)
def test_a_database_of_another_version_is_told_and_nothing_is_done(
    harvester: Harvester, server: HttpServer, version: str, words: str
) -> None:
    two_sites(harvester, server)
    [(current,)] = harvester.rows("SELECT version_num FROM alembic_version")
    harvester.rows("UPDATE alembic_version SET version_num = ?", version)
    failed_with_a_sentence(harvester, words, code=69)
    assert harvester("doctor").code == 1
    assert server.requests == []
    assert harvester.rows("SELECT count(*) FROM harvest_run") == [(0,)]
    harvester.rows("UPDATE alembic_version SET version_num = ?", current)
    ends_as_if_nothing_had_happened(harvester, dead=0)


@contextmanager
def files_no_longer_than(size: int) -> Iterator[None]:
    """As a disk that is nearly full: whoever writes more into a file is told by the system that this cannot be."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@on_servers
def test_no_room_for_temporary_files_is_told_without_a_traceback_and_stops_no_other_site(
    harvester: Harvester, server: HttpServer
) -> None:
    two_sites(harvester, server)
    entries = [(f"gone.{number}.1", server.url("/gone.xml")) for number in range(2000)]
    answer = server._routes["/list.xml"]
    server.serve("/list.xml", harvest_list(entries))
    with files_no_longer_than(100_000):
        said = harvester("run", "--date", DAY)
    assert (said.code, said.err) == (3, "")
    statuses = dict(harvester.rows("SELECT site_name, status FROM harvest_site_run"))
    assert statuses == {"large": "failed", "small": "succeeded"}
    assert harvester.findings(1) == [(None, "error", "harvest.no-room")]
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "large@example.org"]
    told = words_of(mail)
    assert "no room for its temporary files" in told
    server.route("/list.xml", answer)
    run = harvester.run(DAY)
    assert [(site["site_name"], site["status"], site["inserted"]) for site in run["sites"]] == [
        ("large", "succeeded", 40)
    ]


@on_servers
@pytest.mark.parametrize("command", ["check", "run --dry-run"])
def test_no_room_for_a_rehearsal_is_told_with_the_folder(
    harvester: Harvester, server: HttpServer, command: str
) -> None:
    two_sites(harvester, server)
    arguments = [*command.split(), *([server.url("/list.xml")] if command == "check" else [])]
    for size in (10_000, 200_000, 300_000):
        with files_no_longer_than(size):
            said = harvester(*arguments)
        assert "Traceback" not in said.err
        assert (said.code, said.out) == (69, "")
        assert f"The temporary files of a rehearsal cannot be written in {tempfile.gettempdir()}: " in said.err
        assert "have TMPDIR name another folder" in said.err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system on which next to nothing is left."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=120k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only the superuser may mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=False)


@on_sqlite
def test_a_full_folder_for_temporary_files_is_named_and_costs_the_site_alone_that_needs_it(
    harvester: Harvester, server: HttpServer, small_disk: Path
) -> None:
    two_sites(harvester, server)
    long_list = harvest_list([(f"gone.{number}.1", server.url("/gone.xml")) for number in range(2000)])

    def after_the_small_one(asking: Asking) -> None:
        """What there is of room would not be enough for both lists at a time."""
        while not server.asked("/b.1.1.xml"):
            asking.pause(0.01)
        asking.answer(long_list)

    server.route("/list.xml", after_the_small_one)
    variables = {"TMPDIR": str(small_disk), "SQLITE_TMPDIR": str(small_disk)}
    config = str(harvester.config)
    done = process(harvester.folder, "--config", config, "run", "--date", DAY, "--force-date", **variables)
    assert (done.returncode, done.stderr) == (3, "")
    assert f"there is no room for its temporary files in {small_disk} (" in " ".join(done.stdout.split())
    statuses = dict(harvester.rows("SELECT site_name, status FROM harvest_site_run"))
    assert statuses == {"large": "failed", "small": "succeeded"}
    assert harvester.rows("SELECT status FROM harvest_run") == [("with-errors",)]
    check = process(harvester.folder, "--config", config, "check", server.url("/list.xml"), **variables)
    assert (check.returncode, check.stdout) == (69, "")
    assert f"The temporary files of a rehearsal cannot be written in {small_disk}: " in check.stderr
    assert "Traceback" not in check.stderr


_WRITE = """
import sys
from pathlib import Path
from sqlalchemy import text
from metaharvest.config.settings import load
from metaharvest.database.engine import open_database, writers
with writers(open_database(load(Path(sys.argv[1])))).begin() as session, session.begin_nested():
    session.execute(text("UPDATE harvest_operation SET explanation = explanation || printf('%.*c', 200000, 'x')"))
    session.execute(text("UPDATE harvest_operation SET explanation = substr(explanation, 1, 3)"))
"""


@on_sqlite
def test_what_is_written_needs_no_room_for_temporary_files(harvester: Harvester, small_disk: Path) -> None:
    harvester.rows("UPDATE harvest_operation SET explanation = explanation || printf('%.*c', 200000, 'x')")
    variables = {**os.environ, "TMPDIR": str(small_disk), "SQLITE_TMPDIR": str(small_disk)}
    command = [sys.executable, "-c", _WRITE, str(harvester.config)]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@on_servers
def test_a_mail_folder_on_a_full_disk_keeps_the_reports_for_the_next_run(
    harvester: Harvester, server: HttpServer
) -> None:
    two_sites(harvester, server)
    with files_no_longer_than(2000):
        said = harvester("run", "--date", DAY)
    assert said.code == 4
    assert "Reports could not be handed over in 3 cases: " in said.out
    assert harvester.mails() == []
    [(error,)] = harvester.rows("SELECT DISTINCT last_error FROM report_delivery")
    assert "cannot be written: File too large" in error
    assert harvester("doctor").code == 1
    assert harvester.run("2026-11-21")["exit_code"] == 0
    assert Counter(mail["To"] for mail in harvester.mails()) == {
        "large@example.org": 2,
        "small@example.org": 2,
        "steward@example.org": 2,
    }
    assert len(set(harvester.subjects())) == 6
    assert list((harvester.folder / "mail" / "tmp").iterdir()) == []


@on_sqlite
@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_a_folder_that_may_not_be_written_is_told_and_nothing_is_done(harvester: Harvester, server: HttpServer) -> None:
    two_sites(harvester, server)
    harvester.engine.dispose()
    harvester.folder.chmod(0o555)
    try:
        done = process_as_others("--config", str(harvester.config), "run", "--date", DAY, "--force-date")
        looked = process_as_others("--config", str(harvester.config), "doctor")
    finally:
        harvester.folder.chmod(0o755)
    assert done.returncode == 69, done.stderr
    assert str(harvester.folder) in done.stderr
    assert "write" in done.stderr
    assert "Traceback" not in done.stderr + looked.stderr
    assert (looked.returncode, "PROBLEM" in looked.stdout) == (1, True)
    assert server.requests == []
    ends_as_if_nothing_had_happened(harvester, dead=0)


@on_sqlite
@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_a_lock_file_that_may_not_be_written_is_a_problem(harvester: Harvester) -> None:
    lock = harvester.folder / "metaharvest.db.lock"
    lock.touch()
    lock.chmod(0)
    assert process_as_others("--config", str(harvester.config), "run").returncode == 69
    looked = process_as_others("--config", str(harvester.config), "doctor")
    assert looked.returncode == 1
    assert f"PROBLEM  run lock: The file {lock} cannot be written, so no run can take its lock" in looked.stdout


# -- one run at a time


def lose_the_lock(harvester: Harvester) -> None:
    """End what holds the run lock: the server's connection, or the name of the lock file."""
    if harvester.engine.dialect.name == "sqlite":
        (harvester.folder / "metaharvest.db.lock").unlink()
    elif harvester.engine.dialect.name == "postgresql":
        here = "(SELECT oid FROM pg_database WHERE datname = current_database())"
        locks = f"pg_locks WHERE locktype = 'advisory' AND database = {here}"
        harvester.rows(f"SELECT pg_terminate_backend(pid) FROM {locks}")
    else:
        with harvester.engine.connect() as connection:
            name = {"name": server_wide_name(connection, "run")}
            holder = connection.scalar(text("SELECT IS_USED_LOCK(:name)"), name)
            connection.execute(text(f"KILL {holder}"))


def test_a_run_that_lost_its_lock_to_another_commits_nothing_more(harvester: Harvester, server: HttpServer) -> None:
    patient(harvester)
    two_sites(harvester, server)
    answer = server._routes["/a.23.1.xml"]
    other: list[int] = []
    over = threading.Event()

    def lose(asking: Asking) -> None:
        server.route("/a.23.1.xml", answer)
        lose_the_lock(harvester)
        process = harvester.start("run", "--date", DAY)
        process.communicate(timeout=60)
        other.append(process.returncode)
        over.set()
        answer(asking)

    server.route("/a.23.1.xml", lose)
    failed_with_a_sentence(harvester, "another run has taken over", code=1)
    assert over.wait(60)
    assert other == [0]
    all_is_there_once(harvester, dead=1)
    once_in_the_maildir(harvester)


@on_servers
def test_a_run_whose_lock_is_gone_commits_nothing_more_and_the_next_one_goes_on(
    harvester: Harvester, server: HttpServer
) -> None:
    two_sites(harvester, server)
    answer = server._routes["/a.23.1.xml"]

    def lose(asking: Asking) -> None:
        lose_the_lock(harvester)
        answer(asking)

    server.route("/a.23.1.xml", lose)
    failed_with_a_sentence(harvester, "has lost its lock", code=1)
    assert len(harvester.held()) < 41
    server.route("/a.23.1.xml", answer)
    ends_as_if_nothing_had_happened(harvester)
    once_in_the_maildir(harvester)


def test_a_second_run_is_told_who_runs_since_when_and_a_dead_holder_blocks_nobody(
    harvester: Harvester, server: HttpServer
) -> None:
    patient(harvester)
    two_sites(harvester, server)
    answer = server._routes["/a.23.1.xml"]
    reached, go_on = threading.Event(), threading.Event()

    def hold(asking: Asking) -> None:
        reached.set()
        go_on.wait(60)
        answer(asking)

    server.route("/a.23.1.xml", hold)
    process = harvester.start("run", "--date", DAY)
    assert reached.wait(60)
    [(number, started)] = harvester.rows("SELECT run_id, started_at FROM harvest_run")
    begins = datetime.fromisoformat(started).strftime("%Y-%m-%d %H:%M UTC")
    who = f"run {number}, by {socket.gethostname()} (process {process.pid}), since {begins}"
    before = harvester.rows("SELECT count(*) FROM harvest_log WHERE harvest_operation_code = 'HarvesterStartup'")
    failed_with_a_sentence(harvester, "Another run is under way", who, code=75)
    assert harvester("reports", "deliver").code == 75
    after = harvester.rows("SELECT count(*) FROM harvest_log WHERE harvest_operation_code = 'HarvesterStartup'")
    assert (before, harvester.rows("SELECT count(*) FROM harvest_run")) == (after, [(1,)])
    process.kill()
    process.communicate()
    server.route("/a.23.1.xml", answer)
    ends_as_if_nothing_had_happened(harvester)
    go_on.set()
    once_in_the_maildir(harvester)
    told = [mail for mail in harvester.mails() if mail["To"] == "steward@example.org"]
    assert any("never ended" in text_of(mail) for mail in told)
