"""The settings file, the environment over it, and a sentence for whatever is wrong."""

from pathlib import Path

import pytest

from metaharvest.config.secret_references import resolve_secret
from metaharvest.config.settings import Settings, load
from metaharvest.errors import SettingsError
from support.harvester import Harvester
from support.ports import free_port

sqlite_only = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def write(folder: Path, text: str) -> Path:
    file = folder / "metaharvest.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    settings = load(environ={})
    assert settings.harvester.log_period_days == 90
    assert settings.harvester.workers == 128
    assert settings.validation.time_limit == 60
    assert settings.http.max_document_bytes == 52428800
    assert settings.folder == tmp_path


def test_relative_paths_are_relative_to_the_settings_file(tmp_path: Path) -> None:
    settings = load(write(tmp_path, '[mail]\nfolder = "post"\n'), {})
    assert settings.path(settings.mail.folder) == (tmp_path / "post").resolve()


def test_the_environment_stands_over_the_file(tmp_path: Path) -> None:
    environ = {
        "METAHARVEST_MAIL__HOST": "mx.example.org",
        "METAHARVEST_HARVESTER__ADMINISTRATORS": "a@example.org, b@example.org",
        "METAHARVEST_HTTP__ALLOW_NETWORKS": '["10.0.0.0/8"]',
        "METAHARVEST_TEST_POSTGRESQL_URL": "of no concern here",
    }
    settings = load(write(tmp_path, '[mail]\nhost = "file.example.org"\nport = 587\n'), environ)
    assert (settings.mail.host, settings.mail.port) == ("mx.example.org", 587)
    assert settings.harvester.administrators == ("a@example.org", "b@example.org")
    assert [str(network) for network in settings.http.allow_networks] == ["10.0.0.0/8"]


def test_all_problems_are_told_at_once_with_file_key_value_and_remedy(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '[harvester]\nworkers = "many"\ntime_zone = "Mars"\ncolour = "red"\nadministrators = ["nobody"]\n'
        '[mail]\npassword = "secret"\nport = 99999\n[http]\nallow_networks = ["lan"]\n[post]\n[target]\nkind = "box"\n',
    )
    with pytest.raises(SettingsError) as raised:
        load(file, {"METAHARVEST_REPORTS__LINES_PER_GROUP": "few"})
    problems = raised.value.problems
    assert len(problems) == 10
    text = "\n".join(problems)
    assert f"{file}: [harvester] workers = 'many'" in text
    assert "'Mars' is not a time zone; write it like UTC or Europe/Berlin" in text
    assert "[harvester] colour: there is no such key. Known are: name, administrators" in text
    assert "METAHARVEST_REPORTS__LINES_PER_GROUP in the environment = 'few'" in text
    assert "[post]: there is no such section" in text
    assert "secret" not in text.replace("a secret is never written here", "")
    assert "env:NAME, file:PATH or keyring:SERVICE/USERNAME" in text


def test_a_number_beyond_its_limits_is_told(tmp_path: Path) -> None:
    file = write(tmp_path, "[harvester]\nworkers = 1025\n[validation]\ntime_limit = -1\n")
    with pytest.raises(SettingsError) as raised:
        load(file, {})
    workers, time_limit = raised.value.problems
    assert workers.endswith("[harvester] workers = 1025: input should be less than or equal to 1024.")
    assert time_limit.endswith("[validation] time_limit = -1: input should be greater than or equal to 0.")


def test_the_pipeline_needs_an_address_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as raised:
        load(write(tmp_path, '[pipeline]\nmail = "x"\nfolder = ""\n'), {})
    text = "\n".join(raised.value.problems)
    assert "'x' is not an email address; write it like name@example.org" in text
    assert "[pipeline] folder" in text
    assert "it must be the path of a folder" in text
    assert load(write(tmp_path, '[pipeline]\nmail = ""\nfolder = "p"\n'), {}).pipeline.mail == ""


def test_what_is_known_is_named_whole(tmp_path: Path) -> None:
    file = write(tmp_path, '[mail]\nfile = "x"\n[post]\n[sites.a]\nfolder = "x"\n')
    with pytest.raises(SettingsError) as raised:
        load(file, {"METAHARVEST_HTTP__": "3"})
    text = "\n".join(raised.value.problems)
    assert "[mail] file: there is no such key. Known are: backend, folder, host, " in text
    assert "[post]: there is no such section. Known are: harvester, " in text
    assert "monitoring, web, workers, pipeline, targets, sites." in text
    assert "METAHARVEST_HTTP__ in the environment: there is no such key. Known are: contact_url, " in text
    assert '[sites."a"] folder: there is no such key. Known are: file_folder, target.' in text


