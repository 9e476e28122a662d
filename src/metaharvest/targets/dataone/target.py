"""A DataONE member node as a target: made from the settings, checked, and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from urllib.parse import urlsplit

import jwt
from sqlalchemy import Engine, func, select

from metaharvest.config.secret_references import resolve_secret
from metaharvest.config.settings import Settings
from metaharvest.database.engine import database_errors, readers
from metaharvest.database.models import HarvestDocument
from metaharvest.errors import SettingsError, TargetError
from metaharvest.fetch.url import is_loopback
from metaharvest.model import Finding, Site
from metaharvest.targets.base import HeldRevision, Standing
from metaharvest.targets.dataone import refusals
from metaharvest.targets.dataone.listing import NodeListing, parts_of
from metaharvest.targets.dataone.node import MOST_REVISIONS, Node, Rights, quoted
from metaharvest.targets.dataone.session import DataOneSession
from metaharvest.targets.dataone.system_metadata import ObjectInfo
from metaharvest.targets.http import HttpClient
from metaharvest.targets.withdrawals import still_held
from metaharvest.text import one_line, shown_url
from metaharvest.validation.schemas import VERSIONS

_SOON = timedelta(days=7)
_MOST_TYPES = 100
"""The most types of documents from the ledger: each is a request to the node."""


class DataOneTarget:
    """The member node at [target] url. `engine` has the ledger, which names the types of documents.

    Raises SettingsError if the settings cannot be used.
    """

    def __init__(self, settings: Settings, engine: Engine | None = None) -> None:
        self._engine = engine
        self._settings = settings.target
        self._token = resolve_secret(self._settings.token, settings.folder).removeprefix("Bearer ").strip()
        if not (self._token.isascii() and self._token.isprintable()):
            raise SettingsError(f"The token in {settings.place('target', 'token')} is not one line of ASCII text.")
        self._subject, self._expires = _identity_in(self._token)
        self._rights_holder = _rights_holder(settings, self._subject)
        self._node = Node(HttpClient(settings), self._token)
        self._types = (self._settings.format_id, *VERSIONS, *settings.validation.other_document_types)
        self._listing = NodeListing(self._node, self._format_ids)
        self._session = DataOneSession(
            self._node, self._listing, self._settings, self._rights_holder, self._require_login
        )
        self._rights: Rights | None = None

    @property
    def uploads_at_once(self) -> int:
        """As the settings say."""
        return self._settings.uploads_at_once

    def describe(self) -> str:
        """The kind, and the node's host."""
        return f"the DataONE member node at {urlsplit(self._node.url).netloc}"[:100]

    @contextmanager
    def session(self, site: Site | None) -> Iterator[DataOneSession]:
        """The same for every site. One request checks, without writing, that we may create objects."""
        # A refusal may end.
        self._require_login(asks=self._rights is None or self._rights.may_create is False)
        yield self._session

    def _format_ids(self) -> Iterable[str]:
        """The formats of documents: EML, those of the settings, and the most frequent ones in the ledger."""
        types: list[str] = []
        if self._engine is not None:
            column = HarvestDocument.document_type
            of_held = select(column).where(HarvestDocument.target_revision.is_not(None)).group_by(column)
            with database_errors(self._engine), readers(self._engine)() as session:
                types = [*session.scalars(of_held.order_by(func.count().desc()).limit(_MOST_TYPES))]
        return dict.fromkeys(each for each in (*self._types, *types) if each)

    def _require_login(self, *, asks: bool = True) -> None:
        """Raises TargetError if the token has expired, or the node, which it `asks`, lets us create no objects."""
        if self._expires is not None and self._expires <= datetime.now(UTC):
            message = f"The token for {self._node.url} {_expiry(self._expires)}."
            raise TargetError(Finding("target.login", message, _NEW_TOKEN))
        if asks:
            self._rights = self._node.rights()
            if self._rights.may_create is False:
                message = f"{self._node.url} does not let the harvester create documents: {self._rights.refusal}."
                raise TargetError(Finding("target.login", message, _NO_RIGHTS))

    def check(self, site: Site | None) -> Iterator[Standing]:
        """Report if there is such a node, our identity there, and our right to write."""
        parts = urlsplit(self._node.url)
        if self._token and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            yield Standing("problem", f"The token goes to {shown_url(self._node.url)} unencrypted: {_USE_HTTPS}")
        try:
            name, trouble = self._node.capabilities()
            total = self._node.total()
            rights = self._node.rights()
        except TargetError as error:
            for sentence in error.sentences:
                yield Standing("problem", sentence)
            return
        known = f"{self._node.url} is the member node {name}"
        if trouble:
            yield Standing("problem", f"{known}, which {trouble}: nothing can be uploaded.")
        else:
            yield Standing("ok", f"{known}. It lists {total:,} objects to us.")
        yield self._known_as(datetime.now(UTC))
        yield self._allowed(rights)
        if self._engine is not None:
            try:
                yield from still_held(self._session.by_series, self._engine)
            except TargetError as error:
                yield Standing("problem", " ".join(error.sentences))

    def held(self) -> Iterator[HeldRevision]:
        """Every object of the node whose PID is a docid."""
        for each in sorted(self._listing.objects(), key=lambda info: parts_of(info.pid)):
            yield self._revision(each)

    def revisions(self, document_id: str) -> list[HeldRevision]:
        """The objects in the series of this id; without such a series, the objects whose PIDs are its docids."""
        series = chain.from_iterable(
            page for _, page in self._node.listing({"identifier": document_id}, MOST_REVISIONS)
        )
        found = {each.pid: each for each in series if parts_of(each.pid)[0] == document_id}
        if not found:
            found = {each.pid: each for each in self._listing.objects() if parts_of(each.pid)[0] == document_id}
        ascending = sorted(found.values(), key=lambda info: parts_of(info.pid))
        return [self._revision(each) for each in reversed(ascending)]

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The bytes of the object with this PID. Raises TargetError, also if they differ from the object's metadata."""
        pid = f"{document_id}.{revision}"
        meta = self._node.meta(pid)
        # The PID may be the id of a series.
        content = self._node.content(pid) if meta and meta.pid == pid else None
        if meta and content is not None and not meta.may_be(content):
            raise refusals.other_bytes(self._node.url, pid, len(content), meta.size, meta.checksum.algorithm)
        return content

    def _revision(self, info: ObjectInfo) -> HeldRevision:
        document_id, revision = parts_of(info.pid)
        url = f"{self._node.url}/object/{quoted(info.pid)}"
        return HeldRevision(document_id, revision, info.format_id, info.size, info.checksum.sha256, None, url)

    def _known_as(self, now: datetime) -> Standing:
        if self._settings.certificate is not None:
            return Standing("ok", f"The harvester shows the certificate in {self._settings.certificate}.")
        if not self._token:
            return Standing("warning", "The harvester does not log in: there is neither a token nor a certificate.")
        whose = f"The token is that of {self._subject}" if self._subject else "There is a token"
        expires = self._expires
        if expires is None:
            return Standing("ok", f"{whose}; it does not say when it expires.")
        sentence = f"{whose}; it {_expiry(expires)}."
        if expires <= now:
            return Standing("problem", f"{sentence} {_NEW_TOKEN}")
        return Standing("ok" if expires - now > _SOON else "warning", sentence)

    def _allowed(self, rights: Rights) -> Standing:
        if rights.may_create is False:
            return Standing("problem", f"We may not create documents there: {rights.refusal}. {_NO_RIGHTS}")
        owner = f"They will belong to {self._rights_holder}."
        if rights.may_create:
            return Standing("ok", f"We may create documents there. {owner}")
        return Standing("ok", f"Only the first upload shows if we may create documents there. {owner}")


