"""The stage `full-text`: from an output to its file. `walk` has the decisions from one address to the next."""
