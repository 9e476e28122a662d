"""Kills processes with SIGKILL at moments that chance chooses: anywhere in a run, or where it would hurt most."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence

from support.http_server import HttpServer
from support.soak_world import World

Moment = Callable[[], bool]

LOCK_HELD = 75


class Killer:
    """Starts runs of a world and kills them. `hit` counts what they were about when they died."""

    def __init__(
        self,
        world: World,
        server: HttpServer,
        chance: random.Random,
        start: Callable[[str], subprocess.Popen[bytes]] | None = None,
        uploads: Sequence[object] | None = None,
    ) -> None:
        """`start` starts the run of a day, where `metaharvest run` is not meant; `uploads` grow as documents arrive."""
        self.world = world
        self._server = server
        self._chance = chance
        self._start = start or (lambda day: world.start("run", "--date", day))
        self._uploads = uploads
        self.seconds = 2.0
        self.kills = 0
        self.aimed: Counter[str] = Counter()
        self.hit: Counter[str] = Counter()

    def night(self, day: str, kills: int) -> None:
        """Run and kill until there were so many kills in all; then until a run, and its delivery, come to their end."""
        while self.kills < kills:
            if not self._run_and_kill(day):
                return
        self.run(day)

    def run(self, day: str) -> None:
        """Let a run of this day come to its end; where it has been closed already, the delivery of its reports."""
        began = time.monotonic()
        while (code := self._next(day).wait()) == LOCK_HELD and time.monotonic() - began < 15:
            time.sleep(0.1)
        self.seconds = max(1.0, min(time.monotonic() - began, 10.0))
        self._check(code)

    def _next(self, day: str) -> subprocess.Popen[bytes]:
        return self.world.start("reports", "deliver") if self.world.is_closed(day) else self._start(day)

    def summary(self) -> str:
        """How many kills there were, what they were aimed at, and what they hit."""
        parts = [f"{self.kills} kills"]
        for what, counts in (("aimed", self.aimed), ("hit", self.hit)):
            parts.append(f"{what}: " + ", ".join(f"{name} {number}" for name, number in counts.most_common()))
        return "; ".join(parts)

    def _run_and_kill(self, day: str) -> bool:
        """Start what is next and kill it at a moment of chance; False where it came to its end before."""
        before, delivers = self._last_run(), self.world.is_closed(day)
        name, moment = self._moment()
        process = self._next(day)
        while process.poll() is None:
            if moment():
                process.kill()
                break
            time.sleep(0.005)
        code = process.wait()
        if code == LOCK_HELD:
            # The server has not noticed yet that the connection of the run before is gone.
            return True
        if code != -signal.SIGKILL:
            self._check(code)
            return False
        self.kills += 1
        self.aimed[name] += 1
        self.hit["the delivery of what waited" if delivers else self._was_about(before)] += 1
        return True

    def _check(self, code: int) -> None:
        """No run may end otherwise than well, or with sites that failed as a whole."""
        said = self.world.said()
        assert code in (0, 3), f"exit code {code}: {said}"
        assert "Traceback" not in said, said

    def _moment(self) -> tuple[str, Moment]:
        """A kind of moment, and whether it has come."""
        chance, began = self._chance, time.monotonic()
        kinds: list[tuple[str, Moment]] = [
            ("at any time", _after(began, chance.uniform(0, self.seconds))),
            ("while it starts", _after(began, chance.uniform(0, self.seconds / 4))),
            ("while a site is asked", self._asked(int(chance.triangular(1, 80, 1)))),
            ("while mail is written", self._mail("tmp", 1)),
            ("while mail is delivered", self._mail("new", chance.randint(1, 4))),
            ("while it ends", self._ending(chance.uniform(0, 0.15))),
        ]
        weights = [6, 2, 8, 1, 1, 1]
        if self._uploads is not None:
            kinds.append(("while documents are uploaded", self._uploaded(int(chance.triangular(1, 200, 1)))))
            weights.append(6)
        return chance.choices(kinds, weights)[0]

    def _asked(self, number: int) -> Moment:
        before = len(self._server.requests)
        return lambda: len(self._server.requests) - before >= number

    def _uploaded(self, number: int) -> Moment:
        uploads = self._uploads or []
        before = len(uploads)
        return lambda: len(uploads) - before >= number

    def _mail(self, folder: str, number: int) -> Moment:
        """So many changes of a folder of the Maildir: a file comes, or goes."""
        path = self.world.mail / folder

        def changed() -> int:
            return path.stat().st_mtime_ns if path.exists() else 0

        seen = [changed()]

        def has_come() -> bool:
            if (now := changed()) != seen[-1]:
                seen.append(now)
            return len(seen) > number

        return has_come

    def _ending(self, later: float) -> Moment:
        """So many seconds after the run's composite report was queued: purge, closing, delivery."""
        before, since = self._last_run(), [0.0]

        def has_come() -> bool:
            if not since[0]:
                time.sleep(0.003)
                sql = "SELECT report_id FROM report_outbox WHERE kind = 'admin' AND run_id > ?"
                since[0] = time.monotonic() if self.world.rows(sql, before) else 0.0
            return bool(since[0]) and time.monotonic() - since[0] >= later

        return has_come

    def _last_run(self) -> int:
        return int(self.world.rows("SELECT coalesce(max(run_id), 0) FROM harvest_run")[0][0])

    def _was_about(self, before: int) -> str:
        """What the killed run had come to, as its rows tell."""
        runs = self.world.rows("SELECT run_id, status FROM harvest_run WHERE run_id > ?", before)
        if not runs:
            return "before it opened the run"
        [(run_id, status)] = runs
        if status != "running":
            return "after the run was closed"
        if self.world.rows("SELECT report_id FROM report_outbox WHERE run_id = ? AND kind = 'admin'", run_id):
            return "between the composite report and closing the run"
        site_runs = self.world.rows("SELECT status FROM harvest_site_run WHERE run_id = ?", run_id)
        if not site_runs or ("running",) in site_runs:
            return "in the middle of sites"
        return "between sites, or while their reports went out"


def _after(began: float, seconds: float) -> Moment:
    return lambda: time.monotonic() - began >= seconds
