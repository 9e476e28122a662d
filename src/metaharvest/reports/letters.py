"""Letters to people outside: mails with links, mails about decisions, and the letter about one rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from metaharvest.model.actions import parts
from metaharvest.model.values import frozen
from metaharvest.reports.phrasing import without_commands
from metaharvest.rules import RULES, title_of
from metaharvest.text import counted, one_line


@frozen
class DoorLetter:
    """The values of a mail: each template uses some. `network` is the name of the harvester."""

    network: str
    site: str
    url: str = ""
    address: str = ""
    link: str = ""
    days: int = 0
    proof: str = ""
    reason: str = ""
    schedule: str = ""


_LONGEST_LINK = 1_900
"""Characters of a mailto link: mail programs on Windows take about 2,000."""
_MESSAGE = 300


@frozen
class LetterDocument:
    """A document with the problem; `name` is empty for the list of the site."""

    name: str
    title: str = ""
    message: str = ""
    line: int | None = None


@frozen
class Letter:
    """The text for the contacts of a site."""

    recipients: tuple[str, ...]
    subject: str
    body: str

    @property
    def link(self) -> str:
        """A mailto link with the letter; empty if the addresses are too long for a link.

        A long letter ends with a sentence in place of the rest.
        """
        to = ",".join(quote(each, safe="@") for each in self.recipients)
        rest = "\n\n(The rest of this letter is too long for a link: please copy it from the page.)"
        beginning = f"mailto:{to}?subject={quote(self.subject)}&body="
        body = self.body.replace("\n", "\r\n")
        if len(beginning + quote(body)) <= _LONGEST_LINK:
            return beginning + quote(body)
        while body and len(beginning + quote(body + rest)) > _LONGEST_LINK:
            body = body[: len(body) * 9 // 10]
        link = beginning + quote(body + rest)
        return link if len(link) <= _LONGEST_LINK else ""


def rule_letter(
    rule: str, site: str, recipients: Sequence[str], documents: Sequence[LetterDocument], number: int, installation: str
) -> Letter:
    """The letter about these documents of the site; `number` is the number of all problems with this rule."""
    title = title_of(rule)
    known = RULES.get(rule)
    paragraphs = [
        "Dear colleagues,",
        f"{installation} harvests your site {site}. {counted(number, 'problem')} of this kind "
        f"{'is' if number == 1 else 'are'} open: {title}.",
    ]
    if known is not None:
        paragraphs.append(f"The usual cause: {_plain(known.cause)}")
        paragraphs.append(f"What to do: {_plain(known.for_contact or known.remedy)}")
    lines = [_line(each) for each in documents]
    if number > len(documents):
        lines.append(f"- and {number - len(documents):,} more")
    paragraphs += ["\n".join(lines), "The next harvest reports whether the problem is fixed.", "Kind regards"]
    return Letter(tuple(recipients), f"{site}: {title} ({number:,})", "\n\n".join(paragraphs) + "\n")


def _line(document: LetterDocument) -> str:
    name = one_line(document.name) or "the harvest list"
    title = f' "{one_line(document.title, 120)}"' if document.title else ""
    place = f" (line {document.line:,})" if document.line else ""
    message = f": {one_line(without_commands(document.message), _MESSAGE)}" if document.message else ""
    return f"- {name}{title}{place}{message}"


def _plain(text: str) -> str:
    """The text without commands of the administrator, and without the marks of the others."""
    return "".join(part if isinstance(part, str) else part.command for part in parts(without_commands(text)))
