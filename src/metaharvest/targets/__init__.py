"""Where documents go: the targets that the harvest keeps up to date."""
