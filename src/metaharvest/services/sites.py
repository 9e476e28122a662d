"""The schedule: sites are registered, changed, switched on and off, removed; deletions are confirmed.

`metaharvest.sites` checks the values of a site.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from sqlalchemy.orm import Session

from metaharvest.accounts.audit import Decision, Values, changed
from metaharvest.config.field_types import check_email, url_parts
from metaharvest.config.secret_references import NOT_SHOWN
from metaharvest.errors import FetchError, ListError, RequestError, ScheduleError, value_errors
from metaharvest.fetch.url import without_login
from metaharvest.ledger.deletions import confirm_deletions, only_records
from metaharvest.model import (
    Deletions,
    Finding,
    FullText,
    Level,
    ListMethod,
    Network,
    Notify,
    OaiOptions,
    Site,
    SiteOptions,
    Unit,
    ValidationLevel,
)
from metaharvest.model.kinds import StageName
from metaharvest.model.values import frozen
from metaharvest.pipeline import steps
from metaharvest.queries.decisions import value_in_words
from metaharvest.queries.sites import RegisteredSite, registered_values, registration
from metaharvest.services import public_flags
from metaharvest.services.harvester import Harvester
from metaharvest.sites.admin_policy import require_allowed
from metaharvest.sites.clock_checks import is_too_far
from metaharvest.sites.options import check_group, name_for_set, options_text
from metaharvest.sites.registrations.store import end_pauses
from metaharvest.sites.registry import (
    add_site,
    edit_site,
    find_site,
    lock_sites,
    new_site,
    read_sites,
    remove_site,
    switch_site,
)
from metaharvest.sites.rows import NAMES, OAI, BrokenSite, named_contacts, split_addresses
from metaharvest.sites.same_source import origin_for, origins, require_new_source, source_key
from metaharvest.sites.site_files import as_mapping, has_login
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.text import counted, one_line, shown_url

__all__ = ["check_group", "is_too_far"]

AnySite = Site | BrokenSite
Also = Callable[["Session", AnySite], None]
"""A step in the transaction of a change; it may raise."""


MOST_CONTACTS = 5
"""The number of a source repository's addresses that become contacts if no contacts are given."""

_FLAGS = ("enabled", "public")
_MOST_SECONDS = 300
"""The time for the questions to a source repository: a person waits for the answers."""


class NotGiven(Enum):
    """The placeholder for a value that is not given."""

    NOT_GIVEN = "not given"


NOT_GIVEN = NotGiven.NOT_GIVEN


@frozen(kw_only=True)
class SiteValues:
    """The given values of a site. None removes a value; a missing value stays, or is the default in a new site.

    A site has a `list_url` or the `base_url` of a source repository. `prefix` and all below it belong to the latter.
    """

    name: str | NotGiven = NOT_GIVEN
    list_url: str | NotGiven = NOT_GIVEN
    base_url: str | NotGiven = NOT_GIVEN
    contacts: tuple[str, ...] | NotGiven = NOT_GIVEN
    add_contacts: tuple[str, ...] = ()
    remove_contacts: tuple[str, ...] = ()
    every: int | NotGiven = NOT_GIVEN
    unit: Unit | NotGiven = NOT_GIVEN
    next_harvest: date | NotGiven | None = NOT_GIVEN
    notify: Notify | NotGiven = NOT_GIVEN
    enabled: bool | NotGiven = NOT_GIVEN
    public: bool | NotGiven = NOT_GIVEN
    ldap_name: str | NotGiven | None = NOT_GIVEN
    ldap_password: str | NotGiven | None = NOT_GIVEN
    package_id_mismatch: Level | NotGiven | None = NOT_GIVEN
    allow_networks: tuple[Network, ...] | NotGiven = NOT_GIVEN
    ca_file: Path | NotGiven | None = NOT_GIVEN
    validation: ValidationLevel | NotGiven | None = NOT_GIVEN
    filters: Path | NotGiven | None = NOT_GIVEN
    normalize: Path | NotGiven | None = NOT_GIVEN
    deletions: Deletions | NotGiven = NOT_GIVEN
    max_loss: int | NotGiven = NOT_GIVEN
    full_text: FullText | NotGiven | None = NOT_GIVEN
    add_groups: tuple[str, ...] = ()
    remove_groups: tuple[str, ...] = ()
    prefix: str | NotGiven | None = NOT_GIVEN
    set_spec: str | NotGiven | None = NOT_GIVEN
    begin: str | NotGiven | None = NOT_GIVEN
    until: str | NotGiven | None = NOT_GIVEN
    method: ListMethod | NotGiven = NOT_GIVEN
    full_every: int | NotGiven | None = NOT_GIVEN
    origin: str | NotGiven | None = NOT_GIVEN
    post: bool | NotGiven = NOT_GIVEN


