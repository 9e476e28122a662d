"""Sites that are harvested from files of this machine, where the settings allow it, and from nowhere else."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from support.harvester import SETTINGS, Harvester, eml, harvest_list
from support.http_server import HttpServer

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site's folder with a list of two documents."""
    folder = tmp_path / "alder creek"
    folder.mkdir()
    for docid in ("a.1.1", "a.2.1"):
        (folder / f"{docid}.xml").write_bytes(eml(docid))
    write_list(folder, "a.1.1", "a.2.1")
    return folder


def write_list(folder: Path, *docids: str, also: tuple[tuple[str, str], ...] = ()) -> None:
    entries = [(docid, (folder / f"{docid}.xml").as_uri()) for docid in docids]
    (folder / "list.xml").write_bytes(harvest_list([*entries, *also]))


def allow(harvester: Harvester, name: str = "alder", folder: str = "alder creek") -> None:
    harvester.config.write_text(f'{SETTINGS}\n[sites."{name}"]\nfile_folder = "{folder}"\n', encoding="utf-8")


def test_a_site_is_harvested_from_its_folder_as_from_a_web_server(harvester: Harvester, site: Path) -> None:
    allow(harvester)
    harvester.add_site("alder", (site / "list.xml").as_uri())
    first = harvester.run("2026-11-20")
    assert harvester.outcomes(first["run_id"]) == {"a.1.1": "inserted", "a.2.1": "inserted"}
    assert harvester.held() == {docid: eml(docid) for docid in ("a.1.1", "a.2.1")}
    digests = [hashlib.sha256(eml(docid)).hexdigest() for docid in ("a.1.1", "a.2.1")]
    assert harvester.rows("SELECT sha256 FROM document_revision ORDER BY document_id") == [(d,) for d in digests]

    second = harvester.run("2026-11-21")
    assert "HarvestListUnchanged" in harvester.operations(second["run_id"])
    assert second["sites"][0]["unchanged"] == 2

    (site / "a.1.2.xml").write_bytes(eml("a.1.2"))
    write_list(site, "a.1.2", "a.2.1")
    assert harvester.outcomes(harvester.run("2026-11-22")["run_id"]) == {"a.1.2": "updated"}


def test_a_list_on_a_web_server_may_name_files_in_the_folder_and_none_outside(
    harvester: Harvester, server: HttpServer, site: Path
) -> None:
    allow(harvester)
    (harvester.folder / "a.3.1.xml").write_bytes(eml("a.3.1"))
    (site / "page.html").write_bytes(b"<!DOCTYPE html><html><head><title>Log in</title></head></html>")
    paths = {"a.1.1": site / "a.1.1.xml", "a.3.1": site / "../a.3.1.xml", "a.4.1": site / "page.html", "a.5.1": site}
    server.serve(
        "/list.xml", harvest_list([(docid, f"file://{path}") for docid, path in paths.items()]).replace(b" c", b"%20c")
    )
    harvester.add_site("alder", server.url("/list.xml"))
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"])["a.1.1"] == "inserted"
    assert set(harvester.held()) == {"a.1.1"}
    rules = {document: rule for document, _, rule in harvester.findings(run["run_id"])}
    assert rules == {"a.3": "file.not-allowed", "a.4": "http.html-page", "a.5": "file.not-a-file"}


def test_without_the_setting_a_site_fails_alone_with_the_setting_in_the_remedy(
    harvester: Harvester, server: HttpServer, site: Path
) -> None:
    allow(harvester, "another site")
    harvester.add_site("alder", (site / "list.xml").as_uri())
    server.serve("/list.xml", (site / "list.xml").read_bytes())
    harvester.add_site("basalt", server.url("/list.xml"))
    run = harvester.run("2026-11-20")
    assert [site["status"] for site in run["sites"]] == ["list-failed", "list-failed"]
    assert {rule for _, _, rule in harvester.findings(run["run_id"])} == {"file.not-allowed", "list.url"}
    remedies = harvester.rows("SELECT DISTINCT remedy FROM harvest_detail_log")
    assert all('file_folder in [sites."NAME"]' in remedy for (remedy,) in remedies)
    assert harvester.held() == {}


