"""My site: its latest report and problems, and the changes that its contacts make themselves.

The link in a report opens the same page for reading only.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from metaharvest.errors import DatabaseError, MetaharvestError, RequestError
from metaharvest.model import Notify, Site, Unit
from metaharvest.queries.live import live_run, upcoming_run
from metaharvest.queries.problems import site_problem_numbers, site_problems
from metaharvest.queries.requests import open_requests
from metaharvest.queries.sites import registered_site, registered_sites_of
from metaharvest.reports.phrasing import frequency
from metaharvest.services import my_site, reports, requests, sites
from metaharvest.services.my_site import Schedule
from metaharvest.text import whole_number
from metaharvest.web.console.defence import path_of
from metaharvest.web.console.visit import Visit

_MOST_EVERY = 99
_SHOWN = 50
_LOST_LOGIN = (
    "The user name and password in its former address were not kept: ask the steward if the new one needs them."
)


def show_mine(visit: Visit) -> Response:
    """The sites of the visitor."""
    with visit.harvester.reading() as session:
        mine = registered_sites_of(session, list(visit.visitor.sites), visit.harvester.today())
    return visit.render("my_sites.html", sites=sorted(mine, key=lambda site: site.site.casefold()))


def show(visit: Visit) -> Response:
    """The site, with the forms for its contacts."""
    return _page(visit, visit.site.name)


def show_by_link(visit: Visit) -> Response:
    """The site, for everybody who has its report."""
    return _page(visit, my_site.of_report_link(visit.harvester, visit.path["token"]).name, by_link=True)


def show_live(visit: Visit) -> Response:
    """The harvest of the site that is under way, or the open requests for one."""
    return visit.render_fragment("my_site_live.html", **_live(visit, visit.site.site_id))


def harvest(visit: Visit) -> Response:
    """Ask for the harvest of the site."""
    my_site.require_contact(visit.harvester, visit.site.name, visit.visitor.address)
    requests.ask_harvest(visit.harvester, visit.site.name)
    return _back(visit, "A harvest of your site is requested. This page shows its progress.")


def change_schedule(visit: Visit) -> Response:
    """Change how often the site is harvested, and when reports come."""
    form = visit.form
    every, unit, notify = whole_number(form.text("every"), _MOST_EVERY), form.text("unit"), form.text("notify")
    with visit.mistakes():
        if every is None or unit not in list(Unit) or notify not in list(Notify):
            raise RequestError.about("every", "How often: give a whole number from 1 to 99, of days, weeks or months.")
        schedule = Schedule(every, Unit(unit), Notify(notify))
        edited = my_site.change_schedule(visit.harvester, *_who(visit), schedule)
        changes = [f"{each.name}: {each.after} (before: {each.before})" for each in edited.changes]
        return _back(visit, f"Changed. {'; '.join(changes)}." if changes else "Nothing was changed.")
    return show(visit)


def change_address(visit: Visit) -> Response:
    """Mail a link to a new address."""
    new = visit.form.text("address")
    with visit.mistakes():
        my_site.ask_for_address(visit.harvester, *_who(visit), new, visit.console.url)
        return _back(visit, f"A link was mailed to {new}. The reports go there after the person opens it.")
    return show(visit)


def move(visit: Visit) -> Response:
    """Change the address of the list, or ask a steward to do it."""
    former = sites.find(visit.harvester, visit.site.name)
    with visit.mistakes():
        asked = my_site.move(visit.harvester, *_who(visit), visit.form.text("url"))
        if asked is None:
            lost = f" {_LOST_LOGIN}" if sites.loses_login(former.list_url, visit.form.text("url")) else ""
            return _back(visit, f"The address was changed. The next harvest reads it.{lost}")
        other = "The new address is on another web server, so a steward decides. Until then the old one is read."
        return _back(visit, other)
    return show(visit)


def pause(visit: Visit) -> Response:
    """Switch the site off."""
    with visit.mistakes():
        my_site.pause(visit.harvester, *_who(visit))
        return _back(visit, "The site is paused: it is not harvested until you resume it. Its documents stay.")
    return show(visit)


def resume(visit: Visit) -> Response:
    """Switch the site on again."""
    with visit.mistakes():
        my_site.resume(visit.harvester, *_who(visit))
        return _back(visit, "The site is harvested again from the next run on.")
    return show(visit)


def ask_to_leave(visit: Visit) -> Response:
    """What leaving means, and its button."""
    return visit.render("my_site_leave.html", name=visit.site.name)


def leave(visit: Visit) -> Response:
    """Switch the site off, and ask a steward to remove it."""
    with visit.mistakes():
        my_site.leave(visit.harvester, *_who(visit))
        return _back(visit, "The site is not harvested any more. A steward removes it.")
    return show(visit)


def show_new_address(visit: Visit) -> Response:
    """The page of the link to a new address, with its button."""
    found = my_site.of_address(visit.harvester, visit.path["token"])
    return visit.render("my_site_address.html", found=found, token=visit.path["token"])


def prove_address(visit: Visit) -> Response:
    """Let the new address take the place of the old one."""
    found = my_site.prove_address(visit.harvester, visit.path["token"])
    return visit.message(200, f"The reports of {found.name} go to {found.address} from now on.")


def _who(visit: Visit) -> tuple[str, str]:
    return visit.site.name, visit.visitor.address


def _back(visit: Visit, notice: str) -> Response:
    return visit.redirect("/console/my", visit.site.name, notice=notice)


def _page(visit: Visit, name: str, *, by_link: bool = False) -> Response:
    harvester = visit.harvester
    site = sites.find(harvester, name)
    with harvester.reading() as session:
        registered = registered_site(session, name, harvester.today())
        problems = site_problems(session, registered.site_id, _SHOWN)
        numbers = site_problem_numbers(session, registered.site_id)
    try:
        report = reports.newest_report(harvester, name)
    except DatabaseError:
        raise
    except MetaharvestError:
        report = None  # it was never harvested
    return visit.render(
        "my_site.html",
        site=site if isinstance(site, Site) else None,
        registered=registered,
        frequency=registered.frequency if registered.is_broken else frequency(registered.every, registered.unit),
        problems=problems,
        more_problems=numbers.attention + numbers.doubtful - len(problems),
        report=report,
        waiting=my_site.waiting(harvester, name),
        units=list(map(str, Unit)),
        notify=list(map(str, Notify)),
        is_mine=not by_link and visit.visitor.owns(name),
        by_link=by_link,
        own_path=path_of("/console/my", name),
        **_live(visit, registered.site_id),
    )


def _live(visit: Visit, site_id: int) -> dict[str, Any]:
    harvester = visit.harvester
    with harvester.reading() as session:
        run = live_run(session, harvester.now())
        live = run.under_way(site_id) if run else None
        asked = open_requests(session, site_id)
        coming = upcoming_run(session, harvester.now(), harvester.today())
    return {"live": live, "requests": asked, "coming": coming, "site_id": site_id}
