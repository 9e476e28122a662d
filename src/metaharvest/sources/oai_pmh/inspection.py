"""Looks at a source repository before it is registered, and rehearses its harvest. Nothing is kept.

`inspect` asks for its descriptions of itself. `rehearse` reads its list as a harvest does, and sends requests that it
has to refuse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from math import inf

from metaharvest.errors import FetchError, HarvestError, ListError, ListIncomplete
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.url import without_login
from metaharvest.model import Finding, Level, OaiOptions, Site
from metaharvest.model.values import frozen
from metaharvest.sources.base import ListedRecord, TimeBudget
from metaharvest.sources.oai_pmh.datestamps import has_zone, is_proper, moment
from metaharvest.sources.oai_pmh.describe import Description, described, identified, missing
from metaharvest.sources.oai_pmh.probes import From, Newest, Probes
from metaharvest.sources.oai_pmh.protocol import Identity, MetadataFormat, Set
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.responses import NotOaiResponse
from metaharvest.sources.oai_pmh.source import OaiSource
from metaharvest.text import one_line, shown_url

_MOST_OF_A_RULE = 20
_GRANULARITIES = ("YYYY-MM-DD", "YYYY-MM-DDThh:mm:ssZ")
_FORGETS = {
    "no": "The repository never says that a record is deleted (deletedRecord: no).",
    "transient": "The repository may report that a record is deleted, or may forget it (deletedRecord: transient).",
}
_LIST_DELETED = (
    "Go on listing deleted records, as deleted: otherwise copies of them stay until a full harvest. A harvester asks "
    "for full lists now and then (`--full-every 30` of the site)."
)


@frozen
class Inspection:
    """The descriptions of a source repository. `findings`: it lacks things that the site asks for, or is odd."""

    identity: Identity
    formats: tuple[MetadataFormat, ...]
    sets: tuple[Set, ...]
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """The reasons for which the site cannot be harvested like this."""
        return tuple(finding for finding in self.findings if finding.is_error)


async def inspect(
    site: Site, fetcher: Fetcher, patience: TimeBudget, *, checks_from: bool = True, more_sets: Sequence[str] = ()
) -> Inspection:
    """Ask the source repository at the site's base URL for name, formats and sets. Raises FetchError, and ListError.

    Sets that cannot be fetched are a warning if the site names none. `checks_from`: try with a record of the first page
    if the source repository respects `from`. `more_sets` are sets that it must have as well.
    """
    options = site.options.oai or OaiOptions("")
    wanted = (*((options.set_spec,) if options.set_spec else ()), *more_sets)
    description = await described(_repository(site, fetcher), patience)
    found = [*missing(description, options.prefix, wanted), *description.findings]
    found += filter(None, [description.warning_of_sets()])
    found += oddities(description, site.list_url)
    if checks_from and not any(finding.is_error for finding in found):
        _, finding = await _check_from(site, fetcher, patience, description.identity, Newest())
        found += [finding] if finding else []
    return Inspection(description.identity, description.formats, description.sets, tuple(found))


async def _check_from(
    site: Site, fetcher: Fetcher, patience: TimeBudget, identity: Identity, newest: Newest
) -> tuple[From, Finding | None]:
    """How the source repository respects `from`, tried with the `newest` record, or else with one of the first page."""
    if identity.version != "2.0" or patience.stop_reason():
        return From.WELL, None
    options = site.options.oai or OaiOptions("")
    probes = Probes(_repository(site, fetcher), options, identity, patience, in_days=False)
    if not newest.identifier and (page := await probes.first_page()):
        newest = page.newest(identity.response_date)
    return await probes.check_from(newest) if newest.identifier else (From.WELL, None)


async def identify(site: Site, fetcher: Fetcher, patience: TimeBudget) -> tuple[Identity, tuple[Finding, ...]]:
    """Ask the source repository at the site's base URL for Identify alone. Raises FetchError, and ListError.

    Its formats and sets may be broken. The findings name the oddities.
    """
    identity, findings = await identified(_repository(site, fetcher), patience)
    return identity, (*findings, *_odd_in_identify(identity, site.list_url))


async def sets_of(site: Site, fetcher: Fetcher, patience: TimeBudget) -> tuple[Set, ...]:
    """All sets of the source repository at the site's base URL. Raises FetchError, and ListError."""
    description = await described(_repository(site, fetcher), patience)
    if description.no_sets:
        raise description.no_sets
    return description.sets


def _repository(site: Site, fetcher: Fetcher) -> Repository:
    return Repository(site, fetcher, post=site.options.oai is not None and site.options.oai.post)


def oddities(description: Description, base_url: str) -> Iterator[Finding]:
    """The oddities of Identify, and of the formats."""
    yield from _odd_in_identify(description.identity, base_url)
    if "oai_dc" not in [each.prefix for each in description.formats]:
        yield _odd("There is no format oai_dc, which every repository has to have.", "Add it for simple harvesters.")


