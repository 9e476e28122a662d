"""Turns the messages of libxml2's schema validation into plain words, for errors that xmlschema did not explain."""

from __future__ import annotations

import re

from metaharvest.rules import RULES
from metaharvest.text import one_line
from metaharvest.validation import advice

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
