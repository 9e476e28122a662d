"""The use cases: the actions of people and programs on an installation. They return values and never print.

Each function takes a `Harvester` and typed values, and raises the errors of errors.py. The command line and the demo
call these, and read with queries/.
"""
