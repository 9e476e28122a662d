"""Filters as a person writes them: which documents they take, and what is said of a file that is wrong."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from lxml import etree

from metaharvest.errors import TransformError
from metaharvest.transform.expressions import NotEvaluated, TimeLeft, TransformTooCostly
from metaharvest.transform.filters import Decision, Filters, read_filters

DC = "http://purl.org/dc/elements/1.1/"
NAMESPACES = f"<selectionNamespaces>xmlns:dc='{DC}' xmlns:o=\"urn:o\"</selectionNamespaces>"


def filters(folder: Path, *each: str, match: str = "any") -> Filters:
    """A file with these `<filter …/>`, read."""
    file = folder / "filters.xml"
    file.write_text(f'<filters match="{match}">\n{NAMESPACES}\n' + "\n".join(each) + "\n</filters>\n", encoding="utf-8")
    return read_filters(file)


def document(*types: str, more: str = "") -> etree._Element:
    content = "".join(f"<dc:type kind='{number}'>{text}</dc:type>" for number, text in enumerate(types, start=1))
    return etree.fromstring(f"<dc xmlns:dc='{DC}'>{content}{more}</dc>")


def decided(folder: Path, root: etree._Element, *each: str, match: str = "any") -> Decision:
    return filters(folder, *each, match=match).decision(root, TimeLeft())


IMAGE = '<filter xpath="//dc:type" regexp="image"/>'
NO_IMAGE = '<filter xpath="//dc:type" regexp="image" invert="true"/>'
TITLE = '<filter xpath="//dc:title"/>'
NO_TITLE = '<filter xpath="//dc:title" invert="true"/>'


@pytest.mark.parametrize(
    ("match", "written", "types", "is_taken"),
    [
        # One filter, by the texts of the nodes.
        ("any", [IMAGE], ["image"], True),
        ("any", [IMAGE], ["text"], False),
        ("any", [IMAGE], ["text", "image"], True),
        ("all", [IMAGE], ["text", "image"], False),
        ("all", [IMAGE], ["image", "an image"], True),
        ("any", [IMAGE], [], False),
        ("all", [IMAGE], [], False),
        # Inverted: whatever it would have been.
        ("any", [NO_IMAGE], ["image"], False),
        ("any", [NO_IMAGE], ["text", "image"], False),
        ("all", [NO_IMAGE], ["text", "image"], True),
        ("all", [NO_IMAGE], [], True),
        ("any", [NO_IMAGE], [], True),
        # Without a regular expression: that there is a node.
        ("any", [TITLE], ["image"], False),
        ("any", [NO_TITLE], ["image"], True),
        # Several.
        ("any", [IMAGE, TITLE], ["image"], True),
        ("all", [IMAGE, TITLE], ["image"], False),
        ("any", [TITLE, IMAGE], ["image"], True),
        ("any", [TITLE, IMAGE], ["text"], False),
        ("all", [IMAGE, NO_TITLE], ["image"], True),
        ("all", [NO_TITLE, IMAGE], ["text"], False),
    ],
)
def test_which_documents_are_taken(
    tmp_path: Path, match: str, written: list[str], types: list[str], is_taken: bool
) -> None:
    assert decided(tmp_path, document(*types), *written, match=match).is_taken is is_taken


@pytest.mark.parametrize(
    ("written", "is_taken"),
    [
        ('<filter xpath="//dc:type" regexp="IMAGE"/>', False),
        ('<filter xpath="//dc:type" regexp="IMAGE" ignoreCase="true"/>', True),
        ('<filter xpath="//dc:type" regexp="IMAGE" ignoreCase="false"/>', False),
        ('<filter xpath="//dc:type/@kind" regexp="^2$"/>', True),
        ('<filter xpath="//dc:type/text()" regexp="^An image$"/>', True),
        ('<filter xpath="//dc:type" regexp="^An image$"/>', True),  # white space around it does not count
        ('<filter xpath="/dc" regexp="sound *\\s+An image"/>', True),  # the text of an element is all that is in it
        ('<filter xpath="count(//dc:type) > 1"/>', True),
        ('<filter xpath="count(//dc:type) > 2"/>', False),
        ('<filter xpath="count(//dc:type)" regexp="^2$"/>', True),
        ('<filter xpath="string(//dc:type)" regexp="^sound"/>', True),
        ('<filter xpath="string(//o:none)"/>', False),
        ('<filter xpath="1234567.5 + count(//o:none)" regexp="^1234567[.]5$"/>', True),
        ('<filter xpath="20191231 * 10" regexp="^201912310$"/>', True),
        ('<filter xpath="1 div 3000000" regexp="^0[.]000000333"/>', True),
        ('<filter xpath="number(//o:none)"/>', False),
        ('<filter xpath="number(//o:none)" regexp="^NaN$"/>', True),
        ('<filter xpath="-1 div 0" regexp="^-Infinity$"/>', True),
        ('<filter xpath="count(//dc:type) = 2" regexp="^true$"/>', True),
        ("<filter xpath=\"//dc:type[contains(., 'An') and not(@none)]\"/>", True),
    ],
)
def test_a_filter_looks_at_what_its_xpath_gives(tmp_path: Path, written: str, is_taken: bool) -> None:
    root = document("sound ", "\n  An image\n")
    assert decided(tmp_path, root, written).is_taken is is_taken


def test_it_is_said_which_filter_decided_and_why(tmp_path: Path) -> None:
    reason = decided(tmp_path, document("text", "sound"), IMAGE).reason
    assert reason == "Filter 1 (line 3), //dc:type: none of 2 nodes matches image."
    reason = decided(tmp_path, document("text", "an image"), TITLE, IMAGE).reason
    assert reason == "Filter 2 (line 4), //dc:type: of 2 nodes, 'an image' matches image."
    reason = decided(tmp_path, document("text"), TITLE, IMAGE).reason
    assert reason == "None of 2 filters matches. Filter 2 (line 4), //dc:type: 'text' does not match image."
    reason = decided(tmp_path, document("image"), IMAGE, NO_TITLE, match="all").reason
    assert reason == (
        "Each of 2 filters matches. Filter 2 (line 4), //dc:title finds nothing, and the filter is inverted."
    )


# -- what is wrong with a file


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("<filters match='any'>\n<filter xpath='//a'>\n</filters>", 3, "is not well-formed XML"),
        ("", 1, "is not well-formed XML"),
        ("<normalize/>", None, "begins with <normalize>, not with <filters>"),
        ("<!DOCTYPE filters [<!ENTITY x 'y'>]><filters match='any'/>", None, "has a DOCTYPE"),
        ("<filters match='any'/>", 1, "there is no filter in it"),
        ("<filters><filter xpath='//a'/></filters>", 1, "<filters> has no match"),
        ("<filters match='one'><filter xpath='//a'/></filters>", 1, "match is 'one'"),
        ("<filters match='any'>\n<filter/></filters>", 2, "<filter> has no XPath"),
        ("<filters match='any'>\n\n<filter xpath='//a['/></filters>", 3, "the XPath //a[ cannot be used"),
        ("<filters match='any'>\n<filter xpath='//b:a'/></filters>", 2, "the prefix b is not declared"),
        ("<filters match='any'>\n<filter xpath='//a[b:*]'/></filters>", 2, "the prefix b is not declared"),
        ("<filters match='any'>\n<filter xpath='count(1)'/></filters>", 2, "Invalid type"),
        ("<filters match='any'>\n<filter xpath='contains(//a)'/></filters>", 2, "Invalid number of arguments"),
        ("<filters match='any'>\n<filter xpath='//a[$b]'/></filters>", 2, "there is no variable $b"),
        ("<filters match='any'>\n<filter xpath='//a[foo(.)]'/></filters>", 2, "there is no function foo()"),
        ("<filters match='any'>\n<filter xpath='//a' regexp='('/></filters>", 2, "( is no regular expression"),
        ("<filters match='any'>\n<filter xpath='//a' invert='no'/></filters>", 2, "invert is 'no'"),
        ("<filters match='any'>\n<filter xpath='//a' regex='b'/></filters>", 2, "the unknown attribute regex"),
        ("<filters match='any'>\n<filter xpath='//a'/><rule/></filters>", 2, "<rule> is not known in <filters>"),
        ("<filters match='any'>\n<filter xpath='//a'><b/></filter></filters>", 2, "<b> is not known in <filter>"),
        ("<filters match='any'>a<filter xpath='//a'/></filters>", 1, "<filters> has the text 'a'"),
        (
            "<filters match='any'>\n<selectionNamespaces>dc=x</selectionNamespaces><filter xpath='//a'/></filters>",
            2,
            "selectionNamespaces has 'dc=x', which declares no prefix",
        ),
        ("<filters match='any'><filter xpath='//a' regexp='" + "(" * 1500 + "'/></filters>", 1, "nested too deeply"),
        ("<filters match='any'><filter xpath='" + "(" * 1500 + "'/></filters>", 1, "cannot be used"),
        ("<filters match='any'><filter xpath='//a' regexp='" + "x" * 3000 + "'/></filters>", 1, "2,000 characters"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(
    tmp_path: Path, content: str, line: int | None, said: str
) -> None:
    file = tmp_path / "mine.xml"
    file.write_text(content)
    with pytest.raises(TransformError) as raised:
        read_filters(file)
    [finding] = raised.value.findings
    assert said in finding.message
    assert finding.message.startswith(f"{file}, line {line}" if line else str(file))
    assert (finding.rule, finding.line, bool(finding.remedy)) == ("filter.bad-file", line, True)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(TransformError) as raised:
        filters(tmp_path, "<filter xpath='//x:a' regexp='['/>", "<filter xpath=''/>", match="some")
    assert [finding.line for finding in raised.value.findings] == [1, 3, 3, 4]


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(TransformError, match=r"none\.xml cannot be read: No such file"):
        read_filters(tmp_path / "none.xml")


@pytest.mark.parametrize(
    "path",
    [
        "document('{}')",
        "//a | document('{}')//secret",
        "doc('{}')",
        "unparsed-text('{}')",
        "re:test('{}', 'x')",
        "exsl:node-set(document('{}'))",
        "//x[php:function('file_get_contents', '{}')]",
    ],
)
def test_no_xpath_reads_a_file_or_calls_anything(tmp_path: Path, path: str) -> None:
    secret = tmp_path / "secret.xml"
    secret.write_text("<secret>mine</secret>")
    written = path.format(secret.as_uri()).replace("'", "&apos;")
    with pytest.raises(TransformError, match="there is no function"):
        filters(tmp_path, f"<filter xpath='{written}'/>")


def test_entities_of_a_file_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("//a")
    file = tmp_path / "filters.xml"
    for declared in (f'<!ENTITY x SYSTEM "{secret.as_uri()}">', f'<!ENTITY % x SYSTEM "{secret.as_uri()}"> %x;'):
        file.write_text(
            f"<!DOCTYPE filters [{declared}]><filters match='any'><filter xpath='//a'>&x;</filter></filters>"
        )
        with pytest.raises(TransformError):
            read_filters(file)


# -- cost


@pytest.mark.parametrize(
    "pattern", ["(a|a)*$", "(a|aa)+$", "(x+x+)+y", r"(\w+\s?)+$", "((((a{1,60}){1,60}){1,60}){1,60})b"]
)
def test_a_hostile_regular_expression_ends_in_time(tmp_path: Path, pattern: str) -> None:
    made = filters(tmp_path, f'<filter xpath="//dc:type" regexp="{pattern}"/>')
    root = document(*["x" * 5_000 + "a" * 5_000 + "! !"] * 50)
    began = time.process_time()
    with pytest.raises(TransformTooCostly):
        made.decision(root, TimeLeft(0.2))
    assert time.process_time() - began < 2


@pytest.mark.slow
def test_a_regular_expression_that_would_remember_too_much_ends_as_well(tmp_path: Path) -> None:
    made = filters(tmp_path, '<filter xpath="//dc:type" regexp="(a|b)*$"/>')
    root = document("x")
    root[0].text = "ab" * 5_000_000 + "!"
    with pytest.raises(TransformTooCostly):
        made.decision(root, TimeLeft(10))


def test_the_time_is_that_of_all_texts_of_a_document_together(tmp_path: Path) -> None:
    made = filters(tmp_path, '<filter xpath="//dc:type" regexp="(a|aa)+$"/>')
    root = document(*["a" * 24 + "!"] * 5_000)
    began = time.process_time()
    with pytest.raises(TransformTooCostly):
        made.decision(root, TimeLeft(0.3))
    assert time.process_time() - began < 2


def test_an_xpath_that_fails_on_a_document_says_so(tmp_path: Path) -> None:
    made = filters(tmp_path, '<filter xpath="//dc:type[count(1)]"/>')
    assert made.decision(document(), TimeLeft()).is_taken is False
    with pytest.raises(NotEvaluated, match="Invalid type"):
        made.decision(document("image"), TimeLeft())


@pytest.mark.parametrize(
    ("written", "is_taken", "reason"),
    [
        ('<filter xpath="/"/>', True, "/ finds 1 node"),
        ('<filter xpath="/" regexp="^an image$"/>', True, "/: 'an image' matches ^an image$"),
        ('<filter xpath="/" regexp="text"/>', False, "/: 'an image' does not match text"),
        ('<filter xpath="/*/.." regexp="image"/>', True, "/*/..: 'an image' matches image"),
        ('<filter xpath="/none/.."/>', False, "/none/.. finds nothing"),
        ('<filter xpath="count(/)"/>', True, "count(/) is 1"),
    ],
)
def test_the_root_of_a_document_is_a_node_with_all_of_its_text(
    tmp_path: Path, written: str, is_taken: bool, reason: str
) -> None:
    decision = decided(tmp_path, document("an ", "image"), written)
    assert (decision.is_taken, decision.reason) == (is_taken, f"Filter 1 (line 3), {reason}.")
