"""The keys of the API, for operators."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.errors import RequestError
from metaharvest.model.kinds import GRANTED
from metaharvest.services import accounts
from metaharvest.text import whole_number
from metaharvest.web.console.visit import Visit


def show(visit: Visit, secret: str = "") -> Response:
    """All keys, and the form for a new one."""
    return visit.render(
        "keys.html",
        keys=accounts.list_keys(visit.harvester),
        roles=[role.word for role in GRANTED],
        secret=secret,
        now=visit.harvester.now(),
    )


def add(visit: Visit) -> Response:
    """Make a key, and show its secret: this once."""
    form, secret = visit.form, ""
    with visit.mistakes():
        days = whole_number(form.text("days"))
        if days is None:
            raise RequestError.about("days", "Write the days for which the key is valid as a whole number.")
        secret = accounts.add_key(visit.harvester, form.text("name"), form.text("role"), visit.visitor.address, days)
    return show(visit, secret)


def revoke(visit: Visit) -> Response:
    """Revoke a key."""
    accounts.revoke_key(visit.harvester, visit.number("key", "There is no key with this number."))
    return visit.redirect("/console/keys", notice="The key was revoked.")
