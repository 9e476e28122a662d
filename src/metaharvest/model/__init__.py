"""The values that travel through a run, each frozen and named for its stage.

`Site` -> `ListedDocument` -> `Intent` -> `FetchedDocument` -> `Verdict` -> `Outcome`, and `Finding` for errors and
doubts on the way. No value is passed on half-filled and completed later. Nothing here reads a clock, a file, a socket
or a database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from datetime import date, datetime
from ipaddress import IPv4Network, IPv6Network
from itertools import islice
from pathlib import Path

from metaharvest.model.actions import without_actions
from metaharvest.model.kinds import ATTENTION_OUTCOMES as ATTENTION_OUTCOMES
from metaharvest.model.kinds import ERROR_OUTCOMES as ERROR_OUTCOMES
from metaharvest.model.kinds import FINE_OUTCOMES as FINE_OUTCOMES
from metaharvest.model.kinds import HARVESTED as HARVESTED
from metaharvest.model.kinds import LOG_LEVELS as LOG_LEVELS
from metaharvest.model.kinds import NOT_HARVESTED as NOT_HARVESTED
from metaharvest.model.kinds import WOULD_BE as WOULD_BE
from metaharvest.model.kinds import Action as Action
from metaharvest.model.kinds import Deletions as Deletions
from metaharvest.model.kinds import DocumentState as DocumentState
from metaharvest.model.kinds import FullText as FullText
from metaharvest.model.kinds import Level as Level
from metaharvest.model.kinds import ListMethod as ListMethod
from metaharvest.model.kinds import Notify as Notify
from metaharvest.model.kinds import OutcomeKind as OutcomeKind
from metaharvest.model.kinds import RunStatus as RunStatus
from metaharvest.model.kinds import SiteRunKind as SiteRunKind
from metaharvest.model.kinds import SiteRunStatus as SiteRunStatus
from metaharvest.model.kinds import Unit as Unit
from metaharvest.model.kinds import ValidationLevel as ValidationLevel
from metaharvest.model.values import frozen

MAX_FINDINGS = 100
"""The number of findings that one document or one list may have; the others are counted."""

MAX_EXCERPT = 300
"""Characters of an offending excerpt that a finding carries."""

Network = IPv4Network | IPv6Network


@frozen
class Finding:
    """One error or one doubt (warning), in words for the person who can correct it.

    `rule` is an id listed in docs/rules.md. `line` and `column` count from 1. `docid` is the docid of an entry in a
    harvest list, as it is written there, if the finding is about that; else it is empty. A remedy that names actions is
    a `Remedy` (model/actions.py).
    """

    rule: str
    message: str
    remedy: str = ""
    level: Level = Level.ERROR
    line: int | None = None
    column: int | None = None
    xpath: str = ""
    excerpt: str = ""
    docid: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "remedy", without_actions(self.remedy))

    @property
    def is_error(self) -> bool:
        """True if this finding alone keeps a document or a list out."""
        return self.level is Level.ERROR

    @property
    def with_remedy(self) -> str:
        """The message, and the remedy if there is one."""
        return f"{self.message} {self.remedy}".rstrip()


def limited(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first MAX_FINDINGS findings, and one with the number of the others and their highest level."""
    iterator = iter(findings)
    kept = tuple(islice(iterator, MAX_FINDINGS))
    left_out = Counter(finding.level for finding in iterator)
    if not left_out:
        return kept
    message = f"{left_out.total():,} more findings of this document are not shown."
    remedy = "Correct these first: many of the others may disappear with them."
    return (*kept, Finding("findings.more", message, remedy, Level.ERROR if left_out[Level.ERROR] else Level.WARNING))


@frozen
class OaiOptions:
    """The request options of an OAI-PMH repository, whose base URL is the site's list URL.

    `origin` names the repository in document ids, and stays when the base URL moves. `set_spec`: only the records of
    this set. `begin` and `until`: the earliest and the latest datestamp of the requests, in the form that is sent.
    `full_every`: days after which everything is listed again, not only the changes; None: only on request. `post`:
    requests are sent as forms.
    """

    origin: str
    prefix: str = "oai_dc"
    set_spec: str | None = None
    begin: str | None = None
    until: str | None = None
    method: ListMethod = ListMethod.LIST_RECORDS
    full_every: int | None = None
    post: bool = False


