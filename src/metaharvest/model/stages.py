"""The stages of the pipeline, and how far a document has come at one."""

from __future__ import annotations

from enum import StrEnum


class StageName(StrEnum):
    """The stages of this program, in their order."""

    CLEANING = "cleaning"
    FULL_TEXT = "full-text"
    EXTRACTION = "extraction"
    DUPLICATES = "duplicates"
    INDEX = "index"


OF_FILES = (StageName.FULL_TEXT, StageName.EXTRACTION)
"""The stages that find files, and read them."""


class StepState(StrEnum):
    """How far a document has come at a stage.

    `skipped`: the stage has nothing to do for the document. `gone`: the document is deleted or not public, and the
    stage has removed its results.
    """

    WAITING = "waiting"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    GONE = "gone"
