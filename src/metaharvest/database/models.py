"""The tables. They keep the names of the original Harvester, in lower case, so that unquoted SQL works.

Dates are dates in the configured time zone; timestamps are UTC. Identifiers compare exactly (binary collation).
harvest_site_schedule may hold any value, as other people change it with SQL of their own: it is read only through
`metaharvest.sites.registry`, which checks it.
"""

# No `from __future__ import annotations`: SQLAlchemy would compile each annotation, 10 ms in each command.

from datetime import date, datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint, false, true
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger, String

from metaharvest.database.base import BYTES, DOUBLE, KEY, TABLE, TEXT, TEXTS, Identifier
from metaharvest.database.base import Base as Base


class HarvestSiteSchedule(Base):
    """A row for each registered site. `public`: its documents are published."""

    site_schedule_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    source_kind: Mapped[str] = mapped_column(String(32), default="harvest-list", server_default="harvest-list")
    documentlisturl: Mapped[str] = mapped_column(TEXT)
    ldapdn: Mapped[str | None] = mapped_column(String(255))
    ldappwd: Mapped[str | None] = mapped_column(String(255))
    datenextharvest: Mapped[date | None]
    datelastharvest: Mapped[date | None]
    updatefrequency: Mapped[int | None] = mapped_column(default=1, server_default="1")
    unit: Mapped[str | None] = mapped_column(String(50), default="days", server_default="days")
    day_of_month: Mapped[int | None]
    contact_email: Mapped[str | None] = mapped_column(TEXT)
    notify: Mapped[str] = mapped_column(String(16), default="always", server_default="always")
    enabled: Mapped[bool] = mapped_column(default=True, server_default=true())
    public: Mapped[bool] = mapped_column(default=True, server_default=true())
    options: Mapped[str | None] = mapped_column(TEXT)
    list_etag: Mapped[str | None] = mapped_column(TEXT)
    list_last_modified: Mapped[str | None] = mapped_column(String(100))
    list_sha256: Mapped[str | None] = mapped_column(String(64))


class HarvestRun(Base):
    """A row for each execution of the harvester. `heartbeat_at` is its last sign of life: a dead run ends then.

    `distributed`: workers harvest its sites, and `host` and `pid` name the coordinator that opened it.
    `due_sites_of` is the day whose due sites have jobs in such a run; null: only requested sites have jobs.
    """

    run_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    harvest_date: Mapped[date]
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    status: Mapped[str] = mapped_column(String(16), index=True)
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    heartbeat_at: Mapped[datetime]
    distributed: Mapped[bool] = mapped_column(default=False, server_default=false())
    due_sites_of: Mapped[date | None]


IS_HARVEST = HarvestRun.status != "imported"
"""True for the runs of this harvester, false for one that holds the log of another harvester."""


class HarvestSiteRun(Base):
    """A row for each site in a run. The outcomes add up to `listed`; if they do not, the status is `incomplete`.

    The seconds are sums over its documents, which are processed side by side: together they may be more than the
    harvest took. `rehearsal`: the site had no target, so that nothing was uploaded and nothing of the site has changed.
    """

    __table_args__ = (
        Index("ix_harvest_site_run_site", "site_schedule_id", "site_run_id"),
        Index("ix_harvest_site_run_site_status", "site_schedule_id", "status", "site_run_id"),
        TABLE,
    )

    site_run_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("harvest_run.run_id"), index=True)
    site_schedule_id: Mapped[int] = mapped_column(KEY)
    site_name: Mapped[str] = mapped_column(String(100), index=True)
    kind: Mapped[str] = mapped_column(String(16))
    rehearsal: Mapped[bool] = mapped_column(default=False, server_default=false())
    status: Mapped[str] = mapped_column(String(16), index=True)
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    failure_reason: Mapped[str | None] = mapped_column(TEXT)
    list_url: Mapped[str | None] = mapped_column(TEXT)
    listed: Mapped[int] = mapped_column(BigInteger, default=0)
    inserted: Mapped[int] = mapped_column(BigInteger, default=0)
    updated: Mapped[int] = mapped_column(BigInteger, default=0)
    unchanged: Mapped[int] = mapped_column(BigInteger, default=0)
    deleted: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    filtered: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    stale: Mapped[int] = mapped_column(BigInteger, default=0)
    duplicate: Mapped[int] = mapped_column(BigInteger, default=0)
    deferred: Mapped[int] = mapped_column(BigInteger, default=0)
    access_error: Mapped[int] = mapped_column(BigInteger, default=0)
    invalid: Mapped[int] = mapped_column(BigInteger, default=0)
    upload_error: Mapped[int] = mapped_column(BigInteger, default=0)
    warnings: Mapped[int] = mapped_column(BigInteger, default=0)
    next_harvest: Mapped[date | None]
    server_seconds: Mapped[float | None] = mapped_column(DOUBLE)
    waiting_seconds: Mapped[float | None] = mapped_column(DOUBLE)
    checking_seconds: Mapped[float | None] = mapped_column(DOUBLE)
    storing_seconds: Mapped[float | None] = mapped_column(DOUBLE)