def url_values(source_kind: str, url: str) -> SiteValues:
    """The values of a site of this kind with this URL: of its list, or of its source repository."""
    return SiteValues(base_url=url) if source_kind == OAI else SiteValues(list_url=url)


def with_login(site: AnySite, url: str) -> str:
    """The registered URL, if `url` is the same one without its login, as files and pages show it; otherwise `url`."""
    is_shown = loses_login(site.list_url, url) and without_login(url) == without_login(site.list_url)
    return site.list_url if is_shown else url


def loses_login(former: str, url: str) -> bool:
    """True if the former URL has a user name or a password, and the other one has none."""
    return _has_user(former) and not _has_user(url)


_OF_ROW = ("name", "updatefrequency", "unit", "datenextharvest", "notify", "enabled", "public", "ldapdn", "ldappwd")
_COLUMNS = {NAMES.get(column, column): column for column in _OF_ROW}
"""Values with a column of their own, with its name."""

_OWN = (
    "package_id_mismatch", "allow_networks", "ca_file", "validation", "filters", "normalize", "deletions", "max_loss",
    "full_text",
)  # fmt: skip
_OAI = ("prefix", "set_spec", "begin", "until", "method", "full_every", "origin", "post")
"""Values in the column `options`."""


@frozen
class RepositoryAnswer:
    """The description of a site's source repository, from its own responses.

    `problems` are the reasons why the site cannot be harvested; then there is no `identity`. `contacts` are its usable
    addresses. `needs_full_lists`: only a full list shows which records are gone, and the site has none planned.
    """

    site: Site
    identity: Identity | None = None
    problems: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    contacts: tuple[str, ...] = ()
    needs_full_lists: bool = False


@frozen
class Registered:
    """New sites, and the names of older sites whose records are the same documents."""

    sites: tuple[Site, ...]
    same_records: tuple[str, ...]


@frozen
class ChangedValue:
    """A value of a site before and after a change, in a form for people."""

    name: str
    before: str
    after: str


@frozen
class Edited:
    """A site before and after a change; `same_records`: other sites whose records are the same documents now."""

    former: Site | BrokenSite
    site: Site
    changes: tuple[ChangedValue, ...]
    same_records: tuple[str, ...]

    @property
    def lost_login(self) -> bool:
        """True if its URL had a user name or a password, and the new one has none."""
        return loses_login(self.former.list_url, self.site.list_url)

    @property
    def has_other_files(self) -> bool:
        """True if the site now has other filter or normalising files for its documents."""
        before, after = self.former.options, self.site.options
        is_same = (before.filters, before.normalize) == (after.filters, after.normalize)
        return isinstance(self.former, Site) and not is_same

    @property
    def has_other_full_texts(self) -> bool:
        """True if the pipeline now does something else with the files of its outputs."""
        return not isinstance(self.former, Site) or self.former.options.full_text != self.site.options.full_text


