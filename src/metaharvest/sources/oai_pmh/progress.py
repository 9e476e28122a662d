"""The progress of a sweep, the start of the next one, and the state kept of a source repository. Pure.

A sweep is a queue of windows. A full sweep lists everything; a sweep of changes begins at the watermark. The watermark
is the first_moment() of the last sweep that ended, with or without holes, and is not repeated. `ledger/sweeps.py` keeps
a `State`: five fields of the sweep in columns, the others as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from datetime import timedelta
from typing import Any

from metaharvest.model import Checkpoint, Finding, Level, OaiOptions
from metaharvest.model.values import frozen
from metaharvest.sources.oai_pmh.datestamps import from_watermark, has_zone, moment, written
from metaharvest.sources.oai_pmh.probes import From, Newest, Probed
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.sources.oai_pmh.windows import Window, joined, window

SHORT_LIST = 2_000
"""A list of at most this many records is repeated until its end is certain; a longer one, once."""


@frozen
class Sweep:
    """A sweep under way. Checkpoints have the fields by their names."""

    full: bool
    """True if it lists everything, False if it lists changes."""
    todo: tuple[Window, ...]
    """The windows to do; the first one is under way."""
    token: str = ""
    """The token of the next answer of the window under way."""
    expires: str = ""
    """The moment until which the source repository keeps the token (expirationDate)."""
    first: str = ""
    """The moment before which the sweep has all changes: it becomes the watermark (see first_moment)."""
    came: int = 0
    """The number of records of the windows that have ended."""
    received: int = 0
    """The number of records of the window under way."""
    announced: int | None = None
    """The number of records of the whole list (completeListSize)."""
    divided: bool = False
    """True if the list was divided into windows, or began with holes of the sweep before."""
    parts: Mapping[str, int] = field(default_factory=dict)
    """The parts of the answer under way whose records came individually: their digests and numbers of records."""
    moved: int = 0
    """The received records that came a second time, with another datestamp or in another answer."""
    left_out: int | None = 0
    """The number of records that the windows left out; None: unknown."""
    holes: tuple[Window, ...] = ()
    """The windows whose identifiers cannot be listed."""
    odd: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Counts of oddities until now."""
    odd_before: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """Counts of oddities of the windows that have ended."""
    notes: tuple[Finding, ...] = ()
    """Warnings about the list until now."""

    @property
    def is_resumed(self) -> bool:
        """True if it goes on from an earlier harvest, whose records are not requested again."""
        return bool(self.token or self.came or self.parts)

    @property
    def lost_its_token(self) -> bool:
        """True if the first window was begun, did not come to its end, and no token leads on."""
        return bool(self.received) and not self.token

    def has_expired(self, now: str) -> bool:
        """True if the expirationDate of the token has passed, by the source repository's clock."""
        expires, today = moment(self.expires), moment(now)
        return bool(self.token) and expires is not None and today is not None and expires < today

    def restarted(self, *windows: Window) -> Sweep:
        """The sweep with these windows in place of the first one; without any, it begins the first one again."""
        todo = (*(windows or self.todo[:1]), *self.todo[1:])
        again = replace(self, todo=todo, token="", expires="", received=0, parts={}, moved=0, odd=self.odd_before)
        return replace(again, divided=self.divided or len(windows) > 1)

    def joined(self) -> Sweep:
        """The sweep with one window in place of all; its records are fetched individually."""
        return replace(self.restarted(), todo=(joined(self.todo),))

    def without_first(self, left_out: int | None) -> Sweep:
        """The sweep after its first window, which left out this number of records; None: unknown."""
        ended = replace(self.restarted(), todo=self.todo[1:], came=self.came + self.received)
        is_known = left_out is not None and self.left_out is not None
        number = (left_out or 0) + (self.left_out or 0) if is_known else None
        return replace(ended, left_out=number, odd=self.odd, odd_before=self.odd)

    def with_hole(self) -> Sweep:
        """The sweep without its first window, which becomes a hole."""
        return replace(self.without_first(0), holes=(*self.holes, self.todo[0]))

    def in_days(self) -> Sweep:
        """The same with windows in whole days."""
        return replace(self, todo=tuple(each.in_days() for each in self.todo))


