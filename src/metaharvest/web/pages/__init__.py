"""Landing pages of documents for people, with what programs read: schema.org, FAIR Signposting, sitemaps, ResourceSync.

`landing` reads a document from the catalogue, `description` makes texts of it, `schema_org` and `signposting` write it
for machines, `sitemap` lists all pages, `resource_sync` all records and their changes. `file_cache` keeps texts that
take long to make, and `routes` answers.
"""
