"""The stored bytes of a document, from the target that has it."""

from __future__ import annotations

from collections.abc import Sequence

from metaharvest.catalogue.held_revisions import content_of
from metaharvest.services.harvester import Harvester


def stored_record(harvester: Harvester, document_id: str, revision: int, sites: Sequence[str] = ()) -> bytes | None:
    """The bytes of this revision: from the embedded target, or from the targets of `sites`; None if they are nowhere.

    Raises TargetError, DatabaseUnavailable.
    """
    with harvester.reading() as session:
        content = content_of(session, document_id, revision)
    if content is not None:
        return content
    for name in sites:
        content = harvester.targets.of(name).content(document_id, revision)
        if content is not None:
            return content
    return None
