"""Reports: as they would be written now; sent again, dropped, delivered. Letters about the problems of a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import date, datetime, time

from sqlalchemy import func, select

from metaharvest.accounts.audit import Decision
from metaharvest.config.field_types import check_email
from metaharvest.config.report_context import ReportContext
from metaharvest.database.engine import database_errors, outbox_lock, run_lock, writers
from metaharvest.database.models import SiteProblem
from metaharvest.errors import MetaharvestError, RequestError, value_errors
from metaharvest.mail import outbox
from metaharvest.mail.message import Report
from metaharvest.mail.outbox import Deliveries, Dropped, Resent, ResentRefused
from metaharvest.model import Site
from metaharvest.model.values import frozen
from metaharvest.problems.follow import OPEN
from metaharvest.queries.outbox import newest_run, number_refused, reasons_not_delivered
from metaharvest.queries.problems import documents_of_rule
from metaharvest.queries.runs import newest_site_run_id
from metaharvest.rehearsal.dry_run import RehearsalTarget
from metaharvest.reports import compose
from metaharvest.reports.letters import Letter, LetterDocument, rule_letter
from metaharvest.rules import RULES
from metaharvest.services.harvester import Harvester
from metaharvest.sites.registry import read_sites
from metaharvest.text import one_line

DOCUMENTS = 50
_LONGEST_REASON = 1000


def site_report(harvester: Harvester, site_run_id: int) -> Report:
    """The report of a site run to the site's contacts, as it would be written now."""
    return harvester.read(compose.site_report, site_run_id, _context(harvester))


def admin_report(harvester: Harvester, run_id: int) -> Report:
    """The report of a run to the administrators, as it would be written now; it goes into its log file, if set."""
    return harvester.read(compose.admin_report, run_id, _context(harvester))


def _context(harvester: Harvester) -> ReportContext:
    is_rehearsal = isinstance(harvester.targets.default, RehearsalTarget)
    return ReportContext(harvester.settings, harvester.targets.name_all(), harvester.now(), is_rehearsal)


def newest_report(harvester: Harvester, site_name: str | None = None) -> Report:
    """The newest report to the administrators, or to the contacts of a site, as it would be written now.

    Raises MetaharvestError if there is none.
    """
    with harvester.reading() as session:
        number = newest_run(session) if site_name is None else newest_site_run_id(session, site_name)
    return admin_report(harvester, number) if site_name is None else site_report(harvester, number)


def resend(harvester: Harvester, report_id: int, to: Sequence[str] = ()) -> Resent:
    """Put a report into the outbox again; see `outbox.resend`. Raises RequestError, MetaharvestError."""
    with value_errors():
        addresses = [check_email(each) for each in to]
    with harvester.writing() as session:
        done = outbox.resend(session, report_id, harvester.settings, addresses)
        harvester.audit(session, _about(report_id, "reports.resend", {"to": addresses or "all recipients"}))
        return done


def resend_refused(harvester: Harvester, since: date | None = None) -> ResentRefused:
    """Put all refused deliveries into the outbox again, of reports written on this day or later."""
    moment = None if since is None else datetime.combine(since, time(), harvester.settings.harvester.zone)
    with harvester.writing() as session:
        done = outbox.resend_refused(session, harvester.settings, moment)
        after = {"since": since, **asdict(done)}
        harvester.audit(session, Decision("reports.resend_refused", "reports", "refused reports", after=after))
        return done


def recipients_now(harvester: Harvester, report_id: int) -> tuple[Sequence[str], str]:
    """The present recipients of such reports; if there are none, the reason."""
    with harvester.reading() as session:
        try:
            return outbox.entitled(session, report_id, harvester.settings), ""
        except MetaharvestError as error:
            return (), str(error)


def drop(harvester: Harvester, report_id: int, *, reason: str = "") -> Dropped:
    """Stop the delivery of this report; the number of dropped deliveries. Raises MetaharvestError."""
    by, reason = harvester.actor.name, " ".join(reason.split())
    if len(reason) > _LONGEST_REASON:
        raise RequestError(f"A reason has at most {_LONGEST_REASON:,} characters.")
    dropped = f"It was dropped{by and f' by {by}'} on {harvester.today()}{reason and f': {reason}'}"
    with harvester.writing() as session:
        done = outbox.drop(session, report_id, dropped if dropped.endswith((".", "!", "?")) else f"{dropped}.")
        harvester.audit(session, _about(report_id, "reports.drop", asdict(done), reason))
        return done


def _about(report_id: int, action: str, after: dict[str, object], reason: str = "") -> Decision:
    return Decision(action, "report", str(report_id), after=after, reason=reason)


@frozen
class Delivered:
    """The result for the outbox; `refused`: all deliveries that are not tried again; `reasons`: causes of failures."""

    deliveries: Deliveries
    refused: int
    reasons: tuple[str, ...]


def deliver(harvester: Harvester, is_stopped: Callable[[], bool] = lambda: False) -> Delivered:
    """Hand over the waiting reports in the outbox, under the run lock, as a run does.

    Raises LockHeld if a run is under way, or a worker delivers reports. A minute after `is_stopped` says so, the rest
    is left to the next run.
    """
    began = harvester.now()
    with run_lock(harvester.engine), outbox_lock(harvester.engine), database_errors(harvester.engine):
        done = outbox.deliver(writers(harvester.engine), harvester.settings, harvester.now(), is_stopped=is_stopped)
    if done != Deliveries():
        harvester.write(harvester.audit, Decision("reports.deliver", "reports", "waiting reports", after=asdict(done)))
    with harvester.reading() as session:
        reasons = reasons_not_delivered(session, began) if done.waiting or done.refused else ()
        return Delivered(done, number_refused(session), tuple(reasons))


@frozen
class SiteLetter:
    """The letter for one site; without contacts it has no recipients."""

    site: str
    site_id: int
    letter: Letter


@frozen
class Letters:
    """Some letters in the order of the sites' names; `next`: the name of the site after which more follow."""

    letters: tuple[SiteLetter, ...]
    next: str | None


def letters_about(
    harvester: Harvester, rule: str, *, site: str | None = None, limit: int = 20, after: str = ""
) -> Letters:
    """A letter for each registered site with open problems of the rule, or for this site alone.

    Raises MetaharvestError for an unknown rule.
    """
    if rule not in RULES:
        raise MetaharvestError(f"There is no rule '{one_line(rule)}'.")
    problem = SiteProblem
    open_of_rule = (problem.state == OPEN, problem.rule == rule)
    with harvester.reading() as session:
        counted = select(problem.site_schedule_id, func.count()).where(*open_of_rule).group_by(problem.site_schedule_id)
        numbers = {site_id: int(number) for site_id, number in session.execute(counted)}
        having = [each for each in read_sites(session) if each.site_id in numbers and site in (None, each.name)]
        having.sort(key=lambda each: _place(each.name))
        following = [each for each in having if _place(each.name) > _place(after)] if after else having
        made = []
        for each in following[:limit]:
            found = documents_of_rule(session, rule, site_id=each.site_id, limit=DOCUMENTS)
            named = [
                LetterDocument(row.document_id or "", row.title or "", row.message or "", row.line) for row in found
            ]
            contacts: Sequence[str] = each.contacts if isinstance(each, Site) else ()
            name = one_line(harvester.settings.harvester.name)
            letter = rule_letter(rule, each.name, contacts, named, numbers[each.site_id], name)
            made.append(SiteLetter(each.name, each.site_id, letter))
    return Letters(tuple(made), following[limit - 1].name if len(following) > limit else None)


def _place(name: str) -> tuple[str, str]:
    return name.lower(), name
