"""Actions: what people can do about a finding, each with an id, the command that carries it out, and a label.

A text names an action by its command between backticks, quoted for a shell: `metaharvest sites confirm alder-creek`.
People read and paste it: on a terminal, in a mail, in a table. `parts()` finds the same action with the same values
again. Programs may do so with remedies only, which cannot repeat a command from outside: see `Remedy`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from metaharvest.model.values import frozen

ACTIONS: dict[str, tuple[str, str]] = {
    # -- the installation
    "installation.make": ("init", "make the installation, or upgrade its database"),
    "installation.make_from": ("--config FILE init", "make the settings file FILE and its database"),
    "installation.choose": ("--config FILE", "use the settings file FILE"),
    "installation.check": ("doctor", "check the settings, the database, the target and the mail"),
    "installation.check_from": ("--config FILE doctor", "check the installation of the settings file FILE"),
    "dates.repair": ("database repair-dates", "repair dates that lie in the future"),
    # -- runs and their log
    "runs.start": ("run", "harvest the sites that are due"),
    "runs.full": ("run --site NAME --full", "fetch the whole list of the site NAME"),
    "runs.requested": ("run --requested", "harvest the sites that people asked for"),
    "runs.stop": ("runs stop", "stop the run under way"),
    "runs.stop_site": ("runs stop --site NAME", "stop the harvest of the site NAME"),
    "runs.remove": ("runs remove RUN_ID", "delete the run RUN_ID with its log"),
    "runs.list": ("runs", "list the runs"),
    "runs.show": ("runs show RUN_ID", "show the run RUN_ID"),
    "log.of_site": ("log --site NAME", "show the log of the site NAME"),
    "log.table": ("log --csv --run RUN_ID", "write the log of the run RUN_ID as a table"),
    # -- sites
    "sites.add_list": ("sites add NAME --list-url URL --contact EMAIL", "register the site NAME"),
    "sites.add_repository": ("sites add NAME --oai BASEURL", "register the OAI-PMH repository at BASEURL"),
    "sites.list": ("sites list", "list the sites"),
    "sites.show": ("sites show NAME", "show the site NAME"),
    "sites.edit": ("sites edit NAME", "change the site NAME"),
    "sites.set_next": ("sites edit NAME --next DATE", "harvest the site NAME on DATE"),
    "sites.set_full_every": ("sites edit NAME --full-every DAYS", "fetch the whole list of NAME every DAYS days"),
    "sites.set_authorities": ("sites edit NAME --ca-file FILE", "trust the certificates in FILE for the site NAME"),
    "sites.set_login": ("sites edit NAME --ldapdn DN --ldappwd REFERENCE", "change the login of the site NAME"),
    "sites.set_login_name": ("sites edit NAME --ldapdn DN", "change the login name of the site NAME"),
    "sites.set_password": ("sites edit NAME --ldappwd REFERENCE", "change the password of the site NAME"),
    "sites.set_filters": ("sites edit NAME --filters FILE", "give the filters in FILE to the site NAME"),
    "sites.set_normalizing": ("sites edit NAME --normalize FILE", "give the normalising in FILE to the site NAME"),
    "sites.enable": ("sites enable NAME", "switch on the site NAME"),
    "sites.disable": ("sites disable NAME", "switch off the site NAME"),
    "sites.confirm": ("sites confirm NAME", "confirm the deletions of the site NAME"),
    "sites.harvest": ("sites harvest NAME", "ask for the harvest of the site NAME"),
    "sites.skip": ("sites skip NAME", "leave the site NAME out of the next run"),
    "sites.remove": ("sites remove NAME", "remove the site NAME from the schedule"),
    "jobs.list": ("jobs", "list the jobs of workers"),
    "jobs.show": ("jobs show JOB_ID", "show the job JOB_ID"),
    "jobs.cancel": ("jobs cancel JOB_ID", "cancel the job JOB_ID"),
    "jobs.retry": ("jobs retry JOB_ID", "let the job JOB_ID be tried now"),
    "jobs.priority": ("jobs priority JOB_ID NUMBER", "change the priority of the job JOB_ID"),
    "workers.list": ("workers", "list the workers"),
    "workers.start": ("worker", "start a worker on this machine"),
    "workers.coordinate": ("coordinate", "let workers harvest the sites that are due"),
    "pipeline.show": ("pipeline", "show how far the pipeline has come"),
    "pipeline.run": ("pipeline run", "run the pipeline"),
    "pipeline.failures": ("pipeline failures", "list the documents that failed in the pipeline"),
    "pipeline.rebuild": ("pipeline rebuild-index", "make the search index again"),
    "pipeline.retry": ("pipeline retry STAGE", "let the documents that failed at the stage STAGE be tried again"),
    "changes.list": ("changes --since SEQ", "list the changed documents after the change SEQ"),
    "requests.list": ("requests", "list the requests to the harvester"),
    "requests.cancel": ("requests cancel REQUEST_ID", "take the request REQUEST_ID back"),
    "sites.export": ("sites export", "write all sites into a file"),
    "sites.import": ("sites import FILE", "register the sites in FILE"),
    "sites.import_log": ("sites import-metacat --log", "import sites and log from a Metacat Harvester"),
    # -- documents
    "documents.list": ("documents", "list the documents of all sites"),
    "documents.show": ("documents show DOCUMENT", "show the history of the document DOCUMENT"),
    "documents.of_rule": ("documents --site NAME --rule RULE", "list these documents of the site NAME"),
    "documents.transfer": ("target transfer DOCUMENT NAME", "transfer the document DOCUMENT to the site NAME"),
    "documents.withdraw": ("target withdraw DOCUMENT --reason TEXT", "withdraw the document DOCUMENT"),
    "documents.readmit": ("target withdraw DOCUMENT --undo", "take back the withdrawal of the document DOCUMENT"),
    # -- the console and the API
    "keys.add": ("keys add NAME --role ROLE", "make the key NAME with the role ROLE"),
    # -- targets
    "targets.check": ("target check", "check the targets"),
    "targets.list": ("target list", "list the documents of the target"),
    "targets.get": ("target get DOCID --target NAME", "get the document DOCID from the target NAME"),
    "targets.rebuild": ("target rebuild", "rebuild the index of the folder"),
    # -- reports
    "reports.list": ("reports", "list the reports"),
    "reports.undelivered": ("reports --undelivered", "list the reports that were not delivered"),
    "reports.refused": ("reports --state refused", "list the reports that were refused"),
    "reports.deliver": ("reports deliver", "deliver the reports that wait"),
    "reports.resend": ("reports resend REPORT_ID --to ADDRESS", "send the report REPORT_ID to ADDRESS"),
    "reports.resend_refused": ("reports resend --state refused", "send refused reports again"),
    "reports.resend_since": ("reports resend --state refused --since DATE", "send reports again, refused since DATE"),
    "reports.drop": ("reports drop REPORT_ID", "drop the report REPORT_ID"),
    # -- what everybody can do, without an installation
    "lists.check": ("check URL", "rehearse the harvest of URL"),
    "lists.check_in_network": ("check URL --allow-network NETWORK", "rehearse the harvest of URL in NETWORK"),
    "lists.build": ("list build FOLDER --base-url URL --write", "make a harvest list of the documents in FOLDER"),
    "lists.build_file": (
        "list build FOLDER --base-url URL -o LIST --write",
        "make the harvest list LIST of the documents in FOLDER",
    ),
    "lists.bump": ("list bump LIST DOCID --to REVISION", "raise the revision of DOCID in LIST to REVISION"),
    "repositories.rehearse": ("oai validate URL", "rehearse the harvest of the repository at URL"),
    "repositories.formats": ("oai formats URL", "list the formats of the repository at URL"),
    "repositories.sets": ("oai sets URL", "list the sets of the repository at URL"),
    "repositories.record": ("oai get URL IDENTIFIER", "get the record IDENTIFIER of the repository at URL"),
    "filters.try": ("filter test FILE RECORD", "try the filters in FILE on RECORD"),
    "normalizing.try": ("normalize test FILE RECORD", "try the normalising in FILE on RECORD"),
}
"""By the id of an action: its command, and its label. Words in capitals stand for values."""

_PATTERNS = {action: command.split() for action, (command, _) in ACTIONS.items()}
"""By the id of an action: the words of its command."""

_FOR_EVERYBODY = ("check", "list", "oai", "filter", "normalize")
"""Commands that need neither settings nor a database."""

_BEGINNING = "`metaharvest"
_WORD = r"(?:[^\s'\"`\\]|'[^']*'|\"'\"|(?!))++"
_WORDS = re.compile(_WORD)
_COMMAND = re.compile(rf"`metaharvest((?: {_WORD}|(?!))++)`")
_QUOTED = re.compile(r"'([^']*)'|\"(')\"")
_PLACEHOLDER = re.compile(r"[A-Z][A-Z_]+")


@frozen
class Todo:
    """An action for a person: its id in ACTIONS, and its values by name: the word for a value, in lower case.

    The reader knows a value that is missing: the command and the label keep its word in capitals.
    """

    id: str
    values: Mapping[str, str]

    @property
    def command(self) -> str:
        """The command that carries it out, quoted for a shell."""
        return " ".join(("metaharvest", *map(self._quoted, _PATTERNS[self.id])))

    @property
    def label(self) -> str:
        """The action in words, as on a button: `confirm the deletions of the site alder`."""
        return _PLACEHOLDER.sub(lambda found: self.values.get(found[0].lower(), found[0]), ACTIONS[self.id][1])

    @property
    def missing(self) -> list[str]:
        """The names of its values that are missing."""
        words = [word.lower() for word in _PATTERNS[self.id] if word.isupper()]
        return [word for word in words if word not in self.values]

    @property
    def is_for_everybody(self) -> bool:
        """True if it needs no installation: a site's contacts can carry it out."""
        return _PATTERNS[self.id][0] in _FOR_EVERYBODY

    def __str__(self) -> str:
        return f"`{self.command}`"

    def _quoted(self, word: str) -> str:
        value = self.values.get(word.lower()) if word.isupper() else None
        if value is None:
            return word
        return f"'{value}'" if value == word else shlex.quote(value)


