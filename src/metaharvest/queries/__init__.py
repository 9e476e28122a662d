"""Read models: what the journal says, as rows, for the command line, reports and whatever else shows it."""
