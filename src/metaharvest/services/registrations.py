"""Registrations: a person outside asks for the harvest of a site; two proofs and a steward's decision make it one.

    ask -> rehearsal -> mail to the address -> prove_address -> proof of the source -> accept or refuse

The source is proved by a mail to an address that it names (Identify's adminEmail, a contact of the documents), or by a
comment in the harvest list. The mail to that address is sent only after the address of the request is proved, so that
a stranger makes us send mails to one address only. Nothing is in the schedule before a steward accepts. A mail that was
not sent is noted in the request, and can be sent again.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from typing import BinaryIO, cast
from urllib.parse import quote

from sqlalchemy.orm import Session

from metaharvest.accounts.audit import Decision
from metaharvest.database.hashed_tokens import hash_of, new_comment_token, new_token
from metaharvest.errors import DatabaseUnavailable, FetchError, ListError, RequestError, ScheduleError
from metaharvest.fetch.client import Fetcher
from metaharvest.harvest import adhoc_client
from metaharvest.mail.message import RenderedText
from metaharvest.mail.notices import send_now
from metaharvest.model import OaiOptions, Site, SiteOptions, Unit
from metaharvest.model.mappings import picked, record_of
from metaharvest.model.values import frozen
from metaharvest.rehearsal.trial import bounded
from metaharvest.reports.letters import DoorLetter
from metaharvest.reports.phrasing import frequency
from metaharvest.reports.render import render_page
from metaharvest.services import sites, trials
from metaharvest.services.harvester import Harvester
from metaharvest.services.sites import AnySite, RepositoryAnswer, SiteValues
from metaharvest.services.trials import TrialReport
from metaharvest.sites.options import options_text
from metaharvest.sites.registrations import policy, store
from metaharvest.sites.registrations.policy import Kind, Proof, State
from metaharvest.sites.registrations.store import Registration
from metaharvest.sites.registry import new_site, read_site, read_sites
from metaharvest.sites.rows import HARVEST_LIST, OAI
from metaharvest.sites.same_source import same_source
from metaharvest.sources.base import TimeBudget
from metaharvest.text import one_line, shown_url

__all__ = ["HARVEST_LIST", "Kind", "Proof", "Registration", "State"]

ADDRESS_PAGE = "/console/register/address/"
SOURCE_PAGE = "/console/register/source/"
MY_SITE_PAGE = "/console/my/"
"""The pages that the mailed links open; the token, or the name of the site, follows."""

_LIST_BYTES = 20 * 1_048_576
_LONGEST_REASON = 2000
_LONGEST_PREFIX = 255
_MAILED_NOW = "A link is being mailed at this moment. Look into your mail."
_NOT_MAILED = "The server ended, or lost its database, while it mailed the decision."
"""The problem of a mail until it is sent."""


@frozen
class Question:
    """The form of a person who registers a site. `source_kind` is `harvest-list` or `oai-pmh`."""

    name: str
    url: str
    address: str
    source_kind: str = HARVEST_LIST
    every: int = 1
    unit: Unit = Unit.DAYS
    prefix: str = ""
    set_spec: str = ""


@frozen
class Asked:
    """The answer to a question: the rehearsal, and, if the source could be read, the request.

    `repository` is the answer of a source repository.
    """

    report: TrialReport
    registration: Registration | None = None
    repository: RepositoryAnswer | None = None


def comment(found: Registration) -> str:
    """The comment that proves the list of a request; empty for a source repository."""
    return f"<!-- metaharvest-proof: {found.list_token} -->" if found.list_token else ""


def link(harvester: Harvester, page: str, token: str, base_url: str = "") -> str:
    """The address of a page with a token; `base_url` is the address of the console if the settings have none."""
    base = harvester.settings.web.url or base_url
    if not base:
        raise RequestError("The administrator has to set [web] url: links in mails need the address of this console.")
    return f"{base.rstrip('/')}{page}{token}"


def ask(harvester: Harvester, question: Question, base_url: str = "") -> Asked:
    """Rehearse a site, and keep the request; mails a link to its address. Raises RequestError, ScheduleError."""
    name, address = policy.checked_name(question.name), policy.checked_address(question.address)
    url = policy.checked_url(question.url)
    policy.checked_frequency(question.every, question.unit)
    if question.source_kind not in (HARVEST_LIST, OAI):
        raise RequestError("Choose one: a harvest list, or an OAI-PMH repository.")
    columns = _columns(replace(question, name=name, url=url.url, address=address))
    planned = new_site(columns)
    link(harvester, ADDRESS_PAGE, "", base_url)
    number = _entered(harvester, planned, url.host)
    repository = None
    if planned.options.oai is not None:
        inner = Harvester(bounded(harvester.settings), harvester.now)
        with trials.place():
            repository = sites.ask_repository(inner, planned)
        if repository.identity is None:
            return Asked(trials.unreadable(repository.problems, url.url), repository=repository)
    report = trials.try_source(harvester, columns).report
    if not report.is_readable or report.is_document:
        return Asked(report, repository=repository)
    contacts = report.contacts if repository is None else repository.contacts[:5]
    with harvester.writing() as session:
        store.change(
            session, number, state=State.WAITING_FOR_PROOFS.value, summary=one_line(report.story, 1000),
            list_token=new_comment_token() if repository is None else None, source_contacts=list(contacts),
        )  # fmt: skip
    mail_link(harvester, number, base_url)
    return Asked(report, find(harvester, number), repository)


def _columns(question: Question) -> dict[str, object]:
    """The columns of the site that is asked for. Raises RequestError."""
    is_oai = question.source_kind == OAI
    if len(question.prefix.strip()) > _LONGEST_PREFIX:
        raise RequestError.about("prefix", f"A metadata prefix has at most {_LONGEST_PREFIX} characters.")
    oai = OaiOptions("asked", question.prefix.strip() or OaiOptions("").prefix, question.set_spec.strip() or None)
    return {
        "name": question.name,
        "documentlisturl": question.url,
        "contact_email": question.address,
        "updatefrequency": question.every,
        "unit": question.unit,
        "source_kind": question.source_kind,
        "options": options_text(SiteOptions(oai=oai if is_oai else None)),
    }


def _entered(harvester: Harvester, site: Site, host: str) -> int:
    """Enter the request, to be counted before anything is fetched; its number. Raises RequestError."""
    now = harvester.now()
    with harvester.writing() as session:
        known = read_sites(session)
        if same := same_source(site, known):
            raise RequestError.about(
                "url",
                f"The site '{one_line(same.name)}' harvests this source already. "
                "If you are one of its contacts, you can change it in My sites.",
            )
        if any(each.name.casefold() == site.name.casefold() for each in known):
            raise RequestError.about("name", f"There is a site named '{site.name}' already. Choose another name.")
        store.expire(session, now)
        oai = site.options.oai
        number = store.add(
            session, kind=Kind.SITE.value, state=State.ASKED.value, name=site.name, source_kind=site.source_kind,
            url=site.list_url, prefix=oai.prefix if oai else None, set_spec=oai.set_spec if oai else None,
            address=site.contacts[0], frequency=site.frequency, unit=site.unit.value, host=host, asked_at=now,
        )  # fmt: skip
    with harvester.writing() as session:
        counts = store.counts(session, host, site.contacts[0], now)
        try:
            policy.require_within_limits(counts)
        except RequestError:
            store.remove(session, number)
            session.commit()
            raise
    return number


def mail_link(harvester: Harvester, registration_id: int, base_url: str = "") -> None:
    """Mail the link to the address of a request; the links before are not valid any more. Raises RequestError.

    If the mail cannot be sent, the request says so.
    """
    found = find(harvester, registration_id)
    if found.kind is not Kind.SITE or found.state is not State.WAITING_FOR_PROOFS or found.address_proved_at:
        raise RequestError("This request no longer needs its link.")
    if found.address_mails >= policy.MOST_MAILS:
        raise RequestError(f"The link was mailed {policy.MOST_MAILS} times. Check your spam folder.")
    token = new_token()
    # Before the token is stored: without a web address, the link of the last mail stays valid.
    letter = letter_about(
        harvester, found.name, url=found.url, link=link(harvester, ADDRESS_PAGE, token, base_url), proof=comment(found)
    )
    with harvester.writing() as session:
        if not store.count_mail(session, found, "address_mails", address_token=hash_of(token)):
            raise RequestError(_MAILED_NOW)
    send_about(harvester, found, "registration_link", found.address, letter)


def letter_about(harvester: Harvester, name: str, **values: str) -> DoorLetter:
    """The values of a mail about the site of this name."""
    return DoorLetter(harvester.settings.harvester.name, name, days=policy.LIFETIME.days, **values)


def send_about(harvester: Harvester, found: Registration, template: str, recipient: str, letter: DoorLetter) -> str:
    """Send a mail about a request; the reason if it was not sent, which the request keeps, or an empty text."""
    # Made of the templates `email/TEMPLATE/`, and sent at once: it is not stored, as its link is a secret.
    settings = harvester.settings
    parts = ("subject.txt", "body.txt", "body.html")
    subject, text, html = (render_page(f"email/{template}/{part}", letter, settings) for part in parts)
    rendered = RenderedText(one_line(subject.strip()), text, html)
    is_sent = send_now(settings, template, recipient, rendered, harvester.now())
    problem = "" if is_sent else f"The mail to {one_line(recipient)} could not be sent. Try again in an hour."
    harvester.write(store.change, found.registration_id, tuple(State), mail_problem=problem or None)
    return problem


# -- the proofs


def of_address(harvester: Harvester, token: str) -> Registration:
    """The request whose link was mailed to its address. Raises RequestError if the link is not valid any more."""
    return _valid(harvester.read(store.with_address_token, token), harvester)


def of_source(harvester: Harvester, token: str) -> Registration:
    """The request whose link was mailed to its source. Raises RequestError if the link is not valid any more."""
    return _valid(harvester.read(store.with_source_token, token), harvester)


def _valid(found: Registration | None, harvester: Harvester) -> Registration:
    if found is None or found.kind is not Kind.SITE or policy.is_expired(found.state, found.asked_at, harvester.now()):
        raise RequestError("This link is no longer valid. Register the site again to get a new one.")
    return found


def prove_address(harvester: Harvester, token: str, base_url: str = "") -> Registration:
    """Note that the address is proved; mails a link to the source repository's own address. Raises RequestError."""
    found = of_address(harvester, token)
    if found.address_proved_at is not None:
        return found
    own = policy.names_address(found.source_contacts, found.address)
    _prove(harvester, found, address=True, proof=Proof.ADDRESS if own else None)
    if found.source_kind == OAI and found.source_contacts and not own:
        with suppress(RequestError):  # the page shows the reason, and offers it again
            mail_source(harvester, token, found.source_contacts[0], base_url)
    return of_address(harvester, token)


