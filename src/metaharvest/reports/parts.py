"""The parts of reports that several of their modules share."""

from __future__ import annotations

from metaharvest.model.values import frozen


@frozen
class TableNote:
    """The note about the table of all documents: a sentence, and a few words for use after `and 9 more`."""

    sentence: str = ""
    where: str = ""


NO_TABLE = TableNote()


@frozen
class Total:
    """One number among the totals; `tone` is good, doubtful, bad or plain. `change`: to the last harvest, if known."""

    label: str
    number: int
    tone: str
    change: int = 0

    @property
    def changed(self) -> str:
        """The change as people write it: `+3`, `-2`; empty if there is none."""
        return f"{self.change:+,}" if self.change else ""


@frozen(kw_only=True)
class View:
    """The values that every report has. `story` is its subject in a few words, `tone` is good, doubtful or bad."""

    network: str
    date: str
    story: str
    tone: str
    sentence: str
    totals: tuple[Total, ...]
    recipients: tuple[str, ...]
    table: TableNote = NO_TABLE
