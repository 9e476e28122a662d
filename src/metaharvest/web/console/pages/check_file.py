"""Check a file: a person without an account pastes, uploads or names a document or a list. Nothing is stored."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from starlette.responses import Response

from metaharvest.errors import RequestError
from metaharvest.services import trials
from metaharvest.services.trials import FileReport
from metaharvest.web.console.visit import Visit

MOST_BYTES = trials.MOST_BYTES * 3 // 2
"""The largest form: a corrected document comes back in Base64, so that each byte of it stays."""

_XML = "application/octet-stream"


def show(visit: Visit) -> Response:
    """The form."""
    return _page(visit, visit.query.get("url", ""))


def check(visit: Visit) -> Response:
    """The report about the file, URL or text that the person gave."""
    url, result = visit.form.text("url"), None
    with visit.mistakes():
        result = _checked(visit, url, visit.form.whole("text"))
    return _page(visit, url, result)


def download(visit: Visit) -> Response:
    """The corrected document as a file."""
    try:
        content = urlsafe_b64decode(visit.form.text("content").encode())
    except ValueError:
        content = b""
    if not content:
        return visit.message(422, "There is nothing to download. Check the file again.")
    return visit.download(content, "corrected.xml", _XML)


def _page(visit: Visit, url: str, result: FileReport | None = None) -> Response:
    kept = "" if result is None or result.corrected is None else urlsafe_b64encode(result.corrected).decode()
    return visit.render("check_file.html", result=result, kept=kept, url=url)


def _checked(visit: Visit, url: str, pasted: str) -> FileReport:
    """Raises RequestError, ScheduleError."""
    files = visit.form.files("file")
    if files:  # the page keeps a URL and a text, and never a file: it was chosen last
        return trials.check_file(visit.harvester, files[0].content, files[0].name)
    if url and pasted.strip():
        raise RequestError.about("url", "You gave an address and a text. Empty one of the two fields.")
    if url:
        return trials.check_url(visit.harvester, url)
    # A form sends line ends as CR LF, and the person pasted the letters, not the bytes of the declared encoding.
    return trials.check_text(visit.harvester, pasted.replace("\r\n", "\n"))
