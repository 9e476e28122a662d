"""Sites with filters, normalising and a level of validation: whole runs over a harvest list, as people see them."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text as sql

from metaharvest.harvest.limits import CheckLimits, RunLimits
from metaharvest.validation import worker
from support.databases import KINDS
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.little_time import start_with_little_time
from support.mails import words_of
from support.oai_server import Asked, OaiServer, dublin_core
from support.remote_target import Repository, installed

on_one_database = pytest.mark.parametrize("database", KINDS[:1], indirect=True)

DC = "http://purl.org/dc/elements/1.1/"
OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
FILTERS = """\
<filters match="all">
  <filter xpath="/*/dataset/title" regexp="water" ignoreCase="true"/>
  <filter xpath="//creator" regexp="secret" invert="true"/>
</filters>
"""
NORMALIZE = """\
<normalize>
  <mapping xpath="/*/dataset/title">
    <newElement name="title" regexp="water"><newValue>Hydrology</newValue></newElement>
  </mapping>
</normalize>
"""


def site(harvester: Harvester, url: str, name: str = "alder", **options: str) -> int:
    return harvester.add_site(name, url, options=json.dumps(options))


def put(harvester: Harvester, name: str, content: str) -> str:
    (harvester.folder / name).write_text(content, encoding="utf-8")
    return name


def serve(server: HttpServer, contents: Iterable[bytes]) -> str:
    """A list of a.1.1, a.2.1, …, with these contents."""
    entries = []
    for number, content in enumerate(contents, start=1):
        server.serve(f"/a.{number}.1.xml", content)
        entries.append((f"a.{number}.1", server.url(f"/a.{number}.1.xml")))
    server.serve("/list.xml", harvest_list(entries))
    return server.url("/list.xml")


def dc(*children: str) -> bytes:
    return f'<oai_dc:dc xmlns:oai_dc="{OAI_DC}" xmlns:dc="{DC}">{"".join(children)}</oai_dc:dc>'.encode()


def report(harvester: Harvester) -> str:
    """The text of the one mail to the site's contact, on one line."""
    [mail] = [mail for mail in harvester.mails() if mail["To"] == "alder@example.org"]
    return words_of(mail)


def test_what_the_filters_do_not_match_is_left_out_and_harms_nobody(harvester: Harvester, server: HttpServer) -> None:
    titles = ["Water temperature", "Birds", "Ground WATER", "Water, for the secret station"]
    contents = [eml(f"a.{number}.1", title) for number, title in enumerate(titles, start=1)]
    contents[3] = contents[3].replace(b"Test station", b"secret station")
    site(harvester, serve(server, contents), filters=put(harvester, "filters.xml", FILTERS))
    run = harvester.run("2026-11-20")
    [told] = run["sites"]
    assert (run["exit_code"], told["status"], told["listed"]) == (0, "succeeded", 4)
    assert (told["inserted"], told["filtered"], told["warnings"]) == (2, 2, 0)
    assert harvester.outcomes(run["run_id"]) == {
        "a.1.1": "inserted",
        "a.2.1": "filtered",
        "a.3.1": "inserted",
        "a.4.1": "filtered",
    }
    assert sorted(harvester.held()) == ["a.1.1", "a.3.1"]
    assert harvester.findings(run["run_id"]) == []
    messages = harvester.rows("SELECT message FROM harvest_log WHERE outcome = 'filtered' ORDER BY document_id")
    assert [message for (message,) in messages] == [
        "a.2.1 was left out by a filter. Filter 1 (line 2), /*/dataset/title: 'Birds' does not match water.",
        "a.4.1 was left out by a filter. Filter 2 (line 3), //creator: 'secret station' matches secret, and the filter "
        "is inverted.",
    ]
    text = report(harvester)
    assert "filter.left-out" not in text
    assert "left out" in text

    # The next night says the same, and a filter that was changed holds at once.
    again = harvester.run("2026-11-21")["sites"][0]
    assert (again["unchanged"], again["filtered"], again["status"]) == (2, 2, "succeeded")
    put(harvester, "filters.xml", FILTERS.replace("water", "bird"))
    changed = harvester.run("2026-11-22")["sites"][0]
    assert (changed["inserted"], changed["unchanged"], changed["filtered"]) == (1, 2, 1)