@frozen
class Reach:
    """The permissions of a request beyond the settings: private networks, and certificate authorities.

    `server`: the networks are only reached at this server (see WebAddress.server), also after a redirect; None: at all.
    """

    networks: tuple[Network, ...] = ()
    ca_file: Path | None = None
    server: str | None = None


@frozen
class SiteOptions:
    """The options of one site; None: as the settings say.

    `ca_file` has certificates to trust for this site alone, beside the others; a relative path as in the settings, like
    `filters` and `normalize`, the files that leave documents out and add elements to others. `max_loss` is the share of
    a site's documents, in percent, that may be deleted in one harvest without a confirmation. `full_text`: what the
    pipeline does with files. `groups` are names that a
    steward gives to several sites. `split_from`: an upgrade has split the site of this name, which had several sets,
    and this is a part of it; the first part has that name still.
    """

    package_id_mismatch: Level | None = None
    allow_networks: tuple[Network, ...] = ()
    ca_file: Path | None = None
    validation: ValidationLevel | None = None
    filters: Path | None = None
    normalize: Path | None = None
    deletions: Deletions | None = None
    max_loss: int | None = None
    full_text: FullText | None = None
    groups: tuple[str, ...] = ()
    split_from: str | None = None
    oai: OaiOptions | None = None

    @property
    def reach(self) -> Reach:
        """The permissions of the site's requests."""
        return Reach(self.allow_networks, self.ca_file)


@frozen
class ListVersion:
    """The version of its list that a site served: the server's own words for it, and the SHA-256 of its bytes."""

    etag: str | None
    last_modified: str | None
    sha256: str


@frozen
class Site:
    """One registered source of documents: a checked row of harvest_site_schedule.

    `ldap_name` and `ldap_password`, a reference to a secret, are the site's login at a target that asks for one.
    `public`: its documents are published.
    `file_folder` is the folder below which the settings allow it file: URLs, as `Settings.applied_to` adds it, with
    `stored_options`, the options of the row.
    """

    site_id: int
    name: str
    list_url: str
    contacts: tuple[str, ...]
    frequency: int = 1
    unit: Unit = Unit.DAYS
    next_harvest: date | None = None
    last_harvest: date | None = None
    day_of_month: int | None = None
    source_kind: str = "harvest-list"
    notify: Notify = Notify.ALWAYS
    enabled: bool = True
    public: bool = True
    options: SiteOptions = field(default_factory=SiteOptions)
    list_version: ListVersion | None = None
    ldap_name: str | None = None
    ldap_password: str | None = None
    file_folder: Path | None = None
    stored_options: SiteOptions | None = field(default=None, compare=False, repr=False)

    @property
    def is_rehearsed(self) -> bool:
        """True in a rehearsal: the id is negative then, so that the rows of the real site stay as they are."""
        return self.site_id < 0

    @property
    def registered_id(self) -> int:
        """The id in the schedule, also in a rehearsal."""
        return abs(self.site_id)

    def for_rehearsal(self) -> Site:
        """The site for a run without a target: its rows get another id."""
        return replace(self, site_id=-self.registered_id, list_version=None)


@frozen
class SameOrigin:
    """The other registered sites of a site's origin: of its source repository and format, with its target.

    `enabled` are the ones that are switched on.
    """

    others: frozenset[int] = frozenset()
    enabled: frozenset[int] = frozenset()

    def for_rehearsal(self) -> SameOrigin:
        """The same for a run without a target: the rows of a site have another id there."""
        return SameOrigin(*(frozenset(-each for each in sites) for sites in (self.others, self.enabled)))


Checkpoint = Mapping[str, object]
"""The progress of the listing of a source repository, in its source's own words: JSON, which the journal stores."""