def register(
    harvester: Harvester,
    values: SiteValues,
    sets: Sequence[str] = (),
    *,
    unasked: bool = False,
    allow_duplicate: bool = False,
    report: Callable[[RepositoryAnswer], None] = lambda answer: None,
    also: Also = lambda session, site: None,
) -> Registered:
    """Register a site; with several sets a site for each, named NAME-SPEC: all of them, or none.

    A source repository is queried, unless `unasked`; `report` gets its answer before anything is registered. The
    contacts are its own addresses, if none are given. `also` sees each new site in the transaction.

    Raises RequestError, ScheduleError, TransformError.
    """
    today = harvester.today()
    _require_not_past(values, today)
    if values.list_url is NOT_GIVEN and values.base_url is NOT_GIVEN:
        raise RequestError("Give --list-url, where the site's harvest list is, or --oai for a repository.")
    with harvester.reading() as session:
        values = _with_origin(values, None, partial(read_sites, session))
    rows = [{"datenextharvest": today, **_columns(each, None)} for each in _one_for_each_set(values, sets)]
    is_asked = values.base_url is not NOT_GIVEN and not unasked
    if values.contacts is NOT_GIVEN and not is_asked:
        raise RequestError("Give --contact: the email addresses of the people who get the reports.")
    if is_asked:
        planned = [new_site({"contact_email": "nobody@example.org", **row}) for row in rows]
        answer = _asked_to_register(harvester, planned, report)
        if values.contacts is NOT_GIVEN:
            rows = [{**row, "contact_email": ", ".join(_named_contacts(answer))} for row in rows]
    added: list[Site] = []
    with harvester.writing() as session:
        before = read_sites(session)
        for row in rows:
            added.append(site := add_site(session, row))
            require_allowed(harvester.settings, site, row)
            if not allow_duplicate:
                require_new_source(site, read_sites(session))
        harvester.audit(session, *(about(each, "sites.add", after=values_of(each)) for each in added))
        for each in added:
            also(session, each)
    return Registered(tuple(added), _with_same_records(added[0], before))


def _require_not_past(values: SiteValues, today: date) -> None:
    """Raises RequestError for a day in the past: the site would be overdue at once."""
    day = values.next_harvest
    if isinstance(day, date) and day < today:
        right = f"{day} is past; give today, {today}, or a later day."
        raise RequestError.about("next_harvest", f"--next: {right}", right)


def _one_for_each_set(values: SiteValues, sets: Sequence[str]) -> list[SiteValues]:
    """The sites that are registered for these sets: one for each. `none` asks for all records."""
    different = {spec: None if spec in ("", "none") else spec for spec in sets}
    if len(different) > 1 and isinstance(values.name, str):
        name = values.name
        return [replace(values, name=name_for_set(name, spec), set_spec=each) for spec, each in different.items()]
    return [replace(values, set_spec=each) for each in different.values()] or [values]


def ask_repository(harvester: Harvester, site: Site, more_sets: Sequence[str] = ()) -> RepositoryAnswer:
    """Query the source repository of a site, and check that it has these sets as well. Raises SettingsError."""
    from metaharvest.harvest import adhoc_client
    from metaharvest.sources.oai_pmh.inspection import inspect

    try:
        applied = harvester.settings.applied_to(site)
        call = partial(inspect, more_sets=more_sets)
        inspection = adhoc_client.ask(harvester.settings, applied, call, _MOST_SECONDS)
    except (FetchError, ListError) as error:
        return RepositoryAnswer(site, problems=error.findings)
    if inspection.problems:
        return RepositoryAnswer(site, problems=inspection.problems)
    identity, oai = inspection.identity, site.options.oai
    return RepositoryAnswer(
        site,
        identity,
        warnings=tuple(each for each in inspection.findings if each.rule in ("http.robots", "oai.from")),
        contacts=named_contacts(identity.emails),
        needs_full_lists=identity.deleted_record in ("no", "transient") and oai is not None and oai.full_every is None,
    )


