"""Signing in and out: by a link in a mail, or by OpenID Connect; the sessions of a visitor; the first page."""

from __future__ import annotations

import logging

from starlette.responses import RedirectResponse, Response

from metaharvest.services import accounts
from metaharvest.services.harvester import Harvester
from metaharvest.text import whole_number
from metaharvest.web.console.defence import local_path
from metaharvest.web.console.openid import NotSignedIn, started_from
from metaharvest.web.console.visit import Visit

log = logging.getLogger(__name__)

_SENT = "If this address may sign in here, a mail with a link is on its way to it."
_NO_MAIL = (
    "The link works once, within 24 hours. If no mail comes, check your spam folder, check the address, or ask "
    "the operator."
)


def show(visit: Visit) -> Response:
    """The form for an address."""
    return visit.render("login.html", next=visit.query.get("next", ""))


def send_link(visit: Visit) -> Response:
    """Mail a link; the answer is the same, and as quick, whether the address is known or not."""
    address, to = visit.form.text("address"), visit.form.text("next")
    harvester, url = visit.harvester, visit.console.url
    visit.console.later.submit(_mailed, harvester, address, url, local_path(to) if to else "")
    return visit.message(200, _SENT, _NO_MAIL)


def _mailed(harvester: Harvester, address: str, url: str, to: str) -> None:
    try:
        accounts.mail_link(harvester, address, url, to)
    except Exception:
        log.exception("A mail with a link was not sent")


def show_link(visit: Visit) -> Response:
    """The page of a link, with a button: programs that check mails open links, but press no buttons."""
    token = visit.path["token"]
    address = accounts.address_of_link(visit.harvester, token)
    if address is None:
        return visit.message(410, "This link was used before, or it is older than 24 hours. Please ask for a new one.")
    return visit.render("link.html", address=address, token=token, next=visit.query.get("next", ""))


def spend_link(visit: Visit) -> Response:
    """Spend the link, and sign the browser in."""
    agent = visit.headers.get("user-agent", "")
    visit.cookies.set_session(accounts.spend_link(visit.harvester, visit.path["token"], agent))
    return visit.go_back(visit.form.text("next"))


def sign_out(visit: Visit) -> Response:
    """End the session."""
    visitor = visit.visitor
    if visitor.session_id is not None:
        accounts.close_session(visit.harvester, visitor.session_id, visitor.address)
    visit.cookies.end_session()
    notice = "The web server in front signs you in: sign out there." if visitor.by_proxy else "You are signed out."
    return visit.redirect("/console/login", notice=notice)


def start_openid(visit: Visit) -> Response:
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


def finish_openid(visit: Visit) -> Response:
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


def show_sessions(visit: Visit) -> Response:
    """All sessions of the visitor's address."""
    return visit.render("sessions.html", sessions=accounts.sessions_of(visit.harvester, visit.visitor.address))


def end_session(visit: Visit) -> Response:
    """End one session, so that its browser is signed out."""
    number = whole_number(visit.path["session"])
    if number is None or not accounts.close_session(visit.harvester, number, visit.visitor.address):
        return visit.not_found("There is no such session any more.")
    return visit.redirect("/console/sessions", notice="The session was ended.")


def show_first_page(visit: Visit) -> Response:
    """Send the visitor to the first page of the menu."""
    _, path = visit.console.navigation(visit.visitor)[0]
    return visit.redirect(path)
