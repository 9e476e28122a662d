"""Landing pages of documents for people, with what crawlers read: schema.org, FAIR Signposting, sitemaps.

`landing` reads a document from the catalogue, `description` makes texts of it, `schema_org` and `signposting` write it
for machines, `sitemap` lists all pages, `file_cache` keeps sitemaps, and `routes`
answers.
"""
