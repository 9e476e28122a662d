"""Filters and normalising, by a site's own files about its documents; crosswalks to Dublin Core.

Filters leave documents out, normalising adds elements.

Pure functions of a document's tree. `files` reads such a file, and reports every mistake in it with its line;
`expressions` finds nodes by XPath, and matches texts in bounded time. validation/ and harvest/ parse documents and run
all this in a worker: an XPath has no time limit of its own. `crosswalks` gives the Dublin Core of a document.
"""

from metaharvest.transform.expressions import NotEvaluated, TimeLeft, TransformTooCostly
from metaharvest.transform.filters import Decision, Filters, read_filters
from metaharvest.transform.normalize import Normalization, read_normalization

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
