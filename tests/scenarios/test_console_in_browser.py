"""The console as a whole in Chromium: each question of docs/questions.md, the tasks of contacts, with and without
JavaScript; every page for people who see little, in light and dark, wide and narrow.

One browser and one installation serve all tests of this file: the sample network after three nights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest

from metaharvest.config.paths import data_folder
from metaharvest.demo.samples import SampleNetwork
from metaharvest.model.kinds import Role
from metaharvest.services import accounts, requests
from metaharvest.web.console.access import PAGES
from metaharvest.web.console.dispatch import found_page
from support.chromium import Reader, chromium
from support.console import Served, served_console
from support.harvester import Harvester, rows_of, said
from support.shown_commands import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FilePayload

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22")
ROW = re.compile(r"^\| (.+\?) \| `metaharvest ([^`|]+)` \| `(/console/[^`|]+)` \|$", re.MULTILINE)
QUESTIONS = ROW.findall((ROOT / "docs" / "questions.md").read_text(encoding="utf-8"))
UNRESOLVED = data_folder("sample_sites") / "basalt-flats" / "unresolved-reference.xml"
CONTACT = "basalt-flats@example.org"

EXAMPLES: Mapping[str, str] = {
    "site": "basalt-flats",
    "run": "3",
    "document": "ren-basalt.17",
    "rule": "eml.id-duplicate",
    "file": "console.css",
    "user": "steward@example.org",
    "action": "sites.disable?name=alder-creek",
}
"""The parts of paths, from the sample network. A page with another part is the next one of a form."""


WHOLE = {
    "/console/documents/{document}/record": "/console/documents/ren-basalt.1/record",
    "/console/sites/{site}/changes": "/console/sites/basalt-flats/changes?run=1&run=3",
    "/console/works/{document}": "/console/works/ren-alder.5",
}
"""Pages that show something for these examples only."""
NO_PAGES = (".csv", ".xlsx", "/eml", "/export", "/static/{file}", "/html", "/oidc/start", "/oidc/return")
"""Files, a mail in which no script runs, and the two addresses of OpenID Connect, which need its settings."""

OPERATOR = "operator@example.org"
LOOKS = [
    ("", Role.PUBLIC, 4),
    (CONTACT, Role.CONTACT, 11),
    (OPERATOR, Role.CONTACT, 11),
    (OPERATOR, Role.VIEWER, 15),
    (OPERATOR, Role.STEWARD, 5),
    (OPERATOR, Role.OPERATOR, 3),
]
"""Who looks at the pages that need which role, and how many there are at least."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def network() -> Iterator[SampleNetwork]:
    with SampleNetwork() as opened:
        yield opened


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory, network: SampleNetwork) -> Iterator[Served]:
    harvester = Harvester(tmp_path_factory.mktemp("console"))
    for name in ("alder-creek", "basalt-flats", "elm-ridge"):
        url = network.list_url(name)
        harvester("sites", "add", name, "--list-url", url, "--contact", f"{name}@example.org")
    harvester("sites", "edit", "alder-creek", "--add-to-group", "rivers")
    harvester("sites", "disable", "elm-ridge")
    for night, day in enumerate(NIGHTS, start=1):
        network.night = night
        assert harvester("run", "--force", "--date", day).code == 0
    with harvester.config.open("a") as file:
        file.write("[pipeline]\nenabled = true\n")
    assert harvester("pipeline", "run").code == 0
    look = "SELECT min({0}), max({0}), 'look', 'title', 90, 'The years are 2 apart.' FROM output_work"
    harvester.rows(f"INSERT INTO output_pair {look.format('catalogue_document_id')}")
    with served_console(harvester) as served:
        for role in ("steward", "operator"):
            served.signed_in(role)
        yield served
    harvester.close()


def reader(console: Served, browser: Browser, address: str = "", *, scripts: bool = True) -> Reader:
    """A person who signed in with this address, or a stranger."""
    made = Reader(browser, console.url, scripts=scripts)
    if address:
        made.sign_in(accounts.new_link(console.harvester, address))
    return made


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_each_question_of_the_documentation_has_its_answer_on_a_page(
    console: Served, browser: Browser, scripts: bool
) -> None:
    assert len(QUESTIONS) >= 35
    operator = reader(console, browser, OPERATOR, scripts=scripts)
    for question, command, path in QUESTIONS:
        assert found_page(PAGES, "GET", urlsplit(path).path)[0], path
        assert operator.open(path) == 200, (question, path)
        if command.startswith(("documents --", "diff 1 3")) and "--for" not in command:
            said = _said(console, command)
            assert set(re.findall(r"\bren-[a-z]+\.\d+", said)) <= set(
                re.findall(r"\bren-[a-z]+\.\d+", operator.text)
            ), (question, path)
    assert operator.troubles == []
    operator.close()


