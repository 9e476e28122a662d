"""Requests of people outside: new sites that wait for proofs and a decision, and changes that a site asks for."""
