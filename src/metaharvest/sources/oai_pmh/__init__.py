"""Source repositories with OAI-PMH: versions 2.0, 1.1 and 1.0 of the protocol, with the deviations seen in practice.

protocol.py     the protocol's values and names
old.py          versions 1.0 and 1.1: their answers as version 2.0 has them
datestamps.py   datestamps, and differences of clocks
windows.py      windows of datestamps: the unit of progress
responses.py    an answer's bytes -> its records, one after the other; or the tree of a short answer
bounds.py       how much a repository may send: lengths of values, sizes of records and answers
mapped_file.py  the file of an answer: in memory if it is short, otherwise on the disk
repair.py       damaged answers: cut at record boundaries, each record parsed, repaired or lost
response_reader.py  reads the answers of a list; long and damaged ones in a process of its own
record_names.py  the names of a record: document id, URL
oddities.py     counts what is odd about a list
records.py      the element of a record -> a listed record
repository.py   asks a repository, over fetch/
describe.py     what a repository says of itself: Identify, its formats and sets, and what has changed of that
prefetch.py     the next answer is on its way while one is read
single_records.py  records that are asked for individually
counts.py       what a list brought within one window, and what follows from each page
progress.py     how far a sweep has come, where the next one begins, what is remembered
sweep.py        the sweep: window by window, page by page
source.py       the source: where a harvest begins, and what it asks for
inspection.py   what registering a repository, and its keeper, want to know
"""
