"""Names and addresses from everywhere: host names in both forms, IPv6, trailing dots, paths, email addresses."""

from __future__ import annotations

import hashlib
import json
import socket
import ssl
from pathlib import Path

import pytest
import trustme

from support.harvester import SETTINGS, Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.mails import text_of

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def test_host_names_and_paths_may_be_written_in_either_form(harvester: Harvester, server: HttpServer) -> None:
    """The server plays the proxy, so that names need not be resolved and the request shows the URL as it travels."""
    harvester.config.write_text(f'{SETTINGS}proxy = "{server.url("")}"\n', encoding="utf-8")
    book = "xn--bcher-kva.example"
    urls = {
        "a.1.1": ("http://bücher.example/größe.xml", f"http://{book}/gr%C3%B6%C3%9Fe.xml"),
        "a.2.1": (f"http://{book}/gr%C3%B6%C3%9Fe-2.xml", f"http://{book}/gr%C3%B6%C3%9Fe-2.xml"),
        "a.3.1": ("http://BÜCHER.example./生态?年=2026", f"http://{book}./%E7%94%9F%E6%80%81?%E5%B9%B4=2026"),
        "a.4.1": ("http://生态.example/eml.xml", "http://xn--t7ty38b.example/eml.xml"),
    }
    for docid, (_, asked) in urls.items():
        server.serve(asked, eml(docid))
    list_url = "http://bücher.example/liste/übersicht.xml"
    entries = harvest_list([(docid, written) for docid, (written, _) in urls.items()])
    server.serve(f"http://{book}/liste/%C3%BCbersicht.xml", entries)
    added = harvester("sites", "add", "Bücher & Co", "--list-url", list_url, "--contact", "jörg@bücher.example")
    assert added.code == 0, added.err
    run = harvester.run("2026-11-20", "--force")
    assert harvester.outcomes(run["run_id"]) == dict.fromkeys(urls, "inserted")
    report = next(mail for mail in harvester.mails() if "Bücher & Co" in mail["Subject"])
    assert list_url in text_of(report).replace("\n", "")
    # A local part that is not ASCII stands in no header, which a message has to have nevertheless.
    assert report.get_all("To") == ["undisclosed-recipients:;"]
    [number] = [row["report_id"] for row in json.loads(harvester("reports", "--site", "Bücher & Co", "--json").out)]
    assert "\nTo: undisclosed-recipients:;" in harvester("reports", "show", str(number), "--raw").out
    assert list_url in harvester("sites", "show", "Bücher & Co").out
    assert harvester.rows("SELECT recipient, status FROM report_delivery WHERE recipient LIKE 'j%'") == [
        ("jörg@bücher.example", "sent")
    ]


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_site_may_be_at_an_ipv6_address(harvester: Harvester) -> None:
    harvester.config.write_text(SETTINGS.replace('"127.0.0.0/8"', '"::1/128"'), encoding="utf-8")
    with HttpServer(host="::1") as server:
        url = publish(server, "a.1.1")
        assert url.startswith("http://[::1]:")
        harvester.add_site("alder", url.replace("[::1]", "[0:0:0:0:0:0:0:1]"))
        assert harvester.run("2026-11-20")["sites"][0]["inserted"] == 1
        assert len(server.asked("/a.1.1.xml")) == 1


def test_a_host_name_may_end_in_a_dot_also_on_a_certificate(harvester: Harvester, tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").configure_cert(context)
    harvester.config.write_text(f'{SETTINGS}ca_file = "ca.pem"\n', encoding="utf-8")
    with HttpServer(tls=context) as server:
        server.serve("/a.1.1.xml", eml("a.1.1"))
        server.serve("/list.xml", harvest_list([("a.1.1", server.url("/a.1.1.xml", host="localhost."))]))
        harvester.add_site("alder", server.url("/list.xml", host="LOCALHOST."))
        assert harvester.run("2026-11-20")["sites"][0]["inserted"] == 1


def test_the_sender_must_be_an_address_that_every_mail_server_takes(harvester: Harvester) -> None:
    text = SETTINGS.replace("harvester@example.org", "härvester@example.org")
    harvester.config.write_text(text, encoding="utf-8")
    said = harvester("doctor")
    assert said.code == 1
    assert "before the @ it must be in ASCII letters" in " ".join(said.out.split())
    harvester.config.write_text(text.replace("härvester@example.org", "h@bücher.example"), encoding="utf-8")
    assert harvester.run("2026-11-20")["exit_code"] == 0
    assert harvester.mails()[0]["From"].addresses[0].addr_spec == "h@xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("declared", "saved", "header"),
    [
        ("", "ISO-8859-1", "ISO-8859-1"),
        ("", "windows-1252", "windows-1252"),
        ("", "UTF-8", "ISO-8859-1"),
        ("ISO-8859-1", "ISO-8859-1", "UTF-8"),
        ("UTF-8", "UTF-8", "ISO-8859-1"),
    ],
)
def test_the_charset_of_the_http_header_counts_for_a_list_that_declares_none_and_is_not_utf_8(
    harvester: Harvester, server: HttpServer, declared: str, saved: str, header: str
) -> None:
    url = server.url("/größe.xml")
    server.serve("/gr%C3%B6%C3%9Fe.xml", eml("a.1.1"))
    text = harvest_list([("a.1.1", url)]).decode()
    if declared:
        text = text.replace("?>", f' encoding="{declared}"?>', 1)
    headers = {"Content-Type": f"text/xml; charset={header}"}
    harvester.add_site("alder", server.serve("/list.xml", text.encode(saved), headers=headers))
    checked = harvester("check", server.url("/list.xml"))
    assert checked.code == 0, checked.out
    run = harvester.run("2026-11-20", "--force")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted"}
    assert harvester.run("2026-11-21", "--force")["exit_code"] == 0
    known = harvester.rows("SELECT list_sha256 FROM harvest_site_schedule")
    assert known == [(hashlib.sha256(text.encode(saved)).hexdigest(),)]
