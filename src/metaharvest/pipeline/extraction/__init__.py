"""The stage extraction: from a file of an output to its text, its language and its references.

How a reference got its match or its DOI (`method` of output_reference):

| method | the reference |
|---|---|
| `doi` | has the DOI of the document |
| `title` | has its title, its year within one, and a surname of its creators |
| `crossref` | agrees in the same way with a work that Crossref names; the DOI comes from Crossref |

A document may come into the catalogue later than a reference to it. The columns `doi` of both tables name it at once.
The reference gets its match when the file of the citing document is read again.
"""
