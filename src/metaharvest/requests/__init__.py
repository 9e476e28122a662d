"""Requests of people to the harvester: rows that a run or the daemon takes.

    asking.py   a person asks, or takes the request back
    taking.py   a run takes requests, and ends them; the daemon notes that it is there

This room alone writes the tables harvest_request and daemon_state.
"""
