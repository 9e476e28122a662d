"""A year, or any other period, over all sites: figures to print, and one workbook with everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from starlette.responses import Response

from metaharvest.errors import RequestError
from metaharvest.queries.figures import YearFigures, YearOfSite, state_of_figures, year_figures
from metaharvest.services.export import year_workbook
from metaharvest.services.harvester import Harvester
from metaharvest.web.console.forms import day_of
from metaharvest.web.console.visit import Visit

_WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_MOST_KEPT = 8
_kept: dict[tuple[str, int, date, date], tuple[object, YearFigures]] = {}

ORDERS: Mapping[str, Callable[[YearOfSite], Any]] = {
    "site": lambda each: each.site.casefold(),
    "harvests": lambda each: -each.harvests,
    "well": lambda each: each.share_well if each.share_well is not None else 2,
    "new": lambda each: -each.inserted,
    "updated": lambda each: -each.updated,
    "deleted": lambda each: -each.deleted,
    "success": lambda each: each.last_success or date.min,
}
"""The orders of the sites."""


def show(visit: Visit) -> Response:
    """The figures of the period; by default, and beside the sentence about a wrong one, from 1 January to today."""
    last_day = visit.harvester.today()
    first_day = _new_year(last_day)
    with visit.mistakes():
        first_day, last_day = _period(visit)
    order = visit.query.get("sort", "site")
    order = order if order in ORDERS else "site"
    figures = _figures(visit.harvester, first_day, last_day)
    sites = sorted(figures.sites, key=ORDERS[order])
    return visit.render("year.html", figures=figures, sites=sites, order=order, asked=visit.query)


def show_workbook(visit: Visit) -> Response:
    """The same period as a workbook."""
    first_day, last_day = _period(visit)
    content = year_workbook(visit.harvester, first_day, last_day)
    return visit.download(content, f"harvest-{first_day}-{last_day}.xlsx", _WORKBOOK)


def _figures(harvester: Harvester, first_day: date, last_day: date) -> YearFigures:
    """The figures, kept until something changes: a year of 1,000 sites takes the database half a second."""
    key = (str(harvester.engine.url), id(harvester.engine), first_day, last_day)
    with harvester.reading() as session:
        state = state_of_figures(session)
        known = _kept.get(key)
        if known is not None and state is not None and known[0] == state:
            return known[1]
        figures = year_figures(session, first_day, last_day)
    while len(_kept) >= _MOST_KEPT:
        _kept.pop(next(iter(_kept)), None)
    if state is not None:
        _kept[key] = state, figures
    return figures


def _period(visit: Visit) -> tuple[date, date]:
    """The first and the last day in the address. Raises RequestError."""
    last_day = day_of(visit.query.get("to", ""), "to") or visit.harvester.today()
    first_day = day_of(visit.query.get("from", ""), "from") or _new_year(last_day)
    if first_day > last_day:
        raise RequestError.about("from", f"The first day, {first_day}, is after the last day, {last_day}.")
    return first_day, last_day


def _new_year(day: date) -> date:
    return day.replace(month=1, day=1)
