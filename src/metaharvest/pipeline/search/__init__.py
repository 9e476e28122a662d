"""The search index: one entry for each output, and the questions of people and programs to it.

| module | subject |
|---|---|
| terms | from a text to the terms that the index has of it |
| query_language | from the words of a person to a query |
| contract | what each index can do: its entries, searches and answers |
| entries | from an output to its entry |
| embedded_index, index_folder | the index in the folder of the pipeline, by tantivy |
| opensearch_index | the index on a server that speaks the protocol of OpenSearch |
| highlights | the places of the words in a title, an abstract or a full text |
| recommending | the words of an output that find related ones |
| stage | the stage `index` |
"""
