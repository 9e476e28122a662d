"""Filters and normalising, by a site's own files about its documents; crosswalks to Dublin Core.

Filters leave documents out, normalising adds elements.

Pure functions of a document's tree. `files` reads such a file, and reports every mistake in it with its line;
`expressions` finds nodes by XPath, and matches texts in bounded time. validation/ and harvest/ parse documents and run
all this in a worker: an XPath has no time limit of its own. `crosswalks` gives the Dublin Core of a document.
"""