def _asked_to_register(
    harvester: Harvester, sites: Sequence[Site], report: Callable[[RepositoryAnswer], None]
) -> RepositoryAnswer:
    """The description of these sites' source repository. Raises ScheduleError if they cannot be harvested."""
    more_sets = [spec for each in sites[1:] if each.options.oai and (spec := each.options.oai.set_spec)]
    answer = ask_repository(harvester, sites[0], more_sets)
    if answer.identity is None:
        found = "\n".join(finding.with_remedy for finding in answer.problems)
        is_other = any(finding.rule == "oai.not-oai" for finding in answer.problems)
        hint = " If this is the URL of a harvest list, give it with --list-url." if is_other else ""
        raise ScheduleError(
            f"{found}{hint}\nNothing was registered; --unasked registers it nevertheless.",
            in_form=f"{found}\nNothing was registered.",
        )
    report(answer)
    return answer


def _named_contacts(answer: RepositoryAnswer) -> tuple[str, ...]:
    """The contacts that the source repository names. Raises ScheduleError if there are none."""
    if not answer.contacts:
        named = split_addresses(", ".join(answer.identity.emails if answer.identity else ()))
        quoted = ", ".join(f"'{one_line(each, 80)}'" for each in named[:3])
        instead = f" that can be used, but {quoted}" if named else ""
        nobody = f"The repository names no email address{instead}."
        who = "Give the people who get the reports."
        raise ScheduleError.about("contacts", f"{nobody} Give --contact: who gets the reports.", f"{nobody} {who}")
    return answer.contacts[:MOST_CONTACTS]


def _with_same_records(site: Site, sites: Iterable[Site | BrokenSite]) -> tuple[str, ...]:
    """The names of other sites whose records have the same document ids."""
    if site.options.oai is None:
        return ()
    ids = site.options.oai.origin, site.options.oai.prefix
    asked = ((each, each.options.oai) for each in sites if isinstance(each, Site) and each.site_id != site.site_id)
    return tuple(each.name for each, oai in asked if oai is not None and (oai.origin, oai.prefix) == ids)


def edit(
    harvester: Harvester,
    names: Sequence[str],
    values: SiteValues,
    *,
    group: str | None = None,
    allow_duplicate: bool = False,
    dry_run: bool = False,
    also: Also = lambda session, site: None,
) -> list[Edited]:
    """Change the named sites, and all of a group: all of them, or none; nothing in a dry run.

    `also` sees each site before the change, in its transaction.

    Raises RequestError, ScheduleError, TransformError.
    """
    _require_not_past(values, harvester.today())
    with harvester.reading() as session:
        chosen = _chosen(session, names, group)
        if values.name is not NOT_GIVEN and len(chosen) > 1:
            raise RequestError("--name gives one site another name: name that site alone.")
    if not dry_run and (values.name is not NOT_GIVEN or values.origin is not NOT_GIVEN):
        # A dry run first: keep_hidden() must not change a flag for an edit that is refused.
        edit(harvester, chosen, values, allow_duplicate=allow_duplicate, dry_run=True, also=also)
        for each in chosen:
            public_flags.keep_hidden(harvester, each)
    with harvester.writing() as session:
        lock_sites(session, chosen)
        for name in chosen:
            also(session, find_site(session, name))
        done = [_edited(harvester, session, name, values, allow_duplicate) for name in chosen]
        if dry_run:
            session.rollback()
            return done
        for edited in done:
            if edited.former.enabled != edited.site.enabled:
                end_pauses(session, edited.site.site_id)
            if edited.has_other_full_texts:
                steps.wake_site(session, StageName.FULL_TEXT, edited.site.site_id)
            if edited.former.name != edited.site.name:
                steps.wake_site(session, StageName.INDEX, edited.site.site_id)
        decisions = [edition(each.former, each.site) for each in done]
        harvester.audit(session, *(each for each in decisions if each.after))
    if values.public is not NOT_GIVEN:
        public_flags.align(harvester)
    return done


def _chosen(session: Session, names: Sequence[str], group: str | None) -> list[str]:
    if not names and group is None:
        raise RequestError("Name a site, or several, or --group with the name of a group.")
    sites = [site for site in read_sites(session) if isinstance(site, Site)]
    of_group = [site.name for site in sites if group is not None and group in site.options.groups]
    if group is not None and not of_group:
        raise RequestError(f"No site belongs to the group '{one_line(group, 60)}'.")
    return list(dict.fromkeys([*names, *of_group]))


