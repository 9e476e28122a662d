"""Makes the pictures in docs/images from what the program does now: `python docs/pictures.py [FOLDER]`.

Recordings of a terminal (SVG) show commands and what they print, on the sample sites. Pictures of reports (PNG) show
the third night of the demo, and pictures of the console show its pages after that night, as Chromium draws them.
Without Chromium they stay as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from metaharvest.config.paths import data_folder

IMAGES = Path(__file__).parent / "images"
WIDTH = 120
"""Columns of the terminal."""

REPORTS = {"site-report.png": ("basalt-flats", 1060), "admin-report.png": ("administrator", 1040)}
"""Picture -> whose report, and how much of it in pixels."""

PAGES = {"console-tonight.png": "/console/tonight", "console-document.png": "/console/documents/ren-basalt.17"}
"""Picture -> the page of the console."""

PAGE_SIZE = {"width": 1200, "height": 820}

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
GAUGE = data_folder("sample_sites") / "basalt-flats" / "unresolved-reference.xml"


def make(images: Path) -> None:
    """Make all pictures in this folder."""
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="metaharvest-pictures-") as name:
        folder = Path(name).resolve()
        record(images, folder)
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is None:
            print("Chromium is not there: the pictures of reports stay as they are.")
            return
        photograph_reports(browser, folder, images)
        photograph_console(browser, folder, images)


def record(images: Path, folder: Path) -> None:
    """Record the terminals. The demo stays in the folder `demo` of the working folder."""
    shutil.copytree(data_folder("sample_sites") / "alder-creek", folder / "eml")
    (folder / "eml" / "harvest-list.xml").unlink()
    shutil.copy(GAUGE, folder / "eml" / "gauge.xml")
    for picture, commands in {
        "check.svg": ["metaharvest check eml/"],
        "demo.svg": ["metaharvest demo --folder demo"],
    }.items():
        (images / picture).write_text(recording(commands, folder), encoding="utf-8")


def photograph_reports(browser: str, folder: Path, images: Path) -> None:
    """The reports of the last night of the recorded demo."""
    for picture, (whose, height) in REPORTS.items():
        page = sorted((folder / "demo" / "html").glob(f"*-{whose}.html"))[-1]
        photograph(browser, page, images / picture, height, folder)


def recording(commands: Sequence[str], folder: Path) -> str:
    """A terminal in which these commands were given, in this folder, as SVG."""
    console = Console(record=True, width=WIDTH, file=StringIO(), highlight=False)
    for line in said(commands, folder):
        console.print(Text.from_ansi(line))
    # Nothing is fetched from elsewhere by those who look at it.
    plain = re.sub(r"\n *@font-face \{\{.*?\n    \}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="metaharvest", code_format=plain, unique_id="metaharvest")


def said(commands: Sequence[str], folder: Path) -> Iterator[str]:
    """The lines of the terminal."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    for command in commands:
        yield f"\x1b[1m$ {command}\x1b[0m"
        done = subprocess.run(
            command.split(), cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        yield from done.stdout.decode().replace(str(folder), "~").splitlines()


def photograph(browser: str, page: Path, picture: Path, height: int, folder: Path) -> None:
    """The upper part of a page, as the browser shows it."""
    quiet = "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars"
    quiet += " --virtual-time-budget=2000"
    where = [f"--user-data-dir={folder / 'profile'}", f"--window-size=800,{height}", f"--screenshot={picture}"]
    command = [browser, *quiet.split(), *where, page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def photograph_console(browser: str, folder: Path, images: Path) -> None:
    """The pages of the console of the demo, for an operator who has signed in by its link."""
    from playwright.sync_api import sync_playwright

    command = [
        sys.executable,
        "-m",
        "metaharvest",
        "demo",
        "--folder",
        str(folder / "served"),
        "--serve",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        link = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+/console/link/\S+", line)))
        try:
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
                tab = chromium.new_page(viewport=PAGE_SIZE, color_scheme="light")
                tab.goto(link)
                tab.get_by_role("button", name="Sign in").click()
                for picture, path in PAGES.items():
                    tab.goto(link.partition("/console/")[0] + path)
                    tab.screenshot(path=images / picture)
                chromium.close()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
