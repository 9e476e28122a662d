"""Signing in by OpenID Connect, with a small provider on loopback: who is known, and which answers are not believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from metaharvest.errors import SettingsError
from metaharvest.services import accounts
from support.console import Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester
from support.openid_provider import CLIENT, SECRET, Provider, openid_provider

pytestmark = on_one_database
ANNA = {"sub": "1234", "email": "Anna@Example.org", "email_verified": True, "name": "Anna"}


@pytest.fixture
def provider() -> Iterator[Provider]:
    with openid_provider() as made:
        made.person = dict(ANNA)
        yield made


@pytest.fixture
def console(harvester: Harvester, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("OIDC_SECRET", SECRET)
    secret = "env:OIDC_SECRET"
    named = {"oidc_issuer": provider.url, "oidc_client_id": CLIENT, "oidc_client_secret": secret, "oidc_label": "NetID"}
    with served_console(harvester, **named) as made:
        yield made


def signed_in(console: Served) -> Page:
    return console.visitor().open("/console/login?next=/console/sessions").follow("sign in with NetID")


def test_a_user_is_bound_by_a_verified_address_and_known_by_the_subject_then(
    console: Served, provider: Provider
) -> None:
    accounts.add_user(console.harvester, "anna@example.org", "steward", "Anna")
    page = signed_in(console)
    assert (page.path, page.title) == ("/console/sessions", "My sessions")
    assert "Anna, steward" in page.text
    provider.person = {"sub": "1234"}
    assert "Anna, steward" in signed_in(console).text
    # The address went to another person at the provider.
    provider.person = {**ANNA, "sub": "5678"}
    assert signed_in(console).status == 403
    accounts.edit_user(console.harvester, "anna@example.org", enabled=False)
    provider.person = dict(ANNA)
    assert signed_in(console).status == 403


def test_an_operator_unbinds_a_user_after_a_change_of_the_provider(
    harvester: Harvester, console: Served, provider: Provider
) -> None:
    accounts.add_user(console.harvester, "anna@example.org", "steward", "Anna")
    assert signed_in(console).status == 200
    provider.person = {**ANNA, "sub": "5678"}
    page = console.signed_in("operator").open("/console/users")
    assert f"Signs in by {provider.url}." in page.text
    page = page.submit("Unbind anna@example.org")
    assert "Unbind" not in page.root.text_content()
    assert "Anna, steward" in signed_in(console).text
    assert harvester("users", "edit", "anna@example.org", "--unbind").code == 0
    assert "is not known to a provider" in harvester("users", "edit", "anna@example.org", "--unbind").err
    [before] = {row for (row,) in harvester.rows("SELECT before_values FROM audit_entry WHERE action = 'users.unbind'")}
    assert provider.url in before


def test_a_contact_signs_in_by_a_verified_address_and_nobody_else(
    harvester: Harvester, console: Served, provider: Provider
) -> None:
    assert "has no role here" in signed_in(console).text
    harvester.add_site("alder", "https://alder.example.org/list.xml", contact_email="anna@example.org")
    assert "contact" in signed_in(console).text
    for is_verified in (False, None, "true"):
        provider.person = {**ANNA, "email_verified": is_verified}
        assert signed_in(console).status == 403, is_verified


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": [CLIENT, "another"]},
        {"iss": "https://evil.example.org"},
        {"exp": 1_000_000},
        {"exp": None},
        {"sub": None},
    ],
    ids=str,
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(
    console: Served, provider: Provider, changes: dict[str, Any]
) -> None:
    accounts.add_user(console.harvester, "anna@example.org", "steward")
    provider.changes = changes
    assert signed_in(console).status == 403
    assert accounts.sessions_of(console.harvester, "anna@example.org") == []


def test_a_token_with_another_signature_is_refused_and_a_new_key_is_fetched(
    console: Served, provider: Provider
) -> None:
    accounts.add_user(console.harvester, "anna@example.org", "steward")
    provider.algorithm = "HS256"
    assert signed_in(console).status == 403
    provider.algorithm = "RS256"
    provider.published = provider.key
    provider.key = RSAKey.generate_key(2048, {"kid": "one"})
    assert signed_in(console).status == 403
    provider.published = None
    assert signed_in(console).status == 200


def test_an_answer_that_another_browser_started_is_refused(console: Served, provider: Provider) -> None:
    accounts.add_user(console.harvester, "anna@example.org", "steward")
    first = console.visitor().session.get(f"{console.url}/console/oidc/start", allow_redirects=False, timeout=30)
    at_provider = console.visitor().session.get(first.headers["Location"], allow_redirects=False, timeout=30)
    page = console.visitor().open(at_provider.headers["Location"])
    assert (page.status, "does not belong to your browser" in page.text) == (403, True)
    elsewhere = console.visitor().open("/console/oidc/start?next=//evil.example.org/")
    assert elsewhere.url.startswith(f"{console.url}/console/")


def test_a_provider_that_is_away_gets_a_sentence(harvester: Harvester) -> None:
    with served_console(harvester, oidc_issuer="http://127.0.0.1:9", oidc_client_id=CLIENT) as console:
        page = console.visitor().open("/console/oidc/start")
        assert (page.status, "does not answer" in page.text) == (502, True)


def test_a_subject_is_never_cut(console: Served, provider: Provider) -> None:
    accounts.add_user(console.harvester, "anna@example.org", "steward")
    provider.person = {**ANNA, "sub": "a" * 255}
    assert signed_in(console).status == 200
    provider.person = {"sub": "a" * 256}
    assert signed_in(console).status == 403


def test_an_answer_of_another_provider_is_not_taken(console: Served, provider: Provider) -> None:
    accounts.add_user(console.harvester, "anna@example.org", "steward")
    answer = console.visitor()
    started = answer.session.get(f"{console.url}/console/oidc/start", allow_redirects=False, timeout=30)
    back = answer.session.get(started.headers["Location"], allow_redirects=False, timeout=30).headers["Location"]
    page = answer.open(f"{back}&iss=https://evil.example.org")
    assert (page.status, "another provider" in page.text) == (403, True)
    # The answer is spent, whoever gave it.
    assert answer.open(back).status == 403
    assert signed_in(console).status == 200


def test_a_provider_on_another_machine_needs_https(harvester: Harvester) -> None:
    named = {"oidc_issuer": "http://idp.example.org", "oidc_client_id": CLIENT}
    with pytest.raises(SettingsError, match="has to begin with https"), served_console(harvester, **named):
        pass
