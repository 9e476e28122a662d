"""The ping at the end of a run: what the monitor gets on the wire, and what the operator is told where it fails."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
import trustme

from metaharvest.config.settings import load
from metaharvest.database.engine import run_lock
from metaharvest.monitoring.ping import notify_monitor
from support.cli import process
from support.harvester import Harvester, publish
from support.http_server import Asking, HttpServer, silent
from support.ports import free_port

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)

TOKEN = "b7d6e0c1-secret-token"


def monitored(harvester: Harvester, url: str) -> None:
    text = harvester.config.read_text()
    harvester.config.write_text(re.sub(r"\[monitoring\]\n.*\n", "", text) + f'[monitoring]\nping_url = "{url}"\n')


@pytest.fixture
def monitor(server: HttpServer) -> HttpServer:
    for path in ("/0/succeeded/up", "/0/with-errors/up", "/1/with-errors/down", "/1/failed/down", "/2/failed/down"):
        server.serve(f"/{TOKEN}{path}", b"OK")
    server.serve(f"/{TOKEN}", b"")
    return server


def filled_in(monitor: HttpServer) -> str:
    return monitor.url(f"/{TOKEN}/{{exit_code}}/{{status}}/{{up_or_down}}")


def pings(monitor: HttpServer) -> list[str]:
    return [request.path.removeprefix(f"/{TOKEN}") for request in monitor.requests if TOKEN in request.path]


def test_a_run_pings_once_at_its_very_end_and_says_how_it_ended(harvester: Harvester, monitor: HttpServer) -> None:
    seen: list[tuple[str, int]] = []

    def note(asking: Asking) -> None:
        [(status,)] = harvester.rows("SELECT status FROM harvest_run")
        seen.append((status, len(harvester.mails())))
        asking.answer(b"OK")

    monitor.route(f"/{TOKEN}/0/succeeded/up", note)
    monitored(harvester, filled_in(monitor))
    harvester.add_site("site", publish(monitor, "a.1.1"))
    said = harvester("run", "--date", "2026-11-20")
    assert (said.code, said.err) == (0, "")
    assert pings(monitor) == ["/0/succeeded/up"]
    assert seen == [("succeeded", 2)]
    request = next(request for request in monitor.requests if TOKEN in request.path)
    assert request.method == "GET"
    assert "metaharvest/" in request.headers["user-agent"]


def test_errors_of_documents_and_of_sites_are_told_as_the_run_tells_them(
    harvester: Harvester, monitor: HttpServer
) -> None:
    monitored(harvester, filled_in(monitor))
    harvester.add_site("site", publish(monitor, "a.1.1", also=[("a.2.1", monitor.url("/gone.xml"))]))
    assert harvester.run("2026-11-20")["exit_code"] == 0
    assert harvester.run("2026-11-21", "--strict")["exit_code"] == 3
    monitor.serve("/list.xml", b"gone", status=404)
    assert harvester.run("2026-11-22")["exit_code"] == 3
    assert pings(monitor) == ["/0/with-errors/up", "/3/with-errors/down", "/3/failed/down"]


def test_a_plain_url_is_pinged_whatever_the_status(harvester: Harvester, monitor: HttpServer) -> None:
    monitored(harvester, monitor.url(f"/{TOKEN}"))
    harvester.add_site("site", monitor.url("/no-list.xml"))
    assert harvester.run("2026-11-20")["exit_code"] == 3
    assert pings(monitor) == [""]


def test_a_rehearsal_pings_nobody(harvester: Harvester, monitor: HttpServer) -> None:
    monitored(harvester, filled_in(monitor))
    harvester.add_site("site", publish(monitor, "a.1.1"))
    assert harvester("run", "--dry-run").code == 0
    assert pings(monitor) == []


def test_the_daemon_pings_after_each_run(harvester: Harvester, monitor: HttpServer) -> None:
    monitored(harvester, filled_in(monitor))
    done = process(harvester.folder, "daemon", "--every", "0.001", "--max-runs", "2")
    assert done.returncode == 0, done.stderr
    assert pings(monitor) == ["/0/succeeded/up"] * 2


def test_a_run_that_cannot_print_what_became_of_it_has_ended_all_the_same(
    harvester: Harvester, monitor: HttpServer
) -> None:
    monitored(harvester, filled_in(monitor))
    harvester.add_site("site", publish(monitor, "a.1.1"))
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", "metaharvest", "run"],
            cwd=harvester.folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, "No space left on device" in done.stderr) == (1, True)
    assert pings(monitor) == ["/0/succeeded/up"]


def test_a_lock_that_is_held_pings_nobody_for_the_run_under_way_will(harvester: Harvester, monitor: HttpServer) -> None:
    monitored(harvester, filled_in(monitor))
    with run_lock(harvester.engine):
        assert harvester("run").code == 75
    assert pings(monitor) == []


def test_a_run_that_could_not_be_made_is_told_only_to_a_monitor_that_understands(
    harvester: Harvester, monitor: HttpServer
) -> None:
    harvester.engine.dispose()
    harvester.rows("UPDATE alembic_version SET version_num = '9999'")
    monitored(harvester, filled_in(monitor))
    assert harvester("run").code == 69
    assert pings(monitor) == ["/69/failed/down"]
    monitored(harvester, monitor.url(f"/{TOKEN}"))
    assert harvester("run").code == 69
    assert pings(monitor) == ["/69/failed/down"]


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_authorities_that_cannot_be_used_are_what_the_monitor_is_told_of(
    harvester: Harvester, monitor: HttpServer, content: bytes | None
) -> None:
    if content is not None:
        (harvester.folder / "nope").write_bytes(content)
    monitored(harvester, filled_in(monitor))
    text = harvester.config.read_text()
    harvester.config.write_text(text.replace("[http]\n", '[http]\nca_file = "nope"\n'))
    said = harvester("run")
    assert (said.code, "ca_file" in said.err, "monitor" in said.err) == (2, True, False)
    assert pings(monitor) == ["/2/failed/down"]
    monitored(harvester, f"http://127.0.0.1:{free_port()}/{{exit_code}}")
    said = harvester("run")
    assert "did not get the message that no run came to its end: " in said.err
    assert "not affected" not in said.err


def test_a_mistyped_site_is_no_alarm(harvester: Harvester, monitor: HttpServer) -> None:
    monitored(harvester, filled_in(monitor))
    assert harvester("run", "--site", "nobody").code == 2
    assert pings(monitor) == []


def test_a_monitor_that_stumbles_once_is_asked_again(harvester: Harvester, monitor: HttpServer) -> None:
    answers = [503, 200]
    monitor.route(f"/{TOKEN}", lambda asking: asking.answer(b"", answers.pop(0)))
    monitored(harvester, monitor.url(f"/{TOKEN}"))
    said = harvester("run")
    assert (said.code, said.err, answers) == (0, "", [])


def test_a_monitor_that_is_away_is_told_in_a_sentence_without_its_token_and_changes_nothing(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    port = free_port()
    monitored(harvester, f"http://me:{TOKEN}@127.0.0.1:{port}/{TOKEN}/{{exit_code}}?key={TOKEN}")
    said = harvester("run", "--date", "2026-11-20")
    assert said.code == 0
    assert f"http://127.0.0.1:{port}/..." in said.err
    assert "did not get the message that the run ended: " in said.err
    assert "The run itself is not affected." in said.err
    assert TOKEN not in said.out + said.err
    assert set(harvester.held()) == {"a.1.1"}


def test_a_monitor_that_refuses_is_asked_once_and_told(harvester: Harvester, monitor: HttpServer) -> None:
    monitored(harvester, monitor.url(f"/{TOKEN}/unknown"))
    said = harvester("run")
    assert said.code == 0
    assert "it answered 404" in said.err
    assert TOKEN not in said.err
    assert pings(monitor) == ["/unknown"]


def test_a_monitor_that_says_nothing_is_not_waited_for_long(
    harvester: Harvester, monitor: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaharvest.monitoring.ping.DEADLINE_SECONDS", 1)
    monitor.route(f"/{TOKEN}", silent(b"HTTP/1.1 200 OK\r\n"))
    monitored(harvester, monitor.url(f"/{TOKEN}"))
    said = harvester("run")
    assert said.code == 0
    assert "did not answer within 1 second" in said.err
    assert pings(monitor) == ["", ""]


def test_the_url_may_be_a_secret_kept_elsewhere(
    harvester: Harvester, monitor: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitored(harvester, "file:ping-url")
    said = harvester("run")
    assert said.code == 0
    assert said.err.startswith("[monitoring] ping_url: The secret file:ping-url cannot be read")
    assert said.err.endswith(" The run itself is not affected.\n")
    secret = harvester.folder / "ping-url"
    secret.write_text(f"{filled_in(monitor)}\n")
    secret.chmod(0o600)
    assert harvester("run").err == ""
    secret.write_text(TOKEN)
    said = harvester("run")
    assert "must be a web address" in said.err
    assert TOKEN not in said.err
    monkeypatch.setenv("PING", filled_in(monitor))
    monitored(harvester, "env:PING")
    assert harvester("run").err == ""
    assert pings(monitor) == ["/0/succeeded/up"] * 2


@pytest.mark.parametrize(
    "url", [f"ftp://x/{TOKEN}", TOKEN, f"https:///{TOKEN}", f"https://x/{TOKEN}/{{colour}}", f"https://x/{TOKEN} y"]
)
def test_a_value_that_cannot_be_pinged_is_refused_without_showing_it(harvester: Harvester, url: str) -> None:
    monitored(harvester, url)
    said = harvester("run")
    assert said.code == 2
    assert "[monitoring] ping_url = (not shown)" in said.err
    assert TOKEN not in said.err


def test_the_doctor_says_whether_a_monitor_is_told_and_asks_it_nothing(
    harvester: Harvester, monitor: HttpServer
) -> None:
    def told() -> tuple[str, str]:
        checks = json.loads(harvester("doctor", "--json").out)["checks"]
        [check] = [check for check in checks if check["check"] == "monitor"]
        return check["state"], check["message"]

    assert told() == ("OK", "No monitor gets the end of a run; ping_url in [monitoring] names one.")
    monitored(harvester, filled_in(monitor))
    assert told() == ("OK", f"http://127.0.0.1:{monitor.port}/... is pinged at the end of each run.")
    monitored(harvester, "env:NO_SUCH_VARIABLE")
    state, message = told()
    assert (state, "NO_SUCH_VARIABLE" in message) == ("PROBLEM", True)
    assert pings(monitor) == []


def test_without_a_monitor_nothing_is_loaded_for_it(harvester: Harvester) -> None:
    program = (
        "import sys\nfrom metaharvest.cli import main\n"
        f"try: main(['--config', {str(harvester.config)!r}, 'run'])\n"
        "except SystemExit: pass\nsys.stderr.write(str('pycurl' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "False"


def test_a_monitor_in_a_network_of_one_s_own_is_pinged_without_the_proxy(
    harvester: Harvester, monitor: HttpServer
) -> None:
    monitored(harvester, filled_in(monitor))
    text = harvester.config.read_text()
    harvester.config.write_text(text.replace("[http]\n", f'[http]\nproxy = "http://127.0.0.1:{free_port()}"\n'))
    assert harvester("run").err == ""
    assert pings(monitor) == ["/0/succeeded/up"]


def test_the_proxy_gets_its_password_with_the_ping(
    harvester: Harvester, monitor: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", "s3/cr@et")
    url = f"http://monitor.invalid/{TOKEN}"
    monitor.serve(url, b"OK")
    monitored(harvester, url)
    proxy = f'proxy = "{monitor.url("", host="anna@127.0.0.1")}"\nproxy_password = "env:PROXY_PASSWORD"\n'
    harvester.config.write_text(harvester.config.read_text().replace("[http]\n", f"[http]\n{proxy}"))
    assert harvester("run").err == ""
    [request] = monitor.requests
    assert request.headers["proxy-authorization"] == "Basic YW5uYTpzMy9jckBldA=="

    monkeypatch.delenv("PROXY_PASSWORD")
    failure = notify_monitor(load(harvester.config, {}), "failed", 2, ended=True)
    assert failure is not None
    assert "did not get the message" in failure
    assert "set the environment variable PROXY_PASSWORD" in failure


def test_an_encrypted_proxy_needs_a_certificate_of_a_known_authority(harvester: Harvester, tmp_path: Path) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    url = f"http://monitor.invalid/{TOKEN}"
    monitored(harvester, url)
    with HttpServer(tls=tls) as proxy:
        proxy.serve(url, b"OK")
        text = harvester.config.read_text().replace("[http]\n", f'[http]\nproxy = "{proxy.url("")}"\n')
        harvester.config.write_text(text)
        assert "certificate" in harvester("run").err
        harvester.config.write_text(text.replace("[http]\n", f'[http]\nca_file = "{tmp_path / "ca.pem"}"\n'))
        assert harvester("run").err == ""


def test_a_name_that_no_resolver_takes_is_left_to_the_proxy(harvester: Harvester) -> None:
    monitored(harvester, f"http://{'a' * 64}.example.org/")
    text = harvester.config.read_text()
    harvester.config.write_text(text.replace("[http]\n", f'[http]\nproxy = "http://127.0.0.1:{free_port()}"\n'))
    said = harvester("run")
    assert (said.code, "did not get the message" in said.err, "Traceback" in said.err) == (0, True, False)