def _odd_in_identify(identity: Identity, base_url: str) -> Iterator[Finding]:
    if not identity.name:
        yield _odd("Identify has no repositoryName.", "Give the repository a name: reports call it by that.")
    if not identity.emails:
        yield _odd("Identify has no adminEmail.", "Name an address to which harvesters can write.")
    if identity.base_url and without_login(identity.base_url) != without_login(base_url):
        message = f"Identify says that the base URL is {shown_url(identity.base_url)}; it was asked at another one."
        yield _odd(message, "Correct baseURL in Identify, or give out the address that it names.")
    if not identity.base_url:
        yield _odd("Identify has no baseURL.", "Have it say the address that harvesters are to use.")
    if identity.version == "2.0":
        yield from _odd_in_2_0(identity)


def _odd_in_2_0(identity: Identity) -> Iterator[Finding]:
    date, granularity, deleted, earliest = (
        one_line(each, 60)
        for each in (identity.response_date, identity.granularity, identity.deleted_record, identity.earliest)
    )
    if has_zone(identity.response_date) and not is_proper(identity.response_date):
        message = f"The responseDate is '{date}', which the protocol writes in another way."
        yield _odd(message, "Write it in UTC, without fractions of seconds: 2026-11-20T03:00:00Z.")
    if identity.granularity not in _GRANULARITIES:
        message = f"The granularity '{granularity}' is not one of the protocol's."
        yield _odd(message, f"Write {' or '.join(_GRANULARITIES)}.")
    if identity.deleted_record in _FORGETS:
        yield _odd(_FORGETS[identity.deleted_record], _LIST_DELETED)
    elif identity.deleted_record != "persistent":
        message = f"deletedRecord is '{deleted}', which the protocol does not have."
        yield _odd(message, "Write no, transient or persistent.")
    first, now = moment(identity.earliest), moment(identity.response_date)
    if first is None or not is_proper(identity.earliest):
        message = f"earliestDatestamp is '{earliest}', which is no datestamp."
        yield _odd(message, "Write the lowest datestamp of all records, in the granularity of Identify.")
    elif now is not None and first > now:
        message = f"earliestDatestamp is {earliest}, which is in the future."
        yield _odd(message, "Write the lowest datestamp of all records.")


@dataclass(slots=True)
class RehearsedList:
    """The result of a rehearsal: the numbers of records of each kind, and the first findings of each rule.

    `pages` were read; `is_whole`: the list was read to its end. `bad` records cannot be fetched. `types` are the
    namespaces of the metadata.
    """

    inspection: Inspection
    pages: int = 0
    records: int = 0
    deleted: int = 0
    bad: int = 0
    announced: int | None = None
    is_whole: bool = False
    newest: Newest = field(default_factory=Newest)
    types: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    _of_rule: Counter[str] = field(default_factory=Counter)

    def add(self, findings: Iterable[Finding]) -> None:
        """Keep the findings that are among the first of their rule, and count the others."""
        for finding in findings:
            self._of_rule[finding.rule] += 1
            if self._of_rule[finding.rule] <= _MOST_OF_A_RULE:
                self.findings.append(finding)

    def count(self, record: ListedRecord) -> None:
        """Count one more record."""
        self.records += 1
        self.deleted += record.deleted
        self.bad += record.content is None and not record.deleted
        if (origin := record.document.origin) and not record.deleted:
            self.newest = self.newest.or_newer(origin.datestamp, origin.identifier, origin.response_date)
        if record.content is not None:
            self.types[record.document.document_type] += 1
        self.add(record.findings)

    @property
    def left_out(self) -> dict[str, int]:
        """The number of further findings of each rule that has more."""
        return {rule: number - _MOST_OF_A_RULE for rule, number in self._of_rule.items() if number > _MOST_OF_A_RULE}

    @property
    def has_errors(self) -> bool:
        """True if harvesters lose something."""
        return any(finding.is_error for finding in self.findings)


async def rehearse(site: Site, fetcher: Fetcher, patience: TimeBudget, pages: int | None) -> RehearsedList:
    """Rehearse a harvest of the whole list, or of its first pages. Raises FetchError, and ListError."""
    rehearsal = RehearsedList(await inspect(site, fetcher, patience, checks_from=False))
    rehearsal.add(rehearsal.inspection.findings)
    if rehearsal.inspection.problems:
        return rehearsal
    try:
        await _read_list(site, fetcher, patience, pages, rehearsal)
    except (ListIncomplete, ListError, FetchError) as error:
        rehearsal.add(replace(finding, level=Level.ERROR) for finding in error.findings[:1])
        rehearsal.add(error.findings[1:])
    identity = rehearsal.inspection.identity
    how, finding = await _check_from(site, fetcher, patience, identity, rehearsal.newest)
    if finding is not None:
        # This harvester lists everything then; other harvesters lose records.
        rehearsal.add([replace(finding, level=Level.ERROR) if how is From.OFF else finding])
    if identity.version == "2.0":
        rehearsal.add(await _answers_to_mistakes(site, fetcher, patience, identity))
    return rehearsal


