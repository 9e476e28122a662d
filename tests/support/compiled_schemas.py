"""Compiled schemas that the validators of one process use one after the other: each takes 20 ms or more to compile."""

from __future__ import annotations

from collections import defaultdict
from functools import wraps
from typing import Any
from weakref import finalize

from lxml import etree

from metaharvest.validation import validator
from metaharvest.validation.schemas import VERSIONS, Described, compile_schema, explaining_schema

_idle: defaultdict[Described, list[etree.XMLSchema]] = defaultdict(list)


def share_compiled_schemas() -> None:
    """Have each validator leave its schemas to later ones; a schema still is for one thread at a time."""
    validator._ParserAndSchemas.schema = _schema  # type: ignore[method-assign]
    validator.Validator.__init__ = _leaving(validator.Validator.__init__)  # type: ignore[method-assign]


def compile_before() -> None:
    """Compile the schemas of the newest two versions of EML, for the forks of this process."""
    for version in list(VERSIONS.values())[-2:]:
        _idle[version].append(compile_schema(version))
        explaining_schema(version)


def _schema(self: validator._ParserAndSchemas, described: Described) -> etree.XMLSchema:
    if described not in self.schemas:
        try:
            self.schemas[described] = _idle[described].pop()
        except IndexError:
            self.schemas[described] = compile_schema(described)
    return self.schemas[described]


def _leaving(initialize: Any) -> Any:
    @wraps(initialize)
    def initialize_and_leave(self: validator.Validator, *args: Any, **options: Any) -> None:
        initialize(self, *args, **options)
        tools = [self._idle.get() for _ in range(self._idle.qsize())]
        for each in tools:
            self._idle.put(each)
        finalize(self, _leave, [each.schemas for each in tools])

    return initialize_and_leave


def _leave(used: list[dict[Described, etree.XMLSchema]]) -> None:
    for schemas in used:
        for described, schema in schemas.items():
            _idle[described].append(schema)
