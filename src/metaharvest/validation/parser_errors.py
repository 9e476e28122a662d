"""Turns the messages of libxml2's parser into plain words: a pattern for each kind, with rule, sentence and remedy."""

from __future__ import annotations

import re

from metaharvest.text import one_line

_PARSER_ERRORS = (
    (r"^Excessive depth", "xml.too-deep",
     "Elements are nested more than 256 levels deep.",
     "No EML needs that: look for an element that is never closed."),
    (r"^Maximum entity amplification", "xml.dtd",
     "The document defines entities that grow without end; for safety they are not read.",
     "Remove the DOCTYPE, and write the characters themselves."),
    (r"^Resource limit exceeded|too long", "xml.too-large-text",
     "One piece of text, or one name, is longer than can be read (10 MB for a text).",
     "Put data into a file of its own and name its URL in the document."),
    (r"^xmlParseEntityRef: no name|^EntityRef: expecting ';'", "xml.ampersand",
     "An & stands by itself; in XML it begins a code such as &lt; and may not stand alone.",
     "Write &amp; in place of &, in URLs too."),
    (r"^Opening and ending tag mismatch: (\S+) line (\d+) and (\S+)", "xml.mismatched-tag",
     "<{0}>, opened in line {1}, is never closed: </{2}> comes first.",
     "Write </{0}> where this element ends, or correct the name."),
    (r"^Premature end of data in tag (\S+) line (\d+)", "xml.unclosed",
     "The document ends too early: <{0}>, opened in line {1}, is never closed.",
     "If the file was cut short, upload it again; otherwise add </{0}> where it belongs."),
    (r"^(?:CData section not finished|Comment not terminated|PI \S+ never end|xmlParsePI)", "xml.unclosed",
     "A comment, a CDATA section or a processing instruction is never closed.",
     "Close it with -->, ]]> or ?>; if the file was cut short, upload it again."),
    (r"^Entity '([^']+)' not defined", "xml.undefined-entity",
     "&{0}; is not known in XML, which has only &amp; &lt; &gt; &quot; and &apos;.",
     "Write the character itself, or its number, such as &#160; for &nbsp; and &#176; for &deg;."),
    (r"(?:invalid Char value|Invalid character: Char|invalid xmlChar value) (0x[0-9A-Fa-f]+|\d+)", "xml.bad-character",
     "The character number {0} is not allowed in XML.",
     "Delete it; text copied from a word processor or an old database often brings such characters along."),
    (r"CharRef: invalid", "xml.ampersand",
     "A code that begins with &# is not the number of a character.",
     "Write the character's number and a semicolon, as in &#176;, or the character itself."),
    (r"^Namespace prefix (\S+)", "xml.undeclared-prefix",
     "The prefix '{0}:' is used and never declared.",
     'Declare it in the root element, as xmlns:{0}="…", or remove the prefix.'),
    (r"^(?:Namespaced )?Attribute (\S+)(?: in '[^']*')? redefined", "xml.duplicate-attribute",
     "The attribute {0} is given twice in one tag.",
     "Keep one of the two."),
    (r"^Extra content at the end", "xml.content-after-root",
     "Something follows after the end of the root element.",
     "Delete what comes after it; a document has one root element."),
    (r"^XML declaration allowed only at the start", "xml.declaration-not-first",
     "The line <?xml …?> is not the very first thing in the document.",
     "Delete everything before it, empty lines and spaces too."),
    (r"^String not started", "xml.bad-declaration",
     'In the first line, <?xml …?>, a value does not stand in straight quotation marks (").',
     'Write <?xml version="1.0" encoding="UTF-8"?>; word processors put curly marks (“ ”) there instead.'),
    (r"^Blank needed here|^Malformed declaration|^parsing XML declaration|^Unsupported version", "xml.bad-declaration",
     "The first line, <?xml …?>, is not written as XML wants it, or names an encoding that the document is not in.",
     'Write <?xml version="1.0" encoding="UTF-8"?>, and save the document as UTF-8.'),
    (r"^Start tag expected, '<' not found|^Document is empty", "xml.not-xml",
     "The document does not begin with an XML element.",
     "Put the XML document itself there, and delete what comes before its first tag."),
    (r"^Unescaped '<' not allowed|^StartTag: invalid element name", "xml.less-than",
     "A < stands where no tag begins.",
     "Write &lt; in place of < where it means 'less than'; otherwise correct the tag."),
    (r"^AttValue: \" or ' expected", "xml.bad-tag",
     'The value of an attribute does not stand in straight quotation marks (").',
     'Write attributes as name="value"; word processors put curly marks (“ ”) there instead.'),
    (r"^expected '>'|^EndTag|^AttValue:|^Specification mandates|^attributes construct|^Couldn't find end of Start",
     "xml.bad-tag", "A tag is not written as XML wants it.",
     'Write attributes as name="value", and close the tag with >.'),
    (r"^Double hyphen within comment|^Comment must not contain '--'", "xml.comment",
     "A comment contains two hyphens in a row.",
     "Write a single hyphen there, or delete the comment."),
)  # fmt: skip
"""Pattern, rule, sentence, remedy. {0}, {1} ... are the groups of the pattern."""


def parser_error_in_words(message: str) -> tuple[str, str, str] | None:
    """Rule, sentence and remedy for one message of libxml2's parser; None for an unknown message."""
    for pattern, rule, sentence, remedy in _PARSER_ERRORS:
        match = re.search(pattern, message)
        if match:
            groups = [one_line(group, 200) for group in match.groups("")]
            return rule, sentence.format(*groups), remedy.format(*groups)
    return None
