"""The URL of a file in a folder, and the docid in the name of a file. Pure functions of names."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from pathlib import PurePath
from urllib.parse import quote, urlsplit

from metaharvest.errors import PublishingError
from metaharvest.fetch.local_files import is_file_url
from metaharvest.fetch.url import BadUrl, UnsupportedScheme, parse_url, shown
from metaharvest.model.values import frozen
from metaharvest.sources.harvest_list.values import BadValue, check_number, check_scope, document_id_of
from metaharvest.text import one_line

_PLACEHOLDERS = {"scope": ".+", "identifier": "[0-9]+", "revision": "[0-9]+"}
_PARTS = re.compile(r"(\{[^{}]*\}|\*)")
_EXAMPLE = '--from-names "{scope}.{identifier}.{revision}.xml"'


def fits(relative: str, patterns: tuple[str, ...]) -> bool:
    """True if one of these patterns (`*.xml`, `drafts/*`) matches the file, ignoring case.

    A pattern with a slash matches the whole path below the folder, one without a slash only the name.
    """
    name = PurePath(relative).name
    return any(
        fnmatchcase((relative if "/" in pattern else name).lower(), pattern.rstrip("/").lower()) for pattern in patterns
    )


@frozen
class BaseUrl:
    """The web address of the folder: it ends with a slash, or has a query, to which paths are added."""

    text: str

    def url_of(self, relative: str) -> str:
        """The URL of a file by its path below the folder. Characters that no URL can have are encoded, byte by byte."""
        return self.text + quote(os.fsencode(relative))


def base_url(text: str, example: str = "https://www.example.org/eml/") -> BaseUrl:
    """`text` as a base URL. Raises PublishingError, whose sentence ends with the `example`."""
    stripped = text.strip()
    if is_file_url(stripped):
        return BaseUrl(stripped if stripped.endswith("/") else f"{stripped}/")
    try:
        address = parse_url(stripped)
    except UnsupportedScheme as error:
        problem = f"it begins with '{one_line(str(error), 20)}:', and only http and https URLs are harvested"
        raise _bad_base(example, stripped, problem) from None
    except BadUrl as error:
        raise _bad_base(example, stripped, str(error)) from None
    if address.username is not None:
        raise _bad_base(example, stripped, "it has a user name, and everybody can read a harvest list")
    parts = urlsplit(stripped)
    if any(character.isspace() for character in stripped):
        raise _bad_base(example, stripped, "it contains a space, which is written %20, as it is shown here")
    if parts.fragment:
        raise _bad_base(example, stripped, "it has a part after #")
    if parts.path.lower().endswith(".xml") and not parts.query:
        raise _bad_base(example, stripped, "it is the address of a file")
    return BaseUrl(stripped if parts.query or stripped.endswith(("/", "?")) else f"{stripped}/")


def _bad_base(example: str, text: str, problem: str) -> PublishingError:
    return PublishingError(
        f"The base URL '{one_line(shown(text), 200)}' cannot be used: {problem}. "
        f"Write where the folder is on the web, as in {example}."
    )


@frozen
class NamePattern:
    """The pattern of docids in file names. `scope` is the scope of all files, if the names have none."""

    text: str
    scope: str = ""

    def __post_init__(self) -> None:
        """Raises PublishingError."""
        names = [part[1:-1] for part in _PARTS.split(self.text) if part.startswith("{")]
        if strange := next((name for name in names if name not in _PLACEHOLDERS), None):
            raise self._wrong(f"{{{one_line(strange, 40)}}} is none of {{scope}}, {{identifier}} and {{revision}}")
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise self._wrong(f"{{{twice}}} is there twice")
        if "identifier" not in names:
            raise self._wrong("it has no {identifier}")
        if "scope" in names and self.scope:
            raise self._wrong("it has {scope}, and --scope names one too")
        if "scope" not in names and not self.scope:
            raise self._wrong("it has no {scope}; name the scope of all documents with --scope")
        if self.scope:
            try:
                check_scope(self.scope)
            except BadValue as bad:
                raise self._wrong(bad.mistake.message.rstrip(".")) from None

    def docid_of(self, relative: str) -> tuple[str, int | None] | None:
        """The document id in a file name, and the revision, None if it has none; None if the name does not fit.

        Raises BadValue if the name has no valid docid.
        """
        found = self._regex.fullmatch(relative if "/" in self.text else PurePath(relative).name)
        if found is None:
            return None
        parts = found.groupdict()
        document_id = document_id_of(parts.get("scope", self.scope), parts["identifier"])
        return document_id, check_number("revision", parts["revision"]) if "revision" in parts else None

    @property
    def _regex(self) -> re.Pattern[str]:
        return re.compile("".join(map(_as_regex, _PARTS.split(self.text))), re.IGNORECASE | re.DOTALL)

    def _wrong(self, problem: str) -> PublishingError:
        return PublishingError(
            f"--from-names '{one_line(self.text, 100)}' cannot be used: {problem}. Write it as in {_EXAMPLE}."
        )


def _as_regex(part: str) -> str:
    if part == "*":
        return ".*"
    return f"(?P<{part[1:-1]}>{_PLACEHOLDERS[part[1:-1]]})" if part.startswith("{") else re.escape(part)
