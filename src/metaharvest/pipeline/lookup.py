"""The stages: first the stages of this program in their order, then the stages of other distributions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from importlib import import_module

from sqlalchemy.orm import Session

from metaharvest.config.kinds import STAGES
from metaharvest.config.settings import Settings
from metaharvest.errors import SettingsError
from metaharvest.model.kinds import OF_FILES, StageName
from metaharvest.pipeline.stage import Context, Stage

_MODULES = {
    StageName.CLEANING: "cleaning",
    StageName.FULL_TEXT: "full_text",
    StageName.EXTRACTION: "extraction",
    StageName.DUPLICATES: "duplicates",
    StageName.INDEX: "search",
}


def stages(settings: Settings) -> Sequence[Stage]:
    """The stages of this installation in their order. Raises SettingsError if one cannot be loaded.

    Without full texts, the first stage removes what the stages of files have of documents that are gone.
    """
    first, *others = (_stage(each) for each in settings.pipeline.stage_names())
    if not settings.pipeline.full_text:
        first = with_removal(first, [_stage(each) for each in OF_FILES])
    return with_followers([first, *others])


def with_removal(stage: Stage, unused: Sequence[Stage]) -> Stage:
    """The stage, which also removes what stages that do not run have of documents that are gone."""
    every = (stage, *unused)

    def remove(session: Session, numbers: Collection[int]) -> None:
        for each in every:
            each.remove(session, numbers)

    def tidy(context: Context) -> None:
        for each in every:
            each.tidy(context)

    return replace(stage, remove=remove, tidy=tidy)


def with_followers(found: Sequence[Stage]) -> Sequence[Stage]:
    """The stages; each one also wakes the stages that follow it."""
    return [
        replace(stage, wakes=(*stage.wakes, *(each.name for each in found if stage.name in each.follows)))
        for stage in found
    ]


def _stage(name: str) -> Stage:
    if name in _MODULES:
        stage: Stage = import_module(f"metaharvest.pipeline.{_MODULES[StageName(name)]}.stage").STAGE
        return stage
    try:
        stage = STAGES.load(name)
    except ValueError as error:
        raise SettingsError(f"The stage {name} of the pipeline cannot be used: {error}.") from error
    return stage
