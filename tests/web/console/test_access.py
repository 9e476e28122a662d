"""Every page of the console as every role, with an own and a foreign site: the table of pages decides, and denies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from urllib.parse import urljoin, urlsplit

import pytest

from metaharvest.model.kinds import Role
from metaharvest.services.accounts import NOBODY, Visitor
from metaharvest.web.console.access import NAVIGATION, PAGES
from metaharvest.web.console.defence import RESERVED, path_of
from metaharvest.web.console.dispatch import found_page
from metaharvest.web.console.rights import Decision, Page, decide
from support.console import Browser, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester

ROLES = ("nobody", "contact", "viewer", "steward", "operator")
OWN, FOREIGN = "own-site", "foreign-site"
CONTACT = Visitor("c@example.org", "", Role.CONTACT, {1: OWN})
VIEWER = Visitor("v@example.org", "", Role.VIEWER)
STEWARD = Visitor("s@example.org", "", Role.STEWARD)


def page(method: str, path: str, least: Role) -> Page:
    return Page(method, path, lambda visit: visit.not_found(""), least)


@pytest.mark.parametrize(
    ("method", "visitor", "site", "decision"),
    [
        ("GET", NOBODY, OWN, Decision.SIGN_IN),
        ("GET", CONTACT, OWN, Decision.ALLOWED),
        ("GET", CONTACT, FOREIGN, Decision.HIDDEN),
        ("POST", CONTACT, OWN, Decision.ALLOWED),
        ("POST", CONTACT, FOREIGN, Decision.HIDDEN),
        ("GET", VIEWER, FOREIGN, Decision.ALLOWED),
        ("POST", VIEWER, FOREIGN, Decision.FORBIDDEN),
        ("POST", STEWARD, FOREIGN, Decision.ALLOWED),
    ],
)
def test_a_page_of_a_site_is_for_its_contacts(method: str, visitor: Visitor, site: str, decision: Decision) -> None:
    assert decide(page(method, "/console/sites/{site}", Role.CONTACT), visitor, site) is decision


def test_a_part_of_a_path_may_have_any_characters() -> None:
    pages = [page("GET", "/console/a/{site}", Role.CONTACT), page("GET", "/console/a/new", Role.STEWARD)]
    assert found_page(pages, "GET", "/console/a/x%2Fy%20z") == (pages[0], {"site": "x/y z"}, ["GET"])
    assert found_page(pages, "GET", "/console/a/new")[0] is pages[1]
    assert found_page(pages, "POST", "/console/a/new")[0] is None
    assert found_page(pages, "GET", "/console/a/")[0] is None
    assert found_page(pages, "HEAD", "/console/a/b")[0] is pages[0]


@pytest.mark.parametrize(
    "name", ["add", "import", "~add", "~~..", ".", "..", "~x", "x/y", "%2e", "a?b#c:d", "<b>", "é"]
)
def test_each_name_has_a_path_that_no_browser_and_no_other_page_takes_for_itself(name: str) -> None:
    path = path_of("/console/sites", name, "edit")
    assert urlsplit(urljoin("https://example.org/", path)).path == path
    assert found_page(PAGES, "GET", path)[1] == {"site": name}
    assert found_page(PAGES, "GET", path_of("/console/sites", name))[1] == {"site": name}


def test_words_that_stand_where_another_page_has_a_name_are_reserved() -> None:
    named = {each.path.rpartition("/{")[0] for each in PAGES if each.path.endswith("}") and each.of_site}
    words = {each.path.removeprefix(f"{start}/").split("/")[0] for start in named for each in PAGES
             if each.path.startswith(f"{start}/")}  # fmt: skip
    assert {word for word in words if not word.startswith("{")} <= RESERVED


def test_the_table_is_sorted_and_has_no_page_twice() -> None:
    keys = [(each.path, each.method) for each in PAGES]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert [path for _, path in NAVIGATION] == list(dict.fromkeys(path for _, path in NAVIGATION))


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    for name in (OWN, FOREIGN):
        harvester.add_site(name, f"https://{name}.example.org/list.xml")
    with served_console(harvester) as made:
        yield made


def browser_of(console: Served, role: str) -> Browser:
    if role == "nobody":
        return console.visitor()
    return console.signed_in_as(f"{OWN}@example.org") if role == "contact" else console.signed_in(role)


def address(each: Page, site: str) -> str:
    """The path of a page, with a name that is nobody's for each part but the site."""
    return "/".join(
        site if part == "{site}" else "1" if part.startswith("{") else part for part in each.path.split("/")
    )


def expected(each: Page, role: str, site: str) -> set[int]:
    """The answers to a request without the token of a form: of an allowed GET all that a handler may say."""
    answered = {200, 404, 410, 422}
    if each.method == "POST":
        return {403}
    if each.least is Role.PUBLIC:
        return answered
    if role == "nobody":
        return {303}
    if each.least is Role.CONTACT:
        return {404} if each.of_site and role == "contact" and site == FOREIGN else {*answered, 303}
    allowed = ROLES.index(role) >= int(each.least)
    return {*answered, 303} if allowed else {403}


@on_one_database
@pytest.mark.slow
@pytest.mark.long
def test_every_page_as_every_role(console: Served) -> None:
    wrong = []
    for role in ROLES:
        browser = browser_of(console, role)
        for each, site in product(PAGES, (OWN, FOREIGN)):
            if not each.of_site and site == FOREIGN:
                continue
            answer = browser.session.request(
                each.method, console.url + address(each, site), allow_redirects=False, timeout=30
            )
            if answer.status_code not in expected(each, role, site):
                wrong.append((role, each.method, address(each, site), answer.status_code))
            if answer.headers["Content-Security-Policy"].partition(";")[0] != "default-src 'none'":
                wrong.append((role, "no policy at", each.path, answer.status_code))
    assert wrong == []


@on_one_database
@pytest.mark.slow
def test_every_form_is_refused_to_roles_below_its_own_even_with_its_token(console: Served) -> None:
    wrong = []
    for role in ROLES:
        browser = browser_of(console, role)
        token = browser.open("/console/login").root.find(".//input[@name='csrf']").get("value")
        for each in PAGES:
            is_above = each.least > Role.CONTACT and ROLES.index(role) < int(each.least)
            is_foreign = each.least is Role.CONTACT and each.of_site and role in ("nobody", "contact", "viewer")
            is_strange = each.least is Role.CONTACT and role == "nobody"
            if each.method == "POST" and (is_above or is_foreign or is_strange):
                answer = browser.request("POST", address(each, FOREIGN), data={"csrf": token})
                if answer.status not in (403, 404) or "too old" in answer.text:
                    wrong.append((role, each.path, answer.status, answer.text[:80]))
    assert wrong == []
