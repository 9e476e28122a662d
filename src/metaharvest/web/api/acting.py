"""The operations that act. Each is a service with the key as its actor, which writes the audit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metaharvest.services import registrations as registered
from metaharvest.services import reports, sites
from metaharvest.services import requests as asked
from metaharvest.services.json_documents import registration_document
from metaharvest.services.requests import Asked
from metaharvest.services.sites import AnySite, SiteValues
from metaharvest.web.api.call import Answer, Call
from metaharvest.web.api.problems import Problem
from metaharvest.web.api.reading import (
    asked_document,
    etag_of,
    find_request,
    mail,
    registration,
    require_site,
    site_answer,
)


def harvest(call: Call) -> Answer:
    """Ask for the harvest of a site; the answer says where to look at the request."""
    body = call.body
    _require_site(call, body.site)
    return _accepted(call, asked.ask_harvest(call.harvester, body.site, body.scope, priority=body.priority))


def stop(call: Call) -> Answer:
    """Stop the run under way, or the harvest of one site in it."""
    if call.body.site is not None:
        _require_site(call, call.body.site)
    return _accepted(call, asked.ask_stop(call.harvester, call.body.site))


def skip(call: Call) -> Answer:
    """Leave a site out of the next run."""
    _require_site(call, call.body.site)
    return _accepted(call, asked.skip_tonight(call.harvester, call.body.site))


def cancel(call: Call) -> Answer:
    """Take a request back, as long as no run has taken it."""
    found = find_request(call)
    asked.cancel(call.harvester, found.request.request_id)
    return Answer(asked_document(call, find_request(call)))


def confirm(call: Call) -> Answer:
    """Let the next harvest carry out the deletions of a site that wait."""
    name = call.path["site"]
    with call.harvester.reading() as session:
        require_site(session, name)
    number = sites.confirm(call.harvester, name)
    if number is None:
        raise Problem(409, "Deletions of this site are only recorded: change its deletions first.")
    return Answer({"site": name, "deletions": number})


def edit(call: Call) -> Answer:
    """Change values of a site, if nobody has changed it since it was read."""
    name = call.path["site"]
    with call.harvester.reading() as session:
        require_site(session, name)
    given = call.body.model_dump(exclude_unset=True)
    if not given:
        raise Problem(422, "Nothing to change: give at least one value.")
    found = sites.find(call.harvester, name)
    if list(given) == ["enabled"]:
        # A broken site can be switched, too.
        sites.switch(
            call.harvester, name, given["enabled"], lambda _session, before, _paused: _require_unchanged(call, before)
        )
    else:
        _require_unchanged(call, found)
        values = SiteValues(**_values(found, given))
        [edited] = sites.edit(
            call.harvester, [name], values, also=lambda _session, before: _require_unchanged(call, before)
        )
        name = edited.site.name
    return site_answer(call, name)


def resend(call: Call) -> Answer:
    """Send a mail again."""
    mail(call)  # raises Problem for an unknown mail
    reports.resend(call.harvester, call.number("report", "mail"), call.body.to)
    return replace(mail(call), status=202)


def accept(call: Call) -> Answer:
    """Accept a registration: the site is registered, moved, or removed."""
    registration(call)  # raises Problem for an unknown registration
    number = call.number("registration", "registration")
    done = registered.accept(call.harvester, number, without_proofs=call.body.without_proofs)
    return Answer(registration_document(done))


def refuse(call: Call) -> Answer:
    """Refuse a registration; the reason is mailed."""
    registration(call)  # raises Problem for an unknown registration
    number = call.number("registration", "registration")
    return Answer(registration_document(registered.refuse(call.harvester, number, call.body.reason)))


def _require_site(call: Call, name: str) -> None:
    """Raises Problem if a body names a site that is not registered."""
    with call.harvester.reading() as session:
        try:
            require_site(session, name)
        except Problem as problem:
            raise Problem(422, problem.detail, kind="schedule") from problem


def _require_unchanged(call: Call, site: AnySite) -> None:
    if "*" not in call.expected and etag_of(site) not in call.expected:
        raise Problem(412, "The site was changed since it was read: read it again, and repeat the change.")


def _values(site: AnySite, given: dict[str, Any]) -> dict[str, Any]:
    """The values for a service from the body."""
    values = dict(given)
    if "site" in values:
        values["name"] = values.pop("site")
    if "list_url" in values:
        values["list_url"] = sites.with_login(site, values["list_url"])
    if sites.is_repository(site) and "list_url" in values:
        values["base_url"] = values.pop("list_url")
    if "contacts" in values:
        values["contacts"] = tuple(values["contacts"])
    if "groups" in values:
        wanted, has = set(values.pop("groups")), set(site.options.groups)
        for group in wanted:
            try:
                sites.check_group(group)
            except ValueError as error:
                raise Problem(422, f"{error}.") from error
        values |= {"add_groups": tuple(sorted(wanted - has)), "remove_groups": tuple(sorted(has - wanted))}
    return values


def _accepted(call: Call, request: Asked) -> Answer:
    """The status 202, with the address of the request."""
    document = asked_document(call, request)
    return Answer(document, status=202, headers={"Location": str(document["url"])})
