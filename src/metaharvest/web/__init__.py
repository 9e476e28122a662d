"""Publishes the catalogue for people and programs outside, in a process that never harvests."""
