"""The console behind a real server on loopback, and a browser without JavaScript that is signed in as a role."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests
import uvicorn
from lxml import html

from metaharvest.accounts import users
from metaharvest.model.kinds import Role
from metaharvest.services import accounts
from metaharvest.services import harvester as services
from metaharvest.web.api.dispatch import api_application
from metaharvest.web.application import application
from metaharvest.web.console.dispatch import console_application
from metaharvest.web.pages.routes import Pages
from metaharvest.web.provider.provider import Provider
from metaharvest.web.readers import readers_of
from metaharvest.web.server import describe, listen
from support.harvester import Harvester
from support.provider import opened_with

File = tuple[str, bytes]
"""The name and the content of a file in a form."""


@dataclass
class Page:
    """An answer to the browser, with its forms."""

    browser: Browser
    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def root(self) -> html.HtmlElement:
        return html.fromstring(self.content.decode(), parser=html.HTMLParser(encoding="utf-8"))

    @property
    def text(self) -> str:
        """The words of the page, with single blanks."""
        return " ".join(self.root.text_content().split())

    @property
    def title(self) -> str:
        return " ".join((self.root.findtext(".//h1") or "").split())

    @property
    def path(self) -> str:
        parts = urlsplit(self.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")

    @property
    def notice(self) -> str:
        """The sentence of the redirect that led here."""
        return "".join(each.text_content() for each in self.root.find_class("notice")).strip()

    def links(self) -> dict[str, str]:
        """The addresses of all links, by their words."""
        return {" ".join(each.text_content().split()): each.get("href") for each in self.root.iter("a")}

    def follow(self, words: str) -> Page:
        """Open the link with these words."""
        return self.browser.open(urljoin(self.url, self.links()[words]))

    def table(self, caption: str = "") -> list[list[str]]:
        """The words in the cells of the table with this caption (or the first one), without its headings."""
        for table in self.root.iter("table"):
            if not caption or (table.findtext("caption") or "").strip() == caption:
                rows = table.iterfind(".//tbody/tr")
                return [[" ".join(cell.text_content().split()) for cell in row] for row in rows]
        raise AssertionError(f"no table {caption!r} in: {self.text}")

    def form(self, button: str) -> html.FormElement:
        """The form with a button of these words."""
        buttons = []
        for form in self.root.forms:
            for each in form.iter("button"):
                buttons.append(" ".join(each.text_content().split()))
                if buttons[-1] == button:
                    return form
        raise AssertionError(f"no button {button!r}, but: {buttons}")

    def submit(
        self, button: str, values: Mapping[str, str | list[str]] | None = None, files: Mapping[str, File] | None = None
    ) -> Page:
        """Press the button of a form with these values in its fields; the other fields keep the values of the page.

        A list sets boxes of one name. Fields that the form does not have are an error.
        """
        form, given = self.form(button), dict(values or {})
        unknown = {*given, *(files or {})} - set(form.fields)
        assert not unknown, f"the form has no {unknown}, but {sorted(form.fields)}"
        pairs = [(name, value) for name, value in form.form_values() if name not in given]
        for name, value in given.items():
            pairs += [(name, each) for each in ([value] if isinstance(value, str) else value)]
        pressed = next(each for each in form.iter("button") if " ".join(each.text_content().split()) == button)
        if pressed.get("name"):
            pairs.append((pressed.get("name"), pressed.get("value", "")))
        address = urljoin(self.url, form.get("action") or self.url)
        if (form.get("method") or "get").lower() == "get":
            return self.browser.request("GET", address.partition("?")[0], params=pairs)
        is_multipart = form.get("enctype") == "multipart/form-data"
        sent = [(name, file) for name, file in (files or {}).items()]
        if is_multipart and not sent:
            sent = [("", ("", b""))]
        return self.browser.request("POST", address, data=pairs, files=sent if is_multipart else None)


class Browser:
    """A browser without JavaScript, with its cookies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()

    def open(self, path: str) -> Page:
        return self.request("GET", urljoin(self.url, path))

    def request(self, method: str, url: str, headers: Mapping[str, str] | None = None, **options: Any) -> Page:
        """A request like that of a form on a page of the console; redirects are followed."""
        sent = {**({"Origin": self.url} if method == "POST" else {}), **(headers or {})}
        answer = self.session.request(method, urljoin(self.url, url), headers=sent, timeout=30, **options)
        return Page(self, answer.url, answer.status_code, answer.headers, answer.content)


class Served:
    """The console on loopback."""

    def __init__(self, url: str, harvester: services.Harvester) -> None:
        self.url = url
        self.harvester = harvester

    def visitor(self) -> Browser:
        """A browser that is not signed in."""
        return Browser(self.url)

    def signed_in(self, role: str) -> Browser:
        """The browser of a user with this role; a user of the role is made if there is none, past the audit."""
        address = f"{role}@example.org"
        if address not in [user.address for user in accounts.list_users(self.harvester)]:
            granted, now = Role[role.upper()], self.harvester.now()
            with self.harvester.writing() as session:
                users.add_user(session, address, f"The {role}", granted, now)
        return self.signed_in_as(address)

    def signed_in_as(self, address: str) -> Browser:
        """The browser of the person with this address: a user, or a contact of a site."""
        browser = Browser(self.url)
        token = accounts.new_link(self.harvester, address)
        page = browser.open(f"/console/link/{token}").submit("Sign in")
        assert page.status == 200, page.text
        return browser


@contextmanager
def served_console(harvester: Harvester, **options: object) -> Iterator[Served]:
    """The console of this installation behind a real server, in a thread; `options` replace settings of [web]."""
    with opened_with(harvester, options) as opened, listen("127.0.0.1", 0) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        public, _ = describe(opened, url)
        provider = Provider(opened, public, opened.settings.web.lists_at_once)
        readers = readers_of(opened, provider)
        answering = application(
            provider,
            Pages(opened, provider, readers),
            console_application(opened, url),
            api_application(opened, readers),
        )
        server = uvicorn.Server(uvicorn.Config(answering, log_config=None, lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield Served(url, opened)
        finally:
            server.should_exit = True
            thread.join(30)
