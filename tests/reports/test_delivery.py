"""The outbox and its two ways out, against a real SMTP server on loopback and a real folder."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from email.parser import BytesParser
from email.policy import SMTP as SMTP_POLICY
from pathlib import Path
from typing import Any

import pytest
import trustme
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.engine import Sessions, outbox_lock
from metaharvest.database.models import ReportDelivery, ReportOutbox
from metaharvest.errors import LockHeld, MetaharvestError
from metaharvest.mail import outbox
from metaharvest.mail import smtp as smtp_module
from metaharvest.model import OutcomeKind
from metaharvest.reports import compose
from support.databases import on_one_database
from support.journal_rows import NAMED, NOW, TODAY, JournalRows
from support.ports import free_port
from support.smtp_sink import SmtpSink


@pytest.fixture
def sink() -> Iterator[SmtpSink]:
    with SmtpSink() as sink:
        yield sink


def settings_for(folder: Path, **mail: Any) -> Settings:
    values = {"sender": "harvester@example.org", "timeout": 3, **mail}
    return Settings.model_validate(
        {
            "folder": folder,
            "harvester": {"name": "Example Network", "administrators": ["steward@example.org"]},
            "mail": values,
        }
    )


def smtp(folder: Path, sink: SmtpSink, **mail: Any) -> Settings:
    return settings_for(folder, backend="smtp", host="127.0.0.1", port=sink.port, **mail)


def certified(authority_file: Path) -> ssl.SSLContext:
    """A server's side of TLS for 127.0.0.1, and the file of the authority that vouches for it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(authority_file)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


def queue_reports(engine: Engine, settings: Settings, *contacts: str) -> list[int]:
    """One site and one queued report for each text of contacts."""
    numbers = []
    with Session(engine) as session:
        rows = JournalRows(session)
        run = rows.run()
        for number, contact in enumerate(contacts):
            site_run = rows.site_run(run, rows.site(f"site-{number}", contact))
            rows.document(run, site_run, f"scope.{number}", 1, OutcomeKind.INSERTED)
            report = compose.site_report(session, site_run.site_run_id, ReportContext(settings, NAMED, NOW))
            numbers.append(outbox.queue(session, report, run.run_id, site_run.site_run_id, NOW) or 0)
        session.commit()
    return numbers


def deliver(engine: Engine, settings: Settings) -> outbox.Deliveries:
    return outbox.deliver(Sessions(engine), settings, NOW + timedelta(minutes=5))


def states(engine: Engine) -> dict[str, tuple[str, int, str]]:
    with Session(engine) as session:
        return {
            row.recipient: (row.status, row.attempts, row.last_error or "")
            for row in session.scalars(select(ReportDelivery))
        }


@on_one_database
def test_each_recipient_gets_a_message_and_one_session_serves_all(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "a@example.org; b@example.org", "c@example.org")

    assert deliver(engine, settings) == outbox.Deliveries(sent=3, waiting=0, refused=0)

    assert [received.recipients for received in sink.messages] == [
        ("a@example.org",),
        ("b@example.org",),
        ("c@example.org",),
    ]
    assert {received.sender for received in sink.messages} == {"harvester@example.org"}
    assert sink.sessions == 1
    first, second = sink.to("a@example.org")[0], sink.to("b@example.org")[0]
    assert first["Message-ID"] == second["Message-ID"]
    assert str(first["To"]) == "a@example.org, b@example.org"
    assert deliver(engine, settings) == outbox.Deliveries(0, 0, 0)
    assert len(sink.messages) == 3


