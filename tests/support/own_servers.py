"""Database servers that a test starts itself, with ports and folders of their own, and that it may kill."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import DBAPIError

from metaharvest.database.engine import open_url, upgrade
from support.databases import TestDatabase
from support.ports import free_port
from support.waiting import wait_until

_POSTGRESQL = Path("/usr/lib/postgresql")
_ACCOUNTS = {"postgresql": "postgres", "mariadb": "mysql"}


class OwnServer:
    """A server of this kind that listens at `host`; it keeps its data when it is killed and started again."""

    def __init__(self, kind: str, host: str = "127.0.0.1") -> None:
        self.kind = kind
        self._host, self._port = host, free_port(host)
        self._folder = Path(tempfile.mkdtemp(prefix=f"metaharvest-{kind}-"))
        self._data = self._folder / "data"
        self._account = _ACCOUNTS[kind] if os.geteuid() == 0 else None
        """No server runs as root."""
        if self._account:
            shutil.chown(self._folder, self._account)
        self._process: subprocess.Popen[bytes] | None = None
        prepared = self._run(self._prepare_postgresql() if kind == "postgresql" else self._prepare_mariadb())
        assert prepared.returncode == 0, prepared.stdout.decode()
        self.start()

    def database(self) -> TestDatabase:
        """A database on it with all tables."""
        home = open_url(self._url("postgres" if self.kind == "postgresql" else ""))
        with home.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("CREATE DATABASE fleet"))
        home.dispose()
        url = self._url("fleet")
        engine = open_url(url)
        upgrade(engine)
        return TestDatabase(self.kind, url.render_as_string(), engine)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = self._postgresql() if self.kind == "postgresql" else self._mariadb()
        with (self._folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdout=output,
                stderr=output,
                cwd=self._folder,
                start_new_session=True,
                user=self._account,
                group=self._account,
            )
        wait_until(self._answers, seconds=120)

    def kill(self) -> None:
        """End all its processes with SIGKILL, as a power failure would."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            for child in _of_folder(self._data):
                os.kill(child, signal.SIGKILL)
            self._process.wait()
            wait_until(lambda: not _of_folder(self._data), seconds=60)
            self._process = None

    def close(self) -> None:
        """End it, and delete its folders."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _url(self, name: str) -> URL:
        if self.kind == "postgresql":
            return make_url(f"postgresql+psycopg://postgres@{self._host}:{self._port}/{name}")
        return make_url(f"mysql+pymysql://root@{self._host}:{self._port}/{name}?ssl_disabled=1")

    def _run(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            user=self._account,
            group=self._account,
            check=False,
        )

    def _prepare_postgresql(self) -> list[str]:
        return [_postgresql("initdb"), "-D", str(self._data), "-A", "trust", "-U", "postgres", "-E", "UTF8"]

    def _postgresql(self) -> list[str]:
        with (self._data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write("host all all samenet trust\nhost all all 10.0.0.0/8 trust\n")
        options = {
            "listen_addresses": self._host,
            "port": self._port,
            "unix_socket_directories": self._folder,
            "max_connections": 300,
        }
        settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        return [_postgresql("postgres"), "-D", str(self._data), *settings]

    def _prepare_mariadb(self) -> list[str]:
        program = _require("mariadb-install-db", "mariadb-server")
        return [program, "--no-defaults", f"--datadir={self._data}", "--skip-test-db"]

    def _mariadb(self) -> list[str]:
        return [
            _require("mariadbd", "mariadb-server"),
            "--no-defaults",
            f"--datadir={self._data}",
            f"--socket={self._folder / 'socket'}",
            f"--bind-address={self._host}",
            f"--port={self._port}",
            f"--pid-file={self._folder / 'pid'}",
            "--skip-grant-tables",
            "--skip-name-resolve",
            "--max-connections=300",
            "--character-set-server=utf8mb4",
        ]

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "output").read_text(encoding="utf-8")
        engine = open_url(self._url("postgres" if self.kind == "postgresql" else ""))
        try:
            with engine.connect():
                return True
        except DBAPIError:
            return False
        finally:
            engine.dispose()


def _postgresql(program: str) -> str:
    found = sorted(_POSTGRESQL.glob(f"*/bin/{program}"))
    return str(found[-1]) if found else _require(program, "postgresql")


def _require(program: str, package: str) -> str:
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        sentence = f"{program} is not installed: on Debian, `apt-get install {package}`."
        (pytest.fail if os.environ.get("REQUIRE_SERVICES") == "1" else pytest.skip)(sentence)
    return str(found)


def _of_folder(data: Path) -> list[int]:
    """The processes that work in this folder, or were started with it."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            is_its = str(data).encode() in (each / "cmdline").read_bytes() or (each / "cwd").readlink() == data
        except OSError:
            continue
        if is_its:
            found.append(int(each.name))
    return found
