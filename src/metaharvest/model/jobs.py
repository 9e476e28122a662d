"""Jobs of workers: kinds, states, and the steps of their one life cycle."""

from __future__ import annotations

from enum import StrEnum


class JobKind(StrEnum):
    """The kinds of jobs that the harvester has by itself. Others come by entry points."""

    HARVEST_SITE = "harvest_site"
    CLOSE_RUN = "close_run"
    DELIVER = "deliver"
    PIPELINE = "pipeline"


class JobState(StrEnum):
    """The state of a job. A job that is ready or taken is open."""

    READY = "ready"
    TAKEN = "taken"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = (JobState.READY.value, JobState.TAKEN.value)
"""The states of open jobs."""


class Step(StrEnum):
    """The steps in the life of a job, in their order."""

    STARTED = "started"
    COLLECTED = "collected"
    PERFORMED = "performed"
    FINALISED = "finalised"
    ASSESSED = "assessed"
    ENDED = "ended"


class Assessment(StrEnum):
    """The state of a job after a slice."""

    DONE = "done"
    AGAIN = "again"
    FAILED = "failed"


class Priority:
    """The order of jobs: a job with a higher number comes first."""

    CLOSING = 400
    """The end of a run, and the delivery of its reports."""
    ASKED = 200
    """A request of a person adds its own priority, 0 to 100."""
    RETRY = 150
    DUE = 50
    """Each day that a site is overdue adds 1, up to MOST_DAYS."""
    MOST_DAYS = 99
    NEW = 10
    PIPELINE = 5
