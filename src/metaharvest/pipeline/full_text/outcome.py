"""The failure of a document without a file: the rule, the sentence, the time of the next try. Pure."""

from __future__ import annotations

from datetime import date, timedelta

from metaharvest.errors import FetchError
from metaharvest.pipeline.full_text.walk import Reason, Refusal
from metaharvest.pipeline.stage import Failure

RULES = {reason: f"full-text.{reason}" for reason in Reason}

_RETRY = {
    Reason.UNREACHABLE: timedelta(days=2),
    Reason.BLOCKED: timedelta(days=30),
    Reason.LOGIN: timedelta(days=90),
    Reason.LICENCE: timedelta(days=90),
    Reason.TOO_LARGE: timedelta(days=90),
    Reason.WRONG_TYPE: timedelta(days=60),
    Reason.TOO_MANY_HOPS: timedelta(days=90),
    Reason.LOOP: timedelta(days=60),
    Reason.MISSING: timedelta(days=30),
    Reason.NO_LINK: timedelta(days=90),
}
"""The time until a document is tried again. A new revision of its record is tried at once."""

_SHORTEST = timedelta(hours=1)

_BY_RULE = {
    "http.robots": Reason.BLOCKED,
    "http.blocked": Reason.BLOCKED,
    "http.address-not-public": Reason.BLOCKED,
    "http.too-large": Reason.TOO_LARGE,
    "http.redirects": Reason.LOOP,
    "http.empty": Reason.MISSING,
    "http.bad-url": Reason.MISSING,
    "http.scheme": Reason.MISSING,
}
_BY_STATUS = {401: Reason.LOGIN, 403: Reason.BLOCKED, 404: Reason.MISSING, 410: Reason.MISSING, 451: Reason.BLOCKED}


def failure_of(refusal: Refusal) -> Failure:
    """The failure of a document whose file was not found."""
    pause = refusal.retry_after
    wait = _RETRY[refusal.reason] if pause is None else max(pause, _SHORTEST)
    is_embargo = refusal.reason is Reason.LICENCE and pause is not None
    return Failure(RULES[refusal.reason], refusal.message, wait, is_exact=is_embargo)


def keeps_files(refusal: Refusal, *, has_text_only: bool = False) -> bool:
    """True if files that were found earlier stay: their server does not answer, or answers 404 or nothing.

    `has_text_only`: the bytes of a file to keep were lost on our side. Its text stays unless the record is closed.
    """
    is_away = refusal.reason is Reason.UNREACHABLE or refusal.may_return
    return is_away or (has_text_only and refusal.reason is not Reason.LICENCE)


def refusal_of(error: FetchError) -> Refusal:
    """The reason behind a failed request."""
    finding = error.findings[0]
    reason = _BY_RULE.get(finding.rule)
    if reason is None and error.status >= 400 and not error.transient:
        reason = _BY_STATUS.get(error.status, Reason.MISSING if error.status < 500 else None)
    reason = reason or Reason.UNREACHABLE
    pause = timedelta(seconds=error.retry_after) if error.retry_after and reason is Reason.UNREACHABLE else None
    is_dead_link = error.status == 404 or (finding.rule == "http.empty" and error.status != 410)
    return Refusal(reason, finding.message, pause, may_return=reason is Reason.MISSING and is_dead_link)


def closed(embargo_until: str | None, today: date) -> Refusal:
    """The record says that the file is not open, or not before a date."""
    if embargo_until is None:
        return Refusal(Reason.LICENCE, "The record says that its file is not open to everybody.")
    message = f"The record says that its file is under an embargo until {embargo_until}."
    try:
        days = (date.fromisoformat(embargo_until[:10]) - today).days
    except ValueError:
        return Refusal(Reason.LICENCE, message)
    return Refusal(Reason.LICENCE, message, timedelta(days=max(days, 1)))
