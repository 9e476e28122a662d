"""The wheel, installed in a clean environment, has everything with it: the demo runs from it."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent


def call(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.timeout(600)
@pytest.mark.long
def test_the_built_wheel_runs_the_demo_in_a_clean_environment(tmp_path: Path) -> None:
    call(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", CHECKOUT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for part in ("sql/migrations/env.py", "templates/email/site_report/body.html", "sample_sites/README.md"):
        assert f"metaharvest/data/{part}" in names
    assert "metaharvest/web/pages/templates/document.html" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]

    call(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    # Compiled is what the demo imports, no more.
    call(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", wheel)
    said = call(tmp_path / "venv" / "bin" / "metaharvest", "demo", "--folder", tmp_path / "demo", cwd=tmp_path)
    assert "alder-creek" in said
    mails = list((tmp_path / "demo" / "mail" / "new").iterdir())
    assert len(mails) == 19
    found = call(
        python, "-c", "from metaharvest.config.paths import data_folder; print(data_folder('sql'))", cwd=tmp_path
    )
    assert str(CHECKOUT) not in found


def test_the_container_image_has_each_file_that_goes_into_the_wheel() -> None:
    wheel = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = re.findall(r"^COPY (.+) /src/", (CHECKOUT / "packaging/Containerfile").read_text(), re.MULTILINE)
    assert set(wheel["force-include"]) <= set(" ".join(copied).split())
