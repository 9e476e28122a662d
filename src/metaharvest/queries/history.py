"""The history of one document: its sites, owner, revisions and events; its standing, as one sentence says it.

The standing says why the document is, or is not, in the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import (
    CatalogueDocument,
    DocumentOwner,
    DocumentRevision,
    DocumentTransfer,
    DocumentWithdrawal,
    HarvestDocument,
    HarvestLog,
    HarvestSiteRun,
)
from metaharvest.errors import MetaharvestError, UnknownDocument
from metaharvest.ledger.entries import nights
from metaharvest.ledger.records import MISSING_SINCE
from metaharvest.model import OutcomeKind
from metaharvest.model.actions import todo
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.queries.departures import departure
from metaharvest.queries.document_search import did_you_mean
from metaharvest.queries.documents import GOOD, as_of, reasons_put_off
from metaharvest.queries.records import (
    StoredFinding,
    columns,
    docid,
    findings_under,
    parts_of_docid,
    shown_revision,
    would_be,
)
from metaharvest.queries.sites import last_names, site_names
from metaharvest.text import one_line, shown_url

_EVENT = (
    "harvest_log_id logged_at harvest_date run_id site_run_id site_schedule_id document_id revision outcome "
    "target_revision document_url size seconds message"
)
_LISTED = (
    "site_schedule_id revision outcome target_revision document_url document_type failing_since attempts datestamp "
    "title"
)
_HELD = "revision size sha256 inserted_at source_url site_schedule_id"
_TRANSFER = (
    "document_id from_site from_site_id to_site to_site_id transferred_on transferred_at transferred_by run_id message"
)
_CAME_IN = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value)
_FAILED = {
    OutcomeKind.ACCESS_ERROR.value: "could not be fetched",
    OutcomeKind.INVALID.value: "is not valid",
    OutcomeKind.UPLOAD_ERROR.value: "was not accepted",
    OutcomeKind.DEFERRED.value: "was put off to a later run",
}
_MESSAGE = 400


@frozen
class OwnerSite:
    """The site of the document in the embedded `repository`, or in another one. `registered`: the site still is."""

    repository: str
    site: str | None
    site_id: int | None
    registered: bool


@frozen(kw_only=True)
class ListingSite:
    """A site that lists the document, with its state there; `nights`: for how many it has been failing."""

    site: str | None
    site_id: int
    registered: bool
    docid: str | None
    revision: int | None
    outcome: str | None
    repository_revision: int | None
    url: str
    document_type: str
    failing_since: date | None
    nights: int | None
    attempts: int
    missing_since: date | None
    title: str | None


@frozen(kw_only=True)
class UploadedRevision:
    """A revision that went into the embedded `repository`, or into another one: then `sha256` is not known."""

    repository: str
    docid: str | None
    revision: int | None
    bytes: int | None
    sha256: str | None
    inserted_at: datetime
    url: str | None
    site: str | None
    site_id: int | None
    run_id: int | None
    harvest_date: date | None


@frozen(kw_only=True)
class TransferEvent:
    """A transfer of the document to another site. Names are those that the sites had then."""

    document_id: str
    from_site: str | None
    from_site_id: int | None
    to_site: str
    to_site_id: int
    transferred_on: date
    transferred_at: datetime
    transferred_by: str
    run_id: int | None
    message: str

    @property
    def at(self) -> datetime:
        """The time of the event."""
        return self.transferred_at

    @property
    def day(self) -> date:
        """Its day in the harvester's time zone."""
        return self.transferred_on


@frozen(kw_only=True)
class DocumentEvent:
    """The end of the document in a run. A row that was imported from another harvester has no outcome."""

    log_id: int
    logged_at: datetime
    harvest_date: date
    run_id: int
    site_run_id: int | None
    site_id: int | None
    document_id: str
    revision: int | None
    outcome: str | None
    repository_revision: int | None
    url: str | None
    bytes: int | None
    seconds: float | None
    message: str
    site: str | None
    docid: str | None
    findings: tuple[StoredFinding, ...]

    @property
    def at(self) -> datetime:
        """The time of the event."""
        return self.logged_at

    @property
    def day(self) -> date:
        """Its day in the harvester's time zone."""
        return self.harvest_date

    @property
    def was_taken(self) -> bool:
        """True unless the target only looked at the document."""
        return not would_be(self.outcome, self.message)


