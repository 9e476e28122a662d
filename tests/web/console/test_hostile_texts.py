"""On no page of the console does a text from outside become markup.

A harvested installation gets hostile markup into every text of every table, whoever wrote it: titles, errors of lists,
names of sets and files, addresses. Then each path of the table of pages is opened, and each form on it is sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

import pytest
from lxml import html
from sqlalchemy import String, select, update
from sqlalchemy.orm import Session

from metaharvest.database.all_tables import Base
from metaharvest.database.console_models import SiteRegistration
from metaharvest.database.engine import writers
from metaharvest.database.models import AuditEntry, HarvestRequest
from metaharvest.model.kinds import Role
from metaharvest.services import accounts, registrations
from metaharvest.web.console.access import PAGES
from metaharvest.web.console.pages.confirmation import HANDLERS
from metaharvest.web.console.rights import Page as Path
from support.console import Browser, Page, Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, eml, harvest_list
from support.http_server import HttpServer

pytestmark = [on_one_database, pytest.mark.slow, pytest.mark.long]

MARKUP = """'"><hostile-tag onclick="hostile()" x='</textarea></title><script>hostile()</script>"""
SCRIPT = "javascript:hostile()//"
SCHEMES = ("javascript:", "data:", "vbscript:")

CODES = {
    *("kind", "status", "state", "source_kind", "unit", "notify", "level", "harvest_operation_code", "outcome", "rule"),
    *("fingerprint", "sha256", "pending_sha256", "list_sha256", "digest", "path_sha256", "token_hash", "key_hash"),
    *("purpose", "role", "scope", "phase", "via", "asked_via", "open_key", "idempotency_key", "datestamp", "treatment"),
    *("address_token", "list_token", "source_token", "source_proof", "subject_kind", "zone", "checkpoint", "windows"),
    *("version_num", "action"),
}
"""Columns whose values the program writes itself: a word of a list, a hash, a token."""
NAMES = {"name", "site_name", "site", "from_site", "to_site", "document_id", "item_identifier", "origin", "subject"}
"""Columns by which rows find each other, and pages are found."""
ARGUMENTS = (
    *("action", "actor", "after", "at", "back", "before", "cursor", "document", "error", "failing", "file", "first"),
    *("format", "from", "group", "kind", "last", "level", "name", "next", "notice", "other", "outcome", "overdue"),
    *("page", "q", "rule", "run", "search", "site", "since", "sort", "state", "text", "to", "token", "until", "with"),
)
"""Names of arguments that pages may show again."""
KEPT = {("console_user", "address"), ("console_session", "address"), ("console_link", "address")}
"""The columns that keep the test signed in."""


def hostile(value: str) -> str:
    """The text with markup behind it; in a JSON text each string has it."""
    try:
        return json.dumps(_hostile_json(json.loads(value)))
    except ValueError:
        return value + MARKUP


def _hostile_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _hostile_json(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_hostile_json(each) for each in value]
    return value + MARKUP if isinstance(value, str) else value


def poison(session: Session, *, names: bool) -> int:
    """Put markup into the texts of all tables; `names`: also into those by which rows are found. Their number."""
    poisoned = 0
    for table in Base.metadata.sorted_tables:
        keys = list(table.primary_key.columns)
        for column in table.columns:
            if not isinstance(column.type, String) or column.name in CODES or (table.name, column.name) in KEPT:
                continue
            if column.name in NAMES and not names:
                continue
            for *key, value in session.execute(select(*keys, column).where(column.is_not(None))).all():
                its = [each == known for each, known in zip(keys, key, strict=True)]
                is_link = column.name.endswith("url") and table.name != "harvest_site_schedule"
                changed = SCRIPT + hostile(value) if is_link else hostile(value)
                session.execute(update(table).where(*its).values({column.name: changed}))
                poisoned += 1
    return poisoned


def fill(harvester: Harvester, server: HttpServer) -> None:
    """Two runs of a good site and of a site with a failing list, and a row in each table of requests and decisions."""
    server.serve("/a.1.1.xml", eml("a.1.1", "A title"))
    server.serve("/a.2.1.xml", b"<eml>no")
    entries = [(docid, server.url(f"/{docid}.xml")) for docid in ("a.1.1", "a.2.1", "a.3.1")]
    server.serve("/list.xml", harvest_list(entries))
    harvester.add_site("alder", server.url("/list.xml"), contact_email="contact@example.org")
    harvester.add_site("birch", server.url("/gone.xml"))
    for day in ("2026-11-20", "2026-11-21"):
        harvester.run(day)
    assert harvester("reports", "resend", "1").code == 0
    assert harvester("sites", "edit", "alder", "--every", "2").code == 0
    assert harvester("sites", "harvest", "alder").code == 0
    assert harvester("sites", "skip", "birch").code == 0
    assert harvester("target", "withdraw", "a.1", "--reason", "It is wrong.", "--yes").code == 0
    with harvester.opened() as opened:
        accounts.add_key(opened, "portal", "viewer", "operator@example.org", None)
        accounts.add_user(opened, "anna@example.org", "viewer", "Anna")
        accounts.new_link(opened, "anna@example.org")
    now = AuditEntry.__table__.c.at
    with writers(harvester.engine).begin() as session:
        moment = session.scalars(select(now)).first()
        session.add(
            SiteRegistration(
                kind="site",
                state=registrations.State.WAITING_FOR_DECISION.value,
                name="cedar",
                source_kind="harvest-list",
                url="http://127.0.0.1:9/list.xml",
                address="cedar@example.org",
                mailbox="cedar@example.org",
                frequency=1,
                unit="days",
                host="127.0.0.1",
                asked_at=moment,
                address_proved_at=moment,
            )
        )
        assert session.scalars(select(HarvestRequest)).first()


def addresses(harvester: Harvester, page: Path) -> Iterator[str]:
    """The addresses of a page: with the names and numbers of the rows, without and with arguments."""

    def first(sql: str) -> str:
        return str((harvester.rows(sql) or [("1",)])[0][0])

    known: Mapping[str, str] = {
        "site": first("SELECT name FROM harvest_site_schedule ORDER BY site_schedule_id"),
        "run": "2",
        "document": first("SELECT document_id FROM harvest_document ORDER BY harvest_document_id DESC"),
        "rule": first("SELECT rule FROM harvest_detail_log"),
        "report": "1",
        "registration": "1",
        "key": "1",
        "session": "1",
        "user": first("SELECT address FROM console_user ORDER BY user_id"),
        "file": "console.css",
    }
    parts: list[list[str]] = []
    for part in page.path.split("/"):
        name = part[1:-1] if part.startswith("{") else None
        if name == "action":
            parts.append(sorted(HANDLERS))
        elif name:
            parts.append([quote(each, safe="") for each in {known.get(name, MARKUP), MARKUP}])
        else:
            parts.append([part])
    arguments = {"name": known["site"], "run_id": "2", "request_id": "1", "document": known["document"]}
    reflected = urlencode(dict.fromkeys((*ARGUMENTS, *arguments), MARKUP))
    for each in map("/".join, product(*parts)):
        yield f"{each}?{urlencode(arguments)}" if "/actions/" in each else each
        yield f"{each}?{reflected}"


def powers(page: Page) -> list[str]:
    """The elements, attributes and addresses of the page that only hostile markup can have made."""
    if "text/html" not in page.headers.get("Content-Type", "") or not page.content.strip():
        return []
    found = []
    for element in page.root.iter("*"):
        is_script = element.tag == "script" and not (element.get("src") or "").endswith("/htmx.min.js")
        if element.tag == "hostile-tag" or is_script or element.tag in ("iframe", "object", "embed", "base"):
            found.append(element.tag)
        for name, value in map(_texts, element.attrib.items()):
            is_link = name in ("href", "src", "action", "formaction", "xlink:href")
            if name.lower().startswith("on") or (is_link and value.strip().lower().startswith(SCHEMES)):
                found.append(f"{element.tag} {name}={value[:60]}")
    return found


def _texts(pair: tuple[Any, Any]) -> tuple[str, str]:
    return str(pair[0]), str(pair[1])


def opened(browser: Browser, address: str) -> Page:
    return browser.request("GET", browser.url + address)


@pytest.fixture(params=[False, True], ids=["texts", "names too"])
def console(request: pytest.FixtureRequest, harvester: Harvester, server: HttpServer) -> Iterator[Served]:
    fill(harvester, server)
    with served_console(harvester) as made:
        made.signed_in("operator")
        with writers(harvester.engine).begin() as session:
            assert poison(session, names=request.param) > 100
        yield made


def test_no_text_of_any_table_becomes_markup_on_any_page(console: Served, harvester: Harvester) -> None:
    operator, stranger = console.signed_in("operator"), console.visitor()
    wrong, shown, forms = list[str](), 0, dict[str, tuple[Page, str]]()
    for path in PAGES:
        if path.method != "GET":
            continue
        for address in addresses(harvester, path):
            page = opened(stranger if path.least is Role.PUBLIC else operator, address)
            if path.path.endswith("/html") and page.status == 200:
                # A mail as its reader sees it: it runs nothing and loads nothing.
                assert "sandbox" in page.headers["Content-Security-Policy"], path.path
                continue
            shown += b"&lt;hostile-tag" in page.content
            wrong += [f"{page.status} {address[:150]}: {each}" for each in powers(page)]
            if page.status >= 500:
                wrong.append(f"{page.status} {address[:150]}")
            for form, button in buttons(page):
                forms.setdefault(f"{path.path} {urlsplit(form.get('action') or '').path[:60]} {button}", (page, button))
    for name, (page, button) in sorted(forms.items()):
        if "logout" in name or "Sign out" in name:
            continue
        answer = filled_in(page, button)
        wrong += [f"{answer.status} {name}: {each}" for each in powers(answer)]
        if answer.status >= 500:
            wrong.append(f"{answer.status} {name}")
    assert wrong == []
    assert shown > len(PAGES) / 5


def buttons(page: Page) -> Iterator[tuple[html.FormElement, str]]:
    """The forms of a page that change something, by the words of their buttons."""
    if "text/html" not in page.headers.get("Content-Type", "") or not page.content.strip():
        return
    for form in page.root.forms:
        if (form.get("method") or "get").lower() == "post":
            for button in form.iter("button"):
                yield form, " ".join(button.text_content().split())


def filled_in(page: Page, button: str) -> Page:
    """The answer to the form of this button with markup in each of its fields."""
    form = page.form(button)
    pairs = [(name, value if name == "csrf" else MARKUP) for name, value in form.form_values()]
    address = urljoin(page.url, form.get("action") or page.url)
    if form.get("enctype") == "multipart/form-data":
        files = [("file", (MARKUP, MARKUP.encode()))]
        return page.browser.request("POST", address, data=pairs, files=files)
    return page.browser.request("POST", address, data=pairs)