@pytest.mark.parametrize(
    "value",
    [
        "p:1",
        "proxy.example.org",
        "ftp://x:1",
        "ht tp://x",
        "http://x y",
        "http://",
        "http://x:0",
        "http://x:y",
        "http://x/y",
    ],
)
def test_a_proxy_that_no_site_could_be_reached_through_is_told_at_once(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load(write(tmp_path, f'[http]\nproxy = "{value}"\n'), {})
    sentence = f"{tmp_path / 'metaharvest.toml'}: [http] proxy = (not shown): it must be written like http://proxy."
    assert str(raised.value).startswith(sentence)


@pytest.mark.parametrize("value", ["http://p:3128", "http://me@[::1]:3128/", "https://p", "socks5h://p:1080", ""])
def test_a_proxy_of_any_kind_that_there_is_is_taken(tmp_path: Path, value: str) -> None:
    assert load(write(tmp_path, f'[http]\nproxy = "{value}"\n'), {}).http.proxy == value


@sqlite_only
@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ({"METAHARVEST_HTTP__PROXY": "http://u:pw@p:1"}, "leave the user name alone before the @"),
        (
            {"METAHARVEST_HTTP__PROXY": "http://p:1", "METAHARVEST_HTTP__PROXY_PASSWORD": "env:HOME"},
            "write the user name and an @ between http:// and the host.",
        ),
        ({"METAHARVEST_DATABASE__URL": "nonsense"}, "mysql+pymysql://host/name, with a user name"),
    ],
)
def test_nothing_of_our_own_advice_is_masked(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], advice: str
) -> None:
    harvester.keeps_engine = False
    for variable, value in setting.items():
        monkeypatch.setenv(variable, value)
    said = harvester("run")
    assert (said.code, advice in said.err) == (2, True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[harvester\n", "is not valid TOML"),
        (b"[harvester]\nname = Fen\n", "Texts need quotes"),
        (b"[harvester]\nworkers = 3\nworkers = 4\n", "line 3, .* The same key, or the same section, is there a second"),
        (b"[mail]\nport = 25\n[http]\n[mail]\n", "line 4, .* The same key, or the same section, is there a second"),
        (b"[harvester]\nname = caf\xe9\n", "is not UTF-8 text"),
    ],
)
def test_a_file_that_is_no_toml_is_told_in_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "metaharvest.toml"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=words):
        load(file, {})


def test_a_file_that_is_not_there_is_told_with_the_command_that_writes_one(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="init"):
        load(tmp_path / "none.toml", {})


def test_secrets_are_found_behind_their_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "from the environment")
    (tmp_path / "password").write_text("from a file\n")
    assert resolve_secret("env:MAIL_PASSWORD", tmp_path) == "from the environment"
    assert resolve_secret("file:password", tmp_path) == "from a file"
    assert resolve_secret("", tmp_path) == ""
    for reference in ("env:NOT_SET_ANYWHERE", "file:nothing-there"):
        with pytest.raises(SettingsError, match=reference):
            resolve_secret(reference, tmp_path)


def test_no_field_of_the_settings_is_without_a_default() -> None:
    assert Settings().target.kind == "embedded"


@sqlite_only
def test_what_a_database_asks_is_not_ended_twice(harvester: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    harvester.keeps_engine = False
    monkeypatch.setenv("METAHARVEST_DATABASE__URL", f"postgresql+psycopg://me@127.0.0.1:{free_port()}/x")
    said = harvester("run")
    assert said.code == 69
    assert "accepting TCP/IP connections? Check that it is there" in said.err


@pytest.mark.parametrize("key", ["connect_timeout", "document_deadline"])
def test_the_time_limits_of_a_connection_and_a_document_are_finite(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError, match=rf"\[http\] {key} = inf: .*finite number"):
        load(write(tmp_path, f"[http]\n{key} = inf\n"), {})


@pytest.mark.parametrize(("value", "trimmed"), [(" env:X ", "env:X"), ("   ", "")])
def test_a_reference_is_trimmed(tmp_path: Path, value: str, trimmed: str) -> None:
    text = f'[workers]\nbroker = "{value}"\n[monitoring]\nping_url = "{value}"\n'
    settings = load(write(tmp_path, text), {})
    assert (settings.workers.broker, settings.monitoring.ping_url) == (trimmed, trimmed)


@pytest.mark.parametrize("value", ["03:00Z", "03:00+02:00"])
def test_the_time_of_the_run_has_no_zone(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingsError, match=r"\[workers\] run_at = .*it must be a time without a zone, like 03:00:00"):
        load(write(tmp_path, f'[workers]\nrun_at = "{value}"\n'), {})