def _edited(harvester: Harvester, session: Session, name: str, values: SiteValues, allow_duplicate: bool) -> Edited:
    """Change one site; the caller commits. Raises ScheduleError and RequestError."""
    former = find_site(session, name)
    if values.add_contacts or values.remove_contacts:
        values = replace(values, contacts=_changed_contacts(values, former))
    before = registration(session, former, harvester.today())
    columns = _columns(_with_origin(values, former, partial(read_sites, session)), former)
    if not columns:
        raise RequestError("Nothing to change: name at least one option.")
    site = edit_site(session, name, columns)
    require_allowed(harvester.settings, site, columns, former.name)
    if not allow_duplicate and source_key(former) != source_key(site):
        require_new_source(site, read_sites(session))
    after = registration(session, site, harvester.today())
    changes = list(_changes(before, after))
    if _has_other_login(former, site) and all(each.name != "ldappwd" for each in changes):
        changes.append(ChangedValue("login", *_OTHER_LOGIN))
    is_other = isinstance(former, Site) and _document_ids(former) != _document_ids(site)
    others = _with_same_records(site, read_sites(session)) if is_other else ()
    return Edited(former, site, tuple(changes), others)


def ask_again(harvester: Harvester, edited: Edited) -> RepositoryAnswer | None:
    """Check that a source repository has all that the site now requests; None if the requests have not changed."""
    if not isinstance(edited.former, Site) or _requests(edited.former) == _requests(edited.site):
        return None
    return ask_repository(harvester, edited.site)


def _changes(before: RegisteredSite, after: RegisteredSite) -> Iterable[ChangedValue]:
    values, others = registered_values(before), registered_values(after)
    for name in {**values, **others}:
        old, new = (value_in_words(each.get(name), empty=_EMPTY.get(name, "none")) for each in (values, others))
        if old != new and name not in ("frequency", "state", "options"):
            yield ChangedValue(name, old, new)


_EMPTY = {"full_text": "as the settings"}
"""The words for values that are not set, where `none` is a value."""


def _document_ids(site: Site) -> tuple[object, ...]:
    """The values that decide about a site's records and their document ids; empty for a harvest list."""
    oai = site.options.oai
    return () if oai is None else (oai.origin, oai.prefix, oai.set_spec, oai.begin, oai.until)


def _requests(site: Site) -> tuple[object, ...]:
    """A site's requests to its source repository, as far as a check can find them wrong; empty for a harvest list."""
    oai = site.options.oai
    return () if oai is None else (site.list_url, oai.prefix, oai.set_spec, oai.post)


def _has_user(url: str) -> bool:
    parts = url_parts(url)
    return parts is not None and parts.username is not None


def _changed_contacts(values: SiteValues, before: Site | BrokenSite) -> tuple[str, ...]:
    if values.contacts is not NOT_GIVEN:
        raise RequestError("--contact replaces all contacts: use it alone, or --add-contact and --remove-contact.")
    contacts = list(before.contacts)
    for address in split_addresses(", ".join(values.remove_contacts)):
        if address.casefold() not in (each.casefold() for each in contacts):
            known = ", ".join(contacts) or "none"
            raise RequestError(f"{one_line(address)} is no contact of {before.name}. Its contacts: {known}.")
        contacts = [each for each in contacts if each.casefold() != address.casefold()]
    for address in split_addresses(", ".join(values.add_contacts)):
        with value_errors():
            checked = check_email(address)
        if checked.casefold() not in (each.casefold() for each in contacts):
            contacts.append(checked)
    if not contacts:
        raise RequestError(f"{before.name} would have no contact left: add another one with --add-contact.")
    return tuple(contacts)


def _given(values: SiteValues, names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name in names if (value := getattr(values, name)) is not NOT_GIVEN}