IS_REAL = HarvestSiteRun.rehearsal.is_(False)
"""True if a site run is no rehearsal: only such site runs say how a site stands."""

IS_FULL = HarvestSiteRun.kind != "retry"
"""True for a harvest of a site's list, false for a retry of its failing documents."""


class SiteTotals(Base):
    """The totals of a site over a span, the days of one week within one month, from `first_day` on.

    They are written at the end of each run, so that figures of a year need not read each site run. Retries count for
    documents only, rehearsals not at all. `failing` and `last_success` are from the last harvest that did not fail
    as a whole; null if there was none. `went_well` counts the harvests that succeeded without errors.
    """

    __table_args__ = (UniqueConstraint("first_day", "site_schedule_id"), TABLE)

    site_totals_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    first_day: Mapped[date]
    site_schedule_id: Mapped[int] = mapped_column(KEY)
    runs: Mapped[int] = mapped_column(BigInteger)
    harvests: Mapped[int] = mapped_column(BigInteger)
    failed_harvests: Mapped[int] = mapped_column(BigInteger)
    went_well: Mapped[int] = mapped_column(BigInteger)
    inserted: Mapped[int] = mapped_column(BigInteger)
    updated: Mapped[int] = mapped_column(BigInteger)
    deleted: Mapped[int] = mapped_column(BigInteger)
    bytes: Mapped[int] = mapped_column(BigInteger)
    seconds: Mapped[float] = mapped_column(DOUBLE)
    failing: Mapped[int | None] = mapped_column(BigInteger)
    last_success: Mapped[date | None]


class HarvestOperation(Base):
    """The operation codes: the meaning and the level of each."""

    __table_args__ = ({**TABLE, "sqlite_autoincrement": False},)

    harvest_operation_code: Mapped[str] = mapped_column(String(64), primary_key=True)
    explanation: Mapped[str] = mapped_column(String(255))
    level: Mapped[str] = mapped_column(String(16))


class HarvestLog(Base):
    """A row for each event. `outcome` is set only on the one row with the outcome of a document."""

    __table_args__ = (
        Index("ix_harvest_log_site_run_document", "site_run_id", "document_id"),
        Index("ix_harvest_log_run", "run_id", "site_run_id"),
        Index("ix_harvest_log_document", "document_id"),
        TABLE,
    )

    harvest_log_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    harvest_date: Mapped[date] = mapped_column(index=True)
    logged_at: Mapped[datetime]
    status: Mapped[int]
    message: Mapped[str] = mapped_column(TEXT)
    harvest_operation_code: Mapped[str] = mapped_column(ForeignKey("harvest_operation.harvest_operation_code"))
    site_schedule_id: Mapped[int | None] = mapped_column(KEY)
    site_run_id: Mapped[int | None] = mapped_column(ForeignKey("harvest_site_run.site_run_id"))
    run_id: Mapped[int] = mapped_column(ForeignKey("harvest_run.run_id"))
    document_id: Mapped[str | None] = mapped_column(Identifier)
    revision: Mapped[int | None] = mapped_column(BigInteger)
    document_url: Mapped[str | None] = mapped_column(TEXT)
    outcome: Mapped[str | None] = mapped_column(String(16))
    target_revision: Mapped[int | None] = mapped_column(BigInteger)
    seconds: Mapped[float | None] = mapped_column(DOUBLE)
    size: Mapped[int | None] = mapped_column(BigInteger)


