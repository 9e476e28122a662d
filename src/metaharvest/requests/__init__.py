"""Requests of people to the harvester: rows that a run or the daemon takes.

    asking.py   a person asks, or takes the request back
    taking.py   a run takes requests, and ends them; the requests of a dead run wait again
    daemon.py   the daemon notes that it is there, and when it runs next

This room alone writes the tables harvest_request and daemon_state.
"""
