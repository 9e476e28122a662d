"""Checks a harvest list as its harvest would, without a request to any server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from metaharvest.errors import ListError
from metaharvest.harvest.decide import decide
from metaharvest.model import Finding, ListedDocument
from metaharvest.publishing.list_file import place_of
from metaharvest.publishing.list_store import documents_of_list


@dataclass(frozen=True, slots=True)
class CheckedList:
    """The entries of a list, none if it is not valid, and the findings of its harvest."""

    documents: tuple[ListedDocument, ...]
    findings: tuple[Finding, ...]

    @property
    def is_valid(self) -> bool:
        """True if a harvest would accept it."""
        return not any(finding.is_error for finding in self.findings)


def checked_list(path: Path, *, files_allowed: bool) -> CheckedList:
    """The list in this file; `files_allowed`: it may name file: URLs. Raises PublishingError."""
    try:
        documents = tuple(documents_of_list(path, files_allowed=files_allowed))
    except ListError as error:
        return CheckedList((), error.findings)
    in_order = sorted(documents, key=lambda each: (*place_of(each)[:2], each.document_id, each.revision))
    intents = decide(in_order, {}, 0, {})
    return CheckedList(documents, tuple(finding for intent in intents for finding in intent.findings))
