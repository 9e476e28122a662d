"""A real DataONE member node for the tests: GMN, from PyPI, on loopback, in a virtual environment of its own.

    python -m support.gmn      in the folder tests: install it into the cache folder, once; `make test` does that

A test gets a node without objects from `Servers.member_node()`. It has three addresses: at `url` it asks for a bearer
token (see `token()`), at `open_url` it trusts everybody, and at the one of `encrypted()` for a client certificate.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote
from xml.sax.saxutils import escape

import platformdirs
import psycopg
import requests
import trustme
from filelock import FileLock
from sqlalchemy import Engine, text

from support.ports import free_port

REQUIREMENTS = ("dataone.gmn==3.5.2", "django>=4.2,<6", "gunicorn>=23", "setuptools<81")
_PROGRAMS = Path(__file__).parent / "gmn_process"
_SECRET = "a secret that the node and the tests share, of sufficient length"
_TRUSTED = "CN=anybody,DC=example,DC=org"

HARVESTER = "CN=harvester,DC=example,DC=org"
"""May create objects."""
READER = "CN=reader,DC=example,DC=org"
"""May not."""

_EMPTIED = """
SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'app\\_%'
AND tablename NOT IN ('app_whitelistforcreateupdatedelete', 'app_subject')
"""


def installation() -> Path:
    """The folder of GMN's virtual environment, whether it is there or not."""
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    wanted = hashlib.sha256(" ".join(REQUIREMENTS).encode()).hexdigest()[:8]
    return platformdirs.user_cache_path("metaharvest-tests") / f"gmn-{version}-{wanted}"


def is_installed() -> bool:
    return (installation() / "installed").exists()


def install() -> None:
    """Install GMN from PyPI, if that was not done yet. Raises CalledProcessError."""
    folder = installation()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if is_installed():
            return
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "--quiet", *REQUIREMENTS], check=True)
        (folder / "installed").touch()


@dataclass(frozen=True)
class Stored:
    """What the node has under one PID."""

    content: bytes
    format_id: str
    series_id: str | None
    obsoletes: str | None
    archived: bool


