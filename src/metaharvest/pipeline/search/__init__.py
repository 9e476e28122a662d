"""The search index: one entry for each output, and the questions of people and programs to it."""
