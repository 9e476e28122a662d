"""The benchmarks that compare two states of the program, on the same files and servers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import nights, yardsticks
from benchmarks import repositories as oai
from benchmarks.databases import SQLITE
from benchmarks.installation import NIGHT, Installation, cost_of
from benchmarks.nights import SITES, SLOW_SETTINGS, SLOW_SITES, QuietNights, first_night
from benchmarks.pairs import Comparison, Pairs
from benchmarks.servers import FORGETFUL
from benchmarks.table import Line


def full_night(scratch: Path, scale: float, pairs: Pairs) -> Iterator[Comparison | Line]:
    """The full night; the limit is measured before each pair."""
    limits: list[yardsticks.Limit] = []
    with nights.served(scratch, SITES, nights.scaled(500, scale)) as sites:
        night = pairs.compare(
            "full night",
            lambda state: first_night(scratch, sites, state=state),
            lambda _pair: limits.append(yardsticks.measure(sites, scratch)),
        )
    yield night
    parts: dict[str, Callable[[yardsticks.Limit], float]] = {
        "fetching: curl -Z": lambda limit: limit.fetch.wall,
        "validating: xmllint": lambda limit: limit.validate.wall,
        "storing: sqlite3": lambda limit: limit.store.wall,
    }
    for name, part in parts.items():
        yield Line(name, statistics.median(map(part, limits)))
    limit = statistics.median(limit.sum.wall for limit in limits)
    for state, costs in ((pairs.before, night.before), (pairs.after, night.after)):
        wall = statistics.median(cost.wall for cost in costs)
        yield Line(f"full night, {state.name}", wall, "s", "limit", limit, goal=1.5, goal_is_ratio=True)


def quiet_night(scratch: Path, scale: float, pairs: Pairs) -> Iterator[Comparison]:
    """Quiet nights, each state's in a database that it made; the lists of a pair are the same."""
    network = nights.quiet_network(scratch, scale)
    with ExitStack() as opened:
        of_state = {
            state: opened.enter_context(closing(QuietNights(scratch / folder, network.sites, state)))
            for folder, state in (("before", pairs.before), ("after", pairs.after))
        }
        with network.serve():
            for quiet in of_state.values():
                quiet.run()
            yield pairs.compare("quiet night, lists 304", lambda state: of_state[state].run())
        with network.serve(FORGETFUL):
            yield pairs.compare(
                "quiet night, lists read",
                lambda state: of_state[state].run(),
                lambda pair: network.rewrite(f"night {pair}, nothing new"),
            )


def slow_sites(scratch: Path, scale: float, pairs: Pairs) -> Iterator[Comparison]:
    """Slow sites with the settings that each state has by default, and with enough workers for all of them."""
    with nights.slow_network(scratch, SLOW_SITES, nights.scaled(nights.SLOW_DOCUMENTS, scale)) as sites:
        yield pairs.compare("one slow site alone", lambda state: first_night(scratch, sites[:1], state=state))
        for settings, workers in SLOW_SETTINGS.items():
            measure = partial(first_night, scratch, sites, workers, SQLITE)
            yield pairs.compare(f"{SLOW_SITES} slow sites, {settings}", measure)


def start_up(scratch: Path, _scale: float, pairs: Pairs) -> Iterator[Comparison]:
    """`metaharvest --help`, and a run in which nothing is due."""
    yield pairs.compare("metaharvest --help", lambda state: cost_of(state.command("--help"), state.environment))
    with ExitStack() as opened:
        of_state = {
            state: opened.enter_context(closing(Installation(scratch / folder, state=state)))
            for folder, state in (("before", pairs.before), ("after", pairs.after))
        }
        yield pairs.compare("run, nothing due", lambda state: of_state[state].run(NIGHT))


def repositories(scratch: Path, scale: float, pairs: Pairs) -> Iterator[Comparison | Line]:
    """The whole program: the first harvest, a full list without a change, and one answer of more than 200 MB."""
    number = oai.scaled(oai.RECORDS, scale)
    for page in oai.PAGES:
        yield from _pages(scratch, number, page, pairs)
    large = oai.scaled(oai.LARGE, scale)
    for damaged, name in ((False, "one answer"), (True, "one damaged answer")):
        with oai.serving(large, large, damaged=damaged) as url:
            measure = partial(oai.first_harvest, scratch, url, large)
            # A harvest takes a minute, and its memory hardly varies.
            compared = replace(pairs, number=1).compare(f"{name} of {large:,} records", measure)
        yield compared
        memory = statistics.median(cost.memory for cost in compared.after)
        yield Line(f"memory, {compared.name}", memory, unit="MB", goal=150)


def _pages(scratch: Path, number: int, page: int, pairs: Pairs) -> Iterator[Comparison | Line]:
    """The first harvest of pages of this size, and nights in which nothing has changed, each state's own database."""
    with oai.serving(number, page) as url, ExitStack() as opened:
        measure = partial(oai.first_harvest, scratch, url, number)
        yield from _with_ratio(pairs.compare(f"first harvest, pages of {page:,}", measure))
        of_state = {
            state: opened.enter_context(closing(oai.Harvests(scratch / f"{page}-{folder}", url, number, state)))
            for folder, state in (("before", pairs.before), ("after", pairs.after))
        }
        for harvests in of_state.values():
            harvests.run()
        full = pairs.compare(f"nothing new, pages of {page:,}", lambda state: of_state[state].run("--full"))
        yield from _with_ratio(full)


def _with_ratio(compared: Comparison) -> Iterator[Comparison | Line]:
    """The comparison, and the median ratio of its times on the clock beside the goal."""
    yield compared
    ratios = [after.wall / before.wall for before, after in zip(compared.before, compared.after, strict=True)]
    yield Line(f"time after/before, {compared.name}", statistics.median(ratios), unit="", goal=1.05)
