"""`metaharvest users` and `metaharvest keys`: people and programs that may use the console and the API."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

from metaharvest.model.kinds import Role
from metaharvest.services import accounts
from support.databases import on_one_database
from support.harvester import Harvester

pytestmark = on_one_database


def test_users_are_added_listed_changed_and_removed(harvester: Harvester) -> None:
    said = harvester("users", "add", "Anna@Example.org", "--role", "operator", "--name", "Anna")
    found = re.search(r"http://127\.0\.0\.1:8000/console/link/(\S+)", said.out)
    assert found
    with harvester.opened(engine=harvester.engine) as opened:
        assert accounts.address_of_link(opened, found[1]) == "anna@example.org"
        assert accounts.visitor_of_address(opened, "anna@example.org").role is Role.OPERATOR
    assert "only operator" in harvester("users", "edit", "anna@example.org", "--role", "viewer").err
    assert harvester("users", "add", "anna@example.org", "--role", "viewer").code == 2
    assert harvester("users", "add", "bo@example.org", "--role", "operator").code == 0
    assert (
        harvester("users", "edit", "anna@example.org", "--disable").out
        == "anna@example.org is operator, and disabled.\n"
    )
    listed = json.loads(harvester("users", "list", "--json").out)
    assert [(each["address"], each["disabled_at"] is None) for each in listed] == [
        ("anna@example.org", False),
        ("bo@example.org", True),
    ]
    with harvester.opened(engine=harvester.engine) as opened:
        assert accounts.address_of_link(opened, found[1]) is None
    assert harvester("users", "remove", "anna@example.org").code == 0
    assert "no user" in harvester("users", "link", "anna@example.org").err
    actions = [row[0] for row in harvester.rows("SELECT action FROM audit_entry ORDER BY audit_entry_id")]
    assert actions == ["users.add", "users.add", "users.edit", "users.remove"]


def test_a_key_is_shown_once_and_revoked(harvester: Harvester) -> None:
    secret = harvester("keys", "add", "portal", "--role", "viewer", "--days", "30").out.strip()
    assert secret.startswith("mh_")
    assert secret not in str(harvester.rows("SELECT * FROM api_key"))
    with harvester.opened(engine=harvester.engine) as opened:
        key = accounts.key_of(opened, secret)
        assert key is not None
        assert (key.name, key.role) == ("portal", Role.VIEWER)
        assert accounts.key_of(opened, secret + "x") is None
    assert "already" in harvester("keys", "add", "portal", "--role", "steward").err
    [key] = json.loads(harvester("keys", "list", "--json").out)
    assert key["last_used_at"] is not None
    assert harvester("keys", "revoke", str(key["key_id"])).code == 0
    assert harvester("keys", "revoke", str(key["key_id"])).code == 2
    with harvester.opened(engine=harvester.engine) as opened:
        assert accounts.key_of(opened, secret) is None


def test_the_account_of_a_forgotten_person_is_removed(harvester: Harvester) -> None:
    assert harvester("users", "add", "anna@example.org", "--role", "operator").code == 0
    said = harvester("contacts", "forget", "Anna@example.org", "--yes")
    assert "only operator" in said.err
    harvester("users", "add", "bo@example.org", "--role", "operator")
    assert harvester("contacts", "forget", "Anna@example.org", "--yes").code == 0
    for table in ("console_user", "console_link", "audit_entry"):
        assert "anna" not in str(harvester.rows(f"SELECT * FROM {table}")), table


def test_the_answer_no_changes_nothing_and_says_so(harvester: Harvester) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"n\n")
    line = [sys.executable, "-m", "metaharvest", "--config", str(harvester.config), "contacts", "forget", "a@b.org"]
    done = subprocess.run(line, stdin=theirs, capture_output=True, text=True, check=False)
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (130, "Stopped. Nothing was changed.\n")


def test_a_refused_edit_changes_nothing(harvester: Harvester) -> None:
    assert harvester("users", "add", "anna@example.org", "--role", "operator").code == 0
    harvester.rows("UPDATE console_user SET issuer = 'https://id.example.org', subject = '1'")
    assert harvester("users", "edit", "anna@example.org", "--unbind", "--disable").code == 2
    assert harvester.rows("SELECT issuer FROM console_user") == [("https://id.example.org",)]