class HarvestDetailLog(Base):
    """A row for each finding, warnings included. scope, identifier and revision are null if a source has none."""

    detail_log_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    harvest_log_id: Mapped[int] = mapped_column(ForeignKey("harvest_log.harvest_log_id"), index=True)
    level: Mapped[str] = mapped_column(String(16))
    scope: Mapped[str | None] = mapped_column(TEXT)
    identifier: Mapped[int | None] = mapped_column(BigInteger)
    revision: Mapped[int | None] = mapped_column(BigInteger)
    document_id: Mapped[str | None] = mapped_column(TEXT)
    document_url: Mapped[str | None] = mapped_column(TEXT)
    document_type: Mapped[str | None] = mapped_column(TEXT)
    error_message: Mapped[str] = mapped_column(TEXT)
    rule: Mapped[str] = mapped_column(String(64), index=True)
    line_number: Mapped[int | None] = mapped_column(BigInteger)
    column_number: Mapped[int | None] = mapped_column(BigInteger)
    xpath: Mapped[str | None] = mapped_column(TEXT)
    excerpt: Mapped[str | None] = mapped_column(TEXT)
    remedy: Mapped[str | None] = mapped_column(TEXT)
    fingerprint: Mapped[str | None] = mapped_column(String(32))


class SiteProblem(Base):
    """The findings of a site over the nights: a row for each fingerprint (document id, rule, place).

    `state` is open, fixed or gone. Fixed: the document (or the list) was checked again without this finding. Gone: the
    document is no longer listed, or fails in another way before the check. `nights` counts the harvests in which it was
    open. A log row without a document is about the list, or the site.
    """

    __table_args__ = (
        UniqueConstraint("site_schedule_id", "fingerprint", name="uq_site_problem"),
        Index("ix_site_problem_state", "site_schedule_id", "state"),
        Index("ix_site_problem_rule", "state", "rule", "site_schedule_id"),
        Index("ix_site_problem_ended_on", "ended_on"),
        TABLE,
    )

    site_problem_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    site_schedule_id: Mapped[int] = mapped_column(KEY)
    fingerprint: Mapped[str] = mapped_column(String(32))
    document_id: Mapped[str | None] = mapped_column(Identifier)
    rule: Mapped[str] = mapped_column(String(64))
    needs_attention: Mapped[bool]
    detail_log_id: Mapped[int] = mapped_column(KEY)
    state: Mapped[str] = mapped_column(String(16))
    first_seen: Mapped[date]
    first_site_run: Mapped[int] = mapped_column(KEY)
    last_seen: Mapped[date]
    last_site_run: Mapped[int] = mapped_column(KEY)
    nights: Mapped[int]
    ended_on: Mapped[date | None]
    ended_site_run: Mapped[int | None] = mapped_column(KEY, index=True)


