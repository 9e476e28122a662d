"""Hands messages over into a Maildir folder: each is there exactly once, and safe on the disk before it counts as sent.

As in https://cr.yp.to/proto/maildir.html. outbox.py marks deliveries in the database.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from metaharvest.config.files import make_folder, require_folder, sync_folder
from metaharvest.config.paths import nearest_there
from metaharvest.mail.delivery import Attempt, Letter
from metaharvest.mail.message import safe_file_name
from metaharvest.text import one_line

_FOLDERS = ("tmp", "new", "cur")


class Maildir:
    """A Maildir folder. A file's name follows from Message-ID and recipients, so each message is there exactly once."""

    at_once = 20

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def parcels(self, recipients: Sequence[str]) -> list[tuple[str, ...]]:
        """One file for all recipients."""
        return [tuple(sorted(recipients))]

    def send(self, letters: Sequence[Letter]) -> list[Attempt]:
        """Write each message to tmp/, then move it to new/; a file of that name in new/ or cur/ is this very message.

        None of them counts as sent before it is safe on the disk.
        """
        stopped: list[Attempt] = []
        written = 0
        try:
            for folder in (self._folder, *(self._folder / name for name in _FOLDERS)):
                make_folder(folder, 0o700)
            names = [_name(letter) for letter in letters]
            there = self._there(names)
            try:
                for name, letter in zip(names, letters, strict=True):
                    if name not in there:
                        self._write(name, letter.content.replace(b"\r\n", b"\n"))
                    written += 1
            except OSError as error:
                stopped = [self._stopped(error)]
            sync_folder(self._folder / "new")
        except OSError as error:
            return [self._stopped(error)]
        return [Attempt("sent", there=name in there) for name in names[:written]] + stopped

    def _write(self, name: str, content: bytes) -> None:
        temporary = self._folder / "tmp" / name
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._folder / "new" / name)

    def _stopped(self, error: OSError) -> Attempt:
        reason = one_line(error.strerror or str(error))
        return Attempt("queued", f"The mail folder {self._folder} cannot be written: {reason}.", stop=True)

    def probe(self) -> str | None:
        """Check that the folder and its subfolders, or the nearest existing folder above, may be written to."""
        try:
            require_folder(self._folder.parent)
        except OSError as error:
            return f"The mail folder {self._folder} cannot be made: {error.strerror}."
        for folder in (self._folder, *(self._folder / name for name in _FOLDERS)):
            nearest = nearest_there(folder)
            if not nearest.is_dir():
                return f"The mail folder {self._folder} cannot be written: {nearest} is not a folder."
            if not os.access(nearest, os.R_OK | os.W_OK | os.X_OK):
                return f"The mail folder {self._folder} cannot be written: let this user read and write {nearest}."
        return None

    def close(self) -> None:
        """Nothing is kept open."""

    def _there(self, names: Sequence[str]) -> set[str]:
        """The names that are in new/ or cur/ already."""
        there = {name for name in names if (self._folder / "new" / name).exists()}
        # Mail programs move a seen file to cur/ and append their flags, as in `name:2,S`.
        with os.scandir(self._folder / "cur") as entries:
            return there | {entry.name.partition(":")[0] for entry in entries}.intersection(names)


def _name(letter: Letter) -> str:
    text = "\0".join((letter.message_id, *letter.recipients))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    domain = safe_file_name(letter.message_id.strip("<>").rpartition("@")[2])
    return f"{int(letter.created_at.timestamp())}.{digest}.{domain}"