def test_documents_of_an_unchanged_list_are_not_read_any_more_once_the_folder_is_taken_away(
    harvester: Harvester, site: Path
) -> None:
    allow(harvester)
    (site / "a.2.1.xml").rename(site / "later.xml")
    harvester.add_site("alder", (site / "list.xml").as_uri())
    assert harvester.outcomes(harvester.run("2026-11-20")["run_id"])["a.2.1"] == "access-error"
    (site / "later.xml").rename(site / "a.2.1.xml")
    harvester.config.write_text(SETTINGS, encoding="utf-8")
    harvester.run("2026-11-21")
    assert set(harvester.held()) == {"a.1.1"}


def test_a_folder_that_is_not_mounted_tonight_costs_no_document_its_retry(
    harvester: Harvester, server: HttpServer, site: Path
) -> None:
    allow(harvester)
    server.serve("/list.xml", (site / "list.xml").read_bytes())
    harvester.add_site("alder", server.url("/list.xml"), unit="months", datenextharvest="2026-11-20")
    site.rename(harvester.folder / "unmounted")
    assert harvester.run("2026-11-20")["sites"][0]["access_error"] == 2
    (harvester.folder / "unmounted").rename(site)
    assert [(s["kind"], s["inserted"]) for s in harvester.run("2026-11-21")["sites"]] == [("retry", 2)]


def test_sites_add_tells_at_once_what_the_settings_do_not_allow(harvester: Harvester, site: Path) -> None:
    url = (site / "list.xml").as_uri()
    options = ["--list-url", url, "--contact", "a@example.org"]
    refused = harvester("sites", "add", "alder", *options)
    assert refused.code == 2
    assert 'file_folder in [sites."NAME"]' in refused.err
    allow(harvester)
    assert harvester("sites", "add", "basalt", *options).code == 2
    assert harvester("sites", "add", "alder", *options).code == 0
    assert harvester("sites", "edit", "alder", "--name", "elm").code == 2
    assert harvester("sites", "edit", "alder", "--list-url", "file:///etc/passwd").code == 2
    assert harvester("sites", "edit", "alder", "--every", "2").code == 0
    assert url in harvester("sites", "show", "alder").out
    assert harvester.rows("SELECT name, documentlisturl FROM harvest_site_schedule") == [("alder", url)]


def test_check_rehearses_a_registered_site_and_reads_the_file_otherwise(harvester: Harvester, site: Path) -> None:
    allow(harvester)
    url = (site / "list.xml").as_uri()
    by_itself = harvester("check", url, "--json")
    assert (by_itself.code, json.loads(by_itself.out)["sites"][0]["site_name"]) == (0, "list.xml")
    harvester.add_site("alder", url)
    said = harvester("check", url, "--json")
    assert said.code == 0
    assert json.loads(said.out)["sites"][0]["inserted"] == 2
    assert harvester("check", "file:///etc/passwd", "--site", "alder").code == 1
    plain = harvester("check", str(site / "list.xml"), "--site", "alder", "--json")
    assert json.loads(plain.out)["sites"][0]["inserted"] == 2
    assert harvester.held() == {}


def test_the_doctor_knows_the_folders(harvester: Harvester, site: Path) -> None:
    allow(harvester)
    harvester.add_site("alder", (site / "list.xml").as_uri())
    assert "file_folder" not in harvester("doctor").out
    harvester.config.write_text(
        f'{SETTINGS}[sites."alder"]\nfile_folder = "gone"\n[sites.elm]\nfile_folder = "."\n', encoding="utf-8"
    )
    said = " ".join(harvester("doctor").out.split())
    assert f"alder: the folder {harvester.folder / 'gone'} (file_folder) is not there" in said
    assert '[sites."elm"]: no site of this name is registered' in said
    harvester.config.write_text(f'{SETTINGS}[sites.alder]\nfile_folder = "."\n', encoding="utf-8")
    assert "the settings file is in the folder" in harvester("doctor").out
    harvester.config.write_text(SETTINGS, encoding="utf-8")
    assert "PROBLEM  sites: alder: file:///" in harvester("doctor").out


def test_a_wrong_section_of_a_site_is_told_in_a_sentence(harvester: Harvester) -> None:
    harvester.config.write_text(
        f'{SETTINGS}[sites."alder creek"]\nfile_folder = ""\nfolder = "/srv"\n[sites]\nelm = 5\n', encoding="utf-8"
    )
    said = harvester("run")
    assert said.code == 2
    for words in (
        "[sites.\"alder creek\"] file_folder = '': it must be the path of a folder.",
        '[sites."alder creek"] folder: there is no such key. Known are: file_folder, target.',
        '[sites."elm"] = 5: it must be a section of its own',
    ):
        assert words in said.err
