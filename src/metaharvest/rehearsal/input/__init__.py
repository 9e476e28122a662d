"""What a person gives to be checked: harvest lists, single documents, folders of either, local or remote.

arguments.py      what was given on the command line -> the lists and documents to be checked
listed_files.py   which files of a folder a list names by their URLs
changed.py         which documents were changed since a list named them, and the command for that
source.py         each of them as a source, like that of a registered site; copies of what was fetched
"""
