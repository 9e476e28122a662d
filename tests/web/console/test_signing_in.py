"""Signing in: the form, the mailed link, its button, limits, cookies, tokens, and what other servers may not do."""

from __future__ import annotations

import json
import re
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from metaharvest.database.engine import writers
from metaharvest.errors import RequestError
from metaharvest.model.kinds import Role
from metaharvest.services import accounts
from metaharvest.web.console.defence import is_own_origin, local_path
from metaharvest.web.console.openid import started_from
from metaharvest.web.turns import RateLimit
from support.console import Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester
from support.mails import text_of
from support.waiting import wait_until

KNOWN, UNKNOWN = "alder@example.org", "stranger@example.org"


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    with served_console(harvester) as made:
        yield made


def asked(console: Served, address: str, path: str = "/console/login") -> Page:
    return console.visitor().open(path).submit("Send me a link", {"address": address})


def link_in_mail(harvester: Harvester) -> str:
    wait_until(lambda: len(harvester.mails()) == 1)
    found = re.search(r"http\S+/console/link/\S+", text_of(harvester.mails()[0]))
    assert found
    return found[0]


def test_a_contact_signs_in_by_a_mailed_link_and_comes_back_to_the_page(harvester: Harvester, console: Served) -> None:
    browser = console.visitor()
    page = browser.open("/console/sessions?a=1")
    assert (page.status, page.path) == (200, "/console/login?next=%2Fconsole%2Fsessions%3Fa%3D1")
    page.submit("Send me a link", {"address": f" {KNOWN.upper()} "})
    page = browser.open(link_in_mail(harvester))
    assert page.title == f"Sign in as {KNOWN}"
    page = page.submit("Sign in")
    assert (page.path, page.title) == ("/console/sessions?a=1", "My sessions")
    assert "contact" in page.text
    assert console.visitor().open(link_in_mail(harvester)).status == 410


@on_one_database
def test_the_answer_is_the_same_for_a_stranger_who_gets_no_mail(harvester: Harvester, console: Served) -> None:
    answers = {asked(console, address).text for address in (UNKNOWN, "nobody", KNOWN)}
    assert len(answers) == 1
    link_in_mail(harvester)
    assert [mail["To"] for mail in harvester.mails()] == [KNOWN]


@on_one_database
def test_a_link_expires_and_only_its_hash_is_stored(harvester: Harvester, console: Served) -> None:
    token = accounts.new_link(console.harvester, KNOWN)
    assert token not in str(harvester.rows("SELECT * FROM console_link"))
    browser = console.visitor()
    page = browser.open(f"/console/link/{token}")
    harvester.rows("UPDATE console_link SET expires_at = '2000-01-01 00:00:00.000000'")
    answer = page.submit("Sign in")
    assert (answer.status, "older than 24 hours" in answer.text) == (422, True)
    assert browser.open("/console/sessions").title == "Sign in"
    signed_in = console.signed_in("viewer")
    assert signed_in.session.cookies["metaharvest"] not in str(harvester.rows("SELECT * FROM console_session"))


@on_one_database
def test_an_address_gets_few_mails_and_a_client_few_tries(harvester: Harvester, console: Served) -> None:
    for _ in range(20):
        assert asked(console, KNOWN).status == 200
    answer = asked(console, KNOWN)
    assert answer.status == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 900
    wait_until(lambda: len(harvester.mails()) == 5)


def test_a_limit_forgets_old_requests_and_counts_each_client() -> None:
    now = [0.0]
    limit = RateLimit(2, 10, lambda: now[0])
    assert [limit.seconds_to_wait("a") for _ in range(3)] == [0, 0, 11]
    assert limit.seconds_to_wait("b") == 0
    assert limit.seconds_to_wait("a", 3) == 0
    now[0] = 10.0
    assert limit.seconds_to_wait("a") == 0


@on_one_database
def test_the_addresses_of_one_network_of_ipv6_are_one_client(console: Served) -> None:
    browser = console.visitor()
    token = browser.open("/console/login").root.find(".//input[@name='csrf']").get("value")

    def status(client: str) -> int:
        forwarded = {"X-Forwarded-For": client}
        return browser.request("POST", "/console/login", forwarded, data={"address": UNKNOWN, "csrf": token}).status

    assert [status(f"2001:db8::{number:x}") for number in range(1, 23)] == [200] * 20 + [429] * 2
    assert status("2001:db8:0:1::1") == 200


