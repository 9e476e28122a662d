"""The one writer: everything that happens in a run becomes rows here."""