class HarvestDocument(Base):
    """The ledger: the state of each document that a site lists. A row is written only if something differs.

    `state` is its state (see DocumentState); the other columns are the details.

    `looked_at` is the day on which its bytes were seen last, or on which it came into the ledger; NULL, if the target
    has lost it since. `etag` and `last_modified` are the server's words for the bytes with the digest `sha256`.

    Others are about records of source repositories: `digest` and `datestamp` of the last received version (`sha256` is
    the digest of the bytes for the target), `listing` the `sweep_id` of the site's sweep that named it last,
    `missing_since` the day of the first complete list without it. `to_delete` repeats the states to-delete and
    to-confirm: the program writes it, and reads `state`. `title` is the title of the document, cut after 300
    characters, as the last check read it.
    """

    __table_args__ = (
        UniqueConstraint("site_schedule_id", "document_id", "revision", name="uq_harvest_document"),
        Index("ix_harvest_document_look", "site_schedule_id", "looked_at"),
        Index("ix_harvest_document_document", "document_id", "site_schedule_id"),
        Index("ix_harvest_document_state", "state", "site_schedule_id"),
        TABLE,
    )

    harvest_document_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    site_schedule_id: Mapped[int] = mapped_column(KEY)
    document_id: Mapped[str] = mapped_column(Identifier)
    revision: Mapped[int] = mapped_column(BigInteger)
    document_url: Mapped[str] = mapped_column(TEXT)
    document_type: Mapped[str] = mapped_column(TEXT)
    target_revision: Mapped[int | None] = mapped_column(BigInteger)
    outcome: Mapped[str | None] = mapped_column(String(16))
    sha256: Mapped[str | None] = mapped_column(String(64))
    etag: Mapped[str | None] = mapped_column(String(100))
    last_modified: Mapped[str | None] = mapped_column(String(100))
    looked_at: Mapped[date | None]
    failing_since: Mapped[date | None]
    attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    next_attempt: Mapped[date | None]
    pending_run: Mapped[int | None] = mapped_column(BigInteger)
    pending_sha256: Mapped[str | None] = mapped_column(String(64))
    digest: Mapped[str | None] = mapped_column(String(64))
    datestamp: Mapped[str | None] = mapped_column(String(40))
    listing: Mapped[int | None] = mapped_column(BigInteger)
    to_delete: Mapped[bool] = mapped_column(server_default=false())
    missing_since: Mapped[date | None]
    title: Mapped[str | None] = mapped_column(String(300))
    state: Mapped[str] = mapped_column(String(16), server_default="failed")


class SiteCheckpoint(Base):
    """How far the sweep of a source repository has come. `checkpoint` is JSON: the source's memory of the repository.

    `listing` is the `sweep_id`, which numbers the site's sweeps. The site run `site_run_id` has accounted for
    `unchanged` and `duplicate` records of the last one. `confirmed` deletions may be carried out, however many they
    are. `treatment`, `rechecks`, `moved` and `full_wanted`: see Progress. While a sweep is under way, its `kind` is
    full or changes, `windows` are the windows to do (JSON), `token` leads to the next answer of the first one, and
    `received` is the number of its records so far; `announced` is completeListSize.
    """

    __table_args__ = TEXTS

    site_schedule_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    checkpoint: Mapped[str | None] = mapped_column(TEXT)
    listing: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    site_run_id: Mapped[int | None] = mapped_column(KEY)
    unchanged: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    duplicate: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    confirmed: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    treatment: Mapped[str | None] = mapped_column(String(64))
    rechecks: Mapped[bool] = mapped_column(default=False, server_default=false())
    moved: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    full_wanted: Mapped[bool] = mapped_column(default=False, server_default=false())
    kind: Mapped[str | None] = mapped_column(String(8))
    windows: Mapped[str | None] = mapped_column(TEXT)
    token: Mapped[str | None] = mapped_column(TEXT)
    received: Mapped[int | None] = mapped_column(BigInteger)
    announced: Mapped[int | None] = mapped_column(BigInteger)


class ReportOutbox(Base):
    """Every report as rendered: `content` is the whole message. The unique key prevents a second one of its kind."""

    report_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(100), unique=True)
    kind: Mapped[str] = mapped_column(String(16))
    run_id: Mapped[int] = mapped_column(ForeignKey("harvest_run.run_id"), index=True)
    site_run_id: Mapped[int | None] = mapped_column(ForeignKey("harvest_site_run.site_run_id"), index=True)
    message_id: Mapped[str] = mapped_column(String(255))
    subject: Mapped[str] = mapped_column(TEXT)
    content: Mapped[bytes] = mapped_column(BYTES)
    created_at: Mapped[datetime]


