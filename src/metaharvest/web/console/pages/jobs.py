"""Current jobs: the run under way, the requests of people, the next run."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from metaharvest.model.jobs import JobState
from metaharvest.model.requests import LivePhase, RequestState
from metaharvest.queries import jobs
from metaharvest.queries.live import live_run, upcoming_run
from metaharvest.queries.requests import RequestFilter, daemon
from metaharvest.queries.requests import requests as stored_requests
from metaharvest.services import requests
from metaharvest.web.console.visit import Visit

_SITES_SHOWN = 50
_ENDED_SHOWN = 20
_ENDED = (RequestState.DONE, RequestState.REFUSED, RequestState.CANCELLED)


def live_values(visit: Visit) -> dict[str, Any]:
    """The values of the fragment with live numbers."""
    harvester = visit.harvester
    with harvester.reading() as session:
        live = live_run(session, harvester.now())
    under_way = [site for site in live.sites if site.phase not in (LivePhase.ENDED, LivePhase.WAITING)] if live else []
    return {
        "live": live,
        "under_way": under_way[:_SITES_SHOWN],
        "more_under_way": len(under_way[_SITES_SHOWN:]),
        "number_under_way": len(under_way),
        "number_waiting": live.number(LivePhase.WAITING) if live else 0,
        "number_ended": live.number(LivePhase.ENDED) if live else 0,
        "may_decide": visit.may_open("/console/actions", "sites.harvest", method="POST"),
    }


def show(visit: Visit) -> Response:
    """What runs, what waits, and what comes next."""
    harvester = visit.harvester
    text = visit.query.get("site", "").strip()
    with harvester.reading() as session:
        coming = upcoming_run(session, harvester.now(), harvester.today())
        there = daemon(session, harvester.now())
    settings = harvester.settings
    run_at = f"{settings.workers.run_at:%H:%M} ({settings.harvester.zone})" if settings.workers.broker else ""
    due = [name for name in coming.sites if text.lower() in name.lower()]
    ended = harvester.read(stored_requests, RequestFilter(states=_ENDED), _ENDED_SHOWN + 1, visit.after)
    return visit.render(
        "jobs.html",
        coming=coming,
        daemon=there,
        run_at=run_at,
        due=due[:_SITES_SHOWN],
        more_due=len(due[_SITES_SHOWN:]),
        text=text,
        waiting=requests.open_requests(harvester),
        jobs=harvester.read(jobs.jobs, jobs.JobFilter((JobState.TAKEN, JobState.READY)), _SITES_SHOWN),
        workers=harvester.read(jobs.workers),
        ended=ended[:_ENDED_SHOWN],
        is_first=visit.after is None,
        next_page=visit.link("/console/jobs", after=ended[_ENDED_SHOWN - 1].request_id)
        if len(ended) > _ENDED_SHOWN
        else "",
        **live_values(visit),
    )


def show_live(visit: Visit) -> Response:
    """The live numbers alone, or with the open requests, for polling."""
    if visit.query.get("requests"):
        return visit.render_fragment(
            "jobs_live.html", waiting=requests.open_requests(visit.harvester), **live_values(visit)
        )
    return visit.render_fragment("live.html", **live_values(visit))


def take_back_skip(visit: Visit) -> Response:
    """Harvest a site tonight that was left out."""
    name = visit.form.text("name")
    is_done = requests.harvest_tonight(visit.harvester, name)
    notice = f"The site {name} is harvested as scheduled." if is_done else f"The site {name} was not left out."
    return visit.redirect("/console/jobs", notice=notice)
