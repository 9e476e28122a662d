"""Revisions, duplicates, stale lists, and documents that two sites claim."""

import json

import pytest

from support.databases import on_one_database
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.mails import text_of, words_of


def test_missing_revisions_go_in_in_ascending_order(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.3", "a.1.1", "a.1.2"))
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted", "a.1.2": "updated", "a.1.3": "updated"}
    order = harvester.rows("SELECT revision FROM document_revision ORDER BY document_revision_id")
    assert order == [(1,), (2,), (3,)]


def test_each_revision_of_a_document_is_told_to_replace_the_one_that_went_in_before_it(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", "a.1.2", "a.1.3", "a.1.4")
    server.serve("/a.1.3.xml", b"gone", status=404)
    harvester.add_site("site", url)
    harvester.run("2026-11-20")
    rows = harvester.rows("SELECT revision, outcome, target_revision FROM harvest_log WHERE outcome IS NOT NULL")
    assert sorted(rows) == [
        (1, "inserted", None),
        (2, "updated", 1),
        (3, "access-error", 2),
        (4, "updated", 2),
    ]
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "site@example.org"]
    assert "was revision 2" in text_of(mail)


@pytest.mark.quick
@on_one_database
def test_a_second_run_inserts_nothing_and_a_raised_revision_updates_exactly_that(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", "a.2.1")
    harvester.add_site("site", url)
    harvester.run("2026-11-20")
    again = harvester.run("2026-11-21")
    assert harvester.outcomes(again["run_id"]) == {}
    assert again["sites"][0]["unchanged"] == 2
    publish(server, "a.1.1", "a.2.2")
    third = harvester.run("2026-11-22")
    assert harvester.outcomes(third["run_id"]) == {"a.2.2": "updated"}
    assert set(harvester.held()) == {"a.1.1", "a.2.1", "a.2.2"}


@on_one_database
def test_a_revision_below_the_held_one_is_unchanged_where_the_list_names_the_held_one_too(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.2"))
    harvester.run("2026-11-20")
    publish(server, "a.1.1", "a.1.2", "a.1.3")
    run = harvester.run("2026-11-21")
    assert harvester.outcomes(run["run_id"]) == {"a.1.3": "updated"}
    assert run["sites"][0]["unchanged"] == 2


def test_a_list_behind_the_repository_is_stale_and_told_the_next_revision(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.7"))
    harvester.run("2026-11-20")
    publish(server, "a.1.5")
    run = harvester.run("2026-11-21")
    assert harvester.outcomes(run["run_id"]) == {"a.1.5": "stale"}
    assert run["sites"][0]["status"] == "succeeded"
    assert "DocStale" in harvester.operations(run["run_id"])
    remedy = harvester.rows("SELECT remedy FROM harvest_detail_log WHERE rule = 'list.stale'")[0][0]
    assert "raise its revision to 8" in remedy
    row = harvester.rows("SELECT target_revision FROM harvest_log WHERE outcome = 'stale'")
    assert row == [(7,)]


def test_the_same_docid_listed_again_is_a_duplicate_and_the_totals_balance(
    harvester: Harvester, server: HttpServer
) -> None:
    server.serve("/other.xml", eml("a.1.1", "Another"))
    harvester.add_site("site", publish(server, "a.1.1", also=[("a.1.1", server.url("/other.xml"))]))
    run = harvester.run("2026-11-20")
    site = run["sites"][0]
    assert (site["listed"], site["inserted"], site["duplicate"], site["status"]) == (2, 1, 1, "succeeded")
    assert harvester.held()["a.1.1"] == eml("a.1.1")
    message = harvester.rows("SELECT error_message FROM harvest_detail_log WHERE rule = 'list.duplicate'")[0][0]
    assert "line 4" not in message
    assert "line 3" in message
    assert "another URL" in message


def test_a_document_of_two_listed_revisions_has_a_remedy_that_names_the_entry_to_delete(
    harvester: Harvester, server: HttpServer
) -> None:
    url = server.serve("/a.1.xml", eml("a.1.2"))
    harvester.add_site("site", publish(server, also=[("a.1.2", url), ("a.1.1", url)]))
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted", "a.1.2": "updated"}
    [(remedy,)] = harvester.rows("SELECT remedy FROM harvest_detail_log WHERE rule = 'eml.package-id-mismatch'")
    assert remedy.startswith("The document is newer than the list: raise the revision in the list to 2")
    assert remedy.endswith("If the list has an entry of that revision already, delete this one.")


def test_a_duplicate_has_not_been_failing_as_the_first_entry_has(harvester: Harvester, server: HttpServer) -> None:
    server.serve("/gone.xml", b"gone", status=404)
    url = publish(server, also=[("a.1.1", server.url("/gone.xml")), ("a.1.1", server.url("/a.1.1.xml"))])
    harvester.add_site("site", url)
    harvester.run("2026-11-20")
    harvester.run("2026-11-21")
    [mail] = [mail for mail in harvester.mails() if "2026-11-21" in mail["Subject"] and "site@" in mail["To"]]
    assert "a.1.1 is listed again" in words_of(mail)
    assert words_of(mail).count("failing since 2026-11-20, 2 nights, 2 attempts") == 1


def test_of_very_many_duplicates_few_are_told_one_by_one_and_the_others_are_a_number(
    harvester: Harvester, server: HttpServer
) -> None:
    again = [(docid, server.url(f"/{docid}.xml")) for docid in ["a.1.1"] * 9_999 + ["a.2.1"] * 2]
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", also=again))
    for day, inserted in (("2026-11-20", 2), ("2026-11-21", 0)):
        run = harvester.run(day, "--force")
        site = run["sites"][0]
        assert (site["listed"], site["duplicate"], site["status"]) == (10_003, 10_001, "succeeded")
        assert (site["inserted"], site["unchanged"], site["warnings"]) == (inserted, 2 - inserted, 101)
        assert harvester.operations(run["run_id"]).count("DocDuplicate") == 101
    assert harvester.rows("SELECT document_id FROM harvest_document ORDER BY 1") == [("a.1",), ("a.2",)]
    message = "9,901 more entries name a document that the list has named before."
    sql = "SELECT error_message, level FROM harvest_detail_log WHERE rule = 'list.duplicate' ORDER BY detail_log_id"
    assert harvester.rows(sql)[100] == (message, "warning")
    reports = [" ".join(text_of(mail).split()) for mail in harvester.mails() if mail["To"] == "site@example.org"]
    assert len(reports) == 2
    assert all("10,001 are listed twice" in report and message in report for report in reports)


def test_document_ids_compare_exactly(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "knb.1.1", "KNB.1.1"))
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"KNB.1.1": "inserted", "knb.1.1": "inserted"}


def test_identifiers_and_revisions_have_64_bits(harvester: Harvester, server: HttpServer) -> None:
    docid = f"a.{2**63 - 1}.{2**63 - 1}"
    harvester.add_site("site", publish(server, docid))
    assert harvester.outcomes(harvester.run("2026-11-20")["run_id"]) == {docid: "inserted"}
    assert harvester.run("2026-11-21")["sites"][0]["unchanged"] == 1


@on_one_database
def test_a_document_of_another_site_is_refused_until_it_is_transferred(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("first", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    harvester.add_site("second", publish(server, "a.1.1", "a.1.2", path="/second.xml"), datenextharvest="2026-11-21")
    run = harvester.run("2026-11-21")
    second = next(site for site in run["sites"] if site["site_name"] == "second")
    assert (second["upload_error"], second["status"]) == (2, "with-errors")
    assert {rule for _, _, rule in harvester.findings(run["run_id"])} == {"target.other-site"}
    assert "a.1.2" not in harvester.held()

    assert harvester("target", "transfer", "a.1", "second").code == 0
    harvester("sites", "remove", "first", "--yes")
    run = harvester.run("2026-11-22")
    assert harvester.outcomes(run["run_id"]) == {"a.1.2": "updated"}


def test_a_transfer_is_logged_for_good_and_told_to_the_site_that_lost_the_document(
    harvester: Harvester, server: HttpServer
) -> None:
    elm = harvester.add_site("elm", publish(server, "a.1.1", path="/elm.xml"))
    fern = harvester.add_site("fern", publish(server, "b.1.1", path="/fern.xml"))
    harvester.run("2026-11-20")
    told = harvester("target", "transfer", "a.1.1", "fern")
    assert "a.1 belongs to fern from now on, with all its revisions, not only revision 1." in told.out
    assert "Until now it belonged to elm" in told.out
    assert "a.1 belongs to fern already: nothing was changed." in harvester("target", "transfer", "a.1", "fern").out
    logged = json.loads(harvester("log", "--document", "a.1", "--json").out)[-1]
    assert logged["message"].startswith("a.1 was transferred from the site 'elm' to the site 'fern' by ")
    assert (logged["operation"], logged["outcome"], logged["run_id"]) == ("UpdateDocSuccess", None, 1)
    assert harvester.rows("SELECT count(*) FROM harvest_log WHERE message LIKE '%transferred from the site%'") == [(1,)]

    harvester.rows("UPDATE harvest_log SET harvest_date = '2025-11-20'")
    harvester.rows("UPDATE document_transfer SET transferred_on = '2025-11-20'")
    harvester.add_site("gale", publish(server, "a.1.2", path="/gale.xml"))
    run_id = harvester.run("2026-11-21")["run_id"]
    sql = (
        "SELECT s.site_name, d.error_message, d.remedy FROM harvest_detail_log d JOIN harvest_log l "
        "USING (harvest_log_id) JOIN harvest_site_run s USING (site_run_id) WHERE l.run_id = ? ORDER BY s.site_name"
    )
    [(_, lost, take_out), (_, refused, _)] = harvester.rows(sql, run_id)
    assert lost == "a.1 was transferred from this site: it has belonged to the site 'fern' since 2025-11-20."
    assert take_out.startswith("Take it out of your list")
    assert refused == "a.1 belongs to the site 'fern'."
    assert harvester.rows("SELECT count(*) FROM harvest_log WHERE message LIKE '%transferred from the site%'") == [(1,)]
    assert lost in " ".join(harvester("check", server.url("/elm.xml"), "--site", "elm").out.split())

    harvester("target", "transfer", "a.1", "gale")
    harvester("target", "transfer", "a.1", "elm")
    assert harvester.rows("SELECT site_schedule_id FROM document_revision WHERE document_id = 'a.1'") == [(elm,)]
    sql = "SELECT site_schedule_id FROM harvest_log WHERE message LIKE '%transferred from the site%' ORDER BY 1"
    assert harvester.rows(sql)[:2] == [(elm,), (fern,)]
    assert harvester.run("2026-11-22", "--site", "elm")["sites"][0]["unchanged"] == 1


def test_the_documents_of_a_removed_site_are_free_for_who_publishes_a_higher_revision(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("first", publish(server, "a.1.1", also=[("a.9.1", server.url("/nothing.xml"))]))
    harvester.run("2026-11-20")
    told = harvester("sites", "remove", "first", "--yes").out
    assert "Its documents now belong to no registered site" in told
    assert "the first site that publishes a higher revision of one takes it over" in told
    harvester.add_site("again", publish(server, "a.1.1"))
    assert harvester.run("2026-11-21")["sites"][0]["unchanged"] == 1
    assert "first (registered no longer)" in harvester("target", "show", "a.1").out
    assert "first (registered no longer) (embedded repository)" in harvester("documents", "show", "a.1").out
    # Nobody tries again what the removed site listed: its nights are not counted any more.
    shown = harvester("documents", "show", "a.9").out
    assert "first (registered no longer): revision 1, access-error since 2026-11-20\n" in shown
    [owner] = json.loads(harvester("documents", "show", "a.1", "--json").out)["owners"]
    assert (owner["site"], owner["registered"]) == ("first", False)
    publish(server, "a.1.1", "a.1.2")
    assert harvester.outcomes(harvester.run("2026-11-22")["run_id"]) == {"a.1.2": "updated"}
    assert json.loads(harvester("target", "show", "a.1", "--json").out)["site"] == "again"
    assert harvester.rows("SELECT count(*) FROM harvest_site_run WHERE site_name = 'first'") == [(1,)]


@on_one_database
def test_a_packageid_that_differs_is_a_warning_or_by_the_sites_option_an_error(
    harvester: Harvester, server: HttpServer
) -> None:
    server.serve("/drifted.xml", eml("a.1.9"))
    url = publish(server, "a.2.1", also=[("a.1.1", server.url("/drifted.xml"))])
    harvester.add_site("lenient", url)
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted", "a.2.1": "inserted"}
    assert harvester.findings(run["run_id"]) == [("a.1", "warning", "eml.package-id-mismatch")]
    assert run["sites"][0]["warnings"] == 1
    assert "ValidateDocWarning" in harvester.operations(run["run_id"])

    server.serve("/strict.xml", eml("b.1.9"))
    strict = publish(server, path="/strict-list.xml", also=[("b.1.1", server.url("/strict.xml"))])
    harvester.add_site("strict", strict, options='{"package_id_mismatch": "error"}')
    run = harvester.run("2026-11-20", "--site", "strict")
    assert harvester.outcomes(run["run_id"]) == {"b.1.1": "invalid"}
