"""Fuzzing for as long as one likes, guided by coverage: `make fuzz ARGS="documents -max_total_time=3600"`.

The first argument is the target; the rest is libFuzzer's own. What a run found interesting is kept in `.fuzz/TARGET`,
an input that fails is written to a file beside it: `make fuzz ARGS="documents FILE"` runs it once again.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["metaharvest"]):
    from fuzz import properties, seeds

_FOLDER = Path(__file__).parents[2] / ".fuzz"


def _targets() -> dict[str, tuple[Callable[[bytes], None], list[bytes], tuple[bytes, ...], int]]:
    """By name: what is called, what it starts from, its dictionary, the longest input."""
    return {
        "lists": (properties.check_list, seeds.lists(), seeds.PIECES, 20_000),
        "documents": (properties.check_document, seeds.documents(), seeds.PIECES, 40_000),
        "robots": (properties.check_robots, seeds.robots(), seeds.PIECES, 20_000),
        "metacat": (properties.check_metacat, seeds.metacat(), seeds.PIECES, 20_000),
        "node": (properties.check_node, seeds.node(), seeds.PIECES, 20_000),
        "repositories": (properties.check_repository, seeds.repositories(), seeds.PIECES, 20_000),
        "answers": (lambda content: _answers().check(content), seeds.answers(), seeds.HTTP_PIECES, 4_000),
    }


@cache
def _answers() -> properties.Answers:
    """The server and the client, made once."""
    return properties.Answers()


def _dictionary(file: Path, pieces: tuple[bytes, ...]) -> Path:
    """The pieces as libFuzzer reads them; it takes words of 64 bytes at most."""
    words = [piece for piece in pieces if 0 < len(piece) <= 64]
    lines = ['"' + "".join(rf"\x{byte:02x}" for byte in word) + '"\n' for word in words]
    file.write_text("".join(lines), encoding="ascii")
    return file


def main() -> None:
    targets = _targets()
    if len(sys.argv) < 2 or sys.argv[1] not in targets:
        sys.exit(f"Usage: python -m fuzz {'|'.join(targets)} [libFuzzer options, corpus folders or a file]")
    name = sys.argv.pop(1)
    check, starts, pieces, longest = targets[name]
    corpus = _FOLDER / name
    corpus.mkdir(parents=True, exist_ok=True)
    for start in starts:
        (corpus / hashlib.sha256(start).hexdigest()[:16]).write_bytes(start)
    given = sys.argv[1:]
    options = [f"-dict={_dictionary(_FOLDER / f'{name}.dict', pieces)}", f"-max_len={longest}", "-timeout=20"]
    options += ["-rss_limit_mb=3000", f"-artifact_prefix={_FOLDER}{os.sep}{name}-"]
    is_replay = any(Path(argument).is_file() for argument in given)
    atheris.Setup([sys.argv[0], *options, *given, *([] if is_replay else [str(corpus)])], check)
    atheris.Fuzz()


main()
