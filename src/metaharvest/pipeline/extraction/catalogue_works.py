"""Works of the catalogue that references may name: found by DOI, and by the keys of titles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.pipeline_models import OutputRecord, OutputTitle
from metaharvest.database.statements import rows_with
from metaharvest.model.outputs import Output
from metaharvest.pipeline.extraction.citation import Reference
from metaharvest.pipeline.extraction.matching import Match, Work, by_title
from metaharvest.pipeline.stored_outputs import read_outputs
from metaharvest.pipeline.title_keys import keys_in_reference

_MOST_WITH_KEY = 50
"""Outputs with one key: a key of more is a phrase that many titles begin with."""


def matches(session: Session, references: Sequence[Reference], own: int) -> list[Match | None]:
    """The work of the catalogue that each reference names, None without one. `own` is the document with the references.

    By the DOI, else by the title.
    """
    by_doi = with_dois(session, {each.doi for each in references if each.doi}, own)
    found: list[Match | None] = [
        Match(by_doi[each.doi], "doi", 100.0) if each.doi in by_doi else None for each in references
    ]
    wanted = [place for place, match in enumerate(found) if match is None]
    candidates = _candidates(session, [references[place] for place in wanted], own)
    for place, works in zip(wanted, candidates, strict=True):
        found[place] = by_title(references[place], works)
    return found


def with_dois(session: Session, dois: Collection[str | None], own: int) -> Mapping[str | None, Work]:
    """The works with these DOIs; of several outputs with one DOI, the first."""
    found: dict[str | None, Work] = {}
    number = OutputRecord.catalogue_document_id
    query = select(OutputRecord.doi, number).where(number != own).order_by(number)
    for doi, first in rows_with(session, query, OutputRecord.doi, sorted(each for each in dois if each)):
        found.setdefault(doi, Work((), doi=doi, number=first))
    return found


def work_of(output: Output, number: int | None = None) -> Work:
    """The parts of an output by which references are compared with it."""
    titles = tuple(each.text for each in output.titles)
    names = tuple(each.family or each.name for each in output.creators)
    return Work(titles, output.year, names, output.doi, number)


def _candidates(session: Session, references: Sequence[Reference], own: int) -> list[list[Work]]:
    """The works that have a key in common with each reference."""
    keys = [keys_in_reference(each.raw) for each in references]
    numbers = _numbers(session, {key for each in keys for key in each}, own)
    wanted = [sorted({number for key in each for number in numbers.get(key, ())}) for each in keys]
    outputs = read_outputs(session, {number for each in wanted for number in each})
    works = {number: work_of(output, number) for number, output in outputs.items()}
    return [[works[number] for number in each if number in works] for each in wanted]


def _numbers(session: Session, keys: Iterable[str], own: int) -> Mapping[str, Sequence[int]]:
    """The outputs with each of these keys; a key of too many outputs is left out."""
    title_key = OutputTitle.title_key
    counted = select(title_key).group_by(title_key).having(func.count() <= _MOST_WITH_KEY)
    known = [row[0] for row in rows_with(session, counted, title_key, sorted(keys))]
    found: defaultdict[str, list[int]] = defaultdict(list)
    for key, number in rows_with(session, select(title_key, OutputTitle.catalogue_document_id), title_key, known):
        if number != own:
            found[key].append(number)
    return found