@frozen
class State:
    """What is kept of a source repository from one harvest to the next. Checkpoints have the fields by their names."""

    asked: tuple[object, ...]
    """The options that make another list if they change."""
    identity: Mapping[str, object] = field(default_factory=dict)
    """What the source repository said of itself."""
    watermark: str = ""
    """The next list of changes begins at this moment minus an overlap (see from_watermark); empty: a full one."""
    full_at: str = ""
    """The watermark of the last full sweep."""
    in_days: bool = False
    """True if Identify names seconds, and requests with seconds are refused."""
    short: int | None = None
    """The last list may lack this number of records (0: unknown), and is repeated. None: it is not repeated."""
    usual: int = 0
    """The number of records that each list lacks; a list that lacks no more is complete."""
    size: int | None = None
    """The announced size of the last full sweep; 0: unknown; None: a version of this program without it listed last."""
    listed: int = 0
    """The number of records of the last full sweep."""
    newest: Sequence[str] = ()
    """The newest known record (see Newest)."""
    from_checked: str = ""
    """The time of the last check whether the source repository respects `from`."""
    from_is_off: bool = False
    """True if lists of changes leave records out: every sweep is a full one."""
    holes: tuple[Window, ...] = ()
    """The windows whose identifiers could not be listed; each harvest tries them."""
    sweep: Sweep | None = None
    """The sweep under way; None: the last one has ended."""

    def as_checkpoint(self) -> Checkpoint:
        """As JSON."""
        own: dict[str, object] = {each.name: getattr(self, each.name) for each in fields(self)}
        own |= {"asked": list(self.asked), "identity": dict(self.identity), "newest": list(self.newest)}
        own |= {"holes": [asdict(each) for each in self.holes]}
        return {**own, "sweep": asdict(self.sweep) if self.sweep else None}

    def is_second(self, sweep: Sweep) -> bool:
        """True if this sweep repeats the last one, whose list lacked records.

        A full sweep beside a watermark is a new one: to_repeat() empties the watermark if a full sweep is repeated.
        """
        return self.short is not None and not (sweep.full and self.watermark)

    def to_repeat(self, sweep: Sweep, short: int) -> State:
        """The state from which the next harvest repeats this sweep. `short`: see State."""
        return replace(self, watermark="" if sweep.full else self.watermark, short=short, sweep=None)


def next_sweep(state: State, options: OaiOptions, identity: Identity, *, full: bool) -> Sweep:
    """The sweep that a harvest goes on with, or begins. `full`: a full sweep is wanted."""
    now, seconds = identity.response_date, has_seconds(state, identity)
    under_way, is_due = state.sweep, _is_full_due(state, options, first_moment(now, identity.ahead))
    if under_way is not None and (under_way.full or not (full or (is_due and not under_way.token))):
        if not (under_way.lost_its_token or under_way.has_expired(now)):
            return under_way
        halves = under_way.todo[0].halves(identity.earliest, now, seconds=seconds)
        return under_way.restarted(*(halves or ()))
    is_full = full or not state.watermark or is_due
    since = None if is_full else _since(state, identity)
    whole = window(options.begin, options.until, since, seconds=seconds)
    holes = () if is_full or since is None else tuple(each for each in state.holes if not whole.contains(each))
    return Sweep(full=since is None, todo=(whole, *holes), divided=bool(holes))


def state_after(state: State, sweep: Sweep, probed: Probed, before: str, *, is_empty: bool) -> State:
    """The state after a sweep has ended. `before` is a moment before it began.

    `is_empty`: no record with an identifier came. The watermark moves. It stays if a sweep of changes is repeated. It
    becomes empty if a full sweep is repeated, or brought no record.
    """
    if sweep.full and is_empty:
        return replace(state, watermark="", short=None, sweep=None)
    if sweep.left_out is None and (sweep.came <= SHORT_LIST or not state.is_second(sweep)):
        return state.to_repeat(sweep, 0)
    first = sweep.first or before
    if sweep.full:
        state = replace(state, full_at=first, listed=sweep.came)
    state = replace(state, watermark=first, short=None, holes=sweep.holes, sweep=None)
    if probed.newest.identifier:
        state = replace(state, newest=(probed.newest.datestamp, probed.newest.identifier))
    if probed.how is None:
        return state
    return replace(state, from_checked=before, from_is_off=probed.how in (From.OFF, From.IGNORED))


