"""The API for programs, at /api/v1: the read models and actions of the console as JSON.

To add an operation:

1. Write a function `def show(call: Call) -> Answer` in `reading.py` or `acting.py`: plain code in a thread, which calls
   queries/ and services/ with `call.harvester`. The data are read models: their JSON is the same as on the command
   line. What may not be there is read in `with known("Sentence."): ...`, which answers 404.
2. Write models of its arguments and its body in `models.py`. Unknown arguments are refused.
3. Add it to OPERATIONS in `operations.py`, with the least role and the schema of its data in docs/schemas.
4. `make docs` writes docs/openapi.json.
"""
