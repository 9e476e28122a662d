"""A rehearsal of a site: started, watched, and its report."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.services.rehearsals import Rehearsal
from metaharvest.text import whole_number
from metaharvest.web.console.visit import NotFound, Visit


def start(visit: Visit) -> Response:
    """Start a rehearsal, and show it."""
    started = visit.console.rehearsals.start(visit.harvester, visit.site.name)
    return visit.redirect("/console/sites", visit.site.name, "rehearsals", started.number)


def show(visit: Visit) -> Response:
    """The rehearsal: live numbers, then the report."""
    return visit.render("rehearsal.html", rehearsal=_rehearsal(visit))


def show_live(visit: Visit) -> Response:
    """The live numbers; at the end the browser opens the page with the report."""
    rehearsal = _rehearsal(visit)
    response = visit.render_fragment("rehearsal_live.html", rehearsal=rehearsal)
    if rehearsal.has_ended:
        response.headers["HX-Refresh"] = "true"
    return response


def _rehearsal(visit: Visit) -> Rehearsal:
    number = whole_number(visit.path["number"])
    found = None if number is None else visit.console.rehearsals.find(number, visit.site.site_id)
    if found is None:
        raise NotFound("This rehearsal is not kept any more. Start another one on the page of the site.")
    return found
