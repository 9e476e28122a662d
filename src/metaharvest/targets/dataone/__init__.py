"""DataONE member nodes as targets, REST API v2: Metacat 2 and 3, GMN, and any other."""
