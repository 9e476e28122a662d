"""`run --dry-run` and `check` say what a run would say, and write nothing anywhere."""

import hashlib
import json
from pathlib import Path

import pytest
from sqlalchemy import inspect

from support.databases import on_one_database
from support.harvester import SETTINGS, Harvester, eml, harvest_list, publish
from support.http_server import HttpServer


def fingerprint(harvester: Harvester) -> dict[str, str]:
    """Every file of the installation, and every table's content."""
    tables = inspect(harvester.engine).get_table_names()
    found = {table: str(harvester.rows(f"SELECT * FROM {table} ORDER BY 1")) for table in tables}
    for file in harvester.folder.rglob("*"):
        if file.is_file() and not file.name.startswith("metaharvest.db"):
            found[str(file)] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


@pytest.mark.quick
@on_one_database
def test_a_dry_run_says_what_the_run_would_say_and_writes_nothing(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    harvester.add_site("site", url)
    before = fingerprint(harvester)
    said = harvester("run", "--dry-run", "--date", "2026-11-20")
    assert said.code == 0
    assert "site" in said.out
    assert "nothing was written" in said.out
    rehearsed = json.loads(harvester("run", "--dry-run", "--json", "--date", "2026-11-20").out)["sites"][0]
    assert fingerprint(harvester) == before
    real = harvester.run("2026-11-20")["sites"][0]
    times = {"started_at", "ended_at", *(name for name in real if name.endswith("_seconds"))}
    assert {k: v for k, v in rehearsed.items() if k not in times} == {k: v for k, v in real.items() if k not in times}


def test_a_dry_run_knows_what_the_target_holds_and_what_waits_to_be_retried(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", "a.2.1")
    server.serve("/a.2.1.xml", b"busy", status=503)
    harvester.add_site("site", url, unit="months", datenextharvest="2026-11-20")
    harvester.run("2026-11-20")
    server.serve("/a.2.1.xml", eml("a.2.1"))
    rehearsed = json.loads(harvester("run", "--dry-run", "--json", "--date", "2026-11-21").out)
    assert [(site["kind"], site["inserted"]) for site in rehearsed["sites"]] == [("retry", 1)]
    forced = json.loads(harvester("run", "--dry-run", "--json", "--force", "--date", "2026-11-21").out)["sites"][0]
    assert (forced["unchanged"], forced["inserted"]) == (1, 1)


def test_a_dry_run_goes_on_beside_a_real_run(harvester: Harvester) -> None:
    from metaharvest.database.engine import run_lock

    with run_lock(harvester.engine):
        assert harvester("run", "--dry-run").code == 0


@pytest.fixture
def contact(tmp_path: Path) -> Harvester:
    """A site contact's machine: settings that allow loopback, no database."""
    installed = Harvester(tmp_path)
    installed.close()
    for file in tmp_path.glob("metaharvest.db*"):
        file.unlink()
    return installed


def test_check_needs_no_database_and_gives_tomorrows_report(contact: Harvester, server: HttpServer) -> None:
    server.serve("/bad.xml", eml("a.2.1").replace(b"<contact>", b"<contat>").replace(b"</contact>", b"</contat>"))
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/bad.xml"))])
    said = contact("check", url)
    assert said.code == 1
    assert "names 2 documents: 1 would be added and 1 is not valid." in said.out
    assert "contat" in said.out
    assert "nothing was written" in said.out
    assert sorted(file.name for file in contact.folder.iterdir()) == ["metaharvest.toml"]


def test_check_of_a_good_list_exits_with_zero(contact: Harvester, server: HttpServer) -> None:
    assert contact("check", publish(server, "a.1.1")).code == 0


def test_check_takes_a_list_from_a_file(contact: Harvester, server: HttpServer, tmp_path: Path) -> None:
    publish(server, "a.1.1")
    file = tmp_path / "my list.xml"
    file.write_bytes(harvest_list([("a.1.1", server.url("/a.1.1.xml"))]))
    said = contact("check", str(file), "--json")
    assert said.code == 0
    assert json.loads(said.out)["sites"][0]["inserted"] == 1


def test_check_of_an_invalid_list_tells_line_and_remedy(contact: Harvester, tmp_path: Path) -> None:
    file = tmp_path / "list.xml"
    file.write_text(
        '<h:harvestList xmlns:h="eml://ecoinformatics.org/harvestList">\n<document><docid><scope>a</scope>'
        "<identifier>1</identifier>\n<revision>two</revision></docid><documentType>t</documentType>"
        "<documentURL>https://example.org/x.xml</documentURL></document></h:harvestList>"
    )
    said = contact("check", str(file))
    assert said.code == 1
    assert "harvest list could not be read" in said.out
    text = " ".join(said.out.split())
    assert "'two' is not a whole number" in text
    assert f"{file}:3 error list.revision a.1.two" in text
    assert "3 | <revision>two</revision></docid>" in text


@pytest.mark.parametrize(
    "argument", ["/no/such/list.xml", "ftp://example.org/list.xml", "http://", "https://exa mple/", ""]
)
def test_check_of_something_that_is_no_list_ends_in_a_sentence(contact: Harvester, argument: str) -> None:
    said = contact("check", argument)
    assert said.code in (1, 2)
    assert "Traceback" not in said.out + said.err
    assert len(said.out + said.err) > 30


def test_check_of_a_registered_list_uses_the_sites_settings_and_the_repository(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1")
    harvester.add_site("alder", url, options='{"package_id_mismatch": "error"}')
    harvester.run("2026-11-20")
    server.serve("/a.1.2.xml", eml("a.1.9"))
    publish(server, "a.1.1", also=[("a.1.2", server.url("/a.1.2.xml"))])
    before = fingerprint(harvester)
    report = json.loads(harvester("check", url, "--json").out)
    site = report["sites"][0]
    assert (site["site_name"], site["unchanged"], site["invalid"]) == ("alder", 1, 1)
    assert [finding["rule"] for finding in report["findings"]] == ["eml.package-id-mismatch"]
    assert fingerprint(harvester) == before


def test_without_allow_networks_a_private_address_is_refused_also_in_a_rehearsal(
    tmp_path: Path, server: HttpServer
) -> None:
    strict = Harvester(tmp_path, SETTINGS.replace('allow_networks = ["127.0.0.0/8"]', ""))
    said = strict("check", publish(server, "a.1.1"))
    assert said.code == 1
    assert "not public" in said.out or "public" in said.out
    assert server.requests == []
    strict.close()


def test_check_tells_nothing_that_is_not_so(contact: Harvester, server: HttpServer, tmp_path: Path) -> None:
    url = publish(server, "a.1.1", "a.2.1")
    file = tmp_path / "list.xml"
    file.write_bytes(harvest_list([(docid, server.url(f"/{docid}.xml")) for docid in ("a.1.1", "a.2.1")]))
    for argument in (url, str(file)):
        said = contact("check", argument)
        words = " ".join(said.out.split())
        assert "names 2 documents: 2 would be added." in words
        assert words.endswith("This was a rehearsal: nothing was written.")
        for untrue in (
            "register",
            "contact@localhost",
            "attached",
            "were added",
            "this message",
            "mail",
            "Next harvest",
        ):
            assert untrue not in words
        assert "metaharvest init" not in said.out + said.err


@on_one_database
def test_check_shows_a_registered_site_as_it_is_registered(harvester: Harvester, server: HttpServer) -> None:
    old = server.url("/old.xml")
    harvester.add_site("alder", old, enabled=False)
    said = harvester("check", publish(server, "a.1.1"), "--site", "alder")
    words = " ".join(said.out.split())
    assert "names 1 document: 1 would be added." in words
    assert f"Rehearsed as the site alder, whose list is {old}, which is switched off." in words


@on_one_database
def test_a_dry_run_speaks_of_no_attached_table(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    assert "attached" not in harvester("run", "--dry-run").out


def test_a_dry_run_is_called_a_rehearsal_and_not_run_1(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    said = harvester("run", "--dry-run").out
    assert "\nRehearsal, started " in said
    assert "Run 1" not in said
