"""The health checks outside the database: settings, secrets, folders, templates, the mail server, the monitor."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from html import escape
from pathlib import Path

from metaharvest.config.files import is_open_to_all, require_folder
from metaharvest.config.paths import nearest_there
from metaharvest.config.secret_references import exposed_file, is_reference, read_secret
from metaharvest.config.settings import PREFIX, SECTIONS, MailSettings, Settings, where_looked
from metaharvest.config.trust_store import BadAuthorities, read_authorities
from metaharvest.errors import SettingsError
from metaharvest.fetch.url import is_loopback
from metaharvest.model.actions import todo
from metaharvest.monitoring import Check, ok, problem, warning

_FULL_BYTES = 100_000_000
_NEARLY_FULL_BYTES = 1_000_000_000
_NAMED = 5


def check_settings(settings: Settings) -> Iterator[Check]:
    """All checks of the settings, and of the files and servers in them."""
    yield _settings_file(settings)
    yield from _environment(os.environ)
    yield from _people(settings)
    yield from _secrets(settings)
    yield from _certificates(settings)
    yield from _disk_space(settings)
    yield from _open_to_all(settings)
    yield from _templates(settings)
    yield _log_folder(settings)
    yield from _mail(settings)
    yield _monitor(settings)
    yield from _metrics_file(settings)


def _settings_file(settings: Settings) -> Check:
    if settings.file is None:
        return warning(
            "settings",
            f"There is no settings file (looked for {where_looked()}), so every default holds. "
            f"If there is one elsewhere: {todo('installation.check_from')}. {todo('installation.make')} writes a new "
            "one here.",
        )
    return ok("settings", f"{settings.file.resolve()} is well-formed, and every value is possible.")


def _environment(environ: Mapping[str, str]) -> Iterator[Check]:
    """Variables that look like settings and are none: no other message says that they are ignored."""
    for variable in sorted(environ):
        section, separator, _ = variable.removeprefix(PREFIX).lower().partition("__")
        if variable.startswith(PREFIX) and not (separator and section in SECTIONS):
            yield warning(
                "settings",
                f"The environment variable {variable} sets nothing. "
                f"Write it like {PREFIX}MAIL__HOST; sections are {', '.join(SECTIONS)}.",
            )


def _people(settings: Settings) -> Iterator[Check]:
    administrators = settings.harvester.administrators
    if administrators:
        yield ok("administrators", ", ".join(administrators))
    else:
        yield warning("administrators", "Nobody gets the report on a run: set administrators in [harvester].")
    if settings.mail.backend == "smtp" and settings.mail.sender == MailSettings.model_fields["sender"].default:
        yield warning("sender", "Reports come from an address that does not exist: set sender in [mail].")
    if settings.http.contact_url:
        yield ok("contact page", settings.http.contact_url)
    else:
        yield warning(
            "contact page", "Sites cannot see who is harvesting them: set contact_url in [http] to a web page of yours."
        )


def _secrets(settings: Settings) -> Iterator[Check]:
    references = {
        "password of [database]": settings.database.password,
        "password of [mail]": settings.mail.password,
        "proxy_password of [http]": settings.http.proxy_password,
        "search_password of [pipeline]": settings.pipeline.search_password,
        "oidc_client_secret of [web]": settings.web.oidc_client_secret,
    }
    may_be_references = {
        "ping_url of [monitoring]": settings.monitoring.ping_url,
        "broker of [workers]": settings.workers.broker,
        "token_key of [web]": settings.web.token_key,
    }
    references |= {name: value for name, value in may_be_references.items() if is_reference(value)}
    for name, reference in references.items():
        if reference:
            yield check_secret(name, reference, settings.folder)


def check_secret(name: str, reference: str, folder: Path) -> Check:
    """Check that the secret exists, and that only this user can read it."""
    try:
        found = read_secret(reference, folder)
    except SettingsError as error:
        return problem(name, str(error))
    if not found:
        return warning(name, f"The secret {reference} is empty.")
    exposed = exposed_file(reference, folder)
    if exposed is not None:
        return warning(name, f"Everybody on this machine may read {exposed}: chmod 600 {exposed}")
    return ok(name, f"{reference} is there.")


def _certificates(settings: Settings) -> Iterator[Check]:
    for place, path in (("http", settings.http.ca_file), ("mail", settings.mail.ca_file)):
        if path is None:
            continue
        try:
            read_authorities(settings.path(path))
        except BadAuthorities as error:
            yield problem(f"ca_file of [{place}]", f"{settings.path(path)} cannot be used: {error}.")


def _disk_space(settings: Settings) -> Iterator[Check]:
    """Each file system that is written to, once."""
    folders = {"settings": settings.folder}
    if settings.database.url.startswith("sqlite:///"):
        folders["database"] = settings.path(Path(settings.database.url.removeprefix("sqlite:///"))).parent
    if settings.mail.backend == "maildir":
        folders["mail"] = settings.path(settings.mail.folder)
    if settings.reports.admin == "log-file":
        folders["reports"] = settings.path(settings.reports.log_folder)
    if settings.pipeline.enabled:
        folders["pipeline"] = settings.path(settings.pipeline.folder)
    seen: set[int] = set()
    for folder in folders.values():
        there = nearest_there(folder.resolve())
        device = there.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield _space(there)


def _open_to_all(settings: Settings) -> Iterator[Check]:
    """A warning for each file or folder with addresses of people that everybody on this machine may read."""
    contacts = "the addresses of contacts"
    kept = {}
    if settings.file is not None:
        kept["settings"] = settings.file.resolve(), "the addresses of administrators, and perhaps the token_key"
    if settings.database.url.startswith("sqlite:///"):
        kept["database"] = settings.path(Path(settings.database.url.removeprefix("sqlite:///"))), contacts
    if settings.mail.backend == "maildir":
        kept["mail folder"] = settings.path(settings.mail.folder) / "new", contacts
    for name, (path, content) in kept.items():
        if is_open_to_all(path):
            mode = "go-rwx" if path.is_dir() else "600"
            message = f"Everybody on this machine may read {path}, which has {content}"
            yield warning(name, f"{message}: chmod {mode} {path}")


def _space(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    sentence = f"{free / 1e9:,.1f} GB are free where {folder} is."
    if free < _FULL_BYTES:
        return problem("disk space", f"{sentence} Make room before the next run.")
    return warning("disk space", sentence) if free < _NEARLY_FULL_BYTES else ok("disk space", sentence)


def _templates(settings: Settings) -> Iterator[Check]:
    from metaharvest.reports.template_check import problems_of_templates, unused_templates

    own = settings.path(settings.reports.templates) if settings.reports.templates is not None else None
    if own is not None and not own.is_dir():
        yield problem("templates", f"The folder {own}, set as templates in [reports], is not there.")
        return
    if own is not None and not os.access(own, os.R_OK | os.X_OK):
        yield problem("templates", f"The folder {own}, set as templates in [reports], may not be read.")
        return
    unused = unused_templates(own) if own is not None else []
    for name in unused[:_NAMED]:
        yield warning(
            "templates", f"{own}/{name} is not used: no template of that name is, such as email/site_report/body.txt."
        )
    sentences = problems_of_templates(settings)
    yield from (problem("templates", sentence) for sentence in sentences)
    if not sentences and not unused:
        yield ok("templates", "All of them can be used." if own is None else f"Those in {own} too.")


def _log_folder(settings: Settings) -> Check:
    if settings.reports.admin != "log-file":
        return ok("administrator's report", "It is sent as mail.")
    folder = settings.path(settings.reports.log_folder)
    try:
        require_folder(folder.parent)
    except OSError as error:
        return problem("administrator's report", f"The folder {folder} cannot be made: {error.strerror}.")
    nearest = nearest_there(folder)
    if nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK):
        return ok("administrator's report", f"It is written into {folder}.")
    return problem(
        "administrator's report", f"The folder {folder} cannot be written: let this user write to {nearest}."
    )


def _mail(settings: Settings) -> Iterator[Check]:
    from metaharvest.mail.outbox import backend_for

    mail = settings.mail
    if mail.backend == "smtp" and mail.username and mail.security == "none" and not is_loopback(mail.host):
        yield warning("mail", f"The password goes to {mail.host} unencrypted: set security in [mail].")
    with closing(backend_for(settings)) as backend:
        wrong = backend.probe()
    if wrong:
        yield problem("mail", wrong)
    elif mail.backend == "maildir":
        yield ok("mail", f"Reports are put into the folder {settings.path(mail.folder)}; nothing is sent.")
    else:
        yield ok("mail", f"The mail server {mail.host}, port {mail.port}, is ready to take messages.")


def _monitor(settings: Settings) -> Check:
    """The monitor that a run reports its end to; nothing is sent."""
    from metaharvest.monitoring.ping import ping_url, shown_monitor

    try:
        url = ping_url(settings)
    except SettingsError as error:
        return problem("monitor", str(error))
    if url:
        return ok("monitor", f"{shown_monitor(url)} is pinged at the end of each run.")
    return ok("monitor", "No monitor gets the end of a run; ping_url in [monitoring] names one.")


def _metrics_file(settings: Settings) -> Iterator[Check]:
    """Check that the file for Prometheus can be written; a new file is written beside it, and then replaces it."""
    if settings.monitoring.metrics_file is None:
        return
    name, file = "metrics file", settings.written_path(settings.monitoring.metrics_file)
    folder = file.parent
    if not folder.is_dir():
        yield problem(name, f"There is no folder {folder} for {file.name}: make it, or correct metrics_file.")
    elif file.is_symlink() or (file.exists() and not file.is_file()):
        yield problem(name, f"{file} is not a file, so it cannot be written: correct metrics_file in [monitoring].")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield problem(name, f"{file} cannot be written: let this user write to the folder {folder}.")
    else:
        yield ok(name, f"{file} is written after each run.")


def send_test_mail(settings: Settings, now: datetime) -> Iterator[Check]:
    """Hand over a test message to each administrator, without the outbox; the result of that."""
    from metaharvest.mail.delivery import Letter
    from metaharvest.mail.message import RenderedText, build, message_id
    from metaharvest.mail.outbox import backend_for

    administrators = settings.harvester.administrators
    if not administrators:
        yield problem("test mail", "There is nobody to send it to: set administrators in [harvester].")
        return
    text = f"This is a test message of the harvester {settings.harvester.name}. If you can read it, mail works.\n"
    body = RenderedText(f"[{settings.harvester.name}] test message", text, f"<!DOCTYPE html>\n<p>{escape(text)}</p>\n")
    identifier = message_id("test", (now.isoformat(),), settings)
    report = build("test", "test", identifier, administrators, body, None, settings, now)
    with closing(backend_for(settings)) as backend:
        for parcel in backend.parcels(administrators):
            [attempt] = backend.send([Letter(identifier, report.content, now, parcel)])
            name = ", ".join(parcel)
            if attempt.status == "sent":
                yield ok("test mail", f"Handed over for {name}.")
            else:
                yield problem("test mail", f"Not handed over for {name}: {attempt.error}")
