"""The command in a process that is forked from one which has loaded it: it begins at once.

It is a process all the same, with an environment, files and an exit status of its own.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import tests.crash.warm  # noqa: F401 - one server is forked from, whoever asks first
from bullpen.cli.lazy import walk_commands
from bullpen.cli.main import cli, main

PRELOADED = ["tests.crash.warm", "tests.cli.warm"]

walk_commands(cli)  # every command is loaded before the first fork

FIRST = "TESTS_FIRST"
"""Modules that a command is to import before it begins, for what no setting changes."""

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


def _command(
    arguments: list[str], environ: dict[str, str], cwd: str, directory: Path, unread: bool
) -> None:
    os.environ.clear()
    os.environ.update(environ)
    os.chdir(cwd)
    _redirect(directory)
    if unread:
        _close_pipe()
    for name in environ.get(FIRST, "").split():
        import_module(name)
    sys.argv = ["bullpen", *arguments]
    status = _status()
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _redirect(directory: Path) -> None:
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, name, flags in ((0, "in", os.O_RDONLY), (1, "out", write), (2, "err", write)):
        file = os.open(directory / name, flags, 0o600)
        os.dup2(file, number)
        os.close(file)
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
