"""Registrations: the requests of people outside, and a steward's decision about each."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.errors import RequestError
from metaharvest.reports.phrasing import frequency
from metaharvest.services import registrations
from metaharvest.services.registrations import Kind, Registration, State
from metaharvest.services.trials import TrialReport
from metaharvest.web.console.visit import Visit, known

_PAGE = 50


def show_all(visit: Visit) -> Response:
    """The requests that wait, or all of them."""
    everything = visit.query.get("show") == "all"
    found = registrations.waiting(visit.harvester, everything=everything, after=visit.after or 0, limit=_PAGE + 1)
    more = found[_PAGE - 1].registration_id if len(found) > _PAGE else None
    return visit.render("registrations.html", found=found[:_PAGE], everything=everything, more=more)


def show(visit: Visit, report: TrialReport | None = None) -> Response:
    """One request, its proofs, and the forms of the decision; with the report of a rehearsal."""
    found = _found(visit)
    is_complete = found.state is State.WAITING_FOR_DECISION
    is_waiting = is_complete or found.state is State.WAITING_FOR_PROOFS
    return visit.render(
        "registration.html",
        report=report,
        found=found,
        frequency=frequency(found.every, found.unit.value),
        is_open=is_waiting and found.kind is not Kind.ADDRESS,
        is_complete=is_complete,
        effect=registrations.effect(visit.harvester, found),
        can_mail=registrations.can_mail(found),
    )


def rehearse(visit: Visit) -> Response:
    """The rehearsal of the source as it is now."""
    report = None
    with visit.mistakes():
        report = registrations.rehearse(visit.harvester, _found(visit).registration_id)
    return show(visit, report)


def accept(visit: Visit) -> Response:
    """Carry the request out."""
    found = _found(visit)
    is_complete = found.state is State.WAITING_FOR_DECISION
    with visit.mistakes():
        if not is_complete and not visit.form.is_set("without"):
            raise RequestError(
                "The proofs are missing. Tick the box if you know the people, and accept it without them."
            )
        decided = registrations.accept(
            visit.harvester, found.registration_id, without_proofs=not is_complete, base_url=visit.console.url
        )
        return _back(visit, decided, f"The request for {found.name} is accepted.")
    return show(visit)


def refuse(visit: Visit) -> Response:
    """Refuse the request with a reason."""
    found = _found(visit)
    with visit.mistakes():
        decided = registrations.refuse(visit.harvester, found.registration_id, visit.form.text("reason"))
        return _back(visit, decided, f"The request for {found.name} is refused.")
    return show(visit)


def mail(visit: Visit) -> Response:
    """Send the last mail to the address of the request again."""
    number = _found(visit).registration_id
    with visit.mistakes():
        found = registrations.mail_last(visit.harvester, number, visit.console.url)
        return _back(visit, found, "" if found.mail_problem else f"The mail to {found.address} was sent again.")
    return show(visit)


def _back(visit: Visit, found: Registration, notice: str) -> Response:
    notice = f"{notice} {found.mail_problem}".strip()
    return visit.redirect("/console/registrations", found.registration_id, notice=notice)


def _found(visit: Visit) -> Registration:
    missing = "There is no registration with this number."
    with known(missing):
        return registrations.find(visit.harvester, visit.number("registration", missing))
