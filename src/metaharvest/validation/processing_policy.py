"""How the documents of a site are processed after the fetch: filtered, normalised, checked at one of three levels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from hashlib import sha256

from lxml import etree

from metaharvest.model import Finding, Level, ValidationLevel, Verdict
from metaharvest.model.actions import Remedy, todo
from metaharvest.model.values import frozen
from metaharvest.transform.expressions import NotEvaluated, TimeLeft, TransformTooCostly
from metaharvest.transform.filters import Filters, left_out
from metaharvest.transform.normalize import Normalization
from metaharvest.validation import parse_lock, wellformed
from metaharvest.validation.titles import title_of

TransformLimit = Callable[[], AbstractContextManager[None]]
"""A context around the work of a site's own files, to end it if it takes too long."""


@frozen
class ProcessingPolicy:
    """The steps for a document, in this order: parse, filter, normalise, check.

    `package_id_mismatch`: the level of the finding if an EML document's packageId is not its docid in the list.
    `level`: None for EML's own rules alone, which refuse other documents. `max_bytes`: the limit after normalising; 0:
    none.
    """

    package_id_mismatch: Level = Level.WARNING
    level: ValidationLevel | None = None
    filters: Filters | None = None
    normalization: Normalization | None = None
    max_bytes: int = 0

    @property
    def transforms(self) -> bool:
        """True if files of the site take part: an XPath of theirs has no time limit of its own."""
        return self.filters is not None or self.normalization is not None

    @property
    def digest(self) -> str:
        """A digest of the rules in the site's files, which ignores names and layout; empty without files."""
        if not self.transforms:
            return ""
        filters, normalization = self.filters, self.normalization and replace(self.normalization, file="")
        if filters is not None:
            filters = replace(filters, file="", filters=tuple(replace(each, line=None) for each in filters.filters))
        return sha256(repr((filters, normalization)).encode()).hexdigest()


BY_EML = ProcessingPolicy()
"""Neither filtered nor normalised, and checked as EML."""


def transformed(
    content: bytes, how: ProcessingPolicy, parser: etree.XMLParser, limit: TransformLimit, *, is_record: bool = False
) -> Verdict | bytes:
    """The document as normalised, the same bytes if nothing was added; or the verdict: left out, or an error.

    `parser` keeps comments and processing instructions.
    """
    try:
        with parse_lock.parsing():
            if is_record:
                root = wellformed.parse_record(content, parser, keeps_all=True)
            else:
                root = wellformed.parse(content, parser)
    except wellformed.NotReadable as error:
        return Verdict(error.findings)
    time_left = TimeLeft()
    try:
        with limit():
            if how.filters is not None:
                decision = how.filters.decision(root, time_left)
                if not decision.is_taken:
                    return Verdict(filtered=left_out(how.filters, decision), title=title_of(root))
            if how.normalization is not None and how.normalization.add_to(root, time_left):
                made = etree.tostring(root.getroottree(), encoding="UTF-8", xml_declaration=True)
                if not 0 < how.max_bytes < len(made):
                    return made
                more = f"the document has more than {how.max_bytes:,} bytes"
                message = f"With what the site's normalising adds, {more}."
                return Verdict((Finding("filter.too-expensive", message, _REMEDY),))
    except TransformTooCostly:
        return Verdict((too_costly(),))
    except NotEvaluated as why:
        message = f"An XPath of the site's filters, or of its normalising, cannot be applied to this document: {why}."
        return Verdict((Finding("filter.failed", message, _REMEDY),))
    return content


_REMEDY = Remedy(
    "The harvester's administrator should simplify the XPath or the regular expression in the files of this site; {} "
    "and {} try them on a document.",
    todo("filters.try"),
    todo("normalizing.try"),
)


def by_normalizing() -> Finding:
    """The finding about a document that is acceptable as it was received."""
    message = "As it was received the document is in order: what is wrong with it was added by the site's normalising."
    remedy = Remedy(
        "The harvester's administrator should correct the file of the site's normalising; {} shows what it makes of a "
        "document.",
        todo("normalizing.try"),
    )
    return Finding("filter.normalized", message, remedy)


def too_costly() -> Finding:
    """The finding about a document for which the site's own files took too long."""
    message = "The filters of this site, or its normalising, take too long on this document, and were ended."
    return Finding("filter.too-expensive", message, _REMEDY)