OriginalColumns = tuple[str, int] | tuple[None, None]
"""The original Harvester's columns scope and identifier; None if a source has none."""


@frozen
class SiteRun:
    """One site's part of a run, as the journal opened it. `resumed`: an earlier run began it and logged some of it.

    `original_columns` gives the original's columns for a document id of this site. `known_list` is the version of the
    site's list that the ledger mirrors, `known_documents` the number of its documents; None: the list must be read. A
    document that a site of the `same_origin` has in the target is this site's, too.
    """

    site_run_id: int
    site: Site
    kind: SiteRunKind
    original_columns: Callable[[str], OriginalColumns]
    resumed: bool = False
    known_list: ListVersion | None = None
    known_documents: int = 0
    same_origin: SameOrigin = SameOrigin()

    def owns(self, site_id: int | None) -> bool:
        """True if a document that belongs to that site, or to none, is this site's."""
        return site_id in (None, self.site.site_id) or site_id in self.same_origin.others


@frozen
class RecordOrigin:
    """The origin of a record of a source repository, as a provenance container has it (OAI-PMH guidelines).

    `datestamp` and `response_date` are as the repository wrote them, the latter from the answer with the record;
    `namespace` is the namespace of the metadata, `about` the containers of that name, serialised. `digest` is the
    SHA-256 of the received metadata in exclusive canonical XML; empty if there is none, or none was wanted. `title` is
    the title in the metadata, on one line.
    """

    base_url: str
    identifier: str
    prefix: str
    datestamp: str
    response_date: str
    namespace: str = ""
    digest: str = ""
    sets: tuple[str, ...] = ()
    about: tuple[bytes, ...] = ()
    title: str = ""


@frozen
class ListedDocument:
    """One document as its site lists it. `line` is its place in the list, if it came from one.

    `by_itself`: no list names it, so that there is no docid to compare its packageId with; `twin` is then another
    document with the same packageId, and `refusal` is the reason why no list can name it. `list_file`: the file of its
    list, as people name it. `origin`: it is a record of a source repository, which has no revisions: they
    are ours.
    """

    document_id: str
    revision: int
    document_type: str
    url: str
    line: int | None = None
    by_itself: bool = False
    twin: str = ""
    refusal: Finding | None = None
    list_file: str = ""
    origin: RecordOrigin | None = None

    @property
    def docid(self) -> str:
        """Document id and revision, as people write them: `knb-lter-gce.109.6`."""
        return f"{self.document_id}.{self.revision}"

    def as_revision(self, revision: int) -> ListedDocument:
        """The document with this revision. `replace` takes three times as long, and a list has many records."""
        same = (self.line, self.by_itself, self.twin, self.refusal, self.list_file, self.origin)
        return ListedDocument(self.document_id, revision, self.document_type, self.url, *same)


@frozen
class Withdrawal:
    """A document that an administrator has withdrawn: the reason and the day; `erased`: with its content."""

    reason: str
    day: date
    erased: bool = False


@frozen
class Holding:
    """The state of one document in the target: its highest revision. `site_id` is the site it belongs to, if known.

    `taken_from` are the sites from which an administrator has transferred it to another one, each with the day since
    which it belongs to its present site. `withdrawn`: it may not come into the target, in any case.
    """

    document_id: str
    revision: int
    sha256: str | None = None
    site_id: int | None = None
    taken_from: tuple[tuple[int, date], ...] = ()
    withdrawn: Withdrawal | None = None


@frozen
class Intent:
    """The decision about a listed document. `findings` are the reasons, if nothing will be fetched.

    `held_sha256` is the SHA-256 of the highest revision that the target holds, if it is known.
    """

    document: ListedDocument
    action: Action
    target_revision: int | None = None
    findings: tuple[Finding, ...] = ()
    held_sha256: str | None = None

    @property
    def wants_fetch(self) -> bool:
        """True if the document has to be fetched."""
        return self.action in (Action.INSERT, Action.UPDATE)


