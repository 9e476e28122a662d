"""The registered sites: their rows, when they are due, which are overdue, and the ledger of what each site lists."""
