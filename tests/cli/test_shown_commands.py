"""Every command that the documentation shows, or the program names, is run as it is written, and does what is said.

Each page is gone through from its beginning to its end, in a folder of its own: where a reader begins with nothing, an
empty one, otherwise an installation with twelve nights behind it. The sites of the examples are on loopback. What is
written in capitals is filled in.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest

from metaharvest.config.paths import data_folder
from metaharvest.demo.samples import LIST_NAME, WRITTEN_BASE_URL, SampleNetwork
from support.cli import initialize, tell
from support.example_web import example_web
from support.fork_server import ForkedPopen
from support.lists import said
from support.made_once import made_once
from support.metacat_tables import DETAIL_LOG, LOG, SCHEDULE, write_csv
from support.oai_server import OaiServer
from support.shown_commands import HELP, PAGES, PROGRAM, ROOT, shown_commands

SETTINGS = """\
[harvester]
name = "Example network"
administrators = ["steward@example.org"]
[mail]
sender = "harvester@example.org"
[http]
retries = 0
[targets.new]
kind = "folder"
folder = "new"
"""
OWN_TARGET = {page: f'[target]\nkind = "{page}"\nfolder = "documents"\n' for page in ("folder", "none")}
BEGIN_WITH_NOTHING = ("README.md", "operators.md", "none.md", "folder.md")
NO_SETTINGS = ("site-contacts.md",)
NIGHTS = [f"2026-11-{day}" for day in range(10, 22)]

LIST_URL = "https://alder-creek.example.org/harvest-list.xml"

FILLED_IN = {
    "NAME": "alder-creek",
    "STAGE": "cleaning",
    "URL": LIST_URL,
    "BASEURL": "https://repository.example.org/oai",
    "EMAIL": "data@alder-creek.example.org",
    "DOCID": "ren-alder.5.1",
    "FROM": "embedded",
    "TO": "new",
    "DN": "uid=alder,o=unaffiliated,dc=ecoinformatics,dc=org",
    "REFERENCE": "env:ALDER_PASSWORD",
    "FILE": "harvest-list.xml",
    "DATE": f"{datetime.now(UTC).date() + timedelta(days=9)}",
    "DOCUMENT": "ren-alder.5",
    "SEQ": "0",
    "RULE": "target.other-site",
    "TEXT": "test",
    "REPORT_ID": "1",
    "ADDRESS": "other@example.org",
    "NETWORK": "10.0.0.0/8",
    "HOURS": "1",
    "ROLE": "viewer",
    "RUN_ID": "1",
    "ID": "1",
    "N": "1",
}
"""What is written in capitals -> what a reader may put there."""

MEANT = {
    "sites add NAME --list-url URL --contact EMAILS [--every N] [--unit days|weeks|months] [--next DATE]": [
        "sites add spare --list-url URL --contact EMAIL --every 2 --unit weeks --next DATE --allow-duplicate"
    ],
    "sites add NAME --list-url URL --contact EMAIL": [
        "sites add spare --list-url URL --contact EMAIL --allow-duplicate"
    ],
    "--config FILE init": ["--config metaharvest.toml init"],
    "--config FILE": ["--config metaharvest.toml"],
    "--config FILE doctor": ["--config metaharvest.toml doctor"],
    "sites edit NAME": ["sites edit NAME --every 1"],
    "sites edit NAME --full-every DAYS": ["sites edit frogs --full-every 30"],
    "sites import FILE": ["sites export -o sites.json", "sites import sites.json --dry-run"],
    "target transfer DOCUMENT NAME": ["target transfer DOCUMENT elm-ridge"],
    "target withdraw DOCUMENT --undo": ["target withdraw DOCUMENT --reason test", "target withdraw DOCUMENT --undo"],
    "list build FOLDER --base-url URL --write": ["list build eml --base-url https://www.example.org/eml/ --write"],
    "list build FOLDER --base-url URL -o LIST --write": [
        "list build eml --base-url https://www.example.org/eml/ -o harvest-list.xml --write"
    ],
    "sites add NAME --oai BASEURL": ["sites add frogs --oai BASEURL"],
    "sites edit NAME [the same options; --name gives another name]": [
        "sites edit spare --every 1 --unit months --name spared"
    ],
    "sites edit NAME --add-contact EMAIL --remove-contact EMAIL": [
        "sites edit NAME --add-contact other@example.org",
        "sites edit NAME --add-contact more@example.org --remove-contact other@example.org",
    ],
    "sites edit NAME --add-contact EMAIL": ["sites edit NAME --add-contact EMAIL"],
    "sites export [--csv] [-o FILE]": ["sites export --csv -o sites.csv"],
    "sites import FILE [--dry-run]": ["sites export -o sites.json", "sites import sites.json --dry-run"],
    "sites export": ["sites export -o sites.json"],
    "sites import sites.json --dry-run": ["sites export -o sites.json", "sites import sites.json --dry-run"],
    "sites import sites.csv": ["sites export --csv -o sites.csv", "sites import sites.csv"],
    "target withdraw": ["target withdraw ren-alder.5 --reason test"],
    "sites edit NAME --name NEW": ["sites edit basalt-flats --name basalt"],
    "sites disable NAME": ["sites disable spared", "sites enable spared"],
    "sites remove NAME": ["sites remove spared --yes"],
    "sites import-metacat --database URL | --csv FILE": ["sites import-metacat --csv schedule.csv"],
    "sites import-metacat": ["sites import-metacat --csv schedule.csv"],
    "sites import-metacat --log": ["sites import-metacat --csv schedule.csv --log"],
    "sites edit NAME --ca-file FILE": ["sites edit NAME --ca-file examples.pem"],
    "sites enable": ["sites enable alder-creek"],
    "sites add": ["sites add spare --list-url URL --contact EMAIL --allow-duplicate"],
    "log --level": ["log --level error"],
    "list build": ["list build eml --base-url https://www.example.org/eml/ --dry-run"],
    "list build --write": ["list build eml --base-url https://www.example.org/eml/ --write"],
    "list add": ["list add harvest-list.xml eml/rain.xml --base-url https://www.example.org/eml/"],
    "list validate": ["list validate harvest-list.xml"],
    "check": ["check eml/"],
    "check --watch": ["check eml/ --watch"],
    "diff": ["diff 1 2"],
    "completion": ["completion zsh"],
    "target transfer": ["target transfer ren-alder.5 elm-ridge"],
    "target get DOCID --target NAME": ["target copy embedded new", "target get DOCID -o got.xml --target new"],
    "target copy": ["target copy embedded new"],
    "database copy": ["database copy --to sqlite:///copy.db"],
    'sites remove "Alder Creek"': ["sites remove alder-creek --yes"],
    "runs remove RUN_ID": ["runs remove RUN_ID --yes"],
    "users add anna@example.org --role steward --name Anna": ["users add bert@example.org --role steward --name Bert"],
    "users remove anna@example.org": ["users remove bert@example.org"],
    "keys revoke 3": ["keys add another --role viewer", "keys revoke 1"],
}
"""Lines that leave something out, or name all there is -> what a reader would type."""

OTHERS_NAMES = {
    "knb-lter-gce.109.6": "ren-alder.5.1",
    "knb-lter-gce": "ren-alder",
    "ren-alder.109": "ren-alder.5",
    " fern": " elm-ridge",
    " alder.12": " ren-alder.1",
    "/srv/www/eml": "eml",
    "harvest_site_schedule.csv": "schedule.csv",
    "embedded target": "embedded new",
    '"Alder Creek"': "alder-creek",
}
"""What the help names in its examples -> what there is in the installation here."""

ELSEWHERE = {
    "questions.md": "test_questions.py runs them all",
    "list build eml --base-url https://www.example.org/eml/ --from-names": "test_command_lines.py",
    "list add harvest-list.xml eml/rain.xml": "test_command_lines.py",
    "list bump harvest-list.xml": "test_command_lines.py",
    "list bump LIST": "test_command_lines.py",
    "list remove harvest-list.xml": "test_command_lines.py",
    "list diff old-list.xml": "test_command_lines.py",
    "check http://localhost:8000/": "needs that very port; test_check.py rehearses lists on loopback",
    "oai ": "test_oai.py asks repositories on loopback",
    "normalize test": "needs a file of normalising and a record; test_normalize.py",
    "sites edit NAME --filters": "needs a file of filters; test_filter.py",
    "sites edit NAME --normalize": "needs a file of normalising; test_normalize.py",
    "filter test": "needs a file of filters and a record; test_filter.py",
    "demo": "needs no installation, and serves until it is stopped with --serve; test_run.py",
    "runs stop": "of a run under way; test_requests.py",
    "run --requested": "says nothing if nobody asks; test_requests.py",
    "requests cancel": "of a request that waits; test_requests.py",
    "keys add NAME": "a second key of one name is refused; test_users.py",
    "runs remove": "of a run that nothing needs; test_confirmation_page.py, test_decisions.py",
    "registrations show": "of a request of a stranger; test_registrations.py",
    "registrations accept": "of a request of a stranger; test_registrations.py",
    "registrations refuse": "of a request of a stranger; test_registrations.py",
    "registrations mail": "of a request of a stranger; test_registrations.py",
    "reports open": "opens a browser; test_journal.py",
    "reports drop": "of reports that wait; test_journal.py",
    "coordinate": "needs the address of a broker; test_json.py, test_distributed_runs.py",
    "--config /var/lib/metaharvest/metaharvest.toml coordinate": "see coordinate",
    "worker": "works until it is stopped",
    "jobs show": "of a job; test_distributed_runs.py",
    "jobs cancel": "of a job; test_distributed_runs.py",
    "jobs retry": "of a job; test_distributed_runs.py",
    "jobs priority": "of a job; test_distributed_runs.py",
    "database copy --to postgresql": "needs a server at db.example.org; test_copying.py copies to real servers",
}
"""Pages and beginnings of lines -> where they are tried, or why not here."""

NOT_HERE = {
    "make": "the demo and all tests, which this is one of",
    "python3": "makes a virtual environment and fetches packages; test_wheel.py installs the program",
    "pip": "see python3",
    "docker": "needs its service, and fetches an image",
    "systemctl": "needs systemd as the first process; packaging/ is tried with systemd-analyze",
    "rabbitmqctl": "needs a RabbitMQ server of its own",
    "createuser": "needs a PostgreSQL server of its own",
    "createdb": "needs a PostgreSQL server of its own",
    "git": "keeps versions of a folder that the program has filled: nothing of ours",
    "sqlite3": "test_command_lines.py makes that backup",
    "cd": "goes to a folder of this machine",
    "mkdir": "makes a folder of this machine",
    "export": "sets PATH",
    "python": "test_command_lines.py has it print where the templates are",
}
"""Other programs that the pages call -> why that is not tried here."""

SHOWN_OUTPUT = {"eml", "references"}
"""What lines begin with that a page shows as printed."""

FINDS_SOMETHING = ("check", "doctor", "--config metaharvest.toml doctor", "list diff", "list validate", "run --strict")
"""Their exit code 1 tells that they have found something."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

