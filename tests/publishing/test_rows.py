"""A list as rows in a form: from an old list, from documents, checked cell by cell, written as `list build` does."""

from __future__ import annotations

import pytest

from metaharvest.errors import ListError, PublishingError
from metaharvest.publishing.list_file import read_list_file
from metaharvest.publishing.rows import Row, file_name, list_of, problems_in, rows_of_list, with_documents
from support.harvester import TYPE, eml, harvest_list

BASE = "https://www.example.org/eml"


def row(docid: str = "a.1.1", url: str = "https://www.example.org/a.xml", document_type: str = TYPE) -> Row:
    scope, identifier, revision = docid.rsplit(".", 2)
    return Row(scope, identifier, revision, document_type, url)


def test_documents_become_sorted_rows_that_remember_their_content() -> None:
    made = with_documents([row("b.2.1")], [("z.xml", eml("b.10.1")), (r"C:\eml\größe 1.xml", eml("a.1.3"))], BASE)
    assert made.findings == ()
    assert [(each.scope, each.identifier, each.revision, each.url) for each in made.rows] == [
        ("a", "1", "3", f"{BASE}/gr%C3%B6%C3%9Fe%201.xml"),
        ("b", "2", "1", "https://www.example.org/a.xml"),
        ("b", "10", "1", f"{BASE}/z.xml"),
    ]
    content = list_of(made.rows)
    assert b'<?metaharvest docid="a.1.3" sha256="' in content
    assert rows_of_list(content) == made.rows
    assert list_of(rows_of_list(content)) == content


def test_a_changed_document_gets_the_next_revision_and_others_stay() -> None:
    first = with_documents([], [("a.xml", eml("a.1.1")), ("b.xml", eml("b.1.1"))], BASE)
    second = with_documents(first.rows, [("a.xml", eml("a.1.1", "Another title"))], BASE)
    assert [(each.scope, each.revision) for each in second.rows] == [("a", "2"), ("b", "1")]
    [stored] = second.findings
    assert stored.finding.rule == "build.package-id-behind"
    assert 'packageId="a.1.2"' in stored.finding.remedy
    assert with_documents(second.rows, [("a.xml", eml("a.1.1", "Another title"))], BASE).rows == second.rows


def test_a_copy_names_the_given_file() -> None:
    made = with_documents([], [("a é.xml", eml("a.1.1")), ("copy.xml", eml("a.1.1"))], BASE)
    [copy] = made.findings
    assert copy.finding.message == "copy.xml is the same document as a é.xml: a.1."


def test_files_that_cannot_be_listed_are_named() -> None:
    files = [
        ("broken.xml", b"<eml"),
        ("list.xml", harvest_list([("a.1.1", BASE)])),
        ("doi.xml", eml("doi:10.1234/a")),
        ("one.xml", eml("a.1.1")),
        ("copy.xml", eml("a.1.1")),
        ("bomb.xml", b"<!DOCTYPE a [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><a>&b;</a>"),
        ("<script>alert(1)</script>.xml", b"\xff\xfe\x00"),
    ]
    made = with_documents([], files, BASE)
    assert [each.scope for each in made.rows] == ["a"]
    assert [each.file for each in made.findings if each.finding.is_error] == [
        "broken.xml", "list.xml", "doi.xml", "copy.xml", "bomb.xml", "script>.xml",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "column"),
    [
        (row("a b.1.1"), "scope"),
        (row("a.x.1"), "identifier"),
        (row("a.1.-1"), "revision"),
        (row("a.1.99999999999999999999"), "revision"),
        (row(document_type=" "), "document_type"),
        (row(document_type="a\x00b"), "document_type"),
        (row(url="file:///etc/passwd"), "url"),
        (row(url="javascript:alert(1)"), "url"),
        (row(f"{'a' * 900}.1.1"), "scope"),
    ],
)
def test_a_mistake_is_named_by_row_and_column(wrong: Row, column: str) -> None:
    [problem] = problems_in([row(), Row("", "", "", "", ""), wrong])
    assert (problem.row, problem.column) == (3, column)
    assert problem.message.endswith(".")
    assert problem.remedy


def test_a_docid_may_be_there_once_and_a_list_is_not_empty() -> None:
    [problem] = problems_in([row(), row("a.1.2"), row()])
    assert (problem.row, problem.column, problem.message) == (3, "revision", "a.1.1 is in row 1, too.")
    [empty] = problems_in([Row("", " ", "", "", "")])
    assert empty.message == "The list has no document."


def test_rows_with_mistakes_stay_when_documents_come() -> None:
    wrong = row("a.x.1")
    assert with_documents([wrong], [("b.xml", eml("b.1.1"))], BASE).rows[-1] == wrong


def test_a_memory_that_is_forged_is_not_written_as_markup() -> None:
    forged = Row("a", "1", "1", TYPE, "https://www.example.org/a.xml", '?><evil/><?x docid="a.1.1" sha256=""')
    assert b"evil" not in list_of([forged])
    copied = Row("b", "1", "1", TYPE, "https://www.example.org/b.xml", 'docid="a.1.1" sha256=""')
    assert b"metaharvest" not in list_of([copied])


def test_an_old_list_is_checked_and_may_not_name_files() -> None:
    with pytest.raises(ListError):
        rows_of_list(b"<harvestList>")
    with pytest.raises(ListError, match="files of a computer"):
        rows_of_list(harvest_list([("a.1.1", "file:///etc/passwd")]))
    with pytest.raises(PublishingError, match="cannot be used"):
        with_documents([], [("a.xml", eml("a.1.1"))], "javascript:alert(1)")


def test_values_are_written_as_text() -> None:
    content = list_of([row(url="https://www.example.org/?a=1&b=<2>", document_type="<b>&")])
    [entry] = read_list_file(content).entries
    assert (entry.document.url, entry.document.document_type) == ("https://www.example.org/?a=1&b=<2>", "<b>&")


def test_file_names_are_shown_without_folders_and_control_characters() -> None:
    assert file_name("../../etc/passwd") == "passwd"
    assert file_name("a\x1b[31m.xml").isprintable()
    assert file_name("") == "document.xml"
