"""The description of the API: it is what the program makes, and what a real server does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from metaharvest.services import accounts
from metaharvest.web.api.openapi import openapi
from metaharvest.web.api.operations import OPERATIONS
from support.console import served_console
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.outputs import entry, output, write_index

ROOT = Path(__file__).resolve().parents[3]
BOUNDED = settings(
    max_examples=8,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def test_the_description_is_the_one_that_the_program_makes() -> None:
    stored = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    assert stored == openapi(ROOT / "docs" / "schemas"), "make docs"


def test_each_operation_has_a_name_of_its_own() -> None:
    paths: dict[str, Any] = dict(openapi(ROOT / "docs" / "schemas")["paths"])
    names = [each["operationId"] for path in paths.values() for each in path.values()]
    assert len(set(names)) == len(names) == len(OPERATIONS)


@on_one_database
@pytest.mark.slow
def test_a_real_server_answers_as_it_is_described(harvester: Harvester, server: HttpServer) -> None:
    # schemathesis takes half a second to import.
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.failures import FailureGroup
    from schemathesis.core.result import Ok
    from schemathesis.generation import GenerationMode
    from schemathesis.specs.openapi import checks

    expected = [
        not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_headers_conformance,
        checks.response_schema_conformance,
    ]
    harvester.add_site("elm", publish(server, "a.1.1", "b.1.1"))
    harvester.run("2026-11-20")
    write_index(harvester, entry(1, output("Frogs", abstract="Frogs live in ponds.")))
    wrong: list[str] = []
    with served_console(harvester) as console:
        secret = accounts.add_key(console.harvester, "tester", "steward", "test", 1)
        schema = schemathesis.openapi.from_url(f"{console.url}/api/v1/openapi.json")
        schema.config.update(base_url=console.url)

        def called(case: Any) -> None:
            answer = case.call(headers={"Authorization": f"Bearer {secret}"})
            try:
                case.validate_response(answer, checks=expected)
            except FailureGroup as error:
                sent = f"{case.method} {answer.request.url} {answer.request.body!r}"
                wrong.extend(f"{sent}: {each}" for each in error.exceptions)

        for result in schema.get_all_operations():
            assert isinstance(result, Ok)
            operation = result.ok()
            cases = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
            cases |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

            def once(case: Any) -> None:
                called(case)

            BOUNDED(given(case=cases)(once))()
    assert not wrong, "\n\n".join(wrong[:10])