def mail_source(harvester: Harvester, token: str, contact: str, base_url: str = "") -> None:
    """Mail a link to an address that the source names. Raises RequestError."""
    found, now = of_address(harvester, token), harvester.now()
    if found.address_proved_at is None:
        raise RequestError("Confirm your own address first: the link was mailed to you.")
    if found.source_proved_at is not None:
        return
    if contact not in found.source_contacts:
        raise RequestError("The source does not name this address. Choose one of the addresses in it.")
    if found.source_mailed_at is not None and now - found.source_mailed_at < policy.MAIL_AGAIN:
        raise RequestError(f"A link was mailed to {found.source_mailed_to}. If it does not come, try again in an hour.")
    if found.source_mails >= policy.MOST_MAILS:
        raise RequestError(f"Links were mailed {policy.MOST_MAILS} times. Ask the administrator.")
    source_token = new_token()
    source_link = link(harvester, SOURCE_PAGE, source_token, base_url)
    mailed = {"source_mailed_to": contact, "source_mailed_at": now, "source_token": hash_of(source_token)}
    with harvester.writing() as session:
        if store.mailed_to(session, contact, now) >= policy.MAILED_TO_ADDRESS:
            raise RequestError("This address got too many mails today. Try again tomorrow.")
        if not store.count_mail(session, found, "source_mails", **mailed):
            raise RequestError(_MAILED_NOW)
    letter = letter_about(harvester, found.name, url=found.url, address=found.address, link=source_link)
    if problem := send_about(harvester, found, "source_proof", contact, letter):
        harvester.write(store.change, found.registration_id, (State.WAITING_FOR_PROOFS,), **dict.fromkeys(mailed))
        raise RequestError(problem)