@frozen
class DocumentHistory:
    """Everything that is known of a document, or of one `revision` of it.

    `owners` are the sites that it belongs to; `listed` the sites that list it; `revisions` its uploads, the highest
    first (without rehearsals); `transfers` and `history` the events, in the order of time, as far as the log goes back.
    """

    document_id: str
    revision: int | None
    title: str | None
    owners: tuple[OwnerSite, ...]
    listed: tuple[ListingSite, ...]
    revisions: tuple[UploadedRevision, ...]
    transfers: tuple[TransferEvent, ...]
    history: tuple[DocumentEvent, ...]


def document_history(session: Session, name: str, today: date) -> DocumentHistory:
    """The history of the document that `name` means: a docid, or a document id. Raises MetaharvestError."""
    if known := known_document(session, name, today):
        return known
    raise UnknownDocument(
        f"No document '{one_line(name)}' is known: no site lists it, the log does not name it, and the repository "
        f"does not have it.{did_you_mean(session, name)} {todo('documents.list')} lists the documents of all sites."
    )


def known_document(session: Session, name: str, today: date) -> DocumentHistory | None:
    """As `document_history`, but None for an unknown document: the search for similar names takes long."""
    meant = _meant(session, name)
    if meant is None:
        return None
    return _Reader(session, *meant, last_names(session), site_names(session), as_of(session, today)).history()


def _meant(session: Session, name: str) -> tuple[str, int | None] | None:
    """The document, and the revision if one is named: read as a docid first, then as a document id."""
    parts = parts_of_docid(name)
    if parts and _is_known(session, *parts):
        return parts
    if _is_known(session, name):
        return name, None
    if parts and _is_known(session, parts[0]):
        raise MetaharvestError(
            f"No revision {parts[1]} of {parts[0]} is known: {todo('documents.show', document=parts[0])}."
        )
    return None


def _is_known(session: Session, document_id: str, revision: int | None = None) -> bool:
    tables: list[Any] = [HarvestDocument, HarvestLog, DocumentRevision]
    if revision is None:
        tables += [DocumentOwner, DocumentTransfer]
    for table in tables:
        query = select(table.document_id).where(*_about(table, document_id, revision)).limit(1)
        # Compared here too: MariaDB ignores spaces at the end.
        if session.scalar(query) == document_id:
            return True
    return False


def _about(table: Any, document_id: str, revision: int | None) -> list[ColumnElement[bool]]:
    """Rows about this document."""
    conditions: list[ColumnElement[bool]] = [table.document_id == document_id]
    if revision is not None:
        conditions.append(table.revision == revision)
    if table is HarvestLog:
        # Rows of transfers have no site run and no revision; rows that were imported from another harvester have one.
        conditions.append(or_(HarvestLog.site_run_id.is_not(None), HarvestLog.revision.is_not(None)))
    return conditions


