"""The users of the console, for operators."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.model.kinds import GRANTED
from metaharvest.services import accounts
from metaharvest.web.console.visit import Visit


def show(visit: Visit, link: str = "", address: str = "") -> Response:
    """All users, and the form for a new one; a new link for the user with this address."""
    return visit.render(
        "users.html",
        users=accounts.list_users(visit.harvester),
        roles=[role.word for role in GRANTED],
        new_link=link,
        new_address=address,
    )


def add(visit: Visit) -> Response:
    """Add a user, and show the link for the first visit."""
    form = visit.form
    with visit.mistakes():
        user = accounts.add_user(visit.harvester, form.text("address"), form.text("role"), form.text("name"))
        return _with_link(visit, user.address)
    return show(visit)


def edit(visit: Visit) -> Response:
    """Change name, role and state of a user."""
    form, address = visit.form, visit.path["user"]
    enabled = {"enabled": True, "disabled": False}.get(form.text("state"))
    accounts.edit_user(visit.harvester, address, role=form.text("role"), name=form.text("name"), enabled=enabled)
    return visit.redirect("/console/users", notice=f"{address} was changed.")


def unbind(visit: Visit) -> Response:
    """Forget how OpenID Connect knows a user."""
    user = accounts.edit_user(visit.harvester, visit.path["user"], unbind=True)
    notice = f"The next sign-in by OpenID Connect finds {user.address} by the address."
    return visit.redirect("/console/users", notice=notice)


def make_link(visit: Visit) -> Response:
    """Show a new link that signs a user in."""
    user = accounts.read_user(visit.harvester, visit.path["user"])
    return _with_link(visit, user.address)


def remove(visit: Visit) -> Response:
    """Remove a user."""
    address = visit.path["user"]
    accounts.remove_user(visit.harvester, address)
    return visit.redirect("/console/users", notice=f"{address} was removed.")


def _with_link(visit: Visit, address: str) -> Response:
    token = accounts.new_link(visit.harvester, address)
    return show(visit, f"{visit.console.url}/console/link/{token}", address)
