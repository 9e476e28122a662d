"""One history: nights of a source repository and its harvester, made from a seed, and its check at the end."""

from __future__ import annotations

import random
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from math import inf
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from histories.commands import start
from histories.source import ANSWER_FAULTS, LIES, RECORD_FAULTS, Fault, Source, is_in
from metaharvest.model import OutcomeKind
from support.harvester import SETTINGS, Harvester
from support.oai_server import Odd, Record
from support.remote_target import Repository, installed

ORIGIN = "test"
FIRST_DAY = date(2030, 1, 1)
SETS = ("a", "b", "c")
OTHER_SET = "z"
"""A set that no site asks for."""
OUTCOMES = [outcome.column for outcome in OutcomeKind]


@dataclass
class History:
    """A history, and what is known about it: the steps that were made, and what was wrong at the end."""

    seed: int
    steps: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"seed {self.seed}", *self.steps, "", *(f"WRONG: {problem}" for problem in self.problems)])


def lived(seed: int, folder: Path) -> History:
    """Live the history of this seed in an empty folder."""
    history = History(seed)
    with ExitStack() as opened:
        life = Life(history, folder, opened)
        life.register()
        for night in range(1, life.nights + 1):
            life.disturbed_night(night)
        life.calm_nights()
        life.check()
    return history


