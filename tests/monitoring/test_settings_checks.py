"""What `doctor` says of secrets, disks and templates that the settings name."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from metaharvest.config.settings import PipelineSettings, ReportsSettings, Settings, WebSettings, WorkersSettings
from metaharvest.monitoring import settings_checks
from metaharvest.reports import template_check


@pytest.mark.parametrize(("mode", "state"), [(0o644, "WARNING"), (0o600, "OK")])
def test_the_file_with_the_address_of_the_broker_is_a_secret(tmp_path: Path, mode: int, state: str) -> None:
    secret = tmp_path / "broker"
    secret.write_text("amqp://me:sesame@127.0.0.1/", encoding="utf-8")
    secret.chmod(mode)
    settings = Settings(folder=tmp_path, workers=WorkersSettings(broker="file:broker"))
    [check] = settings_checks._secrets(settings)
    assert (check.name, check.state) == ("broker of [workers]", state)
    assert list(settings_checks._secrets(Settings(folder=tmp_path))) == []


def test_missing_secrets_of_the_web_server_are_problems(tmp_path: Path) -> None:
    web = WebSettings(token_key="env:NO_TOKEN_KEY", oidc_client_secret="file:no-client-secret")
    found = {check.name: check.state for check in settings_checks._secrets(Settings(folder=tmp_path, web=web))}
    assert found == {"token_key of [web]": "PROBLEM", "oidc_client_secret of [web]": "PROBLEM"}
    plain = Settings(folder=tmp_path, web=WebSettings(token_key="a key"))
    assert list(settings_checks._secrets(plain)) == []


def test_the_disks_of_the_pipeline_and_of_report_files_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = list[Path]()

    def nearest_there(folder: Path) -> Path:
        folders.append(folder)
        return tmp_path

    monkeypatch.setattr(settings_checks, "nearest_there", nearest_there)
    reports = ReportsSettings(admin="log-file", log_folder=Path("logs"))
    pipeline = PipelineSettings(enabled=True, folder=Path("papers"))
    assert len(list(settings_checks._disk_space(Settings(folder=tmp_path, reports=reports, pipeline=pipeline)))) == 1
    assert {tmp_path / "logs", tmp_path / "papers"} <= set(folders)


TOO_MUCH = "take too long, or too much memory"


@pytest.mark.parametrize(
    ("code", "last_line", "said"),
    [
        (1, "PermissionError: [Errno 13] Permission denied: 'own'", "cannot be checked: PermissionError: [Errno 13]"),
        (1, "MemoryError", TOO_MUCH),
        (-9, "", TOO_MUCH),
    ],
)
def test_a_check_of_templates_that_ends_early_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, last_line: str, said: str
) -> None:
    ended = subprocess.CompletedProcess([], code, "", f"Traceback (most recent call last):\n{last_line}\n")
    running = SimpleNamespace(run=lambda *_, **__: ended, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(template_check, "subprocess", running)
    [sentence] = template_check.problems_of_templates(
        Settings(folder=tmp_path, reports=ReportsSettings(templates=Path("own")))
    )
    assert sentence.startswith(f"The templates in {tmp_path / 'own'} {said}")