def _said(console: Served, command: str) -> str:

    config = str(console.harvester.settings.file)
    return said("--config", config, *command.split()).out


@pytest.mark.parametrize(("person", "least", "number"), LOOKS)
def test_no_page_has_a_barrier_or_scrolls_sideways(
    console: Served, browser: Browser, person: str, least: Role, number: int
) -> None:
    looking = reader(console, browser, person)
    wrong, opened = list[str](), list[str]()
    mails = "SELECT min(report_id) FROM report_outbox JOIN harvest_site_run USING (site_run_id) WHERE site_name = ?"
    [(mail,)] = rows_of(console.harvester.engine, mails, EXAMPLES["site"])
    examples = {**EXAMPLES, "report": str(mail)}
    for page in PAGES:
        path = _example(page.path, examples)
        if page.least != least or page.method != "GET" or path is None or page.path.endswith(NO_PAGES):
            continue
        answer = looking.page.goto(console.url + path, wait_until="load")
        assert answer is not None
        if "text/html" not in answer.headers.get("content-type", "") or "<html" not in answer.text():
            continue
        opened.append(path)
        wrong += [f"{path}: {answer.status}"] if answer.status != 200 else []
        wrong += looking.faults(path)
    assert not wrong, "\n".join(wrong)
    assert len(opened) >= number, opened
    assert looking.troubles == []
    looking.close()


def test_the_pages_of_every_role_are_looked_at() -> None:
    assert {least for _, least, _ in LOOKS} == set(Role)


def _example(path: str, examples: Mapping[str, str]) -> str | None:
    if path in WHOLE:
        return WHOLE[path]
    parts = []
    for part in path.split("/"):
        name = part[1:-1] if part.startswith("{") else ""
        if name and name not in examples:
            return None
        parts.append(part if not name else quote(examples[name], safe="?=."))
    return "/".join(parts)


def test_the_jobs_follow_a_request_and_keep_the_focus(console: Served, browser: Browser) -> None:
    steward = reader(console, browser, "steward@example.org")
    steward.open("/console/sites/basalt-flats")
    steward.press("Harvest now")
    steward.open("/console/jobs")
    button = steward.page.get_by_role("button", name="Take back")
    button.focus()
    with steward.page.expect_response(re.compile("/console/jobs/live")):
        pass
    assert button.evaluate("button => button === document.activeElement")
    [asked] = requests.open_requests(console.harvester)
    requests.cancel(console.harvester, asked.request.request_id)
    steward.page.get_by_text("No request is open.").wait_for()
    assert steward.troubles == []
    steward.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_contacts_check_a_file_make_a_list_register_and_look_after_their_site(
    console: Served, browser: Browser, network: SampleNetwork, scripts: bool
) -> None:
    stranger = reader(console, browser, scripts=scripts)
    stranger.open("/console/check")
    stranger.fill("Or the text itself", UNRESOLVED.read_text(encoding="utf-8"))
    stranger.press("Check")
    assert "references" in stranger.text, stranger.text

    stranger.open("/console/list")
    stranger.page.locator("summary", has_text="Fill the table").wait_for()
    stranger.fill("Folder of the documents on the web", "https://www.example.org/eml/")
    content = network.file("alder-creek/rain.xml")
    rain: FilePayload = {"name": "rain.xml", "mimeType": "text/xml", "buffer": content}
    stranger.page.get_by_label("EML files").set_input_files([rain])
    stranger.press("Add these documents")
    assert stranger.page.locator("input[name=url]").first.input_value() == "https://www.example.org/eml/rain.xml"
    assert stranger.page.locator("input[name=scope]").first.input_value() == "ren-alder"

    stranger.open("/console/register")
    stranger.fill("Address of the list", network.list_url("fern-gorge"))
    stranger.fill("Name of the site", f"fern-gorge-{scripts}".lower())
    stranger.fill("Your email address", "contact@fern-gorge.example.org")
    stranger.press("Check and register")
    assert "contact@fern-gorge.example.org" in stranger.text, stranger.text
    assert stranger.troubles == []
    stranger.close()

    contact = reader(console, browser, CONTACT, scripts=scripts)
    assert contact.open("/console/my/alder-creek") == 404
    contact.troubles.clear()
    contact.open("/console/my/basalt-flats")
    assert "Open problems" in contact.page.content()
    contact.press("Pause")
    contact.press("Resume")
    assert contact.page.get_by_role("button", name="Harvest tonight").count() == 1
    assert contact.troubles == []
    contact.close()
