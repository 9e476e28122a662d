"""The one client for what sites serve: the whole network policy."""
