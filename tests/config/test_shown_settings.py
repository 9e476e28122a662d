"""The settings as the console shows them: no secret among them."""

from __future__ import annotations

from pathlib import Path

from metaharvest.config.settings import load
from metaharvest.services.installation import shown_settings, shown_value

FILE = """\
[database]
url = "postgresql://harvester@db.example.org/mh"
[mail]
backend = "smtp"
password = "env:SMTP_PASSWORD"
[web]
token_key = "hunter2"
[monitoring]
ping_url = "https://ping.example.org/hunter2"
[http]
proxy = "http://proxy.example.org:3128"
[targets.archive]
kind = "folder"
folder = "archive"
"""


def test_secrets_are_masked_and_each_value_says_where_it_is_from(tmp_path: Path) -> None:
    file = tmp_path / "metaharvest.toml"
    file.write_text(FILE, encoding="utf-8")
    settings = load(file, {"METAHARVEST_MAIL__HOST": "mail.example.org"})
    shown = {(each.section, each.key): (each.value, each.origin) for each in shown_settings(settings)}
    assert not [each for each in shown.values() if "hunter2" in each[0]]
    assert shown["database", "url"] == ("postgresql://db.example.org/mh", "settings file")
    assert shown["mail", "password"] == ("env:SMTP_PASSWORD", "settings file")
    assert shown["mail", "host"] == ("mail.example.org", "METAHARVEST_MAIL__HOST")
    assert shown["mail", "port"] == ("25", "default")
    assert shown["web", "token_key"] == ("(not shown)", "settings file")
    assert shown["monitoring", "ping_url"] == ("(not shown)", "settings file")
    assert shown["targets.archive", "kind"] == ("folder", "settings file")


def test_a_secret_among_options_is_masked() -> None:
    assert shown_value("options", {"client_secret": "hunter2", "name": "x"}) == "client_secret = (not shown), name = x"