def _with_origin(
    values: SiteValues, former: Site | BrokenSite | None, sites: Callable[[], Iterable[Site | BrokenSite]]
) -> SiteValues:
    """The values with a unique origin, if one is needed and none is given."""
    is_asked = values.base_url is not NOT_GIVEN or (is_repository(former) and bool(_given(values, _OAI)))
    is_new = is_asked and (former is None or former.options.oai is None)
    if values.origin is not None and not (is_new and values.origin is NOT_GIVEN):
        return values
    url = values.base_url if isinstance(values.base_url, str) else former.list_url if former else ""
    given = origins(each for each in sites() if former is None or each.name != former.name)
    return replace(values, origin=origin_for(url, given))


def is_repository(site: Site | BrokenSite | None) -> bool:
    """True for a source repository, also if its row is broken."""
    return site is not None and (site.source_kind == OAI or site.options.oai is not None)


def _columns(values: SiteValues, before: Site | BrokenSite | None) -> dict[str, object]:
    """The given values, by the columns of the schedule. Raises RequestError if they do not fit together."""
    columns: dict[str, object] = {_COLUMNS[name]: value for name, value in _given(values, _COLUMNS).items()}
    is_oai, is_named = is_repository(before), values.base_url is not NOT_GIVEN
    if values.contacts is not NOT_GIVEN:
        columns["contact_email"] = ", ".join(values.contacts)
    if is_named:
        if values.list_url is not NOT_GIVEN:
            raise RequestError("--list-url is for a harvest list, --oai for a repository: use one of the two.")
        if before is not None and not is_oai:
            raise RequestError("The site has a harvest list. Register the repository as a site of its own.")
        columns |= {"documentlisturl": values.base_url, "source_kind": OAI}
    elif values.list_url is not NOT_GIVEN:
        if is_oai:
            raise RequestError("The site is an OAI-PMH repository: give its new address with --oai.")
        _require_no_question(values.list_url)
        columns["documentlisturl"] = values.list_url
    asked = _given(values, _OAI)
    if asked and not is_named and not is_oai:
        name = next(iter(asked))
        option = {"set_spec": "set", "begin": "from"}.get(name, name).replace("_", "-")
        raise RequestError(f"--{option} is for OAI-PMH repositories, which are registered with --oai BASEURL.")
    if asked or is_named or _given(values, _OWN) or values.add_groups or values.remove_groups:
        columns["options"] = options_text(_options(values, asked, before))
    return columns


def _require_no_question(list_url: str) -> None:
    """Raises RequestError for a request of OAI-PMH, such as `https://example.org/oai?verb=Identify`."""
    from metaharvest.sources.oai_pmh.protocol import VERBS

    parts = url_parts(list_url.strip())
    if parts and (verb := dict(parse_qsl(parts.query)).get("verb")) in VERBS:
        base = shown_url(list_url.strip().partition("?")[0])
        asked = f"this is a question to an OAI-PMH repository (verb={verb})"
        raise RequestError.about(
            "list_url",
            f"--list-url is for a harvest list, and {asked}: use --oai {base} instead.",
            f"The address of a harvest list is needed, and {asked}.",
        )


def _options(values: SiteValues, asked: Mapping[str, Any], before: Site | BrokenSite | None) -> SiteOptions:
    own = replace(before.options if before else SiteOptions(), **_given(values, _OWN))
    if values.add_groups or values.remove_groups:
        groups = {*own.groups, *values.add_groups} - set(values.remove_groups)
        own = replace(own, groups=tuple(sorted(groups)))
    if own.oai is None and "origin" not in asked:
        return own
    oai = own.oai or OaiOptions(asked["origin"])
    defaults = {"prefix": OaiOptions("").prefix} if asked.get("prefix", "") is None else {}
    return replace(own, oai=replace(oai, **{**asked, **defaults}))


def find(harvester: Harvester, name: str) -> Site | BrokenSite:
    """The site of this name. Raises ScheduleError."""
    return harvester.read(find_site, name)


