"""The import of sites and logs from a Metacat Harvester."""
