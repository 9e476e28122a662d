"""The language of texts and outputs, without the network."""

from __future__ import annotations

import socket

import pytest

from metaharvest.model.outputs import Output, Text
from metaharvest.pipeline import text_language
from metaharvest.pipeline.text_language import Language, detected, language_of, language_of_output

ENGLISH = "The recovery of beech forests after storms was studied in forty plots over ten years."
GERMAN = "Die Erholung der Buchenwälder nach Stürmen wurde über zehn Jahre auf vierzig Flächen untersucht."


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        (GERMAN.upper(), "de"),
        ("Le rétablissement des hêtraies après les tempêtes", "fr"),
        ("嵐の後のブナ林の回復を四十の調査区で", "ja"),
        ("폭풍 이후 너도밤나무 숲의 회복에 관한 연구", "ko"),
        ("风暴后山毛榉林恢复的十年研究", "zh"),
        ("Gjenvekst av bøkeskog etter stormer ble undersøkt på førti prøveflater gjennom ti år i Norge", "nb"),
        ("Pemulihan hutan setelah badai dipelajari di empat puluh petak selama sepuluh tahun", "id"),
        ("Beech trees", "und"),
        ("https://example.org/the/recovery/of/beech/forests 10.1234/of.the.and", "und"),
        ("1234 5678 9012 3456 7890 1234", "und"),
        ("", "und"),
    ],
)
def test_the_language_of_a_text(text: str, code: str) -> None:
    assert detected(text).code == code


def test_what_is_declared_wins_unless_the_text_is_clearly_another() -> None:
    assert language_of(GERMAN, "en").code == "de"
    assert language_of(GERMAN, "de").code == "de"
    assert language_of("Beech", "de") == Language("de")
    assert language_of(ENGLISH, "und").code == "en"
    assert (
        language_of("Gjenvekst av bøkeskog etter stormer ble undersøkt på førti flater gjennom ti år", "nn").code
        == "nn"
    )


def test_a_long_text_is_judged_by_its_middle() -> None:
    assert detected("\n".join([ENGLISH] * 10 + [GERMAN] * 200)).code == "de"


def output(title: str, abstract: str = "", declared: str | None = None, of_title: str | None = None) -> Output:
    abstracts = (Text(abstract, "dc:description"),) if abstract else ()
    return Output("oai_dc", (Text(title, "dc:title", of_title),), abstracts=abstracts, language=declared)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (output(GERMAN), "de"),
        (output("Beech", GERMAN), "de"),
        (output(ENGLISH, declared="de"), "de"),
        (output("Beech", ENGLISH, "de"), "en"),
        (output("Buche", declared="de"), "de"),
        (output("Buche", of_title="de"), "de"),
        (output("Buche"), "und"),
    ],
)
def test_the_language_of_an_output_without_a_file(given: Output, code: str) -> None:
    assert language_of_output(given) == code


def test_the_model_comes_from_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    text_language._detector.cache_clear()
    assert detected(GERMAN).code == "de"
