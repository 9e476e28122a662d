"""A site's own certificate authority: trusted for that site's requests, and for no other's."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from metaharvest.config.field_types import check_network
from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.model import Network, Reach
from support.fetching import WaitingFetcher as Fetcher
from support.harvester import SETTINGS, Harvester, harvest_list, publish
from support.http_server import HttpServer

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
LOOPBACK: tuple[Network, ...] = (check_network("127.0.0.0/8"),)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    file = tmp_path / "site-ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return file


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[HttpServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with HttpServer(tls=context) as server:
        yield server


def test_one_site_is_trusted_and_its_neighbour_on_the_same_server_is_not(
    harvester: Harvester, secure: HttpServer, ca_file: Path
) -> None:
    for name in ("a", "b", "c"):
        url = publish(secure, f"{name}.1.1", f"{name}.2.1", path=f"/{name}.xml")
        options = ["--ca-file", ca_file.name] if name == "b" else []
        assert harvester("sites", "add", name, "--list-url", url, "--contact", "a@example.org", *options).code == 0
    run = harvester.run("2026-11-20", "--force")
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {
        "a": "list-failed",
        "b": "succeeded",
        "c": "list-failed",
    }
    assert set(harvester.held()) == {"b.1.1", "b.2.1"}
    assert {rule for _, level, rule in harvester.findings(run["run_id"]) if level == "error"} == {"http.tls"}
    assert {site["status"] for site in harvester.run("2026-11-21", "--force")["sites"]} == {"list-failed", "succeeded"}


def test_a_connection_of_one_site_is_not_lent_to_another(database: object, secure: HttpServer, ca_file: Path) -> None:
    url = secure.serve("/x", b"<eml/>")
    with Fetcher(HttpSettings(allow_networks=LOOPBACK), name="x", administrator=None) as fetcher:
        for _ in range(2):
            assert fetcher.fetch(url, reach=Reach(ca_file=ca_file))[1] == b"<eml/>"
            with pytest.raises(FetchError) as caught:
                fetcher.fetch(url)
            assert caught.value.findings[0].rule == "http.tls"
        assert (secure.connections, len(secure.requests)) == (3, 2)


def test_it_is_trusted_beside_the_one_in_the_settings_and_where_the_site_redirects_to(
    database: object, secure: HttpServer, ca_file: Path, tmp_path: Path
) -> None:
    other, other_file, context = trustme.CA(), tmp_path / "other.pem", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    other.cert_pem.write_to_path(str(other_file))
    other.issue_cert("127.0.0.1").configure_cert(context)
    http = HttpSettings(allow_networks=LOOPBACK, ca_file=other_file)
    with HttpServer(tls=context) as first, Fetcher(http, name="x", administrator=None) as fetcher:
        url = first.redirect("/old", secure.serve("/new", b"<eml/>"))
        assert fetcher.fetch(url, reach=Reach(ca_file=ca_file))[1] == b"<eml/>"
        with pytest.raises(FetchError):
            fetcher.fetch(url)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_that_cannot_be_used_fails_its_site_alone_and_the_doctor_names_it(
    harvester: Harvester, server: HttpServer, ca_file: Path, content: str | None
) -> None:
    harvester.add_site("bad", publish(server, "a.1.1"), options='{"ca_file": "site-ca.pem"}')
    harvester.add_site("good", publish(server, "b.1.1", path="/b.xml"))
    assert "certificate" not in harvester("doctor").out
    ca_file.unlink()
    if content is not None:
        ca_file.write_text(content, encoding="utf-8")
    run = harvester.run("2026-11-20")
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {"bad": "list-failed", "good": "succeeded"}
    assert harvester.findings(run["run_id"])[0][2] == "site.ca-file"
    said = " ".join(harvester("doctor").out.split())
    assert f"bad: the certificate authorities in {ca_file} cannot be used" in said


def test_documents_that_are_not_asked_for_because_of_the_file_are_not_the_servers_failure(
    harvester: Harvester, server: HttpServer, ca_file: Path
) -> None:
    """The list is one of the machine's own files, so only the documents need the authorities."""
    docids = [f"a.{number}.1" for number in range(12)]
    publish(server, *docids)
    (harvester.folder / "list.xml").write_bytes(harvest_list((each, server.url(f"/{each}.xml")) for each in docids))
    own = f'[sites.site]\nfile_folder = "{harvester.folder}"\n'
    harvester.config.write_text(harvester.config.read_text() + own, encoding="utf-8")
    harvester.add_site("site", (harvester.folder / "list.xml").as_uri(), options='{"ca_file": "site-ca.pem"}')
    ca_file.unlink()
    run = harvester.run("2026-11-20")
    assert (run["sites"][0]["deferred"], run["sites"][0]["access_error"], server.requests) == (12, 0, [])
    [(rule, message)] = harvester.rows("SELECT rule, error_message FROM harvest_detail_log")
    assert rule == "site.ca-file"
    assert "12 documents were put off" in message


def test_the_option_is_shown_checked_at_once_and_taken_back(harvester: Harvester, ca_file: Path) -> None:
    harvester.add_site("alder", "https://alder.example.org/list.xml", options='{"allow_networks": ["10.0.0.0/8"]}')
    assert harvester("sites", "edit", "alder", "--ca-file", "site-ca.pem").code == 0
    assert "site-ca.pem" in harvester("sites", "show", "alder").out
    stored = '{"allow_networks": ["10.0.0.0/8"], "ca_file": "site-ca.pem"}'
    assert harvester.rows("SELECT options FROM harvest_site_schedule") == [(stored,)]
    assert harvester("sites", "edit", "alder", "--package-id-mismatch", "error").code == 0
    refused = harvester("sites", "edit", "alder", "--ca-file", "none.pem")
    assert (refused.code, "none.pem cannot be used: No such file" in refused.err) == (2, True)
    assert "site-ca.pem" in harvester("sites", "show", "alder").out
    assert harvester("sites", "edit", "alder", "--ca-file", "none").code == 0
    assert "site-ca.pem" not in harvester("sites", "show", "alder").out


def test_certificates_that_the_settings_name_and_that_cannot_be_used_stop_the_run_before_it_begins(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder", publish(server, "a.1.1"))
    harvester.config.write_text(f'{SETTINGS}ca_file = "gone.pem"\n', encoding="utf-8")
    said = harvester("run")
    assert (said.code, "gone.pem ([http] ca_file) cannot be used" in said.err) == (2, True)
    assert harvester.rows("SELECT count(*) FROM harvest_run") == [(0,)]
    assert "PROBLEM  ca_file of [http]" in harvester("doctor").out
