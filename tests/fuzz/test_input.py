"""Mutated lists, documents and HTTP answers: only our own outcomes come out, soon, and safe to keep and to show."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from fuzz import seeds
from fuzz.mutations import mutated
from fuzz.properties import (
    Answers,
    check_document,
    check_list,
    check_metacat,
    check_node,
    check_repository,
    check_robots,
)

fuzzed = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck), print_blob=False
)


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    made = Answers()
    yield made
    made.close()


@settings(fuzzed, max_examples=600)
@given(mutated(seeds.lists(), seeds.PIECES, xml=True))
def test_a_mutated_list_is_read_or_refused_with_findings(content: bytes) -> None:
    check_list(content)


@settings(fuzzed, max_examples=500)
@given(mutated(seeds.documents(), seeds.PIECES, xml=True))
def test_a_mutated_document_is_accepted_or_refused_with_findings(content: bytes) -> None:
    check_document(content)


@settings(fuzzed, max_examples=200)
@given(mutated(seeds.robots(), seeds.PIECES, xml=False))
def test_a_mutated_robots_txt_allows_or_not(content: bytes) -> None:
    check_robots(content)


@settings(fuzzed, max_examples=200)
@given(mutated(seeds.metacat(), seeds.PIECES, xml=True))
def test_a_mutated_answer_of_a_metacat_is_read_or_is_none(content: bytes) -> None:
    check_metacat(content)


@settings(fuzzed, max_examples=200)
@given(mutated(seeds.node(), seeds.PIECES, xml=True))
def test_a_mutated_answer_of_a_node_is_read_or_refused(content: bytes) -> None:
    check_node(content)


@settings(fuzzed, max_examples=300)
@given(mutated(seeds.repositories(), seeds.PIECES, xml=True))
def test_a_mutated_answer_of_a_repository_is_read_or_refused(content: bytes) -> None:
    check_repository(content)


@settings(fuzzed, max_examples=500)
@given(mutated(seeds.answers(), seeds.HTTP_PIECES, xml=False))
def test_a_mutated_answer_is_a_document_or_one_finding(answers: Answers, content: bytes) -> None:
    answers.check(content)


@pytest.mark.parametrize("content", seeds.answers())
def test_an_unchanged_answer_is_a_document_or_one_finding(answers: Answers, content: bytes) -> None:
    answers.check(content)


FOUND = [
    b"HTTP/1.1 503 see http://user:secret@example.org/\r\n\r\n",
    b"HTTP/1.1 404 x\r\n\r\n<html><title>http://user:secret@example.org/ is not here</title></html>",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: http://user:secret@example.org/\r\n\r\nx",
]
"""What the longer targets found: credentials in what a server itself says were shown."""


@pytest.mark.parametrize("content", FOUND)
def test_what_the_longer_target_found_in_answers_is_mended(answers: Answers, content: bytes) -> None:
    answers.check(content)


@pytest.mark.parametrize("start", [b"HTTP/1.1 500 ", b"HTTP/1.1 200 OK\r\nContent-Encoding: "])
def test_what_a_server_repeats_costs_it_and_not_us(answers: Answers, start: bytes) -> None:
    began = time.process_time()
    answers.check(start + b"@" + b"://a:b" * 16_000 + b"\r\n\r\nx")
    assert time.process_time() - began < 1
