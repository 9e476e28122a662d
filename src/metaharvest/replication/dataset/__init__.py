"""Dataset files: the documents of the catalogue, or those that changed, as files with a manifest."""
