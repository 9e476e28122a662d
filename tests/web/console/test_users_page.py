"""The page of the users: add, change, remove, and the link for a new user."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from support.console import Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester

pytestmark = on_one_database


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as made:
        yield made


def test_a_new_user_signs_in_with_the_link_of_the_page(console: Served) -> None:
    page = console.signed_in("operator").open("/console/users")
    page = page.submit("Add", {"address": " Anna@Example.org ", "name": "Anna", "role": "viewer"})
    assert [row[0] for row in page.table("Users")] == ["anna@example.org", "operator@example.org"]
    found = re.search(r"http://[^ ]+/console/link/[\w-]+", page.text)
    assert found
    anna = console.visitor()
    signed_in = anna.open(found[0]).submit("Sign in")
    assert "Anna, viewer" in signed_in.text
    assert anna.open("/console/users").status == 403
    assert console.visitor().open(found[0]).status == 410


def test_a_mistake_is_said_beside_the_form_which_keeps_its_values(console: Served) -> None:
    page = console.signed_in("operator").open("/console/users")
    page = page.submit("Add", {"address": "nobody", "name": "Anna", "role": "steward"})
    assert page.status == 422
    assert "'nobody' is not an email address" in page.text
    assert "'nobody' is not an email address" in page.root.get_element_by_id("field-address-note").text_content()
    assert dict(page.form("Add").form_values())["name"] == "Anna"


def test_a_disabled_user_is_signed_out_and_the_last_operator_stays(console: Served) -> None:
    steward, operator = console.signed_in("steward"), console.signed_in("operator")
    assert "The steward, steward" in steward.open("/console/").text
    page = operator.open("/console/users").submit("Save steward@example.org", {"state": "disabled"})
    assert page.notice == "steward@example.org was changed."
    assert steward.open("/console/").title == "Sign in"
    page = operator.open("/console/users").submit("Remove operator@example.org")
    assert (page.status, page.title) == (
        422,
        "operator@example.org is the only operator. Make another user an operator first.",
    )
    page = operator.open("/console/users").submit("Remove steward@example.org")
    assert [row[0] for row in page.table("Users")] == ["operator@example.org"]


def test_a_wrong_value_of_a_key_is_named_beside_its_field(console: Served) -> None:
    page = console.signed_in("operator").open("/console/keys")
    for name, values in {"name": {"name": "x" * 300}, "days": {"name": "portal", "days": "0"}}.items():
        wrong = page.submit("Make the key", values)
        [field] = wrong.root.iterfind(".//input[@aria-invalid]")
        assert (wrong.status, field.get("name"), field.get("value")) == (422, name, values[name])
