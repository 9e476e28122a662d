"""The first page: for each role the first entry of its menu."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.web.console.visit import Visit


def show(visit: Visit) -> Response:
    """Send the visitor to the first page of the menu."""
    entries = visit.console.navigation(visit.visitor)
    if not entries:
        return visit.message(200, "You are signed in. There is no page for your role yet.")
    return visit.redirect(entries[0][1])
