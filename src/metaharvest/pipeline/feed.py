"""How far the readers of the change feed outside of this program have come. Writes pipeline_feed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from metaharvest.database.pipeline_models import PipelineFeed


def position(session: Session, name: str) -> int:
    """The number of the last change that a reader has confirmed; 0 if it is new."""
    feed = session.get(PipelineFeed, name)
    return 0 if feed is None else feed.change_seq


def confirm(session: Session, name: str, change_seq: int, now: datetime) -> None:
    """Note that a reader has all changes up to this one. A lower number than before gives it changes again."""
    feed = session.get(PipelineFeed, name, with_for_update=True)
    if feed is None:
        session.add(PipelineFeed(name=name, change_seq=change_seq, moved_at=now))
    else:
        feed.change_seq, feed.moved_at = change_seq, now
