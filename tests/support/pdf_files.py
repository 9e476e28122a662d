"""Small PDF files for tests: lines of text at places of pages, in Helvetica, or in any script by a map to Unicode.

    pdf_of([[Placed("A title", 72, 720)], [Placed("第二", 72, 720)]])
    pdf_of_text("A title\\n\\nA paragraph ...")

The writer follows ISO 32000-1, sections 7.5 (structure) and 9.10 (extraction of text).
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LINES_A_PAGE = 50


@dataclass(frozen=True, slots=True)
class Placed:
    """A line of text that begins at (x, y), in points from the lower left corner of the page."""

    text: str
    x: float = 72.0
    y: float = 720.0
    size: float = 10.0


def pdf_of(pages: Sequence[Sequence[Placed]]) -> bytes:
    """A PDF 1.4 of these pages."""
    shown = "".join(sorted({c for page in pages for line in page for c in line.text if not _is_latin(c)}))
    kids = " ".join(f"{5 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /DescendantFonts [%d 0 R] "
        b"/ToUnicode %d 0 R >>" % (5 + 2 * len(pages), 6 + 2 * len(pages)),
    ]
    for number, page in enumerate(pages):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>" % (6 + 2 * number)
        )
        objects.append(_stream(b"\n".join(_shown(line) for line in page)))
    objects.append(
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /DW 1000 "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"
    )
    objects.append(_stream(_to_unicode(shown)))
    return _file(objects)


def pdf_of_text(text: str, head: str = "", *, numbered: bool = False) -> bytes:
    """A PDF of this text, LINES_A_PAGE lines a page, with the running head and the number of each page if wanted."""
    lines = text.split("\n")
    pages = [lines[start : start + LINES_A_PAGE] for start in range(0, len(lines), LINES_A_PAGE)]
    return pdf_of([list(_page(page, head, number if numbered else 0)) for number, page in enumerate(pages, start=1)])


def encrypted(content: bytes, password: str = "secret") -> bytes:
    """The same PDF; it opens with the password alone."""
    import pypdf

    writer = pypdf.PdfWriter(clone_from=io.BytesIO(content))
    writer.encrypt(password, algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


def pdf_without_text() -> bytes:
    """A page with a line and no text, as a scanned page has none."""
    return _file(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>",
            _stream(b"10 10 m 500 700 l S"),
        ]
    )


def pdf_bomb(megabytes: int) -> bytes:
    """A PDF whose page content unpacks to this number of megabytes of text, from about a thousandth of it."""
    piece = b"BT /F1 10 Tf 72 720 Td (" + b"a" * 200 + b") Tj ET\n"
    content = zlib.compress(piece * (megabytes * 1_000_000 // len(piece)), 9)
    return _file(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R /Resources << /Font << /F1 3 0 R >> "
            b">> >>",
            b"<< /Length %d /Filter /FlateDecode >>\nstream\n" % len(content) + content + b"\nendstream",
        ]
    )


def _page(lines: Sequence[str], head: str, number: int) -> Iterable[Placed]:
    if head:
        yield Placed(head, 72, 760, 8)
    for row, line in enumerate(lines):
        if line:
            yield Placed(line.lstrip(" "), 72 + 5 * (len(line) - len(line.lstrip(" "))), 730 - 13 * row)
    if number:
        yield Placed(str(number), 300, 40, 8)


def _is_latin(character: str) -> bool:
    try:
        character.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def _shown(line: Placed) -> bytes:
    if all(_is_latin(c) for c in line.text):
        text = line.text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
        return b"BT /F1 %g Tf %g %g Td (%b) Tj ET" % (line.size, line.x, line.y, text)
    text = line.text.encode("utf-16-be").hex().encode()
    return b"BT /F2 %g Tf %g %g Td <%b> Tj ET" % (line.size, line.x, line.y, text)


def _to_unicode(shown: str) -> bytes:
    """The map of codes to Unicode; each code of two bytes is its own character."""
    lines = []
    for high in range(256):
        lines.append(f"<{high:02X}00> <{high:02X}FF> <{high:02X}00>")
    parts = [lines[start : start + 100] for start in range(0, 256, 100)]
    ranges = "\n".join(f"{len(part)} beginbfrange\n" + "\n".join(part) + "\nendbfrange" for part in parts)
    return (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Any def /CMapType 2 def\n"
        "1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
        f"{ranges}\nendcmap end end"
    ).encode()


def _stream(content: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n" % len(content) + content + b"\nendstream"


def _file(objects: Sequence[bytes]) -> bytes:
    file = bytearray(b"%PDF-1.4\n")
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, each)
    start = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    file += b"".join(b"%010d 00000 n \n" % place for place in places)
    file += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(file)
