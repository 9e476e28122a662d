"""Web: what the catalogue holds, for machines and people outside, in a process that never harvests."""
