"""Normalising as a person writes it: what is added to a document, where, and that it is added once."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from metaharvest.errors import TransformError
from metaharvest.transform.expressions import TimeLeft, TransformTooCostly
from metaharvest.transform.normalize import Normalization, read_normalization

DC = "http://purl.org/dc/elements/1.1/"
HEAD = f"<normalize><selectionNamespaces>xmlns:dc='{DC}' xmlns:o='urn:o'</selectionNamespaces>\n"
RECORD = f"""\
<oai:dc xmlns:oai="urn:oai" xmlns:dc="{DC}">
  <dc:title>A map</dc:title>
  <!-- stays -->
  <dc:type>MAP</dc:type>
  <dc:type>image</dc:type>
</oai:dc>
"""
TYPES = """\
<mapping xpath="//dc:type">
  <newElement name="dc:type" regexp="map|image" ignoreCase="true"><newValue>StillImage</newValue></newElement>
  <newElement name="dc:subject" regexp="^map$" ignoreCase="true">
    <newValue>Maps</newValue>
    <newValue>Earth</newValue>
  </newElement>
</mapping>"""


def read(folder: Path, mappings: str) -> Normalization:
    file = folder / "normalize.xml"
    file.write_text(f"{HEAD}{mappings}</normalize>", encoding="utf-8")
    return read_normalization(file)


def normalized(made: Normalization, content: bytes) -> bytes:
    root = etree.fromstring(content)
    made.add_to(root, TimeLeft())
    return etree.tostring(root)


def test_new_elements_stand_beside_the_node_in_the_namespace_of_their_prefix(tmp_path: Path) -> None:
    assert normalized(read(tmp_path, TYPES), RECORD.encode()).decode() == RECORD.rstrip().replace(
        "<dc:type>MAP</dc:type>\n",
        "<dc:type>MAP</dc:type>\n  <dc:type>StillImage</dc:type>\n  <dc:subject>Maps</dc:subject>\n"
        "  <dc:subject>Earth</dc:subject>\n",
    )


def test_a_namespace_that_the_document_does_not_have_is_declared_where_it_is_needed(tmp_path: Path) -> None:
    made = read(tmp_path, '<mapping xpath="//b"><newElement name="o:c"><newValue>d</newValue></newElement></mapping>')
    assert normalized(made, b"<a><b/></a>") == b'<a><b/><o:c xmlns:o="urn:o">d</o:c></a>'
    made = read(
        tmp_path, '<mapping xpath="//b"><newElement name="c"><newValue>d &lt;</newValue></newElement></mapping>'
    )
    assert normalized(made, b"<a><b/></a>") == b"<a><b/><c>d &lt;</c></a>"


@pytest.mark.parametrize(
    ("path", "content", "result"),
    [
        ("//b/@x", "<a><b x='1'/></a>", '<a><b x="1"/><n>v</n></a>'),
        ("//b/text()", "<a><b>t</b></a>", "<a><b>t</b><n>v</n></a>"),
        ("//none", "<a><b/></a>", "<a><b/></a>"),
        ("/a", "<a><b/></a>", "<a><b/></a>"),  # nothing can stand beside a root element
        ("count(//b)", "<a><b/></a>", "<a><b/></a>"),
        ("//b", "<a><b/><n>v</n></a>", "<a><b/><n>v</n></a>"),
        ("//b", "<a><n> v </n><b/></a>", "<a><n> v </n><b/></a>"),
        ("//b", "<a><b/><c><n>v</n></c></a>", "<a><b/><n>v</n><c><n>v</n></c></a>"),
        ("//b", "<a>x<b/>y<b/>z</a>", "<a>x<b/><n>v</n>y<b/>z</a>"),
        ("//b/text()", "<a><b><!-- c -->t</b></a>", "<a><b><!-- c -->t</b><n>v</n></a>"),
        ("//b/text()", "<a><b>s<c/>t</b></a>", "<a><b>s<c/>t</b><n>v</n></a>"),
        ("//*/@x", '<a xmlns="urn:a"><b x="1"/></a>', '<a xmlns="urn:a"><b x="1"/><n xmlns="">v</n></a>'),
        (
            "//*/@x",
            '<a xmlns="urn:a"><b x="1"/><n xmlns="">v</n></a>',
            '<a xmlns="urn:a"><b x="1"/><n xmlns="">v</n></a>',
        ),
    ],
)
def test_where_an_element_is_added(tmp_path: Path, path: str, content: str, result: str) -> None:
    made = read(tmp_path, f'<mapping xpath="{path}"><newElement name="n"><newValue>v</newValue></newElement></mapping>')
    assert normalized(made, content.encode()).decode() == result


def test_what_one_mapping_adds_another_may_find_whatever_their_order(tmp_path: Path) -> None:
    first = '<mapping xpath="//b"><newElement name="c" regexp="x"><newValue>y</newValue></newElement></mapping>'
    second = '<mapping xpath="//c"><newElement name="d" regexp="y"><newValue>z</newValue></newElement></mapping>'
    for mappings in (first + second, second + first):
        once = normalized(read(tmp_path, mappings), b"<a><b>x</b></a>")
        assert once == b"<a><b>x</b><c>y</c><d>z</d></a>"


WORDS = st.sampled_from(["x", "y", "z", "xy"])
NAMES = st.sampled_from(["b", "c", "dc:d", "o:e"])
PATHS = st.sampled_from(["//b", "//*", "//c[1]", "//dc:d[last()]", "/a/b/@k", "//*[not(c)]/text()", "//o:e/.."])


@st.composite
def mappings(draw: st.DrawFn) -> str:
    written = ""
    for path in draw(st.lists(PATHS, min_size=1, max_size=4)):
        written += f'<mapping xpath="{path}">'
        for _ in range(draw(st.integers(1, 2))):
            values = "".join(f"<newValue>{word}</newValue>" for word in draw(st.lists(WORDS, min_size=1, max_size=2)))
            written += f'<newElement name="{draw(NAMES)}" regexp="{draw(WORDS)}">{values}</newElement>'
        written += "</mapping>"
    return written


@st.composite
def documents(draw: st.DrawFn, depth: int = 2) -> str:
    names = st.sampled_from(["b", "c", "dc:d", "o:e"])
    content = ""
    for name in draw(st.lists(names, max_size=4)):
        inner = draw(documents(depth - 1)) if depth and draw(st.booleans()) else draw(WORDS)
        content += f"{draw(st.sampled_from(['', ' ', 'x']))}<{name} k='{draw(WORDS)}'>{inner}</{name}>"
    return content


@pytest.mark.slow
@given(mappings(), documents())
@example(
    '<mapping xpath="//b"><newElement name="c" regexp="x"><newValue>x</newValue></newElement></mapping>',
    "<b>x</b><b><b>x</b><c><b>x</b></c></b>",  # the text of the inner c, x, is xx when the other c is asked for
)
def test_normalising_twice_is_normalising_once(written: str, content: str) -> None:
    with TemporaryDirectory() as folder:
        made = read(Path(folder), written)
    once = normalized(made, f"<a xmlns:dc='{DC}' xmlns:o='urn:o'>{content}</a>".encode())
    assert normalized(made, once) == once


@pytest.mark.slow
@given(mappings(), documents())
def test_nothing_is_taken_away_and_only_new_elements_are_added(written: str, content: str) -> None:
    with TemporaryDirectory() as folder:
        made = read(Path(folder), written)
    root = etree.fromstring(f"<a xmlns:dc='{DC}' xmlns:o='urn:o'>{content}</a>")
    before = list(root.iter())
    texts = [(element.tag, element.text, dict(element.attrib)) for element in before]
    number = made.add_to(root, TimeLeft())
    after = list(root.iter())
    assert len(after) == len(before) + number
    assert [element for element in after if element in before] == before
    assert [(element.tag, element.text, dict(element.attrib)) for element in before] == texts


def test_a_deep_document_takes_little_memory(tmp_path: Path) -> None:
    """The texts of all its elements together are as long as the square of it."""
    made = read(tmp_path, """<mapping xpath="//a"><newElement name="a"><newValue>x</newValue></newElement></mapping>""")
    content = b"<r>" + b"<a>" * 240 + b"t" * 100_000 + b"</a>" * 240 + b"</r>"
    tracemalloc.start()
    try:
        normalized(made, content)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_no_more_than_ten_thousand_elements_are_added(tmp_path: Path) -> None:
    made = read(tmp_path, '<mapping xpath="//b"><newElement name="n"><newValue>v</newValue></newElement></mapping>')
    root = etree.fromstring("<a>" + "<c><b/></c>" * 20_000 + "</a>")
    with pytest.raises(TransformTooCostly):
        made.add_to(root, TimeLeft())


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "there is no mapping in it"),
        ("<mapping xpath='//a'/>", "the mapping has no newElement"),
        ("<mapping><newElement name='b'><newValue>c</newValue></newElement></mapping>", "<mapping> has no XPath"),
        ("<mapping xpath='//a'><newElement name='b'/></mapping>", "the newElement has no newValue"),
        ("<mapping xpath='//a'><newElement name='b'><newValue> </newValue></newElement></mapping>", "is empty"),
        ("<mapping xpath='//a'><newElement><newValue>c</newValue></newElement></mapping>", "has no name"),
        ("<mapping xpath='//a'><newElement name='1'><newValue>c</newValue></newElement></mapping>", "'1' is no name"),
        (
            "<mapping xpath='//a'><newElement name='x:b'><newValue>c</newValue></newElement></mapping>",
            "prefix x of x:b",
        ),
        (
            "<mapping xpath='//a'><newElement name='b' regexp='*'><newValue>c</newValue></newElement></mapping>",
            "no regular expression",
        ),
        ("<mapping xpath='//a'><new/></mapping>", "<new> is not known in <mapping>"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(tmp_path: Path, written: str, said: str) -> None:
    with pytest.raises(TransformError) as raised:
        read(tmp_path, written)
    assert any(said in finding.message and finding.line for finding in raised.value.findings)
