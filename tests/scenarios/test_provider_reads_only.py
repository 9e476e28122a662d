"""The right to read the database is enough for the provider: by the statements in docs/operators.md, and on SQLite."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import DBAPIError

from metaharvest.database.engine import open_url
from support.databases import Servers, TestDatabase, on_one_database
from support.harvester import SETTINGS, Harvester, eml
from support.provider import KEY, document, store
from support.provider_process import ProviderProcess, serving

OPERATORS = Path(__file__).parents[2] / "docs" / "operators.md"
PASSWORD = "only for reading"
PATHS = ("/oai?verb=Identify", "/oai?verb=ListSets", "/documents/alder.1", "/xml/alder.1", "/sitemap.xml")
LISTS = ("/oai?verb=ListRecords&metadataPrefix=eml-2.1.1", "/oai?verb=ListRecords&metadataPrefix=oai_dc")
OBEYS_PERMISSIONS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Words before a command that take the rights of root over files that others may not write."""


@pytest.fixture(params=["postgresql", "mariadb"])
def owned(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> Iterator[tuple[Harvester, TestDatabase]]:
    """An installation on a server; and its database for a login that the statements in the docs make."""
    kind = request.param
    role = f"harvest_reader_{uuid.uuid4().hex[:8]}"
    with servers.another(kind) as url:
        owner, reader = make_url(url), make_url(url).set(username=role, password=PASSWORD)
        engines = [open_url(each) for each in (owner, reader)]
        folder = tmp_path / "owner"
        folder.mkdir()
        harvester = Harvester(folder, SETTINGS, TestDatabase(kind, url, engines[0]))
        assert harvester("init").code == 0
        for statement in documented(kind, str(owner.username), role, str(owner.database)):
            execute(engines[0], statement)
        yield harvester, TestDatabase(kind, reader.render_as_string(hide_password=False), engines[1])
        for engine in engines:
            engine.dispose()
    execute(servers.require(kind).engine, f"DROP {'ROLE' if kind == 'postgresql' else 'USER'} {role}")


def documented(kind: str, owner: str, role: str, database: str) -> list[str]:
    """The statements of the docs for this kind of database, with these names."""
    blocks = re.findall(r"```sql\n(.*?)```", OPERATORS.read_text("utf-8"), re.DOTALL)
    [block] = [
        each for each in blocks if "harvest_reader" in each and ("CREATE ROLE" in each) == (kind == "postgresql")
    ]
    block = re.sub(r"\bmetaharvest\b", database, re.sub(r"\bharvest\b", owner, block))
    block = block.replace("harvest_reader", role).replace("'...'", f"'{PASSWORD}'")
    return [each.strip() for each in block.split(";") if each.strip()]


def execute(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def require_served(provider: ProviderProcess) -> None:
    for path in (*PATHS, *LISTS):
        status, _, body = provider.get(path)
        assert (status, b"<error" in body) == (200, False), (path, body)
    for path in LISTS:
        assert b"Alders" in provider.get(path)[2]


@pytest.mark.slow
def test_a_login_that_may_only_read_is_enough(owned: tuple[Harvester, TestDatabase], tmp_path: Path) -> None:
    harvester, for_reading = owned
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    store(harvester, document("alder.1", eml("alder.1.1", "Alders")))
    assert for_reading.engine is not None
    folder = tmp_path / "reader"
    folder.mkdir()
    with (
        closing(Harvester(folder, f'{SETTINGS}{KEY}hidden = ["birch"]\n', for_reading)) as public,
        serving(public) as provider,
    ):
        require_served(provider)
    for forbidden in (
        "DELETE FROM catalogue_document",
        "UPDATE harvest_run SET status = ''",
        "CREATE TABLE mine (a INT)",
    ):
        with pytest.raises(DBAPIError, match="denied"):
            execute(for_reading.engine, forbidden)
    execute(harvester.engine, "CREATE TABLE table_of_a_later_version (a INT)")
    execute(for_reading.engine, "SELECT a FROM table_of_a_later_version")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that its owner may not write to, as soon as the test closes it."""
    made = tmp_path / "closed"
    made.mkdir()
    yield made
    made.chmod(0o755)


@on_one_database
@pytest.mark.slow
def test_a_sqlite_file_in_a_folder_that_may_only_be_read(harvester: Harvester, folder: Path) -> None:
    store(harvester, document("alder.1", eml("alder.1.1", "Alders")))
    public = Harvester(folder, SETTINGS + KEY)
    public.close()
    for file in folder.glob("metaharvest.db*"):
        file.unlink()
    (folder / "metaharvest.db").write_bytes((harvester.folder / "metaharvest.db").read_bytes())
    folder.chmod(0o555)
    with pytest.raises(AssertionError, match=f"also to read it: this user may not write to the folder {folder}"):
        ProviderProcess(public, OBEYS_PERMISSIONS).start()
    folder.chmod(0o755)
    (folder / "metaharvest.db").unlink()
    with harvester.engine.connect() as connection:
        connection.exec_driver_sql("COMMIT")
        connection.exec_driver_sql(f"VACUUM INTO '{folder / 'metaharvest.db'}'")
    folder.chmod(0o555)
    with serving(public, OBEYS_PERMISSIONS) as provider:
        require_served(provider)
