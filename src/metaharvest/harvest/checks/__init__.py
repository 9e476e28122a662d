"""Checks documents beside the event loop: which way, in which process, for how long."""
