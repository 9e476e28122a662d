"""Harvesting a source repository by OAI-PMH: the sweep, the plan of a page, deletions."""