def test_a_refused_recipient_is_kept_and_does_not_stop_the_others(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    sink.answers = {"gone@example.org": "550 5.1.1 no such user here", "busy@example.org": "450 4.2.1 try again later"}
    sink.data_answers = {"picky@example.org": "554 5.7.1 this looks like spam"}
    queue_reports(engine, settings, "gone@example.org, busy@example.org, picky@example.org, good@example.org")

    assert deliver(engine, settings) == outbox.Deliveries(sent=1, waiting=1, refused=2)

    rows = states(engine)
    assert rows["gone@example.org"][:2] == ("refused", 1)
    assert "550" in rows["gone@example.org"][2]
    assert "no such user here" in rows["gone@example.org"][2]
    assert rows["busy@example.org"][:2] == ("queued", 1)
    assert rows["picky@example.org"][0] == "refused"
    assert rows["good@example.org"] == ("sent", 1, "")

    sink.answers = {}
    assert deliver(engine, settings) == outbox.Deliveries(sent=1, waiting=0, refused=0)
    assert states(engine)["gone@example.org"][:2] == ("refused", 1)


@on_one_database
def test_a_round_that_breaks_off_keeps_the_answers_that_came_before(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    sink.answers = {"busy@example.org": "450 4.2.1 mailbox busy", "gone@example.org": "550 5.1.1 no such user here"}
    sink.cut_for = {"bad@example.org", "worse@example.org"}
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "busy@example.org", "gone@example.org, bad@example.org, worse@example.org, a@b.org")

    assert deliver(engine, settings) == outbox.Deliveries(sent=0, waiting=5, refused=0, in_doubt=1)

    rows = states(engine)
    assert {state[:2] for state in rows.values()} == {("queued", 1)}
    assert "450" in rows["busy@example.org"][2]
    assert "550" in rows["gone@example.org"][2]
    assert all("closed the connection" in rows[to][2] for to in ("bad@example.org", "worse@example.org", "a@b.org"))


def test_only_one_process_delivers_at_a_time_and_a_run_leaves_the_reports_to_it(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "a@example.org")

    def deliver_in_run() -> outbox.Deliveries:
        run = outbox.DeliveringRun(NOW, TODAY)
        return outbox.deliver_in_run(engine, settings, NOW + timedelta(minutes=5), run, lambda: False)

    with outbox_lock(engine):
        assert deliver_in_run() == outbox.Deliveries(waiting=1)
        with pytest.raises(LockHeld, match="Another process delivers the reports"), outbox_lock(engine):
            pass
    assert deliver_in_run() == outbox.Deliveries(sent=1)
    assert len(sink.messages) == 1


@on_one_database
def test_workers_try_everything_with_their_first_delivery_of_a_day_only(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(tmp_path, backend="smtp", host="127.0.0.1", port=free_port())
    queue_reports(engine, settings, "a@example.org")
    midnight = NOW.replace(hour=0, minute=0) + timedelta(days=1)  # the run of the day begins later

    def attempts_at(moment: datetime, midnight: datetime) -> int:
        run = outbox.DeliveringRun(moment, moment.date(), midnight=midnight)
        outbox.deliver_in_run(engine, settings, moment, run, lambda: False)
        return states(engine)["a@example.org"][1]

    minute = timedelta(minutes=1)
    evening = [midnight - number * minute for number in (40, 30, 20, 10)]
    assert [attempts_at(moment, midnight - timedelta(days=1)) for moment in evening] == [1, 2, 2, 2]
    assert [attempts_at(midnight + number * minute, midnight) for number in (1, 11, 21, 61)] == [3, 3, 3, 3]


def test_a_recipient_who_is_put_off_for_days_is_given_up_with_the_last_answer(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    away = settings_for(tmp_path, backend="smtp", host="127.0.0.1", port=free_port())
    sink.answers = {"full@example.org": "450 4.2.2 mailbox full"}
    [report] = queue_reports(engine, settings, "full@example.org")

    def on_day(day: int, settings: Settings) -> tuple[int, int]:
        ended = outbox.deliver(Sessions(engine), settings, NOW + timedelta(days=day))
        return ended.waiting, ended.refused

    assert [on_day(day, settings) for day in range(4)] == [(1, 0)] * 4
    assert [on_day(day, away) for day in (4, 5)] == [(1, 0)] * 2
    assert [on_day(day, settings) for day in (6, 7, 8)] == [(1, 0), (0, 1), (0, 0)]
    status, attempts, error = states(engine)["full@example.org"]
    assert (status, attempts, "answered 450: 4.2.2 mailbox full" in error) == ("refused", 8, True)
    with Session(engine) as session:
        outbox.resend(session, report, settings)
        session.commit()
    assert on_day(9, settings) == (1, 0)


def test_a_server_that_is_down_keeps_everything_queued_and_later_gets_the_same_message(
    engine: Engine, tmp_path: Path
) -> None:
    port = free_port()
    settings = settings_for(tmp_path, backend="smtp", host="127.0.0.1", port=port)
    queue_reports(engine, settings, "a@example.org", "b@example.org")

    assert deliver(engine, settings) == outbox.Deliveries(sent=0, waiting=2, refused=0)
    assert {state[:2] for state in states(engine).values()} == {("queued", 1)}
    assert all("cannot be reached" in state[2] for state in states(engine).values())

    with SmtpSink(port) as sink:
        assert deliver(engine, settings) == outbox.Deliveries(sent=2, waiting=0, refused=0)
        with Session(engine) as session:
            stored = list(session.scalars(select(ReportOutbox).order_by(ReportOutbox.report_id)))
            assert [sink.to(to)[0]["Message-ID"] for to in ("a@example.org", "b@example.org")] == [
                row.message_id for row in stored
            ]
            assert [received.content.rstrip() for received in sink.messages] == [row.content.rstrip() for row in stored]


@on_one_database
@pytest.mark.parametrize("command", ["MAIL", "RCPT", "DATA"])
def test_a_server_that_hangs_up_once_costs_no_report(
    engine: Engine, sink: SmtpSink, tmp_path: Path, command: str
) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "a@example.org", "b@example.org", "c@example.org")
    sink.hang_up, sink.hang_ups = command, 1

    deliver(engine, settings)
    deliver(engine, settings)

    assert {state[0] for state in states(engine).values()} == {"sent"}
    assert sorted(received.recipients[0][0] for received in sink.messages) == ["a", "b", "c"]


@on_one_database
def test_a_server_that_closes_the_session_between_messages_is_called_again(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "a@example.org", "b@example.org", "c@example.org")
    sink.hang_up, sink.hang_ups, sink.hang_up_after = "MAIL", 1, 1

    assert deliver(engine, settings) == outbox.Deliveries(sent=3, waiting=0, refused=0)

    assert sink.sessions == 2
    assert {state[:2] for state in states(engine).values()} == {("sent", 1)}


@on_one_database
def test_a_server_that_takes_one_message_a_session_gets_them_all(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "a@example.org", "b@example.org", "c@example.org")
    sink.session_limit = 1

    assert deliver(engine, settings) == outbox.Deliveries(sent=3, waiting=0, refused=0)

    assert sink.sessions == 3
    assert {state[:2] for state in states(engine).values()} == {("sent", 1)}


@on_one_database
def test_recipients_at_whom_the_server_breaks_off_do_not_keep_mail_from_others(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "bad-1@example.org, good-1@example.org, bad-2@example.org, good-2@example.org")
    sink.cut_for = {"bad-1@example.org", "bad-2@example.org"}

    assert deliver(engine, settings) == outbox.Deliveries(sent=2, waiting=2, refused=0)
    assert {name for name, state in states(engine).items() if state[0] == "sent"} == {
        "good-1@example.org",
        "good-2@example.org",
    }


@on_one_database
def test_a_server_that_always_hangs_up_is_left_alone_after_two_tries(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, *(f"contact-{number}@example.org" for number in range(6)))
    sink.hang_up, sink.hang_ups = "RCPT", 1000

    assert deliver(engine, settings) == outbox.Deliveries(sent=0, waiting=6, refused=0)

    assert sink.sessions == 2
    assert all("closed the connection" in state[2] for state in states(engine).values())


@on_one_database
@pytest.mark.parametrize(
    ("greeting", "words"),
    [(b"", "did not answer within 0.3 seconds"), (b"SSH-2.0-x\r\n", "not SMTP: check that mail.host and mail.port")],
)
def test_a_server_that_is_silent_or_no_mail_server_is_told_as_such(
    engine: Engine, tmp_path: Path, greeting: bytes, words: str
) -> None:
    def greet() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(greeting)
            connection.recv(1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        greeter = threading.Thread(target=greet)
        greeter.start()
        port = listener.getsockname()[1]
        settings = settings_for(tmp_path, backend="smtp", host="127.0.0.1", port=port, timeout=0.3)
        queue_reports(engine, settings, "a@example.org")
        assert deliver(engine, settings) == outbox.Deliveries(sent=0, waiting=1, refused=0)
        greeter.join(10)
    said = states(engine)["a@example.org"][2]
    assert words in said
    assert "closed the connection" not in said


@on_one_database
def test_a_server_that_checks_each_message_for_long_gets_it_once(
    engine: Engine, sink: SmtpSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = smtp(tmp_path, sink, timeout=0.5)
    number, _ = queue_reports(engine, settings, "a@example.org", "b@example.org")
    sink.accepted = lambda: time.sleep(1)

    assert deliver(engine, settings) == outbox.Deliveries(sent=2)

    assert [received.recipients for received in sink.messages] == [("a@example.org",), ("b@example.org",)]

    monkeypatch.setattr(smtp_module, "_AFTER_MESSAGE", 0.6)
    with Session(engine) as session:
        outbox.resend(session, number, settings)
        session.commit()
    deliver(engine, settings)
    assert "did not answer within 0.6 seconds" in states(engine)["a@example.org"][2]
    # A person waits at a page, or the run must end.
    outbox.deliver(Sessions(engine), settings, NOW + timedelta(minutes=5), is_stopped=lambda: True)
    assert "did not answer within 0.5 seconds" in states(engine)["a@example.org"][2]


@on_one_database
def test_a_stop_ends_the_long_wait_for_the_answer_to_a_message(engine: Engine, sink: SmtpSink, tmp_path: Path) -> None:
    settings = smtp(tmp_path, sink, timeout=0.5)
    queue_reports(engine, settings, "a@example.org")
    stop, ended = threading.Event(), threading.Event()

    def check() -> None:
        stop.set()
        ended.wait(20)

    sink.accepted = check
    began = time.monotonic()
    outbox.deliver(Sessions(engine), settings, NOW, is_stopped=stop.is_set)
    ended.set()
    assert time.monotonic() - began < 10
    assert "did not answer within 0.5 seconds" in states(engine)["a@example.org"][2]


@on_one_database
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_the_session_is_encrypted_and_the_certificate_checked(engine: Engine, tmp_path: Path, security: str) -> None:
    with SmtpSink(security=security, tls=certified(tmp_path / "ca.pem")) as sink:
        queue_reports(engine, smtp(tmp_path, sink), "a@example.org")

        assert deliver(engine, smtp(tmp_path, sink, security=security)).sent == 0
        assert "certificate that cannot be trusted" in states(engine)["a@example.org"][2]
        assert "mail.ca_file" in states(engine)["a@example.org"][2]

        assert deliver(engine, smtp(tmp_path, sink, security=security, ca_file="ca.pem")).sent == 1
        assert len(sink.messages) == 1


@on_one_database
def test_starttls_is_never_given_up_silently(engine: Engine, sink: SmtpSink, tmp_path: Path) -> None:
    settings = smtp(tmp_path, sink, security="starttls")
    queue_reports(engine, settings, "a@example.org")

    assert deliver(engine, settings).sent == 0
    assert "mail.security" in states(engine)["a@example.org"][2]
    assert sink.messages == []


@on_one_database
def test_a_login_works_and_a_wrong_password_is_told_without_showing_it(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = certified(tmp_path / "ca.pem")
    with SmtpSink(security="starttls", tls=context, login=("harvester", "open-sesame")) as sink:
        login = {"security": "starttls", "ca_file": "ca.pem", "username": "harvester", "password": "env:MAIL_PASSWORD"}
        settings = smtp(tmp_path, sink, **login)
        queue_reports(engine, settings, "a@example.org")

        monkeypatch.delenv("MAIL_PASSWORD", raising=False)
        assert deliver(engine, settings).sent == 0
        assert "MAIL_PASSWORD" in states(engine)["a@example.org"][2]

        monkeypatch.setenv("MAIL_PASSWORD", "not-this-one")
        assert deliver(engine, settings).sent == 0
        status, attempts, error = states(engine)["a@example.org"]
        assert (status, attempts) == ("queued", 2)
        assert "does not accept the user name and password" in error
        assert "not-this-one" not in error

        monkeypatch.setenv("MAIL_PASSWORD", "open-sesame")
        assert deliver(engine, settings).sent == 1


def test_a_report_is_queued_once_whatever_happens(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    with Session(engine) as session:
        rows = JournalRows(session)
        run = rows.run()
        site_run = rows.site_run(run, rows.site("alder-creek"))
        first = compose.site_report(session, site_run.site_run_id, ReportContext(settings, NAMED, NOW))
        assert outbox.queue(session, first, run.run_id, site_run.site_run_id, NOW) is not None
        again = compose.site_report(
            session, site_run.site_run_id, ReportContext(settings, NAMED, NOW + timedelta(hours=1))
        )
        assert again.message_id == first.message_id
        assert outbox.queue(session, again, run.run_id, site_run.site_run_id, NOW) is None
        assert len(session.scalars(select(ReportDelivery)).all()) == 1


def test_the_maildir_holds_each_report_once_with_all_its_recipients(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    queue_reports(engine, settings, "a@example.org, b@example.org", "c@example.org")

    assert deliver(engine, settings) == outbox.Deliveries(sent=3, waiting=0, refused=0)

    files = sorted((tmp_path / "mail" / "new").iterdir())
    assert len(files) == 2
    assert list((tmp_path / "mail" / "tmp").iterdir()) == []
    content = files[0].read_bytes() + files[1].read_bytes()
    assert b"\r\n" not in content
    messages = [BytesParser(policy=SMTP_POLICY).parsebytes(file.read_bytes()) for file in files]
    assert sorted(str(message["To"]) for message in messages) == ["a@example.org, b@example.org", "c@example.org"]


@on_one_database
def test_a_crash_after_the_file_was_written_does_not_double_it(engine: Engine, tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    numbers = queue_reports(engine, settings, "a@example.org")
    deliver(engine, settings)
    (file,) = (tmp_path / "mail" / "new").iterdir()
    with Session(engine) as session:
        outbox.resend(session, numbers[0], settings)
        session.commit()
    file.rename(tmp_path / "mail" / "cur" / f"{file.name}:2,S")

    assert deliver(engine, settings).sent == 1

    assert list((tmp_path / "mail" / "new").iterdir()) == []
    assert states(engine)["a@example.org"] == ("sent", 1, "")


@on_one_database
def test_a_mail_folder_that_cannot_be_written_keeps_the_report_queued(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("not a folder")
    settings = settings_for(tmp_path)
    queue_reports(engine, settings, "a@example.org")

    assert deliver(engine, settings) == outbox.Deliveries(sent=0, waiting=1, refused=0)
    status, attempts, error = states(engine)["a@example.org"]
    assert (status, attempts) == ("queued", 1)
    assert "cannot be written" in error

    (tmp_path / "mail").unlink()
    assert deliver(engine, settings).sent == 1


def test_resend_puts_a_report_back_and_names_a_report_that_is_not_there(
    engine: Engine, sink: SmtpSink, tmp_path: Path
) -> None:
    settings = smtp(tmp_path, sink)
    sink.answers = {"a@example.org": "550 no"}
    (number,) = queue_reports(engine, settings, "a@example.org")
    assert deliver(engine, settings).refused == 1

    sink.answers = {}
    with Session(engine) as session:
        outbox.resend(session, number, settings)
        session.commit()
        with pytest.raises(MetaharvestError, match="no report number 999"):
            outbox.resend(session, 999, settings)
    assert deliver(engine, settings).sent == 1
    assert len(sink.to("a@example.org")) == 1


@on_one_database
def test_an_international_domain_travels_in_its_ascii_form(engine: Engine, sink: SmtpSink, tmp_path: Path) -> None:
    settings = smtp(tmp_path, sink)
    queue_reports(engine, settings, "info@bücher.example, jörg@example.org")

    assert deliver(engine, settings) == outbox.Deliveries(sent=1, waiting=0, refused=1)

    assert sink.messages[0].recipients == ("info@xn--bcher-kva.example",)
    assert sink.messages[0].content.isascii()
    state, _, error = states(engine)["jörg@example.org"]
    assert (state, "does not take such addresses (SMTPUTF8)" in error) == ("refused", True)


@on_one_database
def test_a_domain_travels_in_the_form_that_registries_use_today(engine: Engine, sink: SmtpSink, tmp_path: Path) -> None:
    queue_reports(engine, settings := smtp(tmp_path, sink), "info@straße.example")
    assert deliver(engine, settings).sent == 1
    assert sink.messages[0].recipients == ("info@xn--strae-oqa.example",)


def test_an_international_address_is_reached_where_the_mail_server_takes_it(engine: Engine, tmp_path: Path) -> None:
    with SmtpSink(utf8=True) as sink:
        queue_reports(engine, settings := smtp(tmp_path, sink), "a@example.org, jörg@bücher.example, b@example.org")
        assert deliver(engine, settings) == outbox.Deliveries(sent=3, waiting=0, refused=0)
        assert {message.recipients for message in sink.messages} == {
            ("a@example.org",),
            ("b@example.org",),
            ("jörg@xn--bcher-kva.example",),
        }
        assert all(message.content.isascii() for message in sink.messages)
        assert sink.sessions == 1
