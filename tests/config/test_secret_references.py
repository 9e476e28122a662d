"""Secrets: found behind their references, refused where they stand themselves, and never shown."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring
from keyring.errors import KeyringLocked

from metaharvest.cli.json_lines import json_formatter
from metaharvest.config.secret_references import MaskingFormatter, check_reference, masked, resolve_secret
from metaharvest.config.settings import load
from metaharvest.errors import SettingsError
from metaharvest.services.installation import shown_settings
from support.cli import process
from support.harvester import SETTINGS, Harvester, publish
from support.http_server import HttpServer

sqlite_only = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
SECRET = "correct horse/battery"


class InMemory(KeyringBackend):
    """A keyring for tests; `locked`: nobody is there to unlock it."""

    priority = 1

    def __init__(self) -> None:
        self.entries = {("https://mail.example.org", "harvester"): SECRET}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("no prompt")
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password


@pytest.fixture
def in_memory() -> Iterator[InMemory]:
    before = keyring.get_keyring()
    backend = InMemory()
    keyring.set_keyring(backend)
    yield backend
    keyring.set_keyring(before)


def refused(reference: str, folder: Path = Path()) -> str:
    with pytest.raises(SettingsError) as caught:
        resolve_secret(reference, folder)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def test_a_secret_in_the_keyring_is_found_by_service_and_user_name(in_memory: InMemory) -> None:
    assert resolve_secret("keyring:https://mail.example.org/harvester", Path()) == SECRET


def test_whatever_keeps_the_keyring_from_answering_is_a_sentence(
    in_memory: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "keyring set 'mail' 'nobody'" in refused("keyring:mail/nobody")
    in_memory.locked = True
    assert "KeyringLocked" in refused("keyring:mail/nobody")
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]
    assert "no keyring that a program can use" in refused("keyring:mail/nobody")
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert "pip install 'metaharvest[keyring]'" in refused("keyring:mail/nobody")


@pytest.mark.slow
def test_a_keyring_of_a_kind_that_is_not_there_is_one_problem_among_the_others(tmp_path: Path) -> None:
    secret = {"PYTHON_KEYRING_BACKEND": "nope.K", "METAHARVEST_MAIL__PASSWORD": "keyring:svc/x"}
    said = process(tmp_path, "doctor", **secret)
    assert said.returncode == 1
    assert "password of [mail]: The secret keyring:svc/x cannot be read from the keyring" in said.stdout
    assert "monitor: " in said.stdout
    assert "Traceback" not in said.stderr


@pytest.mark.parametrize("value", ["hunter2", "env:", "file:", "keyring:mail", "keyring:/x", "keyring:x/", "ENV:NAME"])
def test_what_is_no_reference_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_reference(value)
    assert "hunter2" not in str(caught.value)


def test_a_secret_with_letters_that_json_escapes_is_masked_in_json_lines(tmp_path: Path) -> None:
    secrets = ('pa"ss\\word', "pässwort1")
    for secret in secrets:
        (tmp_path / "password").write_text(secret, encoding="utf-8")
        resolve_secret("file:password", tmp_path)
        try:
            raise ValueError(secret)
        except ValueError:
            error = sys.exc_info()
        record = logging.LogRecord("smtp", logging.ERROR, "", 0, "535 %s", (secret,), error)
        line = json.loads(json_formatter().format(record))
        assert line["message"] == "535 (not shown)"
        assert line["exc_info"].endswith("ValueError: (not shown)")


def test_a_secret_that_was_read_is_masked_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n", encoding="utf-8-sig")
    (tmp_path / "secret").chmod(0o600)
    assert resolve_secret("file:secret", tmp_path) == SECRET
    text = masked(f"535 {SECRET}, http://me:correct%20horse%2Fbattery@proxy/ Y29ycmVjdCBob3JzZS9iYXR0ZXJ5")
    assert text == "535 (not shown), http://proxy/ (not shown)"


def test_a_log_record_with_its_traceback_shows_neither_secrets_nor_credentials(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET, encoding="utf-8")
    (tmp_path / "secret").chmod(0o600)
    resolve_secret("file:secret", tmp_path)
    try:
        raise ZeroDivisionError(f"http://anna:sesame@example.org/x {SECRET}")
    except ZeroDivisionError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "failed for %s", (SECRET,), sys.exc_info())
    text = MaskingFormatter().format(record)
    assert "Traceback" in text
    assert "http://example.org/x" in text
    assert SECRET not in text
    assert "sesame" not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see http://u:p@a.org/x and write to me@a.org", "see http://a.org/x and write to me@a.org"),
        ("http://a.org, or mail me@a.org", "http://a.org, or mail me@a.org"),
        ("http://u:p/w@a.org/x", "http://a.org/x"),
        ("http://u:p?w#@a.org/x", "http://a.org/x"),
        ("http://a.org:8080/@me/x", "http://a.org:8080/@me/x"),
        ("http://a.org/u:p@x", "http://a.org/u:p@x"),
        ("http://[::1]/@me", "http://[::1]/@me"),
        ("(1, 'http://u:p@a.org/x', 'me@a.org')", "(1, 'http://a.org/x', 'me@a.org')"),
        ("http://u:p:/q@r@a.org/x", "http://a.org/x"),
        ("http://u:/x, http://u:p@a.org/x", "http://u:/x, http://a.org/x"),
        ("http://a.org:80/?u=http://u:p/w@b.org/", "http://a.org:80/?u=http://b.org/"),
    ],
)
def test_credentials_are_taken_out_of_a_text_and_nothing_else(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    "settings",
    [
        '[database]\nurl = "postgresql+psycopg://me:{}@localhost/x"\n',
        '[database]\nurl = "postgresql+psycopg://localhost/x?user=me&password={}"\n',
        '[database]\nurl = "mysql+pymysql://localhost/x?passwd={}"\n',
        '[database]\npassword = "{}"\n',
        '[database]\npassword = ["{}"]\n',
        '[mail]\npassword = "{}"\n',
        '[http]\nproxy = "http://me:{}@proxy.example.org:3128"\n',
        '[http]\nproxy = "me:{}@proxy.example.org"\n',
        '[http]\nproxy_password = "{}"\n',
        '[pipeline]\nsearch = "https://me:{}@search.example.org:9200"\n',
        '[pipeline]\nsearch_password = "{}"\n',
    ],
)
def test_a_secret_in_the_settings_is_refused_with_the_remedy_and_not_shown(tmp_path: Path, settings: str) -> None:
    file = tmp_path / "metaharvest.toml"
    file.write_text(settings.format("s3/cr@et"), encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load(file, {})
    (problem,) = caught.value.problems
    assert "= (not shown): " in problem
    assert "cr@et" not in problem
    assert "env:NAME" in problem or "[" in settings.partition("=")[2]


def test_the_search_server_gets_its_password_from_where_the_reference_says(tmp_path: Path) -> None:
    file = tmp_path / "metaharvest.toml"
    (tmp_path / "secret").write_text("s3/cr@et\n", encoding="utf-8")
    user = 'search = "https://me@search.example.org:9200/alias"\n'
    file.write_text(f'[pipeline]\n{user}search_password = "file:secret"\n', encoding="utf-8")
    settings = load(file, {})
    assert settings.search_server() == "https://me:s3%2Fcr%40et@search.example.org:9200/alias"
    assert "s3" not in masked(f"cannot reach {settings.search_server()}")
    assert "cr@et" not in str([each.value for each in shown_settings(settings)])
    file.write_text('[pipeline]\nsearch_password = "file:secret"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="search names no user"):
        load(file, {}).search_server()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////srv/a:b@c/x.db",
        "postgresql+psycopg://me@localhost:5432/x?application_name=a",
        "postgresql+psycopg://me:@localhost/x",
    ],
)
def test_a_url_without_a_password_is_taken(tmp_path: Path, url: str) -> None:
    file = tmp_path / "metaharvest.toml"
    file.write_text(f'[database]\nurl = "{url}"\n[http]\nproxy = "http://me@proxy:3128"\n', encoding="utf-8")
    assert load(file, {}).database.url == url


def through_proxy(harvester: Harvester, server: HttpServer, reference: str, user: str = "anna@") -> str:
    """Have the server be the proxy to itself, with a password; the URL of a list with one document."""
    url = publish(server, "a.1.1")
    for path in ("/list.xml", "/a.1.1.xml"):
        server.route(server.url(path), server._route(path))
    proxy = f'proxy = "http://{user}127.0.0.1:{server.port}"\nproxy_password = "{reference}"\n'
    harvester.config.write_text(SETTINGS + proxy, encoding="utf-8")
    return url


@sqlite_only
def test_the_proxy_gets_its_password_from_where_the_reference_says(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", "s3/cr@et")
    harvester.add_site("alder", through_proxy(harvester, server, "env:PROXY_PASSWORD"))
    assert harvester.run("2026-11-20")["sites"][0]["inserted"] == 1
    assert {request.headers["proxy-authorization"] for request in server.requests} == {"Basic YW5uYTpzMy9jckBldA=="}
    assert "env:PROXY_PASSWORD is there" in harvester("doctor").out

    monkeypatch.delenv("PROXY_PASSWORD")
    said = harvester("run")
    assert (said.code, "set the environment variable PROXY_PASSWORD" in said.err) == (2, True)
    assert harvester.rows("SELECT count(*) FROM harvest_run") == [(1,)]
    through_proxy(harvester, server, "env:PROXY_PASSWORD", user="")
    assert "proxy names no user" in harvester("run").err


@sqlite_only
def test_a_file_that_everybody_may_read_is_told_by_the_doctor_and_by_a_run_that_uses_it(
    harvester: Harvester, server: HttpServer
) -> None:
    secret = harvester.folder / "proxy-password"
    secret.write_text("sesame-open", encoding="utf-8")
    harvester.add_site("alder", through_proxy(harvester, server, "file:proxy-password"))
    for mode, warned in ((0o644, True), (0o600, False)):
        secret.chmod(mode)
        out, err = harvester.start("run", "--force").communicate(timeout=60)
        assert ("chmod 600" in err, err.count("WARNING")) == (warned, int(warned)), err
        assert ("chmod 600" in harvester("doctor").out) is warned
        assert "sesame-open" not in out + err
    assert set(harvester.held()) == {"a.1.1"}


BROKEN = "UPDATE harvest_site_schedule SET ldappwd = 'hunter2-plain' WHERE name = 'alder'"


def test_a_plain_password_in_the_schedule_breaks_its_row_alone_and_is_shown_nowhere(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.add_site("basalt", publish(server, "b.1.1", path="/b.xml"))
    harvester.rows(BROKEN)
    said = [
        harvester(*command)
        for command in (
            ("doctor",),
            ("sites", "list"),
            ("sites", "list", "--json"),
            ("sites", "show", "alder"),
            ("sites", "show", "alder", "--json"),
            ("check", server.url("/list.xml")),
            ("run", "--dry-run"),
            ("run", "--date", "2026-11-20"),
            ("log",),
            ("runs", "--json"),
        )
    ]
    assert all("hunter2" not in each.out + each.err for each in said)
    sentence = "ldappwd (not shown) cannot be used, since a secret is never written here"
    assert all(sentence in " ".join(said[command].out.split()) for command in (0, 7))
    assert "`metaharvest sites edit NAME --ldappwd REFERENCE` (or `none`) corrects it." in said[0].out
    assert not any("alder: alder:" in each.out for each in said)
    assert set(harvester.held()) == {"b.1.1"}
    mails = [mail.as_string() for mail in harvester.mails()]
    assert any("ldappwd" in mail for mail in mails)
    assert not any("hunter2" in mail for mail in mails)


@sqlite_only
def test_sites_edit_mends_the_password_and_takes_references_only(harvester: Harvester) -> None:
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    harvester.rows(BROKEN)
    refused = harvester("sites", "edit", "alder", "--ldappwd", "hunter2-other")
    assert (refused.code, "hunter2" in refused.err) == (2, False)
    assert harvester("sites", "edit", "alder", "--ldapdn", "uid=alder,o=lter", "--ldappwd", "env:ALDER").code == 0
    shown = harvester("sites", "show", "alder").out
    assert "uid=alder,o=lter" in shown
    assert "env:ALDER" in shown
    assert "environment variable ALDER" in harvester("doctor").out
    assert harvester("sites", "edit", "alder", "--ldapdn", "none", "--ldappwd", "none").code == 0
    assert harvester.rows("SELECT ldapdn, ldappwd FROM harvest_site_schedule") == [(None, None)]
