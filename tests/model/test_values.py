"""Unit tests of `metaharvest.model.values`."""

from __future__ import annotations

import pickle
from dataclasses import field, replace

import pytest

from metaharvest.model.values import frozen


@frozen
class Place:
    name: str
    tags: tuple[str, ...] = field(default_factory=tuple)


@frozen(kw_only=True)
class Named:
    name: str


def test_values_with_equal_fields_are_equal_and_have_the_same_hash() -> None:
    first, second = Place("here"), Place("here", ())
    assert first == second
    assert hash(first) == hash(second)
    assert {first, second} == {Place("here")}
    assert Place("there") != first


def test_a_changed_copy_leaves_the_value_as_it_is() -> None:
    here = Place("here")
    assert replace(here, name="there") == Place("there")
    assert here == Place("here")


def test_a_value_has_slots_and_travels_to_other_processes() -> None:
    here = Place("here", ("a",))
    assert not hasattr(here, "__dict__")
    assert pickle.loads(pickle.dumps(here)) == here


def test_an_object_of_a_kw_only_class_is_made_with_the_names_of_its_fields() -> None:
    assert Named(name="here").name == "here"
    with pytest.raises(TypeError):
        Named("here")  # type: ignore[call-arg]
