"""A visit: one request of a person to a page of the console."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from tempfile import SpooledTemporaryFile
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import Headers, QueryParams
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from metaharvest.errors import DatabaseError, MetaharvestError, RequestError, ScheduleError
from metaharvest.model.actions import Todo
from metaharvest.model.kinds import Role
from metaharvest.model.requests import Actor
from metaharvest.model.values import frozen
from metaharvest.reports.phrasing import without_commands
from metaharvest.services.accounts import Visitor
from metaharvest.services.harvester import Harvester
from metaharvest.services.rehearsals import Rehearsals
from metaharvest.text import one_line, whole_number
from metaharvest.web.console.actions import Offer, offer, offers
from metaharvest.web.console.cookies import Cookies
from metaharvest.web.console.defence import csrf_token, local_path, path_of
from metaharvest.web.console.forms import Form
from metaharvest.web.console.openid import OpenIdProvider
from metaharvest.web.console.rendering import moment_in, templates
from metaharvest.web.console.rights import Page
from metaharvest.web.turns import RateLimit

_IN_MEMORY, _PART = 1_048_576, 65_536
"""Bytes of a download: the most without a file on a disk, and the bytes that are sent at a time."""


class NotFound(MetaharvestError):
    """There is nothing at this address; the text says what is missing."""


@contextmanager
def known(missing: str) -> Iterator[None]:
    """A block that reads one thing: if it is not known, it raises NotFound with this sentence."""
    try:
        yield
    except DatabaseError:
        raise
    except MetaharvestError as error:
        raise NotFound(missing) from error


@frozen
class NamedSite:
    """The site that the path of a page names."""

    site_id: int
    name: str


@frozen
class Console:
    """The common part of all visits. `url` is the address of the server, `navigation` the menu of a visitor.

    `may_open` says if a visitor may open a path by a method. `root` is the folder that a server in front adds to paths.
    `later` does work for which no visitor waits, `rehearsals` are of registered sites.
    """

    harvester: Harvester
    url: str
    root: str
    is_https: bool
    navigation: Callable[[Visitor], Sequence[tuple[str, str]]]
    may_open: Callable[[Visitor, str, str], bool]
    limit: RateLimit
    later: Executor
    rehearsals: Rehearsals = field(default_factory=Rehearsals)
    openid: OpenIdProvider | None = None


@dataclass
class Visit:
    """The input of a page, and the ways in which it can end.

    `path` has the parts of the path that the page names in braces, `query` the arguments behind it. `notice` is the
    sentence of the redirect that led here. `client` is the address of the visitor, `peer` the address of the other
    end of the connection, such as a server in front. `error` is the mistake of the person: the page shows it.
    """

    console: Console
    page: Page
    visitor: Visitor
    cookies: Cookies
    path: Mapping[str, str]
    query: QueryParams
    headers: Headers
    client: str
    peer: str = ""
    form: Form = field(default_factory=Form)
    named_site: NamedSite | None = None
    request_path: str = "/console/"
    error: MetaharvestError | None = None

    @cached_property
    def harvester(self) -> Harvester:
        """The installation; the audit names the visitor, whose name is read once."""
        actor = Actor(self.visitor.address, "proxy" if self.visitor.by_proxy else "console")
        return self.console.harvester.acting(actor)

    def may_open(self, path: str, *parts: object, method: str = "GET") -> bool:
        """True if there is a page at this path, and the visitor may open it."""
        return self.console.may_open(self.visitor, method, path_of(path, *parts))

    def offers(self, text: str) -> Sequence[Offer]:
        """The parts of a remedy: its words, and its actions as links and buttons; no commands for site contacts."""
        words = text if self.visitor.role > Role.CONTACT else without_commands(text)
        return list(offers(words, self.may_open))

    def offer(self, action: Todo) -> Offer:
        """The link or the button of an action."""
        return offer(action, self.may_open)

    @property
    def site(self) -> NamedSite:
        """The site that the path names; the visitor may see it."""
        assert self.named_site is not None
        return self.named_site

    @property
    def after(self) -> int | None:
        """The number of the last row of the page before; None for the first page."""
        return whole_number(self.query.get("after", ""))

    def number(self, name: str, missing: str) -> int:
        """The number in the path, in the place of this name. Raises NotFound with this sentence."""
        number = whole_number(self.path[name])
        if number is None:
            raise NotFound(missing)
        return number

    @cached_property
    def csrf(self) -> str:
        """The token for the forms of this page; a visitor without a session gets a cookie for it."""
        return csrf_token(self.cookies.secret())

    def link(self, path: str, *parts: object, **query: object) -> str:
        """The address of a page: parts of its path and arguments may have any characters; None leaves one out."""
        pairs = [(name, value) for name, value in query.items() if value is not None and value != ""]
        address = self.console.root + path_of(path, *parts)
        return f"{address}?{urlencode(pairs, doseq=True)}" if pairs else address

    def moment(self, moment: datetime | None) -> str:
        """A moment in the time zone of the installation, with its zone."""
        return moment_in(self.harvester.settings.harvester.zone, moment) if moment else "–"

    def mistakes(self, *kinds: type[MetaharvestError]) -> _Mistakes:
        """Keep an error that the person can correct, of these kinds, for the page that comes next.

        Without `kinds`: RequestError and ScheduleError. An error of the database is never one.
        """
        return _Mistakes(self, kinds or (RequestError, ScheduleError))

    def render(self, template: str, status: int | None = None, **values: Any) -> Response:
        """The page of this template; its status is 422 if it shows a mistake.

        A template also has `visit`, `link`, `moment`, `given`, the form that was sent, `error`, the text of the
        mistake, and `wrong`: the sentences about wrong fields, by name.
        """
        error = self.error
        shown = {
            "notice": self.cookies.notice(),
            "navigation": self.console.navigation(self.visitor),
            "installation": one_line(self.harvester.settings.harvester.name),
            "given": self.form,
            "error": error.in_form or "\n".join(error.sentences) if error else "",
            "wrong": error.fields if error else {},
            **values,
        }
        return self._html(template, status or (422 if error else 200), shown)

    def render_fragment(self, template: str, **values: Any) -> Response:
        """A part of a page, for its polling."""
        return self._html(template, 200, values)

    def redirect(self, path: str, *parts: object, notice: str = "", **query: object) -> Response:
        """After a POST: send the browser to a page, which shows the notice, a sentence."""
        if notice:
            self.cookies.set_notice(one_line(notice, 1000))
        return RedirectResponse(self.link(path, *parts, **query), 303)

    def go_back(self, to: str, notice: str = "") -> Response:
        """After a POST: send the browser to the page that a form names, if it is one of the console."""
        if notice:
            self.cookies.set_notice(one_line(notice, 1000))
        return RedirectResponse(self.console.root + local_path(to), 303)

    def not_found(self, sentence: str) -> Response:
        """A page that says what is not there."""
        return self.message(404, sentence)

    def message(
        self, status: int, *sentences: str, page: str = "", words: str = "Open the page of the form"
    ) -> Response:
        """A page of sentences, and a link to `page`; a visitor whose session has ended signs in on the way there."""
        needs_sign_in = status == 403 and self.visitor.role is Role.PUBLIC and self.page.least > Role.PUBLIC
        return self.render(
            "message.html", status, sentences=sentences, needs_sign_in=needs_sign_in, page=page, words=words
        )

    def download(self, content: bytes | str, name: str, media_type: str) -> Response:
        """A file to keep, never shown in the browser; `name` is in letters, digits, dots and hyphens."""
        return Response(
            content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )

    def send_table(self, chunks: Generator[str, None, None], name: str) -> Response:
        """A table in CSV to keep. All of it is read before it is sent: a slow client holds no database session."""
        with ExitStack() as stack:
            file = stack.enter_context(SpooledTemporaryFile(_IN_MEMORY, prefix="metaharvest-"))
            stack.enter_context(closing(chunks))
            for chunk in chunks:
                file.write(chunk.encode("utf-8", "replace"))
            headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(file.tell())}
            file.seek(0)
            stack.pop_all()
        return _Download(file, headers)

    def _html(self, template: str, status: int, values: Mapping[str, Any]) -> Response:
        always = {"visit": self, "link": self.link, "moment": self.moment}
        return HTMLResponse(templates().get_template(template).render({**always, **values}), status)


class _Mistakes:
    """The block in which a person's mistake becomes the error of the visit, and ends."""

    def __init__(self, visit: Visit, kinds: tuple[type[MetaharvestError], ...]) -> None:
        self._visit = visit
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if not isinstance(error, self._kinds) or isinstance(error, DatabaseError):
            return False
        self._visit.error = error
        return True


class _Download(StreamingResponse):
    """The content of a temporary file, which is closed when it was sent, and when the client has gone."""

    def __init__(self, file: SpooledTemporaryFile[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(iter(partial(file.read, _PART), b""), headers=headers, media_type="text/csv; charset=utf-8")
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)
