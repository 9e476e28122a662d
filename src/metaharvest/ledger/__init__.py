"""The ledger: what is known of each document that a site lists, and how far its listing has come."""
