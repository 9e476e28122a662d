"""The results of a rehearsal as a JUnit report, which services that run tests read: a document is a test case."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from metaharvest.model import Finding, OutcomeKind
from metaharvest.rehearsal.results import CheckedDocument, CheckedPart, Places
from metaharvest.reports.phrasing import OUTCOME_TITLES
from metaharvest.text import only_xml


def junit(parts: Iterable[CheckedPart], places: Places, seconds: float, stamp: str) -> bytes:
    """A test suite for each part, with a test case for each document, and one for a list that failed as a whole.

    A document with errors has failed, and so has one that was put off. `stamp`: its time, in ISO 8601 without a time
    zone; `seconds`: its total duration.
    """
    root = ElementTree.Element("testsuites", name="metaharvest check")
    for number, part in enumerate(parts):
        suite = ElementTree.SubElement(root, "testsuite", name=only_xml(part.name.shown))
        for document in part.documents:
            _add_case(suite, part, document, places)
        if part.failed and suite.find("testcase/failure") is None:
            case = ElementTree.SubElement(suite, "testcase", name=only_xml(part.name.shown), classname="list", time="0")
            ElementTree.SubElement(case, "failure", message=only_xml(part.sentence), type=part.status.value)
        suite.set("timestamp", stamp)
        suite.set("time", f"{0.0 if number else seconds:.3f}")
        suite.set("hostname", "localhost")
        _count(suite)
    for key in ("tests", "failures", "errors"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in root)))
    root.set("time", f"{seconds:.3f}")
    ElementTree.indent(root)
    report: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return report + b"\n"


def _count(suite: ElementTree.Element) -> None:
    for key, tag in (("tests", "testcase"), ("failures", "testcase/failure")):
        suite.set(key, str(len(suite.findall(tag))))
    for key in ("errors", "skipped"):
        suite.set(key, "0")


def _add_case(suite: ElementTree.Element, part: CheckedPart, document: CheckedDocument, places: Places) -> None:
    is_list = part.name.is_list
    name = (document.docid if is_list else places.name(document.url)) or "the harvest list"
    case = ElementTree.SubElement(suite, "testcase", name=only_xml(name), classname=only_xml(part.name.shown), time="0")
    errors = [finding for finding in document.reported_findings if finding.is_error]
    text = only_xml("\n\n".join(_describe(finding, document, places) for finding in document.reported_findings))
    if errors:
        about = errors[0]
        ElementTree.SubElement(case, "failure", message=only_xml(about.message), type=about.rule).text = text
    elif document.outcome is OutcomeKind.DEFERRED:
        title = OUTCOME_TITLES[document.outcome]
        ElementTree.SubElement(case, "failure", message=title, type="deferred").text = text or title
    elif text:
        ElementTree.SubElement(case, "system-out").text = text


def _describe(finding: Finding, document: CheckedDocument, places: Places) -> str:
    where = [
        places.name(document.url_of(finding)),
        *(str(number) for number in (finding.line, finding.column) if number),
    ]
    lines = [f"{':'.join(where)}: {finding.level.value} [{finding.rule}] {finding.message}"]
    lines += [f"    {finding.excerpt}"] if finding.excerpt else []
    lines += [f"    What to do: {finding.remedy}"] if finding.remedy else []
    return "\n".join(lines)
