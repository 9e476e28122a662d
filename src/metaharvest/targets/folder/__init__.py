"""The folder target: a file for each revision below a base folder, with an index that is rebuilt from them."""