def prove_source(harvester: Harvester, token: str) -> Registration:
    """Note that a person at the source has agreed. Raises RequestError."""
    found = of_source(harvester, token)
    if found.source_proved_at is None:
        _prove(harvester, found, proof=Proof.MAIL)
    return of_source(harvester, token)


def look_for_comment(harvester: Harvester, token: str) -> Registration:
    """Fetch the list again, and look for the comment in it. Raises RequestError if it is not there."""
    found = of_address(harvester, token)
    if found.source_proved_at is not None:
        return found
    if not found.list_token:
        raise RequestError("Only a harvest list can have the comment.")
    if found.list_looks >= policy.MOST_LOOKS:
        raise RequestError(f"The list was read {policy.MOST_LOOKS} times for this. Ask the administrator.")
    harvester.write(store.change, found.registration_id, (State.WAITING_FOR_PROOFS,), list_looks=found.list_looks + 1)
    with trials.place():
        content = _fetched(harvester, found)
    if found.list_token not in policy.proofs_in(content):
        raise RequestError("The list has no comment with this token yet. Publish the list with it, and try again.")
    _prove(harvester, found, proof=Proof.COMMENT)
    return of_address(harvester, token)


def _fetched(harvester: Harvester, found: Registration) -> bytes:
    settings = bounded(harvester.settings)
    site = new_site({"name": found.name, "documentlisturl": found.url, "contact_email": found.address})

    async def fetch(site: Site, fetcher: Fetcher, _budget: TimeBudget) -> bytes:
        with tempfile.TemporaryFile(prefix="metaharvest-") as file:
            await fetcher.fetch_to(site.list_url, cast(BinaryIO, file), seconds=trials.SECONDS)
            file.seek(0)
            return file.read(_LIST_BYTES)

    try:
        return adhoc_client.ask(settings, site, fetch)
    except (FetchError, ListError) as error:
        first = trials.unreadable(error.findings, found.url).findings[0]
        raise RequestError(f"{first.message} {first.remedy}".strip()) from error