def first_moment(response_date: str, ahead: timedelta) -> str:
    """The moment before which a list with this responseDate in its first answer has all changes.

    It is `response_date` itself, or earlier by the time that the clock in it is `ahead` of the web server's.
    """
    when = moment(response_date)
    if when is None or ahead <= timedelta(0):
        return response_date
    earlier = written(when - ahead, seconds=True)
    return earlier if has_zone(response_date) else earlier.removesuffix("Z")


def has_seconds(state: State, identity: Identity) -> bool:
    """True if windows are sent with seconds."""
    return identity.has_seconds and not state.in_days


def _since(state: State, identity: Identity) -> str | None:
    """The `from` of a list of changes. It is not before the first record, as some source repositories refuse that.

    Seen at https://github.com/IQSS/dataverse/issues/9309.
    """
    seconds, is_local = has_seconds(state, identity), identity.version != "2.0"
    since = from_watermark(state.watermark, seconds=seconds, local=is_local)
    begin, last, earliest = moment(since or ""), moment(state.watermark), moment(identity.earliest)
    if begin is None or last is None or earliest is None or not begin < earliest <= last:
        return since
    return written(earliest, seconds=seconds)


def _is_full_due(state: State, options: OaiOptions, now: str) -> bool:
    """True if a full list is due, by the source repository's clock."""
    if options.full_every is None:
        return False
    last, today = moment(state.full_at), moment(now)
    # Harvests do not begin in the same second each night.
    return last is None or today is None or (today.date() - last.date()).days >= options.full_every


def newest_of(state: State) -> Newest:
    """The newest known record."""
    return Newest(state.newest[0], state.newest[1]) if len(state.newest) >= 2 else Newest()


# -- as JSON


def asked_by(base_url: str, options: OaiOptions) -> tuple[object, ...]:
    """The options that make another list if they change, as JSON has them."""
    sets = [options.set_spec] if options.set_spec else []
    which = [options.origin, options.prefix, sets, options.begin, options.until]
    return (base_url, options.method.value, which)


def asks_for_others(checkpoint: Checkpoint | None, asked: tuple[object, ...]) -> bool:
    """True if the checkpoint is of a list of other records: with another format, origin, set or dates."""
    before = checkpoint.get("asked") if checkpoint else None
    return isinstance(before, list) and before[-1:] != list(asked[-1:])


def state_from(checkpoint: Checkpoint | None, asked: tuple[object, ...]) -> State:
    """The state in the checkpoint; an empty one if there is none, it is of another list, or it is unreadable."""
    if not checkpoint or checkpoint.get("asked") != list(asked):
        identity = checkpoint.get("identity") if checkpoint else None
        return State(asked, identity if isinstance(identity, Mapping) else {})
    try:
        given = {name: value for name, value in _upgraded(checkpoint).items() if name in _STATE}
        sweep, holes = given.pop("sweep", None), given.pop("holes", ())
        state = State(**{**given, "asked": asked}, holes=_windows_from(holes))
        if not sweep:
            return state
        windows = {name: _windows_from(sweep[name]) for name in ("todo", "holes")}
        notes = tuple(Finding(**{**each, "level": Level(each["level"])}) for each in sweep.get("notes", ()))
        return replace(state, sweep=Sweep(**{**sweep, **windows, "notes": notes}))
    except (TypeError, KeyError, ValueError):
        return State(asked)


def _windows_from(given: Sequence[Mapping[str, Any]]) -> tuple[Window, ...]:
    return tuple(Window(**each) for each in given)


def _upgraded(checkpoint: Checkpoint) -> dict[str, Any]:
    """The checkpoint, if need be of release 0.1: a full list that was under way begins again."""
    given: dict[str, Any] = dict(checkpoint)
    if "sweep" in given:
        return given
    for new, old in (("short", "short"), ("usual", "usually_short")):
        numbers = given.get(old)
        given[new] = next(iter(numbers.values()), None) if isinstance(numbers, Mapping) else None
    given["usual"] = given["usual"] or 0
    if given.get("is_second") and given["short"] is None:
        given["short"] = 0
    for name in ("watermark", "full_at"):
        given[name] = first_moment(given.get(name, ""), timedelta(seconds=given.get("ahead", 0)))
    progress = given.get("progress")
    if isinstance(progress, Mapping) and progress.get("full"):
        given["watermark"] = ""
    return given


_STATE = frozenset(each.name for each in fields(State))