@on_one_database
def test_a_revision_that_is_left_out_is_told_with_the_one_that_stays(harvester: Harvester, server: HttpServer) -> None:
    filters = put(harvester, "filters.xml", FILTERS)
    site(harvester, serve(server, [eml("a.1.1", "Water temperature")]), filters=filters)
    harvester.run("2026-11-20")
    server.serve("/a.1.2.xml", eml("a.1.2", "Birds"))
    server.serve("/list.xml", harvest_list([("a.1.2", server.url("/a.1.2.xml"))]))
    run = harvester.run("2026-11-21")
    assert harvester.outcomes(run["run_id"]) == {"a.1.2": "filtered"}
    assert list(harvester.held()) == ["a.1.1"]
    [(message,)] = harvester.rows("SELECT message FROM harvest_log WHERE outcome = 'filtered'")
    assert message.endswith("'Birds' does not match water. The central repository keeps revision 1.")


@on_one_database
@pytest.mark.parametrize(
    ("match", "invert", "taken"),
    [("any", "false", [1, 2]), ("all", "false", [1]), ("any", "true", [3, 4]), ("all", "true", [2, 3, 4])],
)
def test_match_and_invert_as_they_are_meant(
    harvester: Harvester, server: HttpServer, match: str, invert: str, taken: list[int]
) -> None:
    image, text = "<dc:type>image</dc:type>", "<dc:type>text</dc:type>"
    url = serve(server, [dc(image, image), dc(image, text), dc(text), dc("<dc:title>none</dc:title>")])
    written = (
        f'<filters match="{match}"><selectionNamespaces>xmlns:dc="{DC}"</selectionNamespaces>'
        f'<filter xpath="//dc:type" regexp="image" invert="{invert}"/></filters>'
    )
    site(harvester, url, filters=put(harvester, "filters.xml", written), validation="strict")
    [told] = harvester.run("2026-11-20")["sites"]
    assert sorted(harvester.held()) == [f"a.{number}.1" for number in taken]
    assert (told["inserted"], told["filtered"], told["listed"]) == (len(taken), 4 - len(taken), 4)


@pytest.mark.quick
def test_the_target_gets_the_normalised_document(harvester: Harvester, server: HttpServer) -> None:
    contents = [eml("a.1.1", "On water"), eml("a.2.1", "On birds")]
    site(harvester, serve(server, contents), normalize=put(harvester, "normalize.xml", NORMALIZE))
    [told] = harvester.run("2026-11-20")["sites"]
    assert (told["inserted"], told["status"]) == (2, "succeeded")
    held = harvester.held()
    added = b"<title>On water</title>\n    <title>Hydrology</title>\n"
    assert held["a.1.1"].partition(b"?>\n")[2] + b"\n" == contents[0].partition(b"?>\n")[2].replace(
        b"<title>On water</title>\n", added
    )
    assert held["a.2.1"] == contents[1]
    [again] = harvester.run("2026-11-21")["sites"]
    assert (again["unchanged"], again["status"]) == (2, "succeeded")


@on_one_database
def test_other_normalising_holds_for_the_next_revisions_of_a_list_and_accuses_nobody(
    harvester: Harvester, server: HttpServer
) -> None:
    content = eml("a.1.1", "On water")
    site(harvester, serve(server, [content]), normalize=put(harvester, "normalize.xml", NORMALIZE))
    harvester.run("2026-11-20")
    normalised = harvester.held()["a.1.1"]
    said = harvester("sites", "edit", "alder", "--normalize", "none")
    assert said.out.splitlines()[1:] == [
        "  normalize: normalize.xml -> none",
        "What was left out is judged again then; what the repository has stays until its revision is raised.",
    ]
    # It is looked at again after thirty days, and is what it was.
    run = harvester.run("2026-12-20")
    assert [each.path for each in server.requests].count("/a.1.1.xml") == 2
    assert (run["sites"][0]["unchanged"], harvester.findings(run["run_id"])) == (1, [])
    server.serve("/a.1.2.xml", eml("a.1.2", "On water"))
    server.serve("/list.xml", harvest_list([("a.1.2", server.url("/a.1.2.xml"))]))
    harvester.run("2026-12-21")
    assert harvester.held() == {"a.1.1": normalised, "a.1.2": eml("a.1.2", "On water")}


@on_one_database
def test_what_normalising_makes_is_what_is_checked(harvester: Harvester, server: HttpServer) -> None:
    wrong = NORMALIZE.replace('name="title"', 'name="titel"')
    site(harvester, serve(server, [eml("a.1.1", "On water")]), normalize=put(harvester, "normalize.xml", wrong))
    run = harvester.run("2026-11-20")
    assert run["sites"][0]["invalid"] == 1
    found = harvester.findings(run["run_id"])
    assert ("a.1", "error", "schema.unexpected-element") in found
    assert ("a.1", "error", "filter.normalized") in found


