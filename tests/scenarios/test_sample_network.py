"""Three nights of the sample network, over real HTTP: the log, the dates, the details, the mails, the documents."""

from collections import Counter
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from metaharvest.demo.samples import SAMPLE_SITES, SampleNetwork
from metaharvest.model import OutcomeKind
from support.harvester import SETTINGS, Harvester
from support.mails import words_of
from support.smtp_sink import SmtpSink

NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22")
NAME = "[Test network]"

Run = dict[str, Any]
Nights = tuple[Harvester, list[Run], SampleNetwork]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nights]:
    harvester = Harvester(tmp_path_factory.mktemp("network"))
    first = date.fromisoformat(NIGHTS[0])
    with SampleNetwork() as network:
        for site in SAMPLE_SITES:
            offset = site.next_offset_days
            harvester.add_site(
                site.name,
                network.list_url(site.name),
                contact_email=site.contact,
                updatefrequency=site.frequency,
                unit=site.unit.value,
                datenextharvest=None if offset is None else first + timedelta(days=offset),
            )
        runs = []
        for night, day in enumerate(NIGHTS, 1):
            network.night = night
            runs.append(harvester.run(day))
        yield harvester, runs, network
    harvester.close()


def by_name(run: Run) -> dict[str, Run]:
    return {site["site_name"]: site for site in run["sites"]}


def test_the_due_sites_are_harvested_and_the_one_that_is_not_due_is_left_alone(nights: Nights) -> None:
    _, runs, _ = nights
    assert {name: site["status"] for name, site in by_name(runs[0]).items()} == {
        "alder-creek": "succeeded",
        "basalt-flats": "with-errors",
        "cedar-marsh": "list-failed",
        "dune-lake": "list-failed",
        "fern-gorge": "succeeded",
    }


def test_a_list_that_could_not_be_read_makes_the_exit_code_three(nights: Nights) -> None:
    _, runs, _ = nights
    assert [run["exit_code"] for run in runs] == [3, 3, 3]
    assert [run["status"] for run in runs] == ["with-errors"] * 3


def test_the_outcomes_of_every_site_run_add_up_to_what_is_listed(nights: Nights) -> None:
    _, runs, _ = nights
    outcomes = [kind.column for kind in OutcomeKind]
    for run in runs:
        for site in run["sites"]:
            assert sum(site[outcome] for outcome in outcomes) == site["listed"], site


def test_every_document_that_went_in_is_byte_for_byte_what_its_site_serves(nights: Nights) -> None:
    harvester, _, network = nights
    for name in ("alder-creek", "fern-gorge"):
        newest = harvester.rows(
            "SELECT source_url, content FROM document_revision d JOIN harvest_site_schedule USING (site_schedule_id) "
            "WHERE name = ? AND revision = "
            "(SELECT max(revision) FROM document_revision WHERE document_id = d.document_id)",
            name,
        )
        assert newest
        for url, content in newest:
            assert content == network.file(url.removeprefix(network.base_url)), url
    declared = b"".join(bytes(content[:60]) for _, content in harvester.held().items()).lower()
    assert b"iso-8859-1" in declared


def test_the_log_of_a_good_document_has_the_rows_of_the_original(nights: Nights) -> None:
    harvester, runs, _ = nights
    codes = harvester.operations(runs[0]["run_id"], "alder-creek")
    assert codes[:2] == ["GetHarvestListSuccess", "ValidateHarvestListSuccess"]
    assert Counter(codes[2:-1]) == {"GetDocSuccess": 7, "ValidateDocSuccess": 7, "InsertDocSuccess": 7}
    assert codes[-1] == "ReportQueued"
    everything = harvester.operations(runs[0]["run_id"])
    assert (everything[0], everything[-1]) == ("HarvesterStartup", "HarvesterShutdown")


def test_documents_that_are_there_already_cost_one_row_a_site_run(nights: Nights) -> None:
    harvester, runs, _ = nights
    codes = harvester.operations(runs[1]["run_id"], "alder-creek")
    assert codes[:2] == ["GetHarvestListSuccess", "ValidateHarvestListSuccess"]
    assert codes[2:] == ["HarvestListUnchanged", "MetacatHasDoc", "ReportQueued"]
    assert by_name(runs[1])["alder-creek"]["unchanged"] == 7


def test_an_invalid_list_gives_a_finding_per_problem_and_leaves_the_dates_alone(nights: Nights) -> None:
    harvester, runs, _ = nights
    site_run = by_name(runs[0])["cedar-marsh"]
    assert site_run["listed"] == 0
    rules = [
        rule
        for (rule,) in harvester.rows(
            "SELECT d.rule FROM harvest_detail_log d JOIN harvest_log l USING (harvest_log_id) "
            "WHERE l.site_run_id = ? AND l.harvest_operation_code = 'ValidateHarvestListError'",
            site_run["site_run_id"],
        )
    ]
    assert len(rules) >= 3
    assert all(rule.startswith("list.") for rule in rules)
    assert not [docid for docid in harvester.outcomes(runs[0]["run_id"]) if docid.startswith("cedar")]
    dates = harvester.rows("SELECT datelastharvest, datenextharvest FROM harvest_site_schedule WHERE name='dune-lake'")
    assert dates == [(None, "2026-11-20")]