async def _read_list(
    site: Site, fetcher: Fetcher, patience: TimeBudget, most_pages: int | None, rehearsal: RehearsedList
) -> None:
    listing = await OaiSource(site, fetcher, is_harvest=False).list_records(None, patience, full=True)
    async with aclosing(listing.pages) as pages:
        async for page in pages:
            rehearsal.announced = page.announced or rehearsal.announced
            for record in page.records:
                rehearsal.count(record)
            for finding in page.findings:
                # If the end of a list is uncertain, harvesters lose the records behind it.
                is_loss = page.left_out == inf and finding.rule == "oai.token"
                rehearsal.add([replace(finding, level=Level.ERROR) if is_loss else finding])
            if page.lacks_token and rehearsal.inspection.identity.version == "2.0":
                rehearsal.add([_odd(_NO_LAST_TOKEN, "End a list of several pages with an empty resumptionToken.")])
            rehearsal.pages += bool(page.records) and page.checkpoint is not None
            if most_pages is not None and rehearsal.pages >= most_pages:
                return
    rehearsal.is_whole = True


_NO_LAST_TOKEN = (
    "The list has several pages, and the last one has no resumptionToken. Harvesters cannot see if it is complete."
)
_NONE = "oai:invalid.example.org:there-is-no-such-record"
_MIXED = {"metadataPrefix": "PREFIX", "from": "2002-02-05", "until": "2002-02-06T05:35:00Z"}
_BACKWARDS = {"metadataPrefix": "PREFIX", "from": "2002-02-06", "until": "2002-02-05"}
_SECONDS = {"metadataPrefix": "PREFIX", "from": "2002-02-05T05:35:00Z", "until": "2002-02-05T05:36:00Z"}
_MISTAKES: tuple[tuple[str, dict[str, str], str, str], ...] = (
    ("ListNonsense", {}, "badVerb", "a verb that there is not"),
    ("ListRecords", {}, "badArgument", "ListRecords without metadataPrefix"),
    ("ListRecords", {"metadataPrefix": "no-such-format"}, "cannotDisseminateFormat", "a format that there is not"),
    ("ListRecords", {"resumptionToken": "no-such-token"}, "badResumptionToken", "a token that it never gave out"),
    ("ListRecords", _MIXED, "badArgument", "from in days with until in seconds"),
    ("ListRecords", _BACKWARDS, "badArgument", "a period that ends before it begins"),
    ("GetRecord", {"metadataPrefix": "PREFIX", "identifier": _NONE}, "idDoesNotExist", "a record that there is not"),
)


async def _answers_to_mistakes(site: Site, fetcher: Fetcher, patience: TimeBudget, identity: Identity) -> list[Finding]:
    """Send requests that a source repository must refuse, and one with seconds. Returns findings about the answers."""
    prefix = (site.options.oai or OaiOptions("")).prefix
    repository = _repository(site, fetcher)
    found = []
    for verb, arguments, code, what in _MISTAKES:
        if patience.stop_reason():
            break
        came = await _answer_to(repository, verb, arguments, prefix, patience)
        if came != code:
            message = f"Asked for {what}, the repository answers {came}; the protocol has the error {code} for that."
            found.append(_odd(message, "Harvesters cannot see what is wrong: have it answer as the protocol says."))
    if identity.has_seconds:
        came = await _answer_to(repository, "ListIdentifiers", _SECONDS, prefix, patience)
        if came == "badArgument":
            message = "Identify says that datestamps have seconds, and requests with seconds are refused."
            remedy = "Correct the granularity in Identify, or accept seconds in from and until."
            found.append(Finding("oai.granularity", message, remedy, Level.WARNING))
    return found


async def _answer_to(
    repository: Repository, verb: str, arguments: dict[str, str], prefix: str, patience: TimeBudget
) -> str:
    """The code of the error in the answer; if the answer is no error of the protocol, a description of it."""
    arguments = {name: prefix if value == "PREFIX" else value for name, value in arguments.items()}
    try:
        _, answer = await repository.short(verb, arguments, patience, lambda tree, answer: None)
    except FetchError as error:
        return f"with the status {error.status}" if error.status else "nothing"
    except (NotOaiResponse, HarvestError):
        return "with something else"
    return answer.errors[0].code if answer.errors else "as if all were well"


def _odd(message: str, remedy: str) -> Finding:
    return Finding("oai.protocol", message, remedy, Level.WARNING)
