"""`metaharvest filter test`, the files that the documentation shows, and what people see of a file that is wrong."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from metaharvest.rehearsal import filter_trial
from metaharvest.transform.filters import read_filters
from metaharvest.transform.normalize import read_normalization
from support.harvester import Said, said

PAGE = Path(__file__).parents[2] / "docs" / "filters.md"
DC = "http://purl.org/dc/elements/1.1/"
RECORD = f"""\
<record><header><identifier>{{}}</identifier></header><metadata>
<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="{DC}">{{}}</oai_dc:dc>
</metadata></record>"""


def shown(root: str) -> list[str]:
    """The files of this kind that the documentation shows."""
    return re.findall(rf"```xml\n(<{root}\b.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def records(*contents: str) -> str:
    made = "".join(RECORD.format(f"oai:r:{number}", each) for number, each in enumerate(contents, start=1))
    deleted = '<record><header status="deleted"><identifier>oai:r:0</identifier></header></record>'
    return f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>{made}{deleted}</ListRecords></OAI-PMH>'


def tried(folder: Path, filters: str, *documents: str) -> Said:
    (folder / "filters.xml").write_text(filters)
    names = [f"{number}.xml" for number in range(1, len(documents) + 1)]
    for name, document in zip(names, documents, strict=True):
        (folder / name).write_text(document)
    return said("filter", "test", "filters.xml", *names)


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_files_that_the_documentation_shows_can_be_used(tmp_path: Path) -> None:
    assert (len(shown("filters")), len(shown("normalize"))) == (2, 1)
    for text in shown("filters"):
        (tmp_path / "f.xml").write_text(text)
        assert read_filters(tmp_path / "f.xml").filters
    (tmp_path / "n.xml").write_text(shown("normalize")[0])
    assert read_normalization(tmp_path / "n.xml").mappings


def test_the_second_one_takes_what_the_documentation_says(tmp_path: Path) -> None:
    title = "<dc:title>x</dc:title>"
    contents = [
        title,
        f"{title}<dc:rights>free</dc:rights>",
        f"{title}<dc:rights>free</dc:rights><dc:rights>restricted</dc:rights>",
        "<dc:rights>free</dc:rights>",
    ]
    lines = tried(tmp_path, shown("filters")[1], records(*contents)).out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["TAKEN", "TAKEN", "LEFT OUT", "LEFT OUT", "DELETED"]


def test_a_record_that_is_deleted_is_for_no_filter_and_one_without_metadata_is_undecided(tmp_path: Path) -> None:
    told = tried(tmp_path, shown("filters")[1], records("<dc:title>x</dc:title>"))
    assert (told.code, told.out.splitlines()[1]) == (
        0,
        "DELETED    1.xml, oai:r:0: Filters do not see a record that is deleted.",
    )
    bare = records("<dc:title>x</dc:title>").replace(' status="deleted"', "")
    told = tried(tmp_path, shown("filters")[1], bare)
    assert (told.code, told.out.splitlines()[1]) == (1, "UNDECIDED  1.xml, oai:r:0: The record has no metadata.")


def test_a_deleted_record_with_metadata_is_deleted_as_in_a_harvest(tmp_path: Path) -> None:
    metadata = "<metadata><x/></metadata></record>"
    gone = records("<dc:title>x</dc:title>").replace("</header></record>", f"</header>{metadata}")
    told = tried(tmp_path, shown("filters")[1], gone)
    assert told.out.splitlines()[1] == "DELETED    1.xml, oai:r:0: Filters do not see a record that is deleted."


def test_all_taken_is_0_and_one_left_out_is_1(tmp_path: Path) -> None:
    filters = '<filters match="any"><filter xpath="//title" regexp="water"/></filters>'
    told = tried(tmp_path, filters, "<a><title>On water</title></a>", "<a><title>waters</title></a>")
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        "TAKEN      1.xml: Filter 1 (line 1), //title: 'On water' matches water.",
        "TAKEN      2.xml: Filter 1 (line 1), //title: 'waters' matches water.",
    ]
    told = tried(tmp_path, filters, "<a><title>water</title></a>", "<a><title>birds</title></a>", "<a>")
    assert told.code == 1
    assert told.out.splitlines()[1:] == [
        "LEFT OUT   2.xml: Filter 1 (line 1), //title: 'birds' does not match water.",
        "UNDECIDED  3.xml: The document ends too early: <a>, opened in line 1, is never closed.",
    ]


def test_records_of_a_repository_are_told_by_their_identifiers(tmp_path: Path) -> None:
    (tmp_path / "page.xml").write_text(records("<dc:type>image</dc:type>", "<dc:type>text</dc:type>"))
    (tmp_path / "filters.xml").write_text(shown("filters")[0])
    told = json.loads(said("filter", "test", "filters.xml", "page.xml", "--json").out)
    assert told["file"] == "filters.xml"
    assert [(each["record_identifier"], each["matches"], each["filter"]) for each in told["records"]] == [
        ("oai:r:1", True, 1),
        ("oai:r:2", False, 3),
        ("oai:r:0", None, None),
    ]
    assert told["records"][1]["reason"].startswith("None of 3 filters matches. Filter 3 (line 8), //dc:identifier")


@pytest.mark.parametrize(
    ("inner", "what"),
    [
        ('<error code="idDoesNotExist">No such item</error>', "the error idDoesNotExist (No such item)"),
        ("<ListIdentifiers><header><identifier>oai:r:1</identifier></header></ListIdentifiers>", "ListIdentifiers"),
        ("<Identify><repositoryName>water</repositoryName></Identify>", "an answer to Identify"),
        ("<ListRecords/>", "an answer to ListRecords"),
        ("", "an answer"),
    ],
)
def test_an_answer_without_a_record_is_no_document(tmp_path: Path, inner: str, what: str) -> None:
    answer = f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{inner}</OAI-PMH>'
    told = tried(tmp_path, '<filters match="any"><filter xpath="//*"/></filters>', answer)
    assert told.code == 1
    assert told.out.startswith("UNDECIDED  1.xml: There is no record in it: it is ")
    assert f"{what} of an OAI-PMH repository. Give it what `metaharvest oai get URL IDENTIFIER` prints" in told.out


def test_records_of_old_repositories_are_records(tmp_path: Path) -> None:
    def answer(inner: str) -> str:
        verb = "GetRecord" if inner else "Identify"
        return f'<{verb} xmlns="http://www.openarchives.org/OAI/1.1/OAI_{verb}">{inner}</{verb}>'

    filters = '<filters match="any"><filter xpath="/*[local-name() = \'dc\']"/></filters>'
    told = tried(tmp_path, filters, answer(RECORD.format("oai:r:1", "")), answer(""))
    first, second = told.out.splitlines()
    assert first.startswith("TAKEN      1.xml, oai:r:1: ")
    assert second.startswith("UNDECIDED  2.xml: There is no record in it: it is an answer to Identify of")


def test_white_space_is_shown_as_it_is_matched(tmp_path: Path) -> None:
    filters = '<filters match="any"><filter xpath="//title" regexp="On.water$"/></filters>'
    texts = [
        "On\nwater",
        "On\n    water",
        "On  water",
        "On\twater",
        "On\u00a0the water",
        "On" + "\n" * 200_000 + "water",
    ]
    told = tried(tmp_path, filters, *(f"<a><title>{text}</title></a>" for text in texts))
    shown = [re.findall("'(.*)'", line)[0] for line in told.out.splitlines()]
    assert shown[:5] == [r"On\nwater", r"On\n {4}water", "On {2}water", r"On\twater", r"On\xa0the water"]
    assert shown[5].endswith("…")
    assert [line.split()[0] for line in told.out.splitlines()] == ["LEFT", "LEFT", "LEFT", "TAKEN", "LEFT", "LEFT"]


def test_a_record_may_come_through_a_pipe(tmp_path: Path) -> None:
    """As from `oai get URL IDENTIFIER`."""
    (tmp_path / "filters.xml").write_text('<filters match="any"><filter xpath="//title" regexp="water"/></filters>')
    command = [sys.executable, "-m", "metaharvest", "filter", "test", "filters.xml", "-"]
    done = subprocess.run(command, input=b"<a><title>birds</title></a>", capture_output=True, check=False)
    reason = "Filter 1 (line 1), //title: 'birds' does not match water."
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode() == f"LEFT OUT   standard input: {reason}\n"
    done = subprocess.run([*command, "--json"], input=b"<a/>", capture_output=True, check=False)
    assert json.loads(done.stdout)["records"][0]["file"] == "-"
    (tmp_path / "-").write_text("<a><title>water</title></a>")
    assert said("filter", "test", "filters.xml", "./-").code == 0
    assert said("filter", "test", "filters.xml", "-", "-").code == 2
    closed = subprocess.run(f"{shlex.join(command)} <&-", shell=True, capture_output=True, check=False)
    assert closed.returncode == 2
    assert b"Nothing comes through standard input" in closed.stderr


def test_a_file_that_cannot_be_used_is_told_with_its_lines(tmp_path: Path) -> None:
    told = tried(tmp_path, "<filters match='any'>\n<filter xpath='//x:a'/>\n<filter regexp='('/></filters>", "<a/>")
    assert (told.code, told.out) == (2, "")
    assert told.err.splitlines() == [
        "filters.xml, line 2: the XPath //x:a cannot be used: the prefix x is not declared in selectionNamespaces. "
        "Correct it.",
        'filters.xml, line 3: <filter> has no XPath. Write xpath="…", such as xpath="//dc:type".',
        "filters.xml, line 3: ( is no regular expression that can be used: missing ) at position 1. Correct it.",
    ]
    told = said("filter", "test", "none.xml", "1.xml")
    assert (told.code, told.err) == (
        2,
        "none.xml cannot be read: No such file or directory. Name a file that is there, and may be read.\n",
    )
    assert said("filter", "test", "filters.xml", "none.xml").code == 2


@pytest.mark.timeout(60)
def test_what_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_trial, "_SECONDS", 1.0)
    nested = "//x[count(//x[count(//x[count(//x[contains(., string(position()))]) > 1]) > 1]) > 5]"
    document = f"<r>{'<x>a</x>' * 1000}</r>"
    began = time.monotonic()
    told = tried(tmp_path, f"<filters match='any'><filter xpath='{nested.replace('>', '&gt;')}'/></filters>", document)
    assert time.monotonic() - began < 30
    assert told.code == 1
    assert told.out.startswith("UNDECIDED  1.xml: The filters of this site, or its normalising, take too long")