_USE_HTTPS = "a listener on the way can write there as we do. Use its https:// address."
_NEW_TOKEN = "The administrator should put a new token where the target's settings say."
_NO_RIGHTS = (
    "The administrator should check token or certificate in the target's settings, and ask the people who run the "
    "repository to allow their subject to create documents."
)


def _expiry(expires: datetime) -> str:
    word = "expires" if expires > datetime.now(UTC) else "expired"
    return f"{word} on {expires:%Y-%m-%d} at {expires:%H:%M} UTC"


def _identity_in(token: str) -> tuple[str, datetime | None]:
    """Our identity on a node by a JSON web token (RFC 7519), and its end if it has one; empty for any other token.

    Only the node can verify it.
    """
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.InvalidTokenError, RecursionError):
        return "", None
    subject = next((claims[name] for name in ("userId", "sub") if isinstance(claims.get(name), str)), "")
    expires = claims.get("exp")
    moment = None
    if isinstance(expires, int | float):
        with suppress(ValueError, OverflowError, OSError):
            moment = datetime.fromtimestamp(expires, UTC)
    return one_line(subject, 800), moment


def _rights_holder(settings: Settings, subject: str) -> str:
    """The owner of the documents. Raises SettingsError if there is none."""
    target = settings.target
    texts = (target.rights_holder, target.submitter, target.format_id)
    if not all(each.isprintable() for each in (*texts, *target.read, *target.write, *target.change_permission)):
        raise SettingsError("A subject or format_id in the section of the target has an invisible character.")
    if holder := target.rights_holder or subject:
        return holder
    says = "there is no token that says who we are"
    if target.token:
        says = f"the token in {settings.place('target', 'token')} does not say whose it is (is it a JSON web token?)"
    problem = f"{settings.place('target', 'rights_holder')} is not set, and {says}"
    raise SettingsError(f"{problem}: name the subject to whom the documents belong, like CN=Name,DC=example,DC=org.")
