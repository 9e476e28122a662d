"""Secrets: read from their secret references when they are used, and masked in everything shown.

A secret reference is `env:NAME` (an environment variable), `file:PATH` (a file that only the harvester's user may read)
or `keyring:SERVICE/USERNAME` (the operating system's keyring, read with the library `keyring`, which is an extra).
"""

from __future__ import annotations

import base64
import logging
import os
import stat
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from metaharvest.config.files import read_file
from metaharvest.config.paths import at_home
from metaharvest.errors import SettingsError
from metaharvest.text import clean, one_line, without_credentials

log = logging.getLogger(__name__)

NOT_SHOWN = "(not shown)"
HOW_TO_REFER = "name where it is, as env:NAME, file:PATH or keyring:SERVICE/USERNAME"

_MOST_BYTES = 65_536
"""The largest size of a file with a secret, in bytes."""

_SHORTEST_MASKED = 4
"""Characters. Shorter secrets are not masked: they occur in many ordinary words."""

_to_mask: set[str] = set()
"""Every secret that this process has read, in each form in which it may occur in a text."""

_warned: set[Path] = set()
"""The files about which a warning has been logged."""


def check_reference(value: str) -> str:
    """`value` if it is a secret reference or empty; ValueError, which does not show it, if it is something else."""
    kind, _, where = value.partition(":")
    if value and (kind not in ("env", "file", "keyring") or not where):
        raise ValueError(f"a secret is never written here: {HOW_TO_REFER}")
    if kind == "keyring" and not all(where.rpartition("/")[::2]):
        raise ValueError("a secret in the keyring is named keyring:SERVICE/USERNAME")
    if kind == "file":
        at_home(Path(where))
    return value


def is_reference(value: object) -> bool:
    """True if `value` is a secret reference or empty, so that it may be stored and shown."""
    with suppress(ValueError):
        check_reference(str(value or "").strip())
        return True
    return False


def resolve_secret(reference: str, folder: Path) -> str:
    """The secret behind a reference; empty if the reference is. Relative paths start at `folder`.

    Logs a warning, once for each file, if others may read it. Raises SettingsError if the secret cannot be read.
    """
    secret = read_secret(reference, folder)
    if (exposed := exposed_file(reference, folder)) and exposed not in _warned:
        _warned.add(exposed)
        log.warning("Everybody on this machine may read the secret in %s: chmod 600 %s", exposed, exposed)
    return secret


def read_secret(reference: str, folder: Path) -> str:
    """As `resolve_secret`, without the warning. The secret is masked from then on."""
    kind, _, where = reference.partition(":")
    if not reference:
        return ""
    if kind == "env":
        if where not in os.environ:
            raise SettingsError(f"The secret {reference} is not there: set the environment variable {where}.")
        secret = os.environ[where]
    elif kind == "file":
        secret = _in_file(reference, folder / at_home(Path(where)))
    else:
        secret = _in_keyring(reference, where)
    if len(secret) >= _SHORTEST_MASKED:
        encoded = base64.b64encode(secret.encode("utf-8", "surrogateescape")).decode()
        _to_mask.update((secret, quote(secret, safe="", errors="surrogateescape"), encoded))
    return secret


def url_with_password(url: str, reference: str, folder: Path, which: str) -> str:
    """A URL, which has a user name, with the password behind a reference, if there is one. Raises SettingsError.

    `which` is the beginning of the sentence about a URL without a user name.
    """
    if not reference:
        return url
    user, at, host = url.rpartition("@")
    if not at:
        remedy = "write the user name and an @ between http:// and the host."
        raise SettingsError(f"{which} names no user: {remedy}")
    return f"{user}:{quote(resolve_secret(reference, folder), safe='')}@{host}"


def exposed_file(reference: str, folder: Path) -> Path | None:
    """The file behind a reference if everybody on this machine may read it, otherwise None."""
    kind, _, where = reference.partition(":")
    if kind != "file":
        return None
    path = folder / at_home(Path(where))
    with suppress(OSError):
        return path if path.stat().st_mode & stat.S_IROTH else None
    return None


def masked(text: str) -> str:
    """`text` without any secret that this process has read, and without credentials in URLs."""
    text = without_credentials(text)
    for secret in sorted(_to_mask, key=len, reverse=True):
        text = text.replace(secret, NOT_SHOWN)
    return text


class MaskingFormatter(logging.Formatter):
    """Formats log records, tracebacks included, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        return clean(masked(super().format(record)))


def _in_file(reference: str, path: Path) -> str:
    try:
        return read_file(path, _MOST_BYTES).decode("utf-8-sig").strip()
    except (UnicodeDecodeError, OSError) as error:
        problem = (error.strerror or error) if isinstance(error, OSError) else "the file is not UTF-8 text"
        where = one_line(str(path), 1000)
        raise SettingsError(f"The secret {reference} cannot be read from {where}: {problem}.") from error


def _in_keyring(reference: str, where: str) -> str:
    service, _, username = where.rpartition("/")
    try:
        import keyring
        from keyring.errors import NoKeyringError
    except ImportError as error:
        problem = "the keyring library is not installed. Install it with `pip install 'metaharvest[keyring]'`."
        raise SettingsError(f"The secret {reference} cannot be read: {problem}") from error
    try:
        secret = keyring.get_password(service, username)
    except NoKeyringError as error:
        raise SettingsError(
            f"The secret {reference} cannot be read: this machine has no keyring that a program can use. "
            "Set one up for the harvester's user (`keyring diagnose` tells more), or use env:NAME or file:PATH."
        ) from error
    except Exception as error:  # a keyring backend is other people's code and may raise anything
        raise SettingsError(
            f"The secret {reference} cannot be read from the keyring ({type(error).__name__}): "
            "check whether it is unlocked for the harvester's user."
        ) from error
    if secret is None:
        how = f"`keyring set '{service}' '{username}'` puts it there"
        raise SettingsError(f"The secret {reference} is not in the keyring: {how}.")
    return secret