NEVER_ENDS = re.compile(r"^daemon|^(--config \S+ )?serve\b|--watch")


def at_the_examples(repository: OaiServer, host: str, path: str) -> bytes | None:
    """What the sites of the examples serve: the documents of the sample network that they are named for; records."""
    if host == "repository.example.org" and path.startswith("/oai?"):
        with urlopen(repository.http.url(path)) as answer:
            return bytes(answer.read())
    name = path.rpartition("/")[2]
    site = host.partition(".")[0]
    folder = data_folder("sample_sites") / (site if site in ("basalt-flats", "elm-ridge") else "alder-creek")
    if not (folder / name).is_file():
        return None
    content = (folder / name).read_bytes()
    return content.replace(WRITTEN_BASE_URL.encode(), f"https://{host}".encode()) if name == LIST_NAME else content


@pytest.fixture(scope="module")
def installations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: `new`, with settings alone, and `harvested`, with twelve nights behind it."""
    return made_once(tmp_path_factory, "installations", make_installations)


def make_installations(folder: Path) -> None:
    for name in ("new", "harvested"):
        documents = folder / name / "eml"
        shutil.copytree(data_folder("sample_sites") / "alder-creek", documents)
        shutil.copy(documents / LIST_NAME, folder / name)
        shutil.copy(documents / LIST_NAME, folder / name / f"{LIST_NAME}.before")
        shutil.copy(documents / "discharge.xml", folder / name)
        (folder / name / "metaharvest.toml").write_text(SETTINGS, encoding="utf-8")
        (folder / name / "moved.txt").write_text("ren-alder.2\nren-alder.3\n", encoding="utf-8")
        write_csv(folder / name / "schedule.csv", SCHEDULE, [(9, LIST_URL, *[None] * 3, 1, "Days", "a@b.org", None)])
        write_csv(folder / name / "HARVEST_LOG.csv", LOG, [(1, "2026-11-01", 0, "", "harvester.GetDocSuccess", 9)])
        write_csv(folder / name / "HARVEST_DETAIL_LOG.csv", DETAIL_LOG, [])
    harvested = folder / "harvested"
    tell(harvested, "init")
    with SampleNetwork() as network:
        for name in ("alder-creek", "basalt-flats", "elm-ridge"):
            options = ["--contact", f"{name}@example.org", "--allow-network", "127.0.0.0/8"]
            tell(harvested, "sites", "add", name, "--list-url", network.list_url(name), *options)
        for night, day in enumerate(NIGHTS, start=1):
            network.night = night
            tell(harvested, "run", "--force", "--date", day)
    tell(harvested, "pipeline", "run")
    for name in ("alder-creek", "basalt-flats", "elm-ridge"):
        tell(harvested, "sites", "edit", name, "--list-url", f"https://{name}.example.org/{LIST_NAME}")


@pytest.fixture
def folder(
    request: pytest.FixtureRequest, installations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The folder in which the reader of a page sits, with the web of the examples around."""
    name = "new" if request.param in BEGIN_WITH_NOTHING else "harvested"
    here = tmp_path / "here"
    shutil.copytree(installations / name, here)
    with (here / "metaharvest.toml").open("a", encoding="utf-8") as settings:
        settings.write(OWN_TARGET.get(request.param.removesuffix(".md"), ""))
    if request.param in NO_SETTINGS:
        (here / "metaharvest.toml").unlink()
    monkeypatch.chdir(here)
    monkeypatch.setenv("ALDER_PASSWORD", "secret")
    monkeypatch.setenv("HOME", str(here))
    with OaiServer(25) as repository, example_web(here, partial(at_the_examples, repository)) as environment:
        repository.sets = {"frogs": "Frogs"}
        for record in repository.records.values():
            record.sets = ("frogs",)
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        yield here


