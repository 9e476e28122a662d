"""The per-site options as they are stored: a JSON object in the column `options`."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, fields
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from metaharvest.config.field_types import check_network
from metaharvest.config.paths import at_home
from metaharvest.model import Deletions, FullText, Level, ListMethod, OaiOptions, SiteOptions, ValidationLevel

_Choice = TypeVar("_Choice", bound=StrEnum)

_PREFIX = re.compile(r"[A-Za-z0-9\-_.!~*'()]+")
"""A metadataPrefix (OAI-PMH 2.0, section 3.4)."""


_DATESTAMP = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?")
_ORIGIN = re.compile(r"[A-Za-z0-9._~-]{1,200}")
_GROUP = re.compile(r"[\w.-]{1,60}")
_LONGEST = 300
_LONGEST_NAME = 100
_STORED = {"set_spec": "set"}
"""The names of stored options, if they differ."""


def options_text(options: SiteOptions) -> str | None:
    """Per-site options as they are stored: JSON, or None if there are none."""
    stored = {name: value for name, value in asdict(options).items() if value or value == 0}
    if options.oai is not None:
        stored["oai"] = {_STORED.get(name, name): value for name, value in asdict(options.oai).items() if value}
    return json.dumps(stored, default=str) if stored else None


def name_for_set(name: str, set_spec: str) -> str:
    """The name of the site of this set where several sets are registered as `name`."""
    full = f"{name}-{set_spec}"
    return (
        full if len(full) <= _LONGEST_NAME else f"{full[: _LONGEST_NAME - 9]}-{sha256(full.encode()).hexdigest()[:8]}"
    )


def options_shown(options: OaiOptions) -> dict[str, Any]:
    """The options of a repository, as JSON and files of sites have them: `sets` is a list of at most one set."""
    values = asdict(options)
    return {"sets" if name == "set_spec" else name: value for name, value in values.items()} | {
        "sets": [options.set_spec] if options.set_spec else []
    }


def read_options(text: str) -> SiteOptions:
    """The options in a JSON text. Raises ValueError, TypeError, AttributeError or RecursionError if it has none."""
    stored = json.loads(text)
    _require_known(stored, SiteOptions)
    mismatch = stored.get("package_id_mismatch")
    return SiteOptions(
        package_id_mismatch=Level(mismatch) if mismatch is not None else None,
        allow_networks=tuple(map(check_network, _list(stored, "allow_networks"))),
        ca_file=_path(stored, "ca_file"),
        validation=_choice(stored, "validation", ValidationLevel),
        filters=_path(stored, "filters"),
        normalize=_path(stored, "normalize"),
        deletions=_choice(stored, "deletions", Deletions),
        max_loss=_number(stored, "max_loss", 0, 100),
        full_text=_choice(stored, "full_text", FullText),
        groups=tuple(map(check_group, _list(stored, "groups"))),
        split_from=_site_name(stored["split_from"]) if stored.get("split_from") else None,
        oai=_oai(stored["oai"]) if stored.get("oai") is not None else None,
    )


def check_group(name: object) -> str:
    """`name`, if it can be the name of a group of sites. Raises ValueError if not."""
    if isinstance(name, str) and _GROUP.fullmatch(name):
        return name
    raise ValueError(f"{name!r:.80} is no name of a group: up to 60 letters, digits and `_ . -`, without blanks")


def _site_name(name: object) -> str:
    if isinstance(name, str) and len(name) <= _LONGEST_NAME and name.isprintable():
        return name
    raise ValueError(f"split_from is {name!r:.80}, which is no name of a site")


def check_datestamp(text: object) -> str:
    """`text`, if it is a datestamp of OAI-PMH for a day or a moment that there is. Raises ValueError if not."""
    try:
        if isinstance(text, str) and _DATESTAMP.fullmatch(text) and datetime.fromisoformat(text):
            return text
    except ValueError:
        pass
    raise ValueError(f"{text!r:.80} is no datestamp; write 2026-11-20 or 2026-11-20T03:00:00Z")


def check_window(begin: str | None, until: str | None) -> None:
    """Raises ValueError if there are no datestamps between these, or a repository would refuse them."""
    if begin and until and (len(begin) != len(until) or begin > until):
        raise ValueError("from (begin) and until must have the same form, and from must not be later")


def _oai(stored: Any) -> OaiOptions:
    _require_known(stored, OaiOptions)
    begin, until = _date(stored, "begin"), _date(stored, "until")
    check_window(begin, until)
    origin = _text(stored, "origin", _ORIGIN)
    if origin is None:
        raise ValueError("origin is missing")
    return OaiOptions(
        origin=origin,
        prefix=_text(stored, "prefix", _PREFIX) or "oai_dc",
        set_spec=_set(stored["set"]) if stored.get("set") else None,
        begin=begin,
        until=until,
        method=_choice(stored, "method", ListMethod) or ListMethod.LIST_RECORDS,
        full_every=_number(stored, "full_every", 1, 9999),
        post=_flag(stored, "post"),
    )


def _set(spec: object) -> str:
    # Repositories of version 1.x, and careless ones, have other characters: requests quote them.
    if not isinstance(spec, str) or not 0 < len(spec) <= _LONGEST or not spec.isprintable() or " " in spec:
        raise ValueError(f"{spec!r:.80} is not a setSpec")
    return spec


def _require_known(stored: Any, kind: type[SiteOptions] | type[OaiOptions]) -> None:
    if unknown := set(stored) - {_STORED.get(field.name, field.name) for field in fields(kind)}:
        raise ValueError(f"there is no option {', '.join(sorted(map(str, unknown)))}")


def _text(stored: Any, name: str, form: re.Pattern[str]) -> str | None:
    value = stored.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST or not form.fullmatch(value):
        raise ValueError(f"{name} is {value!r:.80}, which it cannot be")
    return value


def _date(stored: Any, name: str) -> str | None:
    value = stored.get(name)
    try:
        return check_datestamp(value) if value else None
    except ValueError as error:
        raise ValueError(f"{'from (begin)' if name == 'begin' else name} is wrong: {error}") from None


def _choice(stored: Any, name: str, choices: type[_Choice]) -> _Choice | None:
    value = stored.get(name)
    try:
        return None if value is None else choices(value)
    except ValueError:
        raise ValueError(f"{name} is {value!r:.80}; it must be one of {', '.join(choices)}") from None


def _list(stored: Any, name: str) -> list[Any]:
    value = stored.get(name, [])
    if not isinstance(value, list):
        raise ValueError(f"{name} is {value!r:.80}; it must be a list")
    return value


def _flag(stored: Any, name: str) -> bool:
    value = stored.get(name, False)
    if value not in (True, False, None):
        raise ValueError(f"{name} is {value!r:.80}; it must be true or false")
    return bool(value)


def _number(stored: Any, name: str, low: int, high: int) -> int | None:
    value = stored.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high):
        raise ValueError(f"{name} is {value!r:.80}; it must be a whole number from {low} to {high}")
    return value


def _path(stored: Any, name: str) -> Path | None:
    """A path; whether there is such a file is checked when it is read. Raises ValueError if it cannot be one."""
    if not stored.get(name):
        return None
    path = Path(stored[name])
    try:
        at_home(path)
        if b"\0" in os.fsencode(path):
            raise ValueError("a path has no NUL characters")
    except ValueError as error:
        raise ValueError(f"{name} is not a path: {error}") from None
    return path
