"""A repository that stops answering, or lets nobody in: what a run does, and what everybody is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.mails import words_of
from support.remote_target import Repository, installed

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

NAMES = ("alder", "birch", "cedar")
STEWARD = "steward@example.org"


@pytest.fixture
def repository(harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """The repository that the settings name, for three sites with 20 documents each, each with a login of its own."""
    monkeypatch.syspath_prepend(installed(tmp_path))
    monkeypatch.setenv("SITE_PASSWORD", "secret")
    with Repository() as running:
        section = f'[target]\nkind = "remote"\nurl = "{running.url}"\n'
        harvester.config.write_text(f"{harvester.config.read_text()}{section}", encoding="utf-8")
        yield running


@pytest.fixture(autouse=True)
def _sites(harvester: Harvester, server: HttpServer, repository: Repository) -> None:
    for name in NAMES:
        url = publish(server, *(f"{name}.{number}.1" for number in range(20)), path=f"/{name}.xml")
        harvester.add_site(name, url, ldapdn=f"uid={name}", ldappwd="env:SITE_PASSWORD")


def reports(harvester: Harvester) -> dict[str, tuple[str, str]]:
    """Recipient -> subject and text of the report; there is one for each."""
    mails = harvester.mails()
    found = {str(mail["To"]): (str(mail["Subject"]), words_of(mail)) for mail in mails}
    assert len(found) == len(mails)
    return found


@pytest.mark.parametrize("patience", [0, 4, 40])
def test_a_repository_that_stops_answering_puts_off_the_rest_of_the_run_and_the_next_brings_all_in(
    harvester: Harvester, server: HttpServer, repository: Repository, patience: int
) -> None:
    """It answers nobody at all; all logins and no more; or it breaks off in the middle of the uploads."""
    repository.patience = patience
    run = harvester.run("2026-11-20")
    assert (run["status"], run["exit_code"]) == ("with-errors", 3)
    [sentence] = run["targets_away"]
    assert sentence.startswith("A remote repository stopped answering: The repository does not answer: ")
    for site in run["sites"]:
        assert (site["status"], site["inserted"] + site["deferred"]) == ("with-errors", 20)
    away = [(rule, level) for document, level, rule in harvester.findings(run["run_id"]) if rule == "target.away"]
    assert sorted(away) == [("target.away", "error"), *(3 * [("target.away", "warning")])]
    shown = harvester("runs", "show", str(run["run_id"])).out
    assert sentence in shown.splitlines()

    told = reports(harvester)
    for site in run["sites"]:
        subject, text = told[f"{site['site_name']}@example.org"]
        assert f"{site['deferred']} put off" in subject
        assert "error" not in subject
        assert text.count("The repository does not answer") == 1
        assert f"{site['deferred']} documents were put off to a later run." in text
    subject, text = told[STEWARD]
    assert subject.startswith("[Test network] the repository did not answer; 3 sites: 3 with errors")
    assert "The repository stopped answering: see below." in text
    assert f"Trouble of the run itself ========================= - {sentence}" in text

    repository.patience = inf
    run = harvester.run("2026-11-21")
    assert (run["status"], run["exit_code"], run["targets_away"]) == ("succeeded", 0, [])
    assert len(repository.documents) == len(repository.received) == 60
    assert repository.clashes == []


def test_what_was_put_off_is_tried_again_whatever_the_schedule_of_the_site(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    for name in NAMES:
        harvester("sites", "edit", name, "--every", "1", "--unit", "months")
    repository.patience = 40
    harvester.run("2026-11-20")
    repository.patience = inf
    run = harvester.run("2026-11-21")
    assert {site["kind"] for site in run["sites"]} == {"retry"}
    assert len(repository.documents) == 60


def test_a_login_that_is_refused_fails_its_site_alone_and_nothing_of_it_is_fetched_or_sent(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    repository.refused = {"uid=birch"}
    dates = "SELECT name, datelastharvest, datenextharvest FROM harvest_site_schedule ORDER BY name"
    before = harvester.rows(dates)
    run = harvester.run("2026-11-20")
    assert (run["status"], run["exit_code"], run["targets_away"]) == ("with-errors", 3, [])
    status = {site["site_name"]: (site["status"], site["inserted"], site["failure_reason"]) for site in run["sites"]}
    reason = "The remote repository does not let uid=birch in."
    assert status["birch"] == ("failed", 0, reason)
    assert status["alder"] == status["cedar"] == ("succeeded", 20, None)
    assert not [each.path for each in server.requests if each.path.startswith("/birch.") and each.path != "/birch.xml"]
    assert not [docid for docid in repository.received if docid.startswith("birch")]
    assert harvester.rows(dates)[1] == before[1]
    assert harvester.rows(dates)[0] != before[0]
    assert harvester.findings(run["run_id"]) == [(None, "error", "target.login")]

    told = reports(harvester)
    subject, text = told["birch@example.org"]
    assert "birch: the harvest failed" in subject
    assert f"{reason} What to do: Ask the administrator to renew the login." in text
    subject, text = told[STEWARD]
    assert "2 well, 1 failed" in subject
    assert "1 site failed as a whole: see below." in text
    assert f"{reason} What to do: Ask the administrator to renew the login." in text

    repository.refused = set()
    run = harvester.run("2026-11-21", "--site", "birch")
    assert (run["exit_code"], run["sites"][0]["inserted"]) == (0, 20)


def test_a_rehearsal_tells_of_both_and_writes_nothing(
    harvester: Harvester, server: HttpServer, repository: Repository
) -> None:
    repository.refused = {"uid=birch"}
    said = harvester("run", "--dry-run", "--json")
    status = {site["site_name"]: site["status"] for site in json.loads(said.out)["sites"]}
    assert (said.code, status) == (3, {"alder": "succeeded", "birch": "failed", "cedar": "succeeded"})
    repository.refused = set()
    repository.patience = 0
    said = harvester("run", "--dry-run")
    assert said.code == 3
    assert "stopped answering" in said.out
    assert repository.received == []
    assert harvester.mails() == []