@frozen
class _Reader:
    """Reads the history of one document, or of one `revision` of it. `names` and `registered` are names of sites."""

    session: Session
    document_id: str
    revision: int | None
    names: Mapping[int, str]
    registered: Mapping[int, str]
    today: date

    def history(self) -> DocumentHistory:
        events = self._events()
        listed = tuple(self._listed(events))
        return DocumentHistory(
            self.document_id,
            self.revision,
            self._title(listed),
            tuple(self._owners()),
            listed,
            tuple(self._revisions(events)),
            tuple(TransferEvent(**row._mapping) for row in self._rows(DocumentTransfer, _TRANSFER)),
            tuple(events),
        )

    def _rows(
        self, table: Any, names: str, revision: int | None = None, *also: ColumnElement[Any]
    ) -> Sequence[Row[*tuple[Any, ...]]]:
        """The rows of a table about the document, or about this revision of it."""
        [key] = table.__table__.primary_key
        query = select(*columns(table, names), *also).where(*_about(table, self.document_id, revision))
        return self.session.execute(query.order_by(key)).all()

    def _owners(self) -> Iterator[OwnerSite]:
        highest: InstrumentedAttribute[int] = DocumentRevision.revision
        embedded = select(DocumentRevision.site_schedule_id).where(DocumentRevision.document_id == self.document_id)
        other = select(DocumentOwner.site_schedule_id).where(DocumentOwner.document_id == self.document_id)
        for repository, query in (("embedded", embedded.order_by(highest.desc()).limit(1)), ("other", other)):
            found = self.session.execute(query).first()
            if found is not None:
                number = found[0]
                site = None if number is None else self.names.get(number)
                yield OwnerSite(repository, site, number, number in self.registered)

    def _listed(self, events: Sequence[DocumentEvent]) -> Iterator[ListingSite]:
        last = {(event.site_id, event.revision): event for event in events if event.outcome}
        for row in self._rows(HarvestDocument, _LISTED, self.revision, MISSING_SINCE):
            number = row.site_schedule_id
            listed = shown_revision(row.revision, row.outcome, row.datestamp)
            event = last.get((number, listed))
            is_registered = number in self.registered
            yield record_of(
                ListingSite,
                row,
                site=self.names.get(number),
                site_id=number,
                registered=is_registered,
                docid=docid(self.document_id, listed),
                revision=listed,
                repository_revision=row.target_revision if event is None or event.was_taken else None,
                url=shown_url(row.document_url),
                nights=nights(row.failing_since, self.today) if row.failing_since and is_registered else None,
            )

    def _title(self, listed: Sequence[ListingSite]) -> str | None:
        """The title that a site lists; otherwise that in the embedded target; None if it is not known."""
        catalogue = CatalogueDocument
        query = select(catalogue.document_id, catalogue.title).where(catalogue.document_id == self.document_id)
        # Compared here too: MariaDB ignores spaces at the end.
        held = [title for name, title in self.session.execute(query) if name == self.document_id]
        return next((title for title in (*(row.title for row in listed), *held) if title), None)

    def _events(self) -> list[DocumentEvent]:
        """The outcome of the document in each run that processed it, with the findings of that run.

        Rows that were imported from another harvester have no outcome, but are events.
        """
        query = (
            select(*columns(HarvestLog, _EVENT), HarvestSiteRun.site_name)
            .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == HarvestLog.site_run_id)
            .where(*_about(HarvestLog, self.document_id, self.revision))
            .order_by(HarvestLog.harvest_log_id)
        )
        rows = self.session.execute(query).all()
        stamps = {row[0]: row[1] for row in self._rows(HarvestDocument, "site_schedule_id datestamp")}
        found = findings_under(self.session, [row.harvest_log_id for row in rows])
        warnings: dict[tuple[int, int | None], list[StoredFinding]] = {}
        deferred = OutcomeKind.DEFERRED.value
        reasons = reasons_put_off(self.session, {row.site_run_id for row in rows if row.outcome == deferred})
        events: list[DocumentEvent] = []
        for row in rows:
            own = found[row.harvest_log_id]
            which = (row.site_run_id, row.revision)
            if row.outcome is None and row.site_run_id is not None:
                # Warnings about a document that passed stay with the row of the check, before the row of the outcome.
                warnings.setdefault(which, []).extend(own)
                continue
            number = shown_revision(row.revision, row.outcome, stamps.get(row.site_schedule_id))
            of_all = reasons.get(row.site_run_id, []) if row.outcome == deferred else []
            events.append(
                record_of(
                    DocumentEvent,
                    row,
                    log_id=row.harvest_log_id,
                    site_id=row.site_schedule_id,
                    revision=number,
                    repository_revision=None if would_be(row.outcome, row.message) else row.target_revision,
                    url=row.document_url,
                    bytes=row.size,
                    site=row.site_name or self.names.get(row.site_schedule_id or 0),
                    docid=docid(self.document_id, number),
                    findings=tuple([*own, *warnings.pop(which, ())] or of_all),
                )
            )
        return events

    def _revisions(self, events: Sequence[DocumentEvent]) -> list[UploadedRevision]:
        """The uploads to a target: the revisions in the embedded one, and the log about others; the highest first."""
        came_in = {event.revision: event for event in events if event.was_taken and event.outcome in _CAME_IN}
        found: dict[int, UploadedRevision] = {}
        for row in self._rows(DocumentRevision, _HELD, self.revision):
            event = came_in.pop(row.revision, None)
            found[row.revision] = record_of(
                UploadedRevision,
                row,
                repository="embedded",
                docid=docid(self.document_id, row.revision),
                bytes=row.size,
                url=row.source_url,
                site=self.names.get(row.site_schedule_id or 0),
                site_id=row.site_schedule_id,
                run_id=event.run_id if event else None,
                harvest_date=event.harvest_date if event else None,
            )
        for number, event in came_in.items():
            found[number or 0] = record_of(
                UploadedRevision, event, repository="other", sha256=None, inserted_at=event.logged_at
            )
        return [found[number] for number in sorted(found, reverse=True)]


