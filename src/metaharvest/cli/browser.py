"""Opens a page in the web browser of the person at the terminal."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from pathlib import Path


def new_page(name: str) -> Path:
    """A new, empty file for a page; it stays, as the program cannot know when the browser has read it."""
    descriptor, file = tempfile.mkstemp(prefix=f"metaharvest-{name}-", suffix=".html")
    os.close(descriptor)
    return Path(file)


def opened(file: Path) -> str:
    """Open the page, and return a sentence about it; if there is no browser, the sentence names the file."""
    done = webbrowser.open(file.resolve().as_uri())
    said = "The page is open in your browser" if done else "No browser could be opened; the page is here"
    return f"{said}: {file.resolve()}"