class MemberNode:
    """A node in `folder`, with the database of `engine`, a PostgreSQL one without tables."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        self._folder = folder
        self._engine = engine
        self._port, self._open_port, self._tls_port = (free_port() for _ in range(3))
        self._processes: dict[bool, subprocess.Popen[bytes]] = {}
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        for name, certificate in (
            ("server", authority.issue_cert("127.0.0.1", common_name="127.0.0.1")),
            ("node", authority.issue_cert("node.example.org", common_name="node")),
        ):
            certificate.private_key_pem.write_to_path(str(folder / f"{name}.key"))
            certificate.cert_chain_pems[0].write_to_path(str(folder / f"{name}.pem"))
        self.authority = authority
        self._run("gmn_prepare.py", HARVESTER)
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v2"

    @property
    def open_url(self) -> str:
        return f"http://127.0.0.1:{self._open_port}/v2"

    @property
    def port(self) -> int:
        return self._port

    @property
    def ca_file(self) -> Path:
        return self._folder / "ca.pem"

    def encrypted(self) -> str:
        """The address at which certificates are asked for; it is opened when it is first wanted."""
        if True not in self._processes:
            self._serve(encrypted=True)
        return f"https://127.0.0.1:{self._tls_port}/v2"

    def allow(self, subject: str) -> None:
        """Let this subject create, update and archive, until the end of all tests."""
        self._run("gmn_prepare.py", subject)

    def forbid(self, subject: str) -> None:
        """Let this subject create nothing until it is allowed again."""
        query = "DELETE FROM app_whitelistforcreateupdatedelete WHERE subject_id IN "
        query += "(SELECT id FROM app_subject WHERE subject = :subject)"
        with self._engine.begin() as connection:
            connection.execute(text(query), {"subject": subject})

    def start(self) -> None:
        """Serve, after a `kill` too; waits until it answers."""
        self._serve(encrypted=False)

    def kill(self) -> None:
        """End it as a power failure does."""
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self._processes.clear()

    def empty(self) -> None:
        """Let it have no objects, and serve."""
        if False not in self._processes:
            self.start()
        with self._engine.begin() as connection:
            # Foreign keys are looked at when the transaction ends. TRUNCATE would wait for the disk, table by table.
            connection.execute(text("; ".join(f"DELETE FROM {name}" for name in connection.scalars(text(_EMPTIED)))))
        shutil.rmtree(self._folder / "store" / "objects", ignore_errors=True)

    def token(self, subject: str = HARVESTER, expires_in: float = 86_400.0) -> str:
        """A JSON web token for this subject."""
        claims = {"sub": subject, "exp": int(time.time() + expires_in)}
        signed = ".".join(_base64(json.dumps(each).encode()) for each in ({"alg": "HS256", "typ": "JWT"}, claims))
        return f"{signed}.{_base64(hmac.digest(_SECRET.encode(), signed.encode(), 'sha256'))}"

    def put(
        self,
        pid: str,
        content: bytes,
        *,
        series_id: str | None = None,
        supersedes: str | None = None,
        format_id: str = "eml://ecoinformatics.org/eml-2.1.1",
        owner: str = HARVESTER,
        readers: str = "public",
    ) -> None:
        """Have an object there, as somebody else put it."""
        policy = f"<allow><subject>{readers}</subject><permission>read</permission></allow>"
        series = f"<seriesId>{escape(series_id)}</seriesId>" if series_id else ""
        sysmeta = (
            '<m:systemMetadata xmlns:m="http://ns.dataone.org/service/types/v2.0">'
            f"<identifier>{escape(pid)}</identifier><formatId>{format_id}</formatId><size>{len(content)}</size>"
            f'<checksum algorithm="MD5">{hashlib.md5(content).hexdigest()}</checksum>'
            f"<rightsHolder>{owner}</rightsHolder><accessPolicy>{policy}</accessPolicy>{series}</m:systemMetadata>"
        )
        field = "newPid" if supersedes else "pid"
        parts = {"sysmeta": ("sysmeta.xml", sysmeta.encode()), "object": ("object", content)}
        path = f"/{quote(supersedes, safe='')}" if supersedes else ""
        method = "PUT" if supersedes else "POST"
        answer = requests.request(method, f"{self.open_url}/object{path}", data={field: pid}, files=parts, timeout=30)
        assert answer.ok, answer.text

    def archive(self, pid: str) -> None:
        answer = requests.put(f"{self.open_url}/archive/{quote(pid, safe='')}", timeout=30)
        assert answer.ok, answer.text

    def stored(self) -> dict[str, Stored]:
        """Everything it has, by PID: the bytes as it serves them, the rest from its tables."""
        query = """
            SELECT p.did, f.format, s.did, o.did, e.is_archived FROM app_scienceobject e
            JOIN app_idnamespace p ON p.id = e.pid_id JOIN app_scienceobjectformat f ON f.id = e.format_id
            LEFT JOIN app_idnamespace o ON o.id = e.obsoletes_id
            LEFT JOIN app_chainmember m ON m.pid_id = p.id LEFT JOIN app_chain c ON c.id = m.chain_id
            LEFT JOIN app_idnamespace s ON s.id = c.sid_id ORDER BY p.did
        """
        with self._engine.connect() as connection:
            rows = connection.execute(text(query)).all()
        return {pid: Stored(self._bytes(pid), *rest) for pid, *rest in rows}

    def sysmeta(self, pid: str) -> str:
        answer = requests.get(f"{self.open_url}/meta/{quote(pid, safe='')}", timeout=30)
        assert answer.ok, answer.text
        return answer.text

    def number(self) -> int:
        """How many objects it has."""
        with self._engine.connect() as connection:
            return int(connection.scalar(text("SELECT COUNT(*) FROM app_scienceobject")) or 0)

    def held(self) -> dict[str, bytes]:
        """PID -> bytes."""
        return {pid: each.content for pid, each in self.stored().items()}

    def log(self) -> str:
        return (self._folder / "gmn.log").read_text(encoding="utf-8", errors="replace")

    def _bytes(self, pid: str) -> bytes:
        answer = requests.get(f"{self.open_url}/object/{quote(pid, safe='')}", timeout=30)
        assert answer.ok, answer.text
        return answer.content

    def _serve(self, *, encrypted: bool) -> None:
        command: list[str | Path] = [
            installation() / "bin" / "gunicorn",
            "--preload",
            "--workers",
            "1" if encrypted else "2",
        ]
        command += ["--chdir", _PROGRAMS, "--no-control-socket", "--worker-tmp-dir", self._folder]
        if encrypted:
            command += ["--bind", f"127.0.0.1:{self._tls_port}", "--ca-certs", self.ca_file, "--cert-reqs", "1"]
            command += ["--certfile", self._folder / "server.pem", "--keyfile", self._folder / "server.key"]
        else:
            command += ["--bind", f"127.0.0.1:{self._port}", "--bind", f"127.0.0.1:{self._open_port}"]
        with (self._folder / "gmn.log").open("ab") as log:
            process = subprocess.Popen(
                [*command, "gmn_wsgi:application"],
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._processes[encrypted] = process
        self._wait(process, self._tls_port if encrypted else self._port, encrypted=encrypted)

    def _wait(self, process: subprocess.Popen[bytes], port: int, *, encrypted: bool) -> None:
        url = f"{'https' if encrypted else 'http'}://127.0.0.1:{port}/v2/monitor/ping"
        for _ in range(600):
            with suppress(requests.RequestException):
                if requests.get(url, timeout=30, verify=str(self.ca_file)).ok:
                    return
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"GMN did not start: {self.log()[-3000:]}")

    def _run(self, program: str, *arguments: str) -> None:
        python = installation() / "bin" / "python"
        with (self._folder / "gmn.log").open("ab") as log:
            subprocess.run(
                [python, _PROGRAMS / program, *arguments], env=self._environment, stdout=log, stderr=log, check=True
            )

    @cached_property
    def _environment(self) -> dict[str, str]:
        database = self._engine.url
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
            "PYTHONPATH": str(_PROGRAMS),
            "PYTHONDONTWRITEBYTECODE": "1",
            "DJANGO_SETTINGS_MODULE": "gmn_settings",
            "GMN_HOME": str(self._folder),
            "GMN_URL": f"http://127.0.0.1:{self._port}",
            "GMN_OPEN_PORT": str(self._open_port),
            "GMN_TRUSTED_SUBJECT": _TRUSTED,
            "GMN_TOKEN_SECRET": _SECRET,
            "GMN_DATABASE": database.database or "",
            "GMN_DATABASE_USER": database.username or "",
            "GMN_DATABASE_PASSWORD": str(database.password or ""),
            "GMN_DATABASE_HOST": database.host or "",
            "GMN_DATABASE_PORT": str(database.port or 5432),
        }


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def main() -> None:
    """Install it where PostgreSQL is, without which it cannot run."""
    url = os.environ.get("METAHARVEST_TEST_POSTGRESQL_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
    try:
        psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://"), connect_timeout=3).close()
        install()
    except (psycopg.Error, subprocess.CalledProcessError) as error:
        print(f"Tests with a DataONE member node are left out: {str(error).strip()}")
        sys.exit(1 if os.environ.get("REQUIRE_SERVICES") == "1" else 0)


if __name__ == "__main__":
    main()