class ReportDelivery(Base):
    """A row for each recipient of a report. Status: queued, sent or refused.

    A refused one without the time of an attempt was dropped, or its recipient no longer gets these reports.
    `first_sent_at` stays when it is sent again. `by_hand`: a person requested this report for this address.
    """

    __table_args__ = (UniqueConstraint("report_id", "recipient", name="uq_report_delivery"), TABLE)

    delivery_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    report_id: Mapped[int] = mapped_column(ForeignKey("report_outbox.report_id"))
    recipient: Mapped[str] = mapped_column(String(320))
    status: Mapped[str] = mapped_column(String(16), default="queued", server_default="queued", index=True)
    attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    last_error: Mapped[str | None] = mapped_column(TEXT)
    last_attempt_at: Mapped[datetime | None]
    first_sent_at: Mapped[datetime | None]
    by_hand: Mapped[bool] = mapped_column(default=False, server_default=false())


class DocumentRevision(Base):
    """The catalogue: every revision of every document, its bytes exactly as received.

    The bytes are the last column: SQLite reads through a row up to the column that is asked for.
    """

    __table_args__ = (UniqueConstraint("document_id", "revision", name="uq_document_revision"), TABLE)

    document_revision_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    document_id: Mapped[str] = mapped_column(Identifier)
    revision: Mapped[int] = mapped_column(BigInteger)
    document_type: Mapped[str] = mapped_column(TEXT)
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    source_url: Mapped[str] = mapped_column(TEXT)
    site_schedule_id: Mapped[int | None] = mapped_column(KEY)
    inserted_at: Mapped[datetime]
    content: Mapped[bytes] = mapped_column(BYTES)


class DocumentOrigin(Base):
    """The origin of a revision in the catalogue, for a record of a source repository (OAI-PMH provenance).

    `sets` and `about` are JSON: set specs, and the record's about containers as text. `received` has the original
    bytes, if the document was normalised; then a document of a harvest list has a row as well, and `base_url` is its
    URL.
    """

    __table_args__ = (UniqueConstraint("document_id", "revision", name="uq_document_origin"), TABLE)

    document_origin_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    document_id: Mapped[str] = mapped_column(Identifier)
    revision: Mapped[int] = mapped_column(BigInteger)
    base_url: Mapped[str] = mapped_column(TEXT)
    identifier: Mapped[str] = mapped_column(TEXT)
    prefix: Mapped[str] = mapped_column(TEXT)
    datestamp: Mapped[str] = mapped_column(String(40))
    response_date: Mapped[str] = mapped_column(String(40))
    namespace: Mapped[str] = mapped_column(TEXT)
    digest: Mapped[str] = mapped_column(String(64))
    altered: Mapped[bool]
    sets: Mapped[str] = mapped_column(TEXT)
    about: Mapped[str] = mapped_column(TEXT)
    received: Mapped[bytes | None] = mapped_column(BYTES)


class DocumentTombstone(Base):
    """A deleted document of the catalogue: its source repository deleted it, or an administrator withdrew it.

    `revision` is the highest that it had: these numbers are used up. Its revisions stay, and can be read.
    """

    __table_args__ = TEXTS

    document_id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    revision: Mapped[int] = mapped_column(BigInteger)
    site_schedule_id: Mapped[int | None] = mapped_column(KEY)
    datestamp: Mapped[str] = mapped_column(String(40))
    deleted_at: Mapped[datetime]