class Life:
    """The source repository, the harvester and the target of a history, night by night."""

    def __init__(self, history: History, folder: Path, opened: ExitStack, calm: bool = False) -> None:
        """`calm`: five records of one site, in the embedded target."""
        self.history = history
        self.chance = chance = random.Random(history.seed)
        self.folder = folder
        self.nights = 0 if calm else chance.randint(2, 6)
        self.is_honest = chance.random() < 0.5
        """No answer hides a record, and no change an older datestamp: lists of changes have all changes."""
        self.sites: dict[str, str | None] = {"repo": None if calm else chance.choice([None, None, "a"])}
        if not calm and chance.random() < 0.35:
            self.sites = {f"repo-{each}": each for each in SETS[: chance.randint(2, 3)]}
        self.last_night = self.nights + chance.randint(2, 3) + (len(self.sites) > 1)
        options: dict[str, Any] = {
            "page": chance.choice([1, 2, 3, 5, 5, 10, 10, 20, 50]),
            "seconds": chance.random() < 0.7,
            "deleted": chance.choice(["persistent", "persistent", "no"]),
            "announces": chance.random() < 0.6,
            "pause": 0.003 if len(self.sites) > 1 else 0,
        }
        self.source = opened.enter_context(Source(**options))
        self.source.sets = {each: f"Set {each}" for each in (*SETS, OTHER_SET)}
        if not calm and chance.random() < 0.3:
            self._make_odd()
        self.off: set[str] = set()
        """The names of the sites that are switched off."""
        self.has_kills = chance.random() < 0.3
        kind = "embedded" if calm else chance.choices(["embedded", "folder", "remote"], [6, 1, 1])[0]
        self.remote: Repository | None = None
        self.reported: set[str] = set()
        """Identifiers of records that were deleted at any time, or left a set with a deletion."""
        self.silent: set[str] = set()
        """Identifiers of records that left a set without a deletion: only a full list shows that."""
        self.versions = self.added = 0
        self.removed: list[Record] = []
        self.is_new = True
        """Nothing was harvested yet."""
        self.harvester = self._harvester(kind, opened)
        self._step(f"sites {self.sites}, target {kind}, {options}")
        most = min(60, 12 * self.source.page)
        for _ in range(5 if calm else min(most, chance.choice([0, 1, 5, 12, 25, 25, 40, 60]))):
            self._add()

    # -- the harvester

    def _harvester(self, kind: str, opened: ExitStack) -> Harvester:
        settings = SETTINGS
        if kind == "folder":
            settings += '[target]\nkind = "folder"\nfolder = "documents"\n'
        elif kind == "remote":
            self.remote = opened.enter_context(Repository(slowest=0.001))
            settings += f'[target]\nkind = "remote"\nurl = "{self.remote.url}"\n'
            opened.enter_context(_on_path(installed(self.folder)))
        harvester = Harvester(self.folder, settings)
        opened.callback(harvester.close)
        return harvester

    def register(self) -> None:
        method = self.chance.choice([[], [], [], ["--method", "list-identifiers"]])
        more = self.chance.choice([[], [], [], [], ["--post"], ["--full-every", "2"]])
        more += self.chance.choice([["--notify", "never"]] * 4 + [[]])
        self._step(f"options {' '.join([*method, *more]) or 'none'}")
        for name, set_spec in self.sites.items():
            of_set = ["--set", set_spec] if set_spec else []
            given = ["--origin", ORIGIN, "--max-loss", "100", "--contact", "c@example.org", "--unasked"]
            said = self.harvester("sites", "add", name, "--oai", self.source.base_url, *given, *of_set, *method, *more)
            assert said.code == 0, said.err

    def run(self, night: int, *options: str) -> None:
        """One run in this process."""
        said = self.harvester("run", "--force", "--date", str(_day(night)), *options)
        if said.code not in (0, 3) or "Traceback" in said.err:
            self._wrong(f"the run of night {night} ended with {said.code}: {said.err[-2000:]}")

    # -- nights

    def disturbed_night(self, night: int) -> None:
        """Changes at the source, then a run with faults, which may be killed, and perhaps another one."""
        chance, source = self.chance, self.source
        source.now += timedelta(days=1)
        self.is_new = False
        self._step(f"night {night}")
        for _ in range(chance.choice([0, 1, 2, 5, 10])):
            self._change()
        if chance.random() < 0.2:
            self._lasting_fault()
        if len(self.sites) > 1 and chance.random() < 0.1:
            self._switch(chance.choice(list(self.sites)))
        faults = [self._fault() for _ in range(chance.choice([0, 1, 1, 2, 3, 4]))]
        source.begin(faults)
        for fault in faults:
            self._step(f"fault: {fault}")
        if not self.is_honest and chance.random() < 0.25:
            at = chance.randint(1, 6)
            self._step(f"a record changes at list request {at}")
            source.events[at] = self._change
        if self.remote and chance.random() < 0.4:
            self.remote.patience = chance.randint(0, 30)
            self._step(f"the target is away after {self.remote.patience} requests")
        if chance.random() < 0.15:
            self._step("tokens expire")
            source.expire_tokens()
        full = ["--full"] if chance.random() < 0.35 else []
        if self.has_kills and chance.random() < 0.6:
            self._killed_run(night, *full)
            if chance.random() < 0.3:
                self._step("tokens expire")
                source.expire_tokens()
            if chance.random() < 0.7:
                source.begin([fault for fault in faults if chance.random() < 0.5])
                self._step(f"run again {full}; faults: {', '.join(map(str, source.faults)) or 'none'}")
                self.run(night, *full)
        else:
            self._step(f"run {' '.join(full)}")
            self.run(night, *full)
        if self.remote:
            self.remote.patience = inf

    def calm_nights(self) -> None:
        """Nights without faults but those that last; the last is a full list.

        If there are several sites, the two last ones are: of a record that moves, one site may be read too early.
        """
        if self.chance.random() < 0.5:
            for name in sorted(self.off):
                self._switch(name)
        first_full = self.last_night - (len(self.sites) > 1)
        for night in range(self.nights + 1, self.last_night + 1):
            self.source.now += timedelta(days=1)
            self.source.begin()
            full = ["--full"] if night >= first_full else []
            if night == first_full and self.is_honest:
                self._check_records(self._held(), is_full=False)
            self._step(f"night {night}, calm {' '.join(full)}")
            self.run(night, *full)

    def _switch(self, name: str) -> None:
        """Switch a site off, or on again."""
        command = "enable" if name in self.off else "disable"
        self._step(f"sites {command} {name}")
        said = self.harvester("sites", command, name)
        assert said.code == 0, said.err
        self.off ^= {name}

    def _killed_run(self, night: int, *options: str) -> None:
        at, later = self.chance.choice([1, 3, 4, 5, 6, 8, 12]), self.chance.choice([0, 0, 0.01, 0.03, 0.1])
        is_list = self.chance.random() < 0.5
        process: list[BaseProcess] = []

        def kill() -> None:
            process[0].kill()

        events = self.source.events if is_list else self.source.at_request
        happens = events.get(at)

        def event() -> None:
            if happens:
                happens()
            if later:
                threading.Timer(later, kill).start()
            else:
                kill()

        events[at] = event
        what = "list request" if is_list else "request"
        self._step(f"run {' '.join(options)}, killed {later} s after {what} {at}")
        output = self.folder / "killed.txt"
        arguments = [
            "--config",
            str(self.harvester.config),
            "run",
            "--force",
            "--force-date",
            "--date",
            str(_day(night)),
        ]
        process.append(start(output, *arguments, *options))
        process[0].join()
        if process[0].exitcode not in (0, 3, -signal.SIGKILL):
            self._wrong(f"the run of night {night} ended with {process[0].exitcode}: {output.read_text()[-2000:]}")

    # -- what happens at the source

    def _change(self) -> None:
        live = [each for each in self.source.records.values() if not each.deleted]
        gone = [*self.removed, *(each for each in self.source.records.values() if each.deleted)]
        changes: list[Callable[[], None]] = [self._add]
        if live:
            record = self.chance.choice(live)
            changes += [
                lambda: self._edit(record),
                lambda: self._edit(record),
                lambda: self._touch(record),
                lambda: self._delete(record),
                lambda: self._delete(record),
                lambda: self._move(record),
            ]
            changes += [] if self.is_honest else [lambda: self._restore(record)]
        if gone:
            changes.append(lambda: self._bring_back(self.chance.choice(gone)))
        self.source.now += timedelta(seconds=self.chance.choice([0, 1, 60]))
        self.chance.choice(changes)()

    def _add(self) -> None:
        self.added += 1
        identifier = f"oai:test:{self.added}"
        days = self.chance.choice([0, 0, 0, 1, 30, 100] if self.is_new or not self.is_honest else [0])
        age = timedelta(days=days, seconds=len(self.source.records) if self.is_new else 0)
        self.source.put(identifier, self.source.now - age, title=self._title(), sets=self._sets())
        self._step(f"{identifier} is added in {self.source.records[identifier].sets}, {days} days old", quiet=True)

    def _edit(self, record: Record) -> None:
        record.title, record.datestamp = self._title(), self.source.now
        self._step(f"{record.identifier} is {record.title}")

    def _touch(self, record: Record) -> None:
        record.datestamp = self.source.now
        self._step(f"{record.identifier} has a new datestamp")

    def _delete(self, record: Record) -> None:
        self._step(f"{record.identifier} is deleted")
        if self.source.deleted == "no":
            self.removed.append(self.source.records.pop(record.identifier))
        else:
            self.source.delete(record.identifier)
            self.reported.add(record.identifier)

    def _restore(self, record: Record) -> None:
        record.title, record.datestamp = self._title(), record.datestamp - timedelta(days=self.chance.randint(1, 3))
        self._step(f"{record.identifier} is {record.title} of {record.datestamp}, from a backup")

    def _bring_back(self, record: Record) -> None:
        if record in self.removed:
            self.removed.remove(record)
            self.source.records[record.identifier] = record
        record.deleted, record.title = False, self._title()
        record.datestamp = self.source.now - timedelta(days=self.chance.choice([0] if self.is_honest else [0, 0, 1, 3]))
        self._step(f"{record.identifier} is back, {record.title} of {record.datestamp}")

    def _move(self, record: Record) -> None:
        before = record.sets
        sets = self._sets()
        record.sets, record.datestamp = sets, self.source.now
        of_sites = {name for name in self.sites.values() if name}
        left = {name for name in of_sites if is_in(before, name)}
        if self.source.deleted == "no" or self.chance.random() < 0.5:
            self.silent.add(record.identifier)
            left = set()
        record.left = tuple(sorted(name for name in left.union(record.left) if not is_in(sets, name)))
        if record.left:
            self.reported.add(record.identifier)
        self._step(f"{record.identifier} moves from {before} to {sets}, deleted in {record.left}")

    def _sets(self) -> tuple[str, ...]:
        return tuple(self.chance.sample((*SETS, "a:1", OTHER_SET), self.chance.choice([0, 1, 1, 2])))

    def _title(self) -> str:
        self.versions += 1
        return f"Version {self.versions} of them"

    def _lasting_fault(self) -> None:
        kind = self.chance.choice(["error for record", "cut record", "no identifier for record"])
        if self.source.records:
            fault = Fault(kind, identifier=self.chance.choice(list(self.source.records)))
            self.source.lasting.append(fault)
            self._step(f"fault, for ever: {fault}")

    def _fault(self) -> Fault:
        kinds = [each for each in (*ANSWER_FAULTS, *RECORD_FAULTS) if not (self.is_honest and each in LIES)]
        kind = self.chance.choice(kinds)
        times = self.chance.choice([1, 1, 2, 3, 6, inf])
        first = self.chance.choice([0, 0, 0, 1, 1, 2, 3, 5, 8])
        identifier = self.chance.choice(list(self.source.records) or ["none"])
        return Fault(kind, identifier=identifier) if kind in RECORD_FAULTS else Fault(kind, first, times)

    def _make_odd(self) -> None:
        """Something is odd about the source repository on all nights."""
        odd = [Odd.TWICE, Odd.SIZE_NEARLY, Odd.EMPTY_PAGE, Odd.BUSY_SECONDS, Odd.STATUS_OF_ERRORS]
        if self.source.seconds:
            odd.append(Odd.NO_SECONDS)
        if self.source.seconds and self.source.page >= 10:
            # So that all records of a second, which cannot be split, are on one page.
            odd.append(Odd.TOKENS_EXPIRE)
        what = self.chance.choice([*odd, "breaks off", "ignores dates"])
        if isinstance(what, Odd):
            self.source.odd.add(what)
        self.source.breaks_off = what == "breaks off"
        self.source.ignores_dates = what == "ignores dates"
        self._step(f"the source repository is odd: {what}")

    # -- the check

    def check(self) -> None:
        """What must hold at the end of a history."""
        self._check_totals()
        if overlaps := self.source.overlaps():
            self._wrong(f"{overlaps} list requests began before an earlier one had ended")
        if self.harvester.rows("SELECT 1 FROM harvest_detail_log WHERE rule = 'target.other-site'"):
            self._wrong("a site was refused a document of its own source repository")
        before = self._held()
        self._check_records(before)
        night = self.last_night + 1
        self.source.begin()
        self.run(night, "--full")
        self._check_totals()
        [changed] = self.harvester.rows(
            "SELECT coalesce(sum(inserted + updated + deleted + deferred), 0) FROM harvest_site_run "
            "WHERE run_id = (SELECT max(run_id) FROM harvest_run)"
        )
        if changed != (0,) or self._held() != before:
            self._wrong(f"a full list in which nothing is new changed something: {self._totals(night)}")

    def _check_totals(self) -> None:
        for site_run, status, listed, *numbers in self.harvester.rows(
            f"SELECT site_run_id, status, listed, {', '.join(OUTCOMES)} FROM harvest_site_run"
        ):
            if sum(numbers) != listed:
                counted = {name: number for name, number in zip(OUTCOMES, numbers, strict=True) if number}
                self._wrong(f"site run {site_run} ({status}) listed {listed}, and has {counted}")

    def _check_records(self, held: dict[str, tuple[int, bytes]], *, is_full: bool = True) -> None:
        """Compare the target with the source repository. `is_full`: after a full list."""
        broken = {fault.identifier for fault in self.source.lasting}
        named, counted = self._said()
        live, elsewhere = self._live(self.sites.keys() - self.off), self._live(self.off)
        for identifier in sorted(live):
            title = self.source.records[identifier].title
            _, content = held.get(identifier, (0, b""))
            if f">{title}<".encode() in content:
                continue
            what = "an old version" if content else "nothing"
            if identifier not in broken:
                self._wrong(f"the target has {what} of {identifier} ({title})")
            elif is_full and identifier not in named and not counted:  # a list of changes counts what it lists
                self._wrong(f"the target has {what} of {identifier}, which no error names or counts")
        for identifier in sorted(held):
            record = self.source.records.get(identifier)
            if identifier in live | elsewhere | broken:
                continue
            # No record is missing from a list in which one has no identifier.
            if identifier in self.silent and (self.source.lasting or not is_full):
                continue
            if record and self._is_reported(record):
                self._wrong(f"the target has {identifier}, which is deleted")
        for identifier in sorted(self._known() - held.keys() - live - self.reported):
            self._wrong(f"{identifier} is deleted, though the source repository never said so")

    def _live(self, names: Iterable[str]) -> set[str]:
        """The identifiers of the records that are live in the sets of these sites."""
        return {record.identifier for name in names for record in self.source.live(self.sites[name])}

    def _is_reported(self, record: Record) -> bool:
        """True if a list of one of the sites that are switched on reports the record as deleted."""
        sets = (*record.sets, *record.left) if record.deleted else record.left
        return any(is_in(sets, set_spec) for name, set_spec in self.sites.items() if name not in self.off)

    def _said(self) -> tuple[set[str], int]:
        """The identifiers that errors of the last run name, and the number of records that they count."""
        rows = self.harvester.rows(
            "SELECT coalesce(d.document_id, l.document_id, ''), d.error_message, d.rule FROM harvest_detail_log d "
            "JOIN harvest_log l ON l.harvest_log_id = d.harvest_log_id "
            "WHERE d.level = 'error' AND l.run_id = (SELECT max(run_id) FROM harvest_run)"
        )
        named = {found for row in rows for text in row for found in re.findall(r"oai:test:\w+", text)}
        counts = [re.findall(r"\d+", message) or ["1"] for _, message, rule in rows if rule == "oai.identifier"]
        return named, sum(int(numbers[0]) for numbers in counts)

    def _known(self) -> set[str]:
        """The identifiers of all records that ever came into the target."""
        rows = self.harvester.rows(
            "SELECT DISTINCT document_id FROM harvest_log WHERE outcome IN ('inserted', 'updated')"
        )
        return {_identifier(document_id) for (document_id,) in rows}

    def _held(self) -> dict[str, tuple[int, bytes]]:
        """By identifier: the highest revision in the target, and its content."""
        ids = [f"{ORIGIN}/oai_dc/{each}" for each in {*self.source.records, *self._known()}]
        with self.harvester.opened() as opened:
            target = opened.targets.default
            with target.session(None) as session:
                held = session.holdings(ids) if ids else {}
            return {
                _identifier(each): (holding.revision, target.content(each, holding.revision) or b"")
                for each, holding in held.items()
            }

    def _totals(self, night: int) -> list[tuple[object, ...]]:
        return self.harvester.rows(
            f"SELECT s.site_name, s.status, s.listed, {', '.join(f's.{each}' for each in OUTCOMES)} "
            "FROM harvest_site_run s JOIN harvest_run r ON r.run_id = s.run_id WHERE r.harvest_date = ?",
            str(_day(night)),
        )

    def _step(self, what: str, quiet: bool = False) -> None:
        self.history.steps.append(f"  {what}" if quiet else what)

    def _wrong(self, what: str) -> None:
        self.history.problems.append(what)


def _day(night: int) -> date:
    return FIRST_DAY + timedelta(days=night)


def _identifier(document_id: str) -> str:
    return document_id.removeprefix(f"{ORIGIN}/oai_dc/")


@contextmanager
def _on_path(place: Path) -> Iterator[None]:
    sys.path.insert(0, str(place))
    try:
        yield
    finally:
        sys.path.remove(str(place))
