"""Health checks of the installation, and the ping that tells a monitor how a run ended."""
