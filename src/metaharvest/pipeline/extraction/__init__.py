"""The stage extraction: from a file of an output to its text, its language and its references.

| step | module |
|---|---|
| text | `reading` sends the bytes to a process with limits (`reader_process`), which reads PDF, HTML and XML |
| lines | `page_lines` leaves out running heads and page numbers, and joins words at line ends |
| language | `language` |
| references | `references` finds the list and splits it; `citation` reads a reference; `grobid` where its URL is set |
| matching | `matching` verifies candidates: documents of the catalogue, then works of `crossref` where its URL is set |

How a reference got its match or its DOI (`method` of output_reference):

| method | the reference |
|---|---|
| `doi` | has the DOI of the document |
| `title` | has its title, its year within one, and a surname of its creators |
| `crossref` | agrees in the same way with a work that Crossref names; the DOI comes from Crossref |

A document may come into the catalogue later than a reference to it. The columns `doi` of both tables name it at once.
The reference gets its match when the file of the citing document is read again.
"""
