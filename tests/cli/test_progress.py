"""The bars on a terminal: what they come to."""

from rich.progress import Progress

from metaharvest.cli.progress import _SiteBars


def test_a_bar_ends_at_the_number_of_documents_that_its_site_came_to() -> None:
    bars = Progress(disable=True)
    shown = _SiteBars(bars)
    shown.site_began("[alder] creek")
    shown.documents_listed("[alder] creek", 7)
    shown.documents_ended("[alder] creek", 7)
    shown.site_ended("[alder] creek")
    shown.site_began("without a list")
    shown.site_ended("without a list")
    assert [(task.completed, task.total, task.finished) for task in bars.tasks] == [(7, 7, True), (0, 0, True)]


def test_a_site_that_ends_before_it_begins_has_no_bar() -> None:
    bars = Progress(disable=True)
    _SiteBars(bars).site_ended("switched off")
    assert bars.tasks == []