class CatalogueDocument(Base):
    """The catalogue: a row for each document that the embedded target has, or had: its current revision.

    `catalogue_document_id` is the number of the change that brought the document. `origin` is the name of its source
    repository, and `item_identifier` its identifier there, percent-encoded as in document ids; all formats of a record
    have the same two. A document of a harvest list has no origin, and its document id as the identifier.
    `document_type` is cut after 255 characters, `title` after 300. It is empty for a document that cannot be a part
    of an answer of the provider: see Upload. `site_schedule_id` is the site that it belongs to.
    A deleted document stays, with the revision that it had.

    `change_seq` is the number of its last change, `changed_at` the time, in whole seconds: see CatalogueCounter.
    """

    __table_args__ = (
        Index("ix_catalogue_document_item", "item_identifier", "origin"),
        Index("ix_catalogue_document_changed", "changed_at", "catalogue_document_id"),
        Index("ix_catalogue_document_type", "document_type", "changed_at", "catalogue_document_id"),
        Index("ix_catalogue_document_origin", "origin", "changed_at", "catalogue_document_id"),
        Index("ix_catalogue_document_site", "site_schedule_id", "changed_at", "catalogue_document_id", "deleted"),
        TEXTS,
    )

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    document_id: Mapped[str] = mapped_column(Identifier, unique=True)
    item_identifier: Mapped[str] = mapped_column(Identifier)
    origin: Mapped[str | None] = mapped_column(String(200))
    document_type: Mapped[str] = mapped_column(String(255))
    revision: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    title: Mapped[str] = mapped_column(String(300))
    site_schedule_id: Mapped[int | None] = mapped_column(KEY)
    deleted: Mapped[bool]
    changed_at: Mapped[datetime]
    change_seq: Mapped[int] = mapped_column(BigInteger, unique=True)


class CatalogueFormerFormat(Base):
    """A document type that a document of the catalogue no longer has: its record in this format is deleted."""

    __table_args__ = (
        Index("ix_catalogue_former_format_type", "document_type", "changed_at", "catalogue_document_id"),
        TEXTS,
    )

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    document_type: Mapped[str] = mapped_column(String(255), primary_key=True)
    changed_at: Mapped[datetime]


class CatalogueSet(Base):
    """A set of the source repository that a document of the catalogue is in.

    Only sets that are ASCII with at most 800 characters have a row; document_origin has all.
    """

    __table_args__ = (Index("ix_catalogue_set_spec", "set_spec", "catalogue_document_id"), TABLE)

    catalogue_set_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    catalogue_document_id: Mapped[int] = mapped_column(KEY, index=True)
    set_spec: Mapped[str] = mapped_column(Identifier)


class CatalogueWithheld(Base):
    """A document of the catalogue that is not published: its site is not public, or was not when it was removed.

    `retracted`: it was published before, so that harvesters see it as deleted. They do not see the others at all.
    """

    __table_args__ = TEXTS

    catalogue_document_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    retracted: Mapped[bool]


class CatalogueCounter(Base):
    """The last change of the catalogue, in one row: its number, and its time in whole seconds.

    A writer locks the row before it takes numbers, until it commits. So numbers follow the order of the commits, and
    neither number nor time ever goes back.
    """

    __table_args__ = TEXTS

    counter_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    change_seq: Mapped[int] = mapped_column(BigInteger)
    changed_at: Mapped[datetime]


class DocumentWithdrawal(Base):
    """A document that no harvest may bring into a target again, until the withdrawal is revoked.

    `site` is the name of the site that had it. `erased`: its content was deleted, too.
    """

    __table_args__ = TEXTS

    document_id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    reason: Mapped[str] = mapped_column(TEXT)
    site: Mapped[str | None] = mapped_column(String(100))
    withdrawn_on: Mapped[date]
    withdrawn_at: Mapped[datetime]
    withdrawn_by: Mapped[str] = mapped_column(String(255))
    erased: Mapped[bool]


class DocumentOwner(Base):
    """The site of a document in a target outside of this database: the site that first inserted it."""

    __table_args__ = TEXTS

    document_id: Mapped[str] = mapped_column(Identifier, primary_key=True)
    site_schedule_id: Mapped[int] = mapped_column(KEY, index=True)


class DocumentTransfer(Base):
    """A document that was transferred to another site: by whom and when. Names are those that the sites had then.

    `run_id` is the run whose log has `message` as well; null: it was before the first run.
    """

    transfer_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    document_id: Mapped[str] = mapped_column(Identifier, index=True)
    from_site_id: Mapped[int | None] = mapped_column(KEY)
    from_site: Mapped[str | None] = mapped_column(String(100))
    to_site_id: Mapped[int | None] = mapped_column(KEY)
    to_site: Mapped[str] = mapped_column(String(100))
    transferred_on: Mapped[date]
    transferred_at: Mapped[datetime]
    transferred_by: Mapped[str] = mapped_column(String(255))
    run_id: Mapped[int | None] = mapped_column(KEY)
    message: Mapped[str] = mapped_column(TEXT)


