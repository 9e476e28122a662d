"""Every exception of the package.

    MetaharvestError
    ├── SettingsError          the settings file, an environment variable or an option is wrong
    ├── ScheduleError          a site cannot be registered or changed as asked
    ├── RequestError           a person's request lacks something, or does not fit together
    ├── CannotBeChecked        the argument of a check is missing, or is no list and no document
    ├── UnknownDocument        no document has this name
    ├── QueryError             the query of a search cannot be read
    ├── NoIndex                there is no search index yet
    ├── IndexUnavailable       the search index cannot be read or written
    ├── StoreUnavailable       the folder, the disk or the store of the pipeline's files cannot be used
    ├── PublishingError        a harvest list cannot be made or changed as asked
    ├── DatabaseError          the database cannot be used
    │   ├── DatabaseUnavailable    it cannot be opened, read or written
    │   └── SchemaMismatch         its tables are older or newer than this program
    ├── NotWritten             the database refused one statement
    ├── NotTaken               the receiver of changes did not take them
    ├── LockHeld               another run is under way
    ├── RunLost                this run is no longer the one that may write
    └── HarvestError           an expected failure on the way of a document; carries findings
        ├── FetchError             a URL could not be fetched whole
        │   ├── NotAsked               its URL was not requested
        │   └── NotUsable              a record was received, and nothing in it can be harvested
        ├── ListError              a harvest list is not valid
        ├── ListIncomplete         the list of a source repository broke off, or has ended with holes
        ├── TransformError         a file of filters, or of normalising, cannot be used
        └── TargetError            the target refused, or did not answer

Expected failures become values (outcomes with findings) in harvest/; unexpected errors propagate. Each message is a
sentence, or a few, for the person who can do something about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from metaharvest.model import Finding


class MetaharvestError(Exception):
    """The base of every exception raised on purpose.

    `fields` has a sentence about each wrong value, by the name of its field in a form. `in_form` is the text for people
    at a form, if the other text names options of a command.
    """

    fields: Mapping[str, str] = MappingProxyType({})
    in_form = ""

    @property
    def sentences(self) -> list[str]:
        """The problems, each with its remedy."""
        return str(self).splitlines()


class SettingsError(MetaharvestError):
    """The settings file, an environment variable or an option is wrong; each problem is one sentence."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _ErrorOfForm(MetaharvestError):
    """An error that names the wrong fields. `fields` is empty if no single value is wrong."""

    def __init__(self, text: str, fields: Mapping[str, str] | None = None, in_form: str = "") -> None:
        super().__init__(text)
        self.fields = fields or {}
        self.in_form = in_form

    @classmethod
    def about(cls, field: str, text: str, in_form: str = "") -> Self:
        """The error about the value of one field."""
        return cls(text, {field: in_form or text}, in_form)


class ScheduleError(_ErrorOfForm):
    """A site cannot be registered or changed as asked."""


class SameSource(ScheduleError):
    """Another site has the source already."""


class RequestError(_ErrorOfForm):
    """A person's request lacks something, or does not fit together; nothing was done."""


class CannotBeChecked(MetaharvestError):
    """The argument of a check is no web address, and no existing file or folder; nothing was requested."""


class UnknownDocument(MetaharvestError):
    """No document has this name."""


class QueryError(MetaharvestError):
    """The query of a search cannot be read; the text is a sentence for the person who wrote it."""


class NoIndex(MetaharvestError):
    """There is no search index yet."""


class IndexUnavailable(MetaharvestError):
    """The search index cannot be read or written."""


class StoreUnavailable(MetaharvestError):
    """The folder, the disk or the store of the pipeline's files cannot be used; no document is the reason."""


class PublishingError(MetaharvestError):
    """A harvest list cannot be made or changed as asked; nothing was written."""


class DatabaseError(MetaharvestError):
    """The database cannot be used."""


class DatabaseUnavailable(DatabaseError):
    """The database cannot be opened, read or written."""


