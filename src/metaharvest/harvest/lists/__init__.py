"""The documents of a harvest list: staged, planned, brought to their outcomes, checked by samples."""
