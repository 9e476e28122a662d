"""What servers may send, mutated: the property tests of `make test`, and longer targets guided by coverage."""
