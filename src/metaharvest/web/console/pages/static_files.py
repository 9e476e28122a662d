"""The style sheet and the script of the pages: the files that are in the folder when the server starts."""

from __future__ import annotations

from pathlib import Path

from starlette.responses import Response

from metaharvest.web.console.visit import Visit

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
_FILES = {
    file.name: (file.read_bytes(), _TYPES[file.suffix])
    for file in sorted((Path(__file__).parent.parent / "static").iterdir())
    if file.suffix in _TYPES
}
_CACHE = {"Cache-Control": "max-age=3600"}


def send(visit: Visit) -> Response:
    """One file."""
    content, media_type = _FILES.get(visit.path["file"], (b"", ""))
    if not media_type:
        return visit.not_found("There is no such file.")
    return Response(content, media_type=media_type, headers=_CACHE)
