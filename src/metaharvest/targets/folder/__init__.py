"""The folder target: one file a revision below a base folder, with an index that can be made anew from the files."""
