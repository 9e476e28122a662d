"""The sample network and its nights."""
