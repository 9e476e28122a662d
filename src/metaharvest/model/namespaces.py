"""Namespaces of XML that several rooms read or write."""

OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
"""Dublin Core as OAI-PMH has it."""

XSI = "http://www.w3.org/2001/XMLSchema-instance"