# -- the standing


@frozen
class Standing:
    """The sentence; `is_held`: the target has a revision; `is_well`: it is the one that its site lists.

    `findings` are from its last check, errors first. `is_withdrawn`: no harvest brings it back.
    """

    sentence: str
    is_held: bool
    is_well: bool
    is_withdrawn: bool
    findings: tuple[StoredFinding, ...]


def document_standing(session: Session, known: DocumentHistory) -> Standing:
    """The standing of the document with this history."""
    gone = departure(session, known.document_id)
    withdrawal = session.get(DocumentWithdrawal, known.document_id)
    is_withdrawn = withdrawal is not None and withdrawal.document_id == known.document_id
    return standing_of(known, gone, is_withdrawn)


def standing_of(known: DocumentHistory, gone: str, is_withdrawn: bool) -> Standing:
    """The standing from the history alone; `gone` is the sentence about the deletion, empty if there was none. Pure."""
    row = _main(known)
    findings = _last_findings(known.history, row)
    if gone or is_withdrawn:
        return Standing(f"It is not in the target. {gone}".rstrip(), False, False, is_withdrawn, findings)
    revisions = [each.revision for each in known.revisions if each.repository == "embedded"]
    revisions += [each.repository_revision for each in known.listed]
    held = max((each for each in revisions if each is not None), default=None)
    is_well = held is not None and row is not None and row.outcome in GOOD and not row.missing_since
    return Standing(_sentence(held, row, findings), held is not None, is_well, False, findings)


def _main(known: DocumentHistory) -> ListingSite | None:
    """The entry that decides: of a registered site, of the owner before others, the highest revision."""
    owners = {owner.site_id for owner in known.owners}
    rows = [row for row in known.listed if row.registered]
    return max(rows, key=lambda row: (row.site_id in owners, row.revision or 0), default=None)


def _last_findings(events: Sequence[DocumentEvent], row: ListingSite | None) -> tuple[StoredFinding, ...]:
    """The findings of the last event of this entry."""
    if row is None:
        return ()
    own = [each for each in events if each.site_id == row.site_id and each.revision == row.revision and each.outcome]
    found = own[-1].findings if own and (own[-1].outcome == row.outcome or row.outcome in GOOD) else ()
    return tuple(sorted(found, key=lambda each: each.level != "error"))


def _sentence(held: int | None, row: ListingSite | None, findings: Sequence[StoredFinding]) -> str:
    begins = "It is not in the target" if held is None else f"Revision {held} is in the target"
    if row is None:
        return f"{begins}: no site lists it." if held is None else f"{begins}, but no site lists it any longer."
    site = f"the site {row.site}"
    listed = "it" if row.revision is None else f"revision {row.revision}"
    if row.outcome in _FAILED:
        joint = ":" if held is None else ", but"
        its = "it" if held is None and row.revision is None else f"{listed} of {site}"
        since = f" since {row.failing_since}" if row.failing_since else ""
        return f"{begins}{joint} {its} {_FAILED[row.outcome]}{since}.{_reason(findings)}"
    if row.missing_since:
        return f"{begins}. A full list of {site} has not named it since {row.missing_since}."
    if row.outcome in GOOD and held is None:
        return f"{begins}: the harvests of {site} are rehearsals. They found no error in {listed}."
    if row.outcome in GOOD:
        return f"{begins}, as {site} lists it."
    if row.outcome == OutcomeKind.FILTERED.value:
        return f"{begins}. The site {row.site} lists {listed}, which is left out.{_reason(findings)}"
    if row.outcome == OutcomeKind.STALE.value:
        return f"{begins}. The list of {site} is older: it names {listed}."
    if row.outcome == OutcomeKind.DELETED.value:
        return f"{begins}. The site {row.site} says that it was deleted there."
    return f"{begins}. The site {row.site} lists {listed}; no harvest has decided about it yet."


def _reason(findings: Sequence[StoredFinding]) -> str:
    return f" {one_line(findings[0].message, _MESSAGE)}" if findings else ""