@frozen
class Verdict:
    """The result of the checks of a fetched document: acceptable if no finding is an error.

    `filtered` names the filter of the site that left it out. `content`: the normalised document, which goes into the
    target in its place. `title` is the title of the document, as far as it could be read.
    """

    findings: tuple[Finding, ...] = ()
    filtered: Finding | None = None
    content: bytes | None = None
    title: str = field(default="", compare=False)

    @property
    def acceptable(self) -> bool:
        """True if the document may go into the target."""
        return not any(finding.is_error for finding in self.findings)


@frozen
class FetchedDocument:
    """A document's bytes exactly as received. `seconds` is the time of its server; None: it came with others.

    If they were normalised, `content` and `sha256` are for the target, and `received` are the received bytes. `etag`
    and `last_modified` are the server's own words for this version of it; None if it has none. `findings` are warnings
    about corrections.
    """

    document: ListedDocument
    content: bytes
    sha256: str
    seconds: float | None
    received: bytes | None = None
    etag: str | None = None
    last_modified: str | None = None
    findings: tuple[Finding, ...] = ()


@frozen
class Outcome:
    """The result for one listed document.

    `seconds` is the time of its server, `size` its length in bytes; both None if nothing was fetched. `transient` marks
    a failure that may be gone the next time (a time-out, a 503), or a document that was put off for such failures of
    its server: it is tried again in the next run, for some nights. A document that was put off for other reasons is
    always tried again. `needs_confirmation`: a deletion is put off until a person confirms it.

    `unconfirmed`: an upload was begun, and it is not known whether it arrived; the target is asked before anything is
    sent again. `sha256` is for the bytes in the target. For a document that can be compared with the file on its site,
    it is for the received bytes. `etag` and `last_modified`: see FetchedDocument; `title`: see Verdict.
    """

    document: ListedDocument
    kind: OutcomeKind
    target_revision: int | None = None
    findings: tuple[Finding, ...] = ()
    seconds: float | None = None
    size: int | None = None
    sha256: str | None = None
    transient: bool = False
    needs_confirmation: bool = False
    unconfirmed: bool = False
    etag: str | None = None
    last_modified: str | None = None
    title: str = ""


@frozen
class ServerTrouble:
    """The state of a server that wants to be left alone, or cannot be reached; times in seconds.

    `server` is the name of its host, with an unusual port. `rest`: the time left of the pause that it asked for.
    `failures`: the number of requests in a row that did not reach it; the last one failed `failed_before` seconds ago,
    and `pause` is left until the next one.
    """

    server: str
    rest: float = 0.0
    failures: int = 0
    failed_before: float = 0.0
    pause: float = 0.0


@frozen
class Upload:
    """A checked document for the target, from the site with this number (0: not from a site).

    Documents of the other sites of `same_origin` belong to this site, too. `title`: see Verdict. `is_embeddable`: an
    answer of the provider can have it; only a copy, which nobody has checked, may not be.
    """

    fetched: FetchedDocument
    site_id: int
    at: datetime
    same_origin: frozenset[int] = frozenset()
    title: str = ""
    is_embeddable: bool = True


@frozen
class Deletion:
    """A document that the site's source repository has deleted; for a target in the harvester's own database.

    `same_origin`: see Upload.
    """

    document: ListedDocument
    site_id: int
    at: datetime
    same_origin: frozenset[int] = frozenset()


@frozen
class HeldRevision:
    """One revision of a document as a target describes it. Unknown values are None, or empty.

    `size` is in bytes; `source_url` is its source, or its place in the target; `site_id` is its first site. `title` is
    the title of the document.
    """

    document_id: str
    revision: int
    document_type: str = ""
    size: int | None = None
    sha256: str | None = None
    inserted_at: datetime | None = None
    source_url: str = ""
    site_id: int | None = None
    title: str = ""

    @property
    def docid(self) -> str:
        """Document id and revision: `knb-lter-gce.109.6`."""
        return f"{self.document_id}.{self.revision}"
