"""The stage `full-text`: from an output to its file.

`links` has the addresses of the record in their order, `patterns` the repository software, `landing` the links of a
page, `kinds` what a body is, `walk` the decisions from one to the next, `outcome` the reason without a file, `crawling`
the requests, `store` the files, and `stage` all of it together.
"""
