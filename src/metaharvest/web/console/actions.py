"""The actions that a remedy names, as links and buttons of the console. Pure.

PAGES_OF has the page on which an action is carried out; `pages/confirmation.py` carries out the others. A reader whose
role may not do it, and an action without a page, get the words and the command. In a template:
`{% import "actions.html" as a with context %}`, then `{{ a.remedy(finding.remedy) }}`, or `{{ a.offer(action) }}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from metaharvest.model.actions import Todo, parts
from metaharvest.model.values import frozen

DEED_PATH = "/console/actions"

PAGES_OF: Mapping[str, tuple[Sequence[str], Mapping[str, str]]] = {
    "installation.check": (("/console/installation",), {}),
    "runs.list": (("/console/runs",), {}),
    "runs.show": (("/console/runs", "{run_id}"), {}),
    "runs.requested": (("/console/jobs",), {}),
    "requests.list": (("/console/jobs",), {}),
    "log.of_site": (("/console/log",), {"site": "{name}"}),
    "log.table": (("/console/log.csv",), {"run": "{run_id}", "level": "debug"}),
    "sites.add_list": (("/console/sites/add",), {}),
    "sites.add_repository": (("/console/sites/add",), {}),
    "sites.list": (("/console/sites",), {}),
    "sites.show": (("/console/sites", "{name}"), {}),
    "sites.edit": (("/console/sites", "{name}"), {}),
    "sites.set_next": (("/console/sites", "{name}"), {}),
    "sites.set_full_every": (("/console/sites", "{name}"), {}),
    "sites.set_login": (("/console/sites", "{name}"), {}),
    "sites.set_login_name": (("/console/sites", "{name}"), {}),
    "sites.set_password": (("/console/sites", "{name}"), {}),
    "documents.withdraw": (("/console/documents", "{document}", "withdraw"), {}),
    "documents.readmit": (("/console/documents", "{document}"), {}),
    "documents.list": (("/console/documents",), {}),
    "documents.show": (("/console/documents", "{document}"), {}),
    "documents.of_rule": (("/console/documents",), {"site": "{name}", "rule": "{rule}"}),
    "pipeline.show": (("/console/pipeline",), {}),
    "pipeline.failures": (("/console/pipeline/failures",), {}),
    "reports.list": (("/console/outbox",), {}),
    "reports.undelivered": (("/console/outbox",), {"state": "undelivered"}),
    "reports.refused": (("/console/outbox",), {"state": "refused"}),
}
"""By the id of an action: the address of its page, and its arguments; words in braces are values of the action."""


AT_ONCE = frozenset({"runs.full", "requests.cancel", "sites.enable", "sites.harvest", "sites.skip"})
"""The actions that a button carries out."""

AFTER_A_QUESTION = frozenset(
    {
        "documents.transfer", "reports.resend_refused", "runs.remove", "runs.stop", "runs.stop_site", "sites.confirm",
        "sites.disable",
    }
)  # fmt: skip
"""The actions whose changes a page shows first."""


@frozen
class Offer:
    """A part of a text. With `address`, parts of a path, it is a link or a button; `query`: its arguments or fields.

    `command` is the command of an action that this reader cannot carry out here.
    """

    words: str
    address: tuple[str, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    is_button: bool = False
    command: str = ""


MayOpen = Callable[..., bool]
"""True if the reader may open the page at these parts of a path, with this `method`."""


def offers(text: str, may_open: MayOpen) -> Iterator[Offer]:
    """The parts of a remedy in order."""
    for part in parts(text):
        if isinstance(part, Todo):
            yield offer(part, may_open)
        elif part:
            yield Offer(part)


def offer(action: Todo, may_open: MayOpen) -> Offer:
    """The link or the button of an action, as far as the reader may use it; otherwise its words and its command."""
    if action.id in AT_ONCE | AFTER_A_QUESTION:
        address = (DEED_PATH, action.id)
        if not action.missing and may_open(*address, method="POST"):
            return Offer(action.label, address, action.values, is_button=action.id in AT_ONCE)
    elif (page := _page(action)) and may_open(*page[0]):
        return Offer(action.label, *page)
    return Offer(action.label, command=action.command)


def _page(action: Todo) -> tuple[tuple[str, ...], dict[str, str]] | None:
    """The page of this action; None if there is none, or a value is missing."""
    if action.id not in PAGES_OF:
        return None
    path, arguments = PAGES_OF[action.id]
    try:
        address = tuple(part.format_map(action.values) for part in path)
        return address, {name: value.format_map(action.values) for name, value in arguments.items()}
    except KeyError:
        return None
