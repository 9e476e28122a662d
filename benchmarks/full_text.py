"""The benchmark of full texts: how many files are found from records, how many of them are right, and the time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from lxml import etree

from benchmarks.full_text_web import SEEN, UNSEEN, WITHOUT, Made, made_records
from benchmarks.table import Line
from metaharvest.pipeline.full_text.candidates import host_of, web_address
from metaharvest.pipeline.full_text.landing import read_page
from metaharvest.pipeline.full_text.links import candidates
from metaharvest.pipeline.full_text.walk import Answer, Reason, Refusal, Walk

_MISSING = Refusal(Reason.MISSING, "It is not there.")


def full_text_links(_folder: Path, scale: float) -> Iterator[Line]:
    """Errors in percent of the records: 100 - precision, 100 - recall; and the time for a page."""
    records = list(made_records(max(2, round(10 * scale))))
    for name, kinds in (("named software", SEEN), ("other software", UNSEEN)):
        yield from _lines(name, [each for each in records if each.kind in {kind.__name__ for kind in kinds}], scale)
    yield from _lines("all, and pages without a file", records, scale)
    yield _speed(records)


def _lines(name: str, records: Sequence[Made], scale: float) -> Iterator[Line]:
    counts = Counter(_judged(each, found_by_walk(each)) for each in records)
    plain = Counter(_judged(each, found_by_meta(each)) for each in records)
    wrong = counts["wrong"] + counts["instead"]
    note = f"{len(records)} records: {counts['right']} right, {wrong} wrong, {counts['none']} not found"
    goal = 5.0 if scale >= 1 else None
    for what, part in (("wrong files", _wrong), ("files not found", _not_found)):
        beside = "citation_pdf_url alone"
        yield Line(f"full-text-links: {name}, {what}", part(counts), "%", beside, part(plain), goal, note=note)


def _wrong(counts: Counter[str]) -> float:
    """100 - precision."""
    wrong = counts["wrong"] + counts["instead"]
    return 100 * wrong / max(wrong + counts["right"], 1)


def _not_found(counts: Counter[str]) -> float:
    """100 - recall. A wrong file in the place of the right one is not found, either."""
    return 100 * (counts["none"] + counts["instead"]) / max(counts["right"] + counts["none"] + counts["instead"], 1)


def _judged(made: Made, found: str | None) -> str:
    if found is None:
        return "none" if made.right else "rightly none"
    if _is_right(made, found):
        return "right"
    return "instead" if made.right else "wrong"


def _is_right(made: Made, found: str) -> bool:
    return made.right is not None and made.web[found].content == made.web[made.right].content


def found_by_walk(made: Made) -> str | None:
    """The address of the file that the program finds."""
    walk = Walk(candidates(made.output, (host_of(made.host),)), made.output.title)
    while candidate := walk.following():
        body = made.web.get(candidate.url)
        digest = sha256(body.content if body else b"").hexdigest()
        answer = Answer(candidate.url, body.content, digest, body.media_type, body.link) if body else _MISSING
        walk.take(candidate, answer)
    return walk.found.answer.url if walk.found else None


def found_by_meta(made: Made) -> str | None:
    """The address in `citation_pdf_url`, as the plainest program finds it."""
    page = made.output.identifiers[0].value
    body = made.web.get(page)
    root = etree.fromstring(body.content, etree.HTMLParser(encoding="utf-8")) if body else None
    metas = root.iter("meta") if root is not None else ()
    found = [each.get("content") or "" for each in metas if each.get("name") == "citation_pdf_url"]
    address = web_address(found[0], page) if found else None
    answer = made.web.get(address) if address else None
    return address if answer and answer.content.startswith(b"%PDF") else None


def _speed(records: Sequence[Made]) -> Line:
    pages = [(each.output.identifiers[0].value, each.web[each.output.identifiers[0].value]) for each in records]
    filler = b"<div class='text'><p>" + b"Alders grow by rivers. " * 20 + b"</p></div>"
    whole = [(url, body.content.replace(b"</body>", filler * 60 + b"</body>")) for url, body in pages]
    began = time.perf_counter()
    for url, content in whole:
        read_page(content, url, charset="utf-8")
    ours = time.perf_counter() - began
    began = time.perf_counter()
    for _, content in whole:
        root = etree.fromstring(content, etree.HTMLParser(encoding="utf-8"))
        for element in root.iter("a", "meta", "link"):
            element.get("href")
    plain = time.perf_counter() - began
    number = len(whole)
    return Line(
        "full-text-links: a page of 30 KB is read", 1000 * ours / number, "ms", "lxml alone", 1000 * plain / number
    )


def show_mistakes() -> None:
    """Print each record whose answer is not the right one."""
    for made in made_records():
        found = found_by_walk(made)
        if found != made.right and not (found and _is_right(made, found)):
            print(made.kind, made.number, made.language, "found", found, "not", made.right)


if __name__ == "__main__":
    show_mistakes()
    print(len(WITHOUT), "kinds without a file")
    for line in full_text_links(Path(), 1.0):
        print(line.cells())
