"""`documents`, `diff`, `log`, `sites` and `runs`: what they answer after four nights with sites that change."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.databases import Servers
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer, answering

NIGHTS = ("2050-11-20", "2050-11-21", "2050-11-22", "2050-11-23")
"""In the future, so that nights are counted up to the last of them, whatever the day of the test."""

DIFFERS = {"log_id", "logged_at", "inserted_at", "transferred_at", "seconds", "took_seconds", "site_run_id"}


@pytest.fixture(scope="module")
def harvester(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harvester]:
    made = Harvester(tmp_path_factory.mktemp("answers"))
    with HttpServer() as server:
        four_nights(made, server)
    yield made
    made.close()


def four_nights(harvester: Harvester, server: HttpServer) -> None:
    """alder is harvested every night, birch on the first and last alone; then alder gets another name."""
    server.serve("/invalid.xml", b"<eml>")
    server.serve("/a.4.1.xml", eml("a.4.7"))
    bad = [("a.2.1", server.url("/gone.xml")), ("a.3.1", server.url("/invalid.xml"))]
    also = [*bad, ("a.4.1", server.url("/a.4.1.xml"))]
    harvester.add_site("alder", publish(server, "a.1.1", path="/alder.xml", also=also))
    birch = publish(server, "b.1.1", path="/birch.xml", also=[("b.2.1", server.url("/invalid.xml"))])
    harvester.add_site("birch", birch, updatefrequency=3)
    harvester.run(NIGHTS[0])
    harvester.run(NIGHTS[1])
    also = [("a.3.1", server.url("/invalid.xml")), ("a.4.1", server.url("/a.4.1.xml"))]
    publish(server, "a.1.1", "a.2.2", path="/alder.xml", also=[*also, ("a.5.1", server.url("/gone.xml"))])
    harvester.run(NIGHTS[2])
    assert harvester("sites", "edit", "alder", "--name", "alnus").code == 0
    assert harvester("target", "transfer", "a.1", "birch").code == 0
    harvester.add_site("alder", publish(server, "c.1.1", path="/new.xml"), contact_email="c@example.org")
    harvester.run(NIGHTS[3])


def told(harvester: Harvester, *arguments: str) -> Any:
    said = harvester(*arguments, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)


def table(harvester: Harvester, *arguments: str) -> list[dict[str, str]]:
    said = harvester(*arguments, "--csv")
    assert said.code == 0, said.err
    return list(csv.DictReader(io.StringIO(said.out.removeprefix("\ufeff"), newline="")))


def names(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(row["site"], row["docid"]) for row in rows]


# -- the databases


def answers(harvester: Harvester) -> dict[str, Any]:
    """What the commands answer, but for what differs from one installation to the next: times, ports, row numbers."""
    found: dict[str, Any] = {}
    for words in ("documents show a.1", "documents show a.2.2", "sites list"):
        found[words] = told(harvester, *words.split())
    for words in ("documents", "documents --failing --for 2", "documents --rule http.status", "diff 1 4"):
        found[words] = told(harvester, *words.split())
        found[f"{words}, table"] = table(harvester, *words.split())
    for arguments in (("--since", NIGHTS[0]), ("--site", "alnus", "--document", "a.1"), ("--rule", "xml.unclosed")):
        rows = told(harvester, "log", *arguments)
        found[" ".join(arguments)] = sorted(
            str((row["run_id"], row["site"], row["operation"], row["docid"], len(row["findings"]))) for row in rows
        )
        level = () if "--rule" in arguments else ("--level", "info")
        found[f"{' '.join(arguments)}, table"] = sorted(
            str((row["run_id"], row["site"], row["operation"], row["docid"], row["rule"]))
            for row in table(harvester, "log", *arguments, *level)
        )
    return {command: without_what_differs(value) for command, value in found.items()}


def without_what_differs(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_what_differs(part) for name, part in value.items() if name not in DIFFERS}
    if isinstance(value, list):
        return [without_what_differs(part) for part in value]
    return re.sub(r"127\.0\.0\.1:\d+", "HOST", value) if isinstance(value, str) else value


@pytest.mark.parametrize("kind", ["postgresql", "mariadb"])
def test_the_answers_are_the_same_whatever_the_database(
    harvester: Harvester, servers: Servers, server: HttpServer, tmp_path: Path, kind: str
) -> None:
    on_server = Harvester(tmp_path, database=servers.test_database(kind))
    four_nights(on_server, server)
    expected, found = answers(harvester), answers(on_server)
    for command, answer in expected.items():
        assert found[command] == answer, command
    on_server.close()


# -- documents


def test_all_documents_of_all_sites_stand_as_the_ledger_says(harvester: Harvester) -> None:
    found = told(harvester, "documents")
    assert [(row["site"], row["docid"], row["outcome"]) for row in found] == [
        ("alder", "c.1.1", "inserted"),
        ("alnus", "a.1.1", "upload-error"),
        ("alnus", "a.2.2", "unchanged"),
        ("alnus", "a.3.1", "invalid"),
        ("alnus", "a.4.1", "unchanged"),
        ("alnus", "a.5.1", "access-error"),
        ("birch", "b.1.1", "unchanged"),
        ("birch", "b.2.1", "invalid"),
    ]
    by_docid = {row["docid"]: row for row in found}
    assert (by_docid["a.3.1"]["failing_since"], by_docid["a.3.1"]["nights"]) == (NIGHTS[0], 4)
    assert (by_docid["a.5.1"]["nights"], by_docid["a.1.1"]["nights"], by_docid["c.1.1"]["nights"]) == (2, 1, None)
    assert [each["rule"] for each in by_docid["a.5.1"]["findings"]] == ["http.status"]
    assert (by_docid["a.5.1"]["run_id"], by_docid["a.5.1"]["harvest_date"]) == (4, NIGHTS[3])
    # A warning stays with a document that went in, although no later night tells of it again.
    assert [each["rule"] for each in by_docid["a.4.1"]["findings"]] == ["eml.package-id-mismatch"]
    assert by_docid["a.4.1"]["run_id"] == 1
    # What was found before a document went in is not told of the one that is there.
    assert by_docid["a.2.2"]["findings"] == []


@pytest.mark.parametrize(
    ("arguments", "docids"),
    [
        (("--failing",), ["a.1.1", "a.3.1", "a.5.1", "b.2.1"]),
        (("--failing", "--for", "2"), ["a.3.1", "a.5.1", "b.2.1"]),
        (("--failing", "--for", "3"), ["a.3.1", "b.2.1"]),
        (("--failing", "--for", "5"), []),
        (("--failing", "--site", "birch"), ["b.2.1"]),
        (("--site", "alder"), ["c.1.1"]),
        (("--outcome", "invalid"), ["a.3.1", "b.2.1"]),
        (("--outcome", "unchanged", "--site", "alnus"), ["a.2.2", "a.4.1"]),
        (("--rule", "eml.package-id-mismatch"), ["a.4.1"]),
        (("--rule", "target.other-site"), ["a.1.1"]),
        (("--rule", "http.status", "--site", "birch"), []),
        (("--limit", "3"), ["c.1.1", "a.1.1", "a.2.2"]),
    ],
)
def test_documents_are_found_by_filters_alike_in_every_form(
    harvester: Harvester, arguments: tuple[str, ...], docids: list[str]
) -> None:
    found = told(harvester, "documents", *arguments)
    assert [row["docid"] for row in found] == docids
    assert names(table(harvester, "documents", *arguments)) == names(found)
    shown = harvester("documents", *arguments).out
    assert [docid for docid in docids if docid not in shown] == []
    assert ("There is no such document." in shown) == (not docids)


def test_documents_of_a_removed_site_are_told_where_it_is_named(harvester: Harvester) -> None:
    site_id = harvester.add_site("cedar", "https://cedar.example.org/list.xml")
    harvester("sites", "remove", "cedar", "--yes")
    assert "No run has harvested a site named 'cedar'" in harvester("documents", "--site", "cedar").err
    harvester.rows("UPDATE harvest_document SET site_schedule_id = ? WHERE document_id = 'c.1'", site_id)
    sql = "UPDATE harvest_site_run SET site_schedule_id = ?, site_name = ? WHERE site_name = ?"
    [(alder,)] = harvester.rows("SELECT site_schedule_id FROM harvest_site_schedule WHERE name = 'alder'")
    harvester.rows(f"{sql} AND run_id = 4", site_id, "cedar", "alder")
    assert names(told(harvester, "documents", "--site", "cedar")) == [("cedar", "c.1.1")]
    assert "c.1.1" not in [docid for _, docid in names(told(harvester, "documents"))]
    harvester.rows("UPDATE harvest_document SET site_schedule_id = ? WHERE document_id = 'c.1'", alder)
    harvester.rows(f"{sql} AND run_id = 4", alder, "alder", "cedar")


def test_the_history_of_a_document_has_runs_owners_transfers_and_revisions(harvester: Harvester) -> None:
    known = told(harvester, "documents", "show", "a.1")
    assert told(harvester, "documents", "show", " a.1 ") == known
    assert [
        (event["run_id"], event["harvest_date"], event["site"], event["outcome"]) for event in known["history"]
    ] == [
        (1, NIGHTS[0], "alder", "inserted"),
        (4, NIGHTS[3], "alnus", "upload-error"),
    ]
    assert [each["rule"] for each in known["history"][1]["findings"]] == ["target.other-site"]
    assert [(each["from_site"], each["to_site"], each["run_id"]) for each in known["transfers"]] == [
        ("alnus", "birch", 3)
    ]
    assert [(each["repository"], each["site"]) for each in known["owners"]] == [("embedded", "birch")]
    assert [(each["revision"], each["run_id"], each["bytes"]) for each in known["revisions"]] == [
        (1, 1, len(eml("a.1.1")))
    ]
    assert [(each["site"], each["outcome"], each["nights"]) for each in known["listed"]] == [
        ("alnus", "upload-error", 1)
    ]
    shown = harvester("documents", "show", "a.1").out
    assert shown.index("inserted") < shown.index("transferred from alnus") < shown.index("target.other-site")


def test_the_history_tells_the_same_thing_night_after_night_once(harvester: Harvester) -> None:
    shown = harvester("documents", "show", "a.3").out
    assert f"{NIGHTS[0]} to {NIGHTS[2]}  1 to 3  alder  a.3.1     invalid, 3 times" in shown
    assert len(told(harvester, "documents", "show", "a.3")["history"]) == 4


def test_one_revision_alone_has_its_own_history(harvester: Harvester) -> None:
    assert [each["docid"] for each in told(harvester, "documents", "show", "a.2.1")["history"]] == ["a.2.1", "a.2.1"]
    assert [each["docid"] for each in told(harvester, "documents", "show", "a.2.2")["history"]] == ["a.2.2"]
    assert [each["outcome"] for each in told(harvester, "documents", "show", "a.2")["history"]] == [
        "access-error",
        "access-error",
        "inserted",
    ]


@pytest.mark.parametrize(
    ("name", "sentence"), [("x.1", "No document 'x.1' is known"), ("a.2.9", "No revision 9 of a.2 is known")]
)
def test_a_document_that_nobody_knows_is_told(harvester: Harvester, name: str, sentence: str) -> None:
    said = harvester("documents", "show", name)
    assert (said.code, sentence in said.err) == (2, True)


# -- log


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [
        (("--rule", "xml.unclosed"), {1, 2, 3, 4}),
        (("--rule", "http.status", "--until", NIGHTS[1]), {1, 2}),
        (("--rule", "http.status", "--since", NIGHTS[2]), {3, 4}),
        (("--site", "birch", "--level", "error", "--since", NIGHTS[0]), {1, 4}),
        (("--site", "alnus", "--level", "error", "--since", NIGHTS[0]), {1, 2, 3, 4}),
        (("--site", "alder", "--since", NIGHTS[0]), {4}),
        (("--document", "a.3", "--level", "error"), {1, 2, 3, 4}),
        (("--document", "a.3", "--since", NIGHTS[1], "--until", NIGHTS[2]), {2, 3}),
        (("--run", "2", "--rule", "http.status"), {2}),
    ],
)
def test_the_log_is_read_over_sites_and_runs_alike_in_every_form(
    harvester: Harvester, arguments: tuple[str, ...], runs: set[int]
) -> None:
    found = told(harvester, "log", *arguments)
    assert {row["run_id"] for row in found} == runs
    level = () if "--level" in arguments else ("--level", "info")
    rows = table(harvester, "log", *arguments, *level)
    assert list(dict.fromkeys(row["log_id"] for row in rows)) == [str(row["log_id"]) for row in found]
    assert {row["run_id"] for row in rows} == set(map(str, runs))
    if "--rule" in arguments:
        rule = arguments[arguments.index("--rule") + 1]
        assert {finding["rule"] for row in found for finding in row["findings"]} == {rule}
        assert {row["rule"] for row in rows} == {rule}


def test_a_renamed_site_keeps_its_log_and_a_new_one_of_that_name_has_none_of_it(harvester: Harvester) -> None:
    past = told(harvester, "log", "--site", "alnus", "--since", NIGHTS[0])
    assert {row["site"] for row in past if row["site_run_id"]} == {"alder", "alnus"}
    assert len({row["site_id"] for row in past}) == 1
    new = told(harvester, "log", "--site", "alder", "--since", NIGHTS[0])
    assert {(row["run_id"], row["site"]) for row in new} == {(4, "alder")}
    assert {row["site_id"] for row in new}.isdisjoint({row["site_id"] for row in past})


def test_a_transfer_is_in_the_log_of_both_sites(harvester: Harvester) -> None:
    for site in ("alnus", "birch"):
        messages = [row["message"] for row in told(harvester, "log", "--site", site, "--document", "a.1")]
        assert any("was transferred from the site 'alnus' to the site 'birch'" in each for each in messages), site


def test_a_limit_means_the_last_rows_in_every_form(harvester: Harvester) -> None:
    everything = told(harvester, "log", "--since", NIGHTS[0])
    assert told(harvester, "log", "--since", NIGHTS[0], "--limit", "3") == everything[-3:]
    assert told(harvester, "log", "--since", NIGHTS[0], "--limit", "9999") == everything
    rows = table(harvester, "log", "--since", NIGHTS[0], "--level", "info", "--limit", "3")
    assert {row["log_id"] for row in rows} == {str(row["log_id"]) for row in everything[-3:]}


def test_a_rule_that_is_mistyped_is_answered_with_those_that_may_be_meant(harvester: Harvester) -> None:
    assert "There is no rule 'http.stauts'. Did you mean http.status" in harvester("log", "--rule", "http.stauts").err
    assert "Did you mean http.status" in harvester("documents", "--rule", "http.stauts").err
    assert told(harvester, "log", "--rule", "eml.id-duplicate") == []


# -- sites, runs


def test_sites_tell_how_they_stand_and_where_they_are_going(harvester: Harvester) -> None:
    sites = {site["name"]: site for site in told(harvester, "sites", "list")}
    alnus = sites["alnus"]
    assert (alnus["last_status"], alnus["last_run_id"], alnus["failing"], alnus["failing_since"]) == (
        "with-errors",
        4,
        3,
        NIGHTS[0],
    )
    assert [(each["run_id"], each["listed"], each["failing"]) for each in alnus["trend"]] == [
        (1, 4, 2),
        (2, 4, 2),
        (3, 5, 2),
        (4, 5, 3),
    ]
    assert 0 <= alnus["took_seconds"] < 60
    assert [each["run_id"] for each in sites["birch"]["trend"]] == [1, 4]
    assert [each["run_id"] for each in sites["alder"]["trend"]] == [4]
    [line] = [line for line in harvester("sites", "list").out.splitlines() if line.startswith("alnus")]
    assert " with-errors " in line
    assert " 2 2 2 3 " in line
    shown = harvester("sites", "show", "alnus").out
    assert f"3 documents are failing, the first since {NIGHTS[0]}" in shown
    assert told(harvester, "sites", "show", "alnus")["trend"] == alnus["trend"]


def test_a_run_tells_what_became_of_each_site_since(harvester: Harvester) -> None:
    shown = told(harvester, "runs", "show", "3")
    [site] = shown["sites"]
    assert [each["run_id"] for each in site["trend"]] == [1, 2, 3]
    assert (site["site"], site["failing"], shown["totals"]["errors"]) == ("alder", 2, 2)
    assert "2 2 2" in harvester("runs", "show", "3").out


@pytest.mark.parametrize("command", ["documents", "log --csv"])
def test_what_cannot_be_printed_is_not_blamed_on_the_database(harvester: Harvester, command: str) -> None:
    words = ["--config", str(harvester.config), *command.split()]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "metaharvest", *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, "No space left on device" in done.stderr) == (1, True)
    assert "database" not in done.stderr


# -- diff


def changed(found: Any) -> dict[str, dict[str, list[str]]]:
    """By site and change, the documents."""
    sites: dict[str, dict[str, list[str]]] = {}
    for site in found["sites"]:
        for document in site["documents"]:
            sites.setdefault(site["site"], {}).setdefault(document["change"], []).append(document["docid"])
    return sites


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        (("1", "2"), {"alnus": {"still_failing": ["a.2.1", "a.3.1"]}}),
        (
            ("2", "3"),
            {
                "alnus": {
                    "newly_failing": ["a.5.1"],
                    "still_failing": ["a.3.1"],
                    "fixed": ["a.2.2"],
                    "inserted": ["a.2.2"],
                }
            },
        ),
        (
            ("1", "4"),
            {
                "alder": {"inserted": ["c.1.1"]},
                "alnus": {
                    "newly_failing": ["a.1.1", "a.5.1"],
                    "still_failing": ["a.3.1"],
                    "fixed": ["a.2.2"],
                    "inserted": ["a.2.2"],
                },
                "birch": {"still_failing": ["b.2.1"]},
            },
        ),
    ],
)
def test_what_changed_between_two_runs(
    harvester: Harvester, runs: tuple[str, str], expected: dict[str, dict[str, list[str]]]
) -> None:
    found = told(harvester, "diff", *runs)
    assert changed(found) == expected
    numbers = {change: sum(len(site.get(change, ())) for site in expected.values()) for change in found["totals"]}
    assert found["totals"] == numbers
    rows = [(row["site"], row["change"], row["docid"]) for row in table(harvester, "diff", *runs)]
    assert rows == [
        (site, change, docid) for site in expected for change in expected[site] for docid in expected[site][change]
    ]
    assert all(docid in harvester("diff", *runs).out for _, _, docid in rows)


def test_a_diff_tells_how_each_site_ended_before_and_after(harvester: Harvester) -> None:
    sites = {site["site"]: site for site in told(harvester, "diff", "3", "4")["sites"]}
    assert (sites["alnus"]["before"]["run_id"], sites["alnus"]["after"]["run_id"]) == (3, 4)
    assert (sites["birch"]["before"]["run_id"], sites["birch"]["after"]["run_id"]) == (1, 4)
    assert sites["alder"]["before"] is None
    assert [site["site"] for site in told(harvester, "diff", "3", "4", "--site", "alnus")["sites"]] == ["alnus"]
    assert "2 -> 3" in harvester("diff", "3", "4").out


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [(("2", "1"), "not later than"), (("2", "2"), "not later than"), (("1", "9"), "There is no run 9")],
)
def test_runs_that_cannot_be_compared_are_told(harvester: Harvester, runs: tuple[str, str], sentence: str) -> None:
    said = harvester("diff", *runs)
    assert (said.code, sentence in said.err) == (2, True)


# -- what was put off, and tried again


def test_documents_that_were_put_off_have_the_reason_of_all_and_are_fixed_by_another_try(
    tmp_path: Path, server: HttpServer
) -> None:
    harvester = Harvester(tmp_path)
    docids = [f"a.{number}.1" for number in range(1, 21)]
    for docid in docids:
        server.route(f"/{docid}.xml", answering(b"", status=503))
    list_url = server.serve("/list.xml", harvest_list((docid, server.url(f"/{docid}.xml")) for docid in docids))
    harvester.add_site("alder", list_url, updatefrequency=7)
    harvester.run(NIGHTS[0])
    deferred = told(harvester, "documents", "--outcome", "deferred")
    assert 0 < len(deferred) < len(docids)
    assert {finding["rule"] for row in deferred for finding in row["findings"]} == {"http.server-stopped"}
    assert told(harvester, "documents", "--rule", "http.server-stopped") == deferred
    assert len(told(harvester, "documents", "--failing")) == len(docids)
    failed = told(harvester, "documents", "--rule", "http.status")
    assert len(failed) == len(docids) - len(deferred)
    shown = told(harvester, "documents", "show", deferred[0]["document_id"])
    assert [finding["rule"] for finding in shown["history"][0]["findings"]] == ["http.server-stopped"]
    assert "20" in harvester("sites", "list").out

    publish(server, *docids, path="/list.xml")
    [retry] = harvester.run(NIGHTS[1])["sites"]
    assert (retry["kind"], retry["inserted"]) == ("retry", len(docids))
    assert told(harvester, "documents", "--failing") == []
    found = told(harvester, "diff", "1", "2")
    assert found["totals"] == {
        "newly_failing": 0,
        "still_failing": 0,
        "fixed": len(docids),
        "inserted": len(docids),
        "updated": 0,
        "deleted": 0,
    }
    [site] = told(harvester, "sites", "list")
    assert (site["failing"], [each["run_id"] for each in site["trend"]], site["last_run_id"]) == (0, [1], 1)
    harvester.close()


def test_a_diff_takes_failing_from_the_documents_also_where_no_list_was_read(
    tmp_path: Path, server: HttpServer
) -> None:
    harvester = Harvester(tmp_path)
    bad = [(f"a.{number}.1", server.route(f"/{number}.xml", answering(b"", status=503))) for number in (2, 3)]
    url = publish(server, "a.1.1", also=bad)
    harvester.add_site("alder", url, updatefrequency=2)
    harvester.run(NIGHTS[0])
    server.serve("/2.xml", eml("a.2.1"))
    assert harvester.run(NIGHTS[1])["sites"][0]["kind"] == "retry"
    server.route("/list.xml", answering(b"", status=503))
    harvester.run(NIGHTS[2])

    def standing(first: str, second: str) -> list[tuple[object, ...]]:
        [site] = told(harvester, "diff", first, second)["sites"]
        ends = [(site[end]["status"], site[end]["listed"], site[end]["failing"]) for end in ("before", "after")]
        return [*ends, (site["totals"]["still_failing"], site["totals"]["fixed"])]

    assert standing("1", "2") == [("with-errors", 3, 2), ("with-errors", 3, 1), (1, 1)]
    assert standing("2", "3") == [("with-errors", 3, 1), ("list-failed", None, 1), (1, 0)]
    [row] = [line for line in harvester("diff", "1", "3").out.splitlines() if line.startswith("alder  ")]
    assert " ".join(row.split()) == "alder with-errors -> list-failed 3 -> - 2 -> 1 1 1 1"
    harvester.close()


def test_a_diff_of_runs_whose_log_is_deleted_says_so(tmp_path: Path, server: HttpServer) -> None:
    harvester = Harvester(tmp_path)
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    harvester.add_site("alder", url)
    harvester.add_site("birch", publish(server, "b.1.1", path="/birch.xml", also=[("b.2.1", server.url("/no.xml"))]))
    for night in NIGHTS[:3]:
        harvester.run(night)
    harvester.rows("DELETE FROM harvest_detail_log WHERE harvest_log_id IN (SELECT harvest_log_id FROM harvest_log)")
    harvester.rows("DELETE FROM harvest_log WHERE run_id = 1")
    said = harvester("diff", "1", "2")
    assert (said.code, "The log of the run 1 has been deleted" in said.err) == (2, True)
    harvester.rows("DELETE FROM harvest_log WHERE run_id = 2 AND document_id = 'b.2'")
    sites = {site["site"]: site for site in told(harvester, "diff", "2", "3")["sites"]}
    assert (sites["alder"]["log_kept"], sites["birch"]["log_kept"]) == (True, False)
    assert "birch: the log of a harvest has been deleted" in harvester("diff", "2", "3").out
    harvester.close()
