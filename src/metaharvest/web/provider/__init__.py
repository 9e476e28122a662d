"""The OAI-PMH 2.0 provider: answers the six verbs from the catalogue."""
