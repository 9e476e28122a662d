"""The states of the program that are measured: this one, and any commit, checked out with an environment of its own."""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import metaharvest
from benchmarks.servers import tool

PROJECT = Path(__file__).parents[1]


class NoState(Exception):
    """A commit could not be checked out or installed; the message says what git or pip said."""


@dataclass(frozen=True, slots=True)
class State:
    """A state of the program: its name in tables, the Python that has its libraries, and the folder of its package."""

    name: str
    python: Path
    source: Path

    def command(self, *arguments: str) -> list[str]:
        """The command that runs this state of `metaharvest`, in its `environment`."""
        return [str(self.python), "-m", "metaharvest", *arguments]

    @property
    def environment(self) -> dict[str, str]:
        """The variables of this process; PYTHONPATH makes sure that no other state is imported."""
        return {**os.environ, "PYTHONPATH": str(self.source)}

    def compile(self) -> None:
        """Compile the package, as pip does for what it installs."""
        compileall.compile_dir(self.source / "metaharvest", quiet=1)


THIS = State("this state", Path(sys.executable), Path(metaharvest.__file__).parents[1])


@contextmanager
def checked_out(commit: str) -> Iterator[State]:
    """The state at `commit` in a temporary folder, with the libraries that this state has. Raises NoState."""
    name = _said_by([tool("git", "git"), "rev-parse", "--verify", "--short", f"{commit}^{{commit}}"]).strip()
    with tempfile.TemporaryDirectory(prefix=f"metaharvest-{name}-") as temporary:
        folder = Path(temporary)
        archive = folder / "state.tar"
        _said_by([tool("git", "git"), "archive", "--output", str(archive), name])
        checkout = folder / "checkout"
        checkout.mkdir()
        _said_by([tool("tar", "tar"), "-xf", str(archive), "-C", str(checkout)])
        state = State(name, _environment(folder, checkout), checkout / "src")
        state.compile()
        yield state


def _environment(folder: Path, checkout: Path) -> Path:
    """The Python of a new virtual environment with what the state at `checkout` depends on.

    The versions are those of this environment, so that two states of the program are compared, not of its libraries.
    """
    _said_by([sys.executable, "-m", "venv", str(folder / "venv")])
    python = folder / "venv" / "bin" / "python"
    constraints = folder / "constraints.txt"
    constraints.write_text(_said_by([sys.executable, "-m", "pip", "freeze", "--exclude-editable"]), encoding="utf-8")
    install = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(constraints)]
    _said_by([*install, "--editable", str(checkout)])
    return python


def _said_by(command: Sequence[str]) -> str:
    """What a command prints. Raises NoState if it fails, with what it said."""
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoState(f"{' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout
