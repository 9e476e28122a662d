"""Register a site: the form of a person without an account, the rehearsal, and the two proofs by mailed links."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.responses import Response

from metaharvest.errors import PublishingError, RequestError, ScheduleError
from metaharvest.model import Unit
from metaharvest.reports.phrasing import frequency
from metaharvest.services import registrations
from metaharvest.services.registrations import HARVEST_LIST, Question, Registration
from metaharvest.services.trials import TrialReport
from metaharvest.text import whole_number
from metaharvest.web.console.visit import Visit

_MOST_EVERY = 99


def show(visit: Visit, report: TrialReport | None = None) -> Response:
    """The form; with the report about a source that cannot be read."""
    url = visit.form.text("url") or visit.query.get("url", "")
    return visit.render("register.html", 422 if report else None, report=report, units=list(map(str, Unit)), url=url)


def ask(visit: Visit) -> Response:
    """Rehearse the site; the report, and the next step if the source could be read."""
    with visit.mistakes(RequestError, ScheduleError, PublishingError):
        asked = registrations.ask(visit.harvester, _question(visit), visit.console.url)
        if asked.registration is None:
            return show(visit, asked.report)
        return _asked(visit, asked.registration, report=asked.report)
    return show(visit)


def mail_again(visit: Visit) -> Response:
    """Mail the link once more to the person who has just asked: number and address name the request."""
    number = whole_number(visit.form.text("number"))
    found = registrations.find(visit.harvester, number or 0)
    if found.address != visit.form.text("address"):
        raise RequestError(f"There is no registration with the number {number}.")
    registrations.mail_link(visit.harvester, found.registration_id, visit.console.url)
    found = registrations.find(visit.harvester, found.registration_id)
    return _asked(visit, found, said="" if found.mail_problem else f"The link was mailed to {found.address} again.")


def show_state(visit: Visit) -> Response:
    """The state of a request, for the person who has its link, and the next step."""
    found = registrations.of_address(visit.harvester, visit.path["token"])
    return visit.render(
        "register_state.html",
        found=found,
        token=visit.path["token"],
        comment=registrations.comment(found),
        frequency=frequency(found.every, found.unit.value),
        host=urlsplit(found.url).hostname or "",
    )


def prove_address(visit: Visit) -> Response:
    """Note that the link was mailed to the right person."""
    token = visit.path["token"]
    registrations.prove_address(visit.harvester, token, visit.console.url)
    return visit.redirect("/console/register/address", token, notice="Your address is confirmed.")


def look_for_comment(visit: Visit) -> Response:
    """Look for the comment in the list."""
    token = visit.path["token"]
    with visit.mistakes():
        registrations.look_for_comment(visit.harvester, token)
        return visit.redirect("/console/register/address", token, notice="The comment is in the list.")
    return show_state(visit)


def mail_source(visit: Visit) -> Response:
    """Mail a link to an address that the source names."""
    token, contact = visit.path["token"], visit.form.text("contact")
    with visit.mistakes():
        registrations.mail_source(visit.harvester, token, contact, visit.console.url)
        return visit.redirect("/console/register/address", token, notice=f"A link was mailed to {contact}.")
    return show_state(visit)


def show_question(visit: Visit) -> Response:
    """The question to a person at the source: may the site be harvested?"""
    found = registrations.of_source(visit.harvester, visit.path["token"])
    return visit.render(
        "register_source.html",
        found=found,
        frequency=frequency(found.every, found.unit.value),
        token=visit.path["token"],
    )


def prove_source(visit: Visit) -> Response:
    """Note that the person at the source agrees."""
    registrations.prove_source(visit.harvester, visit.path["token"])
    return visit.redirect("/console/register/source", visit.path["token"], notice="Thank you: you have agreed.")


def _question(visit: Visit) -> Question:
    """Raises RequestError."""
    form = visit.form
    every, unit = whole_number(form.text("every", "1"), _MOST_EVERY), form.text("unit", "days")
    if every is None or unit not in list(Unit):
        raise RequestError.about("every", "How often: give a whole number from 1 to 99, of days, weeks or months.")
    return Question(
        name=form.text("name"),
        url=form.text("url"),
        address=form.text("address"),
        source_kind=form.text("kind", HARVEST_LIST),
        every=every,
        unit=Unit(unit),
        prefix=form.text("prefix"),
        set_spec=form.text("set"),
    )


def _asked(visit: Visit, found: Registration, *, report: TrialReport | None = None, said: str = "") -> Response:
    comment = registrations.comment(found)
    return visit.render("register_asked.html", found=found, report=report, said=said, comment=comment)
