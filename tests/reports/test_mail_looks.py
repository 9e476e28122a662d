"""How both reports look in a browser: nothing sticks out on a phone or a desktop, nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from email import message_from_bytes, policy
from html import escape
from pathlib import Path
from typing import Any

import pytest
from lxml import html
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestRun, HarvestSiteRun
from metaharvest.model import Finding, Level, OutcomeKind
from metaharvest.reports import compose
from support.journal_rows import NAMED, NOW, JournalRows, new_database

WIDTHS = (400, 800)
UNBREAKABLE = "x" * 300

BROKEN_OFF = Finding(
    "schema.missing-element",
    f"The element 'creator' is missing before '{UNBREAKABLE}'.",
    "Add at least one creator above pubDate.",
    line=123456789,
    xpath="/eml:eml/dataset" * 20,
    excerpt=f"<pubDate>{UNBREAKABLE}</pubDate>",
)
DOUBTFUL = Finding("eml.document-type", "它的類型不同。" * 40, "Make them the same.", Level.WARNING, line=2)
NOT_FETCHED = Finding("http.status", "The server answered 404 Not Found.", "Check the URL.")

SCROLL_WIDTH = "document.documentElement.scrollWidth"
MEASURE = '<script>parent.postMessage(%s, "*")</script></body>'
LINES = 'Math.max(...[...document.querySelectorAll("td b")].filter(%s).map(name => name.getClientRects().length))'
FRAMES = """<!DOCTYPE html><body><script>
addEventListener("message", event => {
  const frame = [...document.querySelectorAll("iframe")].find(one => one.contentWindow === event.source)
  frame.setAttribute("data-scroll-width", event.data)
})
</script>%s</body>"""
FRAME = '<iframe src="%s" width="%d" height="30000" style="border: 0"></iframe>'


@pytest.fixture(scope="module")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    missing = "Chromium is not there, so nobody has looked at the mails: apt-get install chromium"
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture
def session() -> Iterator[Session]:
    engine = new_database()
    with Session(engine) as session:
        yield session
    engine.dispose()


@pytest.fixture(params=["site", "failed site", "administrator"])
def page(request: pytest.FixtureRequest, session: Session) -> str:
    """The HTML of a report on a night with something of everything, long names and long words in it."""
    settings = Settings.model_validate(
        {"harvester": {"name": "Riverine" + "Ecology" * 12, "administrators": [f"{'steward' * 8}@example.org"]}}
    )
    rows = JournalRows(session)
    site = rows.site("alder-" + "creek" * 18, contact=f"{'data' * 15}@alder.example.org, second@alder.example.org")
    run = rows.run()
    site_run = rows.site_run(run, site)
    _fill(rows, run, site_run)
    gone = rows.site_run(run, rows.site("dune-lake"), status="list-failed", failure_reason=UNBREAKABLE)
    rows.log(run, "GetHarvestListError", site_run=gone, findings=(NOT_FETCHED,))
    if request.param == "administrator":
        report = compose.admin_report(session, run.run_id, ReportContext(settings, NAMED, NOW))
    else:
        told = site_run if request.param == "site" else gone
        report = compose.site_report(session, told.site_run_id, ReportContext(settings, NAMED, NOW))
    body = message_from_bytes(report.content, policy=policy.default).get_body(("html",))
    assert body is not None
    return str(body.get_content())


def _fill(rows: JournalRows, run: HarvestRun, site_run: HarvestSiteRun) -> None:
    long_url = f"https://data.example.org/eml?id={UNBREAKABLE}&format=xml"
    rows.document(run, site_run, "ren-" + "alder" * 30 + ".1", 2**62, OutcomeKind.INVALID, BROKEN_OFF, url=long_url)
    rows.document(run, site_run, "ren-alder.2", 1, OutcomeKind.ACCESS_ERROR, NOT_FETCHED, url=long_url)
    rows.document(run, site_run, "ren-alder.3", 1, OutcomeKind.INSERTED, warnings=(DOUBTFUL,), seconds=0.2, size=9)
    rows.document(run, site_run, "ren-alder.4", 7, OutcomeKind.UPDATED, url=long_url, target_revision=6)
    rows.document(run, site_run, "ren-alder.5", 1, OutcomeKind.STALE, target_revision=2**62)
    rows.unchanged(run, site_run, ("ren-alder.6", 3, 3), ("ren-alder.7", 3, 4))


def _measured(
    chromium: str, page: str, folder: Path, measure: str = SCROLL_WIDTH, widths: Sequence[int] = WIDTHS
) -> dict[int, int]:
    """For each width of a window, what is measured of the page in it: how wide it gets, if nothing else is said."""
    copy = folder / "page.html"
    copy.write_bytes(page.replace("</body>", MEASURE % measure).encode())
    frames = "".join(FRAME % (escape(copy.as_uri()), width) for width in widths)
    (folder / "frames.html").write_text(FRAMES % frames)
    quiet = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    quiet += " --disable-component-update --disable-sync --virtual-time-budget=5000 --dump-dom"
    command = [chromium, *quiet.split(), f"--user-data-dir={folder / 'profile'}", (folder / "frames.html").as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
    measured = re.findall(r'<iframe[^>]* width="(\d+)"[^>]* data-scroll-width="(\d+)"', shown)
    return {int(window): int(scrolled) for window, scrolled in measured}


@pytest.mark.slow
def test_nothing_sticks_out_on_a_phone_or_a_desktop(chromium: str, page: str, tmp_path: Path) -> None:
    assert "</body>" in page
    assert _measured(chromium, page, tmp_path) == {width: width for width in WIDTHS}


@pytest.mark.slow
def test_a_site_s_name_stays_on_one_line_on_a_phone(chromium: str, session: Session, tmp_path: Path) -> None:
    rows, name = JournalRows(session), "cedar-marsh"
    run = rows.run()
    rows.site_run(run, rows.site(name), listed=1_234_567, inserted=234_567, unchanged=1_000_000)
    settings = Settings.model_validate({"harvester": {"administrators": ["steward@example.org"]}})
    report = compose.admin_report(session, run.run_id, ReportContext(settings, NAMED, NOW))
    body = message_from_bytes(report.content, policy=policy.default).get_body(("html",))
    assert body is not None
    lines = LINES % f'name => name.textContent === "{name}"'
    assert _measured(chromium, str(body.get_content()), tmp_path, lines, (320, 380)) == {320: 1, 380: 1}


@pytest.mark.slow
def test_a_page_that_sticks_out_would_be_noticed(chromium: str, tmp_path: Path) -> None:
    wide = '<!DOCTYPE html><body style="margin: 0"><div style="width: 600px">wide</div></body>'
    assert _measured(chromium, wide, tmp_path) == {400: 600, 800: 800}


def test_a_report_refers_to_no_remote_resource(page: str) -> None:
    document: Any = html.fromstring(page)
    elements = list(document.iter())
    assert not {str(element.tag) for element in elements} & {
        "script", "link", "img", "iframe", "object", "embed", "video", "audio", "source", "svg", "form", "base",
    }  # fmt: skip
    loading = {"src", "srcset", "background", "poster", "data", "action"}
    assert not {name for element in elements for name in element.attrib if name in loading or name.startswith("on")}
    styles = [str(element.text) for element in document.iter("style")]
    styles += [element.get("style", "") for element in elements]
    assert not [style for style in styles if re.search(r"url\(|@import|expression", style, re.IGNORECASE)]
    links = {str(link) for link in document.xpath("//@href")}
    assert {link.partition(":")[0] for link in links} <= {"http", "https", "mailto"}
