"""The arguments of a check: harvest lists, single documents, folders of either, local or remote.

arguments.py      the arguments of the command line -> the lists and documents to check
listed_files.py   the files of a folder that a list names by their URLs
source.py         a source for each list or document, as a registered site has one; copies of fetched content;
                  warnings of documents that changed since a list named them
"""
