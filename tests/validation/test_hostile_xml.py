"""Lists and documents made to harm whoever reads them: a finding each, in bounded time and memory, and nobody asked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metaharvest.errors import ListError
from metaharvest.model import Finding
from metaharvest.sources.harvest_list.source import read_list
from support.eml_documents import VALIDATOR, eml, listed
from support.harvester import harvest_list
from support.http_server import HttpServer

pytestmark = pytest.mark.slow

DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
DOCUMENT = eml("2.2.0").removeprefix(DECLARATION)
LIST = harvest_list([("alder.1.1", "http://example.org/1.xml")]).split(b"\n", 1)[1]


def of_document(content: bytes) -> tuple[Finding, ...]:
    return VALIDATOR.check(content, listed("2.2.0")).findings


def of_list(content: bytes) -> tuple[Finding, ...]:
    try:
        list(read_list(io.BytesIO(content)))
    except ListError as error:
        return error.findings
    return ()


def put(content: bytes, piece: bytes) -> bytes:
    """`content` with `piece` in a text of it, at the same depth as a title or a docid."""
    for place in (b"</title>", b"</scope>"):
        content = content.replace(place, piece + place, 1)
    return content


KINDS: list[tuple[Callable[[bytes], tuple[Finding, ...]], bytes]] = [(of_document, DOCUMENT), (of_list, LIST)]
both = pytest.mark.parametrize(("findings", "content"), KINDS, ids=["document", "list"])


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[tuple[HttpServer, str]]:
    """A web server that must not be asked, and a path that blocks whoever opens it."""
    trap = tmp_path / "trap"
    os.mkfifo(trap)
    with HttpServer() as server:
        yield server, trap.as_uri()
        assert server.connections == 0


BOMB = b"".join(b'<!ENTITY e%d "%b">' % (n, b"&e%d;" % (n - 1) * 10 if n else b"ha") for n in range(12))


@both
@pytest.mark.parametrize(
    ("doctype", "used"),
    [
        (b"<!DOCTYPE x [" + BOMB + b"]>", b"&e11;"),
        (b"<!DOCTYPE x [" + BOMB + b"]>", b"<x a='&e11;'/>"),
        (b'<!DOCTYPE x [<!ENTITY q "' + b"q" * 100_000 + b'">]>', b"&q;" * 10_000),
        (b"<!DOCTYPE x [<!ENTITY e SYSTEM '{file}'>]>", b"&e;"),
        (b"<!DOCTYPE x [<!ENTITY e SYSTEM '{http}'>]>", b"&e;"),
        (b"<!DOCTYPE x [<!ENTITY % p SYSTEM '{file}'> %p;]>", b""),
        (b"<!DOCTYPE x [<!ENTITY % p SYSTEM '{http}'> %p;]>", b""),
        (b"<!DOCTYPE x SYSTEM '{http}' [<!ATTLIST title x CDATA 'y'>]>", b""),
        (b"<!DOCTYPE x [<!NOTATION n SYSTEM '{http}'><!ENTITY e SYSTEM '{file}' NDATA n>]>", b""),
    ],
    ids=[
        "bomb",
        "bomb in an attribute",
        "quadratic",
        "file",
        "http",
        "parameter file",
        "parameter http",
        "attlist",
        "ndata",
    ],
)
@pytest.mark.timeout(20)
def test_declarations_are_refused_and_nothing_is_expanded_or_asked_for(
    findings: Callable[[bytes], tuple[Finding, ...]],
    content: bytes,
    doctype: bytes,
    used: bytes,
    outside: tuple[HttpServer, str],
) -> None:
    server, trap = outside
    doctype = doctype.replace(b"{file}", trap.encode()).replace(b"{http}", server.url("/x.dtd").encode())
    for declaration in (b"", DECLARATION, b"\xef\xbb\xbf" + DECLARATION):
        [finding] = findings(declaration + doctype + b"\n" + put(content, used))
        assert finding.rule in ("xml.dtd", "list.dtd")


@both
@pytest.mark.timeout(20)
def test_nothing_that_an_address_stands_for_is_asked_for(
    findings: Callable[[bytes], tuple[Finding, ...]], content: bytes, outside: tuple[HttpServer, str]
) -> None:
    server, trap = outside
    for url in (server.url("/x"), trap):
        named = url.encode()
        attributes = (
            b' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="urn:x %b" xml:base="%b"'
            % (named, named)
        )
        head, _, rest = content.partition(b">")
        findings(b"<!DOCTYPE x SYSTEM '%b'>\n" % named + content)
        findings(head + attributes + b">" + rest)
        findings(b'<?xml-stylesheet href="%b"?>\n<?xml-model href="%b"?>\n' % (named, named) + content)
        include = b'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="%b" parse="text"/>' % named
        assert findings(put(content, include))


@both
@pytest.mark.parametrize(
    ("piece", "rules"),
    [
        (b"<a>" * 10_000 + b"</a>" * 10_000, ("xml.too-deep", "list.element list.too-deep")),
        (b"<a>" * 10_000, ("xml.too-deep", "list.element list.too-deep")),
        (b"\0", ("xml.bad-character", "list.not-well-formed")),
        (b"\x1b[31m", ("xml.bad-character", "list.not-well-formed")),
        (b"&#0;", ("xml.bad-character", "list.not-well-formed")),
        (b"&#x1b;", ("xml.bad-character", "list.not-well-formed")),
        (b"\xed\xa0\x80", ("xml.encoding", "list.encoding")),
        (b"\xe9", ("xml.encoding", "list.encoding")),
        (b"&nbsp;", ("xml.undefined-entity", "list.entity")),
    ],
)
def test_what_xml_does_not_allow_is_a_finding(
    findings: Callable[[bytes], tuple[Finding, ...]], content: bytes, piece: bytes, rules: tuple[str, str]
) -> None:
    expected = rules[1 if findings is of_list else 0].split()
    assert [finding.rule for finding in findings(DECLARATION + put(content, piece))][: len(expected)] == expected


@both
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_read_with_a_byte_order_mark_or_without(
    findings: Callable[[bytes], tuple[Finding, ...]], content: bytes, encoding: str
) -> None:
    assert findings(('<?xml version="1.0"?>' + content.decode()).encode(encoding)) == ()


@both
@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-le", "utf-32-be", "cp037", "cp500"])
def test_an_encoding_that_hardly_anybody_writes_is_read_or_refused(
    findings: Callable[[bytes], tuple[Finding, ...]], content: bytes, encoding: str
) -> None:
    found = [finding.rule for finding in findings(content.decode().encode(encoding))]
    assert found in ([], ["xml.encoding"], ["xml.not-xml"], ["list.encoding"], ["list.not-well-formed"])


@both
@pytest.mark.parametrize(
    "declared",
    ["UTF-16", "UTF-16LE", "UTF-32", "UCS-4", "EBCDIC-CP-US", "cp037", "hex", "rot13", "idna", "x" * 5000, "undefined"],
)
def test_a_lying_or_unknown_encoding_is_one_finding(
    findings: Callable[[bytes], tuple[Finding, ...]], content: bytes, declared: str
) -> None:
    [finding] = findings(b'<?xml version="1.0" encoding="%b"?>\n' % declared.encode() + content)
    assert finding.rule in (
        "xml.encoding",
        "xml.bad-declaration",
        "list.encoding",
        "xml.not-well-formed",
        "xml.too-large-text",
    )


@both
def test_a_hundred_thousand_attributes_are_told_soon(
    findings: Callable[[bytes], tuple[Finding, ...]], content: bytes
) -> None:
    many = b"<x " + b" ".join(b"a%d='1'" % number for number in range(99_000)) + b"/>"
    began = time.process_time()
    assert findings(put(content, many))
    assert time.process_time() - began < 3


@pytest.mark.parametrize(("number", "column"), [(20_000, 1), (20_001, None)])
def test_an_element_of_very_many_attributes_is_found_by_its_line_alone(number: int, column: int | None) -> None:
    """Python's own parser makes a list of all attributes, and no other thread of a server gets a turn meanwhile."""
    [finding] = of_document(b"<x " + b" ".join(b"a%d='1'" % each for each in range(number)) + b"/>")
    assert (finding.line, finding.column) == (1, column)