def _prove(harvester: Harvester, found: Registration, *, address: bool = False, proof: Proof | None = None) -> None:
    now = harvester.now()
    values: dict[str, object] = {"address_proved_at": now} if address else {}
    if proof is not None:
        values |= {"source_proved_at": now, "source_proof": proof.value}
    with harvester.writing() as session:
        store.change(session, found.registration_id, (State.WAITING_FOR_PROOFS,), **values)
        new = store.find(session, found.registration_id)
        if new.state is State.WAITING_FOR_PROOFS:
            state = policy.state_after(new.address_proved_at is not None, new.source_proved_at is not None)
            store.change(session, found.registration_id, (State.WAITING_FOR_PROOFS,), state=state.value)


# -- the decision


def waiting(harvester: Harvester, *, everything: bool = False, after: int = 0, limit: int = 100) -> list[Registration]:
    """The requests that wait for a decision, or for proofs; `everything`: decided and expired ones, too."""
    states = tuple(State) if everything else (State.WAITING_FOR_DECISION, State.WAITING_FOR_PROOFS)
    # A busy database must not keep the list from being shown.
    with suppress(DatabaseUnavailable), harvester.writing() as session:
        store.expire(session, harvester.now())
    return harvester.read(store.listed, states, after, limit)


def find(harvester: Harvester, registration_id: int) -> Registration:
    """The request of this number. Raises RequestError."""
    return harvester.read(store.find, registration_id)


