"""The arguments of a check: harvest lists, single documents, folders of either, local or remote."""
