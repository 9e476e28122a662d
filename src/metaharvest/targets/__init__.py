"""Where documents go: the repository that the harvest keeps up to date."""
