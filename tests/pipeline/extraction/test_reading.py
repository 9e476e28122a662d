"""Files of all kinds, good and bad, through the reader processes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

import pytest

from metaharvest.pipeline.extraction import reader_process, reading
from metaharvest.pipeline.extraction.reading import FileReader, Unreadable, kind_of
from support.pdf_files import Placed, encrypted, pdf_bomb, pdf_of, pdf_of_text, pdf_without_text

TEXTS = {
    "en": "The recovery of beech forests after storms was studied in forty plots over ten years.",
    "de": "Die Erholung der Buchenwälder nach Stürmen wurde über zehn Jahre auf vierzig Flächen untersucht.",
    "fr": "Le rétablissement des hêtraies après les tempêtes a été étudié pendant dix ans.",
    "ru": "Восстановление буковых лесов после бурь изучали десять лет на сорока площадках.",
    "ja": "嵐の後のブナ林の回復を四十の調査区で十年間にわたって調べた。",
}
JATS = b"""<?xml version="1.0"?>
<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving DTD v1.2//EN" "JATS-archivearticle1.dtd">
<article xml:lang="fr"><front><article-meta><title-group><article-title>Les <italic>Fagus</italic></article-title>
</title-group><abstract><p>Un court texte.</p></abstract></article-meta></front><body><sec><title>Introduction</title>
<p>Nous &#233;tudions <xref>[1]</xref> les arbres.</p></sec></body><back><ref-list><title>References</title>
<ref><label>1</label><element-citation><name><surname>Lind</surname><given-names>A</given-names></name>
<year>2001</year><article-title>On trees in a wood</article-title><source>J Trees</source>
<pub-id pub-id-type="doi">10.1234/ABC</pub-id></element-citation></ref>
<ref><mixed-citation>Bo C (2002) More trees in a wood. J Trees 2:1-3</mixed-citation></ref></ref-list></back>
</article>"""


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    """One reader for all tests of good files: to start its processes takes half a second."""
    with FileReader() as reader:
        yield reader


@pytest.mark.parametrize("language", TEXTS)
def test_a_pdf_gives_its_text_in_any_script(reader: FileReader, language: str) -> None:
    found = reader.read(pdf_of_text(TEXTS[language]), "application/pdf")
    assert found.text == TEXTS[language]
    assert found.pages == 1


def test_words_broken_at_line_ends_are_joined_and_running_heads_left_out(reader: FileReader) -> None:
    lines = ["A recovery of for-", "ests with a well-", "known cause; the well-known one."] + ["Beech trees."] * 120
    found = reader.read(pdf_of_text("\n".join(lines), head="Journal of Trees 12 (2001)", numbered=True), "")
    assert found.text.startswith("A recovery of forests with a well-known cause; the well-known one.\nBeech trees.")
    assert "Journal" not in found.text
    assert not any(each.isdigit() for each in found.text)
    assert found.pages == 3


def test_a_paragraph_ends_where_the_distance_grows(reader: FileReader) -> None:
    placed = [
        Placed(f"Line {name} of the text of a page.", 72, y)
        for name, y in zip("abcd", (700, 687, 660, 647), strict=True)
    ]
    assert "b of the text of a page.\n\nLine c" in reader.read(pdf_of([placed]), "").text


@pytest.mark.parametrize(
    ("content", "rule", "words"),
    [
        (encrypted(pdf_of_text(TEXTS["en"])), "extraction.encrypted", "password"),
        (pdf_without_text(), "extraction.no-text", "may be a scan"),
        (pdf_of_text(TEXTS["en"])[:-300], "extraction.damaged", "damaged or not complete"),
        (b"%PDF-1.7\n", "extraction.damaged", "damaged"),
        (b"<?xml version='1.0'?><article><body>", "extraction.damaged", "not well-formed"),
        (b"<?xml version='1.0'?><eml/>", "extraction.unknown-type", "<eml>"),
        (b"<html><body></body></html>", "extraction.no-text", "no text"),
        (b" \n", "extraction.no-text", "no text"),
    ],
)
def test_a_file_without_text_is_named_with_its_reason(
    reader: FileReader, content: bytes, rule: str, words: str
) -> None:
    with pytest.raises(Unreadable) as caught:
        reader.read(content, "text/plain")
    assert caught.value.rule == rule
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.slow
def test_a_file_that_takes_too_much_memory_costs_itself_alone() -> None:
    with FileReader(memory=60_000_000) as reader:
        assert reader.read(pdf_of_text(TEXTS["de"]), "").text == TEXTS["de"]
        with pytest.raises(Unreadable) as caught:
            reader.read(pdf_bomb(120), "application/pdf")
        assert caught.value.rule == "extraction.too-expensive"
        assert reader.read(pdf_of_text(TEXTS["de"]), "").text == TEXTS["de"]


@pytest.mark.slow
def test_a_file_that_takes_too_long_is_given_up() -> None:
    with FileReader(seconds=1) as reader, pytest.raises(Unreadable) as caught:
        reader.read(pdf_bomb(25), "application/pdf")
    assert caught.value.rule == "extraction.too-expensive"
    assert str(caught.value) == "The reading of the file takes more than 1 seconds."


def test_a_crafted_pdf_that_ends_its_process_costs_itself_alone(reader: FileReader) -> None:
    """A tree of pages that names itself, and an object stream with a wrong number of objects."""
    stream = zlib.compress(b"1 0 " * 100_000)
    content = (
        b"%%PDF-1.5\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R 2 0 R]/Count 2147483647>>endobj\n"
        b"3 0 obj<</Type/ObjStm/N 4294967295/First 8/Length %d/Filter/FlateDecode>>stream\n"
        % len(stream)
        + stream
        + b"\nendstream endobj\ntrailer<</Root 1 0 R/Size 4>>\n"
    )
    with pytest.raises(Unreadable) as caught:
        reader.read(content, "application/pdf")
    assert caught.value.rule in ("extraction.damaged", "extraction.too-expensive", "extraction.no-text")
    assert reader.read(pdf_of_text(TEXTS["fr"]), "").text == TEXTS["fr"]


def test_a_signal_that_stops_the_harvester_does_not_end_the_reader_process(reader: FileReader) -> None:
    reader.read(pdf_of_text(TEXTS["en"]), "")
    process = reader._processes["pdf"]._process
    assert process is not None
    process.terminate()
    assert reader.read(pdf_of_text(TEXTS["fr"]), "").text == TEXTS["fr"]
    assert reader._processes["pdf"]._process is process


@pytest.mark.parametrize("kills", [1, 2])
def test_a_file_whose_process_the_system_ends_is_tried_once_more(monkeypatch: pytest.MonkeyPatch, kills: int) -> None:
    pids = list[int]()

    def send(target: IO[bytes], content: bytes) -> None:
        process = own._processes["pdf"]._process
        assert process is not None
        pids.append(process.pid)
        if len(pids) <= kills:
            process.kill()
            process.wait()
        reader_process.send(target, content)

    monkeypatch.setattr(reading, "send", send)
    with FileReader() as own:
        if kills == 1:
            assert own.read(pdf_of_text(TEXTS["en"]), "").text == TEXTS["en"]
        else:
            with pytest.raises(Unreadable, match="The system ended the process") as caught:
                own.read(pdf_of_text(TEXTS["en"]), "")
            assert caught.value.rule == "extraction.too-expensive"
    assert len(set(pids)) == 2


def test_the_reader_process_can_open_no_file_and_gets_no_secret(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pathlib import Path

    monkeypatch.setenv("METAHARVEST_TARGET_TOKEN", "geheim")
    with FileReader() as reader:
        reader.read(pdf_of_text(TEXTS["en"]), "")
        process = reader._processes["pdf"]._process
        assert process is not None
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert "geheim" not in Path(f"/proc/{process.pid}/environ").read_text()
    [files] = [line.split() for line in limits.splitlines() if line.startswith("Max open files")]
    assert files[3:5] == ["3", "3"]


def test_jats_gives_its_text_its_language_and_its_references(reader: FileReader) -> None:
    found = reader.read(JATS, "application/xml")
    assert found.text == "Les Fagus\n\nUn court texte.\n\nIntroduction\n\nNous étudions [1] les arbres."
    assert found.language == "fr"
    assert found.references is not None
    assert [(each.title, each.year, each.doi, each.surnames) for each in found.references] == [
        ("On trees in a wood", 2001, "10.1234/abc", ("Lind",)),
        ("More trees in a wood", 2002, None, ("Bo",)),
    ]
    assert found.references[0].raw == "Lind. 2001. On trees in a wood. J Trees. 10.1234/ABC"
    assert found.references[1].raw == "Bo C (2002) More trees in a wood. J Trees 2:1-3"


def test_entities_of_xml_are_not_resolved(reader: FileReader) -> None:
    content = b"""<!DOCTYPE article [<!ENTITY ha "no"><!ENTITY f SYSTEM "file:///etc/passwd">]>
    <article><body><p>Safe &f;&ha;text</p></body></article>"""
    assert reader.read(content, "text/xml").text == "Safe text"


def test_entities_that_grow_cost_nothing(reader: FileReader) -> None:
    entities = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    content = f'<!DOCTYPE article [<!ENTITY l0 "ha">{entities}]><article><p title="&l11;">&l11;</p></article>'
    with pytest.raises(Unreadable, match="not well-formed"):
        reader.read(content.encode(), "text/xml")


def test_a_page_gives_its_text_without_its_menu(reader: FileReader) -> None:
    paragraphs = "".join(f"<p>{TEXTS['de']} Das ist Absatz {number} eines Textes.</p>" for number in range(9))
    page = f"""<!DOCTYPE html><html lang="de-DE"><head><title>x</title><script>var no = 1</script></head><body>
    <nav><a href="/">Startseite</a></nav><article><h1>Buchen</h1>{paragraphs}<h2>Literatur</h2>
    <ol><li>Lind, A. (2001). Wald. Zeitschrift 3, 1-5.</li><li>Bo, C. (2002). Holz. Zeitschrift 4.</li></ol></article>
    </body></html>"""
    found = reader.read(page.encode(), "text/html; charset=utf-8")
    assert "Das ist Absatz 8 eines Textes." in found.text
    assert "Lind, A. (2001). Wald. Zeitschrift 3, 1-5." in found.text
    assert "Startseite" not in found.text
    assert "var no" not in found.text
    assert found.language == "de"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        ("Grüße aus dem Wald\n".encode(), "text/plain"),
        ("Grüße aus dem Wald\n".encode("utf-16"), "text/plain"),
        ("Grüße aus dem Wald\r\n".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
        ("Grüße aus dem Wald".encode("cp1252"), "text/plain; charset=unknown"),
        ("Grüße aus dem Wald".encode(), "text/plain; charset=latin-1"),
    ],
)
def test_plain_text_is_decoded(reader: FileReader, content: bytes, media_type: str) -> None:
    assert reader.read(content, media_type).text == "Grüße aus dem Wald"


@pytest.mark.parametrize(
    ("media_type", "content", "kind"),
    [
        ("text/html", b"\n%PDF-1.4", "pdf"),
        ("application/pdf", b"<!DOCTYPE html><html>", "html"),
        ("application/xhtml+xml", b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'>", "html"),
        ("application/xml", b"<article>", "xml"),
        ("text/html", b"<p>some text", "html"),
        ("text/plain", b"some text", "plain"),
    ],
)
def test_the_bytes_of_a_file_count_more_than_its_type(media_type: str, content: bytes, kind: str) -> None:
    assert kind_of(media_type, content) == kind


@pytest.mark.parametrize("media_type", ["application/zip", "image/png", ""])
def test_other_files_are_not_read(media_type: str) -> None:
    with pytest.raises(Unreadable, match="neither PDF nor"):
        kind_of(media_type, b"PK\x03\x04")


def test_a_file_that_is_too_large_is_not_read(reader: FileReader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reading.LARGEST, "plain", 10)
    with pytest.raises(Unreadable) as caught:
        reader.read(b"some words of a text", "text/plain")
    assert caught.value.rule == "extraction.too-large"
