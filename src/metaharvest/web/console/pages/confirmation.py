"""The confirmation of an action of a remedy: a page with its changes and its button, and the action itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from starlette.responses import Response

from metaharvest.errors import RequestError
from metaharvest.model.actions import Todo, todo
from metaharvest.queries.departures import waiting_deletions
from metaharvest.queries.runs import run_record
from metaharvest.services import documents, reports, requests, runs, sites
from metaharvest.services.documents import TransferRequest
from metaharvest.services.harvester import Harvester
from metaharvest.services.requests import Asked, HarvestScope
from metaharvest.text import counted, whole_number
from metaharvest.web.console.visit import NotFound, Visit

_NAMED = 20

Values = Mapping[str, str]


def show(visit: Visit) -> Response:
    """What the action changes, and its button."""
    action = _action(visit, visit.query)
    seen = refusal = ""
    if action.id == "runs.remove":
        refusal = runs.why_it_stays(visit.harvester, _number(action.values["run_id"]))
    if action.id == "sites.confirm":
        # Before the effect is read, so that no document is confirmed that the page does not count.
        with visit.harvester.reading() as session:
            waiting = waiting_deletions(session, action.values["name"], 1)
        seen = str(waiting.number + waiting.confirmed)
        if not waiting.number:
            refusal = f"No deletion of the site {action.values['name']} waits for a confirmation."
            refusal += f" {waiting.confirmed_sentence}" if waiting.confirmed else ""
    effect: Sequence[str] = ()
    if not refusal:
        found = EFFECTS.get(action.id, f"{action.label}.")
        effect = [found] if isinstance(found, str) else found(visit.harvester, action.values)
    return visit.render(
        "confirmation.html",
        action=action,
        effect=effect,
        back=visit.query.get("back", ""),
        seen=seen,
        refusal=refusal,
        has_reason=action.id in _REASONED,
    )


def do(visit: Visit) -> Response:
    """Carry the action out, and go back."""
    form = visit.form
    values = {name: form.text(name) for name in ("name", "run_id", "request_id", "document", "reason", "scope", "seen")}
    action = _action(visit, values)
    notice = HANDLERS[action.id](visit.harvester, {**values, **action.values})
    return visit.go_back(form.text("back") or _BACK.get(action.id, "/console/jobs"), notice)


def _action(visit: Visit, values: Mapping[str, str]) -> Todo:
    """The action of the path, with its values. Raises NotFound, RequestError."""
    name = visit.path["action"]
    if name not in HANDLERS:
        raise NotFound("There is no such action.")
    given = {}
    for value in todo(name).missing:
        text = (values.get(value) or "").strip()
        if not text:
            raise RequestError(f"The action needs a value: {value.replace('_', ' ')}.")
        given[value] = text
    return todo(name, **given)


# -- the actions: each returns the sentence for the next page


def _harvest(harvester: Harvester, values: Values) -> str:
    scopes = {scope.value: scope for scope in HarvestScope}
    return _asked(requests.ask_harvest(harvester, values["name"], scopes.get(values["scope"], HarvestScope.DUE)))


def _cancel(harvester: Harvester, values: Values) -> str:
    cancelled = requests.cancel(harvester, _number(values["request_id"]))
    return f"Request {cancelled.request_id} is taken back."


def _confirm(harvester: Harvester, values: Values) -> str:
    name, seen = values["name"], whole_number(values["seen"])
    if seen is None:
        raise RequestError("Look at the deletions before you confirm them.")
    number = sites.confirm(harvester, name, seen)
    if number is None:
        return f"Deletions of the site {name} are only recorded: there is nothing to confirm."
    return f"Confirmed: the next harvest of the site {name} deletes {counted(number, 'document')}."


def _switch(harvester: Harvester, name: str, enabled: bool) -> str:
    sites.switch(harvester, name, enabled)
    return f"The site {name} is switched {'on' if enabled else 'off'}."


def _transfer(harvester: Harvester, values: Values) -> str:
    wanted = TransferRequest((values["document"],), values["name"], harvester.actor.name)
    [done] = documents.transfer(harvester, wanted)
    if not done.done:
        return f"{done.document_id} belongs to the site {values['name']} already."
    return f"{done.document_id} now belongs to the site {values['name']}."


def _resend_refused(harvester: Harvester, values: Values) -> str:
    done = reports.resend_refused(harvester)
    return f"{counted(done.deliveries, 'mail')} of {counted(done.reports, 'report')} will be sent again."


def _asked(asked: Asked) -> str:
    known = "" if asked.is_new else f" It was asked for already, by {asked.request.asked_by or 'somebody'}."
    return f"Request {asked.request.request_id}: {asked.waits_for}{known}"


HANDLERS: Mapping[str, Callable[[Harvester, Values], str]] = {
    "documents.transfer": _transfer,
    "reports.resend_refused": _resend_refused,
    "requests.cancel": _cancel,
    "runs.full": lambda harvester, values: _harvest(harvester, {**values, "scope": HarvestScope.EVERYTHING}),
    "runs.remove": lambda harvester, values: (
        runs.remove(harvester, _number(values["run_id"]), values["reason"]).sentence
    ),
    "runs.stop": lambda harvester, _: _asked(requests.ask_stop(harvester)),
    "runs.stop_site": lambda harvester, values: _asked(requests.ask_stop(harvester, values["name"])),
    "sites.confirm": _confirm,
    "sites.disable": lambda harvester, values: _switch(harvester, values["name"], False),
    "sites.enable": lambda harvester, values: _switch(harvester, values["name"], True),
    "sites.harvest": _harvest,
    "sites.skip": lambda harvester, values: _asked(requests.skip_tonight(harvester, values["name"])),
}
"""The same actions as in actions.py."""

_BACK = {
    "runs.remove": "/console/runs",
    "sites.confirm": "/console/tonight",
    "reports.resend_refused": "/console/tonight",
}
_REASONED = ("runs.remove",)


# -- what they change, before and after, in sentences


def _effect_of_confirm(harvester: Harvester, values: Values) -> Sequence[str]:
    with harvester.reading() as session:
        waiting = waiting_deletions(session, values["name"], _NAMED)
    left = waiting.number + waiting.confirmed - len(waiting.documents)
    more = f", and {left:,} more" if left else ""
    named = "; ".join(f"{document_id} ({title})" if title else document_id for document_id, title in waiting.documents)
    return [
        f"The source repository of {values['name']} says that {counted(waiting.number, 'document')} "
        f"{'was' if waiting.number == 1 else 'were'} deleted. The target still has them: they are too many to be "
        "deleted without a confirmation.",
        "The next harvest of the site deletes them in the target.",
        *filter(None, [waiting.confirmed_sentence]),
        f"{'Documents of both' if waiting.confirmed else 'Documents'}: {named}{more}.",
    ]


def _effect_of_remove(harvester: Harvester, values: Values) -> Sequence[str]:
    with harvester.reading() as session:
        run = run_record(session, _number(values["run_id"]))
    return [
        f"Run {run.run_id} of {run.harvest_date} harvested {counted(len(run.sites), 'site')} with "
        f"{counted(run.totals.listed, 'document')}.",
        "Its log, its site runs and its reports are deleted, and cannot be restored. The documents stay, and what is "
        "known of each.",
    ]


def _effect_of_transfer(harvester: Harvester, values: Values) -> Sequence[str]:
    with_whom = TransferRequest((values["document"],), values["name"], rehearse=True)
    [planned] = documents.transfer(harvester, with_whom)
    if not planned.done:
        return [f"{planned.document_id} belongs to the site {values['name']} already: nothing changes."]
    return [
        f"{planned.document_id} belongs to {planned.former or 'no registered site'} now.",
        f"Afterwards it belongs to {values['name']}: only this site can change it.",
    ]


_STOPS = "Documents under way are finished. The rest is left to the next run."

EFFECTS: Mapping[str, str | Callable[[Harvester, Values], Sequence[str]]] = {
    "documents.transfer": _effect_of_transfer,
    "reports.resend_refused": "All refused mails go into the outbox again, to the present addresses. The next delivery "
    "sends them.",
    "runs.remove": _effect_of_remove,
    "runs.stop": _STOPS,
    "runs.stop_site": _STOPS,
    "sites.confirm": _effect_of_confirm,
    "sites.disable": "The site is not harvested until somebody switches it on. Its documents stay.",
}


def _number(text: str) -> int:
    number = whole_number(text)
    if number is None:
        raise NotFound(f"'{text}' is not the number of a run or a request.")
    return number
