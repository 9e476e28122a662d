"""The HTTP layer of the targets, against a server that misbehaves."""

from __future__ import annotations

import gzip
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
from requests.cookies import RequestsCookieJar

from metaharvest import __version__
from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError, TargetError
from metaharvest.rules import RULES
from metaharvest.targets.http import HttpAnswer, HttpClient, Unanswered
from support.http_server import (
    Asking,
    HttpServer,
    Route,
    answering,
    dripped,
    endless,
    in_turn,
    raw,
    reset_after,
    silent,
)
from support.waiting import wait_until

OK = b"HTTP/1.1 200 OK\r\n"


def settings(url: str, folder: Path = Path(), http: Any = None, **target: object) -> Settings:
    values = {"kind": "dataone", "url": url, "connect_timeout": 1, "read_timeout": 1, "deadline": 3, **target}
    return Settings.model_validate(
        {
            "harvester": {"name": "Test network", "administrators": ["steward@example.org"]},
            "http": {"retry_wait": 0.01, "contact_url": "https://example.org/about", **(http or {})},
            "target": values,
            "folder": folder,
        }
    )


@pytest.fixture
def ask(server: HttpServer) -> Iterator[Callable[..., HttpAnswer]]:
    with closing(HttpClient(settings(server.url("")))) as client:
        yield client.ask


def failure(ask: Callable[..., HttpAnswer], *arguments: Any, **options: Any) -> tuple[str, str]:
    """Rule and message of what could not be asked; it is always worth another run."""
    with pytest.raises(Unanswered) as caught:
        ask(*arguments, **options)
    (finding,) = caught.value.findings
    assert caught.value.transient
    assert finding.rule in RULES
    assert finding.remedy.endswith(".")
    assert finding.message.endswith(".")
    return finding.rule, finding.message


# -- what is asked, and answered


def test_an_answer_is_given_whatever_its_status(server: HttpServer, ask: Callable[..., HttpAnswer]) -> None:
    server.serve("/teapot", b"short and stout", status=418, headers={"X-Kind": "pot"})
    answer = ask("GET", "/teapot")
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (418, b"short and stout", "pot")
    assert not answer.ok


def test_it_says_who_asks(server: HttpServer, ask: Callable[..., HttpAnswer]) -> None:
    server.serve("/", b"")
    ask("GET", "/", headers={"Authorization": "Bearer abc"})
    (request,) = server.requests
    assert request.headers["user-agent"] == f"metaharvest/{__version__} (Test network; +https://example.org/about)"
    assert request.headers["from"] == "steward@example.org"
    assert request.headers["authorization"] == "Bearer abc"


def test_multipart_parts_go_in_their_order_and_plain_fields_have_no_file_name(
    server: HttpServer, ask: Callable[..., HttpAnswer]
) -> None:
    server.serve("/object", b"", status=201)
    parts = [("pid", (None, "a.1.1", "text/plain")), ("object", ("object", b"<e>\xe9</e>", "text/xml"))]
    assert ask("POST", "/object", parts=parts).status == 201
    (request,) = server.requests
    assert request.method == "POST"
    assert request.body.index(b'name="pid"\r\n') < request.body.index(b'name="object"; filename="object"')
    assert b"\r\n\r\n<e>\xe9</e>\r\n" in request.body


@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_no_redirect_is_followed(server: HttpServer, ask: Callable[..., HttpAnswer], method: str) -> None:
    server.redirect("/here", "/there", status=301)
    answer = ask(method, "/here", headers={"Authorization": "Bearer abc"})
    error = answer.refusal()
    assert [request.path for request in server.requests] == ["/here"]
    assert (answer.status, error.transient, error.findings[0].rule) == (301, False, "target.moved")
    assert error.findings[0].message == f"{server.url('/here')} has moved to /there."


