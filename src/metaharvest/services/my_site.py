"""The changes that a contact of a site may make: schedule, reports, address, a pause, a move, leaving the network.

Each takes the name of the site and the address of the contact, who has signed in; the link in a report only reads.
What a contact may not do alone becomes a request that waits for a steward.
"""

from __future__ import annotations

from sqlalchemy.orm import Session

from metaharvest.database.hashed_tokens import hash_of, new_token
from metaharvest.errors import RequestError, SameSource
from metaharvest.fetch.url import BadUrl, parse_url, without_login
from metaharvest.model import Notify, Site, Unit
from metaharvest.model.requests import Actor
from metaharvest.model.values import frozen
from metaharvest.services import sites
from metaharvest.services.harvester import Harvester
from metaharvest.services.registrations import letter_about, link, send_about
from metaharvest.services.sites import AnySite, Edited, SiteValues, url_values
from metaharvest.sites import page_link
from metaharvest.sites.registrations import policy, store
from metaharvest.sites.registrations.policy import Kind, State
from metaharvest.sites.registrations.store import Registration
from metaharvest.sites.registry import find_site, lock_sites, read_site

ADDRESS_PAGE = "/console/my-site/address/"
"""The page that confirms a new address; the token follows."""

_NOT_YOURS = "Your address is not among the contacts of this site."
_NO_CONTACT = "The former address is no longer a contact of the site. Ask the steward."
_WAITING = (State.WAITING_FOR_PROOFS, State.WAITING_FOR_DECISION)


@frozen
class Schedule:
    """How often a site is harvested, and when its contacts get reports."""

    every: int
    unit: Unit
    notify: Notify


def of_report_link(harvester: Harvester, token: str) -> Site:
    """The site that the link of a report opens, for reading only. Raises RequestError."""
    number = page_link.site_number(token)
    site = harvester.read(read_site, number) if number is not None else None
    if isinstance(site, Site) and page_link.is_valid(harvester.settings, token, site, harvester.today()):
        return site
    raise RequestError("This link is no longer valid. Open the link in the newest report, or sign in.")


def change_schedule(harvester: Harvester, name: str, by: str, schedule: Schedule) -> Edited:
    """Change how often the site is harvested, and when it gets reports. Raises RequestError, ScheduleError."""
    policy.checked_frequency(schedule.every, schedule.unit)
    require_contact(harvester, name, by)
    values = SiteValues(every=schedule.every, unit=schedule.unit, notify=schedule.notify)
    return sites.edit(harvester, [name], values)[0]


def pause(harvester: Harvester, name: str, by: str) -> None:
    """Switch the site off, until a contact or a steward switches it on. Raises RequestError."""
    site = require_contact(harvester, name, by)
    if not site.enabled:
        raise RequestError(f"{name} is switched off already.")

    def note(session: Session, _site: AnySite, _was_paused: bool) -> None:
        _add(session, harvester, site, Kind.PAUSE, State.ACCEPTED, address=by)

    sites.switch(harvester, name, enabled=False, also=note)


def resume(harvester: Harvester, name: str, by: str) -> None:
    """Switch the site on again, if a contact has switched it off; a request to leave ends. Raises RequestError."""
    site = require_contact(harvester, name, by)
    if site.enabled:
        return

    def end(session: Session, _site: AnySite, was_paused: bool) -> None:
        if not was_paused:
            raise RequestError("A steward has switched the site off: write to the steward.")
        for asked in store.of_site(session, site.site_id, Kind.LEAVE, _WAITING):
            store.change(session, asked.registration_id, _WAITING, state=State.EXPIRED.value)

    sites.switch(harvester, name, enabled=True, also=end)


def ask_for_address(harvester: Harvester, name: str, by: str, address: str, base_url: str = "") -> None:
    """Mail a link to a new address, which takes the place of the old one when it is used. Raises RequestError."""
    new = policy.checked_address(address)
    site = require_contact(harvester, name, by)
    if policy.names_address(site.contacts, new):
        raise RequestError.about("address", f"{new} is a contact of {name} already.")
    token = new_token()
    address_link = link(harvester, ADDRESS_PAGE, token, base_url)
    with harvester.writing() as session:
        store.expire(session, harvester.now())
        number = _add(
            session, harvester, site, Kind.ADDRESS, State.WAITING_FOR_PROOFS, address=new, reason=by,
            address_token=hash_of(token),
        )  # fmt: skip
        of_site = store.of_site(session, site.site_id, Kind.ADDRESS, tuple(State))
        recent = [each for each in of_site if harvester.now() - each.asked_at < policy.DAY]
        if len(recent) > policy.ASKED_BY_ADDRESS:
            raise RequestError("The addresses of this site were changed too often today. Try again tomorrow.")
        policy.require_within_limits(store.counts(session, "", new, harvester.now()))
        asked = store.find(session, number)
    letter = letter_about(harvester, site.name, address=new, link=address_link)
    if problem := send_about(harvester, asked, "address_confirmation", new, letter):
        harvester.write(store.change, number, state=State.EXPIRED.value, address_token=None)
        raise RequestError(problem)


