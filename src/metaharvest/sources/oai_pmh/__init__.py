"""Source repositories with OAI-PMH: versions 2.0, 1.1 and 1.0 of the protocol, with the deviations seen in practice.

protocol.py         names the values of the protocol; reads answers of versions 1.0 and 1.1 as version 2.0 has them
datestamps.py       reads and writes datestamps, and compares clocks
windows.py          divides windows of datestamps, and decides the next step after a failure
responses.py        reads an answer's bytes: its records one after the other, or the tree of a short answer
bounds.py           limits lengths of values, and sizes of records and answers
mapped_file.py      keeps the file of an answer: in memory if it is short, otherwise on the disk
repair.py           cuts damaged answers at record boundaries; each record is parsed, repaired or lost
response_reader.py  reads the answers of a list; long and damaged ones in a process of its own
versions.py         keeps the records of a long list in little memory
same_item.py        decides whether two records are of the same item
oddities.py         counts what is odd about a list
records.py          makes a listed record from its element, with its document id and URL
repository.py       sends requests to a source repository, over fetch/
describe.py         describes a source repository: Identify, its formats and sets, and what has changed of these
friends.py          reads lists of base URLs
prefetch.py         requests the next answer while one is read
single_records.py   fetches records individually
counts.py           counts the records of a window, and compares them with the announced number
progress.py         keeps the progress of a sweep, and decides where the next one begins
probes.py           sends short requests after a list: is `from` respected, how many records are there
sweep.py            lists window by window, answer by answer
source.py           begins a harvest: what is requested, and from where
inspection.py       inspects a source repository for its registration, and for its keeper
"""
