"""Health checks of the installation, and the ping that reports the end of a run to a monitor."""
