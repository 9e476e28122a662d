"""The story of a run: from the schedule, over each site and each of its documents, to the report."""
