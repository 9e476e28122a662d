"""The things that a report asks people to do first, the most important one first.

Decisions that wait for a person come before all others: no run can continue without an answer. They are shown every
night until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy.orm import Session

from metaharvest.ledger.deletions import deletions_unconfirmed
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.problems.attention import OTHER_SITE, claimed_documents
from metaharvest.reports.findings import FindingGroup
from metaharvest.sites.overdue import Overdue
from metaharvest.sites.registry import read_sites_of
from metaharvest.text import counted, one_line

_MOST = 3
"""The number of steps of a report beside decisions that wait for a person."""


@frozen
class Step:
    """One thing to do: `what` is the case, and `todo` the step, with the action if there is one."""

    what: str
    todo: str


@frozen
class Waiting:
    """Decisions that wait for the administrator: each as a step, and in a few words for the subject of the mail."""

    steps: tuple[Step, ...] = ()
    subjects: tuple[str, ...] = ()

    @property
    def opening(self) -> str:
        """The beginning of the subject; empty if nothing waits."""
        return ", ".join(self.subjects)


def waiting_for_a_person(
    session: Session, refused: int, overdue: Sequence[Overdue], failed: Mapping[str, Step]
) -> Waiting:
    """Deletions to confirm, documents that two sites claim, refused mail, sites that are overdue, in this order.

    `failed`: the steps about the sites that failed in this run, by name.
    """
    steps, subjects = list[Step](), list[str]()
    deletions = deletions_unconfirmed(session)
    if number := sum(deletions.values()):
        steps += [_confirm(name, waiting) for name, waiting in deletions.items()]
        subjects.append(f"{counted(number, 'deletion waits', 'deletions wait')} for you")
    claimed = _claimed(session)
    if number := sum(waiting for waiting, _ in claimed.values()):
        steps += [_decide(name, waiting, example) for name, (waiting, example) in claimed.items()]
        subjects.append(f"{counted(number, 'document')} claimed by two sites")
    if refused:
        mails = counted(refused, "mail was", "mails were")
        why, again = todo("reports.undelivered"), todo("reports.resend_refused")
        step = f"{why} shows why; {again} sends refused mail again; {todo('reports.drop')} gives a report up."
        have = "recipient has" if refused == 1 else "recipients have"
        steps.append(Step(f"{mails} refused, and the {have} no report.", step))
        subjects.append(f"{counted(refused, 'mail')} refused")
    if overdue:
        steps.append(_look(overdue, failed))
        subjects.append(f"{counted(len(overdue), 'site')} overdue")
    return Waiting(tuple(steps), tuple(subjects))


def first_steps(groups: Iterable[FindingGroup]) -> tuple[Step, ...]:
    """The first things to do about these findings, which come with the gravest first."""
    return tuple(step for step in (_correct(group) for group in groups) if step.todo)[:_MOST]


def _confirm(name: str, number: int) -> Step:
    are, them = ("is", "it") if number == 1 else ("are", "them")
    said = f"{one_line(name)}: the repository says that {counted(number, 'document')} {are} deleted."
    confirm = todo("sites.confirm", name=name)
    return Step(
        f"{said} Nothing is deleted until you confirm.",
        f"Ask the keeper of the repository. If it is right, {confirm} has the next harvest delete {them}.",
    )


def _claimed(session: Session) -> dict[str, tuple[int, str]]:
    """By site, the number of its documents that belong to another site, and the first of them."""
    found = claimed_documents(session)
    sites = read_sites_of(session, found)
    return {site.name: found[number] for number, site in sites.items() if site.enabled}


def _decide(name: str, number: int, example: str) -> Step:
    documents = counted(number, "document belongs", "documents belong")
    listed = todo("documents.of_rule", name=name, rule=OTHER_SITE)
    transfer = todo("documents.transfer", document=one_line(example), name=name)
    return Step(
        f"{one_line(name)}: {documents} to another site, such as {one_line(example)}.",
        f"{listed} lists them. Where a document has moved to this site, {transfer} gives it to the site.",
    )


def _look(overdue: Sequence[Overdue], failed: Mapping[str, Step]) -> Step:
    first, more = overdue[0], len(overdue) - 1
    others = f" {counted(more, 'more site is', 'more sites are')} overdue." if more else ""
    why = failed.get(one_line(first.name))
    reason = f" {why.what.removeprefix(one_line(first.name) + ': ')}" if why else ""
    return Step(one_line(first.sentence) + reason + others, why.todo if why else show_site(first.name))


def show_site(name: str) -> str:
    """The step that shows more about a site."""
    return f"{todo('sites.show', name=name)} shows its last harvests."


def _correct(group: FindingGroup) -> Step:
    line = group.lines[0] if group.lines else None
    # The path in the document is left out: it is long, and the finding below has it.
    place = ", ".join(filter(None, (line.docid, line.place.partition(", /")[0]))) if line else ""
    such = f"{' such as' if group.count > 1 else ''} {place}" if place else ""
    number = f" ({group.count:,})" if group.count > 1 else ""
    remedy = group.remedy or (line.remedy if line else "")
    return Step(f"{group.title}{number}{':' if such and group.count == 1 else ',' if such else ''}{such}.", remedy)
