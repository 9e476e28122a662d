"""What a site's own files say of its documents: which are left out (filters), and what is added to them (normalising).

Pure functions of a document's tree. `files` reads such a file, and tells every mistake in it with its line; `paths`
finds nodes by XPath; `patterns` matches texts in bounded time. How a document is parsed, and where all this runs, is up
to validation/ and harvest/: an XPath has no time limit of its own.
"""

from metaharvest.transform.filters import Decision, Filters, read_filters
from metaharvest.transform.normalize import Normalization, read_normalization
from metaharvest.transform.paths import NotEvaluated
from metaharvest.transform.patterns import TimeLeft, TransformTooCostly

__all__ = [
    "Decision",
    "Filters",
    "Normalization",
    "NotEvaluated",
    "TimeLeft",
    "TransformTooCostly",
    "read_filters",
    "read_normalization",
]