@on_one_database
def test_normalising_is_not_blamed_for_what_was_wrong_before(harvester: Harvester, server: HttpServer) -> None:
    content = eml("a.1.1", "On water").replace(b"<title>", b"<titel/><title>", 1)
    site(harvester, serve(server, [content]), normalize=put(harvester, "normalize.xml", NORMALIZE))
    run = harvester.run("2026-11-20")
    assert [rule for _, level, rule in harvester.findings(run["run_id"]) if level == "error"] == [
        "schema.unexpected-element"
    ]


@on_one_database
def test_a_file_that_is_wrong_fails_its_site_alone_and_the_doctor_says_so(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1")
    site(harvester, url, filters=put(harvester, "bad.xml", "<filters match='any'>\n<filter xpath='//x['/></filters>"))
    site(harvester, url, "birch", normalize="none.xml")
    site(harvester, publish(server, "c.1.1", path="/c.xml"), "cedar")
    run = harvester.run("2026-11-20")
    sites = {each["site"]: each for each in run["sites"]}
    assert [sites[name]["status"] for name in ("alder", "birch", "cedar")] == ["failed", "failed", "succeeded"]
    assert "bad.xml, line 2: the XPath //x[ cannot be used" in sites["alder"]["failure_reason"]
    assert "none.xml cannot be read" in sites["birch"]["failure_reason"]
    assert run["exit_code"] == 3
    assert server.asked("/list.xml") == []
    said = harvester("doctor")
    assert said.code == 1
    assert "alder: " in said.out
    assert "line 2: the XPath //x[ cannot be used: Invalid expression." in said.out
    assert "birch: " in said.out


@on_one_database
def test_a_file_that_is_wrong_is_told_when_a_site_gets_it(harvester: Harvester, server: HttpServer) -> None:
    url, contact = publish(server, "a.1.1"), ("--contact", "a@example.org")
    put(harvester, "bad.xml", "<filters match='any'>\n<filter xpath='//x:a' regexp='['/></filters>")
    said = harvester("sites", "add", "alder", "--list-url", url, *contact, "--filters", "bad.xml")
    assert (said.code, harvester.rows("SELECT name FROM harvest_site_schedule")) == (2, [])
    assert "bad.xml, line 2: the XPath //x:a cannot be used: the prefix x is not declared" in said.err
    assert "bad.xml, line 2: [ is no regular expression" in said.err
    good = put(harvester, "good.xml", FILTERS)
    assert harvester("sites", "add", "alder", "--list-url", url, *contact, "--filters", good).code == 0
    said = harvester("sites", "edit", "alder", "--normalize", "none.xml")
    assert (said.code, "none.xml cannot be read: No such file" in said.err) == (2, True)
    assert harvester("doctor", "--json").out.count("good.xml") == 0


# -- repositories


def test_records_of_a_repository_are_filtered_normalised_and_checked(harvester: Harvester) -> None:
    filters = put(
        harvester,
        "filters.xml",
        f"<filters match='all'><selectionNamespaces>xmlns:dc='{DC}'</selectionNamespaces>"
        "<filter xpath='//dc:title' regexp='^Record ([1-9]|1[0-9])$'/></filters>",
    )
    normalize = put(
        harvester,
        "normalize.xml",
        f"<normalize><selectionNamespaces>xmlns:dc='{DC}'</selectionNamespaces><mapping xpath='//dc:title'>"
        "<newElement name='dc:subject' regexp='7$'><newValue>Seven</newValue></newElement></mapping></normalize>",
    )
    with OaiServer(records=0) as repository:
        for number in range(1, 26):
            repository.put(f"oai:test:{number}", metadata=dublin_core(f"Record {number}"))
        options = ("--filters", filters, "--normalize", normalize, "--validation", "very-strict", "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        [told] = harvester.run("2030-01-01", "--site", "repo")["sites"]
        assert (told["status"], told["listed"], told["inserted"], told["filtered"]) == ("succeeded", 25, 19, 6)
        held = {name.rpartition(":")[2]: content for name, content in harvester.held().items()}
        assert sorted(name for name in held if b"Seven" in held[name]) == ["17.1", "7.1"]
        altered = harvester.rows("SELECT document_id FROM document_origin WHERE altered AND received IS NOT NULL")
        assert sorted(altered) == [("test/oai_dc/oai:test:17",), ("test/oai_dc/oai:test:7",)]
        [again] = harvester.run("2030-01-02", "--site", "repo", "--full")["sites"]
        assert (again["unchanged"], again["filtered"], again["inserted"], again["updated"]) == (19, 6, 0, 0)


@on_one_database
def test_what_is_to_be_added_holds_for_all_of_a_full_list_that_broke_off(harvester: Harvester) -> None:
    started: list[subprocess.Popen[str]] = []

    def stop(body: bytes, asked: Asked) -> bytes:
        if started and "resumptionToken" in asked.arguments:
            started.pop().send_signal(signal.SIGTERM)
            time.sleep(0.5)
        return body

    def add(subject: str) -> str:
        return put(
            harvester,
            "normalize.xml",
            f"<normalize><selectionNamespaces>xmlns:dc='{DC}'</selectionNamespaces><mapping xpath='//dc:title'>"
            f"<newElement name='dc:subject'><newValue>{subject}</newValue></newElement></mapping></normalize>",
        )

    def held(subject: bytes) -> int:
        return sum(subject in content for content in harvester.held().values())

    with OaiServer(records=25) as repository:
        options = ("--normalize", add("Toads"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        harvester.run("2030-01-01", "--site", "repo")
        assert held(b"Toads") == 25
        add("Newts")
        repository.tamper = stop
        started.append(process := harvester.start("run", "--date", "2030-01-02", "--site", "repo", "--full"))
        process.communicate(timeout=60)
        assert 0 < held(b"Newts") < 25
        assert harvester.run("2030-01-03", "--site", "repo")["sites"][0]["status"] == "succeeded"
        assert held(b"Newts") == 25


@on_one_database
def test_a_full_list_that_is_asked_for_tries_changed_filters_on_all_records(harvester: Harvester) -> None:
    written = (
        f"<filters match='any'><selectionNamespaces>xmlns:dc='{DC}'</selectionNamespaces>"
        "<filter xpath='//dc:%s'/></filters>"
    )
    with OaiServer(records=25) as repository:
        options = ("--filters", put(harvester, "filters.xml", written % "rights"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        repository.refuse_tokens = b"", 503
        [told] = harvester.run("2030-01-01", "--site", "repo")["sites"]
        assert (told["status"], told["filtered"]) == ("incomplete", 10)
        repository.refuse_tokens = None
        put(harvester, "filters.xml", written % "title")
        [told] = harvester.run("2030-01-02", "--site", "repo", "--full")["sites"]
        assert (told["status"], told["listed"], told["inserted"]) == ("succeeded", 25, 25)


DC_FILTERS = f"<filters match='any'><selectionNamespaces>xmlns:dc='{DC}'</selectionNamespaces>{{}}</filters>"


def taking(harvester: Harvester, regexp: str, before: str = "") -> str:
    """Filters that take records with such a title."""
    return put(harvester, "filters.xml", DC_FILTERS.format(f'{before}<filter xpath="//dc:title" regexp="{regexp}"/>'))


def adding(harvester: Harvester, subject: str) -> str:
    """Mappings that add a subject to records with a title in 1 or 2."""
    mapping = f"<newElement name='dc:subject' regexp='[12]$'><newValue>{subject}</newValue></newElement>"
    return put(
        harvester,
        "normalize.xml",
        f"<normalize><selectionNamespaces>xmlns:dc='{DC}'</selectionNamespaces>"
        f"<mapping xpath='//dc:title'>{mapping}</mapping></normalize>",
    )


def titled(number: int) -> OaiServer:
    """A repository with so many records, entitled Record 1, 2, …"""
    repository = OaiServer(records=number)
    for identifier, record in repository.records.items():
        repository.put(identifier, record.datestamp, metadata=dublin_core(f"Record {identifier.rpartition(':')[2]}"))
    return repository


def lists_asked(repository: OaiServer) -> list[str]:
    """How the lists were asked for since the last time: `all`, or `changes`; then forget it."""
    first = [each.arguments for each in repository.asked("ListRecords") if "resumptionToken" not in each.arguments]
    repository.forget()
    return ["changes" if "from" in arguments else "all" for arguments in first]


@on_one_database
def test_a_repository_is_listed_in_full_once_its_filters_say_something_else(harvester: Harvester) -> None:
    def run(day: int) -> tuple[int, int, int]:
        [told] = harvester.run(f"2030-01-{day:02}", "--site", "repo")["sites"]
        assert told["status"] == "succeeded"
        return told["inserted"], told["unchanged"], told["filtered"]

    with titled(25) as repository:
        options = ("--filters", taking(harvester, "[1-5]$"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        assert (run(1), lists_asked(repository)) == ((15, 0, 10), ["all"])
        assert (run(2), lists_asked(repository)) == ((0, 0, 0), ["changes"])
        # What was taken, and is not by these, stays.
        taking(harvester, "[4-7]$")
        assert (run(3), lists_asked(repository)) == ((4, 6, 15), ["all"])
        [(message,)] = harvester.rows(
            "SELECT message FROM harvest_log WHERE run_id = 3 AND harvest_operation_code = 'ListRecordsSuccess' "
            "AND message LIKE '%filters%'"
        )
        assert message.startswith("The site's filters or its normalising have changed")
        assert (run(4), lists_asked(repository)) == ((0, 0, 0), ["changes"])
        # The same in other words is the same.
        taking(harvester, "[4-7]$", before="\n\n<!-- four to seven -->\n")
        assert (run(5), lists_asked(repository)) == ((0, 0, 0), ["changes"])
        assert harvester("sites", "edit", "repo", "--filters", "none").code == 0
        assert (run(6), lists_asked(repository)) == ((6, 19, 0), ["all"])
        assert (run(7), lists_asked(repository)) == ((0, 0, 0), ["changes"])
        assert len(harvester.held()) == 25


@on_one_database
def test_by_which_files_records_were_judged_before_that_was_kept_is_not_made_up(harvester: Harvester) -> None:
    def run(day: int) -> list[str]:
        [told] = harvester.run(f"2030-01-{day:02}", "--site", "repo")["sites"]
        assert told["status"] == "succeeded"
        return lists_asked(repository)

    with titled(5) as repository:
        options = ("--filters", taking(harvester, "[1-3]$"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        assert run(1) == ["all"]
        [(kept,)] = harvester.rows("SELECT checkpoint FROM site_checkpoint")
        before = json.dumps({name: value for name, value in json.loads(kept).items() if name != "treatment"})
        with harvester.engine.begin() as connection:
            connection.execute(sql("UPDATE site_checkpoint SET checkpoint = :before"), {"before": before})
        assert run(2) == ["changes"]
        assert harvester.rows("SELECT message FROM harvest_log WHERE message LIKE '%filters%' AND run_id = 2") == []
        taking(harvester, "[1-4]$")
        assert run(3) == ["all"]


def test_normalised_copies_are_made_anew_and_go_back_to_what_was_received(harvester: Harvester) -> None:
    def run(day: int, *more: str) -> tuple[int, int, int]:
        [told] = harvester.run(f"2030-01-{day:02}", "--site", "repo", *more)["sites"]
        assert told["status"] == "succeeded"
        return told["inserted"], told["updated"], told["unchanged"]

    def newest() -> dict[str, bytes]:
        held = sorted(harvester.held().items(), key=lambda each: int(each[0].rpartition(".")[2]))
        return {docid.rpartition(".")[0]: content for docid, content in held}

    with titled(25) as repository:
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, "--origin", "test").code == 0
        assert run(1) == (25, 0, 0)
        received = newest()
        said = harvester("sites", "edit", "repo", "--normalize", adding(harvester, "Toads"))
        assert said.out.splitlines()[2:] == ["All of its records are listed and judged again then."]
        assert run(2, "--dry-run") == (0, 6, 19)
        assert run(3) == (0, 6, 19)
        assert sum(b"Toads" in content for content in newest().values()) == 6
        adding(harvester, "Newts")
        assert run(4) == (0, 6, 19)
        assert sum(b"Newts" in content and b"Toads" not in content for content in newest().values()) == 6
        assert harvester("sites", "edit", "repo", "--normalize", "none").code == 0
        lists_asked(repository)
        assert (run(5), lists_asked(repository)) == ((0, 6, 19), ["all"])
        assert newest() == received
        assert (run(6), lists_asked(repository)) == ((0, 0, 0), ["changes"])
        altered = "SELECT COUNT(*) FROM document_origin WHERE altered AND revision = 4"
        assert harvester.rows(altered) == [(0,)]


@on_one_database
def test_what_is_judged_again_and_stays_the_same_gets_no_revision_in_a_repository_that_tells_no_digests(
    harvester: Harvester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path))
    with Repository() as remote, titled(25) as repository:
        harvester.config.write_text(f'{harvester.config.read_text()}[target]\nkind = "remote"\nurl = "{remote.url}"\n')
        options = ("--normalize", adding(harvester, "Toads"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        assert harvester.run("2030-01-01", "--site", "repo")["sites"][0]["inserted"] == 25
        assert harvester.run("2030-01-02", "--site", "repo", "--full")["sites"][0]["unchanged"] == 25
        assert harvester("sites", "edit", "repo", "--normalize", "none").code == 0
        [told] = harvester.run("2030-01-03", "--site", "repo")["sites"]
        assert (told["updated"], told["unchanged"]) == (6, 19)


@on_one_database
@pytest.mark.parametrize("until", [(), ("--until", "2026-11-20T03:00:00Z")], ids=("all", "until a day"))
def test_judging_anew_goes_on_where_it_broke_off_and_begins_again_with_other_files(
    harvester: Harvester, until: tuple[str, ...]
) -> None:
    def held(subject: bytes) -> int:
        newest = {docid.rpartition(".")[0]: content for docid, content in sorted(harvester.held().items())}
        return sum(subject in content for content in newest.values())

    def run(day: int, status: str) -> list[str]:
        assert harvester.run(f"2030-01-{day:02}", "--site", "repo")["sites"][0]["status"] == status
        return lists_asked(repository)

    with titled(25) as repository:
        options = ("--normalize", adding(harvester, "Toads"), "--origin", "test", *until)
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        assert run(1, "succeeded") == ["all"]
        assert harvester("sites", "edit", "repo", "--normalize", "none").code == 0
        repository.poison.add("oai:test:15")
        repository.refuse_tokens = b"", 503
        run(2, "incomplete")
        broken_off = held(b"Toads")
        assert 0 < broken_off < 6
        repository.refuse_tokens = None
        repository.poison.clear()
        assert run(3, "succeeded") == []
        assert held(b"Toads") == 0
        # Other ones half-way, and then the first again: what was judged by the others is judged again.
        adding(harvester, "Newts")
        assert harvester("sites", "edit", "repo", "--normalize", "normalize.xml").code == 0
        repository.refuse_tokens = b"", 503
        run(4, "incomplete")
        assert 0 < held(b"Newts") < 6
        repository.refuse_tokens = None
        assert harvester("sites", "edit", "repo", "--normalize", "none").code == 0
        assert run(5, "succeeded") == ["all"]
        assert held(b"Newts") == 0
        assert run(6, "succeeded") == ["changes"]


@on_one_database
def test_files_that_change_while_a_run_is_down_hold_from_the_next_one_on(harvester: Harvester) -> None:
    """A run that goes on with one that was killed goes on as that began: no record has two outcomes in it."""
    started: list[subprocess.Popen[str]] = []

    def stop(body: bytes, asked: Asked) -> bytes:
        if started and "!20!" in str(asked.arguments):  # the first page's records have their outcomes
            started.pop().kill()
        return body

    with titled(25) as repository:
        options = ("--filters", taking(harvester, "^Nothing"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        repository.tamper = stop
        started.append(process := harvester.start("run", "--date", "2030-01-01", "--site", "repo"))
        process.communicate(timeout=60)
        assert harvester.rows("SELECT COUNT(*) FROM harvest_log WHERE outcome = 'filtered'")[0][0] in range(1, 25)
        taking(harvester, "^Record")
        [told] = harvester.run("2030-01-02", "--site", "repo")["sites"]
        assert (told["status"], told["listed"]) == ("succeeded", 25)
        assert told["inserted"] + told["filtered"] == 25
        [told] = harvester.run("2030-01-03", "--site", "repo")["sites"]
        assert (told["status"], told["listed"]) == ("succeeded", 25)
        assert len(harvester.held()) == 25
        lists_asked(repository)
        [told] = harvester.run("2030-01-04", "--site", "repo")["sites"]
        assert (told["listed"], lists_asked(repository)) == (0, ["changes"])


@on_one_database
def test_what_an_empty_answer_leaves_unjudged_is_judged_in_the_next_harvest(harvester: Harvester) -> None:
    with titled(5) as repository:
        options = ("--filters", taking(harvester, "[12]$"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        harvester.run("2030-01-01", "--site", "repo")
        taking(harvester, "^Record")
        records, repository.records = repository.records, {}
        harvester.run("2030-01-02", "--site", "repo")
        repository.records = records
        [told] = harvester.run("2030-01-03", "--site", "repo")["sites"]
        assert (told["inserted"], told["unchanged"]) == (3, 2)


@on_one_database
def test_a_record_that_is_left_out_has_no_revision_and_what_the_repository_keeps_of_it_is_told(
    harvester: Harvester,
) -> None:
    with titled(2) as repository:
        options = ("--filters", taking(harvester, "^Record 1"), "--origin", "test")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        harvester.run("2030-01-01", "--site", "repo")
        repository.put("oai:test:1", metadata=dublin_core("Birds"))
        harvester.run("2030-01-02", "--site", "repo")

    told = json.loads(harvester("documents", "--outcome", "filtered", "--json").out)
    assert [(each["docid"], each["revision"], each["repository_revision"]) for each in told] == [
        ("test/oai_dc/oai:test:1", None, 1),
        ("test/oai_dc/oai:test:2", None, None),
    ]
    assert [each["run_id"] for each in told] == [2, 1]
    lines = harvester("documents", "--outcome", "filtered").out.splitlines()[1:]
    assert [" ".join(line.split()) for line in lines] == [
        "test/oai_dc/oai:test:1 repo filtered the repository keeps revision 1 Birds",
        "test/oai_dc/oai:test:2 repo filtered Record 2",
    ]
    shown = harvester("documents", "show", "test/oai_dc/oai:test:1").out
    assert "listed by   repo: filtered, the repository keeps revision 1\n" in shown
    assert "oai:test:1.2" not in shown
    reason = "//dc:title: 'Birds' does not match ^Record 1. The central repository keeps revision 1."
    assert f"test/oai_dc/oai:test:1 was left out by a filter. Filter 1 (line 1), {reason}" in shown
    shown = harvester("documents", "show", "test/oai_dc/oai:test:2").out
    assert "listed by   repo: filtered\n" in shown
    assert "oai:test:2.1" not in shown


# -- cost


COSTLY_XPATH = "//x[count(//x[count(//x[count(//x[contains(., string(position()))]) > 1]) > 1]) > 5]"


@on_one_database
@pytest.mark.timeout(300)
@pytest.mark.long
@pytest.mark.parametrize(
    ("written", "limits"),
    [
        (f'<filter xpath="{COSTLY_XPATH.replace(">", "&gt;")}"/>', CheckLimits(transform_seconds=0.5)),
        ('<filter xpath="//x" regexp="(a|a)*$"/>', CheckLimits(quick_seconds=2)),
    ],
    ids=("XPath", "regular expression"),
)
def test_a_hostile_filter_costs_a_few_documents_and_other_sites_nothing(
    harvester: Harvester, server: HttpServer, written: str, limits: CheckLimits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "start", start_with_little_time)
    long = f"<r>{'<x>' + 'a' * 500 + '!</x>'}{'<x>aaaa!</x>' * 400}</r>".encode()
    url = serve(server, [long] * 40)
    filters = put(harvester, "filters.xml", f"<filters match='any'>{written}</filters>")
    site(harvester, url, filters=filters, validation="strict")
    harvester.add_site("birch", publish(server, *(f"b.{number}.1" for number in range(10)), path="/b.xml"))
    harvester.limits = RunLimits(check=limits)
    run = harvester.run("2026-11-20")
    sites: dict[str, Any] = {each["site"]: each for each in run["sites"]}
    assert (sites["birch"]["inserted"], sites["birch"]["status"]) == (10, "succeeded")
    alder = sites["alder"]
    assert 3 <= alder["invalid"] <= 20
    assert alder["invalid"] + alder["deferred"] == alder["listed"] == 40
    rules = [rule for _, _, rule in harvester.findings(run["run_id"])]
    assert set(rules) == {"filter.too-expensive"}
    assert "took too long on 3 documents" in report(harvester)


# -- levels


@on_one_database
@pytest.mark.parametrize(
    ("level", "kinds"),
    [
        (None, ["inserted", "invalid", "invalid", "invalid", "invalid", "invalid"]),
        ("strict", ["inserted", "inserted", "inserted", "inserted", "inserted", "invalid"]),
        ("very-strict", ["inserted", "invalid", "inserted", "invalid", "inserted", "invalid"]),
        ("loose", ["inserted", "inserted", "inserted", "inserted", "inserted", "invalid"]),
    ],
)
def test_three_levels_of_validation(
    harvester: Harvester, server: HttpServer, level: str | None, kinds: list[str]
) -> None:
    contents = [
        eml("a.1.1"),
        eml("a.2.1").replace(b"<contact>", b"<kontakt>").replace(b"</contact>", b"</kontakt>"),
        dc("<dc:title>A title</dc:title>"),
        dc("<dc:titel>A title</dc:titel>"),
        b"<book xmlns='urn:books'/>",
        b"<book>",
    ]
    site(harvester, serve(server, contents), **({"validation": level} if level else {}))
    run = harvester.run("2026-11-20")
    assert [kind for _, kind in sorted(harvester.outcomes(run["run_id"]).items())] == kinds
    warned = [document for document, level_, _ in harvester.findings(run["run_id"]) if level_ == "warning"]
    expected: dict[str | None, list[str]] = {"loose": ["a.2", "a.4", "a.6"], "very-strict": ["a.5"]}
    assert sorted(map(str, set(warned))) == expected.get(level, [])
    assert run["sites"][0]["status"] == ("succeeded" if level == "loose" else "with-errors")


@on_one_database
def test_a_loose_site_is_only_warned_of_what_cannot_be_had_or_is_no_xml(harvester: Harvester) -> None:
    with OaiServer(records=25) as repository:
        repository.put("oai:test:3", metadata="")
        repository.put("oai:test:4", metadata=dublin_core("Frogs").replace("dc:title>", "dc:titel>"))
        repository.poison.add("oai:test:7")
        options = ("--validation", "loose", "--origin", "test", "--notify", "on-error")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, *options).code == 0
        run = harvester.run("2030-01-01", "--site", "repo", "--strict")
        [told] = run["sites"]
        assert (run["exit_code"], run["status"], told["status"], told["listed"]) == (0, "succeeded", "succeeded", 25)
        assert (told["inserted"], told["invalid"] + told["access_error"]) == (23, 2)
        found = {(document, level) for document, level, _ in harvester.findings(run["run_id"]) if document}
        assert found == {(f"test/oai_dc/oai:test:{number}", "warning") for number in (3, 4, 7)}
        assert harvester.rows("SELECT COUNT(*) FROM harvest_log WHERE status = 1") == [(0,)]
        assert harvester.subjects() == ["[Test network] 1 site: 1 well; 23 new (2030-01-01)"]
        # It is tried again, and told again.
        [again] = harvester.run("2030-01-02", "--site", "repo")["sites"]
        assert (again["status"], again["listed"], again["unchanged"]) == ("succeeded", 3, 1)
        assert again["warnings"] == 2
        harvester("sites", "edit", "repo", "--notify", "always")
        harvester.run("2030-01-03", "--site", "repo")
        assert any("not valid" in subject and "error" not in subject for subject in harvester.subjects())


def test_what_was_an_error_is_no_failure_any_more_once_the_site_is_loose(harvester: Harvester) -> None:
    with OaiServer(records=5) as repository:
        repository.put("oai:test:3", metadata="")
        assert harvester("sites", "add", "repo", "--oai", repository.base_url, "--origin", "test").code == 0
        assert harvester.run("2030-01-01", "--site", "repo")["sites"][0]["status"] == "with-errors"
        failing = "SELECT rule FROM site_problem WHERE state = 'open' AND needs_attention"
        assert len(harvester.rows(failing)) == 1
        harvester("sites", "edit", "repo", "--validation", "loose")
        assert harvester.run("2030-01-02", "--site", "repo")["sites"][0]["status"] == "succeeded"
        assert harvester.rows(failing) == []
        harvester("sites", "edit", "repo", "--validation", "strict")
        assert harvester.run("2030-01-03", "--site", "repo")["sites"][0]["status"] == "with-errors"
        assert len(harvester.rows(failing)) == 1


@on_one_database
def test_that_a_format_has_no_schema_is_told_once_a_harvest(harvester: Harvester, server: HttpServer) -> None:
    contents = [f"<book xmlns='urn:books'>{number}</book>".encode() for number in range(20)]
    site(harvester, serve(server, [*contents, b"<film/>", b"<film/>"]), validation="very-strict")
    run = harvester.run("2026-11-20")
    assert run["sites"][0]["inserted"] == 22
    assert [rule for _, _, rule in harvester.findings(run["run_id"])] == ["validation.no-schema"] * 2
    assert "root element is book in the namespace urn:books" in report(harvester)


def test_what_was_received_is_kept_beside_what_was_made_of_it(harvester: Harvester, server: HttpServer) -> None:
    received = [eml("a.1.1", "Cold water"), eml("a.2.1", "Birds")]
    site(harvester, serve(server, received), normalize=put(harvester, "normalize.xml", NORMALIZE))
    [ended] = harvester.run("2026-11-20")["sites"]
    assert ended["inserted"] == 2
    query = "SELECT document_id, revision, base_url, altered, received FROM document_origin"
    [(document_id, revision, base_url, altered, kept)] = harvester.rows(query)
    assert (document_id, revision, bool(altered)) == ("a.1", 1, True)
    assert (base_url, bytes(kept)) == (server.url("/a.1.1.xml"), received[0])
    assert b"Hydrology" in harvester.held()["a.1.1"]