SHOWN = list(shown_commands())


def lines_of(page: str) -> list[str]:
    """The command lines of a page, each once, without what explains them."""
    lines = (re.sub(r"\s+#.*", "", line).strip() for where, line in SHOWN if where == page)
    return list(dict.fromkeys(line.partition(" && ")[0].rstrip(".,:;") for line in lines))


def is_elsewhere(page: str, line: str) -> bool:
    return page in ELSEWHERE or any(line.startswith(beginning) for beginning in ELSEWHERE)


def meant_by(line: str) -> Iterator[str]:
    """What a reader types for this line."""
    for each in MEANT.get(line, [line]):
        for name, here in OTHERS_NAMES.items():
            each = each.replace(name, here)
        yield re.sub(r"\b[A-Z][A-Z_]*\b", lambda match: FILLED_IN.get(match[0], match[0]), each)


def run(line: str) -> tuple[int, str]:
    """The exit code of a command line, and all that it said."""
    if NEVER_ENDS.search(line):
        return began_and_ended(line)
    if re.search(r"[<>|]", line):
        called = f"{shlex.quote(sys.executable)} -m metaharvest {line}"
        done = subprocess.run(called, shell=True, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, done.stdout + done.stderr
    told = said(*shlex.split(line))
    return told.code, told.out + told.err


def began_and_ended(line: str) -> tuple[int, str]:
    """The same of a command that goes on until it is stopped: as soon as it has said something."""
    # Tests run at the same time, and one port serves one process.
    port = ["--port", "0"] if re.search(r"^(--config \S+ )?serve\b", line) else []
    command = [sys.executable, "-m", "metaharvest", *shlex.split(line), *port]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with ForkedPopen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
    return process.returncode, first + rest


def problem_with(line: str) -> str | None:
    """What went wrong as a command line was run; None if it did what it is for."""
    code, told = run(line)
    if "Traceback" in told or not (told.strip() or ">" in line):
        return f"{line}: {told or 'it said nothing'}"
    # Python ends by SIGINT, 130 for a shell, if a signal interrupts text that it executes, and a module is the program.
    was_stopped = code in (130, 143, -signal.SIGINT) and NEVER_ENDS.search(line)
    is_help = code == 2 and told.startswith("Usage: ")
    may_find = code == 1 and line.startswith(FINDS_SOMETHING)
    if code == 0 or may_find or was_stopped or (is_help and "Commands:" in told):
        return None
    return f"{line}: exit code {code}: {told}"


WITH_COMMANDS = [page for page in dict.fromkeys(where for where, _ in SHOWN) if page not in ELSEWHERE]


@pytest.mark.parametrize(
    ("folder", "page"), [(page, page) for page in WITH_COMMANDS], ids=WITH_COMMANDS, indirect=["folder"]
)
@pytest.mark.timeout(600)
@pytest.mark.long
def test_what_is_shown_is_run_as_it_is_written(folder: Path, page: str) -> None:
    if page in BEGIN_WITH_NOTHING:
        initialize(folder)
    in_pages = {line for each in WITH_COMMANDS if each not in (PROGRAM, HELP) for line in lines_of(each)}
    lines = [line for line in lines_of(page) if not is_elsewhere(page, line)]
    if page in (PROGRAM, HELP):
        # They have no order of their own: what takes a site away comes last.
        lines = sorted((line for line in lines if line not in in_pages), key=lambda line: "remove" in line)
    problems = [problem for line in lines for each in meant_by(line) if (problem := problem_with(each))]
    assert not problems, "\n\n".join(problems)


def test_what_is_filled_in_or_left_out_is_shown() -> None:
    """Nothing is left behind here when the documentation changes."""
    shown = {line for where in (*WITH_COMMANDS, *ELSEWHERE) for line in lines_of(where)}
    assert [line for line in MEANT if line not in shown] == []
    beginnings = [each for each in ELSEWHERE if not each.endswith(".md")]
    assert [each for each in beginnings if not any(line.startswith(each) for line in shown)] == []


def test_other_programs_that_are_called_are_known() -> None:
    called: set[str] = set()
    texts = [re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8")) for page in PAGES]
    for page, text in zip(PAGES, texts, strict=True):
        lines = [line for language, block in BLOCK.findall(text) if not language for line in block.splitlines()]
        if page.name == "README.md":
            lines += re.findall(r"^    (\S.*)$", text, re.MULTILINE)
        firsts = [re.match(r"(?:[\d*]+ )*\s*(?:[^\s=]*/)?([a-z][\w-]*)(?: |$)", line) for line in lines]
        called |= {first[1] for first in firsts if first}
    assert called - {"metaharvest"} - SHOWN_OUTPUT - set(NOT_HERE) == set()
    packaging = [file.read_text(encoding="utf-8") for file in (ROOT / "packaging").iterdir()]
    shown = set(re.findall(r"[a-z][\w-]*", "\n".join((*texts, *packaging))))
    assert set(NOT_HERE) - shown == set()
