"""The command in a process that is forked from one which has loaded it: it begins at once.

It is a process all the same, with an environment, files and an exit status of its own.
"""

from __future__ import annotations

import gc
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import tests.crash.warm  # noqa: F401 - one server is forked from, whoever asks first
from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli, main

PRELOADED = ["bullpen.api.server", "bullpen.processor.main", "tests.crash.warm", "tests.cli.warm"]

walk_commands(cli)  # every command is loaded before the first fork
gc.collect()
gc.freeze()  # else the first collection of a child copies all the memory that it shares

FIRST = "TESTS_FIRST"
"""Modules that a command is to import before it begins, for what no setting changes."""

WRITE = os.O_WRONLY | os.O_CREAT | os.O_APPEND

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


def run(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    data: bytes,
    limit: float,
    *,
    unread: bool = False,
) -> tuple[int, bytes, bytes]:
    """Run the command; gives its exit status, and what it wrote.

    `unread` makes its standard output a pipe from which nobody reads any more.
    """
    with TemporaryDirectory(prefix="bp-command-") as name:
        directory = Path(name)
        (directory / "in").write_bytes(data)
        given = (list(arguments), dict(environ), str(Path.cwd()), directory, unread)
        process = _context.Process(target=_command, args=given)
        process.start()
        process.join(limit)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise AssertionError(f"{arguments} did not end within {limit} s")
        status = process.exitcode
        process.close()
        return (
            status,
            b"" if unread else (directory / "out").read_bytes(),
            (directory / "err").read_bytes(),
        )


class Service:
    """A command that goes on until it is told to stop, with the verbs of `subprocess.Popen`."""

    def __init__(self, arguments: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        """Start it; what it writes is added to `log`."""
        given = (list(arguments), dict(environ), log)
        self.arguments = arguments
        self._process = _context.Process(target=_service, args=given, daemon=True)
        self._process.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """How it ended, if it did: its exit status, or minus the signal that killed it."""
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        """The same, when it has ended."""
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(["bullpen", *self.arguments], timeout)
        return status

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


def _service(arguments: list[str], environ: dict[str, str], log: Path) -> None:
    os.environ.clear()
    os.environ.update(environ)
    _open_as(0, "/dev/null", os.O_RDONLY)
    for number in (1, 2):
        _open_as(number, log, WRITE)
    _import_first()
    _run(arguments)


def _command(
    arguments: list[str], environ: dict[str, str], cwd: str, directory: Path, unread: bool
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    _redirect(directory)
    if unread:
        _close_pipe()
    _import_first()
    _run(arguments)


def _import_first() -> None:
    for name in os.environ.get(FIRST, "").split():
        import_module(name)


def _run(arguments: list[str]) -> NoReturn:
    _replace_streams()
    sys.argv = ["bullpen", *arguments]
    status = _status()
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _redirect(directory: Path) -> None:
    for number, name, flags in ((0, "in", os.O_RDONLY), (1, "out", WRITE), (2, "err", WRITE)):
        _open_as(number, directory / name, flags)


def _open_as(number: int, path: Path | str, flags: int) -> None:
    file = os.open(path, flags, 0o600)
    os.dup2(file, number)
    os.close(file)


def _replace_streams() -> None:
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8")
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", write_through=True
    )


def _close_pipe() -> None:
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(reading)
    os.close(writing)


def _status() -> int:
    """As the interpreter ends."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
