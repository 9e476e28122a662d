"""The visitor's own sessions: the browsers that are signed in with the address."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.services import accounts
from metaharvest.text import whole_number
from metaharvest.web.console.visit import Visit


def show(visit: Visit) -> Response:
    """All sessions of the visitor's address."""
    return visit.render("sessions.html", sessions=accounts.sessions_of(visit.harvester, visit.visitor.address))


def end(visit: Visit) -> Response:
    """End one session, so that its browser is signed out."""
    number = whole_number(visit.path["session"])
    if number is None or not accounts.close_session(visit.harvester, number, visit.visitor.address):
        return visit.not_found("There is no such session any more.")
    return visit.redirect("/console/sessions", notice="The session was ended.")
