"""Runs `metaharvest` as people do: in this process for speed, or as a process of its own where exit codes count."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from metaharvest.cli import cli
from metaharvest.config.settings import load
from metaharvest.database.engine import open_database
from metaharvest.demo.samples import SampleNetwork
from support.databases import empty_sqlite_file
from support.fork_server import ForkedPopen
from support.harvester import any_day, rows_of

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 24, 1, 2


@dataclass(frozen=True)
class Told:
    """What a command said; `code` is what it returned, `error` what it raised."""

    out: str
    err: str
    raw: bytes
    code: object
    error: BaseException | None

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def attempt(folder: Path, *arguments: str) -> Told:
    """Run a command with the settings file of `folder`; whatever it raises is in `error`."""
    config = str(folder / "metaharvest.toml")
    result = CliRunner().invoke(cli, ["--config", config, *any_day(arguments)], standalone_mode=False)
    return Told(result.stdout, result.stderr, result.stdout_bytes, result.return_value, result.exception)


def tell(folder: Path, *arguments: str) -> Told:
    """Run a command that must not fail."""
    told = attempt(folder, *arguments)
    if told.error is not None:
        raise told.error
    return told


def initialize(folder: Path) -> None:
    """`init`, where the tables, which take longest, are there already if the database is the default one."""
    settings = folder / "metaharvest.toml"
    database = folder / "metaharvest.db"
    is_default = not settings.exists() or "[database]" not in settings.read_text(encoding="utf-8")
    if is_default and not database.exists():
        database.write_bytes(empty_sqlite_file())
    tell(folder, "init")


def process(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a process of its own, in `folder`."""
    with ForkedPopen(
        [sys.executable, "-m", "metaharvest", *arguments],
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            out, err = running.communicate(timeout=60)
        except BaseException:
            running.kill()
            raise
        return subprocess.CompletedProcess(running.args, running.returncode, out, err)


def process_as_others(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command for which permissions hold, also where the tests are run by the superuser (on Linux)."""

    def obey_permissions() -> None:
        prctl = ctypes.CDLL(None).prctl
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)

    command = [sys.executable, "-m", "metaharvest", *arguments]
    before = obey_permissions if os.geteuid() == 0 else None
    return subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=before)


def in_database(folder: Path, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """What the database of this installation answers to SQL with a `?` for each value; changes are committed."""
    engine = open_database(load(folder / "metaharvest.toml"))
    try:
        return rows_of(engine, sql, *values)
    finally:
        engine.dispose()


def harvested(folder: Path) -> None:
    """Set `folder` up and harvest two sample sites into it: one all well, one with every kind of bad document."""
    initialize(folder)
    with SampleNetwork() as network:
        for name in ("alder-creek", "basalt-flats"):
            options = ["--contact", f"{name}@example.org", "--allow-network", "127.0.0.0/8"]
            tell(folder, "sites", "add", name, "--list-url", network.list_url(name), *options)
        tell(folder, "run")
