"""One site: everything about it, its problems, runs, year, mails, missing records and history; what can be done.

A site can be rehearsed, too: the rehearsal is started, watched, and has a report.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from starlette.responses import Response

from metaharvest.errors import MetaharvestError
from metaharvest.model.actions import todo
from metaharvest.model.kinds import Role
from metaharvest.model.requests import RequestKind
from metaharvest.model.values import frozen
from metaharvest.queries.changes import changes
from metaharvest.queries.decisions import DecisionFilter, decisions, value_in_words
from metaharvest.queries.departures import missing_records, waiting_deletions
from metaharvest.queries.figures import site_year
from metaharvest.queries.live import live_run, upcoming_run
from metaharvest.queries.outbox import ReportFilter, newest_reports, site_of_report
from metaharvest.queries.problems import site_problem_numbers, site_problems
from metaharvest.queries.requests import open_requests
from metaharvest.queries.sites import RegisteredSite, registered_site, registered_values
from metaharvest.queries.trends import harvests
from metaharvest.reports.phrasing import frequency
from metaharvest.services import reports, sites
from metaharvest.services import requests as asking
from metaharvest.services.rehearsals import Rehearsal
from metaharvest.services.requests import HarvestScope
from metaharvest.text import whole_number
from metaharvest.web.console.pages.decisions import words
from metaharvest.web.console.pages.outbox import read_mail
from metaharvest.web.console.pages.site_form import shown_value, split_parts
from metaharvest.web.console.visit import NotFound, Visit

PAGE = 50
_YEAR = timedelta(days=363)
_FEW = 8
_WIDTH, _HEIGHT, _TOP, _LOWEST = 520, 110, 6, 1.5
"""The units of a chart: its width, its height, the room above the bars, the height of the lowest bar."""

_OPERATORS = ("ldapdn", "ldappwd", "ca_file", "filters", "normalize", "allow_networks")
"""Values that say something about the machine of the harvester: contacts do not see them."""

SCOPES = {
    HarvestScope.DUE: "Harvest now",
    HarvestScope.EVERYTHING: "Harvest everything again",
    HarvestScope.FAILING: "Try the failing documents again",
}


def show(visit: Visit) -> Response:
    """The site at a glance."""
    harvester, site_id = visit.harvester, visit.site.site_id
    today, now = harvester.today(), harvester.now()
    with harvester.reading() as session:
        site = registered_site(session, visit.site.name, today)
        live = live_run(session, now)
        coming = upcoming_run(session, now, today)
        waiting = [(each, asking.waits_for(harvester, session, each)) for each in open_requests(session, site_id)]
        values: dict[str, Any] = {
            "site": site,
            "live": live,
            "going": live.under_way(site_id) if live else None,
            "next_run": coming,
            "waiting": waiting,
            "is_left_out": any(each.kind == RequestKind.SKIP for each, _ in waiting),
            "problems": site_problems(session, site_id, _FEW),
            "numbers": site_problem_numbers(session, site_id),
            "runs": harvests(session, site_id, _FEW),
            "deletions": waiting_deletions(session, visit.site.name, 1),
        }
    return visit.render(
        "site.html",
        registered=_registration(visit, site),
        frequency=_frequency(site),
        scopes=SCOPES,
        may_change=visit.visitor.role >= Role.STEWARD,
        is_contact=visit.visitor.role is Role.CONTACT,
        confirm=todo("sites.confirm", name=visit.site.name),
        rehearsal=visit.console.rehearsals.newest(site_id),
        **values,
    )


def show_problems(visit: Visit) -> Response:
    """The open problems of the site, worst first."""
    with visit.harvester.reading() as session:
        found = site_problems(session, visit.site.site_id, PAGE + 1, visit.after)
        numbers = site_problem_numbers(session, visit.site.site_id)
    return _page(visit, "site_problems.html", "problems", found, "problem_id", numbers=numbers)


def show_runs(visit: Visit) -> Response:
    """The harvests of the site, the newest first, and the choice of two to compare."""
    with visit.harvester.reading() as session:
        found = harvests(session, visit.site.site_id, PAGE + 1, visit.after)
    return _page(visit, "site_runs.html", "runs", found, "site_run_id")


def show_changes(visit: Visit) -> Response:
    """The difference between two runs, for this site."""
    numbers = {whole_number(each) for each in visit.query.getlist("run")}
    chosen = sorted(each for each in numbers if each is not None)
    if len(chosen) != 2:
        raise MetaharvestError("Choose two runs to compare.")
    with visit.harvester.reading() as session:
        found = changes(session, chosen[0], chosen[1], visit.site.name)
    site = found.sites[0] if found.sites else None
    return visit.render("site_changes.html", found=found, changed=site)


def show_year(visit: Visit) -> Response:
    """The documents, the failures and the seconds of the site over a year, week by week."""
    last = visit.harvester.today()
    with visit.harvester.reading() as session:
        weeks = site_year(session, visit.site.site_id, last - _YEAR, last)

    def drawn(title: str, name: str, unit: str) -> Chart:
        return _chart(title, [(str(week.first_day), getattr(week, name)) for week in weeks], unit)

    charts = [
        (drawn("Documents in the list", "listed", "documents"), "good"),
        (drawn("Failing documents", "failing", "documents"), "bad"),
        (drawn("Failed harvests", "failed_harvests", "harvests"), "doubtful"),
        (drawn("Seconds of all harvests of the week", "took_seconds", "seconds"), "busy"),
    ]
    return visit.render("site_year.html", weeks=weeks, charts=charts, has_any=any(week.harvests for week in weeks))


@frozen
class Bar:
    """A bar of a chart, in units of the drawing; `label` is its text for people who point at it."""

    x: float
    y: float
    width: float
    height: float
    label: str


@frozen
class Chart:
    """A drawing of bars. `most` is the largest value; `begin` and `end` are the texts at the ends of the axis."""

    title: str
    bars: Sequence[Bar]
    most: float
    begin: str
    end: str


def _chart(title: str, values: Sequence[tuple[str, float | None]], unit: str) -> Chart:
    """The chart of these values with their labels. A value that is None has no bar."""
    most = max((value for _, value in values if value is not None), default=0)
    step = _WIDTH / max(1, len(values))
    bars = []
    for place, (label, value) in enumerate(values):
        if value is None:
            continue
        height = max((_HEIGHT - _TOP) * value / most, _LOWEST) if value else 0.0
        shown = f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
        left, width = round(place * step + step * 0.12, 2), round(step * 0.76, 2)
        bars.append(Bar(left, round(_HEIGHT - height, 2), width, round(height, 2), f"{label}: {shown} {unit}"))
    return Chart(title, bars, most, values[0][0] if values else "", values[-1][0] if values else "")


def show_mails(visit: Visit) -> Response:
    """The reports about the site and their deliveries."""
    with visit.harvester.reading() as session:
        found = newest_reports(session, PAGE + 1, ReportFilter(site=visit.site.name), visit.after)
    return _page(visit, "site_mails.html", "mails", found, "report_id")


def show_mail(visit: Visit) -> Response:
    """A report about the site, as it was sent."""
    _number_of_report(visit)
    report, mail = read_mail(visit)
    return visit.render("site_mail.html", report=report, mail=mail, may_change=visit.visitor.role >= Role.STEWARD)


def resend_mail(visit: Visit) -> Response:
    """Put a report into the outbox again, for its recipients or for others."""
    number = _number_of_report(visit)
    with visit.mistakes():
        done = reports.resend(visit.harvester, number, split_parts(visit.form.text("to")))
        notice = f"The report waits for its delivery to {', '.join(done.recipients)}."
        return visit.redirect("/console/sites", visit.site.name, "mails", number, notice=notice)
    return show_mail(visit)


def _number_of_report(visit: Visit) -> int:
    """The number in the path of a report about this site. Raises NotFound."""
    missing = "There is no such report about this site."
    number = visit.number("report", missing)
    with visit.harvester.reading() as session:
        if site_of_report(session, number) != visit.site.site_id:
            raise NotFound(missing)
    return number


def show_missing(visit: Visit) -> Response:
    """The records that full lists of the source no longer name."""
    with visit.harvester.reading() as session:
        found = missing_records(session, visit.site.site_id, PAGE + 1, visit.after)
    return _page(visit, "site_missing.html", "records", found, "entry_id")


def show_history(visit: Visit) -> Response:
    """The decisions of people about the site."""
    with visit.harvester.reading() as session:
        wanted = DecisionFilter(site_id=visit.site.site_id)
        found = list(decisions(session, wanted, limit=PAGE + 1, after=visit.after))
    return _page(visit, "site_history.html", "decisions", found, "decision_id", words=words, value=value_in_words)


def ask_harvest(visit: Visit) -> Response:
    """Ask for a harvest of the site: the usual one, everything, or the failing documents."""
    scope = next((each for each in HarvestScope if each == visit.form.text("scope")), HarvestScope.DUE)
    asked = asking.ask_harvest(visit.harvester, visit.site.name, scope)
    begin = "The harvest is asked for." if asked.is_new else "This harvest was asked for already."
    return _back(visit, f"{begin} {asked.waits_for}")


def skip(visit: Visit) -> Response:
    """Leave the site out of the next run, or take that back."""
    if visit.form.is_set("undo"):
        asking.harvest_tonight(visit.harvester, visit.site.name)
        return _back(visit, f"{visit.site.name} is no longer left out of the next run.")
    asked = asking.skip_tonight(visit.harvester, visit.site.name)
    return _back(visit, asked.waits_for)


def cancel(visit: Visit) -> Response:
    """Take a request for this site back."""
    number = whole_number(visit.form.text("request"))
    with visit.harvester.reading() as session:
        own = [each.request_id for each in open_requests(session, visit.site.site_id)]
    if number not in own:
        return _back(visit, "This request no longer waits.")
    asking.cancel(visit.harvester, number)
    return _back(visit, "The request is taken back.")


def switch(visit: Visit) -> Response:
    """Pause the site, or harvest it again."""
    enabled = visit.form.text("enabled") == "on"
    sites.switch(visit.harvester, visit.site.name, enabled)
    sentence = "is harvested again from its next date on" if enabled else "is paused: nothing of it is harvested"
    return _back(visit, f"{visit.site.name} {sentence}.")


def rehearse(visit: Visit) -> Response:
    """Start a rehearsal, and show it."""
    started = visit.console.rehearsals.start(visit.harvester, visit.site.name)
    return visit.redirect("/console/sites", visit.site.name, "rehearsals", started.number)


def show_rehearsal(visit: Visit) -> Response:
    """A rehearsal: live numbers, then the report."""
    return visit.render("rehearsal.html", rehearsal=_rehearsal(visit))


def show_live_rehearsal(visit: Visit) -> Response:
    """The live numbers of a rehearsal; at the end the browser opens the page with the report."""
    rehearsal = _rehearsal(visit)
    response = visit.render_fragment("rehearsal_live.html", rehearsal=rehearsal)
    if rehearsal.has_ended:
        response.headers["HX-Refresh"] = "true"
    return response


def _rehearsal(visit: Visit) -> Rehearsal:
    missing = "This rehearsal is not kept any more. Start another one on the page of the site."
    found = visit.console.rehearsals.find(visit.number("number", missing), visit.site.site_id)
    if found is None:
        raise NotFound(missing)
    return found


def show_removal(visit: Visit) -> Response:
    """The question before a site is removed."""
    with visit.harvester.reading() as session:
        site = registered_site(session, visit.site.name, visit.harvester.today())
    return visit.render("site_remove.html", site=site)


def remove(visit: Visit) -> Response:
    """Remove the site from the schedule."""
    sites.remove(visit.harvester, visit.site.name)
    notice = f"Removed {visit.site.name} from the schedule. Its history stays: runs, log, reports, and its documents."
    return visit.redirect("/console/sites", notice=notice)


def _back(visit: Visit, notice: str) -> Response:
    return visit.redirect("/console/sites", visit.site.name, notice=notice)


def _frequency(site: RegisteredSite) -> str:
    """How often the site is harvested, in words; of a broken row as it is in the table."""
    return site.frequency if site.is_broken else frequency(site.every, site.unit)


def _registration(visit: Visit, site: RegisteredSite) -> list[tuple[str, str]]:
    """The values of the registration that are set, as texts; the raw options of a broken row are shown separately."""
    hidden = _OPERATORS if visit.visitor.role is Role.CONTACT else ()
    shown = []
    for name, value in registered_values(site).items():
        if name in ("name", "state", "last_harvest", "next_harvest", "enabled", "every", "unit", "options", *hidden):
            continue
        text = _frequency(site) if name == "frequency" else shown_value(value)
        if text:
            shown.append((name.replace("_", " "), text))
    return shown


def _page(visit: Visit, template: str, name: str, found: Sequence[object], key: str, **values: object) -> Response:
    """A page of rows under this name: there is a next one, after the `key` of the last row, if one more was found."""
    following = getattr(found[PAGE - 1], key) if len(found) > PAGE else None
    return visit.render(template, 200, next=following, **{name: found[:PAGE]}, **values)