def test_a_million_elements_are_accepted_and_more_are_not() -> None:
    def with_elements(number: int) -> bytes:
        return eml(
            "2.2.0", after=f"<additionalMetadata><metadata><x>{'<a/>' * number}</x></metadata></additionalMetadata>"
        )

    assert of_document(with_elements(999_900)) == ()
    [finding] = of_document(with_elements(1_000_000))
    assert finding.rule == "xml.too-many-elements"
    assert "1,000,000" in finding.message


MEASURE = """
import resource, sys
from metaharvest.model import Level
from support.eml_documents import VALIDATOR as validator, eml, listed
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def metadata(content):
    return eml("2.2.0", after=f"<additionalMetadata><metadata><x>{content}</x></metadata></additionalMetadata>")
validator.check(eml("2.2.0", "<foo/>"), listed("2.2.0"))
size = 30_000_000
"""
FILLED = """
for piece in ("<a/>", "<a/>x", "<a b='c'/>", "<!---->", "<?a?>", "\\r\\n<"):
    content = metadata(piece * (size // len(piece)))
    before = peak()
    assert not validator.check(content, listed("2.2.0")).acceptable
    print((peak() - before) // 1024)
content = metadata("<a " + " ".join(f"a{number:x}=''" for number in range(size // 10)) + "/>")
before = peak()
assert not validator.check(content, listed("2.2.0")).acceptable
print((peak() - before) // 1024)
"""
NAMES = """
from pathlib import Path
def now():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024
for turn in range(240):
    content = metadata("".join(f"<n{turn}-{number}-{'x' * 60}/>" for number in range(8_000)))
    validator.check(content, listed("2.2.0"))
    before = now() if turn == 40 else 0 if turn < 40 else before
print((now() - before) // 1024)
"""


@pytest.mark.parametrize(
    ("code", "megabytes"), [(FILLED, 120), (NAMES, 100)], ids=["tiny things", "names that nothing else has"]
)
def test_hostile_documents_take_little_memory(code: str, megabytes: int) -> None:
    """In a process of its own: beyond the documents themselves."""
    folder = Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", MEASURE + code], cwd=folder, capture_output=True, check=True)
    print(done.stdout)
    assert all(int(taken) < megabytes for taken in done.stdout.split()), done.stdout


@pytest.mark.parametrize(
    ("megabytes", "work"),
    [
        (30, 'wellformed.parse(b"<a>" + b"<a/>" * 900_000 + b"</a>", parser)'),
        (2, "schemas.compile_schema(list(schemas.VERSIONS.values())[-1])"),
    ],
    ids=["parse", "compile a schema"],
)
def test_a_document_is_not_blamed_if_the_process_has_too_little_memory(megabytes: int, work: str) -> None:
    code = f"""if True:
        import resource
        from pathlib import Path
        from metaharvest.validation import schemas, wellformed
        parser = wellformed.new_parser()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + {megabytes} * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            {work}
        except MemoryError:
            print("no memory")
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.returncode) == ("no memory\n", 0), done.stderr