def of_address(harvester: Harvester, token: str) -> Registration:
    """The request whose link was mailed to a new address. Raises RequestError if the link is not valid any more."""
    found = harvester.read(store.with_address_token, token)
    if found is None or found.kind is not Kind.ADDRESS or found.state is not State.WAITING_FOR_PROOFS:
        raise RequestError("This link is no longer valid. Ask for another one on the page of the site.")
    if policy.is_expired(found.state, found.asked_at, harvester.now()):
        raise RequestError("This link is too old. Ask for another one on the page of the site.")
    return found


def prove_address(harvester: Harvester, token: str) -> Registration:
    """Replace the old address by the new one; the old one gets a mail. Raises RequestError, ScheduleError."""
    found = of_address(harvester, token)
    done = {"state": State.ACCEPTED.value, "address_proved_at": harvester.now(), "address_token": None}
    site = harvester.read(read_site, found.site_id or 0)
    if not isinstance(site, Site):
        raise RequestError(_NO_CONTACT)

    def proved(session: Session, before: AnySite) -> None:
        if not store.change(session, found.registration_id, (State.WAITING_FOR_PROOFS,), **done):
            raise RequestError("This link was used already.")
        if not policy.names_address(before.contacts, found.reason):
            raise RequestError(_NO_CONTACT)

    values = SiteValues(add_contacts=(found.address,), remove_contacts=(found.reason,))
    sites.edit(harvester.acting(Actor(found.address, harvester.actor.via)), [site.name], values, also=proved)
    letter = letter_about(harvester, site.name, address=found.address)
    send_about(harvester, found, "address_changed", found.reason, letter)
    return found


def move(harvester: Harvester, name: str, by: str, url: str) -> Registration | None:
    """Change the address of the list or repository; on another host a steward decides: then the request is returned.

    Raises RequestError, ScheduleError.
    """
    address = policy.checked_url(url)
    site = require_contact(harvester, name, by)
    if without_login(site.list_url) == address.url:
        raise RequestError.about("url", f"{name} is harvested from this address already.")
    if _server(site.list_url) == (address.host, address.port):
        try:
            sites.edit(harvester, [name], url_values(site.source_kind, address.url))
        except SameSource:  # the contact does not learn the name of the other site
            raise RequestError.about("url", "This address cannot be taken. Ask the steward.") from None
        return None
    return _for_steward(harvester, site, by, Kind.MOVE, address.url)


def leave(harvester: Harvester, name: str, by: str) -> Registration:
    """Switch the site off, and ask a steward to remove it; its documents stay. Raises RequestError."""
    site = require_contact(harvester, name, by)
    asked = _for_steward(harvester, site, by, Kind.LEAVE, site.list_url)
    if site.enabled:
        pause(harvester, name, by)
    return asked


def waiting(harvester: Harvester, name: str) -> list[Registration]:
    """The requests of a site that wait for a proof or a decision. Raises ScheduleError."""
    with harvester.reading() as session:
        site_id = find_site(session, name).site_id
        kinds = (Kind.MOVE, Kind.ADDRESS, Kind.LEAVE)
        return [each for kind in kinds for each in store.of_site(session, site_id, kind, _WAITING)]


def require_contact(harvester: Harvester, name: str, by: str) -> Site:
    """The site, if this address is a contact of it. Raises RequestError."""
    site = sites.find(harvester, name)
    if not isinstance(site, Site):
        raise RequestError(f"The registration of {name} cannot be used. Ask the steward.")
    if not policy.names_address(site.contacts, by):
        raise RequestError(_NOT_YOURS)
    return site


def _for_steward(harvester: Harvester, site: Site, by: str, kind: Kind, url: str) -> Registration:
    """A request that waits for a steward; a second one of the same kind is refused. Raises RequestError."""
    with harvester.writing() as session:
        lock_sites(session, [site.name])
        if store.of_site(session, site.site_id, kind, _WAITING):
            raise RequestError("The same request already waits for the steward.")
        number = _add(
            session, harvester, site, kind, State.WAITING_FOR_DECISION, address=by, address_proved_at=harvester.now(),
            url=url, host=_server(url)[0],
        )  # fmt: skip
        return store.find(session, number)


def _add(session: Session, harvester: Harvester, site: Site, kind: Kind, state: State, **columns: object) -> int:
    """Add a request about this site with these columns; its number."""
    of_site = {
        "site_schedule_id": site.site_id, "name": site.name, "source_kind": site.source_kind, "url": site.list_url,
        "frequency": site.frequency, "unit": site.unit.value, "host": "",
    }  # fmt: skip
    return store.add(session, kind=kind.value, state=state.value, asked_at=harvester.now(), **(of_site | columns))


def _server(url: str) -> tuple[str, int]:
    try:
        address = parse_url(url)
    except BadUrl:
        return "", 0
    return address.host, address.port
