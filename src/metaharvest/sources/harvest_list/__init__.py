"""Harvest lists: sites that publish an XML file which names each document, its revision and its URL."""
