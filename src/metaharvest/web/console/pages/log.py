"""The log: events and findings, with filters."""

from __future__ import annotations

from dataclasses import replace

from starlette.responses import Response

from metaharvest.errors import MetaharvestError, RequestError
from metaharvest.model import LOG_LEVELS
from metaharvest.queries.log import LogEntry, LogFilter, log_entries, of_one_run
from metaharvest.services import tables
from metaharvest.text import whole_number
from metaharvest.web.console.forms import day_of
from metaharvest.web.console.visit import Visit

_SHOWN = 100


def show(visit: Visit) -> Response:
    """The last rows that the filters let through; the next page has earlier ones."""
    given = _given(visit)
    found: list[LogEntry] = []
    run: int | str = given["run"]
    with visit.mistakes(MetaharvestError):
        wanted = _filter(visit)
        with visit.harvester.reading() as session:
            wanted = of_one_run(session, wanted)
            found = list(log_entries(session, replace(wanted, limit=_SHOWN + 1)))
        run = run or wanted.run_id or ""
    # The last page has all transfers before the first run, above its rows.
    has_earlier = sum(each.log_id is not None for each in found) > _SHOWN
    shown = found[-_SHOWN:] if has_earlier else found
    next_page = ""
    if has_earlier:
        place = {"run": run, "site_run": wanted.site_run_id, "after": shown[0].log_id}
        next_page = visit.link("/console/log", **{**given, **place})
    return visit.render(
        "log.html",
        entries=[(entry, entry.own_message) for entry in shown],
        filters={**given, "run": run},
        levels=LOG_LEVELS,
        next_page=next_page,
        first_page=visit.link("/console/log", **given) if "after" in visit.query else "",
    )


def send(visit: Visit) -> Response:
    """All rows that the filters let through, as a table."""
    return visit.send_table(tables.log_table(visit.harvester, _filter(visit)), "log.csv")


_FIELDS = ("run", "site", "level", "rule", "document", "since", "until")


def _given(visit: Visit) -> dict[str, str]:
    return {name: visit.query.get(name, "").strip() for name in _FIELDS}


def _filter(visit: Visit) -> LogFilter:
    """The filters of the address. Raises RequestError."""
    given = _given(visit)
    level = given["level"] or "info"
    if level not in LOG_LEVELS:
        raise RequestError(f"There is no level '{level}'. The levels are: {', '.join(LOG_LEVELS)}.")
    site_run = _number(visit.query.get("site_run", ""), "run")
    wanted = LogFilter(
        run_id=_number(given["run"], "run"),
        site=given["site"] or None,
        level=level,
        rule=given["rule"] or None,
        document=given["document"] or None,
        since=day_of(given["since"], "since"),
        until=day_of(given["until"], "until"),
        after=_number(visit.query.get("after", ""), "row"),
    )
    # The site run whose earlier rows the next page has: its site may have been harvested again.
    return wanted if site_run is None else replace(wanted, run_id=None, site=None, site_run_id=site_run)


def _number(text: str, what: str) -> int | None:
    if not text:
        return None
    number = whole_number(text)
    if number is None:
        raise RequestError(f"'{text}' is not the number of a {what}.")
    return number