def todo(action: str, **values: str | int | None) -> Todo:
    """The action of this id with these values; None is a missing one. Raises KeyError for an unknown id or value."""
    if unknown := values.keys() - {word.lower() for word in _PATTERNS[action] if word.isupper()}:
        raise KeyError(f"{action} has no value {', '.join(sorted(unknown))}")
    return Todo(action, {name: str(value) for name, value in values.items() if value is not None})


class Remedy(str):
    """The text of a remedy that names actions: a program may offer each of its commands as a button.

    `text` is written in the program, with `{}` for each value. If a value looks like a command, its backticks become
    apostrophes. A Finding does the same with a remedy of another type. A message may repeat the words of a site or a
    server: commands in it are only text.
    """

    __slots__ = ()

    def __new__(cls, text: str, *values: Todo | str | int) -> Remedy:
        """The text with the values in it."""
        return super().__new__(cls, text.format(*map(_safe, values)) if values else text)


def without_actions(text: str) -> str:
    """The text with apostrophes for its backticks, if it looks like a command; a Remedy stays as it is."""
    return text if isinstance(text, Remedy) or _BEGINNING not in text else text.replace("`", "'")


def parts(text: str) -> Iterator[str | Todo]:
    """The text in order: the actions that it names, and the texts between them."""
    start = 0
    for found in _COMMAND.finditer(text) if _BEGINNING in text else ():
        if (named := _named(found[0], _WORDS.findall(found[1]))) is not None:
            yield text[start : found.start()]
            yield named
            start = found.end()
    yield text[start:]


def _named(command: str, words: list[str]) -> Todo | None:
    """The action that is written as `command`, which has these words; None if there is none."""
    for action, names in _PATTERNS.items():
        # The first word is never a value.
        if names[0] != words[0] or len(names) != len(words):
            continue
        written = {name: word for name, word in zip(names, words, strict=True) if name != word}
        if not all(map(str.isupper, written)):
            continue
        named = Todo(action, {name.lower(): _QUOTED.sub(r"\1\2", word) for name, word in written.items()})
        if str(named) == command:
            return named
    return None


def _safe(value: Todo | str | int) -> Todo | str | int:
    return without_actions(value) if isinstance(value, str) else value