def test_a_list_that_is_not_there_is_told_with_its_status(nights: Nights) -> None:
    harvester, runs, _ = nights
    site_run = by_name(runs[0])["dune-lake"]
    assert harvester.operations(runs[0]["run_id"], "dune-lake") == ["GetHarvestListError", "ReportQueued"]
    assert "404" in site_run["failure_reason"]


def test_the_next_date_is_today_plus_the_frequency(nights: Nights) -> None:
    harvester, _, _ = nights
    dates = dict(harvester.rows("SELECT name, datenextharvest FROM harvest_site_schedule"))
    assert dates["alder-creek"] == "2026-11-23"
    assert dates["fern-gorge"] == "2026-12-04"
    assert dates["elm-ridge"] == "2026-12-09"


def test_raised_revisions_update_and_repaired_documents_go_in(nights: Nights) -> None:
    _, runs, _ = nights
    night_3 = by_name(runs[2])
    assert (night_3["alder-creek"]["inserted"], night_3["alder-creek"]["updated"]) == (1, 2)
    assert night_3["cedar-marsh"]["status"] == "succeeded"
    assert night_3["basalt-flats"]["inserted"] + night_3["basalt-flats"]["updated"] > 5


def test_the_subjects_tell_the_story(nights: Nights) -> None:
    harvester, _, _ = nights
    subjects = harvester.subjects()
    assert f"{NAME} alder-creek: all well, 7 new (2026-11-20)" in subjects
    assert f"{NAME} alder-creek: all well, nothing new (2026-11-21)" in subjects
    assert f"{NAME} alder-creek: all well, 1 new, 2 updated (2026-11-22)" in subjects
    assert f"{NAME} cedar-marsh: harvest list could not be read (2026-11-20)" in subjects
    assert any(s.startswith(f"{NAME} basalt-flats: 22 errors, 6 new") for s in subjects)
    assert any(s.startswith(f"{NAME} 5 sites: 2 well, 1 with errors, 2 failed; 16 new, 1 updated") for s in subjects)


def test_every_report_goes_to_its_own_people(nights: Nights) -> None:
    harvester, _, _ = nights
    recipients = {mail["To"] for mail in harvester.mails() if "alder-creek" in mail["Subject"]}
    assert recipients == {"data@alder-creek.example.org, ines.valdemar@example.org"}
    assert {mail["To"] for mail in harvester.mails() if "sites:" in mail["Subject"]} == {"steward@example.org"}


def test_the_site_report_says_what_is_wrong_where_and_what_to_do(nights: Nights) -> None:
    harvester, _, _ = nights
    mail = next(m for m in harvester.mails() if "basalt-flats: 22 errors" in m["Subject"])
    text = words_of(mail)
    details = harvester.rows(
        "SELECT error_message, remedy, d.document_url FROM harvest_detail_log d JOIN harvest_log l USING "
        "(harvest_log_id) JOIN harvest_site_run s USING (site_run_id) "
        "WHERE site_name = 'basalt-flats' AND l.run_id = 1 AND level = 'error'"
    )
    assert len(details) >= 22
    for message, remedy, url in details:
        assert " ".join(message.split())[:60] in text
        assert remedy
        assert url in text


def test_the_whole_network_again_inserts_nothing(nights: Nights) -> None:
    harvester, _, _ = nights
    held = harvester.held()
    again = harvester.run("2026-11-23", "--force")
    assert {site["inserted"] + site["updated"] for name, site in by_name(again).items() if name != "elm-ridge"} == {0}
    assert set(harvester.held()) - set(held) == {
        f"{docid}" for docid, outcome in harvester.outcomes(again["run_id"]).items() if outcome == "inserted"
    }


def test_the_first_night_by_smtp_reaches_the_same_people_with_the_same_subjects(
    nights: Nights, tmp_path_factory: pytest.TempPathFactory
) -> None:
    by_maildir, _, network = nights
    with SmtpSink() as sink:
        smtp = f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\n'
        harvester = Harvester(tmp_path_factory.mktemp("smtp"), SETTINGS.replace("[mail]\n", smtp))
        network.night = 1
        for site in SAMPLE_SITES:
            offset = site.next_offset_days
            harvester.add_site(
                site.name,
                network.list_url(site.name),
                contact_email=site.contact,
                datenextharvest=None if offset is None or offset <= 0 else "2026-12-09",
            )
        assert harvester.run(NIGHTS[0])["undelivered"] == 0
        harvester.close()
    subjects = {received.message["Subject"] for received in sink.messages}
    assert len(subjects) == 6
    assert subjects <= set(by_maildir.subjects())
    assert len(sink.to("data@alder-creek.example.org")) == len(sink.to("ines.valdemar@example.org")) == 1
    assert len(sink.to("steward@example.org")) == 1