def accept(
    harvester: Harvester, registration_id: int, *, without_proofs: bool = False, base_url: str = ""
) -> Registration:
    """Carry out a request: register the site, move it, or remove it; mails its address. Raises RequestError.

    `without_proofs`: the steward knows the people. Raises ScheduleError if the site cannot be registered.
    """
    found = _to_decide(harvester, registration_id, without_proofs=without_proofs)
    _carry_out(harvester, found)
    return _mail_if_announced(harvester, registration_id, base_url)


def refuse(harvester: Harvester, registration_id: int, reason: str) -> Registration:
    """Refuse a request; mails the reason to its address, if that is proved. Raises RequestError."""
    reason = reason.strip()
    if not reason or len(reason) > _LONGEST_REASON:
        raise RequestError("Give the reason, in up to 2,000 characters: it is mailed to the person who asked.")
    found = _to_decide(harvester, registration_id, without_proofs=True)
    with harvester.writing() as session:
        _decide(harvester, session, found, state=State.REFUSED.value, reason=reason)
    return _mail_if_announced(harvester, registration_id)


def _mail_if_announced(harvester: Harvester, registration_id: int, base_url: str = "") -> Registration:
    """Mail the decision, if decisions of this kind are mailed; return the request."""
    if _is_announced(find(harvester, registration_id)):
        mail_decision(harvester, registration_id, base_url)
    return find(harvester, registration_id)


def mail_decision(harvester: Harvester, registration_id: int, base_url: str = "") -> None:
    """Mail the decision to the address of a request. The request says so if the mail cannot be sent.

    Raises RequestError if there is nothing to say.
    """
    found = find(harvester, registration_id)
    if not _is_announced(found):
        raise RequestError("There is no decision to be mailed, or the address was not proved.")
    if found.state is State.REFUSED:
        template, values = "registration_refused", {"reason": found.reason}
    else:
        template, values = "registration_accepted", {"schedule": frequency(found.every, found.unit.value)}
        with suppress(RequestError):  # the mail is sent without the address of the site's page
            values["link"] = link(harvester, MY_SITE_PAGE, quote(found.name, safe=""), base_url)
    letter = letter_about(harvester, found.name, url=found.url, **values)
    send_about(harvester, found, template, found.address, letter)


def can_mail(found: Registration) -> bool:
    """True if there is a mail that can be sent to the address of the request again."""
    is_unproved = found.state is State.WAITING_FOR_PROOFS and found.address_proved_at is None
    return _is_announced(found) or (found.kind is Kind.SITE and is_unproved and found.address_mails < policy.MOST_MAILS)


def mail_last(harvester: Harvester, registration_id: int, base_url: str = "") -> Registration:
    """Mail the decision, or the link if there is none, to the address of a request again. Raises RequestError."""
    found = find(harvester, registration_id)
    if _is_announced(found):
        mail_decision(harvester, registration_id, base_url)
    else:
        mail_link(harvester, registration_id, base_url)
    return find(harvester, registration_id)


def rehearse(harvester: Harvester, registration_id: int) -> TrialReport:
    """The rehearsal of the source of a request as it is now. Raises RequestError, ScheduleError."""
    found = find(harvester, registration_id)
    question = record_of(Question, found, prefix=found.prefix or "", set_spec=found.set_spec or "")
    return trials.try_source(harvester, _columns(question)).report