def switch(
    harvester: Harvester,
    name: str,
    enabled: bool,
    also: Callable[[Session, AnySite, bool], None] = lambda session, site, paused: None,
) -> None:
    """Switch a site on or off; a pause of its contacts ends with that. Raises ScheduleError.

    `also` sees the site before the change, in its transaction, with True if a contact had paused it; it may raise.
    """
    with harvester.writing() as session:
        lock_sites(session, [name])
        former = find_site(session, name)
        switch_site(session, name, enabled)
        also(session, former, end_pauses(session, former.site_id))
        if former.enabled != enabled:
            action = "sites.enable" if enabled else "sites.disable"
            before, after = {"enabled": former.enabled}, {"enabled": enabled}
            harvester.audit(session, about(former, action, before, after))


def remove(harvester: Harvester, name: str, also: Also = lambda session, site: None) -> None:
    """Remove a site from the schedule; its runs, log, reports and documents stay. Raises ScheduleError.

    If the site is not public, its documents stay withheld. `also` sees the site in the transaction.
    """
    public_flags.keep_hidden(harvester, name)
    with harvester.writing() as session:
        former = find_site(session, name)
        also(session, former)
        steps.wake_site(session, StageName.INDEX, former.site_id)
        remove_site(session, name)
        harvester.audit(session, about(former, "sites.remove", before=values_of(former)))


def confirm(harvester: Harvester, name: str, seen: int | None = None) -> int | None:
    """Let the next harvest carry out the waiting deletions; their number. None if deletions are only recorded.

    `seen` is the number that the person saw. Raises ScheduleError, and RequestError if more wait by now.
    """
    with harvester.reading() as session:
        if only_records(find_site(session, name)):
            return None
    with harvester.writing() as session:
        site = find_site(session, name)
        number = confirm_deletions(session, site.site_id)
        if seen is not None and number > seen:
            wait = counted(number, "deletion waits", "deletions wait")
            raise RequestError(f"{wait} by now, and you saw {seen:,}. Look at them again.")
        if number:
            harvester.audit(session, about(site, "sites.confirm", after={"deletions": number}))
        return number


# -- decisions about sites, as the audit has them: the registered values before and after, without logins


_OTHER_LOGIN = (NOT_SHOWN, f"another one {NOT_SHOWN}")
"""A login before and after a change: the URLs look alike without it."""


def edition(former: Site | BrokenSite, site: Site, action: str = "sites.edit") -> Decision:
    """The values of a site that have changed."""
    before, after = changed(values_of(former), values_of(site))
    if _has_other_login(former, site):
        was, is_now = _OTHER_LOGIN
        before, after = {**before, "login": was}, {**after, "login": is_now}
    return about(site, action, before, after)


def about(site: Site | BrokenSite, action: str, before: Values | None = None, after: Values | None = None) -> Decision:
    """A decision about a site."""
    return Decision(action, "site", site.name, site.site_id, before=before, after=after)


def values_of(site: Site | BrokenSite) -> Values:
    """The values of a site that are set, without logins."""
    if isinstance(site, BrokenSite):
        return {"list_url": shown_url(site.list_url), "contacts": list(site.contacts), "enabled": site.enabled}
    stored = as_mapping(site)
    oai = {f"oai_{name}": value for name, value in (stored.pop("oai") or {}).items()}
    values = {**stored, **oai, "list_url": shown_url(site.list_url)}
    if site.ldap_password and not values["ldappwd"]:
        values["ldappwd"] = NOT_SHOWN
    return {name: value for name, value in values.items() if value not in (None, "", [], False) or name in _FLAGS}


def _has_other_login(former: Site | BrokenSite, site: Site) -> bool:
    if not isinstance(former, Site):
        return False
    is_other = former.list_url != site.list_url and shown_url(former.list_url) == shown_url(site.list_url)
    logins = has_login(former) or has_login(site)
    return (is_other and logins) or former.ldap_password != site.ldap_password
