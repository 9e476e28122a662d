"""The change feed for the indexer of another program: read it, or deliver it to a command or a web address.

Each change is delivered at least once, in the order of the commits. The position of a reader moves after a batch was
delivered. Documents that are not public are left out, or are given as deleted if they were public before.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import ChangedDocument, changed_documents, last_change
from metaharvest.database.models import HarvestRun, HarvestSiteRun, HarvestSiteSchedule, SiteCheckpoint
from metaharvest.errors import NotTaken, RequestError
from metaharvest.model import RunStatus, SiteRunStatus
from metaharvest.model.actions import todo
from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen
from metaharvest.pipeline import feed
from metaharvest.pipeline.search.removals import INDEX_FEED
from metaharvest.pipeline.steps import FEED
from metaharvest.queries.public_sites import hidden_by
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line

Send = Callable[[str], None]
"""Delivers a batch: a JSON object a line. Raises NotTaken if the receiver did not take it."""

_CONNECT_SECONDS, _ANSWER_SECONDS = 10, 300
_LONGEST_NAME = 100
_KEYS = "change_seq document_id revision document_type is_deleted changed_at site title"


@frozen
class Delivery:
    """The changes to deliver: `after` a number, `limit` a batch, at most this number of `batches`.

    `name` is the reader whose position moves. `whole_lists`: stop before the first document of a site whose list is
    being harvested.
    """

    after: int
    limit: int
    name: str | None = None
    batches: int | None = None
    whole_lists: bool = False


@frozen
class Delivered:
    """The number of changes that were delivered, and the number of the last one.

    `waits_for` is the site whose harvest ended the delivery early, or None.
    """

    changes: int
    position: int
    waits_for: str | None = None


def position(harvester: Harvester, name: str) -> int:
    """The number of the last change that the reader with this name has confirmed. Raises RequestError."""
    _require_name(name)
    return harvester.read(feed.position, name)


def confirm(harvester: Harvester, name: str, change_seq: int) -> None:
    """Note that a reader has all changes up to this one. Raises RequestError if there is no such change yet."""
    _require_name(name)
    with harvester.writing() as session:
        last = last_change(session)
        if change_seq > last:
            raise RequestError(
                f"There is no change {change_seq} yet: the last one is {last}. {todo('changes.list', seq=0)} lists all."
            )
        feed.confirm(session, name, change_seq, harvester.now())


def deliver(harvester: Harvester, send: Send, wanted: Delivery, stops: Callable[[], bool]) -> Delivered:
    """Send changes batch by batch, and move the position of the reader.

    Raises NotTaken: the batch was not taken, and the position stays before it.
    """
    number, done, after = 0, 0, wanted.after
    while not stops() and (wanted.batches is None or done < wanted.batches):
        waits_for = None
        with harvester.reading() as session:
            hidden = hidden_by(session, harvester.settings.web.hidden)
            found = changed_documents(session, after, wanted.limit, hidden)
            if wanted.whole_lists:
                found, waits_for = before_sweeps(found, _sweeping(session))
        if found:
            lines = (picked(each, _KEYS) | {"changed_at": each.changed_at.isoformat()} for each in found)
            send("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
            number, done, after = number + len(found), done + 1, found[-1].change_seq
            if wanted.name is not None:
                confirm(harvester, wanted.name, after)
        if waits_for is not None or len(found) < wanted.limit:
            return Delivered(number, after, waits_for)
    return Delivered(number, after)


def before_sweeps(
    changes: Sequence[ChangedDocument], sweeping: frozenset[str]
) -> tuple[Sequence[ChangedDocument], str | None]:
    """The changes before the first one of a site whose list is being harvested, and that site."""
    for number, each in enumerate(changes):
        if each.site in sweeping:
            return changes[:number], each.site
    return changes, None


def to_command(command: str) -> Send:
    """Runs a command of a shell with a batch on its standard input. Exit code 0: it has taken the batch."""

    def send(lines: str) -> None:
        # The person who gives the command runs it: it is theirs, as in a pipe.
        ended = subprocess.run(command, shell=True, input=lines.encode(), check=False)
        if ended.returncode:
            raise NotTaken(f"The command ended with the exit code {ended.returncode}.{_AGAIN}")

    return send


def to_address(url: str) -> Send:
    """Sends a batch to a web address by POST, as application/x-ndjson. An answer 2xx: it was taken.

    The operator chooses the address, so the network policy for sites does not apply. Raises RequestError if the address
    is none.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RequestError("The address for --post has to begin with http:// or https:// and a host name.")
    place = one_line(parts.hostname, 100)

    def send(lines: str) -> None:
        import requests

        headers, limits = {"Content-Type": "application/x-ndjson"}, (_CONNECT_SECONDS, _ANSWER_SECONDS)
        try:
            with requests.post(
                url, lines.encode(), headers=headers, timeout=limits, allow_redirects=False, stream=True
            ) as answer:
                status = answer.status_code
        except requests.RequestException as error:
            reason = one_line(type(error).__name__)
            raise NotTaken(f"{place} did not answer ({reason}).{_AGAIN}") from error
        if not 200 <= status < 300:
            raise NotTaken(f"{place} answered with HTTP {status}.{_AGAIN}")

    return send


_AGAIN = " The position stays where it is: the next call gives the same changes again."


def _sweeping(session: Session) -> frozenset[str]:
    """The names of the sites whose list is being harvested.

    A sweep of a source repository may go over several runs; a site that is switched off does not go on with it. A
    harvest list is read to its end before its documents are stored: it is under way in the run alone.
    """
    its = SiteCheckpoint.site_schedule_id == HarvestSiteSchedule.site_schedule_id
    under_way = SiteCheckpoint.kind.is_not(None), HarvestSiteSchedule.enabled.is_(True)
    found = set(session.scalars(select(HarvestSiteSchedule.name).join(SiteCheckpoint, its).where(*under_way)))
    of_the_run = select(HarvestSiteSchedule.name).join(
        HarvestSiteRun, HarvestSiteRun.site_schedule_id == HarvestSiteSchedule.site_schedule_id
    )
    running = HarvestSiteRun.run_id.in_(select(HarvestRun.run_id).where(HarvestRun.status == RunStatus.RUNNING.value))
    found.update(session.scalars(of_the_run.where(running, HarvestSiteRun.status == SiteRunStatus.RUNNING.value)))
    return frozenset(found)


def _require_name(name: str) -> None:
    if name in (FEED, INDEX_FEED):
        raise RequestError(f"{name} is the name of this program's own pipeline: choose another one.")
    if not 0 < len(name) <= _LONGEST_NAME or one_line(name) != name:
        raise RequestError(f"A name for --name has 1 to {_LONGEST_NAME} characters in one line.")
