"""Turns the messages of libxml2 into plain words: a pattern for each kind, with rule, sentence and remedy.

Messages of its parser, and of its validation by a schema, for errors that xmlschema did not explain.
"""

from __future__ import annotations

import re

from metaharvest.rules import RULES
from metaharvest.text import one_line
from metaharvest.validation import advice

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
    (r"^Invalid PI name", "xml.bad-declaration",
     "The line <?xml …?> has capital letters.",
     'Write <?xml version="1.0" encoding="UTF-8"?>, in small letters.'),
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


_WHOSE = re.compile(r"Element '([^']*)'(?:, attribute '([^']*)')?: (.*)", re.DOTALL)
_MAX_LISTED = 300

_SCHEMA_ERRORS = (
    (r"This element is not expected\.(?: Expected is (?:one of )?\( (.*) \)\.)?", "schema.unexpected-element",
     "{0} is not expected at this place.",
     "Remove it, check its spelling, or put before it what is missing. Expected here: {1}."),
    (r"Missing child element\(s\)\.(?: Expected is (?:one of )?\( (.*) \)\.)?", "schema.missing-element",
     "{0} is not complete: an element is missing in it.",
     "Add what is missing. Expected at its end: {1}."),
    (r"(?>\[facet 'enumeration'\] The value '(.*)' is not an element of the set \{)(.*)\}\.", "schema.not-in-list",
     "{0} is '{1}', which is not one of the allowed values.",
     "Allowed are: {2}."),
    (r"(?>The QName value '([^']*)' of the xsi:type attribute) does not resolve to a type definition\.",
     "schema.no-type",
     "xsi:type names the type {1}, which the schema of this format does not have.",
     ""),
    (r"The attribute '([^']+)' is required but missing\.", "schema.missing-attribute",
     "{0} lacks the attribute {1}.",
     'Add {1}="…" to it.'),
    (r"The attribute '[^']+' is not allowed\.", "schema.unexpected-attribute",
     "{0} is not allowed.",
     "Remove it, or check its spelling."),
    (r"Character content .*", "schema.unexpected-text",
     "{0} may hold only elements, and has text between them.",
     "Remove the text, or put it into the element where it belongs."),
    (r"Element content is not allowed.*", "schema.unexpected-element",
     "{0} may hold nothing but text, and has elements in it.",
     "Remove the tags within it, and keep the text."),
    (r"\[facet 'm(?:ax|in)(?:In|Ex)clusive'\] "
     r"(?>The value '(.*)' is (less|greater) than the \w+ value allowed \(')(.*)'\)\.",
     "schema.out-of-range", "{0} is {1}, which is {2} than the limit, {3}.", ""),
    (r"(?:\[facet 'minLength'\].*|\[facet 'pattern'\] The value '\s*' .*|'\s*' is not a valid value .*)",
     "schema.empty-text", "{0} is empty, and must have a value.", ""),
    (r"(?>'(.*)' is not a valid value ).*type '(?:xs:(?:date|gYear|time|dateTime)|.*yearDate)'\.",
     "schema.bad-date", "{0} is '{1}', which is not a date or time as the schema wants, or not one that exists.", ""),
    (r"(?>'(.*)' is not a valid value ).*type 'xs:(?:decimal|float|double|integer|int|long|unsigned\w+)'\.",
     "schema.bad-number", "{0} is '{1}', which is not a number of the right kind.", ""),
    (r"(?>'(.*)' is not a valid value ).*type 'xs:anyURI'\.",
     "schema.bad-url", "{0} is '{1}', which is not a URL as the standard wants it.", ""),
    (r"(?>'(.*)' is not a valid value ).*",
     "schema.bad-value", "{0} is '{1}', which is not a value of the right kind.", ""),
)  # fmt: skip
"""Pattern, rule, sentence, remedy. {0} is the element or attribute; {1} ... are the groups of the pattern.
An empty remedy stands for the remedy of the rule.

Messages quote the document, which may quote messages: what may be there several times is matched atomically, so that
the time is linear."""


def schema_error_in_words(message: str) -> tuple[str, str, str]:
    """Rule, sentence and remedy for one message of libxml2's schema validation; an unknown message stays as it is."""
    plain = re.sub(r"\{[^{}\s']*\}(?=[\w*])", "", " ".join(message.split()))
    whose = _WHOSE.fullmatch(plain)
    for pattern, rule, sentence, remedy in _SCHEMA_ERRORS:
        if whose and (match := re.fullmatch(pattern, whose[3])):
            what = f"The attribute {whose[2]} of {whose[1]}" if whose[2] else whose[1]
            groups = [one_line(what, 200), *map(_listed, match.groups(""))]
            if rule == "schema.bad-date":
                message, remedy = advice.about_date(match[1], _kinds_in(whose[3]))
                return rule, f"{groups[0]} is '{groups[1]}', which {message}", remedy
            hint = remedy if "" not in groups else remedy.partition(" Expected")[0]
            return rule, sentence.format(*groups), hint.format(*groups) or RULES[rule].remedy
    return "schema.other", one_line(plain, 500), RULES["schema.other"].remedy


def _kinds_in(message: str) -> set[str]:
    """The types of dates in a message; EML's yearDate is a day or a year."""
    if "yearDate" in message.rpartition("type ")[2]:
        return {"date", "gYear"}
    return {kind for kind in advice.FORMS if f"'xs:{kind}'" in message}


def _listed(text: str) -> str:
    """A value, or a list of values, without quotes and short enough to show."""
    return one_line(re.sub(r"'(, )'", r"\1", text).strip("'"), _MAX_LISTED)
