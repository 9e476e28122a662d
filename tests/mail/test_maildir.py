"""The Maildir folder itself: what is in it after a disk was full."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from metaharvest.mail.delivery import Attempt, Letter
from metaharvest.mail.maildir import Maildir
from support.journal_rows import NOW


def letter(number: int, size: int) -> Letter:
    return Letter(f"<{number}@example.org>", b"x" * size, NOW, ("a@example.org",))


@contextmanager
def full_after(size: int) -> Iterator[None]:
    """No file can get longer than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_written_before_a_file_that_cannot_be_counts_as_sent(tmp_path: Path) -> None:
    maildir = Maildir(tmp_path)
    letters = [letter(1, 10), letter(2, 10), letter(3, 5000), letter(4, 10)]

    with full_after(1000):
        first, second, third = maildir.send(letters)

    assert first == second == Attempt("sent")
    assert (third.status, third.stop) == ("queued", True)
    assert "cannot be written" in (third.error or "")
    assert len(list((tmp_path / "new").iterdir())) == 2

    assert maildir.send(letters) == [*[Attempt("sent", there=True)] * 2, *[Attempt("sent")] * 2]
    assert sorted(file.stat().st_size for file in (tmp_path / "new").iterdir()) == [10, 10, 10, 5000]
    assert list((tmp_path / "tmp").iterdir()) == []