@on_one_database
def test_a_form_needs_its_token_and_its_own_origin(console: Served) -> None:
    browser = console.signed_in("operator")
    page = browser.open("/console/users")
    token = page.form("Add").form_values()[0]
    assert token[0] == "csrf"
    values = {"address": "new@example.org", "role": "viewer", "csrf": token[1]}
    stranger = console.signed_in("steward").open("/console/sessions").root.find(".//input[@name='csrf']").get("value")
    for changed in ({"csrf": ""}, {"csrf": stranger}, {"csrf": "\ud7ff"}):
        assert browser.request("POST", "/console/users", data={**values, **changed}).status == 403
    for headers in (
        {"Origin": "https://evil.example.org"},
        {"Origin": "null"},
        {"Origin": console.url.replace("127.0.0.1", "localhost")},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert browser.request("POST", "/console/users", data=values, headers=headers).status == 403
    assert len(accounts.list_users(console.harvester)) == 2
    assert browser.request("POST", "/console/users", data=values).status == 200


@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({}, True),
        ({"origin": "https://console.example.org", "host": "inside:8000"}, True),
        ({"origin": "http://inside:8000", "host": "inside:8000"}, True),
        ({"origin": "http://inside", "host": "inside:80"}, True),
        ({"origin": "https://console.example.org:444", "host": "inside"}, False),
        ({"origin": "http://[", "host": "inside"}, False),
        ({"origin": "null", "sec-fetch-site": "same-origin"}, True),
        ({"referer": "https://console.example.org/x/console/login"}, True),
        ({"referer": "https://evil.example.org/console/login", "host": "inside"}, False),
        ({"referer": "https://console.example.org:444/", "host": "inside"}, False),
    ],
)
def test_the_origin_is_that_of_the_server(headers: dict[str, str], is_own: bool) -> None:
    assert is_own_origin(headers, "https://console.example.org/x") == is_own


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/console/sites?state=failed", "/console/sites?state=failed"),
        ("//evil.example.org/console/", "/console/"),
        ("https://evil.example.org/console/", "/console/"),
        ("/console/../oai", "/console/"),
        ("/console/..", "/console/"),
        ("/console/%2e%2E/oai", "/console/"),
        ("/console/.%2e", "/console/"),
        ("/console/a%2fb/log", "/console/a%2fb/log"),
        ("/console//evil.example.org", "/console/"),
        ("/console\\evil", "/console/"),
        ("/console/a\r\nSet-Cookie: x", "/console/"),
        ("/oai", "/console/"),
        ("", "/console/"),
    ],
)
def test_only_paths_of_the_console_are_redirected_to(text: str, path: str) -> None:
    assert local_path(text) == path


def started_with(**values: str) -> str:
    """A cookie of a sign-in at a provider with these values."""
    whole = {"state": "a", "nonce": "b", "verifier": "c", "to": "/console/", **values}
    return urlsafe_b64encode(json.dumps(whole).encode()).decode()


BROKEN = ["", "x", "bnVsbA==", "W10=", "e30=", started_with(state="\ud800"), started_with(state=""), "W1tb" * 3000]


@pytest.mark.parametrize("cookie", BROKEN, ids=range(len(BROKEN)))
def test_a_broken_cookie_belongs_to_no_sign_in_at_a_provider(cookie: str) -> None:
    assert started_from(cookie) is None
    assert started_from(started_with()) is not None


@on_one_database
def test_cookies_and_headers(harvester: Harvester) -> None:
    with served_console(harvester, url="https://console.example.org/folder") as console:
        token = accounts.new_link(console.harvester, "x@example.org")
        accounts.add_user(console.harvester, "x@example.org", "viewer")
        answer = console.visitor().session.get(f"{console.url}/console/link/{token}", timeout=30)
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-metaharvest-forms=")
        for part in ("HttpOnly", "Path=/", "SameSite=lax", "Secure"):
            assert part in cookie
        assert "Domain" not in cookie
        assert f'action="/folder/console/link/{token}"' in answer.text
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        behind = console.visitor().session.get(f"{console.url}/folder/console/link/{token}", timeout=30)
        assert behind.status_code == 200
        redirect = console.visitor().session.get(f"{console.url}/console/", allow_redirects=False, timeout=30)
        assert urlsplit(redirect.headers["Location"]).path == "/folder/console/login"


@on_one_database
def test_a_large_body_and_no_form_get_a_sentence(console: Served) -> None:
    browser = console.visitor()
    answer = browser.request("POST", "/console/login", data={"address": "x" * 300_000})
    assert answer.status == 413
    assert answer.title == "This is too large: this page takes 256 KiB at most. Send a smaller file, or fewer."
    broken = {"Content-Type": "multipart/form-data; boundary=a"}
    assert browser.request("POST", "/console/login", data=b"--b\r\n", headers=broken).status == 400
    assert browser.request("PUT", "/console/login").status == 405
    assert browser.open("/console/none").title == "There is no page at this address."
    assert browser.open("/console/%ff/%00").status == 404


def test_a_text_with_nul_is_no_page_and_no_form(console: Served) -> None:
    browser = console.signed_in("operator")
    token = browser.open("/console/users").root.find(".//input[@name='csrf']").get("value")
    for path in ("/console/outbox?state=%00", "/console/decisions?actor=%00", "/console/decisions?site=a%00b"):
        assert browser.open(path).status == 404, path
    for user in ("a%00b", "%00"):
        assert browser.request("POST", f"/console/users/{user}", data={"csrf": token}).status == 404
    values = {"csrf": token, "address": "a@example.org", "name": "a\0b", "role": "viewer"}
    assert browser.request("POST", "/console/users", data=values).status == 400


