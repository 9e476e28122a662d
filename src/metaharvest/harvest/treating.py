"""How a site's documents are treated: what its options, its files and the settings say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from metaharvest.config.settings import Settings
from metaharvest.model import Finding, Level, ListedDocument, Outcome, OutcomeKind, Site, ValidationLevel
from metaharvest.transform import read_filters, read_normalization
from metaharvest.validation import Treatment


def treatment_of(site: Site, settings: Settings) -> Treatment:
    """What is done with the documents of this site; reads its files. Raises TransformError if one cannot be used."""
    options = settings.applied_to(site).options
    return Treatment(
        options.package_id_mismatch or settings.validation.package_id_mismatch,
        options.validation,
        read_filters(options.filters) if options.filters else None,
        read_normalization(options.normalize) if options.normalize else None,
        settings.http.max_document_bytes,
    )


def treatment_for(document: ListedDocument, treatment: Treatment) -> Treatment:
    """The same for this document: a record of a repository need not be EML where the site has no level of its own."""
    if document.origin is None or treatment.level is not None:
        return treatment
    return replace(treatment, level=ValidationLevel.STRICT)


def is_checked_by_reading(document: ListedDocument, treatment: Treatment) -> bool:
    """Whether nothing is left to be checked of a record: its canonical form is known, so that it is well-formed."""
    is_strict = treatment.level in (None, ValidationLevel.STRICT)
    return document.origin is not None and bool(document.origin.digest) and is_strict and not treatment.transforms


def told(findings: Iterable[Finding], treatment: Treatment) -> tuple[Finding, ...]:
    """The findings about what a site does not serve as it should: of a site of the level loose, they are warnings."""
    if treatment.level is not ValidationLevel.LOOSE:
        return tuple(findings)
    return tuple(replace(finding, level=Level.WARNING) for finding in findings)


def outcome_told(outcome: Outcome, treatment: Treatment) -> Outcome:
    """The outcome with what is told of it, where the document could not be had, or is not acceptable."""
    if outcome.kind not in (OutcomeKind.ACCESS_ERROR, OutcomeKind.INVALID):
        return outcome
    return replace(outcome, findings=told(outcome.findings, treatment))
