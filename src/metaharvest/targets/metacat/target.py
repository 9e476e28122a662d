"""Metacat by its old interface: forms that are posted to a servlet, with an LDAP login for each site.

Metacat 1 and 2 have it; Metacat 3 has only the DataONE interface. Its peculiarities, each of them seen:
- `<success>` means that something was done. Anything else is a failure, whatever the status.
- It refuses an insert if the docid was ever used, also for a deleted document.
- The request for a document's revision reads `_` and `%` as wildcards, and a name with two points as a docid.
- It lists the revisions of deleted documents as well: this target counts them as held.
- A second deletion of a document erases its last revision: so it is checked before, and deleted once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from requests.cookies import RequestsCookieJar

from metaharvest.config.secret_references import resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError, TargetError
from metaharvest.fetch.url import is_loopback
from metaharvest.model import Finding, Site
from metaharvest.model.actions import Remedy, todo
from metaharvest.targets.base import HeldRevision, Standing
from metaharvest.targets.http import HttpClient
from metaharvest.targets.metacat import replies
from metaharvest.targets.metacat.questions import Questions
from metaharvest.targets.metacat.session import Login, MetacatSession
from metaharvest.text import one_line, shown_url


class MetacatTarget:
    """A Metacat, as [target] describes it. Raises SettingsError if the settings are unusable."""

    def __init__(self, settings: Settings) -> None:
        target = settings.target
        if bool(target.username) != bool(target.password):
            set_one, other = ("username", "password") if target.username else ("password", "username")
            raise SettingsError(f"{settings.place('target', set_one)} is set, but {other} is not.")
        self.uploads_at_once = target.uploads_at_once
        self._public = "public" in target.read
        self._folder = settings.folder
        self._client = HttpClient(settings)
        password = resolve_secret(target.password, settings.folder)
        self._own = Login(target.username, password, "username and password in the target's settings")

    def describe(self) -> str:
        """The description for people."""
        return one_line(f"Metacat at {shown_url(self._client.url)}", 100)

    @contextmanager
    def session(self, site: Site | None) -> Iterator[MetacatSession]:
        """Logged in as the site, or with the target's own login if the site has none; logged out at the end."""
        session = MetacatSession(self._client, self._login_of(site), self._public, self.uploads_at_once)
        session.log_in()
        try:
            yield session
        finally:
            session.close()

    def check(self, site: Site | None) -> Iterator[Standing]:
        """Check that it answers, and our identity there; only an upload would show our right to write."""
        where, questions = shown_url(self._client.url), Questions(self._client, RequestsCookieJar())
        try:
            version = questions.version()
            yield Standing("ok", f"Metacat {version.removeprefix('Metacat ')}".rstrip() + f" answers at {where}.")
            yield from self._check_login(site)
        except TargetError as error:
            yield Standing("problem", " ".join(error.sentences))
        parts = urlsplit(self._client.url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            yield Standing("warning", f"Passwords go to {where} unencrypted: use its https:// address.")

    def _check_login(self, site: Site | None) -> Iterator[Standing]:
        if site is None and not self._own.username:
            yield Standing("ok", "Nobody was logged in: the settings have no login, so that each site needs its own.")
            return
        with self.session(site) as session:
            whom, known_as = session.login.username, session.questions.username()
        if known_as in ("", whom):
            yield Standing("ok", f"It lets {whom} in.")
        else:
            yield Standing(
                "problem", f"It let {whom} in, but then took us for '{known_as}': are cookies lost on the way?"
            )

    def held(self) -> Iterator[HeldRevision]:
        """Raises TargetError: this interface lists data files and deleted documents as well, and does not mark them."""
        remedy = "The same Metacat by its DataONE interface lists what it holds: make that the source, a target of the "
        remedy += f'kind "dataone" with the url {replies.dataone_url(self._client.url)}.'
        message = "Metacat's old interface cannot list what it holds; its DataONE interface can."
        raise TargetError(Finding("target.unsupported", message, remedy))

    def revisions(self, document_id: str) -> list[HeldRevision]:
        """The revisions of one document, also of a deleted one, the highest first."""
        with self._questions() as questions:
            return [HeldRevision(document_id, revision) for revision in questions.revisions(document_id)]

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision, read with the target's own login if there is one."""
        with self._questions() as questions:
            return questions.content(document_id, revision)

    @contextmanager
    def _questions(self) -> Iterator[Questions]:
        """For requests, logged in if the settings have a login; public documents need none."""
        if not self._own.username:
            yield Questions(self._client, RequestsCookieJar())
            return
        with self.session(None) as session:
            yield session.questions

    def _login_of(self, site: Site | None) -> Login:
        if site is None or not (site.ldap_name or site.ldap_password):
            if self._own.username:
                return self._own
            message = "Metacat takes documents only with a login, and the settings of the target have none."
            remedy: Remedy | str = "The administrator sets username and password in the target's settings."
            if site is not None:
                message = (
                    "Metacat takes documents only with a login; the site has none, nor have the settings of the target."
                )
                remedy = Remedy(
                    "The administrator gives the site one ({}), or all sites by username and password in [target].",
                    todo("sites.set_login", name=site.name),
                )
            raise TargetError(Finding("target.login", message, remedy))
        if not (site.ldap_name and site.ldap_password):
            has, lacks, edit = ("a login name", "password", "sites.set_password")
            if not site.ldap_name:
                has, lacks, edit = ("a password", "login name", "sites.set_login_name")
            message = f"The site has {has} for the Metacat, but no {lacks}."
            completed = todo(edit, name=site.name)
            remedy = Remedy("The administrator completes it ({}), or takes both away with `none`.", completed)
            raise TargetError(Finding("target.login", message, remedy))
        try:
            password = resolve_secret(site.ldap_password, self._folder)
        except SettingsError as error:
            remedy = Remedy("The administrator corrects it ({}).", todo("sites.set_password", name=site.name))
            raise TargetError(*(Finding("target.login", problem, remedy) for problem in error.problems)) from error
        origin = Remedy("ldapdn and ldappwd of the site ({})", todo("sites.edit", name=site.name))
        return Login(site.ldap_name, password, origin)
