"""The schedule: the registered sites, when they are due, and the ledger of what each of them lists."""
