"""A settings file of somebody else in the working folder runs no program and gets no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.checking import LOOPBACK, check, put
from support.cli import initialize, process, tell
from support.harvester import eml, harvest_list
from support.http_server import HttpServer

PROGRAMS = (
    "{{ cycler.__init__.__globals__.os.system('touch ' ~ 'RUN') }}",
    "{{ report.__class__.__init__.__globals__ }}",
    "{{ lipsum.__globals__['os'].popen('touch RUN').read() }}",
    "{% for each in range(10**9) %}x{% endfor %}",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    return tmp_path


def write_settings(folder: Path, text: str, template: str = "") -> None:
    (folder / "metaharvest.toml").write_text(text)
    put(folder, {"own/email/site_report/body.txt": template.replace("RUN", str(folder / "RUN")).encode()})


@pytest.mark.parametrize("template", PROGRAMS)
def test_a_template_of_the_folder_runs_no_program(folder: Path, template: str) -> None:
    write_settings(folder, '[reports]\ntemplates = "own"\n', template)
    initialize(folder)
    put(folder, {"a.xml": eml("a.1.1")})
    assert check("a.xml").code == 0
    answer = tell(folder, "doctor")
    assert (answer.code, (folder / "RUN").exists()) == (1, False)
    assert "PROBLEM  templates: The template email/site_report/body.txt cannot be used:" in answer.out


def test_check_uses_no_template_of_the_folder(folder: Path) -> None:
    write_settings(folder, '[reports]\ntemplates = "own"\n', "{{ never.mind }}")
    put(folder, {"own/check/page.html": b"TAKEN", "a.xml": eml("a.1.1")})
    initialize(folder)
    said = check("a.xml", "--html", "page.html")
    assert (said.code, "could not be used" in said.out + said.err) == (0, False)
    assert "TAKEN" not in (folder / "page.html").read_text()


@pytest.mark.parametrize(
    ("template", "seconds"),
    [
        ("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}", 2),
        ("{% set x = namespace(s='x' * 1000) %}{% for a in range(60) %}{% set x.s = x.s ~ x.s %}{% endfor %}", 5),
    ],
    ids=["too long", "too much memory"],
)
def test_a_template_without_an_end_is_a_problem_for_doctor(
    folder: Path, template: str, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaharvest.reports.template_check.SECONDS", seconds)
    write_settings(folder, '[reports]\ntemplates = "own"\n', template)
    answer = tell(folder, "doctor")
    assert any("PROBLEM  templates: " in line for line in answer.out.splitlines()), answer.out


def test_check_sends_no_secret_to_a_server_that_a_found_file_names(folder: Path, server: HttpServer) -> None:
    list_url = server.serve("/list.xml", harvest_list([("a.1.1", server.serve("/a.xml", eml("a.1.1")))]))
    put(folder, {"secret": b"open-sesame"})
    write_settings(folder, "")
    initialize(folder)
    tell(folder, "sites", "add", "alder", "--list-url", list_url, "--contact", "a@example.org")
    node = f'kind = "dataone"\nurl = "{server.url("/d1/mn/v2")}"\ntoken = "file:secret"\nrights_holder = "CN=a"\n'
    write_settings(folder, f"[target]\n{node}")
    said = check(list_url, *LOOPBACK)
    assert (said.code, {request.path for request in server.requests}) == (0, {"/list.xml", "/a.xml"})
    assert "every document counts as new: the file was found in this folder" in said.err
    process(folder, "--config", "metaharvest.toml", "check", list_url, *LOOPBACK)
    assert any("open-sesame" in str(request.headers) for request in server.requests)