@pytest.mark.parametrize(
    ("status", "rule", "transient"),
    [
        (500, "target.away", True),
        (503, "target.away", True),
        (429, "target.away", True),
        (401, "target.login", False),
        (403, "target.login", False),
        (404, "target.answer", False),
        (599, "target.away", True),
        (501, "target.answer", False),
        (505, "target.answer", False),
    ],
)
def test_what_a_status_means(
    server: HttpServer, ask: Callable[..., HttpAnswer], status: int, rule: str, transient: bool
) -> None:
    server.serve("/", b"<html><title>Down for tea</title></html>", status=status, headers={"Retry-After": "3600"})
    error = ask("GET", "/").refusal()
    assert (error.findings[0].rule, error.transient) == (rule, transient)
    assert error.findings[0].message.endswith(": a page titled 'Down for tea'.")


def test_nothing_is_taken_from_the_environment(
    server: HttpServer, ask: Callable[..., HttpAnswer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    server.serve("/", b"here")
    assert ask("GET", "/").body == b"here"
    assert "authorization" not in server.requests[0].headers


def test_the_proxy_of_the_settings_is_used_with_its_password(server: HttpServer, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("p:ss/word")
    (tmp_path / "secret").chmod(0o600)
    proxy = {"proxy": server.url("", host="user@127.0.0.1"), "proxy_password": "file:secret"}
    server.serve("http://repository.example.org/mn", b"by proxy")
    with closing(HttpClient(settings("http://repository.example.org", tmp_path, **proxy))) as client:
        assert client.ask("GET", "/mn").body == b"by proxy"
    assert server.requests[0].headers["proxy-authorization"] == "Basic dXNlcjpwOnNzL3dvcmQ="


def test_a_proxy_that_does_not_work_is_told_from_a_repository_that_does_not(tmp_path: Path) -> None:
    with closing(HttpClient(settings("http://repository.example.org", proxy="http://127.0.0.1:9"))) as client:
        rule, message = failure(client.ask, "GET", "/mn")
    assert rule == "target.away"
    assert "the proxy in the target's settings does not work (Connection refused)" in message


def test_a_proxy_that_cannot_reach_the_target_is_not_at_fault(server: HttpServer) -> None:
    server.serve("repository.example.org:443", b"no such host", status=503)
    with closing(HttpClient(settings("https://repository.example.org", proxy=server.url("")))) as client:
        rule, message = failure(client.ask, "POST", "/mn")
    assert rule == "target.away"
    assert "the proxy could not connect to it (Tunnel connection failed: 503" in message


def test_a_proxy_that_asks_for_a_login_is_not_the_target(server: HttpServer) -> None:
    server.serve("http://repository.example.org/mn", b"", status=407)
    with closing(HttpClient(settings("http://repository.example.org", proxy=server.url("")))) as client:
        error = client.ask("POST", "/mn").refusal()
    assert (error.findings[0].rule, error.transient) == ("target.away", True)
    assert "does not work (answered 407 Proxy Authentication Required)" in error.findings[0].message
    assert "proxy_password" in str(error.findings[0].remedy)


def test_cookies_are_shared_by_the_threads_of_a_session_and_by_nobody_else(
    server: HttpServer, ask: Callable[..., HttpAnswer]
) -> None:
    server.serve("/login", b"", headers={"Set-Cookie": "JSESSIONID=abc; Path=/"})
    server.serve("/", b"")
    cookies = RequestsCookieJar()
    ask("POST", "/login", data={"password": "secret"}, cookies=cookies)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: ask("GET", "/", cookies=cookies), range(8)))
    ask("GET", "/")
    assert [request.headers.get("cookie") for request in server.asked("/")] == ["JSESSIONID=abc"] * 8 + [None]


# -- limits


DRIPPING = {
    "headers": dripped(OK, b"X-Slow: " + b"x" * 10_000, pause=0.05),
    "body": dripped(OK + b"Content-Length: 10000\r\n\r\n", b"x" * 10_000, pause=0.05),
    "body without a length": endless(OK + b"\r\n", b"x", pause=0.05),
    "chunks": endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", pause=0.05),
}


@pytest.mark.parametrize("route", DRIPPING.values(), ids=DRIPPING)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_server_that_drips_is_ended_at_the_deadline(server: HttpServer, route: Route, method: str) -> None:
    server.route("/", route)
    with closing(HttpClient(settings(server.url(""), deadline=0.3))) as client:
        began = time.monotonic()
        rule, message = failure(client.ask, method, "/")
        assert time.monotonic() - began < 20  # the server never ends
    assert (rule, len(server.requests)) == ("target.away", 1)
    assert message.endswith("had not answered whole after 0.3 seconds, the most that it may take.")


def test_a_connection_that_was_kept_has_the_deadline_of_its_own_exchange(server: HttpServer) -> None:
    server.serve("/fast", b"fast")
    server.route("/slow", DRIPPING["headers"])
    with closing(HttpClient(settings(server.url(""), deadline=0.3))) as client:
        client.ask("GET", "/fast")
        time.sleep(0.4)
        client.ask("GET", "/fast")
        began = time.monotonic()
        failure(client.ask, "GET", "/slow")
        assert time.monotonic() - began < 20  # the server never ends
    assert server.connections == 1


def test_however_many_ask_no_more_connections_are_used_than_the_settings_leave_and_nothing_is_said_of_it(
    server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As where many sites are planned at once. Each has all its time, however long it has waited for its turn."""

    def slow(asking: Asking) -> None:
        asking.pause(0.2)
        asking.answer(b"")

    server.route("/", slow)
    bounded = HttpClient(settings(server.url(""), uploads_at_once=1, deadline=2))
    with closing(bounded) as client, ThreadPoolExecutor(60) as threads:
        answers = list(threads.map(lambda _: client.ask("POST", "/").status, range(60)))
    assert answers == [200] * 60
    assert server.most_connections <= 5
    assert caplog.messages == []


def test_no_thread_and_no_file_is_left_behind(server: HttpServer, ask: Callable[..., HttpAnswer]) -> None:
    server.serve("/", b"")
    ask("GET", "/")
    before = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        ask("GET", "/")
    wait_until(lambda: threading.active_count() <= before[0])
    wait_until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before[1])


def test_a_server_that_says_nothing_is_not_waited_for(server: HttpServer) -> None:
    server.route("/", silent())
    with closing(HttpClient(settings(server.url(""), read_timeout=0.2))) as client:
        assert "it sent nothing more for as long as is waited" in failure(client.ask, "GET", "/")[1]
    assert len(server.requests) == 1


def test_an_answer_that_is_too_large_is_not_read(server: HttpServer, ask: Callable[..., HttpAnswer]) -> None:
    server.route("/", endless(OK + b"\r\n", b"x" * 1_000_000))
    with closing(HttpClient(settings(server.url(""), http={"max_document_bytes": 20_000_000}))) as client:
        answers = [failure(client.ask, "GET", "/")]
        answers.append(failure(lambda: client.ask("GET", "/", most_bytes=client.document_bytes)))
    assert answers == [
        ("target.answer", f"{server.url('/')} answered more than {most} bytes, the most that is accepted.")
        for most in ("1,048,576", "20,000,000")
    ]


# -- what is asked again, and what is not

BROKEN = {
    "reset": reset_after(),
    "reset in the headers": reset_after(OK),
    "closed": raw(),
    "cut": raw(OK + b"Content-Length: 100\r\n\r\nx"),
    "503": answering(b"", status=503),
    "502": answering(b"", status=502, headers={"Retry-After": "0"}),
}


@pytest.mark.parametrize("route", BROKEN.values(), ids=BROKEN)
def test_a_question_is_asked_again(server: HttpServer, ask: Callable[..., HttpAnswer], route: Route) -> None:
    server.route("/", in_turn(route, route, answering(b"at last")))
    assert ask("GET", "/").body == b"at last"
    assert len(server.requests) == 3


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("route", BROKEN.values(), ids=BROKEN)
def test_what_may_change_something_is_never_sent_again(
    server: HttpServer, ask: Callable[..., HttpAnswer], route: Route, method: str
) -> None:
    server.route("/", route)
    with suppress(Unanswered):
        assert not ask(method, "/", data=b"<e/>").ok
    assert len(server.requests) == 1


def test_what_never_left_is_said_to_have_never_left() -> None:
    with closing(HttpClient(settings("http://127.0.0.1:9"))) as client, pytest.raises(Unanswered) as caught:
        client.ask("POST", "/", data=b"<e/>")
    assert not caught.value.sent
    assert caught.value.findings[0].message == "http://127.0.0.1:9/ did not answer: Connection refused."


def test_a_server_that_wants_to_be_left_alone_for_long_is(server: HttpServer, ask: Callable[..., HttpAnswer]) -> None:
    server.serve("/", b"", status=503, headers={"Retry-After": "3600"})
    assert ask("GET", "/").status == 503
    assert len(server.requests) == 1


def test_a_host_name_that_is_not_known(ask: Callable[..., HttpAnswer]) -> None:
    with closing(HttpClient(settings("http://repository.invalid"))) as client:
        rule, message = failure(client.ask, "GET", "/")
    assert (rule, message) == ("target.away", "http://repository.invalid/: the host name is not known (DNS).")


# -- encryption


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return tmp_path / "ca.pem"


def secure(certificate: trustme.LeafCert, client_authority: trustme.CA | None = None) -> HttpServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if client_authority:
        # With TLS 1.3 a client may hear of it only after it has sent its request, or of a broken connection.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        client_authority.configure_trust(context)
    server = HttpServer(tls=context)
    server.serve("/", b"secret")
    return server


def test_the_authority_in_the_settings_is_trusted_and_nobody_else(
    authority: trustme.CA, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(ca_file))
    with secure(authority.issue_cert("127.0.0.1")) as server:
        with closing(HttpClient(settings(server.url(""), ca_file=ca_file))) as client:
            assert client.ask("GET", "/").body == b"secret"
        with closing(HttpClient(settings(server.url("")))) as client:
            rule, message = failure(client.ask, "GET", "/")
    assert rule == "target.tls"
    assert "is not accepted: it comes from an authority that this harvester does not trust" in message


def test_certificates_of_servers_are_judged(authority: trustme.CA, ca_file: Path) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    old = authority.issue_cert("127.0.0.1", not_before=long_ago, not_after=long_ago + timedelta(days=30))
    wrong = authority.issue_cert("repository.example.org")
    for certificate, problem in ((old, "it has expired"), (wrong, "it is for another address")):
        with (
            secure(certificate) as server,
            closing(HttpClient(settings(server.url(""), ca_file=ca_file))) as client,
        ):
            rule, message = failure(client.ask, "GET", "/")
            assert (rule, server.requests) == ("target.tls", [])
            assert message.endswith(f"the certificate of the server is not accepted: {problem}.")


def test_a_server_that_does_not_encrypt(server: HttpServer) -> None:
    with closing(HttpClient(settings(server.url("").replace("http:", "https:")))) as client:
        rule, message = failure(client.ask, "GET", "/")
    assert rule == "target.tls"
    assert message.endswith("the server answers without encryption (TLS) on this port.")


def client_files(certificate: trustme.LeafCert, folder: Path) -> dict[str, Path]:
    certificate.cert_chain_pems[0].write_to_path(folder / "client.pem")
    certificate.private_key_pem.write_to_path(folder / "client.key")
    return {"certificate": Path("client.pem"), "key": Path("client.key")}


def test_the_client_has_a_certificate_of_its_own(authority: trustme.CA, ca_file: Path, tmp_path: Path) -> None:
    files = client_files(authority.issue_cert("harvester@example.org"), tmp_path)
    with (
        secure(authority.issue_cert("127.0.0.1"), authority) as server,
        closing(HttpClient(settings(server.url(""), tmp_path, ca_file=ca_file, **files))) as client,
    ):
        assert client.ask("GET", "/").body == b"secret"


def test_a_certificate_of_ours_that_is_not_accepted(authority: trustme.CA, ca_file: Path, tmp_path: Path) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    expired = authority.issue_cert("h@example.org", not_before=long_ago, not_after=long_ago + timedelta(days=30))
    cases: tuple[tuple[dict[str, Path], str], ...] = (
        (client_files(expired, tmp_path), "it has expired"),
        ({}, "the repository gave no further reason; it may ask for a client certificate"),
    )
    with secure(authority.issue_cert("127.0.0.1"), authority) as server:
        for files, problem in cases:
            with closing(HttpClient(settings(server.url(""), tmp_path, ca_file=ca_file, **files))) as client:
                rule, message = failure(client.ask, "GET", "/")
            assert (rule, server.requests) == ("target.login", [])
            assert message.endswith(f"does not accept the harvester's certificate: {problem}.")


def test_a_handshake_that_drips_is_ended_at_the_deadline(tmp_path: Path) -> None:
    with TcpDripper() as dripper:
        url = f"https://127.0.0.1:{dripper.port}"
        with closing(HttpClient(settings(url, deadline=0.3))) as client:
            began = time.monotonic()
            _, message = failure(client.ask, "GET", "/")
            assert time.monotonic() - began < 20  # the server never ends
    assert "after 0.3 seconds" in message


class TcpDripper:
    """Answers a TLS hello by a record of which a byte comes now and then."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._drip, daemon=True)

    def __enter__(self) -> TcpDripper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._listener.close()

    def _drip(self) -> None:
        connection, _ = self._listener.accept()
        with connection:
            connection.sendall(b"\x16\x03\x03\x10\x00")
            while not self._ended.wait(0.05):
                try:
                    connection.sendall(b"\x02")
                except OSError:
                    return


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ({"certificate": "missing.pem"}, "cannot be read from {folder}/missing.pem: No such file or directory."),
        ({"certificate": "bad.pem"}, "cannot be used: they must be PEM, belong together, and the key may not be"),
        ({"ca_file": "bad.pem"}, "cannot be used: it holds no certificates in PEM form."),
        ({"proxy": "socks5://127.0.0.1:1080"}, "through an http:// or https:// proxy, not through SOCKS."),
        ({"proxy": "http://127.0.0.1:9", "proxy_password": "file:bad.pem"}, "proxy names no user"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once(
    target: dict[str, object], problem: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.pem").write_text("no certificate")
    (tmp_path / "bad.pem").chmod(0o600)
    with pytest.raises(SettingsError) as caught:
        HttpClient(settings("https://repository.example.org", tmp_path, **target))
    assert problem.format(folder=tmp_path) in str(caught.value)


def test_no_secret_reaches_the_log(
    server: HttpServer, ask: Callable[..., HttpAnswer], caplog: pytest.LogCaptureFixture
) -> None:
    server.route("/", in_turn(answering(b"", status=503), answering(b"")))
    with caplog.at_level(logging.DEBUG):
        ask("GET", "/", headers={"Authorization": "Bearer secret-token"})
        ask("POST", "/", data={"password": "secret-password"})
    assert caplog.messages
    assert "secret" not in caplog.text


def test_an_answer_may_be_compressed(server: HttpServer, ask: Callable[..., HttpAnswer]) -> None:
    server.serve("/", gzip.compress(b"<eml/>" * 1000), headers={"Content-Encoding": "gzip"})
    assert ask("GET", "/").body == b"<eml/>" * 1000
    server.serve("/", b"no gzip", headers={"Content-Encoding": "gzip"})
    assert failure(ask, "GET", "/")[0] == "target.away"


def test_an_early_refusal_of_a_large_body_is_heard(server: HttpServer, ask: Callable[..., HttpAnswer]) -> None:
    """A server may answer before it has read everything."""

    def refuse(asking: Asking) -> None:
        asking.answer(b"too large", 413)
        asking.end()

    server.route("/", refuse)
    assert ask("POST", "/", data=b"x" * 5_000_000).status == 413


def test_failures_are_target_errors() -> None:
    assert issubclass(Unanswered, TargetError)
