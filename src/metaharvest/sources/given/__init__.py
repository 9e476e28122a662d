"""What a person gives to be checked: harvest lists, single documents, folders of either, local or remote.

roots.py       what a file is, from its root element
arguments.py   what was given on the command line -> the lists and documents to be checked
source.py      each of them as a source, like that of a registered site; copies of what was fetched
"""
