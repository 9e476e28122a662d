"""The keys of JSON documents belong to values of the read models."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import iter_modules

import pytest

from metaharvest import queries
from metaharvest.queries.json_keys import _KEYS, as_mapping
from metaharvest.queries.outbox import Delivery
from metaharvest.queries.records import StoredFinding

MODELS = {
    name: model
    for module in iter_modules(queries.__path__)
    for name, model in vars(import_module(f"metaharvest.queries.{module.name}")).items()
    if is_dataclass(model) and isinstance(model, type)
}


@pytest.mark.parametrize("name", _KEYS)
def test_each_key_has_a_value_and_no_value_is_left_out(name: str) -> None:
    model = MODELS[name]
    named = {key.partition("=")[2] or key for key in _KEYS[name].split()}
    assert all(hasattr(model, each) for each in named)
    left_out = {each.name for each in fields(model)} - named
    assert left_out <= {"cursor", "failed", "number", "trend"}


def test_the_older_names_of_a_value_are_keys_too() -> None:
    finding = StoredFinding(
        level="error", rule="eml.title", message="no", remedy=None, line=3, column=4, xpath=None, excerpt=None
    )
    known = as_mapping(finding)
    assert (known["message"], known["error_message"], known["line"], known["line_number"]) == ("no", "no", 3, 3)


def test_without_older_names_the_keys_are_those_of_the_values() -> None:
    delivery = Delivery("a@example.org", "sent", 1, None, None, None)
    assert list(as_mapping(delivery)) == [field.name for field in fields(Delivery)]