def at_once(*calls: Callable[[], object]) -> list[object]:
    """The results of calls that begin at the same moment; RequestError is one."""
    begin = threading.Barrier(len(calls))

    def result(call: Callable[[], object]) -> object:
        begin.wait()
        try:
            return call()
        except RequestError as error:
            return error

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(result, calls))


def test_two_operators_who_demote_each_other_at_once_leave_one(harvester: Harvester) -> None:
    both = ("a@example.org", "b@example.org")
    with harvester.opened(engine=harvester.engine) as opened:
        for address in both:
            accounts.add_user(opened, address, "operator")
        for _ in range(5):
            at_once(*(partial(accounts.edit_user, opened, address, role="viewer") for address in both))
            assert sum(user.role is Role.OPERATOR for user in accounts.list_users(opened)) == 1
            for address in both:
                accounts.edit_user(opened, address, role="operator")


def test_a_user_is_added_and_a_link_spent_once_by_many_at_once(harvester: Harvester) -> None:
    with harvester.opened(engine=harvester.engine) as opened:
        added = at_once(*[partial(accounts.add_user, opened, "new@example.org", "viewer")] * 4)
        assert [isinstance(each, RequestError) for each in added].count(False) == 1
        token = accounts.new_link(opened, "new@example.org")
        spent = at_once(*[partial(accounts.spend_link, opened, token, "")] * 4)
        assert [isinstance(each, RequestError) for each in spent].count(False) == 1


@on_one_database
def test_a_server_in_front_names_the_person_only_from_its_networks(harvester: Harvester) -> None:
    accounts_of = {"X-Person": "anna@example.org"}
    for networks, title in ((["127.0.0.0/8"], "My sessions"), (["10.0.0.0/8"], "Sign in")):
        with served_console(harvester, trusted_header="X-Person", trusted_networks=networks) as console:
            if title == "My sessions":
                accounts.add_user(console.harvester, "anna@example.org", "operator")
            browser = console.visitor()
            assert browser.request("GET", "/console/sessions", headers=accounts_of).title == title
            assert browser.open("/console/sessions").title == "Sign in"


@on_one_database
def test_a_person_whom_a_server_in_front_names_signs_out_there(harvester: Harvester) -> None:
    with served_console(harvester, trusted_header="X-Person", trusted_networks=["127.0.0.0/8"]) as console:
        accounts.add_user(console.harvester, "anna@example.org", "operator")
        browser = console.visitor()
        browser.session.headers["X-Person"] = "anna@example.org"
        page = browser.open("/console/sessions").submit("Sign out")
    assert page.notice == "The web server in front signs you in: sign out there."


@on_one_database
def test_a_session_can_be_ended_from_another_one(console: Served) -> None:
    first, second = console.signed_in("viewer"), console.signed_in("viewer")
    stranger = console.signed_in("steward")
    page, started = second.open("/console/sessions"), first.open("/console/sessions")
    assert len(page.table("Sessions")) == 2
    ends = [each.get("action") for each in page.root.forms if each.get("action").endswith("/end")]
    token = stranger.open("/console/sessions").root.find(".//input[@name='csrf']").get("value")
    assert [stranger.request("POST", each, data={"csrf": token}).status for each in ends] == [404, 404]
    for row in page.table("Sessions"):
        if "this one" not in row[0]:
            button = row[-1]
            assert page.submit(button).notice == "The session was ended."
    ended = started.submit(started.table("Sessions")[0][-1])
    assert (ended.status, ended.follow("Sign in").title) == (403, "Sign in")
    assert first.open("/console/sessions").title == "Sign in"
    assert second.open("/console/sessions").submit("Sign out").notice == "You are signed out."


@on_one_database
def test_a_page_does_not_wait_while_a_run_writes(harvester: Harvester, console: Served) -> None:
    browser = console.signed_in("viewer")
    harvester.rows("UPDATE console_session SET last_seen_at = '2026-01-01 00:00:00'")
    secret = accounts.add_key(console.harvester, "portal", "viewer", "kim", None)
    bearer = {"Authorization": f"Bearer {secret}"}
    with writers(harvester.engine).begin() as session:  # on SQLite, it has the only write lock
        session.execute(text("UPDATE harvest_site_schedule SET enabled = enabled"))
        assert browser.open("/console/sessions").title == "My sessions"
        assert browser.request("GET", "/api/v1/me", bearer).status == 200
    assert browser.open("/console/sessions").title == "My sessions"
    assert not harvester.rows("SELECT 1 FROM console_session WHERE last_seen_at = '2026-01-01 00:00:00'")