def effect(harvester: Harvester, found: Registration) -> tuple[str, ...]:
    """The changes that accepting a request makes, a sentence each."""
    if found.kind is Kind.SITE:
        often = frequency(found.every, found.unit.value)
        return (
            f"The site {found.name} is registered, and harvested {often} from the next run on.",
            f"The reports go to {found.address}.",
        )
    site = harvester.read(read_site, found.site_id or 0)
    if site is None:
        return (f"The site {found.name} was removed meanwhile.",)
    if found.kind is Kind.MOVE:
        before = shown_url(site.list_url) if isinstance(site, Site) else "an unknown address"
        moved = f"The site {site.name} is harvested from {found.url}, and no longer from {before}."
        lost = "The user name and password in its former URL are not kept: the new URL needs its own, if any."
        return (moved, lost) if sites.loses_login(site.list_url, found.url) else (moved,)
    if found.kind is Kind.LEAVE:
        return (f"The site {site.name} is removed from the schedule. Its documents stay.",)
    return ()


def _is_announced(found: Registration) -> bool:
    """True if a decision is mailed; the page of the site shows the others."""
    if found.state is State.REFUSED:
        return found.address_proved_at is not None
    return found.state is State.ACCEPTED and found.kind is Kind.SITE


def _to_decide(harvester: Harvester, registration_id: int, *, without_proofs: bool) -> Registration:
    found = find(harvester, registration_id)
    if found.kind is Kind.ADDRESS:
        raise RequestError(f"Registration {registration_id} is a new email address: its link confirms it, nobody else.")
    if found.state is State.WAITING_FOR_DECISION or (without_proofs and found.state is State.WAITING_FOR_PROOFS):
        return found
    if found.state is State.WAITING_FOR_PROOFS:
        raise RequestError(f"Registration {registration_id} still waits for proofs: it can be accepted without them.")
    raise RequestError(f"Registration {registration_id} is {found.state.words}: there is nothing to decide.")


def _decide(harvester: Harvester, session: Session, found: Registration, **columns: object) -> None:
    """Store a decision, in the transaction that carries it out. Raises RequestError if another person was faster."""
    decided = {"decided_at": harvester.now(), "decided_by": one_line(harvester.actor.name, 255) or None, **columns}
    if not store.change(session, found.registration_id, (found.state,), **decided):
        raise RequestError("Another person has decided about this registration. Look at it again.")
    after = store.find(session, found.registration_id)
    if _is_announced(after):
        store.change(session, found.registration_id, (after.state,), mail_problem=_NOT_MAILED)
    action = "registrations.accept" if after.state is State.ACCEPTED else "registrations.refuse"
    # The audit has no addresses.
    was, is_now = {"state": found.state}, picked(after, "state kind url proof=source_proof")
    about = Decision(action, "registration", after.name, after.site_id, before=was, after=is_now, reason=after.reason)
    harvester.audit(session, about)


def _carry_out(harvester: Harvester, found: Registration) -> None:
    def accepted(session: Session, site: AnySite) -> None:
        _decide(harvester, session, found, state=State.ACCEPTED.value, site_schedule_id=site.site_id)

    if found.kind is Kind.SITE:
        sites.register(harvester, _values(found), also=accepted)
        return
    site = harvester.read(read_site, found.site_id or 0)
    if site is None:
        raise ScheduleError(f"The site {one_line(found.name)} was removed meanwhile.")
    if found.kind is Kind.MOVE:
        sites.edit(harvester, [site.name], sites.url_values(found.source_kind, found.url), also=accepted)
    elif found.kind is Kind.LEAVE:
        sites.remove(harvester, site.name, also=accepted)
    else:
        raise RequestError("There is nothing for a steward to decide.")


def _values(found: Registration) -> SiteValues:
    values = replace(
        sites.url_values(found.source_kind, found.url),
        name=found.name,
        contacts=(found.address,),
        every=found.every,
        unit=found.unit,
    )
    return replace(values, prefix=found.prefix, set_spec=found.set_spec) if found.source_kind == OAI else values
