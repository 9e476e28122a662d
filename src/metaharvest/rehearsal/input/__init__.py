"""The arguments of a check: harvest lists, single documents, folders of either, local or remote.

arguments.py      the arguments of the command line -> the lists and documents to check
listed_files.py   the files of a folder that a list names by their URLs
changed.py        the documents that changed since a list named them, and the command for that
source.py         a source for each list or document, like that of a registered site; copies of fetched content
"""
