"""`metaharvest oai`: what people see of a repository, without settings and without a database."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from support.cli import Told, attempt, in_database, initialize, tell
from support.oai_server import DC, Asked, OaiServer, Odd

LOOPBACK = ("--allow-network", "127.0.0.0/8")


def ask(folder: Path, repository: OaiServer, command: str, *arguments: str) -> Told:
    return tell(folder, "oai", command, repository.base_url, *arguments, *LOOPBACK)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metaharvest.toml").write_text("[http]\nretry_wait = 0\n")
    return tmp_path


def test_identify_formats_and_sets_are_shown_in_words(folder: Path) -> None:
    with OaiServer(3) as repository:
        repository.sets = {"frogs": "Frogs & toads"}
        repository.friends = ["https://friend.example.org/oai"]
        told = ask(folder, repository, "identify").out
        for words in ("Test repository", "keeper@example.org", "persistent", "YYYY-MM-DDThh:mm:ssZ", "friend.example"):
            assert words in told
        assert "warning" not in told
        assert f"oai_dc  {DC}" in ask(folder, repository, "formats").out
        assert "frogs  Frogs & toads" in ask(folder, repository, "sets").out
        repository.sets, repository.formats = {}, {}
        assert ask(folder, repository, "sets").out == "The repository has no sets.\n"


_COMMANDS = [
    ("identify", ()),
    ("formats", ()),
    ("sets", ()),
    ("list", ()),
    ("get", ("oai:test:1",)),
    ("validate", ()),
    ("friends", ()),
]


@pytest.mark.parametrize(("command", "arguments"), _COMMANDS)
def test_where_robots_txt_is_binding_and_forbids_it_nothing_is_asked(
    folder: Path, command: str, arguments: tuple[str, ...]
) -> None:
    (folder / "metaharvest.toml").write_text("[http]\nobey_robots = true\n")
    with OaiServer(3) as repository:
        repository.http.serve("/robots.txt", b"User-agent: metaharvest\nDisallow: /oai\n")
        told = attempt(folder, "oai", command, repository.base_url, *arguments, *LOOPBACK)
        assert "does not allow the harvester to ask for" in str(told.error)
        assert "It was not asked for: the harvester's settings make that binding." in str(told.error)
        assert repository.answered == []


def test_what_robots_txt_forbids_is_told_once_where_it_is_not_binding(folder: Path) -> None:
    with OaiServer(3) as repository:
        repository.http.serve("/robots.txt", b"User-agent: *\nDisallow: /oai\n")
        for command in ("identify", "validate"):
            assert ask(folder, repository, command).out.count("does not allow the harvester to ask for") == 1


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [("/*verb=ListRecords", True), ("/oai?", True), ("/*verb=Identify$", True), ("/oai$", False), ("/other", False)],
)
def test_robots_txt_is_about_what_is_asked(folder: Path, rule: str, is_told: bool) -> None:
    with OaiServer(3) as repository:
        repository.http.serve("/robots.txt", f"User-agent: *\nDisallow: {rule}\n".encode())
        told = ask(folder, repository, "validate").out
        assert ("does not allow the harvester to ask for" in told) is is_told


def test_what_is_odd_about_identify_is_told(folder: Path) -> None:
    with OaiServer(3, deleted="no") as repository:
        repository.odd = {Odd.OTHER_BASE_URL, Odd.NO_EARLIEST}
        told = ask(folder, repository, "identify").out
        assert "the base URL is http://other.example.org/oai" in told
        assert "earliestDatestamp is '', which is no datestamp" in told
        assert "never says that a record is deleted" in told


def test_records_are_listed_with_what_they_are(folder: Path) -> None:
    with OaiServer(30) as repository:
        repository.sets = {"frogs": "Frogs"}
        repository.delete("oai:test:5")
        repository.records["oai:test:6"].metadata = ""
        lines = ask(folder, repository, "list", "--limit", "100").out.splitlines()
        assert len(lines) == 31
        assert next(line for line in lines if "test:5 " in line).split()[-1] == "deleted"
        assert "has metadata without any element" in next(line for line in lines if "test:6 " in line)
        assert next(line for line in lines if "test:7 " in line).split()[1] == "2026-01-07T00:00:00Z"
        short = ask(folder, repository, "list", "--from", "2026-01-03", "--until", "2026-01-04", "--json").json
        assert [row["oai_identifier"] for row in short] == ["oai:test:3", "oai:test:4"]
        assert "The first 2; --limit shows more." in ask(folder, repository, "list", "--limit", "2").out
        assert len(repository.asked("ListRecords")) < 8


def test_a_list_that_breaks_off_is_shown_as_far_as_it_came_and_is_no_success(folder: Path) -> None:
    with OaiServer(30) as repository:
        repository.odd.add(Odd.SAME_TOKEN)
        broken = ask(folder, repository, "list")
        assert (broken.code, len(broken.out.splitlines())) == (1, 21)
        assert "after 20 of 30 records" in broken.err
        assert len(ask(folder, repository, "list", "--json").json) == 20
        assert ask(folder, repository, "list", "--limit", "10").code == 0


@pytest.mark.parametrize("date", ["2026-13-01", "2026-02-30T00:00:00Z", "2026-11-20T03:00:00", "yesterday", ""])
def test_a_date_that_is_none_is_refused_before_anything_is_asked(folder: Path, date: str) -> None:
    with OaiServer(3) as repository:
        refused = attempt(folder, "oai", "list", repository.base_url, "--from", date, *LOOPBACK)
        assert f"{date!r} is no datestamp; write 2026-11-20 or" in str(refused.error)
        assert repository.answered == []


@pytest.mark.parametrize("until", ["2026-01-01", "2026-01-05T00:00:00Z"])
def test_a_window_that_is_none_is_refused_before_anything_is_asked(folder: Path, until: str) -> None:
    url = "https://repository.example.org/oai"
    failed = attempt(folder, "oai", "list", url, "--from", "2026-01-02", "--until", until)
    assert isinstance(failed.error, click.UsageError)
    assert "--from and until must have the same form, and from must not be later." in str(failed.error)


def test_a_record_is_printed_or_written_as_a_document(folder: Path) -> None:
    with OaiServer(3) as repository:
        printed = ask(folder, repository, "get", "oai:test:2").raw
        assert b"<dc:title>Frogs</dc:title>" in printed
        ask(folder, repository, "get", "oai:test:2", "-o", str(folder / "record.xml"))
        assert (folder / "record.xml").read_bytes() + b"\n" == printed
        repository.delete("oai:test:2")
        failed = attempt(folder, "oai", "get", repository.base_url, "oai:test:2", *LOOPBACK)
        assert "oai:test:2 is deleted" in str(failed.error)


def test_a_sound_repository_is_validated_without_a_word_against_it(folder: Path) -> None:
    with OaiServer(30) as repository:
        repository.delete("oai:test:5")
        told = ask(folder, repository, "validate")
        assert told.code == 0
        assert "The list was read to its end: nothing odd was found." in told.out
        assert "30 of 30 announced" in told.out
        assert ask(folder, repository, "validate", "--json").json["records_deleted"] == 1


@pytest.mark.parametrize(
    ("odd", "code", "words", "remedy"),
    [
        (Odd.SAME_TOKEN, 1, "after 20 of 30 records", "let each token lead to the records after its page"),
        (
            Odd.EMPTY_PAGES,
            1,
            "10 pages in a row had no new records",
            "let each token lead to the records after its page",
        ),
        (Odd.BLANK_TOKEN, 1, "The list ended in a full page", "end the last page with an empty resumptionToken"),
        (Odd.SIZE_TOO_HIGH, 1, "announced a list of 60 records", "set completeListSize to the number of records"),
        (Odd.EMPTY_ANSWERS, 1, "The answer to ListRecords is empty.", "sees in its log why nothing was sent"),
        (Odd.OTHER_VERB, 1, "answered something else than ListRecords", "that a cache or proxy before it"),
        (Odd.HTML_PAGE, None, "is an HTML page titled 'Our repository'", ""),
        (Odd.NO_SECONDS, 0, "requests with seconds are refused", "Correct the granularity in Identify"),
        (Odd.UNESCAPED_REQUEST, 0, "not well-formed XML", "mostly a & or < in a text is not escaped"),
        (Odd.TWICE, 0, "2 of the list's records came twice", "an order that does not change while they are read"),
    ],
)
def test_what_is_odd_about_a_repository_is_told_with_a_remedy_that_its_keeper_can_follow(
    folder: Path, odd: Odd, code: int | None, words: str, remedy: str
) -> None:
    with OaiServer(30) as repository:
        repository.odd.add(odd)
        told = attempt(folder, "oai", "validate", repository.base_url, *LOOPBACK)
        if code is None:
            assert words in str(told.error)
            return
        assert told.code == code
        shown = " ".join(told.out.split())
        assert words in shown
        assert "What to do:" in shown
        assert remedy in shown
        assert "sk the keeper" not in shown


@pytest.mark.parametrize(
    ("date", "words"),
    [
        (b"2026-11-20T13:00:00", "The repository's clock shows 2026-11-20T13:00:00, without a zone"),
        (b"2026-11-20T03:00:00.5Z", "The responseDate is '2026-11-20T03:00:00.5Z'"),
        (b"yesterday", "The responseDate of the repository's answers is 'yesterday', which is no date"),
        (b"", "The responseDate of the repository's answers is missing"),
    ],
)
def test_a_response_date_that_the_protocol_has_otherwise_is_told(folder: Path, date: bytes, words: str) -> None:
    with OaiServer(5) as repository:
        repository.tamper = lambda body, asked: body.replace(b"2026-11-20T03:00:00Z", date)
        for command in ("validate", "identify"):
            told = ask(folder, repository, command)
            assert (told.code, told.out.count(words)) == (0, 1)


@pytest.mark.parametrize("sets", [b"<html><title>Oops</title></html>", None])
def test_sets_that_cannot_be_had_are_a_warning_where_none_is_asked_for(folder: Path, sets: bytes | None) -> None:
    class Setless(OaiServer):
        def _verb(self, asked: Asked) -> bytes:
            return bytes(1 // 0) if sets is None and asked.verb == "ListSets" else super()._verb(asked)

    with Setless(5) as repository:
        repository.tamper = lambda body, asked: sets if sets and asked.verb == "ListSets" else body
        told = ask(folder, repository, "validate")
        assert told.code == 0
        assert "The repository's sets cannot be fetched (ListSets): " in told.out
        assert ask(folder, repository, "formats").code == 0
        assert ask(folder, repository, "identify").code == 0
        assert attempt(folder, "oai", "sets", repository.base_url, *LOOPBACK).error is not None


@pytest.mark.parametrize(
    ("command", "verb", "end"),
    [
        ("identify", "Identify", b"<granularity>"),
        ("formats", "ListMetadataFormats", b"<schema>"),
        ("sets", "ListSets", b"</setSpec>"),
    ],
)
def test_what_breaks_off_is_asked_for_again_and_never_taken_for_all_that_there_is(
    folder: Path, command: str, verb: str, end: bytes
) -> None:
    with OaiServer(5) as repository:
        repository.sets = {"frogs": "Frogs", "toads": "Toads"}
        whole = ask(folder, repository, command).out
        repository.forget()
        repository.tamper = lambda body, asked: body if len(repository.asked(verb)) > 2 else body.partition(end)[0]
        assert ask(folder, repository, command).out == whole
        repository.tamper = lambda body, asked: body.partition(end)[0]
        told = attempt(folder, "oai", command, repository.base_url, *LOOPBACK)
        assert (told.out, told.code) != (whole, 0)
        assert f"An answer to {verb} breaks off before its end: Premature end of data" in str(told.error)


def test_identify_asks_for_nothing_else(folder: Path) -> None:
    with OaiServer(5) as repository:
        repository.tamper = lambda body, asked: body if asked.verb == "Identify" else b"<html/>"
        told = ask(folder, repository, "identify")
        assert (told.code, [each.verb for each in repository.answered]) == (0, ["Identify"])
        assert told.out.splitlines()[0] == "repository name     Test repository"
        repository.tamper = lambda body, asked: body.replace(b"<granularity>YYYY-MM", b"<granularity>YY-MM")
        assert (
            "warning: The granularity 'YY-MM-DDThh:mm:ssZ' is not one of the" in ask(folder, repository, "identify").out
        )


def test_two_records_are_of_the_same_item_or_not(folder: Path) -> None:
    with OaiServer(5) as one, OaiServer(5) as other:
        of = ("oai", "same", one.base_url, "oai:test:1", other.base_url, "oai:test:1", *LOOPBACK)
        told = attempt(folder, *of)
        assert (told.code, told.out) == (1, "Nothing says that they are of the same item.\n")
        other.records["oai:test:1"].about = (
            '<provenance xmlns="http://www.openarchives.org/OAI/2.0/provenance"><originDescription>'
            f"<baseURL>{one.base_url}</baseURL><identifier>oai:test:1</identifier></originDescription></provenance>"
        )
        told = attempt(folder, *of)
        assert told.code == 0
        assert told.out == f"The same item. Both are the record oai:test:1 of {one.base_url}.\n"


def test_a_record_that_is_deleted_and_one_that_is_not_there_are_told_apart(folder: Path) -> None:
    for version in ("2.0", "1.1"):
        with OaiServer(5, version=version) as repository:
            repository.delete("oai:test:3")
            for name, words in (("3", "says that its record oai:test:3 is deleted"), ("99", "oai:test:99")):
                asked = attempt(folder, "oai", "get", repository.base_url, f"oai:test:{name}", *LOOPBACK)
                assert words in str(asked.error)
                assert ("is deleted" in str(asked.error)) == (name == "3")


def test_a_list_that_ends_in_an_error_is_not_read_to_its_end(folder: Path) -> None:
    with OaiServer(5) as repository:
        error = b'<error code="internal">the database went away</error>'
        repository.tamper = lambda body, asked: body.replace(b"</ListRec", error + b"</ListRec").replace(
            b"</ListId", error + b"</ListId"
        )
        told = ask(folder, repository, "validate")
        assert told.code == 1
        assert "has records, and then an error: internal (the database went away)" in told.out
        assert "The list was read to its end" not in told.out


def test_answers_to_mistakes_that_the_protocol_has_otherwise_are_told(folder: Path) -> None:
    with OaiServer(30) as repository:
        repository.tamper = lambda body, asked: body.replace(b"badVerb", b"badArgument")
        told = ask(folder, repository, "validate").out
        assert "Asked for a verb that there is not, the repository answers badArgument" in told


def test_a_list_that_was_cut_ends_with_an_empty_token(folder: Path) -> None:
    with OaiServer(30) as repository:
        words = "the last one has no resumptionToken"
        assert words not in ask(folder, repository, "validate").out
        repository.tamper = lambda body, asked: re.sub(rb"<resumptionToken[^>]*></resumptionToken>", b"", body)
        told = ask(folder, repository, "validate")
        assert told.code == 0
        assert words in told.out


def test_a_period_that_ends_before_it_begins_is_refused(folder: Path) -> None:
    with OaiServer(30) as repository:
        words = "Asked for a period that ends before it begins, the repository answers"
        assert words not in ask(folder, repository, "validate").out
        is_asked = {"from": "2002-02-06", "until": "2002-02-05"}.items()
        repository.tamper = lambda body, asked: (
            body.replace(b"badArgument", b"noRecordsMatch") if is_asked <= asked.arguments.items() else body
        )
        assert f"{words} noRecordsMatch" in ask(folder, repository, "validate").out


def test_a_large_repository_is_looked_at_as_far_as_wanted(folder: Path) -> None:
    with OaiServer(100) as repository:
        told = ask(folder, repository, "validate", "--pages", "2", "--json").json
        assert (told["pages"], told["records"], told["complete_list_size"], told["is_whole"]) == (2, 20, 100, False)


def test_records_that_are_lost_are_counted_and_named(folder: Path) -> None:
    with OaiServer(100) as repository:
        for number in range(1, 41):
            repository.records[f"oai:test:{number}"].metadata = "<x:a/>"
        told = ask(folder, repository, "validate", "--json")
        assert told.code == 1
        assert (told.json["records"], told.json["records_not_had"]) == (100, 40)
        assert sum(finding["rule"] == "oai.damaged-record" for finding in told.json["findings"]) == 20
        assert {"rule": "oai.damaged-record", "findings_left_out": 20} in told.json["left_out"]
        remedies = {each["remedy"] for each in told.json["findings"] if each["rule"] == "oai.damaged-record"}
        assert remedies == {
            "The repository's keeper corrects the record where it is entered. The harvester tries again by itself."
        }


# -- friends


LISTS = {
    "text": "# repositories\nhttps://a.example.org/oai  Alder\n\nhttps://b.example.org/oai\nnonsense\n",
    "friends": "<BaseURLs><baseURL id='a'>https://a.example.org/oai</baseURL>"
    "<baseURL><!-- moved -->https://b.example.org/oai</baseURL><baseURL>nonsense</baseURL></BaseURLs>",
    "attributes": "<list><r baseURL='https://a.example.org/oai'/><r baseURL='https://b.example.org/oai'/></list>",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("written", LISTS)
def test_friends_are_read_from_files_of_base_urls(folder: Path, written: str, encoding: str) -> None:
    (folder / "list").write_text(LISTS[written], encoding=encoding)
    told = tell(folder, "oai", "friends", str(folder / "list"), "--json").json
    assert [row["base_url"] for row in told] == ["https://a.example.org/oai", "https://b.example.org/oai"]


def test_friends_are_registered_switched_off_and_only_once(tmp_path: Path) -> None:
    initialize(tmp_path)
    with OaiServer(1) as repository:
        repository.friends = ["https://a.example.org/oai", "https://b.example.org/oai"]
        add = ("--add", "--contact", "steward@example.org", *LOOPBACK)
        told = tell(tmp_path, "oai", "friends", repository.base_url, *add).out
        assert "a.example.org-oai" in told
        rows = in_database(
            tmp_path, "SELECT name, source_kind, documentlisturl, enabled FROM harvest_site_schedule ORDER BY name"
        )
        assert [(*row[:3], bool(row[3])) for row in rows] == [
            ("a.example.org-oai", "oai-pmh", "https://a.example.org/oai", False),
            ("b.example.org-oai", "oai-pmh", "https://b.example.org/oai", False),
        ]
        again = tell(tmp_path, "oai", "friends", repository.base_url, *add, "--json").json
        assert [row["site"] for row in again] == [None, None]


def test_friends_that_are_no_web_addresses_are_left_out_with_a_line(tmp_path: Path) -> None:
    initialize(tmp_path)
    with OaiServer(1) as repository:
        repository.friends = ["nonsense", "https://a.example.org/oai", "ftp://b.example.org/oai", "http://[c/oai"]
        add = ("--add", "--contact", "steward@example.org", *LOOPBACK)
        told = tell(tmp_path, "oai", "friends", repository.base_url, *add, "--json")
        assert [(row["base_url"], row["site"]) for row in told.json] == [
            ("https://a.example.org/oai", "a.example.org-oai")
        ]
        assert "'nonsense' is left out: it is no web address." in told.err
        assert "'ftp://b.example.org/oai' is left out" in told.err


def test_a_bad_line_in_a_file_of_friends_keeps_no_others_out_and_no_repository_comes_twice(tmp_path: Path) -> None:
    initialize(tmp_path)
    (tmp_path / "list").write_text(
        "https://a.example.org/oai\nhttps://b.example.org/oai?verb=Identify\nnonsense\nHTTPS://A.Example.org/oai/\n"
        "http://a.example.org/oai\nhttps://c.example.org/oai\n"
    )
    told = tell(tmp_path, "oai", "friends", str(tmp_path / "list"), "--add", "--contact", "steward@example.org")
    rows = in_database(tmp_path, "SELECT name FROM harvest_site_schedule ORDER BY name")
    assert [row[0] for row in rows] == ["a.example.org-oai", "c.example.org-oai"]
    assert "'https://b.example.org/oai?verb=Identify' is left out: the base URL has a question" in told.err
    assert "'nonsense' is left out: it is no web address." in told.err


def test_friends_that_are_to_be_registered_need_a_contact(folder: Path) -> None:
    (folder / "list").write_text("https://a.example.org/oai")
    assert "--contact" in str(attempt(folder, "oai", "friends", str(folder / "list"), "--add").error)


@pytest.mark.parametrize("url", ["https://", "ftp://example.org/oai", "http://127.0.0.1:1/oai"])
def test_an_address_that_cannot_be_asked_is_said_in_a_sentence(folder: Path, url: str) -> None:
    failed = attempt(folder, "oai", "identify", url)
    assert failed.error is not None
    assert str(failed.error).endswith(".")


@pytest.mark.parametrize("url", ["https://", "ftp://example.org/oai", "http://[::1/oai", "http://[x]?verb=", "oai"])
@pytest.mark.parametrize("command", ["identify", "list", "validate"])
def test_what_is_no_base_url_is_told_as_that(folder: Path, command: str, url: str) -> None:
    failed = attempt(folder, "oai", command, url)
    assert isinstance(failed.error, click.UsageError)
    assert f"The base URL '{url}' is not a web address; write it like https://example.org/oai." in str(failed.error)


def test_no_settings_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    from click.testing import CliRunner

    from metaharvest.cli import cli

    with OaiServer(3) as repository:
        arguments = ["oai", "sets", repository.base_url, *LOOPBACK, "--json"]
        result = CliRunner().invoke(cli, arguments, standalone_mode=False)
        assert json.loads(result.stdout) == []
