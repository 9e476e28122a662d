"""Metacat 1 and 2 by their old interface, a servlet; Metacat 3 is reached by its DataONE interface."""
