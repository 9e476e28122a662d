"""The full texts that a dataset may have: their licence allows it, and they are of the current revision.

A text that was taken from a PDF is no unchanged copy. Licences without derivatives (ND) therefore do not allow it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from sqlalchemy import Select, and_, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputFile, OutputRecord, OutputText, PipelineStep
from metaharvest.errors import RequestError
from metaharvest.fetch.url import without_login
from metaharvest.model.kinds import StageName, StepState
from metaharvest.model.outputs import Output
from metaharvest.model.values import frozen
from metaharvest.pipeline.cleaning.licences import spdx_of
from metaharvest.pipeline.file_store import FolderStore
from metaharvest.pipeline.full_text.links import is_closed
from metaharvest.pipeline.stored_outputs import output_of

log = logging.getLogger(__name__)

_RECORDS, _FILES, _TEXTS, _STEPS = (
    Base.metadata.tables[each.__tablename__] for each in (OutputRecord, OutputFile, OutputText, PipelineStep)
)
_FOUND: Select[*tuple[Any, ...]] = (
    select(
        *DOCUMENTS.c["document_id", "revision"],
        _RECORDS.c.content,
        *_FILES.c["licence", "final_url"],
        *_TEXTS.c["text_sha256", "characters", "language"],
    )
    .select_from(DOCUMENTS)
    .join(_RECORDS, _RECORDS.c.catalogue_document_id == DOCUMENTS.c.catalogue_document_id)
    .join(_TEXTS, _TEXTS.c.catalogue_document_id == DOCUMENTS.c.catalogue_document_id)
    .join(
        _FILES,
        and_(
            _FILES.c.catalogue_document_id == DOCUMENTS.c.catalogue_document_id,
            _FILES.c.sha256 == _TEXTS.c.file_sha256,
            _FILES.c.rank == 0,
        ),
    )
    .join(
        _STEPS,
        and_(
            _STEPS.c.catalogue_document_id == DOCUMENTS.c.catalogue_document_id,
            _STEPS.c.stage == StageName.FULL_TEXT.value,
        ),
    )
    # The licence is the one of the current revision.
    .where(_RECORDS.c.revision == DOCUMENTS.c.revision, _STEPS.c.revision == DOCUMENTS.c.revision)
    .where(_STEPS.c.state != StepState.FAILED.value)
)

LICENCES = (
    *("CC0-1.0", "CC-PDDC", "CC-PDM-1.0", "PDDL-1.0", "Unlicense"),
    *("ODC-By-1.0", "OGL-UK-1.0", "OGL-UK-2.0", "OGL-UK-3.0", "etalab-2.0", "NLOD-2.0"),
    *("DL-DE-BY-2.0", "DL-DE-ZERO-2.0", "GFDL-1.3-only", "GFDL-1.3-or-later"),
)
"""Identifiers of SPDX, beside the licences of Creative Commons."""

CREATIVE_COMMONS = ("CC-BY", "CC-BY-SA", "CC-BY-NC", "CC-BY-NC-SA")
"""Licences of Creative Commons, of all versions and ports. All versions allow redistribution."""

_VERSION = re.compile(r"-\d\.\d(?:-[A-Z]{2,3})?")
_ANY_VERSION = "4.0"


@frozen
class SharedText:
    """A text that may be given away: its digest, characters, language (und: unknown), licence, and its file's address.

    `licence` is an identifier of SPDX; without a version, the kind of a licence of Creative Commons.
    """

    sha256: str
    characters: int
    language: str
    licence: str
    url: str


class Texts:
    """The texts in this folder of the pipeline, on this day."""

    def __init__(self, folder: Path, today: date) -> None:
        """Raises RequestError if the folder is not there."""
        if not folder.is_dir():
            raise RequestError(
                f"There is no folder {folder} ([pipeline] folder), which has the texts. Run the pipeline first, or "
                "correct the setting."
            )
        self._store = FolderStore(folder / "texts")
        self._today = today

    def shared(self, session: Session, revisions: Mapping[str, int]) -> Mapping[str, SharedText]:
        """The texts of these documents, by their revisions, that may be given away."""
        found = {}
        for row in session.execute(_FOUND.where(DOCUMENTS.c.document_id.in_(revisions))):
            if row.revision != revisions[row.document_id]:
                continue
            if licence := shared_under(output_of(row.content), row.licence, self._today):
                url = without_login(row.final_url)
                text = SharedText(row.text_sha256, row.characters, row.language, licence, url)
                found[row.document_id] = text
        return found

    def read(self, document_id: str, text: SharedText) -> str | None:
        """The text; None with a line in the log if it is not in the folder. Raises OSError if it cannot be read."""
        try:
            return self._store.read(text.sha256).decode()
        except FileNotFoundError:
            log.warning("The text of %s is not in the folder %s, and is left out", document_id, self._store.place)
            return None


# -- licences


def shared_under(output: Output, of_file: str | None, today: date) -> str | None:
    """The licence that allows to give the text of an output away: of its file, else of its record. None: none does.

    `of_file` is the licence of the file: an identifier of SPDX, a URL or words. A licence of Creative Commons without
    a version has the name `CC-BY` or the like. None also if the record names a licence that does not allow it, or says
    that its file is closed.
    """
    if is_closed(output, today.isoformat()):
        return None
    given = [of_file or "", *(each.spdx or each.url or each.text for each in output.licences)]
    named = list(dict.fromkeys(name for text in given if (name := _name(text))))
    return named[0] if named and all(map(_is_open, named)) else None


def _name(text: str) -> str | None:
    """The identifier of SPDX of a licence; only its kind if it is of Creative Commons and has no version."""
    if text in LICENCES:
        return text
    if known := spdx_of(text):
        return known
    # The kind of a licence does not depend on its version.
    some = spdx_of(f"{text} {_ANY_VERSION}")
    return _VERSION.sub("", some) if some and some.startswith("CC-BY") else None


def _is_open(name: str) -> bool:
    return name in LICENCES or _VERSION.sub("", name) in CREATIVE_COMMONS