class SchemaMismatch(DatabaseError):
    """The tables are missing, older or newer than this program."""


class NotWritten(MetaharvestError):
    """The database refused one statement, for its values; other statements are written. The text is its reason."""


class NotTaken(MetaharvestError):
    """The command or the web address that gets changes did not take them."""


class LockHeld(MetaharvestError):
    """Another run is under way on the same database."""


class RunLost(MetaharvestError):
    """Another run writes now; this one may no longer write."""


class HarvestError(MetaharvestError):
    """An expected failure. `transient`: it may be gone the next time, so it is worth another try.

    `of_list`: a source repository answered Identify, and did not begin its list.
    """

    of_list = False

    def __init__(self, *findings: Finding, transient: bool = False) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings
        self.transient = transient

    @property
    def sentences(self) -> list[str]:
        """The findings, each with its remedy."""
        return [finding.with_remedy for finding in self.findings]


class FetchError(HarvestError):
    """A URL could not be fetched whole. `seconds` is the time until the failure.

    `retry_after`: the pause in seconds that the server wants. `counted`: the server was not reached at all, which is
    already counted over all sites. `status` is the status of the answer, 0 if there was none; `page` is the beginning
    of the body with an error status.
    """

    def __init__(
        self,
        *findings: Finding,
        transient: bool = False,
        seconds: float | None = None,
        retry_after: float | None = None,
        counted: bool = False,
        status: int = 0,
        page: bytes = b"",
    ) -> None:
        super().__init__(*findings, transient=transient)
        self.seconds = seconds
        self.retry_after = retry_after
        self.counted = counted
        self.status = status
        self.page = page


class NotAsked(FetchError):
    """A URL was not requested: its server, named by `host`, wants a pause, cannot be reached or is busy.

    `host` is empty if the reason is on this side. `retry_after` is None if it is not requested again in this run.
    """

    def __init__(self, finding: Finding, host: str, *, seconds: float, retry_after: float | None = None) -> None:
        super().__init__(finding, transient=True, seconds=seconds, retry_after=retry_after)
        self.host = host


class RequestEnded(NotAsked):
    """A request ended before its answer, because the run or its site was stopped."""


class NotUsable(FetchError):
    """A record was received, and nothing in it can be harvested."""


class ListError(HarvestError):
    """A harvest list is not valid; nothing of it may be harvested."""


class ListIncomplete(HarvestError):
    """The list of a source repository is incomplete; the records that came are harvested, and stay.

    `has_ended`: all other windows of datestamps were listed, and the holes cannot be. False: the list broke off.
    """

    def __init__(self, *findings: Finding, has_ended: bool = False) -> None:
        super().__init__(*findings)
        self.has_ended = has_ended


class TransformError(HarvestError):
    """A site's file of filters, or of normalising, cannot be used; each finding is one mistake in it."""


class TargetError(HarvestError):
    """The target refused a document, or did not answer."""


_LIBRARIES = {"opensearchpy": "opensearch-py"}
"""The names of libraries whose modules have other names."""


@contextmanager
def value_errors(field: str = "") -> Iterator[None]:
    """Raises RequestError, about this field of a form, if a check of a value raises ValueError."""
    try:
        yield
    except ValueError as error:
        raise RequestError.about(field, f"{error}.") if field else RequestError(f"{error}.") from error


@contextmanager
def library_errors(extra: str, use: str, *modules: str) -> Iterator[None]:
    """Imports libraries of an extra. Raises MetaharvestError if one of the modules is not installed.

    `use` ends the sentence, such as `serve needs`. Without `modules`, any missing module counts.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if modules and (error.name or "").partition(".")[0] not in modules:
            raise
        raise MetaharvestError(
            f"The library {_LIBRARIES.get(error.name or '', error.name)} is not installed, which {use}. "
            f"Install it with `pip install 'metaharvest[{extra}]'`."
        ) from error
