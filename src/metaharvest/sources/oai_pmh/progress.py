"""Checkpoints: how far a list has come, and where the next one begins; as values, and as JSON for the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from metaharvest.model import Checkpoint, Finding, Level, OaiOptions
from metaharvest.sources.oai_pmh.datestamps import Window


@dataclass(frozen=True, slots=True)
class ListProgress:
    """A list under way: `full` or changes only, its window as sent, and the set that is being read, by its number.

    `first` is the responseDate of the first answer. `pages`, `received`, `different` (of these) and `announced` are of
    this set's list from `since` on: what is older has come already, if there is one. What came before is in `earlier`.
    The list's last findings are made of `odd` (see Records.counted) and `notes`; `odd_before` is the part of `odd` from
    the sets before. `ahead`: the seconds by which the repository's clock was ahead of its web server's when the list
    began. `left_out`: the records missing in the lists that have ended. `in_doubt`: one of them perhaps ended too
    early. `moved`: the records of this set that came again, with another datestamp or on another page. `shrunk`: by how
    many records the announced number fell meanwhile. `broken_off` are the sets before this one whose lists broke off,
    `empty` the sets that listed nothing. `begins`: where the list of each set begins, if not all begin at `begin`.
    """

    full: bool
    begin: str | None = None
    until: str | None = None
    number: int = 0
    token: str = ""
    expires: str = ""
    first: str = ""
    pages: int = 0
    received: int = 0
    announced: int | None = None
    earlier: int = 0
    since: str | None = None
    odd: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    notes: Sequence[Finding] = ()
    ahead: int = 0
    odd_before: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    different: int = 0
    left_out: int = 0
    in_doubt: bool = False
    moved: int = 0
    shrunk: int = 0
    broken_off: Sequence[str] = ()
    begins: Sequence[str | None] = ()
    empty: Sequence[str] = ()

    @property
    def window(self) -> Window:
        """The window as it is sent."""
        begin = self.begins[self.number] if self.number < len(self.begins) else self.begin
        return Window(self.since or begin, self.until)

    @property
    def is_begun(self) -> bool:
        """True if records of it came in earlier harvests, which it does not ask for again."""
        return bool(self.token or self.number or self.since)

    def narrowed(self, since: str, first: str, came: int) -> ListProgress:
        """What is left of it: so many records `came` until now, among them all that are older than `since`."""
        left = ListProgress(self.full, self.begin, self.until, self.number, ahead=self.ahead, begins=self.begins)
        left = replace(left, left_out=self.left_out, in_doubt=self.in_doubt, broken_off=self.broken_off)
        return replace(left, first=self.first or first, earlier=came, since=since, empty=self.empty)

    def restarted(self) -> ListProgress:
        """The same set's list from its beginning."""
        odd = self.odd_before
        return replace(
            self, token="", expires="", pages=0, received=0, announced=None, different=0, moved=0, shrunk=0, odd=odd
        )

    def in_days(self) -> ListProgress:
        """The same with windows in whole days."""
        begin, until, since = (stamp and stamp[:10] for stamp in (self.begin, self.until, self.since))
        begins = [stamp and stamp[:10] for stamp in self.begins]
        return replace(self, begin=begin, until=until, since=since, begins=begins)


@dataclass(frozen=True, slots=True)
class State:
    """What is kept of a repository from one harvest to the next.

    `asked` are the options that make another list if they change. `watermark` is the first responseDate of the last
    list that came to its end, `full_at` that of the last full one. `ahead`: the seconds by which the clock of the
    watermark was ahead of the web server's. `in_days`: seconds are advertised, not accepted. `is_second`: the next list
    is asked for once more, as records were left out of it. The next lists of the sets that are `behind`, as their last
    ones broke off, begin at watermarks of their own; an empty one is the very beginning. `owes_full`: the lists of some
    sets broke off in the last full list, so that it does not show which records are missing. Another full list is due
    when no set is behind. `empty` are the sets that have never listed a record: the next list of each begins at the
    very beginning too. `short` and `usually_short`: see Shortfalls. The last full list announced `size` records (0:
    unknown; None: a version without this number listed them) and brought `listed`. `newest` is the newest known
    record (see Newest), `from_checked` the time of the last check with it. `from_is_off`: lists of changes leave
    records out, so every list is a full one.
    """

    asked: tuple[object, ...]
    identity: Mapping[str, object] = field(default_factory=dict)
    watermark: str = ""
    full_at: str = ""
    in_days: bool = False
    ahead: int = 0
    is_second: bool = False
    behind: Mapping[str, str] = field(default_factory=dict)
    owes_full: bool = False
    empty: Sequence[str] = ()
    short: Mapping[str, int] = field(default_factory=dict)
    usually_short: Mapping[str, int] = field(default_factory=dict)
    size: int | None = None
    listed: int = 0
    newest: Sequence[str] = ()
    from_checked: str = ""
    from_is_off: bool = False
    progress: ListProgress | None = None

    @property
    def is_owed_full(self) -> bool:
        """Whether it is time for the full list that is owed."""
        return self.owes_full and not self.behind

    def as_checkpoint(self) -> Checkpoint:
        """As JSON."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "asked": list(self.asked),
            "identity": dict(self.identity),
            "behind": dict(self.behind),
            "empty": list(self.empty),
            "short": dict(self.short),
            "usually_short": dict(self.usually_short),
            "newest": list(self.newest),
            "progress": asdict(self.progress) if self.progress else None,
        }


def asked_by(base_url: str, options: OaiOptions) -> tuple[object, ...]:
    """The options that make another list if they change, as JSON has them."""
    sets = [options.set_spec] if options.set_spec else []
    which = [options.origin, options.prefix, sets, options.begin, options.until]
    return (base_url, options.method.value, which)


def asks_for_others(checkpoint: Checkpoint | None, asked: tuple[object, ...]) -> bool:
    """Whether the checkpoint is of a list of other records: another format, origin, other sets or dates."""
    before = checkpoint.get("asked") if checkpoint else None
    return isinstance(before, list) and before[-1:] != list(asked[-1:])


def state_from(checkpoint: Checkpoint | None, asked: tuple[object, ...]) -> State:
    """What the checkpoint says; nothing where there is none, or it is of another list, or cannot be read."""
    if not checkpoint or checkpoint.get("asked") != list(asked):
        identity = checkpoint.get("identity") if checkpoint else None
        return State(asked, identity if isinstance(identity, Mapping) else {})
    given: dict[str, Any] = {name: value for name, value in checkpoint.items() if name in _STATE}
    progress = given.pop("progress", None)
    try:
        return State(**{**given, "asked": asked}, progress=_progress_from(progress) if progress else None)
    except (TypeError, ValueError, KeyError):
        return State(asked)


def _progress_from(given: Mapping[str, Any]) -> ListProgress:
    """Raises TypeError, ValueError or KeyError for what is none."""
    notes = (Finding(**{**each, "level": Level(each["level"])}) for each in given.get("notes", ()))
    if isinstance(given.get("broken_off"), bool):  # as it was kept before the sets were named
        if given["broken_off"]:
            raise ValueError("sets whose lists broke off are not named")
        given = {**given, "broken_off": ()}
    # Of a list from before they were counted, all are taken to be different.
    return ListProgress(**{"different": given.get("received", 0), **given, "notes": tuple(notes)})


_STATE = frozenset(each.name for each in fields(State))
