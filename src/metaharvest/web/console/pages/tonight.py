"""Tonight: how the newest run went, what waits for a person, what runs, and what comes next."""

from __future__ import annotations

from starlette.responses import Response

from metaharvest.queries.live import upcoming_run
from metaharvest.queries.tonight import ProblemGroups, State, problem_groups, registrations_waiting, tonight
from metaharvest.queries.works import MOST_COUNTED, number_to_look_at
from metaharvest.web.console.pages.jobs import live_values
from metaharvest.web.console.visit import Visit

_SHOWN = 10
_WAITING_SHOWN = 30
_FAILED_SHOWN = 50
_BADGES = {
    State.NONE: ("no run yet", "quiet"),
    State.RUNNING: ("under way", "busy"),
    State.WELL: ("all well", "good"),
    State.ATTENTION: ("needs attention", "bad"),
}


def show(visit: Visit) -> Response:
    """The page of the night."""
    harvester = visit.harvester
    with harvester.reading() as session:
        registrations = registrations_waiting(session) if visit.may_open("/console/registrations") else {}
        pairs = number_to_look_at(session) if harvester.settings.pipeline.enabled else 0
        number_of_others, zone = len(registrations) + bool(pairs), harvester.settings.harvester.zone
        night = tonight(session, harvester.today(), number_of_others, zone)
        groups = problem_groups(session, night.run.run_id, _SHOWN) if night.run else ProblemGroups((), (), ())
        coming = upcoming_run(session, harvester.now(), harvester.today())
    return visit.render(
        "tonight.html",
        night=night,
        badge=_BADGES[night.state],
        groups=[
            ("New", night.problems.new, groups.new, "bad", "The newest run found no new problem."),
            ("Still open", night.problems.still_open, groups.still_open, "doubtful", "No older problem is open."),
            ("Fixed", night.problems.fixed, groups.fixed, "good", "The newest run found no problem fixed."),
        ],
        coming=coming,
        registrations=registrations,
        pairs=f"{pairs:,}{' or more' if pairs == MOST_COUNTED else ''}" if pairs else "",
        waiting=night.waiting[:_WAITING_SHOWN],
        more_waiting=len(night.waiting[_WAITING_SHOWN:]),
        failed=night.failed[:_FAILED_SHOWN],
        more_failed=len(night.failed[_FAILED_SHOWN:]),
        **live_values(visit),
    )
