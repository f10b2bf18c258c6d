"""The sandbox of a run: the part of this machine that its program sees.

With bubblewrap a run has a mount namespace and a process namespace of its own. It sees the system
and what is on its PATH read-only, its agent's directories, the files that were sent to it, and its
program's login: no other file of the user's, nothing of Bullpen's home, and no other process.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bullpen.core.roster.programs import BUBBLEWRAP

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc", "/opt", "/nix", "/gnu/store"),
)
"""Directories that every program needs, without files of users."""
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")


class SandboxError(Exception):
    """The sandbox cannot be set up, and the run does not start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateDirectory:
    """A program's private directory, of which each sandboxed agent has its own copy."""

    place: Path
    """Where the program looks for it."""
    source: Path
    """The agent's copy, which is mounted there."""
    login: tuple[Path, ...]
    """The user's files that it may change."""
    settings: tuple[Path, ...]
    """The user's files that it may read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The directories that a run sees in addition to the system."""

    directory: Path
    """Its working directory."""
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    private: tuple[PrivateDirectory, ...]
    hidden: tuple[Path, ...]
    """Directories that no visible directory may contain: the user's home, and Bullpen's."""


def bubblewrap(argv: Sequence[str], environ: Mapping[str, str], view: View) -> list[str]:
    """The command that runs another one in a sandbox; raises SandboxError if that cannot work."""
    if problem := BUBBLEWRAP.problem():
        raise SandboxError(problem)
    _check(view)
    program = shutil.which(argv[0], path=environ.get("PATH"))
    if program is None:
        raise SandboxError(f"{argv[0]} is not installed")
    wrapped = [
        BUBBLEWRAP.program,
        "--die-with-parent",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
    ]
    wrapped += _system()
    wrapped += ["--dev", "/dev", "--proc", "/proc"]
    for each in ("/tmp", "/run", "/var/tmp", *map(str, view.hidden)):  # noqa: S108 - empty ones
        wrapped += ["--tmpfs", each]
    for path in (*_programs(environ, program, view.hidden), *_certificates(environ)):
        wrapped += ["--ro-bind-try", str(path), str(path)]
    for directory in view.private:
        wrapped += _mount_private(directory)
    for path in view.readable:
        wrapped += ["--ro-bind", str(path), str(path)]
    for path in view.writable:
        wrapped += ["--bind", str(path), str(path)]
    return [*wrapped, "--chdir", str(view.directory), "--", *argv]


def _check(view: View) -> None:
    """Raise SandboxError if a visible directory contains a hidden one."""
    for seen in (*view.writable, *view.readable):
        if any(each.is_relative_to(seen.resolve()) for each in map(Path.resolve, view.hidden)):
            raise SandboxError(f"{seen} contains a directory that the sandbox hides")
    if Path("/") in map(Path.resolve, view.hidden):
        raise SandboxError("the home of the user is the root of the file system")


def _system() -> Iterator[str]:
    for each in SYSTEM:
        if os.path.islink(each):  # noqa: PTH114
            yield from ("--symlink", os.readlink(each), each)  # noqa: PTH115
        elif os.path.isdir(each):  # noqa: PTH112
            yield from ("--ro-bind", each, each)
    # resolv.conf is often a link to another directory.
    names = os.path.realpath("/etc/resolv.conf")
    if not names.startswith("/etc/"):
        yield from ("--ro-bind-try", names, names)


def _programs(environ: Mapping[str, str], program: str, hidden: Sequence[Path]) -> Iterator[Path]:
    """The directories on the PATH, and the directory of the program after resolving links."""
    for each in environ.get("PATH", "").split(os.pathsep):
        path = Path(each)
        if not path.is_absolute() or not path.is_dir() or _is_system(path):
            continue
        # A directory on the PATH that contains a home stays hidden.
        if not any(one.resolve().is_relative_to(path.resolve()) for one in hidden):
            yield path
    real = Path(program).resolve()
    packages = [each for each in real.parents if each.name == "node_modules"]
    place = packages[-1] if packages else real.parent
    if not _is_system(place) and not any(each.resolve().is_relative_to(place) for each in hidden):
        yield place


def _certificates(environ: Mapping[str, str]) -> Iterator[Path]:
    for name in CERTIFICATES:
        path = Path(environ.get(name, ""))
        if path.is_absolute() and not _is_system(path):
            yield path


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(each) for each in SYSTEM)


def _mount_private(directory: PrivateDirectory) -> Iterator[str]:
    directory.source.mkdir(mode=0o700, parents=True, exist_ok=True)
    yield from ("--bind", str(directory.source), str(directory.place))
    for option, paths in (("--bind", directory.login), ("--ro-bind", directory.settings)):
        for path in paths:
            mounted = directory.source / path.name
            if path.is_file():
                yield from (option, str(path), str(directory.place / path.name))
            elif mounted.is_file() and mounted.stat().st_size == 0:
                mounted.unlink()  # left from a mounted file that was removed