class FolderMarker(Base):
    """The marker that was found in a target folder: a folder without it is not the folder of the documents."""

    __table_args__ = TEXTS

    path_sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    path: Mapped[str] = mapped_column(TEXT)
    folder_id: Mapped[str] = mapped_column(String(64))


class AuditEntry(Base):
    """A decision of a person: who, by which way, what, before and after. Rows are never purged.

    `action` is an id of model/actions.py, or a plain one of the same form. `before_values` and `after_values` are JSON
    objects with the values that changed, without secrets. Only `contacts forget` changes rows: it replaces an address.
    """

    __table_args__ = (
        Index("ix_audit_entry_site", "site_schedule_id", "audit_entry_id"),
        Index("ix_audit_entry_actor", "actor", "audit_entry_id"),
        TABLE,
    )

    audit_entry_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    actor: Mapped[str] = mapped_column(String(320))
    via: Mapped[str] = mapped_column(String(16))
    action: Mapped[str] = mapped_column(String(64))
    subject_kind: Mapped[str] = mapped_column(String(32))
    subject: Mapped[str] = mapped_column(TEXT)
    site_schedule_id: Mapped[int | None] = mapped_column(KEY)
    before_values: Mapped[str | None] = mapped_column(TEXT)
    after_values: Mapped[str | None] = mapped_column(TEXT)
    reason: Mapped[str | None] = mapped_column(TEXT)


class HarvestRequest(Base):
    """A request of a person: harvest a site, stop a run or a site, leave a site out of the next run.

    `scope` is the HarvestScope of a harvest. `run_id` is the run that took the request; for a stop the run to stop.
    `attempts` is the number of runs that took it. `open_key` names the request while it is open, and is null
    afterwards: its unique index prevents a second open request for the same thing. `sentence` says how it ended.
    """

    __table_args__ = (Index("ix_harvest_request_state", "state", "kind"), TABLE)

    request_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    site_schedule_id: Mapped[int | None] = mapped_column(KEY, index=True)
    site_name: Mapped[str | None] = mapped_column(String(100))
    scope: Mapped[str | None] = mapped_column(String(16))
    priority: Mapped[int] = mapped_column(default=0, server_default="0")
    asked_by: Mapped[str] = mapped_column(String(320))
    asked_via: Mapped[str] = mapped_column(String(16))
    asked_at: Mapped[datetime]
    state: Mapped[str] = mapped_column(String(16))
    sentence: Mapped[str | None] = mapped_column(TEXT)
    run_id: Mapped[int | None] = mapped_column(KEY, index=True)
    taken_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    open_key: Mapped[str | None] = mapped_column(String(64), unique=True)


class SiteProgress(Base):
    """The live numbers of a site in the run under way, written every 2 seconds, and deleted at the end of the run.

    `phase` is a LivePhase. `errors` are documents that failed in this run.
    """

    __table_args__ = TEXTS

    site_schedule_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(KEY)
    site_name: Mapped[str] = mapped_column(String(100))
    phase: Mapped[str] = mapped_column(String(16))
    listed: Mapped[int] = mapped_column(BigInteger)
    done: Mapped[int] = mapped_column(BigInteger)
    errors: Mapped[int] = mapped_column(BigInteger)
    began_at: Mapped[datetime | None]
    updated_at: Mapped[datetime]


class DaemonState(Base):
    """The daemon that was seen last, in one row: its next run, and when it was seen.

    `zone` is the time zone of its times of day.
    """

    __table_args__ = TEXTS

    daemon_id: Mapped[int] = mapped_column(KEY, primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    next_run_at: Mapped[datetime | None]
    zone: Mapped[str] = mapped_column(String(64))
    seen_at: Mapped[datetime]
