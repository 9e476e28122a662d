"""An output: what one document describes, a paper, a dataset, a thesis. One shape over all formats.

Each value has `source`: where in the document it was found, such as `dc:creator[2]` or `dataset/creator[1]`. A value
that the rules do not recognise stays as it was given, with None for what is not known of it.
"""

from __future__ import annotations

from enum import StrEnum

from metaharvest.model.values import frozen


class AgentKind(StrEnum):
    """What an agent is."""

    PERSON = "person"
    ORGANISATION = "organisation"
    UNKNOWN = "unknown"


class Access(StrEnum):
    """The access rights of COAR: https://vocabularies.coar-repositories.org/access_rights/."""

    OPEN = "open access"
    EMBARGOED = "embargoed access"
    RESTRICTED = "restricted access"
    METADATA_ONLY = "metadata only access"

    def as_of(self, today: str, embargo_until: str | None) -> Access:
        """The access on this ISO date: open if the embargo has ended."""
        has_ended = self is Access.EMBARGOED and embargo_until is not None and embargo_until <= today
        return Access.OPEN if has_ended else self


class FileRole(StrEnum):
    """What a link in a record leads to, as far as the record says."""

    FULL_TEXT = "full text"
    DATA = "data"
    LANDING_PAGE = "landing page"
    UNKNOWN = "unknown"


@frozen
class Text:
    """A title, an abstract or a subject, on one line. `language` is an ISO 639 code, if the document names one."""

    text: str
    source: str
    language: str | None = None


@frozen
class Agent:
    """A creator or contributor. `name` is as given, on one line; `family` and `given` are parts of a person's name.

    `orcid` and `ror` are the bare identifiers, with right check digits. `role` is as given.
    """

    name: str
    source: str
    kind: AgentKind = AgentKind.UNKNOWN
    family: str | None = None
    given: str | None = None
    orcid: str | None = None
    ror: str | None = None
    role: str | None = None


@frozen
class Identifier:
    """An identifier of the output. `scheme` is doi, handle, arxiv, pmid, pmcid, isbn, issn, urn, url, oai or other.

    A DOI is bare and in lower case: `10.5063/f1`.
    """

    scheme: str
    value: str
    source: str


@frozen
class Relation:
    """A relation to another output. `kind` is a relation type of DataCite, such as `References`, or `relation`."""

    kind: str
    scheme: str
    value: str
    source: str


@frozen
class DateValue:
    """A date. `edtf` is EDTF level 0 or 1, such as `2024`, `2024-05-01`, `2021/2024`, `2024~`; `kind` as in DataCite.

    Kinds are Issued, Created, Updated, Available, Submitted, Accepted, Collected, Copyrighted, Other.
    """

    edtf: str
    kind: str
    source: str


@frozen
class ResourceType:
    """A type. `coar` is the last part of its URI in COAR's vocabulary, such as `c_6501`, `label` its English label."""

    text: str
    source: str
    coar: str | None = None
    label: str | None = None


@frozen
class Licence:
    """A licence or statement of rights. `spdx` is the identifier of SPDX, such as `CC-BY-4.0`."""

    text: str
    source: str
    spdx: str | None = None
    url: str | None = None


@frozen
class FileLink:
    """A link to a file of the output that the document names as such."""

    url: str
    source: str
    role: FileRole = FileRole.UNKNOWN
    media_type: str | None = None
    licence: str | None = None


@frozen
class Output:
    """What one document describes. The first title, date and type are the main ones.

    `format` is the format of the document, `language` the ISO 639-1 code (639-3 without one) that it declares, `year`
    the year of its publication, `embargo_until` the ISO date on which an embargo ends. `likely_language` is `language`,
    unless the abstract is clearly in another one; without `language`, the one of title and abstract, `und` if it is not
    known. None: the language was not determined.
    """

    format: str
    titles: tuple[Text, ...] = ()
    creators: tuple[Agent, ...] = ()
    contributors: tuple[Agent, ...] = ()
    publishers: tuple[Text, ...] = ()
    abstracts: tuple[Text, ...] = ()
    subjects: tuple[Text, ...] = ()
    types: tuple[ResourceType, ...] = ()
    dates: tuple[DateValue, ...] = ()
    year: int | None = None
    languages: tuple[Text, ...] = ()
    language: str | None = None
    likely_language: str | None = None
    identifiers: tuple[Identifier, ...] = ()
    relations: tuple[Relation, ...] = ()
    licences: tuple[Licence, ...] = ()
    access: Access | None = None
    embargo_until: str | None = None
    files: tuple[FileLink, ...] = ()

    @property
    def title(self) -> str:
        """The main title; "" without one."""
        return self.titles[0].text if self.titles else ""

    @property
    def doi(self) -> str | None:
        """The first DOI of the output."""
        return next((each.value for each in self.identifiers if each.scheme == "doi"), None)
