"""Signing in by OpenID Connect: the way to the provider, and back."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from metaharvest.services import accounts
from metaharvest.web.console.defence import local_path
from metaharvest.web.console.openid import NotSignedIn, started_from
from metaharvest.web.console.visit import Visit


def start(visit: Visit) -> Response:
    """Send the browser to the provider. The state of the sign-in is in the browser only."""
    provider = visit.console.openid
    if provider is None:
        return visit.not_found("This console has no sign-in by OpenID Connect.")
    to = visit.query.get("next", "")
    try:
        url, started = provider.start(local_path(to))
    except NotSignedIn as error:
        return visit.message(502, str(error))
    visit.cookies.set_started(started.as_cookie())
    return RedirectResponse(url, 303)


def finish(visit: Visit) -> Response:
    """The browser comes back from the provider: sign it in."""
    provider = visit.console.openid
    if provider is None:
        return visit.not_found("This console has no sign-in by OpenID Connect.")
    started = started_from(visit.cookies.started())
    try:
        identity = provider.finish(started, visit.query)
    except NotSignedIn as error:
        return visit.message(403, str(error))
    token = accounts.session_of_identity(visit.harvester, identity, visit.headers.get("user-agent", ""))
    if token is None:
        return visit.message(
            403, "You are signed in there, but your address has no role here. Ask the operator for one."
        )
    visit.cookies.set_session(token)
    return visit.go_back(started.to if started else "")
