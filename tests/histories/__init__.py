"""Random histories of a source repository and its harvester: see tests/histories/README.md."""
