"""The samples with which templates are tried."""

from __future__ import annotations

from metaharvest.config.paths import data_folder
from metaharvest.config.settings import Settings
from metaharvest.reports.template_check import SAMPLES, broken_templates


def test_each_mail_has_a_sample_and_can_be_rendered() -> None:
    folders = {each.name for each in (data_folder("templates") / "email").iterdir() if each.is_dir()}
    assert folders - {"shared"} == set(SAMPLES)
    assert broken_templates(Settings()) == []
